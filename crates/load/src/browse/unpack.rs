//! Undoes the coding of a document or a stylesheet, so that it can be read.

use std::io::Read;

use crate::limits::DOCUMENT_BYTES_MAX;

/// What browsers accept.
pub(crate) const ACCEPTED: &str = "gzip, deflate, br, zstd";
/// What is decoded at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// A decoded text.
#[derive(Debug)]
pub(crate) struct Unpacked {
    pub(crate) text: Vec<u8>,
    /// There is more of it than is looked at.
    pub(crate) is_cut: bool,
}

/// Undoes the codings that Content-Encoding names, the last one first. Of a body that is cut, what
/// can be decoded.
pub(crate) fn unpack(body: Vec<u8>, is_cut: bool, codings: &str) -> Result<Unpacked, String> {
    let mut unpacked = Unpacked { text: body, is_cut };
    let codings = codings.split(',').map(str::trim).rev();
    for coding in codings.filter(|coding| !coding.is_empty()) {
        let coding = coding.to_ascii_lowercase();
        let text = unpacked.text.as_slice();
        let bounded = |reader: &mut dyn Read| bounded(reader, unpacked.is_cut);
        let read = match coding.as_str() {
            "identity" => continue,
            "gzip" | "x-gzip" => bounded(&mut flate2::read::MultiGzDecoder::new(text)),
            "deflate" => bounded(&mut flate2::read::ZlibDecoder::new(text)),
            "br" => bounded(&mut brotli::Decompressor::new(text, BUFFER_BYTES)),
            "zstd" => {
                zstd::stream::read::Decoder::new(text).and_then(|mut reader| bounded(&mut reader))
            }
            _ => return Err(format!("it comes in {coding:?}, which was not asked for")),
        };
        let (text, is_cut) = read.map_err(|error| format!("it is no {coding}: {error}"))?;
        unpacked.text = text;
        unpacked.is_cut = is_cut;
    }
    Ok(unpacked)
}

/// Reads to the end, or to the limit; what was cut before has no end.
fn bounded(reader: impl Read, was_cut: bool) -> std::io::Result<(Vec<u8>, bool)> {
    let mut text = Vec::new();
    let limit = DOCUMENT_BYTES_MAX as u64 + 1;
    match reader.take(limit).read_to_end(&mut text) {
        Err(error) if !was_cut || text.is_empty() => return Err(error),
        _ => {}
    }
    let is_cut = was_cut || text.len() > DOCUMENT_BYTES_MAX;
    text.truncate(DOCUMENT_BYTES_MAX);
    Ok((text, is_cut))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// The text in every way it may come.
    fn coded(text: &[u8]) -> [(Vec<u8>, &'static str); 5] {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(text).unwrap();
        let mut br = Vec::new();
        brotli::CompressorWriter::new(&mut br, 4096, 4, 18)
            .write_all(text)
            .unwrap();
        let zstd = zstd::stream::encode_all(text, 1).unwrap();
        [
            (text.to_vec(), ""),
            (gzip(text), "GZIP"),
            (zlib.finish().unwrap(), "deflate"),
            (br, "br"),
            (gzip(&zstd), "zstd, gzip"),
        ]
    }

    #[test]
    fn every_accepted_coding_is_undone() {
        let text = b"<img src=a>".repeat(100);
        for (body, coding) in coded(&text) {
            let unpacked = unpack(body, false, coding).unwrap();
            assert_eq!(
                (unpacked.text == text, unpacked.is_cut),
                (true, false),
                "{coding}"
            );
        }
    }

    #[test]
    fn what_is_there_of_a_text_that_is_cut_is_decoded() {
        // Numbers do not shrink to one block.
        let text: String = (0..200_000u32).map(|number| format!("{number},")).collect();
        for (mut body, coding) in coded(text.as_bytes()) {
            body.truncate(body.len() / 2);
            let whole = unpack(body.clone(), false, coding);
            assert_eq!(whole.is_err(), !coding.is_empty(), "{coding}");
            let unpacked = unpack(body, true, coding).unwrap();
            assert!(unpacked.is_cut, "{coding}");
            assert!(!unpacked.text.is_empty(), "{coding}");
            assert!(text.as_bytes().starts_with(&unpacked.text), "{coding}");
        }
    }

    #[test]
    fn what_is_not_what_it_says_is_refused() {
        for coding in ["gzip", "deflate", "br", "zstd", "compress"] {
            assert!(
                unpack(b"plain text".to_vec(), false, coding).is_err(),
                "{coding}"
            );
            assert!(
                unpack(b"plain text".to_vec(), true, coding).is_err(),
                "{coding}"
            );
        }
    }

    #[test]
    fn bomb_is_cut_at_the_limit() {
        let unpacked = unpack(gzip(&vec![b' '; DOCUMENT_BYTES_MAX + 1]), false, "gzip").unwrap();
        assert_eq!(
            (unpacked.text.len(), unpacked.is_cut),
            (DOCUMENT_BYTES_MAX, true)
        );
    }
}
