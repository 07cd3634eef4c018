//! The header fields that a page prints itself, if it does: what its author wrote tells them from
//! the body, and never data.
//!
//! ```text
//! blanks name ":" value NL *(name ":" value NL) NL body
//! ```
//!
//! A page that says that it prints its header may print none, as old ones do. So what comes first
//! is held until the author has begun a field, or something else. Data before or inside of a name
//! would be a field of whoever sent it; it is left out. In a value it cannot end the line.

/// Longest name of a field that begins a header.
const NAME_BYTES_MAX: usize = 64;

/// What the author's text says of how the page begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderSign {
    /// Nothing yet.
    Open,
    /// With a header field.
    Field,
    /// With a body.
    Body,
}

/// The beginning of a page that says that it prints its own header.
#[derive(Clone, Default, Debug)]
pub(crate) struct HeaderStart {
    name: Vec<u8>,
}

impl HeaderStart {
    /// More text of the author.
    pub(crate) fn author(&mut self, bytes: &[u8]) -> HeaderSign {
        for byte in bytes {
            match byte {
                _ if byte.is_ascii_whitespace() && self.name.is_empty() => {}
                b':' if !self.name.is_empty() => return HeaderSign::Field,
                // A status line.
                b'/' if self.name == b"HTTP" => return HeaderSign::Field,
                _ if is_of_name(*byte) && self.name.len() < NAME_BYTES_MAX => self.name.push(*byte),
                _ => return HeaderSign::Body,
            }
        }
        HeaderSign::Open
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HeaderPart {
    /// A line has ended. The text that ended it has, or has not, ended too.
    Line {
        is_behind: bool,
    },
    Name,
    Value,
}

/// The place in header fields, which end with an empty line.
#[derive(Clone, Debug)]
pub(crate) struct HeaderFields {
    part: HeaderPart,
}

impl HeaderFields {
    pub(crate) fn new() -> Self {
        Self {
            part: HeaderPart::Name,
        }
    }

    /// Text of the author. Gives how much of it the fields took, if they end in it. Where blanks
    /// are taken out, a line end that a text begins with, right behind another, is one.
    pub(crate) fn author(
        &mut self,
        bytes: &[u8],
        removes_blanks: bool,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        for (index, &byte) in bytes.iter().enumerate() {
            let is_blank = self.part == HeaderPart::Line { is_behind: true } && removes_blanks;
            match (byte, self.part) {
                (b'\n', HeaderPart::Line { .. }) if index == 0 && is_blank => continue,
                (b'\n', HeaderPart::Line { .. }) => {
                    out.push(byte);
                    return Some(index + 1);
                }
                (b'\n', _) => self.part = HeaderPart::Line { is_behind: false },
                (b'\r', _) => {}
                (b':', _) => self.part = HeaderPart::Value,
                (_, HeaderPart::Line { .. }) => self.part = HeaderPart::Name,
                _ => {}
            }
            out.push(byte);
        }
        if let HeaderPart::Line { is_behind } = &mut self.part {
            *is_behind = true;
        }
        None
    }

    /// Data, whatever was done to it.
    pub(crate) fn data(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.part != HeaderPart::Value {
            return Err(DATA_IN_NAME);
        }
        let is_line_end = |byte: &&u8| !matches!(byte, b'\r' | b'\n' | 0);
        out.extend(bytes.iter().filter(is_line_end));
        Ok(())
    }
}

pub(crate) const DATA_IN_NAME: &str = "data stands where the name of a header field does";

/// Whether it may stand in the name of a field (RFC 9110 section 5.6.2).
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_author_s_text_tells_how_a_page_begins() {
        for (texts, wanted) in [
            (&["\r\n  Content-", "Type", ":"][..], HeaderSign::Field),
            (&["HTTP/1.0 200 OK\n"], HeaderSign::Field),
            (&["\n <!DOCTYPE html>"], HeaderSign::Body),
            (&["Content Type: a"], HeaderSign::Body),
            (&["a", "\n"], HeaderSign::Body),
            (&[": a"], HeaderSign::Body),
            (&["\n", "Content-Type"], HeaderSign::Open),
            (&[""], HeaderSign::Open),
        ] {
            let mut start = HeaderStart::default();
            let mut signs = texts.iter().map(|text| start.author(text.as_bytes()));
            let sign = signs.find(|sign| *sign != HeaderSign::Open);
            assert_eq!(sign.unwrap_or(HeaderSign::Open), wanted, "{texts:?}");
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        let sign = HeaderStart::default().author(long.as_bytes());
        assert_eq!(sign, HeaderSign::Body);
    }

    #[test]
    fn data_is_a_part_of_a_value_and_no_name() {
        let (mut fields, mut out) = (HeaderFields::new(), Vec::new());
        assert_eq!(fields.data(b"a", &mut out), Err(DATA_IN_NAME));
        assert_eq!(fields.author(b"A: ", false, &mut out), None);
        assert_eq!(fields.data(b"a\r\nB: b\0", &mut out), Ok(()));
        assert_eq!(fields.author(b"\n", false, &mut out), None);
        assert_eq!(fields.data(b"C: c", &mut out), Err(DATA_IN_NAME));
        assert_eq!(fields.author(b"D: d\r\n\r\nbody", false, &mut out), Some(8));
        assert_eq!(out, b"A: aB: b\nD: d\r\n\r\n");
    }

    #[test]
    fn a_line_end_behind_one_that_a_value_is_may_be_a_blank() {
        let texts = ["A: a", "\r\n", "\nB: b", "\r\n", "\r\n", "\n<p>"];
        for (removes_blanks, wanted, end) in [
            (true, &b"A: a\r\nB: b\r\n\r\n"[..], 4),
            (false, b"A: a\r\n\n", 2),
        ] {
            let (mut fields, mut out) = (HeaderFields::new(), Vec::new());
            let ended = texts.iter().position(|text| {
                let taken = fields.author(text.as_bytes(), removes_blanks, &mut out);
                taken.is_some()
            });
            assert_eq!((&out[..], ended), (wanted, Some(end)));
        }
    }
}
