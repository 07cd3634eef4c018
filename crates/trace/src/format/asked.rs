//! Values that a format asks for beside what every record has: fields of request and answer, and
//! cookies.
//!
//! They travel with the record in one text, [`crate::Texts::asked`], which only records of logs
//! that ask for any have. Its layout, once for each value, in the order of the format:
//!
//! ```text
//! length u16, little-endian; its highest bit says that the value was cut | bytes
//! ```

/// The most values that one format asks for.
pub const ASKED_COUNT_MAX: usize = 32;
/// Bytes of such a value that are kept.
pub const ASKED_VALUE_BYTES_MAX: usize = 1024;
/// Bytes of all such values of one request that are kept, with their lengths.
pub const ASKED_BYTES_MAX: usize = 4096;

const LENGTH_BYTES: usize = 2;
const CUT: u16 = 1 << 15;
const _: () = assert!(ASKED_VALUE_BYTES_MAX < CUT as usize);
const _: () = assert!(
    ASKED_COUNT_MAX * LENGTH_BYTES + ASKED_VALUE_BYTES_MAX < ASKED_BYTES_MAX,
    "each value has a length, whatever the others take"
);

/// A value that a format asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedValue {
    /// Of the request's field with this name.
    Header(String),
    /// Of the answer's field with this name.
    Response(String),
    /// Of the request's cookie with this name.
    Cookie(String),
}

/// What stands before the name of a value, and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSource {
    Header,
    Response,
    Cookie,
    Environment,
}

/// Their words as they stand in a format, and what they are.
pub(super) const SOURCES: [(&str, ValueSource, &str); 4] = [
    (
        "header:NAME",
        ValueSource::Header,
        "The request's field `NAME`; several of that name with `, ` between them.",
    ),
    (
        "response:NAME",
        ValueSource::Response,
        "The answer's field `NAME`, but those that only frame it: `Date`, `Server`, `Connection`, \
         lengths.",
    ),
    (
        "cookie:NAME",
        ValueSource::Cookie,
        "The value of the request's cookie `NAME`.",
    ),
    (
        "env:NAME",
        ValueSource::Environment,
        "The variable `NAME` of hob's environment when the config was loaded.",
    ),
];

impl ValueSource {
    /// The source and the name of a word such as `header:accept`.
    pub(super) fn of(word: &str) -> Option<(ValueSource, &str)> {
        let (kind, name) = word.split_once(':')?;
        let is_kind = |known: &str| known.strip_suffix(":NAME") == Some(kind);
        let found = SOURCES.iter().find(|(known, ..)| is_kind(known));
        found.map(|(_, source, _)| (*source, name))
    }

    /// Whether something there can have the name.
    pub(super) fn takes(self, name: &str) -> bool {
        let is_allowed = |byte: u8| match self {
            ValueSource::Environment => byte == b'_' || byte.is_ascii_alphanumeric(),
            //= rfc9110#5.6.2
            _ => byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte),
        };
        !name.is_empty() && name.bytes().all(is_allowed)
    }
}

impl AskedValue {
    /// The value, where a format asks for one that comes with each request.
    pub(super) fn of(source: ValueSource, name: &str) -> Option<AskedValue> {
        match source {
            ValueSource::Header => Some(AskedValue::Header(name.to_owned())),
            ValueSource::Response => Some(AskedValue::Response(name.to_owned())),
            ValueSource::Cookie => Some(AskedValue::Cookie(name.to_owned())),
            ValueSource::Environment => None,
        }
    }
}

/// Names of variables of the environment that a format mentions, as `{env:NAME}`.
pub fn variables_of(format: &str) -> impl Iterator<Item = &str> {
    let words = format.split('{').skip(1);
    words.filter_map(|rest| {
        let (source, name) = ValueSource::of(rest.split_once('}')?.0)?;
        (source == ValueSource::Environment && source.takes(name)).then_some(name)
    })
}

/// Puts values down for [`crate::Texts::asked`], one after another.
#[derive(Debug)]
pub struct AskedValueWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Values that are still to come: each needs room for its length.
    remaining: usize,
    cut_count: u64,
}

