//! Range requests: which bytes of a representation are asked for, and how parts of it are
//! announced.
//!
//! What cannot be understood is ignored, as the rules ask: the whole representation is sent. Ranges
//! that overlap or touch become one, so no request is answered with more bytes than there are; then
//! the parts go out in the order of the representation, else in the order of the request.

use std::io::Write;

/// Most parts of an answer; a request for more gets the whole representation.
pub const PARTS_MAX: usize = 16;
/// Most ranges read from one request before overlapping ones become one; else it is ignored.
pub const SPECS_MAX: usize = 128;

/// Bytes of a representation, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Index of the first byte.
    pub start: u64,
    /// Index after the last byte.
    pub end: u64,
}

/// What a `Range` field asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The whole representation (200).
    Whole,
    /// One part of it (206).
    One(ByteRange),
    /// Two to [`PARTS_MAX`] parts that do not touch (206, `multipart/byteranges`).
    Many(Vec<ByteRange>),
    /// Nothing that is there (416).
    Unsatisfiable,
}

/// Reads a `Range` field for a representation of `length` bytes.
///
/// Of an empty representation the whole is sent: clients that ask for every file from its first
/// byte on would take a 416 for an error.
//= rfc9110#14.2
pub fn select(range: &[u8], length: u64) -> Selection {
    if length == 0 {
        return Selection::Whole;
    }
    let Some(specs) = byte_specs(range) else {
        return Selection::Whole;
    };
    let mut found: Vec<ByteRange> = Vec::new();
    let mut count = 0;
    // An empty element of a list counts for nothing.
    //= rfc9110#5.6.1.2
    for spec in specs.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if spec.is_empty() {
            continue;
        }
        count += 1;
        match read_spec(spec, length) {
            Spec::Bytes(range) if count <= SPECS_MAX => found.push(range),
            Spec::Beyond if count <= SPECS_MAX => {}
            _ => return Selection::Whole,
        }
    }
    match (count, found.as_slice()) {
        (0, _) => Selection::Whole,
        (_, []) => Selection::Unsatisfiable,
        (_, &[range]) => Selection::One(range),
        _ => several(found),
    }
}

impl ByteRange {
    /// How many bytes.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Never true: a range has a byte at least.
    pub fn is_empty(self) -> bool {
        self.end == self.start
    }

    /// Appends the value of `Content-Range` for this part of `length` bytes.
    //= rfc9110#14.4
    pub fn write_content_range(self, length: u64, out: &mut Vec<u8>) {
        append(
            out,
            format_args!("bytes {}-{}/{length}", self.start, self.end - 1),
        );
    }
}

/// Appends the value of `Content-Range` for an answer with status 416.
//= rfc9110#15.5.17
pub fn write_unsatisfied(length: u64, out: &mut Vec<u8>) {
    append(out, format_args!("bytes */{length}"));
}

/// The text between the parts of an answer in several parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    boundary: [u8; BOUNDARY_BYTES],
    content_type: Vec<u8>,
    length: u64,
}

/// Length of a boundary, in bytes.
pub const BOUNDARY_BYTES: usize = 20;

impl Multipart {
    /// For parts of a representation of this type and `length` bytes. The number makes the
    /// boundary; it should be one that nobody can foresee.
    //= rfc9110#14.6
    pub fn new(number: u64, content_type: &[u8], length: u64) -> Multipart {
        let mut boundary = *b"hob-0000000000000000";
        for (digit, shift) in boundary[4..].iter_mut().zip((0..16).rev()) {
            *digit = b"0123456789abcdef"[(number >> (4 * shift)) as usize & 15];
        }
        Multipart {
            boundary,
            content_type: content_type.to_vec(),
            length,
        }
    }

    /// Appends the value of the answer's `Content-Type`.
    pub fn write_content_type(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"multipart/byteranges; boundary=");
        out.extend_from_slice(&self.boundary);
    }

    /// Appends what stands before a part's bytes.
    //= rfc2046#5.1.1
    pub fn write_part_head(&self, range: ByteRange, place: PartPlace, out: &mut Vec<u8>) {
        if place == PartPlace::Later {
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"--");
        out.extend_from_slice(&self.boundary);
        out.extend_from_slice(b"\r\nContent-Type: ");
        out.extend_from_slice(&self.content_type);
        out.extend_from_slice(b"\r\nContent-Range: ");
        range.write_content_range(self.length, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends what stands after the last part's bytes.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.boundary);
        out.extend_from_slice(b"--\r\n");
    }

    /// Length of the answer's body with these parts.
    pub fn body_bytes(&self, parts: &[ByteRange]) -> u64 {
        let mut text = Vec::new();
        for (index, &range) in parts.iter().enumerate() {
            self.write_part_head(range, PartPlace::of_index(index), &mut text);
        }
        self.write_end(&mut text);
        let content: u64 = parts.iter().map(|range| range.len()).sum();
        content.saturating_add(text.len() as u64)
    }
}

