//! The chunked coding, read strictly (RFC 9112 section 7.1).
//!
//! ```text
//! Size  --hex digits [; ext] CRLF-->  Data --n bytes--> DataEnd --CRLF--> Size
//!   `-- 0 CRLF --> Trailers --lines, empty line--> End
//! ```

use bytes::Bytes;

use crate::head;
use crate::limits::{CHUNK_LINE_BYTES_MAX, CHUNK_OVERHEAD_BYTES_MAX, HttpLimits};
use crate::refusal::{HEAD_TOO_LONG, Refusal, TOO_MANY_HEADERS};

/// Decodes one chunked body.
#[derive(Debug, Default)]
pub struct ChunkedDecoder {
    state: ChunkedState,
    overhead_bytes: usize,
    trailer_lines: Vec<u8>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ChunkedState {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailers,
    End,
}

/// What a [`ChunkedDecoder`] made of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// More input is needed.
    NeedMore,
    /// The last so many bytes of what was used are data.
    Data(usize),
    /// The body has ended; trailers can be taken.
    End,
    /// The framing is wrong.
    Refused(Refusal),
}

impl ChunkedDecoder {
    /// Reads one step. Returns how many bytes of `input` were used and what they gave.
    pub fn read(&mut self, input: &[u8], limits: &HttpLimits) -> (usize, Decoded) {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.state {
                ChunkedState::Data(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    if here == 0 {
                        return (used, Decoded::NeedMore);
                    }
                    let left = left - here as u64;
                    self.state = if left == 0 {
                        ChunkedState::DataEnd
                    } else {
                        ChunkedState::Data(left)
                    };
                    return (used + here, Decoded::Data(here));
                }
                ChunkedState::DataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        used += 2;
                        self.state = ChunkedState::Size;
                    }
                    [] | [b'\r'] => return (used, Decoded::NeedMore),
                    _ => return refused("a chunk is longer than it says"),
                },
                ChunkedState::Size => match self.read_size(rest) {
                    Ok(None) => return (used, Decoded::NeedMore),
                    Ok(Some(line)) => used += line,
                    Err(refusal) => return (0, Decoded::Refused(refusal)),
                },
                ChunkedState::Trailers => match self.read_trailer(rest, limits) {
                    Ok(None) => return (used, Decoded::NeedMore),
                    Ok(Some(line)) => used += line,
                    Err(refusal) => return (0, Decoded::Refused(refusal)),
                },
                ChunkedState::End => return (used, Decoded::End),
            }
        }
    }

    /// The trailer fields, once the end is reached.
    pub fn trailers(&self) -> Result<Vec<(Bytes, Bytes)>, Refusal> {
        if self.trailer_lines.is_empty() {
            return Ok(Vec::new());
        }
        const BAD: Refusal = Refusal::bad("a trailer field is malformed");
        let mut lines = self.trailer_lines.clone();
        lines.extend_from_slice(b"\r\n");
        let count = memchr::memchr_iter(b'\n', &lines).count();
        let mut slots = vec![httparse::EMPTY_HEADER; count];
        match httparse::parse_headers(&lines, &mut slots) {
            Ok(httparse::Status::Complete((_, fields))) => Ok(fields
                .iter()
                .map(|field| {
                    let name = Bytes::copy_from_slice(field.name.as_bytes());
                    (name, Bytes::copy_from_slice(field.value))
                })
                .collect()),
            _ => Err(BAD),
        }
    }

    fn read_size(&mut self, input: &[u8]) -> Result<Option<usize>, Refusal> {
        let Some(line_len) = find_line(input, CHUNK_LINE_BYTES_MAX, LINE_TOO_LONG)? else {
            return Ok(None);
        };
        let line = &input[..line_len - 2];
        self.overhead_bytes += line_len;
        if self.overhead_bytes > CHUNK_OVERHEAD_BYTES_MAX && line.len() > 18 {
            return Err(Refusal::bad("chunk extensions are too long"));
        }
        let digits = line
            .iter()
            .position(|b| !b.is_ascii_hexdigit())
            .unwrap_or(line.len());
        if digits == 0 || digits > 16 {
            return Err(Refusal::bad("a chunk size is malformed"));
        }
        //= rfc9112#7.1.1
        if !are_extensions(&line[digits..]) {
            return Err(Refusal::bad("a chunk size is malformed"));
        }
        let size = line[..digits].iter().fold(0u64, |sum, &digit| {
            sum << 4 | u64::from((digit as char).to_digit(16).unwrap_or(0))
        });
        if size > i64::MAX as u64 {
            return Err(Refusal::bad("a chunk size is too large"));
        }
        self.state = if size == 0 {
            ChunkedState::Trailers
        } else {
            ChunkedState::Data(size)
        };
        Ok(Some(line_len))
    }

    fn read_trailer(
        &mut self,
        input: &[u8],
        limits: &HttpLimits,
    ) -> Result<Option<usize>, Refusal> {
        let room = limits.head_bytes.saturating_sub(self.trailer_lines.len());
        let Some(line_len) = find_line(input, room, HEAD_TOO_LONG)? else {
            return Ok(None);
        };
        if line_len == 2 {
            self.state = ChunkedState::End;
        } else {
            self.trailer_lines.extend_from_slice(&input[..line_len]);
            if memchr::memchr_iter(b'\n', &self.trailer_lines).count() > limits.header_count {
                return Err(TOO_MANY_HEADERS);
            }
        }
        Ok(Some(line_len))
    }
}

