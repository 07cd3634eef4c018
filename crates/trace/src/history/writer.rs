//! A thread's end of the history: what it appends to, and when that is handed over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::kept::RequestHistory;
use super::segment::Open;
use crate::record::{Record, Texts};

/// How old the oldest entry of an open segment gets, in milliseconds, on a thread that is awake.
const OPEN_MS_MAX: u64 = 1000;

/// The end that finished requests go into; stays on its thread.
#[derive(Debug)]
pub struct HistoryWriter {
    history: Arc<RequestHistory>,
    open: Open,
    /// When the open segment's first entry came, in loop time.
    opened_ms: u64,
    waiting: Arc<PendingEntries>,
}

/// Tells whether a thread has entries that only it can hand over.
#[derive(Debug, Default)]
pub struct PendingEntries(AtomicBool);

impl PendingEntries {
    /// There are some.
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl HistoryWriter {
    /// Nothing pushed yet.
    pub fn new(history: &Arc<RequestHistory>) -> HistoryWriter {
        HistoryWriter {
            history: Arc::clone(history),
            open: Open::new(),
            opened_ms: 0,
            waiting: Arc::default(),
        }
    }

    /// What others can see of the open segment.
    pub fn waiting(&self) -> Arc<PendingEntries> {
        Arc::clone(&self.waiting)
    }

    /// Keeps a finished request. `now_ms` is the loop's time.
    #[inline]
    pub fn push(&mut self, record: &Record, texts: &Texts<'_>, now_ms: u64) {
        if !self.history.is_on() {
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
