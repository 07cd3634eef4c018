//! Reads a document while it is still coming, as the preload scanners of browsers do: what it names
//! is known before it is whole.
//!
//! ```text
//! body so far --> decoded so far --> scanned up to the first tag that is not whole
//! ```
//!
//! Every byte is decoded once, and scanned once unless it belongs to something whose end has not
//! come. What is in several codings is left for when it is whole; so is what is wrong, which is
//! told then.

use std::io::{self, Write};

use super::found::Scan;
use super::html::HtmlReader;
use crate::limits::DOCUMENT_BYTES_MAX;

/// What is decoded at once, so that a little that becomes much is stopped soon.
const SLICE_BYTES: usize = 4096;

/// A document that is coming.
pub(crate) struct Ahead {
    decoder: ContentDecoder,
    /// Bytes of the body that were decoded.
    taken: usize,
    reader: HtmlReader,
    /// What was found and told already.
    told: usize,
}

/// How the coding of a body is undone, with the text so far.
enum ContentDecoder {
    Plain(Text),
    Gzip(Box<flate2::write::MultiGzDecoder<Text>>),
    Deflate(Box<flate2::write::ZlibDecoder<Text>>),
    Brotli(Box<brotli::DecompressorWriter<Text>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Text>>),
    /// It cannot be read before it is whole.
    Nothing,
}

/// A text up to the limit.
#[derive(Default)]
struct Text(Vec<u8>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > DOCUMENT_BYTES_MAX - self.0.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").field("taken", &self.taken).finish()
    }
}

impl Ahead {
    /// Nothing of it has come; Content-Encoding says how it will.
    pub(crate) fn new(codings: &str) -> Ahead {
        Ahead {
            decoder: ContentDecoder::new(codings),
            taken: 0,
            reader: HtmlReader::default(),
            told: 0,
        }
    }

    /// So much of the body is there. What was found besides what was told before, with what it is
    /// relative to; none where there is nothing new.
    pub(crate) fn look(&mut self, body: &[u8]) -> Option<Scan> {
        let more = body.get(self.taken..).filter(|more| !more.is_empty())?;
        self.taken = body.len();
        if self.decoder.take(more).is_err() {
            self.decoder = ContentDecoder::Nothing;
            return None;
        }
        let text = self.decoder.text()?;
        self.reader.advance(text);
        let scan = self.reader.so_far();
        let found = scan.found.get(self.told..).filter(|new| !new.is_empty())?;
        let new = Scan {
            base: scan.base.clone(),
            found: found.to_vec(),
            left_out: 0,
        };
        self.told = scan.found.len();
        Some(new)
    }
}

impl ContentDecoder {
    fn new(codings: &str) -> ContentDecoder {
        let mut codings = codings.split(',').map(str::trim);
        let (coding, rest) = (codings.next().unwrap_or_default(), codings.next());
        let text = Text::default;
        match coding.to_ascii_lowercase().as_str() {
            _ if rest.is_some() => ContentDecoder::Nothing,
            "" | "identity" => ContentDecoder::Plain(text()),
            "gzip" | "x-gzip" => {
                ContentDecoder::Gzip(Box::new(flate2::write::MultiGzDecoder::new(text())))
            }
            "deflate" => ContentDecoder::Deflate(Box::new(flate2::write::ZlibDecoder::new(text()))),
            "br" => ContentDecoder::Brotli(Box::new(brotli::DecompressorWriter::new(
                text(),
                SLICE_BYTES,
            ))),
            "zstd" => match zstd::stream::write::Decoder::new(text()) {
                Ok(decoder) => ContentDecoder::Zstd(Box::new(decoder)),
                Err(_) => ContentDecoder::Nothing,
            },
            _ => ContentDecoder::Nothing,
        }
    }

    /// Decodes more, as far as that can be done without what follows it.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let writer: &mut dyn Write = match self {
            ContentDecoder::Plain(text) => text,
            ContentDecoder::Gzip(decoder) => decoder,
            ContentDecoder::Deflate(decoder) => decoder,
            ContentDecoder::Brotli(decoder) => decoder,
            ContentDecoder::Zstd(decoder) => decoder,
            ContentDecoder::Nothing => return Ok(()),
        };
        for slice in bytes.chunks(SLICE_BYTES) {
            writer.write_all(slice)?;
        }
        writer.flush()
    }

    fn text(&self) -> Option<&[u8]> {
        let text = match self {
            ContentDecoder::Plain(text) => text,
            ContentDecoder::Gzip(decoder) => decoder.get_ref(),
            ContentDecoder::Deflate(decoder) => decoder.get_ref(),
            ContentDecoder::Brotli(decoder) => decoder.get_ref(),
            ContentDecoder::Zstd(decoder) => decoder.get_ref(),
            ContentDecoder::Nothing => return None,
        };
        Some(&text.0)
    }
}

#[cfg(test)]
#[path = "tests/ahead.rs"]
mod tests;
