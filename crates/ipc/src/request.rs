//! The request block: the payload of a `request`. The server builds it, a program reads it without
//! copying.
//!
//! ```text
//!   0 u32 bytes of the whole block    4 u16 count of variables    6 u16 count of index entries, 16
//!   8 u64 content length; all ones when it is not known
//!  16 16 x { u32 offset of the value from the start of the block, u32 its length }; offset 0: not
//!     there. In the order of `INDEX`.
//! 144 names and values: NAME NUL value NUL NAME NUL value NUL ...
//! ```
//!
//! No name is empty, none holds a NUL, nor does a value: one split at NUL bytes reads them all.

use std::fmt;

use memchr::{memchr, memchr_iter};

use crate::limits::REQUEST_BYTES_MAX;
use crate::malformed::MalformedMessage;

/// The variables that have a place in the index.
pub const INDEX: [&str; 16] = [
    "REQUEST_METHOD",
    "REQUEST_URI",
    "SCRIPT_NAME",
    "PATH_INFO",
    "QUERY_STRING",
    "SERVER_PROTOCOL",
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "HTTP_HOST",
    "HTTP_COOKIE",
    "REMOTE_ADDR",
    "SCRIPT_FILENAME",
    "SERVER_NAME",
    "SERVER_PORT",
    "REQUEST_SCHEME",
    "HTTP_USER_AGENT",
];

const INDEX_AT: usize = 16;
const ENTRY_BYTES: usize = 8;

/// Where the names and values begin.
pub const STRINGS_AT: usize = INDEX_AT + INDEX.len() * ENTRY_BYTES;

const UNKNOWN_LENGTH: u64 = u64::MAX;

/// A request does not fit into a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitRequest {
    /// The variables are longer together than a block may be (128 KiB).
    TooLong,
    /// A name is empty, or a name or value holds a NUL byte.
    Nul,
}

impl fmt::Display for UnfitRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnfitRequest::TooLong => "the variables of the request are longer than 128 KiB",
            UnfitRequest::Nul => "a variable of the request has no name, or holds a NUL byte",
        })
    }
}

impl std::error::Error for UnfitRequest {}

/// Builds a block.
#[derive(Clone, Debug)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    count: u16,
}

impl BlockBuilder {
    /// A block without variables, for a body of that length (`None`: not known).
    pub fn new(content_length: Option<u64>) -> BlockBuilder {
        let mut bytes = Vec::with_capacity(2048);
        bytes.resize(STRINGS_AT, 0);
        let length = content_length.unwrap_or(UNKNOWN_LENGTH);
        bytes[6..8].copy_from_slice(&(INDEX.len() as u16).to_le_bytes());
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
        BlockBuilder { bytes, count: 0 }
    }

    /// A block that begins as this one, in a buffer that was used before, with room for as much
    /// again and more.
    pub fn begin_like(&self, mut bytes: Vec<u8>, content_length: Option<u64>) -> BlockBuilder {
        bytes.clear();
        bytes.reserve(self.bytes.len() + 1536);
        bytes.extend_from_slice(&self.bytes);
        let length = content_length.unwrap_or(UNKNOWN_LENGTH);
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
        BlockBuilder {
            bytes,
            count: self.count,
        }
    }

    /// Adds a variable. Of two with one name the index knows the later.
    ///
    /// # Errors
    ///
    /// [`UnfitRequest`]; the block stays as it was.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), UnfitRequest> {
        if name.is_empty() || memchr(0, name).is_some() || memchr(0, value).is_some() {
            return Err(UnfitRequest::Nul);
        }
        let bytes = self.bytes.len() + name.len() + value.len() + 2;
        if bytes > REQUEST_BYTES_MAX {
            return Err(UnfitRequest::TooLong);
        }
        self.write(
            |out| out.extend_from_slice(name),
            |out| {
                out.extend_from_slice(value);
                true
            },
        )
    }

    /// Adds a variable whose name and value are written in their place; no variable where `value`
    /// returns false. A NUL byte in either is found when the block is finished. As with
    /// [`Self::push`], the index knows the later of two.
    ///
    /// # Errors
    ///
    /// [`UnfitRequest::TooLong`]; the block stays as it was.
    pub fn write(
        &mut self,
        name: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Result<(), UnfitRequest> {
        let start = self.bytes.len();
        name(&mut self.bytes);
        self.bytes.push(0);
        let offset = self.bytes.len();
        if !value(&mut self.bytes) {
            self.bytes.truncate(start);
            return Ok(());
        }
        let len = self.bytes.len() - offset;
        self.bytes.push(0);
        if self.bytes.len() > REQUEST_BYTES_MAX || self.count == u16::MAX {
            self.bytes.truncate(start);
            return Err(UnfitRequest::TooLong);
        }
        self.count += 1;
        if let Some(place) = place_of(&self.bytes[start..offset - 1]) {
            let at = INDEX_AT + place * ENTRY_BYTES;
            self.bytes[at..at + 4].copy_from_slice(&(offset as u32).to_le_bytes());
            self.bytes[at + 4..at + 8].copy_from_slice(&(len as u32).to_le_bytes());
        }
        Ok(())
    }

    /// The block.
    ///
    /// # Errors
    ///
    /// [`UnfitRequest::Nul`]: a name or value that was written holds a NUL byte.
    pub fn finish(mut self) -> Result<Vec<u8>, UnfitRequest> {
        if memchr_iter(0, &self.bytes[STRINGS_AT..]).count() != 2 * usize::from(self.count) {
            return Err(UnfitRequest::Nul);
        }
        let len = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&len.to_le_bytes());
        self.bytes[4..6].copy_from_slice(&self.count.to_le_bytes());
        Ok(self.bytes)
    }
}

