//! Fields of answers out of HPACK. Of what a server puts into the table only the name, the size and
//! the meaning are kept: a field that comes again costs one look, whatever it is. Where somebody
//! reads fields, values are kept too.

use std::collections::VecDeque;

use super::fixed::FIXED;
use crate::expect::ExpectedField;
use crate::send::fields::number::{read, read_text};
use crate::send::fields::{BlockMeaning, Meaning, Size, Wrong};

/// The size of the table as it is without a setting. //= rfc9113#6.5.2
const TABLE_BYTES: usize = 4096;
/// What an entry counts besides its name and value. //= rfc7541#4.1
const ENTRY_BYTES: usize = 32;

/// What is the same for all connections of a run.
#[derive(Debug)]
pub struct HpackContext {
    /// The meaning of each entry of the fixed table.
    fixed: Vec<Result<Meaning, Wrong>>,
    expected: Vec<ExpectedField>,
    /// Somebody reads values of fields.
    is_kept: bool,
}

impl Default for HpackContext {
    /// Nothing is expected of fields.
    fn default() -> HpackContext {
        HpackContext::new(&[])
    }
}

impl HpackContext {
    pub(crate) fn new(expected: &[ExpectedField]) -> HpackContext {
        let meaning = |(name, value): &(&str, &str)| {
            // Fields of requests and an empty length mean nothing until they come.
            Meaning::of(name.as_bytes(), value.as_bytes(), expected)
        };
        HpackContext {
            fixed: FIXED.iter().map(meaning).collect(),
            expected: expected.to_vec(),
            is_kept: false,
        }
    }

    /// The same for somebody who reads values of fields.
    pub(crate) fn keeping(self) -> HpackContext {
        HpackContext {
            is_kept: true,
            ..self
        }
    }
}

#[derive(Debug)]
struct ClientHpackEntry {
    name: Box<[u8]>,
    /// Empty where nobody reads it.
    value: Box<[u8]>,
    size: u32,
    meaning: Result<Meaning, Wrong>,
}

/// The table of one connection.
#[derive(Debug)]
pub struct ClientHpackTable {
    /// The newest first.
    entries: VecDeque<ClientHpackEntry>,
    bytes: usize,
    bytes_max: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for ClientHpackTable {
    /// A table without entries.
    fn default() -> ClientHpackTable {
        ClientHpackTable {
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max: TABLE_BYTES,
            name: Vec::new(),
            value: Vec::new(),
        }
    }
}

impl ClientHpackTable {
    /// Reads a whole block. The error of a block ends the connection, because nothing after it can
    /// be read; what is wrong with its fields alone is in the result.
    pub fn read(
        &mut self,
        mut bytes: &[u8],
        known: &HpackContext,
    ) -> Result<Result<BlockMeaning, Wrong>, Wrong> {
        let mut block = BlockMeaning::new();
        let mut size = Size::default();
        let mut bad = None;
        while let Some(first) = bytes.first().copied() {
            let added = match first {
                0x80.. => {
                    let index = read(&mut bytes, 7)?;
                    let (meaning, entry_bytes) = self.entry(index, known)?;
                    size.add(entry_bytes)?;
                    if let Some(entry) = self.kept_entry(index).filter(|_| known.is_kept) {
                        block.keep(&entry.name, &entry.value);
                    }
                    meaning.and_then(|meaning| block.add(&meaning))
                }
                //= rfc7541#6.3
                0x20..=0x3f => {
                    let bytes_max = read(&mut bytes, 5)?;
                    if bytes_max > TABLE_BYTES {
                        return Err("the table of fields is made larger than allowed");
                    }
                    self.bytes_max = bytes_max;
                    self.evict(0);
                    continue;
                }
                _ => {
                    let is_kept = first & 0x40 != 0;
                    let read = self.literal(&mut bytes, is_kept, known)?;
                    size.add(self.name.len() + self.value.len() + ENTRY_BYTES)?;
                    if known.is_kept {
                        block.keep(&self.name, &self.value);
                    }
                    read.and_then(|meaning| block.add(&meaning))
                }
            };
            bad = bad.or(added.err());
        }
        Ok(bad.map_or(Ok(block), Err))
    }

    /// What the field of an index means, and how much it counts.
    fn entry(
        &self,
        index: usize,
        known: &HpackContext,
    ) -> Result<(Result<Meaning, Wrong>, usize), Wrong> {
        let none = "a field stands in no table";
        let at = index.checked_sub(1).ok_or(none)?;
        if let Some(meaning) = known.fixed.get(at) {
            return Ok((*meaning, ENTRY_BYTES));
        }
        let entry = self.entries.get(at - FIXED.len()).ok_or(none)?;
        Ok((entry.meaning, entry.size as usize))
    }

    /// The entry of an index in our own table; no entry of the fixed one has a value that is kept.
    fn kept_entry(&self, index: usize) -> Option<&ClientHpackEntry> {
        self.entries.get(index.checked_sub(FIXED.len() + 1)?)
    }

