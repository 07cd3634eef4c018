//! A stretch of one thread's finished requests: open while the thread appends, then sealed for
//! ever.

use super::entry::{self, ENTRY_BYTES_MAX, Finished, Memory, PreviousTexts};
use crate::record::{Record, Texts};

/// Bytes of a full segment.
pub const SEGMENT_BYTES: usize = 64 * 1024;
/// What a sealed segment takes beside its entries, about.
pub(super) const SEGMENT_EXTRA_BYTES: usize = 256;
const _: () = assert!(ENTRY_BYTES_MAX * 4 < SEGMENT_BYTES);

/// What is known of a segment without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Starts are told from here, in Unix milliseconds.
    pub(super) base_unix_ms: u64,
    /// When the first and the last of it were finished, in Unix milliseconds.
    pub(super) first_unix_ms: u64,
    pub(super) last_unix_ms: u64,
    /// The longest total, in microseconds.
    pub(super) slowest_us: u64,
    /// Entries.
    pub(super) count: u32,
}

impl Extent {
    const NOTHING: Extent = Extent {
        base_unix_ms: 0,
        first_unix_ms: u64::MAX,
        last_unix_ms: 0,
        slowest_us: 0,
        count: 0,
    };

    #[inline]
    fn take_in(&mut self, record: &Record) {
        let finished_ms = record
            .started_unix_ms
            .saturating_add(record.total_us / 1000);
        self.first_unix_ms = self.first_unix_ms.min(finished_ms);
        self.last_unix_ms = self.last_unix_ms.max(finished_ms);
        self.slowest_us = self.slowest_us.max(record.total_us);
        self.count += 1;
    }
}

/// A segment that a thread appends to.
#[derive(Debug)]
pub(super) struct Open {
    bytes: Vec<u8>,
    extent: Extent,
    memory: Memory,
}

impl Open {
    /// Nothing in it; memory comes with the first entry.
    pub(super) fn new() -> Open {
        Open {
            bytes: Vec::new(),
            extent: Extent::NOTHING,
            memory: Memory::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extent.count == 0
    }

    /// Another entry may not fit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() > SEGMENT_BYTES - ENTRY_BYTES_MAX
    }

    pub(super) fn has_memory(&self) -> bool {
        self.bytes.capacity() > 0
    }

    /// Memory to append to.
    pub(super) fn give_memory(&mut self, bytes: Vec<u8>) {
        debug_assert!(bytes.is_empty() && bytes.capacity() >= SEGMENT_BYTES);
        self.bytes = bytes;
    }

    #[inline]
    pub(super) fn push(&mut self, record: &Record, texts: &Texts<'_>) {
        if self.is_empty() {
            self.extent.base_unix_ms = record.started_unix_ms;
        }
        self.extent.take_in(record);
        let (base_unix_ms, memory) = (self.extent.base_unix_ms, &mut self.memory);
        entry::encode(record, texts, base_unix_ms, memory, &mut self.bytes);
    }

    /// What was appended, and an empty segment in its place: a copy when it is short, so that the
    /// memory stays; else the memory goes along.
    pub(super) fn take(&mut self) -> (Vec<u8>, Extent) {
        let extent = std::mem::replace(&mut self.extent, Extent::NOTHING);
        self.memory = Memory::default();
        if self.bytes.len() > SEGMENT_BYTES / 2 {
            return (std::mem::take(&mut self.bytes), extent);
        }
        let copy = self.bytes.as_slice().to_vec();
        self.bytes.clear();
        (copy, extent)
    }
}

/// Whose requests are in a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOrigin {
    /// When the keeper first started, in Unix milliseconds: tells the ids of one start of hob from
    /// those of another.
    pub run: u64,
    /// Which of the servers of that keeper.
    pub server: u64,
}

/// A stretch of finished requests that does not change any more.
#[derive(Debug)]
pub(super) struct HistorySegment {
    pub(super) bytes: Vec<u8>,
    pub(super) extent: Extent,
    pub(super) origin: SegmentOrigin,
    /// Counts segments of a history, from 1.
    pub(super) number: u64,
}

impl HistorySegment {
    /// Takes bytes from elsewhere, if they are entries from first to last.
    pub(super) fn check(
        bytes: Vec<u8>,
        base_unix_ms: u64,
        origin: SegmentOrigin,
    ) -> Option<HistorySegment> {
        let mut extent = Extent::NOTHING;
        extent.base_unix_ms = base_unix_ms;
        let mut entries = Entries::new(&bytes, base_unix_ms);
        entries
            .by_ref()
            .for_each(|(_, finished)| extent.take_in(&finished.record));
        let is_whole = entries.rest.is_empty() && extent.count > 0;
        is_whole.then_some(HistorySegment {
            bytes,
            extent,
            origin,
            number: 0,
        })
    }

    /// Its entries, oldest first, each with its offset.
    pub(super) fn entries(&self) -> Entries<'_> {
        Entries::new(&self.bytes, self.extent.base_unix_ms)
    }

    /// Gives every entry the series that `new` says.
    pub(super) fn renumber(&mut self, new: impl Fn(u16) -> u16) {
        let places: Vec<(usize, u16)> = self
            .entries()
            .map(|(at, finished)| (at, finished.record.series))
            .collect();
        for (at, series) in places {
            entry::set_series(&mut self.bytes[at..], new(series));
        }
    }

    /// Memory it takes, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + SEGMENT_EXTRA_BYTES) as u64
    }
}

/// Entries in bytes, up to the end or the first that is none.
pub(super) struct Entries<'a> {
    rest: &'a [u8],
    offset: usize,
    base_unix_ms: u64,
    seen: PreviousTexts<'a>,
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8], base_unix_ms: u64) -> Entries<'a> {
        Entries {
            rest: bytes,
            offset: 0,
            base_unix_ms,
            seen: PreviousTexts::default(),
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (usize, Finished<'a>);

    fn next(&mut self) -> Option<(usize, Finished<'a>)> {
        let (finished, size) = entry::decode(self.rest, self.base_unix_ms, &mut self.seen)?;
        let at = self.offset;
        self.offset += size;
        self.rest = &self.rest[size..];
        Some((at, finished))
    }
}

/// Whether bytes are entries from first to last: for the fuzzer, to which anything may come.
pub fn is_sound(bytes: &[u8], base_unix_ms: u64) -> bool {
    HistorySegment::check(bytes.to_vec(), base_unix_ms, SegmentOrigin::default()).is_some()
}
