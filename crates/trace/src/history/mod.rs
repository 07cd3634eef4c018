//! The history: finished requests kept in memory by bytes and time, for whoever asks later.
//!
//! ```text
//! thread 0  push -> [open segment]  --full, a second old, or asked for--.
//! thread 1  push -> [open segment]  ------------------------------------+--> deque of sealed ones
//!                                                                       |      oldest .. newest
//! readers   take the sealed ones as they are, and stop nobody  <--------'          |
//! file      a background thread appends new ones to a ring file  <-----------------'
//! ```
//!
//! A push writes some 80 to 200 bytes into memory that only its thread sees; the lock of the deque
//! is taken once per segment. `entry` is one request as bytes, `segment` a stretch of them,
//! `filter` what somebody looks for, `search` looks, `file` keeps it over restarts.

mod entry;
mod file;
mod filter;
mod search;
mod segment;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use entry::Finished;
pub use file::{FILE_BYTES_MIN, HistoryFile, Loaded, is_frame};
pub use filter::{Filter, Statuses};
pub use search::{FOUND_MAX, Found, Page, Place, RequestId, Search};
pub use segment::{Origin, SEGMENT_BYTES, is_sound};

use crate::record::{Record, Texts};
use segment::{Open, Segment};

/// Buffers of full segments that are kept for the next ones.
const SPARE_BUFFERS_MAX: usize = 8;
/// Number of the first segment of this process; those from a file have smaller ones.
const NUMBER_FIRST: u64 = 1 << 40;
/// How old the oldest entry of an open segment gets, in milliseconds, on a thread that is awake.
const OPEN_MS_MAX: u64 = 1000;

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
pub struct History {
    origin: Origin,
    is_on: AtomicBool,
    /// Segments that left memory before the file had them.
    unwritten: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    retention: Retention,
    /// Sealed segments, in the order they were sealed.
    segments: VecDeque<Arc<Segment>>,
    bytes: u64,
    count: u64,
    next_number: u64,
    /// The smallest number so far.
    first_number: u64,
    spare: Vec<Vec<u8>>,
    /// The last segment that the file has; none where there is no file.
    written: Option<u64>,
}

impl History {
    /// Nothing kept yet.
    pub fn new(origin: Origin, retention: Retention) -> History {
        History {
            origin,
            is_on: AtomicBool::new(retention.bytes_max > 0),
            unwritten: AtomicU64::new(0),
            state: Mutex::new(State {
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
        let mut state = self.lock();
        state.retention = retention;
        let gone = state.evict(0, &self.unwritten);
        drop(state);
        drop(gone);
    }

    /// Whose requests are appended.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// How much is kept, without what is still in open segments.
    pub fn holdings(&self) -> Holdings {
        let state = self.lock();
        let first = state.segments.front();
        Holdings {
            count: state.count,
            bytes: state.bytes,
            oldest_unix_ms: first.map_or(0, |segment| segment.extent.first_unix_ms),
        }
    }

    /// Lets go of what is too old at this moment.
    pub fn expire(&self, now_unix_ms: u64) {
        let mut state = self.lock();
        let time_ms = u64::try_from(state.retention.time_max.as_millis()).unwrap_or(u64::MAX);
        let gone = state.evict(now_unix_ms.saturating_sub(time_ms), &self.unwritten);
        drop(state);
        drop(gone);
    }

    /// Segments lost to the file because they left memory first.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    fn take_in(&self, bytes: Vec<u8>, extent: segment::Extent) {
        let mut state = self.lock();
        let number = state.next_number;
        state.next_number += 1;
        let segment = Segment {
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
    fn put_before(&self, older: Vec<Segment>) {
        let mut state = self.lock();
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

    fn buffer(&self) -> Vec<u8> {
        let spare = self.lock().spare.pop();
        spare.unwrap_or_else(|| Vec::with_capacity(SEGMENT_BYTES))
    }

    /// Those that the file does not have, oldest first. From now on there is a file.
    fn unwritten_segments(&self) -> Vec<Arc<Segment>> {
        let mut state = self.lock();
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
    fn set_written(&self, number: u64) {
        self.lock().written = Some(number);
    }

    /// All sealed segments, oldest first.
    fn segments(&self) -> Vec<Arc<Segment>> {
        self.lock().segments.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes out what there is no room for, or was finished before that time.
    fn evict(&mut self, before_unix_ms: u64, unwritten: &AtomicU64) -> Vec<Arc<Segment>> {
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

/// The end that finished requests go into; stays on its thread.
#[derive(Debug)]
pub struct HistoryWriter {
    history: Arc<History>,
    open: Open,
    /// When the open segment's first entry came, in loop time.
    opened_ms: u64,
    waiting: Arc<Waiting>,
}

/// Tells whether a thread has entries that only it can hand over.
#[derive(Debug, Default)]
pub struct Waiting(AtomicBool);

impl Waiting {
    /// There are some.
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl HistoryWriter {
    /// Nothing pushed yet.
    pub fn new(history: &Arc<History>) -> HistoryWriter {
        HistoryWriter {
            history: Arc::clone(history),
            open: Open::new(),
            opened_ms: 0,
            waiting: Arc::default(),
        }
    }

    /// What others can see of the open segment.
    pub fn waiting(&self) -> Arc<Waiting> {
        Arc::clone(&self.waiting)
    }

    /// Keeps a finished request. `now_ms` is the loop's time.
    #[inline]
    pub fn push(&mut self, record: &Record, texts: &Texts<'_>, now_ms: u64) {
        if !self.history.is_on.load(Ordering::Relaxed) {
            return;
        }
        if self.open.is_empty() {
            self.begin(now_ms);
        }
        self.open.push(record, texts);
        if self.open.is_full() {
            self.hand_over();
        }
    }

    #[cold]
    fn begin(&mut self, now_ms: u64) {
        self.opened_ms = now_ms;
        self.waiting.0.store(true, Ordering::Relaxed);
        if !self.open.has_memory() {
            self.open.give_memory(self.history.buffer());
        }
    }

    /// Hands over what is a second old. Called once per turn of the thread's loop.
    #[inline]
    pub fn turn(&mut self, now_ms: u64) {
        if now_ms.wrapping_sub(self.opened_ms) >= OPEN_MS_MAX && !self.open.is_empty() {
            self.hand_over();
        }
    }

    /// Hands over what there is: readers see it from now on.
    #[cold]
    pub fn hand_over(&mut self) {
        if self.open.is_empty() {
            return;
        }
        self.waiting.0.store(false, Ordering::Relaxed);
        let (bytes, extent) = self.open.take();
        self.history.take_in(bytes, extent);
    }
}

impl Drop for HistoryWriter {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[cfg(test)]
mod tests;
