//! Each thread's own view of the store: found without a lock, with heads prepared for this thread.
//!
//! A thread has views of what it is asked for again and again, and of so many entries at most; the
//! others it finds in the store each time.

use std::borrow::Borrow;
use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hob_http::PreparedHead;

use crate::cache::entry::CachedFile;
use crate::cache::store::Store;

/// A thread's view.
#[derive(Default)]
pub struct Local {
    views: HashSet<ViewByKey, RandomState>,
    /// The same ones, in the order they came: for who goes through them by and by.
    order: Vec<Rc<CachedFileView>>,
    /// The place of the next one that may have to leave for a newcomer.
    hand: usize,
    /// Entries that there was no room for.
    newcomers: usize,
    departures_seen: u64,
    swept_ms: u64,
}

/// One entry with what this thread made for it.
pub struct CachedFileView {
    /// The entry.
    pub entry: Arc<CachedFile>,
    /// Prepared heads: the file as it is, then by coding.
    pub heads: [OnceCell<Rc<PreparedHead>>; 4],
    /// How often it was asked for and at hand, as far as the entry does not know it yet.
    hits: Cell<u64>,
    /// Its place in the order of its thread's views.
    place: Cell<usize>,
    /// It was asked for since its last turn to leave.
    is_used: Cell<bool>,
}

/// A view, found by the key of its entry.
struct ViewByKey(Rc<CachedFileView>);

impl Borrow<[u8]> for ViewByKey {
    fn borrow(&self) -> &[u8] {
        &self.0.entry.key
    }
}

impl Hash for ViewByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.entry.key.hash(state);
    }
}

impl PartialEq for ViewByKey {
    fn eq(&self, other: &ViewByKey) -> bool {
        self.0.entry.key == other.0.entry.key
    }
}

impl Eq for ViewByKey {}

impl CachedFileView {
    /// Nothing prepared and no hit yet.
    pub fn new(entry: Arc<CachedFile>) -> CachedFileView {
        CachedFileView {
            entry,
            heads: Default::default(),
            hits: Cell::new(0),
            place: Cell::new(0),
            is_used: Cell::new(false),
        }
    }

    /// It was asked for, and was at hand. An addition in memory that only this thread writes: the
    /// entry hears of it when somebody asks.
    pub fn count_hit(&self) {
        self.hits.set(self.hits.get() + 1);
        self.is_used.set(true);
    }

    fn hand_over_hits(&self) {
        match self.hits.take() {
            0 => {}
            hits => self.entry.add_hits(hits),
        }
    }
}

impl Drop for CachedFileView {
    fn drop(&mut self) {
        self.hand_over_hits();
    }
}

/// How often, at most, retired entries are looked for, in milliseconds, as long as few have left.
const SWEEP_MS: u64 = 100;
/// Views whose hits are handed over in one piece: about 20 microseconds.
pub const HANDED_OVER_AT_ONCE: usize = 1024;
/// Departures, at least, after which they are looked for at once.
const DEPARTURES_MIN: u64 = 64;
/// Views of a thread, at most: some 5 MiB with a prepared head each.
const VIEWS_MAX: usize = 8192;
/// Views that are looked at to find one that leaves for a newcomer.
const LOOKED_AT: usize = 2;
/// When there is no room, one newcomer of so many is let in: what is asked for again and again is
/// one of them soon, and the others would only push each other out.
const NEWCOMERS_FOR_ONE: usize = 8;

impl Local {
    /// The view of a key, unless its entry has been retired.
    pub fn find(&self, key: &[u8]) -> Option<&Rc<CachedFileView>> {
        let ViewByKey(view) = self.views.get(key)?;
        (!view.entry.is_retired()).then_some(view)
    }

    /// Makes a view of an entry. It is kept if there is room, or one that is asked for less leaves.
    pub fn insert(&mut self, entry: Arc<CachedFile>) -> Rc<CachedFileView> {
        let view = Rc::new(CachedFileView::new(entry));
        let place = match self.views.take(&*view.entry.key) {
            Some(ViewByKey(before)) => before.place.get(),
            None if self.order.len() < VIEWS_MAX => self.order.len(),
            None => match self.place_of_unused() {
                Some(place) => place,
                None => return view,
            },
        };
        view.place.set(place);
        match self.order.get_mut(place) {
            Some(before) => {
                self.views.remove(&*before.entry.key);
                *before = Rc::clone(&view);
            }
            None => self.order.push(Rc::clone(&view)),
        }
        self.views.insert(ViewByKey(Rc::clone(&view)));
        debug_assert_eq!(self.views.len(), self.order.len());
        view
    }

