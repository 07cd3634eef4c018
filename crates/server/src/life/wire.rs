//! Bounded bytes: what the processes' messages are written with and read from.
//!
//! Integers are little-endian; texts and blocks are a `u32` length and the bytes. Reading checks
//! every length against what is there and what is allowed, and never panics on any bytes.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Bytes that are not what they should be: which part, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Writes values one after the other.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A count of things, or a length.
    ///
    /// # Panics
    /// When it does not fit into 32 bits; everything counted here has a limit far below.
    pub(crate) fn count(&mut self, value: usize) -> &mut Self {
        self.u32(u32::try_from(value).expect("every count here has a limit below 2^32"))
    }

    pub(crate) fn block(&mut self, value: &[u8]) -> &mut Self {
        self.count(value.len());
        self.bytes.extend_from_slice(value);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.block(value.as_bytes())
    }

    pub(crate) fn path(&mut self, value: &Path) -> &mut Self {
        self.block(value.as_os_str().as_bytes())
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// Reads values one after the other; every failure names the part that was read.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    part: &'static str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], part: &'static str) -> Self {
        Reader { rest: bytes, part }
    }

    pub(crate) fn malformed(&self) -> Malformed {
        Malformed(self.part)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let [value] = self.array()?;
        Ok(value)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    /// A count that is at most `limit`.
    pub(crate) fn count(&mut self, limit: usize) -> Result<usize, Malformed> {
        let value = self.u32()? as usize;
        if value > limit {
            Err(self.malformed())
        } else {
            Ok(value)
        }
    }

    /// A block of at most `limit` bytes.
    pub(crate) fn block(&mut self, limit: usize) -> Result<&'a [u8], Malformed> {
        let len = self.count(limit)?;
        self.take(len)
    }

    pub(crate) fn text(&mut self, limit: usize) -> Result<String, Malformed> {
        let bytes = self.block(limit)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.malformed())?;
        Ok(text.to_owned())
    }

    pub(crate) fn path(&mut self) -> Result<PathBuf, Malformed> {
        const PATH_BYTES_MAX: usize = 4096;
        let bytes = self.block(PATH_BYTES_MAX)?;
        if bytes.contains(&0) {
            return Err(self.malformed());
        }
        Ok(PathBuf::from(OsString::from_vec(bytes.to_vec())))
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(self.malformed())?;
        self.rest = rest;
        Ok(*head)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(self.malformed())?;
        self.rest = rest;
        Ok(head)
    }
}

/// A text cut to a limit at a character's border, for messages that must fit.
pub(crate) fn cut(text: &str, limit_bytes: usize) -> &str {
    let mut end = text.len().min(limit_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Lossless bytes of an argument or variable.
pub(crate) fn os_bytes(text: &OsStr) -> &[u8] {
    text.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let bytes = Writer::default()
            .u8(1)
            .u32(2)
            .u64(3)
            .text("vier")
            .path(Path::new("/f"))
            .finish();
        let mut reader = Reader::new(&bytes, "test");
        assert_eq!(
            (reader.u8(), reader.u32(), reader.u64()),
            (Ok(1), Ok(2), Ok(3))
        );
        assert_eq!(reader.text(4), Ok("vier".to_owned()));
        assert_eq!(reader.path(), Ok(PathBuf::from("/f")));
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn lengths_beyond_the_limit_or_the_bytes_are_malformed() {
        let bytes = Writer::default().text("12345").finish();
        assert_eq!(Reader::new(&bytes, "text").text(4), Err(Malformed("text")));
        assert_eq!(
            Reader::new(&bytes[..7], "text").text(9),
            Err(Malformed("text"))
        );
        assert_eq!(
            Reader::new(&bytes[..2], "text").text(9),
            Err(Malformed("text"))
        );
        assert_eq!(Reader::new(&bytes, "rest").end(), Err(Malformed("rest")));
        assert_eq!(Reader::new(&[2], "flag").flag(), Err(Malformed("flag")));
    }

    #[test]
    fn cutting_keeps_whole_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 0), "");
    }
}