/// True for extensions of a chunk, or none. They are not used, but who reads past what they may be
/// could see another end of the line than the next server. White space stands before and within an
/// extension, never for itself behind the size.
//= rfc9112#7.1.1
fn are_extensions(mut text: &[u8]) -> bool {
    while !text.is_empty() {
        let Some(rest) = after_blanks(text).strip_prefix(b";") else {
            return false;
        };
        let name = after_blanks(rest);
        let name_len = token_len(name);
        if name_len == 0 {
            return false;
        }
        text = &name[name_len..];
        let Some(value) = after_blanks(text).strip_prefix(b"=") else {
            continue;
        };
        let value = after_blanks(value);
        let Some(value_len) = quoted_len(value).or(Some(token_len(value)).filter(|&len| len > 0))
        else {
            return false;
        };
        text = &value[value_len..];
    }
    true
}

fn after_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    &text[blanks.count()..]
}

fn token_len(text: &[u8]) -> usize {
    let is_token = |&&byte: &&u8| head::is_token_byte(byte);
    text.iter().take_while(is_token).count()
}

/// Length of the quoted string at the start, its quotes included.
//= rfc9110#5.6.4
fn quoted_len(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        match text.get(at..)? {
            [b'"', ..] => return Some(at + 1),
            [b'\\', escaped, ..] if is_text(*escaped) => at += 2,
            [b'\\', ..] | [] => return None,
            [byte, ..] if is_text(*byte) => at += 1,
            _ => return None,
        }
    }
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn refused(reason: &'static str) -> (usize, Decoded) {
    (0, Decoded::Refused(Refusal::bad(reason)))
}

const LINE_TOO_LONG: Refusal = Refusal::bad("a chunk line is too long");

/// Length of the first line with its CRLF; `None` when it is not all there.
fn find_line(input: &[u8], len_max: usize, too_long: Refusal) -> Result<Option<usize>, Refusal> {
    match memchr::memchr(b'\n', &input[..input.len().min(len_max)]) {
        Some(at) if at > 0 && input[at - 1] == b'\r' => Ok(Some(at + 1)),
        Some(_) => Err(Refusal::bad("a chunk line ends with LF without CR")),
        None if input.len() >= len_max => Err(too_long),
        None => Ok(None),
    }
}
