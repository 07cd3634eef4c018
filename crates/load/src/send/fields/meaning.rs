//! What a field of an answer means to the load generator: the status, the length, or that it is
//! one that is expected. Found once for each field that a table keeps, not once for each answer.

use super::{TOO_LONG, Wrong};
use crate::expect::ExpectedField;
use crate::limits::INTERIM_COUNT_MAX;
use crate::measure::AnswerSummary;
use crate::send::acts::bytes_to_come;
use crate::send::body::PartialAnswerBody;
use crate::send::digits::number;
use crate::send::kept::{Kept, KeptField, name_of};

/// No field of this kind.
const NO_LENGTH: u64 = u64::MAX;

/// What one field means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The status; 0 for every other field.
    status: u16,
    is_pseudo: bool,
    /// Content-Length, or `NO_LENGTH`.
    length: u64,
    /// One bit for each expected field that this is.
    seen: u64,
}

impl Meaning {
    /// A field that means nothing here.
    pub(crate) const NONE: Meaning = Meaning {
        status: 0,
        is_pseudo: false,
        length: NO_LENGTH,
        seen: 0,
    };

    /// Finds it, or says why there must be no such field.
    pub(crate) fn of(
        name: &[u8],
        value: &[u8],
        expected: &[ExpectedField],
    ) -> Result<Meaning, Wrong> {
        let mut meaning = Meaning {
            is_pseudo: name.first() == Some(&b':'),
            ..Meaning::NONE
        };
        match name {
            b":status" => {
                meaning.status = status(value).ok_or("the status is no number of 100 to 599")?
            }
            b"content-length" => {
                meaning.length = number(value).ok_or("the Content-Length is no number")?;
            }
            _ if meaning.is_pseudo => {
                return Err("an answer has a pseudo-field that is not :status");
            }
            //= rfc9113#8.2.1: names are in small letters, and not empty.
            _ if name.is_empty() || name.iter().any(u8::is_ascii_uppercase) => {
                return Err("a field's name is empty or has capital letters");
            }
            _ => {}
        }
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Err("a field's value has bytes that may not be there");
        }
        for (index, field) in expected.iter().enumerate() {
            if field.is(name, value) {
                meaning.seen |= 1 << index;
            }
        }
        Ok(meaning)
    }
}

/// What the fields of one block say together.
#[derive(Debug, Clone)]
pub struct BlockMeaning {
    status: u16,
    length: u64,
    seen: u64,
    has_fields: bool,
    /// Values of fields, where somebody reads them.
    kept: Vec<(KeptField, String)>,
}

impl BlockMeaning {
    pub(crate) fn new() -> BlockMeaning {
        BlockMeaning {
            status: 0,
            length: NO_LENGTH,
            seen: 0,
            has_fields: false,
            kept: Vec::new(),
        }
    }

    /// Keeps a field's value, if it is one that somebody may want.
    pub(crate) fn keep(&mut self, name: &[u8], value: &[u8]) {
        if let Some(name) = name_of(name) {
            let value = String::from_utf8_lossy(value.trim_ascii()).into_owned();
            self.kept.push((name, value));
        }
    }

    /// Adds a field; what makes the answer malformed is told at the end of the block, because the
    /// rest of it must be read for the tables' sake.
    pub(crate) fn add(&mut self, meaning: &Meaning) -> Result<(), Wrong> {
        if meaning.is_pseudo {
            if self.has_fields || self.status != 0 {
                return Err("the status comes twice, or behind other fields");
            }
            self.status = meaning.status;
            return Ok(());
        }
        self.has_fields = true;
        self.seen |= meaning.seen;
        if meaning.length != NO_LENGTH {
            if self.length != NO_LENGTH && self.length != meaning.length {
                return Err("the answer has two lengths");
            }
            self.length = meaning.length;
        }
        Ok(())
    }
}

/// One answer that arrives in blocks of fields and pieces of data.
#[derive(Debug, Clone)]
pub struct Arriving {
    answer: AnswerSummary,
    body: PartialAnswerBody,
    /// What the head said of the body's length.
    length: u64,
    interim_count: u16,
}

impl Arriving {
    /// An answer of which nothing has come.
    pub const NEW: Arriving = Arriving {
        answer: AnswerSummary {
            status: 0,
            body_bytes: 0,
            is_reusable: true,
            fields_seen: 0,
            body_hash: None,
        },
        body: PartialAnswerBody::NEW,
        length: NO_LENGTH,
        interim_count: 0,
    };

    /// The same, with the body's hash where it is wanted.
    pub(crate) fn new(is_hashed: bool) -> Arriving {
        Arriving {
            body: PartialAnswerBody::new(is_hashed),
            ..Arriving::NEW
        }
    }

    /// The same for somebody who reads it.
    pub(crate) fn keeping(kept: Kept) -> Arriving {
        let mut arriving = Arriving::NEW;
        arriving.body.kept = Some(Box::new(kept));
        arriving
    }

    /// What was kept of the answer.
    pub(crate) fn take_kept(&mut self) -> Option<Box<Kept>> {
        self.body.kept.take()
    }

