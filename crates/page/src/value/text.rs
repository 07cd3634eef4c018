//! Text as runs of bytes with one provenance each.
//!
//! One buffer holds all bytes. Most texts have one run, which needs no list. A run of data may be
//! empty: a statement must have the same shape whether a field was filled in or not.

use std::borrow::Cow;
use std::ops::Range;

/// Who made a part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueOrigin {
    /// The author: macro, include or initialization file, and what is counted from values.
    Macro,
    /// The client: form, query, cookie, header.
    Client,
    /// The environment of the request.
    Environment,
    /// A database.
    Database,
    /// A program.
    Program,
    /// A file or a registry.
    File,
}

impl ValueOrigin {
    /// Whether it is data, which is bound and escaped.
    pub fn is_data(self) -> bool {
        self != Self::Macro
    }
}

/// What was already done to a part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Marks(u8);

impl Marks {
    /// Nothing was done.
    pub const NONE: Self = Self(0);
    /// Markup characters are references.
    pub const HTML: Self = Self(1);
    /// Percent-encoded.
    pub const URL: Self = Self(2);
    /// Each `'` is doubled.
    pub const QUOTED: Self = Self(4);
    /// Trusted markup, by the author's word.
    pub const RAW: Self = Self(8);

    /// Whether this was done.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Where a part of a text came from, and what was done to it since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Provenance {
    /// Who made it.
    pub origin: ValueOrigin,
    /// What was done to it.
    pub marks: Marks,
}

impl Provenance {
    /// The author's own.
    pub const MACRO: Self = Self::of(ValueOrigin::Macro);

    /// Fresh from there.
    pub const fn of(origin: ValueOrigin) -> Self {
        Self {
            origin,
            marks: Marks::NONE,
        }
    }

    /// Whether it is data.
    pub fn is_data(self) -> bool {
        self.origin.is_data()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TextRun {
    start: usize,
    provenance: Provenance,
}

/// A text. See the head of this file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Text {
    bytes: Vec<u8>,
    first: Option<Provenance>,
    /// Runs behind the first one, by where they begin.
    others: Vec<TextRun>,
}

impl Text {
    /// The empty text, which is the author's.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            first: None,
            others: Vec::new(),
        }
    }

    /// A text of one provenance.
    pub fn of(bytes: impl Into<Vec<u8>>, provenance: Provenance) -> Self {
        let bytes = bytes.into();
        let is_nothing = bytes.is_empty() && !provenance.is_data();
        Self {
            bytes,
            first: (!is_nothing).then_some(provenance),
            others: Vec::new(),
        }
    }

    /// What the author wrote, or what was counted.
    pub fn of_macro(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(bytes, Provenance::MACRO)
    }

    /// A number that was counted.
    pub fn of_count(count: impl ToString) -> Self {
        Self::of_macro(count.to_string())
    }

    /// Data from there.
    pub fn of_data(bytes: impl Into<Vec<u8>>, origin: ValueOrigin) -> Self {
        Self::of(bytes, Provenance::of(origin))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As a string, with a replacement for what is not UTF-8.
    pub fn to_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether any part of it is data, were it empty.
    pub fn has_data(&self) -> bool {
        self.provenances().any(Provenance::is_data)
    }

    /// The origin of its first data.
    pub fn data_origin(&self) -> Option<ValueOrigin> {
        let mut origins = self.provenances().map(|provenance| provenance.origin);
        origins.find(|origin| origin.is_data())
    }

    fn provenances(&self) -> impl Iterator<Item = Provenance> {
        let others = self.others.iter().map(|run| run.provenance);
        self.first.into_iter().chain(others)
    }

    /// The parts of it, in order.
    pub fn runs(&self) -> impl Iterator<Item = (&[u8], Provenance)> {
        let starts = self.others.iter().map(|run| run.start);
        let ends = starts.chain(std::iter::once(self.bytes.len()));
        let mut start = 0;
        self.provenances().zip(ends).map(move |(provenance, end)| {
            let bytes = &self.bytes[start..end];
            start = end;
            (bytes, provenance)
        })
    }

    /// Adds bytes of this provenance.
    pub fn push(&mut self, bytes: &[u8], provenance: Provenance) {
        if bytes.is_empty() && !provenance.is_data() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let last = self.others.last().map(|run| run.provenance).or(self.first);
        match last {
            None => self.first = Some(provenance),
            Some(last) if last == provenance => {}
            Some(_) => self.others.push(TextRun { start, provenance }),
        }
    }

    /// Adds what the author wrote.
    pub fn push_macro(&mut self, bytes: &[u8]) {
        self.push(bytes, Provenance::MACRO);
    }

    /// Adds a text that is of no use elsewhere.
    pub fn append(&mut self, other: Text) {
        match self.first {
            None => *self = other,
            Some(_) => self.push_text(&other),
        }
    }

    /// Adds another text.
    pub fn push_text(&mut self, other: &Text) {
        if self.first.is_none() {
            return self.clone_from(other);
        }
        for (bytes, provenance) in other.runs() {
            self.push(bytes, provenance);
        }
    }

    /// Some bytes of it. Parts keep their provenance; a mark is lost where an escape is cut.
    pub fn slice(&self, range: Range<usize>) -> Text {
        let mut slice = Text::new();
        let skipped = self.others.partition_point(|run| run.start <= range.start);
        let mut start = match skipped.checked_sub(1) {
            None => 0,
            Some(last) => self.others[last].start,
        };
        let others = &self.others[skipped..];
        let ends = others.iter().map(|run| run.start);
        let ends = ends.chain(std::iter::once(self.bytes.len()));
        let provenances = self.provenances().skip(skipped);
        for (provenance, end) in provenances.zip(ends) {
            if start >= range.end {
                break;
            }
            let bytes = &self.bytes[start..end];
            let from = range.start.clamp(start, end) - start;
            let to = range.end.clamp(start, end) - start;
            let is_inner = bytes.is_empty() && range.start < start;
            if from < to || is_inner {
                let is_cut = cuts_escape(bytes, provenance.marks, from)
                    || cuts_escape(bytes, provenance.marks, to);
                let kept = match is_cut {
                    true => Provenance::of(provenance.origin),
                    false => provenance,
                };
                slice.push(&bytes[from..to], kept);
            }
            start = end;
        }
        slice
    }

    /// The same bytes without any mark.
    pub fn without_marks(&self) -> Text {
        let mut text = Text::new();
        for (bytes, provenance) in self.runs() {
            text.push(bytes, Provenance::of(provenance.origin));
        }
        text
    }

    /// As it is; or, if nothing is left of it, as nothing of data from there.
    pub fn or_nothing_of(self, origin: Option<ValueOrigin>) -> Text {
        match (self.first, origin) {
            (None, Some(origin)) => Text::of_data("", origin),
            _ => self,
        }
    }

    /// Encodes each part of data and gives it a mark. The author's parts are encoded without one.
    pub fn encode(&self, mark: Marks, encode: impl Fn(&[u8], &mut Vec<u8>)) -> Text {
        let mut text = Text::new();
        let mut encoded = Vec::new();
        for (bytes, provenance) in self.runs() {
            encoded.clear();
            encode(bytes, &mut encoded);
            let marks = match provenance.is_data() {
                true => mark,
                false => Marks::NONE,
            };
            let origin = provenance.origin;
            text.push(&encoded, Provenance { origin, marks });
        }
        text
    }

    /// How many characters it has: bytes that do not continue a character of UTF-8.
    pub fn char_count(&self) -> usize {
        char_count(&self.bytes)
    }

    /// Where the character with this index begins; the end if there are fewer.
    pub fn char_start(&self, index: usize) -> usize {
        let starts = self.bytes.iter().enumerate();
        let mut starts = starts.filter(|(_, byte)| is_char_start(**byte));
        starts.nth(index).map_or(self.bytes.len(), |(at, _)| at)
    }
}