    /// The place of a view that was not asked for since its last turn, if one of the next is such.
    fn place_of_unused(&mut self) -> Option<usize> {
        self.newcomers += 1;
        if !self.newcomers.is_multiple_of(NEWCOMERS_FOR_ONE) {
            return None;
        }
        for _ in 0..LOOKED_AT {
            let place = self.hand % self.order.len().max(1);
            self.hand = place + 1;
            if !self.order.get(place)?.is_used.replace(false) {
                return Some(place);
            }
        }
        None
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
        let mut place = 0;
        self.order.retain(|view| {
            // Asked once: it may be retired between two looks.
            if view.entry.is_retired() {
                self.views.remove(&*view.entry.key);
                return false;
            }
            view.place.set(place);
            place += 1;
            true
        });
        debug_assert_eq!(self.views.len(), self.order.len());
    }

    /// How many views there are.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// Tells entries how often they were asked for here: those of [`HANDED_OVER_AT_ONCE`] views
    /// from this place on. Costs some 20 ns for each view, so it is done when an operator looks,
    /// and other work goes on between two pieces. Who goes from the last piece to the first misses
    /// none that was there: places only ever get smaller.
    pub fn hand_over_hits(&self, first: usize) {
        let views = self.order.iter().skip(first).take(HANDED_OVER_AT_ONCE);
        views.for_each(|view| view.hand_over_hits());
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.views.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::entry::{CachedFileParts, write_key};

    fn entry() -> Arc<CachedFile> {
        entry_of(b"a")
    }

    fn entry_of(path: &[u8]) -> Arc<CachedFile> {
        let mut key = Vec::new();
        write_key(1, path, &mut key);
        Arc::new(CachedFile::new(
            CachedFileParts {
                key: key.into_boxed_slice(),
                index: None,
                media_type: "".into(),
                modified_secs: 0,
                modified_text: [b' '; 29],
                is_settled: true,
                varies: false,
                may_compress: false,
                stored: Box::default(),
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
        threads[0].hand_over_hits(0);
        threads[0].hand_over_hits(0);
        assert_eq!(entry.hits(), 3);
        // A thread that lets go of its views loses none.
        threads[1].clear();
        drop(threads);
        assert_eq!(entry.hits(), 6);
    }

    #[test]
    fn views_are_bounded_and_what_is_asked_for_stays() {
        let mut local = Local::default();
        let name = |number: usize| number.to_string().into_bytes();
        let hot: Vec<_> = (0..100).map(|number| entry_of(&name(number))).collect();
        for entry in &hot {
            local.insert(Arc::clone(entry)).count_hit();
        }
        for number in 100..3 * VIEWS_MAX {
            if number % 1000 == 0 {
                hot.iter()
                    .filter_map(|entry| local.find(&entry.key))
                    .for_each(|view| view.count_hit());
            }
            let entry = entry_of(&name(number));
            assert!(Arc::ptr_eq(&local.insert(Arc::clone(&entry)).entry, &entry));
            assert!(local.count() <= VIEWS_MAX);
        }
        assert_eq!(local.count(), VIEWS_MAX);
        assert!(hot.iter().all(|entry| local.find(&entry.key).is_some()));
        // What left is held by nobody, and what it counted is told.
        let first = entry_of(b"first");
        local.clear();
        local.insert(Arc::clone(&first)).count_hit();
        for number in 0..3 * VIEWS_MAX * NEWCOMERS_FOR_ONE {
            local.insert(entry_of(&name(number)));
        }
        assert_eq!((Arc::strong_count(&first), first.hits()), (1, 1));
    }

    #[test]
    fn hits_are_handed_over_in_pieces_and_none_is_missed_when_entries_leave_meanwhile() {
        const COUNT: usize = 3 * HANDED_OVER_AT_ONCE + 7;
        let mut local = Local::default();
        let name = |number: usize| number.to_string().into_bytes();
        let entries: Vec<_> = (0..COUNT).map(|number| entry_of(&name(number))).collect();
        for entry in &entries {
            local.insert(Arc::clone(entry)).count_hit();
        }
        // One that is taken again stands where it stood.
        local.insert(Arc::clone(&entries[5])).count_hit();
        assert_eq!(local.count(), COUNT);
        let handed =
            |entries: &[Arc<CachedFile>]| entries.iter().filter(|one| one.hits() > 0).count();
        local.hand_over_hits(3 * HANDED_OVER_AT_ONCE);
        assert_eq!(handed(&entries[6..]), 7);
        local.hand_over_hits(2 * HANDED_OVER_AT_ONCE);
        assert_eq!(handed(&entries[6..]), 7 + HANDED_OVER_AT_ONCE);
        let store = Store::new(1 << 30, 1000);
        for entry in entries.iter().take(100) {
            assert!(store.insert(Arc::clone(entry)));
            store.remove(entry);
        }
        local.sweep(&store, 1_000_000);
        assert_eq!(local.count(), COUNT - 100);
        local.hand_over_hits(HANDED_OVER_AT_ONCE);
        local.hand_over_hits(0);
        assert_eq!(handed(&entries), COUNT);
        assert_eq!((entries[5].hits(), entries[6].hits()), (2, 1));
        let local_view = local.find(&entries[200].key).unwrap();
        assert_eq!(local_view.place.get(), 100);
    }
}