/// Where a part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartPlace {
    /// It is the first.
    First,
    /// Another part's bytes are before it.
    Later,
}

impl PartPlace {
    /// The place of the part with this index.
    pub fn of_index(index: usize) -> PartPlace {
        if index == 0 {
            PartPlace::First
        } else {
            PartPlace::Later
        }
    }
}

/// What one range of a list means.
enum Spec {
    Bytes(ByteRange),
    /// Nothing of it is there.
    Beyond,
    /// It is broken.
    NoPart,
}

/// What follows `bytes=`; `None` for other units.
//= rfc9110#14.1
fn byte_specs(range: &[u8]) -> Option<&[u8]> {
    let equals = memchr::memchr(b'=', range)?;
    range[..equals]
        .eq_ignore_ascii_case(b"bytes")
        .then(|| &range[equals + 1..])
}

//= rfc9110#14.1.2
fn read_spec(spec: &[u8], length: u64) -> Spec {
    let Some(dash) = memchr::memchr(b'-', spec) else {
        return Spec::NoPart;
    };
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    if first.is_empty() {
        return match number(last) {
            None => Spec::NoPart,
            Some(0) => Spec::Beyond,
            Some(count) => Spec::Bytes(ByteRange {
                start: length.saturating_sub(count),
                end: length,
            }),
        };
    }
    let last = if last.is_empty() {
        Some(u64::MAX)
    } else {
        number(last)
    };
    match (number(first), last) {
        (Some(first), Some(last)) if first > last => Spec::NoPart,
        (Some(first), Some(_)) if first >= length => Spec::Beyond,
        (Some(first), Some(last)) => Spec::Bytes(ByteRange {
            start: first,
            end: last.saturating_add(1).min(length),
        }),
        _ => Spec::NoPart,
    }
}

/// One digit or more; a number too great to be counted is the greatest there is.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| {
        digit.is_ascii_digit().then(|| {
            value
                .saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'))
        })
    })
}

