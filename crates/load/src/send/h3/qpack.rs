//! Fields as QPACK, with the fixed table alone: neither side is allowed another one, because a
//! server is told of none and offers what it likes to whoever asks. //= rfc9204#4.5

use super::fixed::FIXED;
use crate::expect::ExpectedField;
use crate::request::{Fields, RequestFieldBlock, is_path_to_come};
use crate::send::fields::number::{read, read_text, write, write_text};
use crate::send::fields::{BlockMeaning, Meaning, Size, Wrong};

/// What an entry counts besides its name and value. //= rfc9204#3.2.1
const ENTRY_BYTES: usize = 32;

/// What is the same for all connections of a run.
#[derive(Debug)]
pub(crate) struct QpackContext {
    /// The meaning of each entry of the fixed table; an error where an answer may not have it.
    fixed: Vec<Result<Meaning, Wrong>>,
    expected: Vec<ExpectedField>,
    /// Somebody reads values of fields.
    is_kept: bool,
}

impl Default for QpackContext {
    /// Nothing is expected of fields.
    fn default() -> QpackContext {
        QpackContext::new(&[])
    }
}

impl QpackContext {
    pub(crate) fn new(expected: &[ExpectedField]) -> QpackContext {
        let meaning =
            |(name, value): &(&str, &str)| Meaning::of(name.as_bytes(), value.as_bytes(), expected);
        QpackContext {
            fixed: FIXED.iter().map(meaning).collect(),
            expected: expected.to_vec(),
            is_kept: false,
        }
    }

    /// The same for somebody who reads values of fields.
    pub(crate) fn keeping(self) -> QpackContext {
        QpackContext {
            is_kept: true,
            ..self
        }
    }

    /// Reads a whole block. The outer error ends the connection, the inner one the answer.
    pub(crate) fn read(&self, mut bytes: &[u8]) -> Result<Result<BlockMeaning, Wrong>, Wrong> {
        let none = "a field stands in no table";
        // How many entries of a table the block needs, and where it counts from.
        let needed = read(&mut bytes, 8)?;
        let _base = read(&mut bytes, 7)?;
        if needed != 0 {
            return Err(none);
        }
        let mut block = BlockMeaning::new();
        let mut size = Size::default();
        let mut bad = None;
        let (mut name, mut value) = (Vec::new(), Vec::new());
        while let Some(first) = bytes.first().copied() {
            name.clear();
            value.clear();
            let meaning = match first {
                // Indexed, in the fixed table.
                0xc0.. => {
                    let index = read(&mut bytes, 6)?;
                    let meaning = self.fixed.get(index).ok_or(none)?;
                    size.add(ENTRY_BYTES)?;
                    if let Some((name, value)) = FIXED.get(index).filter(|_| self.is_kept) {
                        block.keep(name.as_bytes(), value.as_bytes());
                    }
                    *meaning
                }
                // The name is in the fixed table.
                0x50..=0x5f | 0x70..=0x7f => {
                    let entry = FIXED.get(read(&mut bytes, 4)?).ok_or(none)?;
                    name.extend_from_slice(entry.0.as_bytes());
                    read_text(&mut bytes, 7, &mut value)?;
                    Meaning::of(&name, &value, &self.expected)
                }
                0x20..=0x3f => {
                    read_text(&mut bytes, 3, &mut name)?;
                    read_text(&mut bytes, 7, &mut value)?;
                    Meaning::of(&name, &value, &self.expected)
                }
                // Everything else is of the table that there is not.
                _ => return Err(none),
            };
            if !name.is_empty() {
                size.add(name.len() + value.len() + ENTRY_BYTES)?;
                if self.is_kept {
                    block.keep(&name, &value);
                }
            }
            let added = meaning.and_then(|meaning| block.add(&meaning));
            bad = bad.or(added.err());
        }
        Ok(bad.map_or(Ok(block), Err))
    }
}

/// Writes the fields of a request.
pub(crate) fn pack(fields: &Fields) -> RequestFieldBlock {
    let mut out = vec![0, 0];
    let mut path_at = 0;
    for field in fields {
        if is_path_to_come(field) {
            path_at = out.len();
            continue;
        }
        let (name, value) = field;
        let is_whole = |entry: &(&str, &str)| *entry == (name.as_str(), value.as_str());
        let is_named = |entry: &(&str, &str)| entry.0 == name;
        if let Some(at) = FIXED.iter().position(is_whole) {
            write(at, 6, 0xc0, &mut out);
            continue;
        }
        match FIXED.iter().position(is_named) {
            Some(at) => write(at, 4, 0x50, &mut out),
            None => write_text(name.as_bytes(), 3, 0x20, &mut out),
        }
        write_text(value.as_bytes(), 7, 0, &mut out);
    }
    RequestFieldBlock {
        bytes: out,
        path_at,
    }
}

/// A path as a field.
pub(crate) fn write_path(path: &[u8], out: &mut Vec<u8>) {
    let place = FIXED.iter().position(|(name, _)| *name == ":path");
    write(place.unwrap_or(0), 4, 0x50, out);
    write_text(path, 7, 0, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::fields::Arriving;

    fn said(block: &[u8]) -> Result<(u16, u64), Wrong> {
        let known = QpackContext::new(&[ExpectedField::new("x-kind:new").unwrap()]);
        let mut answer = Arriving::NEW;
        answer.fields(&mut known.read(block)??, true)?;
        let answer = answer.end(true)?;
        Ok((answer.status, answer.fields_seen))
    }

    //= rfc9204#B.1
    #[test]
    fn request_of_the_standard_is_written() {
        let fields = vec![(":path".to_owned(), "/index.html".to_owned())];
        let mut wanted = vec![0, 0, 0x51, 0x80 | 8];
        crate::send::fields::huffman::encode(b"/index.html", &mut wanted);
        assert_eq!(pack(&fields).bytes, wanted);
        let get = vec![(":method".to_owned(), "GET".to_owned())];
        assert_eq!(pack(&get).bytes, [0, 0, 0xc0 | 17]);
    }

    #[test]
    fn answer_is_read_in_every_way_it_may_be_written() {
        assert_eq!(said(b"\0\0\xd9\x26x-kind\x03new"), Ok((200, 1)));
        // The status as a value behind an indexed name; a field that is never to be indexed.
        assert_eq!(said(b"\0\0\x5f\x09\x03299\x36x-kind\x03new"), Ok((299, 1)));
    }

    #[test]
    fn block_that_cannot_be_read_is_refused() {
        for wrong in [
            &b"\x01\0\xd9"[..],
            b"\0",
            b"\0\0\x80",
            b"\0\0\xff\x24",
            b"\0\0\x10",
            b"\0\0\x26x",
        ] {
            assert!(said(wrong).is_err(), "{wrong:?}");
        }
    }
}