    /// A field that is written out, into `name` and `value`.
    fn literal(
        &mut self,
        bytes: &mut &[u8],
        is_kept: bool,
        known: &HpackContext,
    ) -> Result<Result<Meaning, Wrong>, Wrong> {
        let index = read(bytes, if is_kept { 6 } else { 4 })?;
        self.name.clear();
        self.value.clear();
        match index.checked_sub(1) {
            None => read_text(bytes, 7, &mut self.name)?,
            Some(at) => match FIXED.get(at) {
                Some((name, _)) => self.name.extend_from_slice(name.as_bytes()),
                None => {
                    let entry = self.entries.get(at - FIXED.len());
                    let entry = entry.ok_or("a field's name stands in no table")?;
                    self.name.extend_from_slice(&entry.name);
                }
            },
        }
        read_text(bytes, 7, &mut self.value)?;
        let meaning = Meaning::of(&self.name, &self.value, &known.expected);
        if is_kept {
            self.keep(meaning, known.is_kept);
        }
        Ok(meaning)
    }

    fn keep(&mut self, meaning: Result<Meaning, Wrong>, with_value: bool) {
        let size = self.name.len() + self.value.len() + ENTRY_BYTES;
        self.evict(size);
        if size <= self.bytes_max {
            self.bytes += size;
            self.entries.push_front(ClientHpackEntry {
                name: self.name.as_slice().into(),
                value: if with_value {
                    self.value.as_slice().into()
                } else {
                    Box::default()
                },
                size: size as u32,
                meaning,
            });
        }
    }

    /// Makes room for so much.
    fn evict(&mut self, room: usize) {
        while self.bytes + room > self.bytes_max {
            let Some(oldest) = self.entries.pop_back() else {
                return;
            };
            self.bytes -= oldest.size as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> HpackContext {
        HpackContext::new(&[ExpectedField::new("cache-control: private").unwrap()])
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let hex: Vec<u8> = hex.bytes().filter(|byte| *byte != b' ').collect();
        let text = |two: &[u8]| String::from_utf8(two.to_vec()).unwrap();
        let two = hex.chunks(2);
        two.map(|two| u8::from_str_radix(&text(two), 16).unwrap())
            .collect()
    }

    /// What a block says: its status, and whether the expected field was there.
    fn said(block: Result<Result<BlockMeaning, Wrong>, Wrong>) -> (u16, u64) {
        let mut answer = crate::send::fields::Arriving::NEW;
        answer.fields(&mut block.unwrap().unwrap(), true).unwrap();
        let answer = answer.end(true).unwrap();
        (answer.status, answer.fields_seen)
    }

    //= rfc7541#C.6: three answers in a table of 256 bytes.
    #[test]
    fn answers_of_the_standard_are_read_with_their_table() {
        let (known, mut table) = (known(), ClientHpackTable::default());
        let blocks = [
            (
                "3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 \
              82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                302,
                4,
            ),
            ("4883 640e ffc1 c0bf", 307, 4),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad \
              94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 \
              65c0 03ed 4ee5 b106 3d50 07",
                200,
                3,
            ),
        ];
        for (index, (block, status, entries)) in blocks.into_iter().enumerate() {
            let block = bytes(block);
            assert_eq!(
                said(table.read(&block, &known)),
                (status, 1),
                "block {index}"
            );
            assert_eq!(table.entries.len(), entries, "block {index}");
        }
        assert_eq!(table.bytes, 215);
    }

    #[test]
    fn block_that_cannot_be_read_ends_the_connection() {
        for wrong in ["80", "be", "3fe21f", "40", "4003", "0001618118", "0f"] {
            let read = ClientHpackTable::default().read(&bytes(wrong), &known());
            assert!(read.is_err(), "{wrong}");
        }
    }

    #[test]
    fn field_that_must_not_be_there_leaves_the_table_readable() {
        let (known, mut table) = (known(), ClientHpackTable::default());
        // Capital letters, kept in the table; then an answer with a good field behind it.
        assert!(
            table
                .read(&bytes("88 4001 41 01 62"), &known)
                .unwrap()
                .is_err()
        );
        assert_eq!(table.entries.len(), 1);
        assert_eq!(said(table.read(&bytes("88"), &known)), (200, 0));
        // By its place in the table it is as wrong, and so is a field of requests: for one answer.
        for wrong in ["88 be", "88 81"] {
            let read = table.read(&bytes(wrong), &known);
            assert!(read.unwrap().is_err(), "{wrong}");
        }
        assert_eq!(said(table.read(&bytes("88"), &known)), (200, 0));
    }

    #[test]
    fn head_of_more_than_is_read_is_refused() {
        let mut table = ClientHpackTable::default();
        let mut block = bytes("40 01 61 7f a1 1e");
        block.extend_from_slice(&[b'x'; 4000]);
        table.read(&block, &known()).unwrap().unwrap();
        // The same field again and again: a byte each.
        let many = [0xbe; 17];
        assert!(table.read(&many[..16], &known()).is_ok());
        assert_eq!(
            table.read(&many, &known()).unwrap_err(),
            crate::send::fields::TOO_LONG
        );
    }
}