impl<'a> AskedValueWriter<'a> {
    /// Empties `out` for so many values.
    pub fn new(out: &'a mut Vec<u8>, count: usize) -> AskedValueWriter<'a> {
        out.clear();
        AskedValueWriter {
            out,
            remaining: count.min(ASKED_COUNT_MAX),
            cut_count: 0,
        }
    }

    /// Puts the next value down: all of these pieces, with `, ` between them; none is absent.
    pub fn put<'v>(&mut self, pieces: impl Iterator<Item = &'v [u8]>) {
        let Some(remaining) = self.remaining.checked_sub(1) else {
            return;
        };
        self.remaining = remaining;
        let begin = self.out.len();
        let start = begin + LENGTH_BYTES;
        self.out.extend_from_slice(&[0; LENGTH_BYTES]);
        let room = ASKED_BYTES_MAX.saturating_sub(start + remaining * LENGTH_BYTES);
        let bytes_max = room.min(ASKED_VALUE_BYTES_MAX);
        let mut is_cut = false;
        for (index, piece) in pieces.enumerate() {
            let between: &[u8] = if index == 0 { b"" } else { b", " };
            for part in [between, piece] {
                let left = bytes_max - (self.out.len() - start);
                is_cut |= part.len() > left;
                self.out.extend_from_slice(&part[..part.len().min(left)]);
            }
            if is_cut {
                break;
            }
        }
        self.end(begin, is_cut);
    }

    /// Puts the next value down as it stands in another text of this kind, at this place.
    pub fn put_again(&mut self, asked: &[u8], index: usize) {
        let value = AskedText::at(asked, index);
        let begin = self.out.len();
        let count = self.cut_count;
        self.put(
            Some(value.bytes)
                .filter(|bytes| !bytes.is_empty())
                .into_iter(),
        );
        if value.is_cut && self.cut_count == count && self.out.len() > begin {
            self.end(begin, true);
        }
    }

    /// How many values were cut.
    pub fn finish(self) -> u64 {
        self.cut_count
    }

    /// Writes the length of the value that begins there and is the last.
    fn end(&mut self, begin: usize, is_cut: bool) {
        if is_cut {
            self.cut_count += 1;
            let value = &self.out[begin + LENGTH_BYTES..];
            let whole = whole_characters(value).len();
            self.out.truncate(begin + LENGTH_BYTES + whole);
        }
        let length = (self.out.len() - begin - LENGTH_BYTES) as u16;
        let length = if is_cut { length | CUT } else { length };
        self.out[begin..begin + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }
}

/// The bytes without the begin of a character of UTF-8 that is cut at their end.
pub(crate) fn whole_characters(bytes: &[u8]) -> &[u8] {
    const CHARACTER_BYTES_MAX: usize = 4;
    let last = bytes.len().saturating_sub(CHARACTER_BYTES_MAX);
    let lead = (last..bytes.len())
        .rev()
        .find(|at| bytes[*at] & 0xc0 != 0x80);
    let Some(lead) = lead else { return bytes };
    let wanted = match bytes[lead] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    match lead + wanted > bytes.len() {
        true => &bytes[..lead],
        false => bytes,
    }
}

/// One value as it travelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AskedText<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_cut: bool,
}

impl<'a> AskedText<'a> {
    /// The value at this place; nothing where there is none.
    pub(super) fn at(mut asked: &'a [u8], index: usize) -> AskedText<'a> {
        for place in 0..=index {
            let Some((length, rest)) = asked.split_first_chunk::<LENGTH_BYTES>() else {
                break;
            };
            let length = u16::from_le_bytes(*length);
            let is_cut = length & CUT != 0;
            let Some((bytes, rest)) = rest.split_at_checked(usize::from(length & !CUT)) else {
                break;
            };
            if place == index {
                return AskedText { bytes, is_cut };
            }
            asked = rest;
        }
        AskedText::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces<'a>(values: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
        values.iter().copied()
    }

    fn text(bytes: &[u8]) -> AskedText<'_> {
        AskedText {
            bytes,
            is_cut: false,
        }
    }

