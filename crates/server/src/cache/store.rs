//! All entries under one budget of bytes.
//!
//! Eviction is S3-FIFO: newcomers stand in a short queue and leave it soon unless they are asked
//! for again; only then, or when they were thrown out recently, do they enter the long queue. So a
//! crawl that touches each file once passes through the short queue and leaves what is hot alone.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use crate::cache::entry::Entry;

/// The store. Threads come here only when their own view misses.
pub struct Store {
    state: Mutex<State>,
    hasher: RandomState,
    /// Moves whenever entries leave, so that threads look through their views.
    departures: AtomicU64,
    evictions: AtomicU64,
}

struct State {
    bytes_max: u64,
    bytes: u64,
    pinned_bytes: u64,
    small_bytes: u64,
    entries: HashMap<Box<[u8]>, Seat, RandomState>,
    small: VecDeque<Arc<Entry>>,
    main: VecDeque<Arc<Entry>>,
    ghosts: VecDeque<u64>,
    ghost_set: HashSet<u64, RandomState>,
}

struct Seat {
    entry: Arc<Entry>,
    is_small: bool,
    counted_bytes: u64,
}

/// What the store holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Entries.
    pub entries: usize,
    /// Bytes counted for them.
    pub bytes: u64,
    /// Of these, pinned.
    pub pinned_bytes: u64,
    /// The budget in bytes.
    pub bytes_max: u64,
    /// Entries thrown out to make room, so far.
    pub evictions: u64,
}

/// Keys of recently evicted entries remembered.
const GHOSTS_MAX: usize = 16 * 1024;

