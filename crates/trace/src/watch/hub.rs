//! All watchers of a server, shared by its threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mutex::Mutex;
use crate::watch::{Hidden, WATCHERS_MAX, WatchTerms, Watcher};

/// All watchers.
#[derive(Default)]
pub struct Hub {
    /// Moves whenever a watcher comes or goes.
    generation: AtomicU64,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    watchers: [Option<Arc<Watcher>>; WATCHERS_MAX],
    /// Where the next one is looked for: a place that was left is taken again as late as possible.
    next: usize,
    refused: u64,
    dropped: u64,
    is_over: bool,
}

/// Why somebody may not watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There are as many watchers as may be.
    Full,
    /// The server ends, and whoever watches would see nothing of the one that follows.
    Over,
}

impl Hub {
    /// Lets somebody watch from now on.
    ///
    /// # Errors
    /// There are [`WATCHERS_MAX`] already, or [`Hub::end_all`] was called.
    pub fn add(&self, terms: WatchTerms, hidden: Hidden) -> Result<Arc<Watcher>, Refused> {
        let mut slots = self.slots.lock();
        if slots.is_over {
            return Err(Refused::Over);
        }
        let places = (0..WATCHERS_MAX).map(|step| (slots.next + step) % WATCHERS_MAX);
        let Some(slot) = places
            .into_iter()
            .find(|slot| slots.watchers[*slot].is_none())
        else {
            slots.refused += 1;
            return Err(Refused::Full);
        };
        let watcher = Arc::new(Watcher::new(terms, hidden, slot as u32));
        slots.watchers[slot] = Some(Arc::clone(&watcher));
        slots.next = (slot + 1) % WATCHERS_MAX;
        drop(slots);
        self.generation.fetch_add(1, Ordering::Release);
        Ok(watcher)
    }

    /// Somebody watches no more.
    pub fn remove(&self, watcher: &Arc<Watcher>) {
        let mut slots = self.slots.lock();
        slots.dropped += watcher.dropped_so_far();
        let place = &mut slots.watchers[watcher.slot as usize];
        if place
            .as_ref()
            .is_some_and(|other| Arc::ptr_eq(other, watcher))
        {
            *place = None;
        }
        drop(slots);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The server ends: so do all who watch, and nobody begins.
    pub fn end_all(&self) {
        let mut slots = self.slots.lock();
        slots.is_over = true;
        slots
            .watchers
            .iter()
            .flatten()
            .for_each(|watcher| watcher.end());
    }

    /// How many watch.
    pub fn count(&self) -> usize {
        self.slots.lock().watchers.iter().flatten().count()
    }

    /// How many were refused.
    pub fn refused(&self) -> u64 {
        self.slots.lock().refused
    }

    /// Events that did not fit, of all watchers there were.
    pub fn dropped(&self) -> u64 {
        let slots = self.slots.lock();
        let now = slots
            .watchers
            .iter()
            .flatten()
            .map(|watcher| watcher.dropped_so_far());
        slots.dropped + now.sum::<u64>()
    }

    /// A number that moves when watchers come or go.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn watchers(&self) -> [Option<Arc<Watcher>>; WATCHERS_MAX] {
        self.slots.lock().watchers.clone()
    }
}