pub(crate) fn char_count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| is_char_start(**byte)).count()
}

fn is_char_start(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Bytes of the longest reference that is made here.
const REFERENCE_BYTES_MAX: usize = 6;

/// Whether an escape of such a text may go across this place. It looks at a few bytes only: where
/// it is not sure it says yes, and a mark is lost that was right.
fn cuts_escape(bytes: &[u8], marks: Marks, at: usize) -> bool {
    if at == 0 || at == bytes.len() {
        return false;
    }
    let last = |count: usize| &bytes[at.saturating_sub(count)..at];
    let reference = last(REFERENCE_BYTES_MAX);
    let in_reference = marks.has(Marks::HTML)
        && memchr::memrchr(b'&', reference).is_some_and(|amp| !reference[amp..].contains(&b';'));
    let in_percent = marks.has(Marks::URL) && last(2).contains(&b'%');
    let in_quotes = marks.has(Marks::QUOTED) && bytes[at - 1] == b'\'' && bytes[at] == b'\'';
    in_reference || in_percent || in_quotes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_who_made_them_and_lose_a_mark_that_is_cut() {
        let mut text = Text::of_macro("ab");
        let marks = Marks::HTML;
        let origin = ValueOrigin::Client;
        text.push(b"x&lt;y", Provenance { origin, marks });
        let whole = text.slice(1..8);
        let runs: Vec<_> = whole.runs().collect();
        assert_eq!(runs[0], (&b"b"[..], Provenance::MACRO));
        assert_eq!(runs[1], (&b"x&lt;y"[..], Provenance { origin, marks }));
        let cut = text.slice(2..5);
        let runs: Vec<_> = cut.runs().collect();
        assert_eq!(runs, [(&b"x&l"[..], Provenance::of(origin))]);
    }

    #[test]
    fn a_slice_takes_the_runs_it_touches_and_no_others() {
        let mut text = Text::of_data("ab", ValueOrigin::Client);
        text.push_macro(b"cd");
        text.push(b"", Provenance::of(ValueOrigin::Database));
        text.push_macro(b"ef");
        for start in 0..=6 {
            for end in start..=6 {
                let slice = text.slice(start..end);
                assert_eq!(slice.bytes(), &b"abcdef"[start..end]);
                assert_eq!(
                    slice.has_data(),
                    start < 2 && end > start || start < 4 && end > 4
                );
            }
        }
        let nothing = text.slice(2..2).or_nothing_of(text.data_origin());
        assert_eq!(nothing, Text::of_data("", ValueOrigin::Client));
    }
}