    /// Status and what is kept so far, once the head has come.
    pub(crate) fn coming(&self) -> Option<(u16, &Kept)> {
        let kept = self.body.kept.as_deref().filter(|_| self.has_head());
        kept.map(|kept| (self.answer.status, kept))
    }

    /// The head has come.
    pub(crate) fn has_head(&self) -> bool {
        self.answer.status != 0
    }

    /// Is a share of the answer there, the head at least? An answer that can have no more of it
    /// than that may tell of any length.
    pub(crate) fn has_come(&self, share: f32) -> bool {
        let told = Some(self.length).filter(|length| *length != NO_LENGTH);
        self.has_head() && bytes_to_come(share, told, self.body.bytes) == 0
    }

    /// A block of fields has come: an interim answer, the head, or trailers.
    pub fn fields(&mut self, block: &mut BlockMeaning, is_last: bool) -> Result<(), Wrong> {
        if self.has_head() {
            return match (block.status, is_last) {
                (0, true) => Ok(()),
                _ => Err("the answer has two heads"),
            };
        }
        match block.status {
            0 => Err("the answer has no status"),
            101 => Err("101 is no answer here"),
            100..200 if is_last => Err("the answer ended with an interim one"),
            100..200 => {
                self.interim_count += 1;
                match u32::from(self.interim_count) > INTERIM_COUNT_MAX {
                    true => Err("more than 100 interim answers"),
                    false => Ok(()),
                }
            }
            status => {
                self.answer.status = status;
                self.answer.fields_seen = block.seen;
                self.length = block.length;
                if let Some(kept) = &mut self.body.kept {
                    kept.set_fields(std::mem::take(&mut block.kept));
                }
                Ok(())
            }
        }
    }

    /// More of the body has come.
    pub fn data(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        if !self.has_head() {
            return Err("the body comes before the head");
        }
        self.body.take(bytes);
        Ok(())
    }

    /// The answer is complete.
    pub fn end(&mut self, is_head: bool) -> Result<&AnswerSummary, Wrong> {
        if !self.has_head() {
            return Err("the answer ended before it began");
        }
        self.answer.body_bytes = self.body.bytes;
        self.answer.body_hash = self.body.finish();
        //= rfc9113#8.1.1: the length is that of the data, where there may be data.
        let has_no_body = is_head || self.answer.status == 304;
        if self.length != NO_LENGTH && self.length != self.answer.body_bytes {
            let is_told_only = has_no_body && self.answer.body_bytes == 0;
            if !is_told_only {
                return Err("the body is not as long as its Content-Length says");
            }
        }
        Ok(&self.answer)
    }
}

/// A running count of what a block of fields takes, decoded.
#[derive(Debug, Default)]
pub(crate) struct Size(usize);

impl Size {
    /// Adds a field's size as both protocols count it.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Wrong> {
        self.0 += bytes;
        if self.0 > crate::limits::HEAD_BYTES_MAX {
            return Err(TOO_LONG);
        }
        Ok(())
    }
}

fn status(value: &[u8]) -> Option<u16> {
    let [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else {
        return None;
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    Some(digit(a) * 100 + digit(b) * 10 + digit(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fields: &[(&str, &str)]) -> Result<BlockMeaning, Wrong> {
        let mut block = BlockMeaning::new();
        for (name, value) in fields {
            block.add(&Meaning::of(name.as_bytes(), value.as_bytes(), &[])?)?;
        }
        Ok(block)
    }

    #[test]
    fn head_that_is_none_is_refused() {
        for wrong in [
            &[(":status", "99")][..],
            &[(":status", "200"), (":status", "200")],
            &[("a", "b"), (":status", "200")],
            &[(":path", "/")],
            &[(":status", "200"), ("A", "b")],
            &[(":status", "200"), ("a", "b\nc")],
            &[(":status", "200"), ("content-length", "+1")],
            &[
                (":status", "200"),
                ("content-length", "1"),
                ("content-length", "2"),
            ],
        ] {
            assert!(block(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn answer_is_a_head_its_data_and_an_end() {
        let mut answer = Arriving::NEW;
        assert!(answer.data(b"x").is_err());
        answer
            .fields(&mut block(&[(":status", "103")]).unwrap(), false)
            .unwrap();
        assert!(answer.end(false).is_err());
        let mut head = block(&[(":status", "200"), ("content-length", "3")]).unwrap();
        answer.fields(&mut head, false).unwrap();
        answer.data(b"xy").unwrap();
        assert!(answer.end(false).is_err(), "a byte is missing");
        answer.data(b"x").unwrap();
        answer
            .fields(&mut block(&[("etag", "x")]).unwrap(), true)
            .unwrap();
        assert!(answer.fields(&mut head, true).is_err(), "two heads");
        let end = answer.end(false).unwrap();
        assert_eq!((end.status, end.body_bytes), (200, 3));
    }

    #[test]
    fn answer_to_head_has_a_length_and_no_body() {
        let mut answer = Arriving::NEW;
        let mut head = block(&[(":status", "200"), ("content-length", "3")]).unwrap();
        answer.fields(&mut head, true).unwrap();
        assert!(answer.end(true).is_ok());
        assert!(answer.end(false).is_err());
    }
}
