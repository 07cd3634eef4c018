//! A body in chunks: what frames the data is taken away, the data is not copied.
//!
//! ```text
//! Size --(n > 0)--> Data(n) --> Break --> Size      Size --(0)--> Trailer --> (end)
//! ```

use memchr::memchr;

use super::reader::BadAnswer;
use crate::limits::{CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX};
use crate::send::body::PartialAnswerBody;

/// What is expected next.
#[derive(Debug)]
enum ChunkStep {
    /// Hexadecimal digits, then perhaps an extension, then the end of the line.
    Size,
    Data(u64),
    /// The line end behind a chunk's data.
    Break,
    Trailer,
}

/// A body in chunks, partly read.
#[derive(Debug)]
pub(super) struct Chunks {
    step: ChunkStep,
    size: u64,
    digit_count: u32,
    /// What else the line had: nothing after the digits but extensions.
    in_extension: bool,
    /// Bytes of the line, or of the trailers.
    line_bytes: usize,
    /// Bytes of the trailer line that has begun, without its line end.
    trailer_line_bytes: usize,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks {
            step: ChunkStep::Size,
            size: 0,
            digit_count: 0,
            in_extension: false,
            line_bytes: 0,
            trailer_line_bytes: 0,
        }
    }
}

impl Chunks {
    /// Takes bytes, gives what is body to it, and says after how many the body has ended.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        body: &mut PartialAnswerBody,
    ) -> Result<Option<usize>, BadAnswer> {
        let mut at = 0;
        while at < bytes.len() {
            match self.step {
                ChunkStep::Data(left) => {
                    let here = left.min((bytes.len() - at) as u64);
                    body.take(&bytes[at..at + here as usize]);
                    at += here as usize;
                    self.step = match left - here {
                        0 => ChunkStep::Break,
                        left => ChunkStep::Data(left),
                    };
                }
                ChunkStep::Size => {
                    self.size_byte(bytes[at])?;
                    at += 1;
                }
                ChunkStep::Break => {
                    match (bytes[at], self.line_bytes) {
                        (b'\n', _) => self.begin_line(),
                        (b'\r', 0) => self.line_bytes = 1,
                        _ => return Err(BadAnswer::Chunk),
                    }
                    at += 1;
                }
                ChunkStep::Trailer => match self.trailer(&bytes[at..])? {
                    (used, true) => return Ok(Some(at + used)),
                    (used, false) => at += used,
                },
            }
        }
        Ok(None)
    }

    fn begin_line(&mut self) {
        *self = Chunks::default();
    }

    fn size_byte(&mut self, byte: u8) -> Result<(), BadAnswer> {
        self.line_bytes += 1;
        if self.line_bytes > CHUNK_LINE_BYTES_MAX {
            return Err(BadAnswer::TooLong);
        }
        let digit = char::from(byte).to_digit(16).filter(|_| !self.in_extension);
        match (byte, digit) {
            // 15 digits: no sum of sizes overflows.
            (_, Some(digit)) if self.digit_count < 15 => {
                self.size = self.size * 16 + u64::from(digit);
                self.digit_count += 1;
            }
            (b'\n', _) if self.digit_count > 0 => {
                self.line_bytes = 0;
                self.step = match self.size {
                    0 => ChunkStep::Trailer,
                    size => ChunkStep::Data(size),
                };
            }
            (b';' | b' ' | b'\t' | b'\r', _) if self.digit_count > 0 => self.in_extension = true,
            (b' '..=b'~', None) if self.in_extension => {}
            _ => return Err(BadAnswer::Chunk),
        }
        Ok(())
    }

    /// Skips trailer lines; the empty one ends the body.
    fn trailer(&mut self, bytes: &[u8]) -> Result<(usize, bool), BadAnswer> {
        let end = memchr(b'\n', bytes);
        let used = end.map_or(bytes.len(), |end| end + 1);
        self.line_bytes += used;
        if self.line_bytes > TRAILER_BYTES_MAX {
            return Err(BadAnswer::TooLong);
        }
        let line = &bytes[..end.unwrap_or(bytes.len())];
        self.trailer_line_bytes += line.iter().filter(|byte| **byte != b'\r').count();
        let is_empty = self.trailer_line_bytes == 0;
        if end.is_some() {
            self.trailer_line_bytes = 0;
        }
        Ok((used, end.is_some() && is_empty))
    }
}
