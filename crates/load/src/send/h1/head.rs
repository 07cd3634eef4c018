//! The head of an answer: status line, and of the fields what frames the body and what is
//! expected. Everything else is only checked to be a field.

use memchr::memchr;

use super::reader::BadAnswer;
use crate::expect::ExpectedField;
use crate::send::digits::number;
use crate::send::kept::Kept;

/// How the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilEnd,
}

/// What a head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) framing: Framing,
    pub(super) is_kept: bool,
    pub(super) fields_seen: u64,
}

/// What the fields said so far.
struct FramingFields {
    length: Option<u64>,
    /// The last transfer coding: is it chunked?
    coding: Option<bool>,
    is_closed: bool,
    is_kept: bool,
    fields_seen: u64,
}

/// Reads a head from the beginning of `bytes` and says how long it is; none while it goes on.
pub(super) fn read(
    bytes: &[u8],
    expected: &[ExpectedField],
    mut kept: Option<&mut Kept>,
) -> Result<Option<(AnswerHead, usize)>, BadAnswer> {
    let Some(first) = memchr(b'\n', bytes) else {
        return begins_well(bytes)
            .then_some(None)
            .ok_or(BadAnswer::StatusLine);
    };
    let (minor, status) = status_line(without_return(&bytes[..first]))?;
    let mut found = FramingFields {
        length: None,
        coding: None,
        is_closed: false,
        is_kept: false,
        fields_seen: 0,
    };
    let mut at = first + 1;
    if let Some(kept) = &mut kept {
        kept.begin();
    }
    loop {
        let rest = &bytes[at..];
        let Some(end) = memchr(b'\n', rest) else {
            return Ok(None);
        };
        at += end + 1;
        let line = without_return(&rest[..end]);
        if line.is_empty() {
            break;
        }
        found.take(line, expected, kept.as_deref_mut())?;
    }
    let head = AnswerHead {
        status,
        framing: found.framing()?,
        is_kept: !found.is_closed && (minor == 1 || found.is_kept),
        fields_seen: found.fields_seen,
    };
    Ok(Some((head, at)))
}

impl FramingFields {
    fn take(
        &mut self,
        line: &[u8],
        expected: &[ExpectedField],
        kept: Option<&mut Kept>,
    ) -> Result<(), BadAnswer> {
        let colon = line.iter().position(|byte| !TOKEN[usize::from(*byte)]);
        let colon = colon
            .filter(|at| *at > 0 && line[*at] == b':')
            .ok_or(BadAnswer::Field)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = number(value).ok_or(BadAnswer::Framing)?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(BadAnswer::Framing);
                }
                self.length = Some(length);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let last = value
                    .rsplit(|byte| *byte == b',')
                    .next()
                    .unwrap_or_default();
                self.coding = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    self.is_closed |= option.eq_ignore_ascii_case(b"close");
                    self.is_kept |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            _ => {}
        }
        for (index, field) in expected.iter().enumerate() {
            if field.is(name, value) {
                self.fields_seen |= 1 << index;
            }
        }
        if let Some(kept) = kept {
            kept.field(name, value);
        }
        Ok(())
    }

    //= rfc9112#6.3: a coding overrides a length, and both together may be an attack: refused.
    fn framing(&self) -> Result<Framing, BadAnswer> {
        match (self.coding, self.length) {
            (Some(_), Some(_)) => Err(BadAnswer::Framing),
            (Some(true), None) => Ok(Framing::Chunked),
            (None, Some(length)) => Ok(Framing::Length(length)),
            (Some(false) | None, None) => Ok(Framing::UntilEnd),
        }
    }
}

/// Could these bytes go on as a status line?
fn begins_well(bytes: &[u8]) -> bool {
    let known = b"HTTP/1.";
    let len = bytes.len().min(known.len());
    bytes[..len] == known[..len]
}

/// The minor version and the status.
fn status_line(line: &[u8]) -> Result<(u8, u16), BadAnswer> {
    let rest = line.strip_prefix(b"HTTP/1.").ok_or(BadAnswer::StatusLine)?;
    let (minor, status) = match rest {
        [
            minor @ (b'0' | b'1'),
            b' ',
            a @ b'1'..=b'5',
            b @ b'0'..=b'9',
            c @ b'0'..=b'9',
            rest @ ..,
        ] if rest.first().is_none_or(|byte| *byte == b' ') => {
            let digit = |byte: &u8| u16::from(byte - b'0');
            (minor - b'0', digit(a) * 100 + digit(b) * 10 + digit(c))
        }
        _ => return Err(BadAnswer::StatusLine),
    };
    Ok((minor, status))
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The bytes of a field's name. //= rfc9110#5.6.2
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let is_mark = matches!(
            byte as u8,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        );
        table[byte] = is_mark || (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    table
};
