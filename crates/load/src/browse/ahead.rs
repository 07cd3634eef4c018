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
use super::html::Reader;
use crate::limits::DOCUMENT_BYTES_MAX;

/// What is decoded at once, so that a little that becomes much is stopped soon.
const SLICE_BYTES: usize = 4096;

/// A document that is coming.
pub(crate) struct Ahead {
    decoder: Decoder,
    /// Bytes of the body that were decoded.
    taken: usize,
    reader: Reader,
    /// What was found and told already.
    told: usize,
}

/// How the coding of a body is undone, with the text so far.
enum Decoder {
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
            decoder: Decoder::new(codings),
            taken: 0,
            reader: Reader::default(),
            told: 0,
        }
    }

    /// So much of the body is there. What was found besides what was told before, with what it is
    /// relative to; none where there is nothing new.
    pub(crate) fn look(&mut self, body: &[u8]) -> Option<Scan> {
        let more = body.get(self.taken..).filter(|more| !more.is_empty())?;
        self.taken = body.len();
        if self.decoder.take(more).is_err() {
            self.decoder = Decoder::Nothing;
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

impl Decoder {
    fn new(codings: &str) -> Decoder {
        let mut codings = codings.split(',').map(str::trim);
        let (coding, rest) = (codings.next().unwrap_or_default(), codings.next());
        let text = Text::default;
        match coding.to_ascii_lowercase().as_str() {
            _ if rest.is_some() => Decoder::Nothing,
            "" | "identity" => Decoder::Plain(text()),
            "gzip" | "x-gzip" => {
                Decoder::Gzip(Box::new(flate2::write::MultiGzDecoder::new(text())))
            }
            "deflate" => Decoder::Deflate(Box::new(flate2::write::ZlibDecoder::new(text()))),
            "br" => Decoder::Brotli(Box::new(brotli::DecompressorWriter::new(
                text(),
                SLICE_BYTES,
            ))),
            "zstd" => match zstd::stream::write::Decoder::new(text()) {
                Ok(decoder) => Decoder::Zstd(Box::new(decoder)),
                Err(_) => Decoder::Nothing,
            },
            _ => Decoder::Nothing,
        }
    }

    /// Decodes more, as far as that can be done without what follows it.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let writer: &mut dyn Write = match self {
            Decoder::Plain(text) => text,
            Decoder::Gzip(decoder) => decoder,
            Decoder::Deflate(decoder) => decoder,
            Decoder::Brotli(decoder) => decoder,
            Decoder::Zstd(decoder) => decoder,
            Decoder::Nothing => return Ok(()),
        };
        for slice in bytes.chunks(SLICE_BYTES) {
            writer.write_all(slice)?;
        }
        writer.flush()
    }

    fn text(&self) -> Option<&[u8]> {
        let text = match self {
            Decoder::Plain(text) => text,
            Decoder::Gzip(decoder) => decoder.get_ref(),
            Decoder::Deflate(decoder) => decoder.get_ref(),
            Decoder::Brotli(decoder) => decoder.get_ref(),
            Decoder::Zstd(decoder) => decoder.get_ref(),
            Decoder::Nothing => return None,
        };
        Some(&text.0)
    }
}

#[cfg(test)]
#[path = "tests/ahead.rs"]
mod tests;