/// The place of a variable in the index.
pub fn place_of(name: &[u8]) -> Option<usize> {
    // The length tells most apart.
    let of_len = |known: &&str| known.len() == name.len();
    let mut places = (0..INDEX.len()).filter(|place| of_len(&INDEX[*place]));
    places.find(|place| INDEX[*place].as_bytes() == name)
}

/// A block that has been checked.
#[derive(Clone, Copy, Debug)]
pub struct RequestBlock<'a> {
    bytes: &'a [u8],
    count: u16,
}

impl<'a> RequestBlock<'a> {
    /// Checks a block: length, number of strings, and that each entry of the index lies on a
    /// string.
    ///
    /// # Errors
    ///
    /// [`MalformedMessage::Block`] says what does not hold.
    pub fn check(bytes: &'a [u8]) -> Result<RequestBlock<'a>, MalformedMessage> {
        if bytes.len() < STRINGS_AT {
            return Err(MalformedMessage::Block("it is shorter than its index"));
        }
        let block = RequestBlock {
            bytes,
            count: u16::from_le_bytes([bytes[4], bytes[5]]),
        };
        if block.number(0) as usize != bytes.len() {
            return Err(MalformedMessage::Block(
                "it says another length than it has",
            ));
        }
        if usize::from(u16::from_le_bytes([bytes[6], bytes[7]])) != INDEX.len() {
            return Err(MalformedMessage::Block("its index has not 16 entries"));
        }
        let strings = &bytes[STRINGS_AT..];
        if memchr_iter(0, strings).count() != 2 * usize::from(block.count)
            || strings.last().is_some_and(|&byte| byte != 0)
        {
            return Err(MalformedMessage::Block(
                "it has not as many names and values as it says",
            ));
        }
        for place in 0..INDEX.len() {
            let (offset, len) = block.entry(place);
            let is_good = offset == 0
                || (offset > STRINGS_AT
                    && offset.checked_add(len).is_some_and(|end| {
                        bytes.get(end) == Some(&0) && bytes.get(offset - 1) == Some(&0)
                    }));
            if !is_good {
                return Err(MalformedMessage::Block(
                    "an entry of its index lies on no value",
                ));
            }
        }
        Ok(block)
    }

    /// How long the body is, when that is known.
    pub fn content_length(&self) -> Option<u64> {
        let [a, b, c, d, e, f, g, h] = *self.bytes[8..]
            .first_chunk()
            .expect("a checked block is longer");
        Some(u64::from_le_bytes([a, b, c, d, e, f, g, h])).filter(|&len| len != UNKNOWN_LENGTH)
    }

    /// The number of variables.
    pub fn count(&self) -> usize {
        self.count.into()
    }

    /// The value at a place of the index.
    pub fn indexed(&self, place: usize) -> Option<&'a [u8]> {
        let (offset, len) = (place < INDEX.len()).then(|| self.entry(place))?;
        if offset == 0 {
            None
        } else {
            self.bytes.get(offset..offset + len)
        }
    }

    /// The value of a variable; the last one of that name.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        if let Some(place) = place_of(name) {
            return self.indexed(place);
        }
        let mut found = None;
        for (known, value) in self.variables() {
            if known == name {
                found = Some(value);
            }
        }
        found
    }

    /// Name and value at an offset, and the offset of the next; the first is at [`STRINGS_AT`].
    pub fn variable_at(&self, offset: usize) -> Option<(&'a [u8], &'a [u8], usize)> {
        let rest = self.bytes.get(offset.max(STRINGS_AT)..)?;
        let mut variables = Variables { rest };
        let (name, value) = variables.next()?;
        Some((name, value, self.bytes.len() - variables.rest.len()))
    }

    /// All names and values, in their order.
    pub fn variables(&self) -> Variables<'a> {
        Variables {
            rest: &self.bytes[STRINGS_AT..],
        }
    }

    /// The same as they stand there: name, NUL, value, NUL, and so on.
    pub fn strings(&self) -> &'a [u8] {
        &self.bytes[STRINGS_AT..]
    }

    fn number(&self, at: usize) -> u32 {
        let bytes = self.bytes;
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }

    fn entry(&self, place: usize) -> (usize, usize) {
        let at = INDEX_AT + place * ENTRY_BYTES;
        let entry: [u8; ENTRY_BYTES] = *self.bytes[at..]
            .first_chunk()
            .expect("a block is longer than its index");
        let entry = u64::from_le_bytes(entry);
        (entry as u32 as usize, (entry >> 32) as usize)
    }
}

