//! What is kept: sealed segments, bounded by bytes and time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::segment::{Extent, HistorySegment, SEGMENT_BYTES, SegmentOrigin};

use crate::mutex::Mutex;

/// Buffers of full segments that are kept for the next ones.
const SPARE_BUFFERS_MAX: usize = 8;
/// Number of the first segment of this process; those from a file have smaller ones.
pub(super) const NUMBER_FIRST: u64 = 1 << 40;

/// What is kept, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Memory for it, in bytes; 0 keeps nothing.
    pub bytes_max: u64,
    /// How old requests get.
    pub time_max: Duration,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Requests.
    pub count: u64,
    /// Memory they take, in bytes.
    pub bytes: u64,
    /// When the oldest was finished, as Unix time in milliseconds; 0 when there is none.
    pub oldest_unix_ms: u64,
}

/// The history of a server.
#[derive(Debug)]
pub struct RequestHistory {
    origin: SegmentOrigin,
    is_on: AtomicBool,
    /// Segments that left memory before the file had them.
    unwritten: AtomicU64,
    pub(super) state: Mutex<HistoryState>,
}

#[derive(Debug)]
pub(super) struct HistoryState {
    pub(super) retention: Retention,
    /// Sealed segments, in the order they were sealed.
    segments: VecDeque<Arc<HistorySegment>>,
    bytes: u64,
    count: u64,
    next_number: u64,
    /// The smallest number so far.
    first_number: u64,
    spare: Vec<Vec<u8>>,
    /// The last segment that the file has; none where there is no file.
    written: Option<u64>,
}

impl RequestHistory {
    /// Nothing kept yet.
    pub fn new(origin: SegmentOrigin, retention: Retention) -> RequestHistory {
        RequestHistory {
            origin,
            is_on: AtomicBool::new(retention.bytes_max > 0),
            unwritten: AtomicU64::new(0),
            state: Mutex::new(HistoryState {
                retention,
                segments: VecDeque::new(),
                bytes: 0,
                count: 0,
                next_number: NUMBER_FIRST,
                first_number: NUMBER_FIRST,
                spare: Vec::new(),
                written: None,
            }),
        }
    }

    /// Keeps so much from now on.
    pub fn set_retention(&self, retention: Retention) {
        self.is_on.store(retention.bytes_max > 0, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.retention = retention;
        let gone = state.evict(0, &self.unwritten);
        drop(state);
        drop(gone);
    }

    /// Anything is kept at all.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Whose requests are appended.
    pub fn origin(&self) -> SegmentOrigin {
        self.origin
    }

    /// How much is kept, without what is still in open segments.
    pub fn holdings(&self) -> Holdings {
        let state = self.state.lock();
        let first = state.segments.front();
        Holdings {
            count: state.count,
            bytes: state.bytes,
            oldest_unix_ms: first.map_or(0, |segment| segment.extent.first_unix_ms),
        }
    }

    /// Lets go of what is too old at this moment.
    pub fn expire(&self, now_unix_ms: u64) {
        let mut state = self.state.lock();
        let time_ms = u64::try_from(state.retention.time_max.as_millis()).unwrap_or(u64::MAX);
        let gone = state.evict(now_unix_ms.saturating_sub(time_ms), &self.unwritten);
        drop(state);
        drop(gone);
    }

    /// Segments lost to the file because they left memory first.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    pub(super) fn take_in(&self, bytes: Vec<u8>, extent: Extent) {
        let mut state = self.state.lock();
        let number = state.next_number;
        state.next_number += 1;
        let segment = HistorySegment {
            bytes,
            extent,
            origin: self.origin,
            number,
        };
        state.bytes += segment.memory_bytes();
        state.count += u64::from(extent.count);
        state.segments.push_back(Arc::new(segment));
        let gone = state.evict(0, &self.unwritten);
        drop(state);
        // Memory is given back outside the lock.
        drop(gone);
    }

    /// Puts older segments, in their order, before all that is there.
    pub(super) fn put_before(&self, older: Vec<HistorySegment>) {
        let mut state = self.state.lock();
        for mut segment in older.into_iter().rev() {
            let bytes = state.bytes + segment.memory_bytes();
            if bytes > state.retention.bytes_max {
                break;
            }
            state.first_number -= 1;
            segment.number = state.first_number;
            state.bytes = bytes;
            state.count += u64::from(segment.extent.count);
            state.segments.push_front(Arc::new(segment));
        }
    }

    pub(super) fn buffer(&self) -> Vec<u8> {
        let spare = self.state.lock().spare.pop();
        spare.unwrap_or_else(|| Vec::with_capacity(SEGMENT_BYTES))
    }

    /// Those that the file does not have, oldest first. From now on there is a file.
    pub(super) fn unwritten_segments(&self) -> Vec<Arc<HistorySegment>> {
        let mut state = self.state.lock();
        let written = *state.written.get_or_insert(NUMBER_FIRST - 1);
        let newest_first = state.segments.iter().rev();
        let mut new: Vec<_> = newest_first
            .take_while(|segment| segment.number > written)
            .cloned()
            .collect();
        new.reverse();
        new
    }

    /// The file has all up to this number.
    pub(super) fn set_written(&self, number: u64) {
        self.state.lock().written = Some(number);
    }

    /// All sealed segments, oldest first.
    pub(super) fn segments(&self) -> Vec<Arc<HistorySegment>> {
        self.state.lock().segments.iter().cloned().collect()
    }

    /// The same, and the number that the next one will have.
    pub(super) fn arrivals(&self) -> (Vec<Arc<HistorySegment>>, u64) {
        let state = self.state.lock();
        (state.segments.iter().cloned().collect(), state.next_number)
    }
}

impl HistoryState {
    /// Takes out what there is no room for, or was finished before that time.
    fn evict(&mut self, before_unix_ms: u64, unwritten: &AtomicU64) -> Vec<Arc<HistorySegment>> {
        let mut gone = Vec::new();
        while let Some(oldest) = self.segments.front() {
            let is_old = oldest.extent.last_unix_ms < before_unix_ms;
            if self.bytes <= self.retention.bytes_max && !is_old {
                break;
            }
            let Some(oldest) = self.segments.pop_front() else {
                break;
            };
            if self.written.is_some_and(|written| oldest.number > written) {
                unwritten.fetch_add(1, Ordering::Relaxed);
            }
            self.bytes -= oldest.memory_bytes();
            self.count -= u64::from(oldest.extent.count);
            let is_spare = oldest.bytes.capacity() >= SEGMENT_BYTES;
            match Arc::try_unwrap(oldest) {
                Ok(mut segment) if is_spare && self.spare.len() < SPARE_BUFFERS_MAX => {
                    segment.bytes.clear();
                    self.spare.push(segment.bytes);
                }
                Ok(segment) => gone.push(Arc::new(segment)),
                // Somebody reads it; the memory goes with them.
                Err(segment) => gone.push(segment),
            }
        }
        gone
    }
}
