//! Writes results: as a page of HTML, as JSON, as CSV (RFC 4180).

use std::io::Write as _;

use crate::escape::html_encode_all;
use crate::sql::Cell;

/// What a result is written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SqlPageFormat {
    /// A page with a table for each result.
    Html,
    /// A list of objects: the rows of the last result.
    Json,
    /// A line for each row of the last result, behind one with the names.
    Csv,
}

impl SqlPageFormat {
    /// The media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }
}

/// Text that HTML shows as it is, also inside of a quoted attribute.
pub(super) fn push_html(text: &[u8], out: &mut Vec<u8>) {
    html_encode_all(text, out);
}

/// A text of JSON (RFC 8259 section 7); what is no UTF-8 becomes U+FFFD.
pub(super) fn push_json(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            // `<` too, so that a page may hold what was written.
            '<' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

pub(super) fn push_json_cell(cell: &Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        Cell::Text(text) => push_json(text, out),
        Cell::Real(number) if !number.is_finite() => out.extend_from_slice(b"null"),
        other => push_plain(other, b"null", out),
    }
}

/// A cell as text, as it is.
pub(super) fn push_plain(cell: &Cell<'_>, null: &[u8], out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = match cell {
        Cell::Null => out.write_all(null),
        Cell::Integer(number) => write!(out, "{number}"),
        Cell::Real(number) => write!(out, "{number:?}"),
        Cell::Text(text) => out.write_all(text),
    };
}

/// A field of CSV, in quotes where it needs some.
pub(super) fn push_csv(text: &[u8], out: &mut Vec<u8>) {
    let needs_quotes = text
        .iter()
        .any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'));
    if !needs_quotes {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_again() {
        let mut out = Vec::new();
        push_json(b"a\"\\\n<\x01\xff\xe2\x80\xa8", &mut out);
        let wanted = "\"a\\\"\\\\\\n\\u003c\\u0001\u{fffd}\\u2028\"";
        assert_eq!(String::from_utf8_lossy(&out), wanted);
        out.clear();
        push_csv(b"a,\"b\"", &mut out);
        assert_eq!(out, b"\"a,\"\"b\"\"\"");
        out.clear();
        push_plain(&Cell::Real(2.0), b"", &mut out);
        assert_eq!(out, b"2.0");
    }
}
