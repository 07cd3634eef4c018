//! Rows and columns of a flat file: a line is a row, cut at a delimiter or whole.
//!
//! No value becomes structure. Where one holds what would be, that is written as byte 16 (DLE) and
//! a letter: `n` the end of a line, `r` a carriage return, `d` the first byte of a delimiter, `e`
//! byte 16 itself. Files of others hold none of these, so they are read as they are.

const ESCAPE: u8 = 0x10;

/// How a file's lines are rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowFormat {
    /// Between values of a row; without one a line is one value.
    delimiter: Option<Vec<u8>>,
}

impl RowFormat {
    /// Longest delimiter, in bytes.
    pub const DELIMITER_BYTES_MAX: usize = 256;

    /// Lines, each of one value.
    pub fn text() -> Self {
        Self { delimiter: None }
    }

    /// Lines of values with this between them; `None` where it cannot stand there.
    pub fn delimited(delimiter: &[u8]) -> Option<Self> {
        let is_long = delimiter.is_empty() || delimiter.len() > Self::DELIMITER_BYTES_MAX;
        let is_structure = |byte: &u8| matches!(*byte, b'\n' | b'\r' | ESCAPE);
        let is_fit = !is_long && !delimiter.iter().any(is_structure);
        is_fit.then(|| Self {
            delimiter: Some(delimiter.to_vec()),
        })
    }

    /// Lines of a file with their ends.
    pub fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
        content.split_inclusive(|byte| *byte == b'\n')
    }

    /// Values of a line.
    pub fn cells(&self, line: &[u8]) -> Vec<Vec<u8>> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut cells = Vec::new();
        let mut cell = Vec::new();
        let mut rest = line;
        while let Some((byte, behind)) = rest.split_first() {
            if let Some(behind) = self.behind_delimiter(rest) {
                cells.push(std::mem::take(&mut cell));
                rest = behind;
                continue;
            }
            let escaped = behind.first().and_then(|letter| self.escaped(*letter));
            match (*byte, escaped) {
                (ESCAPE, Some(meant)) => {
                    cell.push(meant);
                    rest = &behind[1..];
                }
                _ => {
                    cell.push(*byte);
                    rest = behind;
                }
            }
        }
        cells.push(cell);
        cells
    }

    /// Adds a row of these values, with its end. Without a delimiter each value has a line.
    pub fn push_row<'v>(&self, values: impl Iterator<Item = &'v [u8]>, content: &mut Vec<u8>) {
        for (column, value) in values.enumerate() {
            if column > 0 {
                content.extend_from_slice(self.delimiter.as_deref().unwrap_or(b"\n"));
            }
            self.push_value(value, content);
        }
        content.push(b'\n');
    }

    fn push_value(&self, value: &[u8], content: &mut Vec<u8>) {
        for (at, byte) in value.iter().enumerate() {
            let letter = match *byte {
                b'\n' => b'n',
                b'\r' => b'r',
                ESCAPE => b'e',
                _ if self.begins_delimiter(&value[at..]) => b'd',
                _ => {
                    content.push(*byte);
                    continue;
                }
            };
            content.extend_from_slice(&[ESCAPE, letter]);
        }
    }

    fn behind_delimiter<'l>(&self, rest: &'l [u8]) -> Option<&'l [u8]> {
        rest.strip_prefix(self.delimiter.as_deref()?)
    }

    /// Whether a delimiter would be read here, were the value written as it is and one behind it.
    fn begins_delimiter(&self, rest: &[u8]) -> bool {
        let Some(delimiter) = &self.delimiter else {
            return false;
        };
        let within = rest.len().min(delimiter.len());
        let (first, second) = delimiter.split_at(within);
        rest[..within] == *first && delimiter[..second.len()] == *second
    }

    /// What a letter behind byte 16 means.
    fn escaped(&self, letter: u8) -> Option<u8> {
        match letter {
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            b'e' => Some(ESCAPE),
            b'd' => self.delimiter.as_ref()?.first().copied(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(format: &RowFormat, line: &[u8]) -> Vec<String> {
        let cells = format.cells(line).into_iter();
        cells.map(|cell| String::from_utf8(cell).unwrap()).collect()
    }

    #[test]
    fn lines_of_others_are_read_as_they_are() {
        let format = RowFormat::delimited(b", ").unwrap();
        assert_eq!(cells(&format, b"a,b, c, \r\n"), ["a,b", "c", ""]);
        assert_eq!(cells(&format, b""), [""]);
        assert_eq!(
            cells(&format, b"50%\\n\x10\x10x\x10"),
            ["50%\\n\x10\x10x\x10"]
        );
        let format = RowFormat::text();
        assert_eq!(cells(&format, b"a;b\n"), ["a;b"]);
        let lines: Vec<_> = RowFormat::lines(b"a\n\nb").collect();
        assert_eq!(lines, [&b"a\n"[..], b"\n", b"b"]);
        assert_eq!(RowFormat::lines(b"").count(), 0);
    }

    #[test]
    fn what_would_be_structure_is_written_as_two_bytes() {
        let format = RowFormat::delimited(b";").unwrap();
        let mut content = Vec::new();
        format.push_row([&b"a;b"[..], b"c\n;d"].into_iter(), &mut content);
        assert_eq!(content, b"a\x10db;c\x10n\x10dd\n");
        assert_eq!(cells(&format, &content), ["a;b", "c\n;d"]);
        assert_eq!(RowFormat::delimited(b""), None);
        assert_eq!(RowFormat::delimited(b"\n"), None);
        assert_eq!(RowFormat::delimited(&[b'x'; 257]), None);
    }

    #[test]
    fn values_that_end_as_a_delimiter_begins_stay_apart() {
        for delimiter in [&b"aa"[..], b"aab", b"aba", b"abab", b"\0", b"0p"] {
            let format = RowFormat::delimited(delimiter).unwrap();
            let parts: [&[u8]; 8] = [b"", b"a", b"b", b"aa", b"ab", b"aba", b"\x10", b"0p0\0"];
            for first in parts {
                for second in parts {
                    let mut content = Vec::new();
                    format.push_row([first, second].into_iter(), &mut content);
                    assert_eq!(format.cells(&content), [first, second], "{delimiter:?}");
                }
            }
        }
    }
}