/// Ranges that overlap or touch become one.
//= rfc9110#15.3.7.2
fn several(found: Vec<ByteRange>) -> Selection {
    let mut sorted = found.clone();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut parts: Vec<ByteRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match parts.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => parts.push(range),
        }
    }
    match parts.as_slice() {
        &[range] => Selection::One(range),
        _ if parts.len() > PARTS_MAX => Selection::Whole,
        _ if parts.len() == found.len() => Selection::Many(found),
        _ => Selection::Many(parts),
    }
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange { start, end }
    }

    fn one(start: u64, end: u64) -> Selection {
        Selection::One(range(start, end))
    }

    fn many(ranges: &[(u64, u64)]) -> Selection {
        Selection::Many(
            ranges
                .iter()
                .map(|&(start, end)| range(start, end))
                .collect(),
        )
    }

    #[test]
    fn single_ranges() {
        //= rfc9110#14.1.2
        let cases = [
            ("bytes=0-0", one(0, 1)),
            ("bytes=0-499", one(0, 500)),
            ("bytes=500-999", one(500, 1000)),
            ("bytes=500-", one(500, 1000)),
            ("bytes=-1", one(999, 1000)),
            ("bytes=-2000", one(0, 1000)),
            ("bytes=990-5000", one(990, 1000)),
            ("bytes=0-18446744073709551615", one(0, 1000)),
            ("bytes=0-99999999999999999999999", one(0, 1000)),
            ("bytes=-99999999999999999999999", one(0, 1000)),
            ("BYTES=0-1", one(0, 2)),
            ("bytes= 0-1 ", one(0, 2)),
            ("bytes=,0-1,,", one(0, 2)),
            ("bytes=0-1,2000-", one(0, 2)),
            ("bytes=007-8", one(7, 9)),
        ];
        for (text, expected) in cases {
            assert_eq!(select(text.as_bytes(), 1000), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_byte_range_is_ignored() {
        for text in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=1",
            "bytes=2-1",
            "lines=0-1",
            "bytes =0-1",
            "bytes=0 -1",
            "bytes=0x1-2",
            "bytes=+1-2",
            "bytes=1--2",
            "bytes=0-1,x",
            "bytes=0-1;2-3",
            "bytes=--1",
            "0-1",
        ] {
            assert_eq!(select(text.as_bytes(), 1000), Selection::Whole, "{text}");
        }
    }

    #[test]
    fn what_is_not_there_cannot_be_satisfied() {
        for text in [
            "bytes=1000-",
            "bytes=1000-1001",
            "bytes=-0",
            "bytes=1000-,2000-,-0",
        ] {
            assert_eq!(
                select(text.as_bytes(), 1000),
                Selection::Unsatisfiable,
                "{text}"
            );
        }
        let mut out = Vec::new();
        write_unsatisfied(1000, &mut out);
        assert_eq!(out, b"bytes */1000");
    }

    #[test]
    fn of_nothing_the_whole_is_sent() {
        for text in ["bytes=0-", "bytes=5-6", "bytes=-5", "bytes=-0"] {
            assert_eq!(select(text.as_bytes(), 0), Selection::Whole, "{text}");
        }
    }

    #[test]
    fn ranges_that_overlap_or_touch_become_one() {
        let cases = [
            ("bytes=0-1,3-4", many(&[(0, 2), (3, 5)])),
            ("bytes=10-11,0-1", many(&[(10, 12), (0, 2)])),
            ("bytes=0-1,2-3", one(0, 4)),
            ("bytes=0-9,5-6", one(0, 10)),
            ("bytes=5-6,0-9", one(0, 10)),
            ("bytes=0-,0-,0-", one(0, 1000)),
            ("bytes=20-21,0-1,1-2", many(&[(0, 3), (20, 22)])),
            ("bytes=-1,0-0", many(&[(999, 1000), (0, 1)])),
            ("bytes=0-1,-0,5-6", many(&[(0, 2), (5, 7)])),
        ];
        for (text, expected) in cases {
            assert_eq!(select(text.as_bytes(), 1000), expected, "{text}");
        }
    }

    #[test]
    fn too_many_parts_get_the_whole() {
        let list = |count: usize, step: usize| {
            let specs: Vec<String> = (0..count)
                .map(|n| format!("{}-{}", n * step, n * step))
                .collect();
            select(format!("bytes={}", specs.join(",")).as_bytes(), 1000)
        };
        assert!(matches!(list(PARTS_MAX, 2), Selection::Many(parts) if parts.len() == PARTS_MAX));
        assert_eq!(list(PARTS_MAX + 1, 2), Selection::Whole);
        assert_eq!(list(SPECS_MAX, 1), one(0, SPECS_MAX as u64));
        assert_eq!(list(SPECS_MAX + 1, 1), Selection::Whole);
    }

    #[test]
    fn parts_are_announced() {
        let parts = [range(0, 2), range(8, 10)];
        let multipart = Multipart::new(0x0123_4567_89ab_cdef, b"text/plain", 10);
        let mut body = Vec::new();
        multipart.write_content_type(&mut body);
        assert_eq!(body, b"multipart/byteranges; boundary=hob-0123456789abcdef");
        body.clear();
        for (index, &part) in parts.iter().enumerate() {
            multipart.write_part_head(part, PartPlace::of_index(index), &mut body);
            body.extend_from_slice(&b"0123456789"[part.start as usize..part.end as usize]);
        }
        multipart.write_end(&mut body);
        assert_eq!(
            String::from_utf8(body.clone()).unwrap(),
            "--hob-0123456789abcdef\r\nContent-Type: text/plain\r\n\
             Content-Range: bytes 0-1/10\r\n\r\n\
             01\
             \r\n--hob-0123456789abcdef\r\nContent-Type: text/plain\r\n\
             Content-Range: bytes 8-9/10\r\n\r\n\
             89\
             \r\n--hob-0123456789abcdef--\r\n"
        );
        assert_eq!(multipart.body_bytes(&parts), body.len() as u64);
        let endless = Multipart::new(0, b"", u64::MAX);
        assert_eq!(endless.body_bytes(&[range(0, u64::MAX)]), u64::MAX);
    }
}