/// A checked block that has its bytes with it.
#[derive(Debug)]
pub struct OwnedBlock {
    bytes: Vec<u8>,
    count: u16,
}

impl OwnedBlock {
    /// Checks and keeps a block.
    ///
    /// # Errors
    ///
    /// As [`Block::check`].
    pub fn check(bytes: Vec<u8>) -> Result<OwnedBlock, MalformedMessage> {
        let count = RequestBlock::check(&bytes)?.count;
        Ok(OwnedBlock { bytes, count })
    }

    /// To read in it.
    pub fn block(&self) -> RequestBlock<'_> {
        RequestBlock {
            bytes: &self.bytes,
            count: self.count,
        }
    }

    /// The bytes, for their buffer to be used again.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Names and values of a block.
#[derive(Clone, Debug)]
pub struct Variables<'a> {
    rest: &'a [u8],
}

impl<'a> Variables<'a> {
    fn string(&mut self) -> Option<&'a [u8]> {
        let end = memchr(0, self.rest)?;
        let (string, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Some(string)
    }
}

impl<'a> Iterator for Variables<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.string()?, self.string()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<u8> {
        let mut builder = BlockBuilder::new(Some(5));
        for (name, value) in [("REQUEST_METHOD", "POST"), ("X", ""), ("PATH_INFO", "/a")] {
            builder.push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn names_of_the_index_have_its_places() {
        for (place, name) in INDEX.iter().enumerate() {
            assert_eq!(place_of(name.as_bytes()), Some(place));
        }
        for name in ["", "PATH", "PATH_INFX", "HTTP_ACCEPT", "HTTP_ACCEPT_CH"] {
            assert_eq!(place_of(name.as_bytes()), None);
        }
    }

    #[test]
    fn what_was_built_is_read() {
        let bytes = block();
        let block = RequestBlock::check(&bytes).unwrap();
        assert_eq!((block.content_length(), block.count()), (Some(5), 3));
        assert_eq!(block.indexed(0), Some(&b"POST"[..]));
        assert_eq!(block.indexed(1), None);
        assert_eq!(block.indexed(16), None);
        assert_eq!(block.value(b"X"), Some(&b""[..]));
        assert_eq!(block.value(b"PATH_INFO"), Some(&b"/a"[..]));
        assert_eq!(block.value(b"PATH"), None);
        let all: Vec<_> = block.variables().collect();
        assert_eq!(all[2], (&b"PATH_INFO"[..], &b"/a"[..]));
    }

    #[test]
    fn no_changed_byte_is_read_outside_the_block() {
        let good = block();
        for at in 0..good.len() {
            for change in [1, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= change;
                if let Ok(block) = RequestBlock::check(&bytes) {
                    assert!(block.variables().count() <= 2 * 3);
                    for place in 0..17 {
                        let _ = block.indexed(place);
                    }
                    block.content_length();
                }
            }
            assert!(RequestBlock::check(&good[..at]).is_err());
        }
    }

    #[test]
    fn what_does_not_fit_leaves_the_block_as_it_was() {
        let mut builder = BlockBuilder::new(None);
        assert_eq!(builder.push(b"A", b"a\0b"), Err(UnfitRequest::Nul));
        assert_eq!(builder.push(b"", b"x"), Err(UnfitRequest::Nul));
        let long = vec![b'x'; REQUEST_BYTES_MAX];
        assert_eq!(builder.push(b"A", &long), Err(UnfitRequest::TooLong));
        let longer = |out: &mut Vec<u8>| {
            out.extend_from_slice(&long);
            true
        };
        assert_eq!(builder.write(|_| (), longer), Err(UnfitRequest::TooLong));
        assert_eq!(builder.write(|out| out.push(b'A'), |_| false), Ok(()));
        let bytes = builder.finish().unwrap();
        let block = RequestBlock::check(&bytes).unwrap();
        assert_eq!((block.count(), block.content_length()), (0, None));
    }

    #[test]
    fn what_is_written_in_place_is_what_is_pushed() {
        let write = |builder: &mut BlockBuilder, name: &[u8], value: &[u8]| {
            let value = |out: &mut Vec<u8>| {
                out.extend_from_slice(value);
                true
            };
            builder.write(|out| out.extend_from_slice(name), value)
        };
        // What a buffer held before is gone.
        let used = vec![b'x'; 3000];
        let mut builder = BlockBuilder::new(None).begin_like(used, Some(5));
        for (name, value) in [("REQUEST_METHOD", "POST"), ("X", ""), ("PATH_INFO", "/a")] {
            write(&mut builder, name.as_bytes(), value.as_bytes()).unwrap();
        }
        assert_eq!(builder.finish().unwrap(), block());
        for (name, value) in [(&b"A\0"[..], &b"a"[..]), (b"A", b"\0")] {
            let mut builder = BlockBuilder::new(None);
            write(&mut builder, name, value).unwrap();
            assert_eq!(builder.finish(), Err(UnfitRequest::Nul));
        }
    }
}
