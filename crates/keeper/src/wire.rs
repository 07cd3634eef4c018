//! Bounded bytes: what the processes' messages are written with and read from.
//!
//! Integers are little-endian; texts and blocks are a `u32` length and the bytes. Reading checks
//! every length against what is there and what is allowed, and never panics on any bytes.
//!
//! Messages of somebody less trusted are read value by value, each with a limit. What the keeper
//! writes for the processes it starts is [`WireValue`], whole.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes that are not what they should be: which part, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedPart(pub(crate) &'static str);

impl fmt::Display for MalformedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}", self.0)
    }
}

impl std::error::Error for MalformedPart {}

/// Writes values one after the other.
#[derive(Default)]
pub(crate) struct WireWriter {
    bytes: Vec<u8>,
}

impl WireWriter {
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
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
    part: &'static str,
}

impl<'a> WireReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], part: &'static str) -> Self {
        WireReader { rest: bytes, part }
    }

    pub(crate) fn malformed(&self) -> MalformedPart {
        MalformedPart(self.part)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, MalformedPart> {
        let [value] = self.array()?;
        Ok(value)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, MalformedPart> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, MalformedPart> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, MalformedPart> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    /// A count that is at most `limit`.
    pub(crate) fn count(&mut self, limit: usize) -> Result<usize, MalformedPart> {
        let value = self.u32()? as usize;
        if value > limit {
            Err(self.malformed())
        } else {
            Ok(value)
        }
    }

    /// A block of at most `limit` bytes.
    pub(crate) fn block(&mut self, limit: usize) -> Result<&'a [u8], MalformedPart> {
        let len = self.count(limit)?;
        self.take(len)
    }

    pub(crate) fn text(&mut self, limit: usize) -> Result<String, MalformedPart> {
        let bytes = self.block(limit)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.malformed())?;
        Ok(text.to_owned())
    }

    pub(crate) fn path(&mut self) -> Result<PathBuf, MalformedPart> {
        const PATH_BYTES_MAX: usize = 4096;
        let bytes = self.block(PATH_BYTES_MAX)?;
        if bytes.contains(&0) {
            return Err(self.malformed());
        }
        Ok(PathBuf::from(OsString::from_vec(bytes.to_vec())))
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<(), MalformedPart> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedPart> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(self.malformed())?;
        self.rest = rest;
        Ok(*head)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], MalformedPart> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(self.malformed())?;
        self.rest = rest;
        Ok(head)
    }
}

/// A value that travels whole. Its texts and lists are bounded by the bytes that are there.
pub(crate) trait WireValue: Sized {
    /// Writes it.
    fn put(&self, writer: &mut WireWriter);

