//! Each thread's own view of the store: found without a lock, with heads prepared for this thread.

use std::cell::OnceCell;
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
        let view = Rc::new(View {
            entry,
            heads: Default::default(),
        });
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

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.views.clear();
    }
}
