//! What is counted of a host, by all threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A host's counts, and what threads choose among hosts by.
pub(super) struct HostCounters {
    /// The thread that started it.
    pub(super) thread: AtomicUsize,
    /// It takes runs.
    pub(super) is_up: AtomicBool,
    /// Its process, 0 while there is none or it is not known.
    pub(super) pid: AtomicU32,
    /// Starts of it.
    pub(super) starts: AtomicU64,
    /// Starts after which it was never ready.
    pub(super) failures: AtomicU64,
    /// Deaths after it had been ready.
    pub(super) crashes: AtomicU64,
    /// Runs it was given, and those whose end it has told.
    pub(super) forks: AtomicU64,
    pub(super) ends: AtomicU64,
    /// Runs that are not over.
    pub(super) running: AtomicUsize,
}

impl Default for HostCounters {
    fn default() -> HostCounters {
        HostCounters {
            // None yet.
            thread: AtomicUsize::new(usize::MAX),
            is_up: AtomicBool::default(),
            pid: AtomicU32::default(),
            starts: AtomicU64::default(),
            failures: AtomicU64::default(),
            crashes: AtomicU64::default(),
            forks: AtomicU64::default(),
            ends: AtomicU64::default(),
            running: AtomicUsize::default(),
        }
    }
}

impl HostCounters {
    /// One more run.
    pub(super) fn note_fork(&self) {
        self.forks.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// How much sooner than others it should be given a run: ready ones first, then those with the
    /// fewest.
    pub(super) fn load(&self) -> (bool, usize) {
        let is_down = !self.is_up.load(Ordering::Relaxed);
        (is_down, self.running.load(Ordering::Relaxed))
    }
}