    /// Reads it.
    fn take(reader: &mut WireReader<'_>) -> Result<Self, MalformedPart>;

    /// The bytes of it alone, behind the version of its layout.
    fn encode_whole(&self, version: u8) -> Vec<u8> {
        let mut writer = WireWriter::default();
        self.put(writer.u8(version));
        writer.finish()
    }

    /// What was written so, and nothing behind it. A failure names the `part`.
    fn decode_whole(bytes: &[u8], version: u8, part: &'static str) -> Result<Self, MalformedPart> {
        let mut reader = WireReader::new(bytes, part);
        if reader.u8()? != version {
            return Err(reader.malformed());
        }
        let value = Self::take(&mut reader)?;
        reader.end()?;
        Ok(value)
    }
}

/// Values that are written and read by an expression each.
macro_rules! wire_values {
    ($($kind:ty: |$value:ident, $writer:ident| $put:expr, |$reader:ident| $take:expr;)+) => {$(
        impl WireValue for $kind {
            fn put(&self, $writer: &mut WireWriter) {
                let $value = self;
                $put;
            }

            fn take($reader: &mut WireReader<'_>) -> Result<Self, MalformedPart> {
                $take
            }
        }
    )+};
}

wire_values! {
    bool: |value, writer| writer.u8((*value).into()), |reader| reader.flag();
    u8: |value, writer| writer.u8(*value), |reader| reader.u8();
    u32: |value, writer| writer.u32(*value), |reader| reader.u32();
    u64: |value, writer| writer.u64(*value), |reader| reader.u64();
    i32: |value, writer| writer.u32(value.cast_unsigned()),
        |reader| Ok(reader.u32()?.cast_signed());
    usize: |value, writer| writer.count(*value), |reader| Ok(reader.u32()? as usize);
    String: |value, writer| writer.text(value), |reader| reader.text(usize::MAX);
    PathBuf: |value, writer| writer.path(value), |reader| reader.path();
    Duration: |value, writer| writer.u64(millis(*value)),
        |reader| Ok(Duration::from_millis(reader.u64()?));
    SystemTime: |value, writer| value.duration_since(UNIX_EPOCH).unwrap_or_default().put(writer),
        |reader| UNIX_EPOCH.checked_add(Duration::take(reader)?).ok_or(reader.malformed());
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl<T: WireValue> WireValue for Vec<T> {
    fn put(&self, writer: &mut WireWriter) {
        writer.count(self.len());
        self.iter().for_each(|one| one.put(writer));
    }

    fn take(reader: &mut WireReader<'_>) -> Result<Self, MalformedPart> {
        // Each takes a byte at least.
        let count = reader.count(reader.rest.len())?;
        (0..count).map(|_| T::take(reader)).collect()
    }
}

impl<T: WireValue> WireValue for Option<T> {
    fn put(&self, writer: &mut WireWriter) {
        self.is_some().put(writer);
        self.iter().for_each(|one| one.put(writer));
    }

    fn take(reader: &mut WireReader<'_>) -> Result<Self, MalformedPart> {
        reader.flag()?.then(|| T::take(reader)).transpose()
    }
}

impl<A: WireValue, B: WireValue> WireValue for (A, B) {
    fn put(&self, writer: &mut WireWriter) {
        self.0.put(writer);
        self.1.put(writer);
    }

    fn take(reader: &mut WireReader<'_>) -> Result<Self, MalformedPart> {
        Ok((A::take(reader)?, B::take(reader)?))
    }
}

/// A struct travels as its fields, in this order.
macro_rules! wire_struct {
    ($kind:ident: $($field:ident),+) => {
        impl $crate::wire::WireValue for $kind {
            fn put(&self, writer: &mut $crate::wire::WireWriter) {
                $($crate::wire::WireValue::put(&self.$field, writer);)+
            }

            fn take(
                reader: &mut $crate::wire::WireReader<'_>,
            ) -> Result<Self, $crate::wire::MalformedPart> {
                Ok($kind { $($field: $crate::wire::WireValue::take(reader)?,)+ })
            }
        }
    };
}

/// An enum travels as the number of its variant and what that holds.
macro_rules! wire_enum {
    ($kind:ident: $(
        $number:literal => $variant:ident $(($inner:ident))? $({ $($field:ident),+ })?
    ),+) => {
        impl $crate::wire::WireValue for $kind {
            fn put(&self, writer: &mut $crate::wire::WireWriter) {
                match self {
                    $($kind::$variant $(($inner))? $({ $($field),+ })? => {
                        writer.u8($number);
                        $($crate::wire::WireValue::put($inner, writer);)?
                        $($($crate::wire::WireValue::put($field, writer);)+)?
                    })+
                }
            }

            fn take(
                reader: &mut $crate::wire::WireReader<'_>,
            ) -> Result<Self, $crate::wire::MalformedPart> {
                Ok(match reader.u8()? {
                    $($number => {
                        $(let $inner = $crate::wire::WireValue::take(reader)?;)?
                        $($(let $field = $crate::wire::WireValue::take(reader)?;)+)?
                        $kind::$variant $(($inner))? $({ $($field),+ })?
                    })+
                    _ => return Err(reader.malformed()),
                })
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};

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
        let bytes = WireWriter::default()
            .u8(1)
            .u32(2)
            .u64(3)
            .text("vier")
            .path(Path::new("/f"))
            .finish();
        let mut reader = WireReader::new(&bytes, "test");
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
        let bytes = WireWriter::default().text("12345").finish();
        assert_eq!(
            WireReader::new(&bytes, "text").text(4),
            Err(MalformedPart("text"))
        );
        assert_eq!(
            WireReader::new(&bytes[..7], "text").text(9),
            Err(MalformedPart("text"))
        );
        assert_eq!(
            WireReader::new(&bytes[..2], "text").text(9),
            Err(MalformedPart("text"))
        );
        assert_eq!(
            WireReader::new(&bytes, "rest").end(),
            Err(MalformedPart("rest"))
        );
        assert_eq!(
            WireReader::new(&[2], "flag").flag(),
            Err(MalformedPart("flag"))
        );
    }

    #[test]
    fn cutting_keeps_whole_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 0), "");
    }
}