    #[test]
    fn values_come_back_in_their_order() {
        let mut out = b"of the request before".to_vec();
        let mut writer = AskedValueWriter::new(&mut out, 3);
        writer.put(pieces(&[b"one"]));
        writer.put(pieces(&[]));
        writer.put(pieces(&[b"a", b"b"]));
        writer.put(pieces(&[b"one more than was announced"]));
        assert_eq!(writer.finish(), 0);
        let values = [0, 1, 2, 3].map(|index| AskedText::at(&out, index));
        assert_eq!(values, [text(b"one"), text(b""), text(b"a, b"), text(b"")]);
    }

    #[test]
    fn value_longer_than_its_limit_is_cut_and_says_so() {
        let long = vec![b'x'; ASKED_VALUE_BYTES_MAX + 1];
        let mut out = Vec::new();
        let mut writer = AskedValueWriter::new(&mut out, 2);
        writer.put(pieces(&[&long[1..]]));
        writer.put(pieces(&[&long]));
        assert_eq!(writer.finish(), 1);
        assert_eq!(AskedText::at(&out, 0), text(&long[1..]));
        let cut = AskedText {
            bytes: &long[1..],
            is_cut: true,
        };
        assert_eq!(AskedText::at(&out, 1), cut);
    }

    #[test]
    fn as_many_long_values_as_may_be_fit_into_what_is_kept() {
        let long = vec![b'x'; ASKED_VALUE_BYTES_MAX];
        let mut out = Vec::new();
        let mut writer = AskedValueWriter::new(&mut out, ASKED_COUNT_MAX);
        (0..ASKED_COUNT_MAX).for_each(|_| writer.put(pieces(&[&long])));
        assert_eq!(writer.finish(), ASKED_COUNT_MAX as u64 - 3);
        assert_eq!(out.len(), ASKED_BYTES_MAX);
        assert!(!AskedText::at(&out, 2).is_cut);
        for index in 3..ASKED_COUNT_MAX {
            assert!(AskedText::at(&out, index).is_cut, "{index}");
        }
    }

    #[test]
    fn character_is_not_cut_in_the_middle() {
        let long = "é".repeat(ASKED_VALUE_BYTES_MAX);
        let mut out = Vec::new();
        let mut writer = AskedValueWriter::new(&mut out, 1);
        writer.put(pieces(&[b"x", long.as_bytes()]));
        assert_eq!(writer.finish(), 1);
        let told = std::str::from_utf8(AskedText::at(&out, 0).bytes).unwrap();
        assert!(told.starts_with("x, é") && told.len() == ASKED_VALUE_BYTES_MAX - 1);
        for (bytes, whole) in [
            (&b"a\xe4\xb8"[..], &b"a"[..]),
            (b"a\xe4\xb8\x96", b"a\xe4\xb8\x96"),
            (b"\xff", b"\xff"),
            (b"\x80\x80\x80\x80\x80", b"\x80\x80\x80\x80\x80"),
            (b"", b""),
        ] {
            assert_eq!(whole_characters(bytes), whole);
        }
    }

    #[test]
    fn value_that_is_taken_over_stays_cut() {
        let mut first = Vec::new();
        let mut writer = AskedValueWriter::new(&mut first, 2);
        writer.put(pieces(&[&[b'x'; ASKED_VALUE_BYTES_MAX + 1]]));
        writer.put(pieces(&[]));
        writer.finish();
        let mut second = Vec::new();
        let mut writer = AskedValueWriter::new(&mut second, 2);
        writer.put_again(&first, 1);
        writer.put_again(&first, 0);
        assert_eq!(writer.finish(), 1);
        assert_eq!(AskedText::at(&second, 0), text(b""));
        assert_eq!(AskedText::at(&second, 1), AskedText::at(&first, 0));
    }

    #[test]
    fn any_bytes_can_be_read() {
        for bytes in [&b"\x01"[..], b"\xff\xff", b"\x05\x00ab", b"\x00\x80"] {
            for index in 0..3 {
                assert!(AskedText::at(bytes, index).bytes.is_empty());
            }
        }
    }

    #[test]
    fn variables_are_those_that_the_format_names() {
        let format = "{env:HOME} {{env:NO}} {header:x}{env:A_1} {env:} {env:a b} {env:LAST";
        let found: Vec<&str> = variables_of(format).collect();
        assert_eq!(found, ["HOME", "NO", "A_1"]);
    }
}