impl Store {
    /// An empty store with this budget, in bytes.
    pub fn new(bytes_max: u64) -> Store {
        let hasher = RandomState::default();
        Store {
            state: Mutex::new(State {
                bytes_max,
                bytes: 0,
                pinned_bytes: 0,
                small_bytes: 0,
                entries: HashMap::with_hasher(hasher.clone()),
                small: VecDeque::new(),
                main: VecDeque::new(),
                ghosts: VecDeque::new(),
                ghost_set: HashSet::with_hasher(hasher.clone()),
            }),
            hasher,
            departures: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of a key.
    pub fn find(&self, key: &[u8]) -> Option<Arc<Entry>> {
        let state = self.lock();
        let entry = &state.entries.get(key)?.entry;
        entry.warm_up();
        Some(Arc::clone(entry))
    }

    /// Takes an entry in; an older one of its key is retired. What does not fit is not kept:
    /// returns false then, and the entry serves only who brought it.
    pub fn insert(&self, entry: Arc<Entry>) -> bool {
        let bytes = entry.memory_bytes.load(Ordering::Relaxed);
        let mut state = self.lock();
        self.take_out(&mut state, &entry.key);
        if bytes + state.pinned_bytes > state.bytes_max {
            return false;
        }
        let key_hash = self.hasher.hash_one(&entry.key);
        let is_small = !entry.is_pinned && !state.ghost_set.remove(&key_hash);
        state.bytes += bytes;
        if entry.is_pinned {
            state.pinned_bytes += bytes;
        } else if is_small {
            state.small_bytes += bytes;
            state.small.push_back(Arc::clone(&entry));
        } else {
            state.main.push_back(Arc::clone(&entry));
        }
        let seat = Seat {
            entry: Arc::clone(&entry),
            is_small,
            counted_bytes: bytes,
        };
        state.entries.insert(entry.key.clone(), seat);
        self.make_room(&mut state);
        !entry.is_retired()
    }

    /// An entry has become larger by a representation made for it.
    pub fn grew(&self, entry: &Entry, bytes: u64) {
        let mut state = self.lock();
        let Some(seat) = state.entries.get_mut(&entry.key) else {
            return;
        };
        if !std::ptr::eq(Arc::as_ptr(&seat.entry), entry) {
            return;
        }
        seat.counted_bytes += bytes;
        let (is_small, is_pinned) = (seat.is_small, seat.entry.is_pinned);
        state.bytes += bytes;
        if is_pinned {
            state.pinned_bytes += bytes;
        } else if is_small {
            state.small_bytes += bytes;
        }
        self.make_room(&mut state);
    }

    /// Retires an entry whose file has changed or gone.
    pub fn remove(&self, entry: &Arc<Entry>) {
        let mut state = self.lock();
        if state
            .entries
            .get(&entry.key)
            .is_some_and(|seat| Arc::ptr_eq(&seat.entry, entry))
        {
            self.take_out(&mut state, &entry.key);
        }
        entry.retire();
    }

    /// Sets the budget, in bytes; entries leave until it is kept.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        let mut state = self.lock();
        state.bytes_max = bytes_max;
        self.make_room(&mut state);
    }

    /// Retires every entry.
    pub fn clear(&self) {
        let mut state = self.lock();
        for (_, seat) in state.entries.drain() {
            seat.entry.retire();
        }
        (state.bytes, state.pinned_bytes, state.small_bytes) = (0, 0, 0);
        state.small.clear();
        state.main.clear();
        self.departures.fetch_add(1, Ordering::Release);
    }

    /// What it holds.
    pub fn holdings(&self) -> Holdings {
        let state = self.lock();
        Holdings {
            entries: state.entries.len(),
            bytes: state.bytes,
            pinned_bytes: state.pinned_bytes,
            bytes_max: state.bytes_max,
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }

    /// A number that moves whenever entries leave.
    pub fn departures(&self) -> u64 {
        self.departures.load(Ordering::Acquire)
    }

    fn take_out(&self, state: &mut State, key: &[u8]) {
        let Some(seat) = state.entries.remove(key) else {
            return;
        };
        state.discount(&seat);
        seat.entry.retire();
        self.departures.fetch_add(1, Ordering::Release);
        // Its place in a queue is passed over when it comes to the front; but an empty store
        // forgets.
        if state.entries.is_empty() {
            state.small.clear();
            state.main.clear();
        }
    }

    /// Throws entries out until the budget is kept.
    fn make_room(&self, state: &mut State) {
        while state.bytes > state.bytes_max {
            let small_share = state.bytes_max / 10;
            let from_small = state.small_bytes > small_share || state.main.is_empty();
            let evicted = if from_small {
                self.step_small(state)
            } else {
                step_main(state)
            };
            match evicted {
                Some(entry) => {
                    self.evictions.fetch_add(1, Ordering::Relaxed);
                    self.take_out(state, &entry.key);
                }
                None if state.small.is_empty() && state.main.is_empty() => return,
                None => {}
            }
        }
    }

    /// Looks at the oldest newcomer: it leaves, or moves to the long queue.
    fn step_small(&self, state: &mut State) -> Option<Arc<Entry>> {
        let entry = state.small.pop_front()?;
        let seat = state.seat_of(&entry)?;
        if entry.heat.load(Ordering::Relaxed) > 1 {
            seat.is_small = false;
            let bytes = seat.counted_bytes;
            entry.heat.store(0, Ordering::Relaxed);
            state.small_bytes -= bytes;
            state.main.push_back(entry);
            return None;
        }
        let hash = self.hasher.hash_one(&entry.key);
        if state.ghost_set.insert(hash) {
            state.ghosts.push_back(hash);
        }
        while state.ghosts.len() > GHOSTS_MAX {
            if let Some(oldest) = state.ghosts.pop_front() {
                state.ghost_set.remove(&oldest);
            }
        }
        Some(entry)
    }
}

/// Looks at the oldest of the long queue: it leaves, or has another round.
fn step_main(state: &mut State) -> Option<Arc<Entry>> {
    let entry = state.main.pop_front()?;
    state.seat_of(&entry)?;
    let heat = entry.heat.load(Ordering::Relaxed);
    if heat > 0 {
        entry.heat.store(heat - 1, Ordering::Relaxed);
        state.main.push_back(entry);
        return None;
    }
    Some(entry)
}

impl State {
    /// The seat of this very entry; `None` when it left or was replaced.
    fn seat_of(&mut self, entry: &Arc<Entry>) -> Option<&mut Seat> {
        self.entries
            .get_mut(&entry.key)
            .filter(|seat| Arc::ptr_eq(&seat.entry, entry))
    }

    fn discount(&mut self, seat: &Seat) {
        self.bytes -= seat.counted_bytes;
        if seat.entry.is_pinned {
            self.pinned_bytes -= seat.counted_bytes;
        } else if seat.is_small {
            self.small_bytes -= seat.counted_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::cache::entry::{Parts, Representation};

    fn entry(name: &str, content_bytes: usize, is_pinned: bool) -> Arc<Entry> {
        let content = Bytes::from(vec![0; content_bytes]);
        let stored = vec![Representation {
            coding: None,
            len: content_bytes as u64,
            entity_tag: String::new(),
            content: Some(content),
            file: None,
        }];
        Arc::new(Entry::new(
            Parts {
                key: name.as_bytes().into(),
                stamps: Vec::new(),
                media_type: String::new(),
                modified_secs: 0,
                modified_text: [0; 29],
                varies: false,
                may_compress: false,
                stored,
                is_pinned,
            },
            0,
        ))
    }

    #[test]
    fn a_crawl_leaves_the_hot_set_alone() {
        let store = Store::new(200_000);
        for hot in 0..20 {
            assert!(store.insert(entry(&format!("hot{hot}"), 4000, false)));
        }
        for _ in 0..3 {
            for hot in 0..20 {
                store.find(format!("hot{hot}").as_bytes()).unwrap();
            }
        }
        for cold in 0..5000 {
            store.insert(entry(&format!("cold{cold}"), 4000, false));
        }
        let kept = (0..20)
            .filter(|hot| store.find(format!("hot{hot}").as_bytes()).is_some())
            .count();
        assert_eq!(kept, 20);
        let holdings = store.holdings();
        assert!(holdings.bytes <= holdings.bytes_max);
        assert!(holdings.evictions > 4900);
    }

    #[test]
    fn pinned_entries_stay_and_what_cannot_fit_is_not_kept() {
        let store = Store::new(20_000);
        assert!(store.insert(entry("pinned", 8000, true)));
        for cold in 0..100 {
            store.insert(entry(&format!("cold{cold}"), 4000, false));
        }
        assert!(store.find(b"pinned").is_some());
        assert!(!store.insert(entry("huge", 15_000, false)));
        assert!(store.find(b"huge").is_none());
    }

    #[test]
    fn a_replaced_or_removed_entry_is_retired() {
        let store = Store::new(100_000);
        let (old, new) = (entry("a", 10, false), entry("a", 20, false));
        assert!(store.insert(Arc::clone(&old)));
        assert!(store.insert(Arc::clone(&new)));
        assert!(old.is_retired() && !new.is_retired());
        store.remove(&old);
        assert!(store.find(b"a").is_some());
        store.remove(&new);
        assert!(store.find(b"a").is_none());
        assert_eq!(store.holdings().bytes, 0);
    }

    #[test]
    fn growing_counts() {
        let store = Store::new(100_000);
        let one = entry("a", 10, false);
        store.insert(Arc::clone(&one));
        let before = store.holdings().bytes;
        store.grew(&one, 500);
        assert_eq!(store.holdings().bytes, before + 500);
        store.grew(&one, 200_000);
        assert_eq!(store.holdings().bytes, 0);
        assert!(one.is_retired());
    }
}
