//! What is found of a document that has not ended.

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::*;
use crate::browse::scan_html;
use crate::measure::AssetKind;

const TEXT: &str = "<!doctype html><base href=/b/><link rel=stylesheet href=a.css><script>\
                    document.write('<img src=no>')</script><!-- <img src=no> --><style>\
                    @import 'd.css';</style><picture><source srcset=p.avif><img src=no></picture>\
                    <link rel=icon href=i.png><img alt='>' src=g.png></p><img src=last.png>";

/// Writes a text in two parts, and says how long the first one became.
fn halves<W: Write>(mut writer: W, text: &str, at: usize, len: fn(&W) -> usize) -> (W, usize) {
    writer.write_all(&text.as_bytes()[..at]).unwrap();
    writer.flush().unwrap();
    let first = len(&writer);
    writer.write_all(&text.as_bytes()[at..]).unwrap();
    (writer, first)
}

/// The text in a coding, of which the first bytes hold as much of it.
fn coded(coding: &str, text: &str, at: usize) -> (Vec<u8>, usize) {
    match coding {
        "gzip" => {
            let encoder = GzEncoder::new(Vec::new(), Compression::fast());
            let (encoder, first) = halves(encoder, text, at, |one| one.get_ref().len());
            (encoder.finish().unwrap(), first)
        }
        "deflate" => {
            let encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            let (encoder, first) = halves(encoder, text, at, |one| one.get_ref().len());
            (encoder.finish().unwrap(), first)
        }
        "br" => {
            let encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 4, 18);
            let (encoder, first) = halves(encoder, text, at, |one| one.get_ref().len());
            (encoder.into_inner(), first)
        }
        "zstd" => {
            let encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            let (encoder, first) = halves(encoder, text, at, |one| one.get_ref().len());
            (encoder.finish().unwrap(), first)
        }
        _ => (text.as_bytes().to_vec(), at),
    }
}

fn names(scan: Option<Scan>) -> Vec<String> {
    let found = scan.map(|scan| scan.found).unwrap_or_default();
    found.into_iter().map(|one| one.reference).collect()
}

#[test]
fn half_of_a_document_names_what_it_names_in_every_coding() {
    let at = TEXT.find("<img alt").unwrap() + 5;
    for coding in ["", "identity", "GZIP", "deflate", "br", "zstd"] {
        let (body, first) = coded(&coding.to_ascii_lowercase(), TEXT, at);
        let mut ahead = Ahead::new(coding);
        let half = ahead.look(&body[..first]);
        let base = half.as_ref().and_then(|scan| scan.base.clone());
        assert_eq!(base.as_deref(), Some("/b/"), "{coding}");
        assert_eq!(names(half), ["a.css", "d.css", "p.avif"], "{coding}");
        assert_eq!(names(ahead.look(&body[..first])), [""; 0], "{coding}");
        assert_eq!(names(ahead.look(&body)), ["g.png", "last.png"], "{coding}");
    }
}

#[test]
fn document_that_comes_byte_by_byte_names_the_same_as_one_that_is_whole() {
    let mut ahead = Ahead::new("");
    let mut found = Vec::new();
    for end in 1..=TEXT.len() {
        if let Some(scan) = ahead.look(&TEXT.as_bytes()[..end]) {
            found.extend(scan.found);
        }
    }
    let mut whole = scan_html(TEXT.as_bytes()).found;
    // Which icon it is shows at the end.
    whole.retain(|one| one.kind != AssetKind::Icon);
    assert_eq!(found, whole);
}

#[test]
fn what_cannot_be_read_is_left_for_when_it_is_whole() {
    for (coding, body) in [
        ("gzip", TEXT.as_bytes().to_vec()),
        ("compress", TEXT.as_bytes().to_vec()),
        ("zstd, gzip", coded("gzip", TEXT, 10).0),
    ] {
        let mut ahead = Ahead::new(coding);
        assert_eq!(names(ahead.look(&body[..20])), [""; 0], "{coding}");
        assert_eq!(names(ahead.look(&body)), [""; 0], "{coding}");
    }
    // A little that becomes more than is looked at.
    let bomb = " ".repeat(DOCUMENT_BYTES_MAX + 1) + "<img src=a>";
    let (body, _) = coded("gzip", &bomb, 0);
    assert_eq!(names(Ahead::new("gzip").look(&body)), [""; 0]);
}
