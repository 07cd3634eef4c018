//! Each thread's own view of the store: found without a lock, with heads prepared for this thread.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hob_http::Prepared;

use crate::cache::entry::Entry;
use crate::cache::store::Store;

/// A thread's view.
#[derive(Default)]
pub struct Local {
    views: HashMap<Box<[u8]>, Rc<View>, RandomState>,
    departures_seen: u64,
    swept_ms: u64,
}

/// One entry with what this thread made for it.
pub struct View {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Prepared heads: the file as it is, then by coding.
    pub heads: [OnceCell<Rc<Prepared>>; 4],
    /// How often it was asked for and at hand, as far as the entry does not know it yet.
    hits: Cell<u64>,
}

impl View {
    /// Nothing prepared and no hit yet.
    pub fn new(entry: Arc<Entry>) -> View {
        View {
            entry,
            heads: Default::default(),
            hits: Cell::new(0),
        }
    }

    /// It was asked for, and was at hand. An addition in memory that only this thread writes: the
    /// entry hears of it when somebody asks.
    pub fn count_hit(&self) {
        self.hits.set(self.hits.get() + 1);
    }

    fn hand_over_hits(&self) {
        match self.hits.take() {
            0 => {}
            hits => self.entry.add_hits(hits),
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.hand_over_hits();
    }
}

/// How often, at most, retired entries are looked for, in milliseconds, as long as few have left.
const SWEEP_MS: u64 = 100;
/// Departures, at least, after which they are looked for at once.
const DEPARTURES_MIN: u64 = 64;

impl Local {
    /// The view of a key, unless its entry has been retired.
    pub fn find(&self, key: &[u8]) -> Option<&Rc<View>> {
        self.views.get(key).filter(|view| !view.entry.is_retired())
    }

    /// Takes a view of an entry.
    pub fn insert(&mut self, entry: Arc<Entry>) -> Rc<View> {
        let key = entry.key.clone();
        let view = Rc::new(View::new(entry));
        self.views.insert(key, Rc::clone(&view));
        view
    }

    /// Lets go of retired entries now and then, so that their memory is freed.
    pub fn sweep(&mut self, store: &Store, now_ms: u64) {
        let departures = store.departures();
        let left = departures - self.departures_seen;
        // Looking costs the views there are: it is done when it gives a good part of them back.
        let is_much = left >= DEPARTURES_MIN.max(self.views.len() as u64 / 8);
        if left == 0 || (!is_much && now_ms < self.swept_ms + SWEEP_MS) {
            return;
        }
        self.departures_seen = departures;
        self.swept_ms = now_ms;
        self.views.retain(|_, view| !view.entry.is_retired());
    }

    /// Tells entries how often they were asked for here. Costs some 20 ns for each view, so it is
    /// done when an operator looks.
    pub fn hand_over_hits(&self) {
        self.views.values().for_each(|view| view.hand_over_hits());
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.views.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::entry::{Parts, write_key};

    fn entry() -> Arc<Entry> {
        let mut key = Vec::new();
        write_key(1, b"a", &mut key);
        Arc::new(Entry::new(
            Parts {
                key: key.into_boxed_slice(),
                stamps: Vec::new(),
                media_type: String::new(),
                modified_secs: 0,
                modified_text: [b' '; 29],
                is_settled: true,
                varies: false,
                may_compress: false,
                stored: Vec::new(),
                is_pinned: false,
            },
            0,
        ))
    }

    #[test]
    fn hits_of_all_threads_reach_the_entry_once() {
        let entry = entry();
        let mut threads = [Local::default(), Local::default()];
        for local in &mut threads {
            let view = local.insert(Arc::clone(&entry));
            (0..3).for_each(|_| view.count_hit());
        }
        assert_eq!(entry.hits(), 0);
        threads[0].hand_over_hits();
        threads[0].hand_over_hits();
        assert_eq!(entry.hits(), 3);
        // A thread that lets go of its views loses none.
        threads[1].clear();
        drop(threads);
        assert_eq!(entry.hits(), 6);
    }
}
