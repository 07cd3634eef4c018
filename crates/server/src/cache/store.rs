//! All entries under one budget of bytes.
//!
//! Eviction is S3-FIFO: newcomers stand in a short queue and leave it soon unless they are asked
//! for again; only then, or when they were thrown out recently, do they enter the long queue. So a
//! crawl that touches each file once passes through the short queue and leaves what is hot alone.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use hob_trace::Mutex;

use crate::cache::entry::{ByKey, CachedFile, handler_of};

/// The store. Threads come here only when their own view misses.
pub struct Store {
    state: Mutex<StoreState>,
    hasher: RandomState,
    /// Moves whenever entries leave, so that threads look through their views.
    departures: AtomicU64,
    /// The departures when all threads were last told.
    told: AtomicU64,
    evictions: AtomicU64,
    descriptors_max: u64,
}

struct StoreState {
    /// Bytes that all entries may have together.
    bytes_max: u64,
    /// Bytes of all entries.
    bytes: u64,
    /// Bytes of those that are never thrown out.
    pinned_bytes: u64,
    /// Bytes of those in `small`, which are thrown out first above a tenth of the room.
    small_bytes: u64,
    /// Places in the queues whose entry has left otherwise.
    vacant: usize,
    /// Entries, found by handler and path.
    entries: HashMap<ByKey, StoreSlot, RandomState>,
    /// New entries, oldest first: who is asked for again moves to `main`.
    small: VecDeque<Arc<CachedFile>>,
    /// Entries that were asked for more than once: a use since the last look is another round.
    main: VecDeque<Arc<CachedFile>>,
    /// Hashes of keys that left `small` unused: who comes back goes to `main` at once.
    ghosts: VecDeque<u64>,
    /// The same, to be found.
    ghost_set: HashSet<u64, RandomState>,
}

struct StoreSlot {
    queue: Queue,
    counted_bytes: u64,
}

/// Where an entry waits for its turn to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Small,
    Main,
    /// Nowhere: it stays.
    Pinned,
}

/// What the store holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Entries.
    pub entries: usize,
    /// Bytes counted for them: their memory, and a share of the budget for each open file.
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
/// Departures after which all threads are told, so that none that sleeps holds what has left.
const DEPARTURES_UNTOLD_MAX: u64 = 256;

impl Store {
    /// An empty store with this budget, in bytes. It holds at most about `descriptors_max` open
    /// files.
    pub fn new(bytes_max: u64, descriptors_max: u64) -> Store {
        let hasher = RandomState::default();
        Store {
            state: Mutex::new(StoreState {
                bytes_max,
                bytes: 0,
                pinned_bytes: 0,
                small_bytes: 0,
                vacant: 0,
                entries: HashMap::with_hasher(hasher.clone()),
                small: VecDeque::new(),
                main: VecDeque::new(),
                ghosts: VecDeque::new(),
                ghost_set: HashSet::with_hasher(hasher.clone()),
            }),
            hasher,
            departures: AtomicU64::new(0),
            told: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            descriptors_max: descriptors_max.max(1),
        }
    }

    /// The entry of a key.
    pub fn find(&self, key: &[u8]) -> Option<Arc<CachedFile>> {
        let state = self.state.lock();
        let (ByKey(entry), _) = state.entries.get_key_value(key)?;
        entry.warm_up();
        Some(Arc::clone(entry))
    }

    /// Takes an entry in; an older one of its key is retired. What does not fit is not kept:
    /// returns false then, and the entry serves only who brought it.
    pub fn insert(&self, entry: Arc<CachedFile>) -> bool {
        let mut state = self.state.lock();
        let bytes = self.weight(&entry, state.bytes_max);
        self.take_out(&mut state, &entry.key);
        if bytes + state.pinned_bytes > state.bytes_max {
            return false;
        }
        let key_hash = self.hasher.hash_one(&entry.key);
        let queue = match () {
            () if entry.is_pinned => Queue::Pinned,
            () if state.ghost_set.remove(&key_hash) => Queue::Main,
            () => Queue::Small,
        };
        let seat = StoreSlot {
            queue,
            counted_bytes: bytes,
        };
        state.count(queue, bytes);
        state.line_up(queue, Arc::clone(&entry));
        state.entries.insert(ByKey(Arc::clone(&entry)), seat);
        self.make_room(&mut state);
        !entry.is_retired()
    }

    /// What an entry takes of the budget. An open file takes its share of those there may be.
    fn weight(&self, entry: &CachedFile, bytes_max: u64) -> u64 {
        let share = bytes_max / self.descriptors_max;
        let descriptors = entry.descriptor_count() as u64;
        entry.memory_bytes.load(Ordering::Relaxed) + descriptors * share
    }

    /// False when an entry of this store would not fit with so many bytes more, whatever else
    /// leaves: to take them would empty the store, and then throw the entry itself out.
    pub fn has_room_for(&self, entry: &CachedFile, bytes: u64) -> bool {
        let state = self.state.lock();
        let Some(seat) = state.slot_of(entry) else {
            return true;
        };
        let stays_bytes = match seat.queue {
            Queue::Pinned => state.pinned_bytes,
            Queue::Small | Queue::Main => state.pinned_bytes + seat.counted_bytes,
        };
        stays_bytes.saturating_add(bytes) <= state.bytes_max
    }

    /// An entry has become larger by a representation made for it.
    pub fn grew(&self, entry: &CachedFile, bytes: u64) {
        let mut state = self.state.lock();
        if state.slot_of(entry).is_none() {
            return;
        }
        let Some(seat) = state.entries.get_mut(&*entry.key) else {
            return;
        };
        seat.counted_bytes += bytes;
        let queue = seat.queue;
        state.count(queue, bytes);
        self.make_room(&mut state);
    }

    /// Entries of other handlers than these are pinned no more: they leave as others do.
    pub fn unpin_all_but(&self, handlers: &HashSet<u64>) {
        let mut state = self.state.lock();
        let mut freed = Vec::new();
        for (ByKey(entry), seat) in &mut state.entries {
            let is_left = handler_of(&entry.key).is_none_or(|handler| !handlers.contains(&handler));
            if seat.queue == Queue::Pinned && is_left {
                seat.queue = Queue::Small;
                freed.push((Arc::clone(entry), seat.counted_bytes));
            }
        }
        for (entry, bytes) in freed {
            state.pinned_bytes -= bytes;
            state.small_bytes += bytes;
            state.line_up(Queue::Small, entry);
        }
        self.make_room(&mut state);
    }

    /// Retires an entry whose file has changed or gone.
    pub fn remove(&self, entry: &Arc<CachedFile>) {
        let mut state = self.state.lock();
        if state.slot_of(entry).is_some() {
            self.take_out(&mut state, &entry.key);
        }
        entry.retire();
    }

    /// Sets the budget, in bytes; entries leave until it is kept.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        let mut state = self.state.lock();
        state.bytes_max = bytes_max;
        self.make_room(&mut state);
    }

    /// Retires every entry.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        for (ByKey(entry), _) in state.entries.drain() {
            entry.retire();
        }
        (state.bytes, state.pinned_bytes, state.small_bytes) = (0, 0, 0);
        state.clear_queues();
        self.departures.fetch_add(1, Ordering::Release);
    }

    /// Every entry, with the bytes that are counted for it and whether it is pinned.
    pub fn entries(&self) -> Vec<(Arc<CachedFile>, u64, bool)> {
        let state = self.state.lock();
        let told = |(ByKey(entry), seat): (&ByKey, &StoreSlot)| {
            let is_pinned = seat.queue == Queue::Pinned;
            (Arc::clone(entry), seat.counted_bytes, is_pinned)
        };
        state.entries.iter().map(told).collect()
    }

    /// What it holds.
    pub fn holdings(&self) -> Holdings {
        let state = self.state.lock();
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

    /// True for one caller each time that so much has left that every thread should let go.
    pub fn must_tell(&self) -> bool {
        let departures = self.departures.load(Ordering::Relaxed);
        let told = self.told.load(Ordering::Relaxed);
        departures - told >= DEPARTURES_UNTOLD_MAX
            && self
                .told
                .compare_exchange(told, departures, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Takes an entry out whose place in its queue stays.
    fn take_out(&self, state: &mut StoreState, key: &[u8]) {
        if self
            .take_seat(state, key)
            .is_some_and(|queue| queue != Queue::Pinned)
        {
            state.vacant += 1;
            state.close_ranks();
        }
    }

    fn take_seat(&self, state: &mut StoreState, key: &[u8]) -> Option<Queue> {
        let (ByKey(entry), seat) = state.entries.remove_entry(key)?;
        state.discount(&seat);
        entry.retire();
        self.departures.fetch_add(1, Ordering::Release);
        Some(seat.queue)
    }

    /// Throws entries out until the budget is kept.
    fn make_room(&self, state: &mut StoreState) {
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
                    self.take_seat(state, &entry.key);
                }
                None if state.small.is_empty() && state.main.is_empty() => return,
                None => {}
            }
        }
    }

    /// Looks at the oldest newcomer: it leaves, or moves to the long queue.
    fn step_small(&self, state: &mut StoreState) -> Option<Arc<CachedFile>> {
        let entry = state.small.pop_front()?;
        let seat = state.seat_of(&entry)?;
        if entry.heat.load(Ordering::Relaxed) > 1 {
            seat.queue = Queue::Main;
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
fn step_main(state: &mut StoreState) -> Option<Arc<CachedFile>> {
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

impl StoreState {
    /// The seat of this very entry, whose place in a queue was just taken; `None` when it left
    /// before or was replaced.
    fn seat_of(&mut self, entry: &Arc<CachedFile>) -> Option<&mut StoreSlot> {
        if self.slot_of(entry).is_none() {
            self.vacant = self.vacant.saturating_sub(1);
            return None;
        }
        self.entries.get_mut(&*entry.key)
    }

    /// The slot of this very entry, unless it left or was replaced.
    fn slot_of(&self, entry: &CachedFile) -> Option<&StoreSlot> {
        let (ByKey(held), slot) = self.entries.get_key_value(&*entry.key)?;
        std::ptr::eq(Arc::as_ptr(held), entry).then_some(slot)
    }

    fn count(&mut self, queue: Queue, bytes: u64) {
        self.bytes += bytes;
        match queue {
            Queue::Pinned => self.pinned_bytes += bytes,
            Queue::Small => self.small_bytes += bytes,
            Queue::Main => {}
        }
    }

    fn discount(&mut self, seat: &StoreSlot) {
        self.bytes -= seat.counted_bytes;
        match seat.queue {
            Queue::Pinned => self.pinned_bytes -= seat.counted_bytes,
            Queue::Small => self.small_bytes -= seat.counted_bytes,
            Queue::Main => {}
        }
    }

    fn line_up(&mut self, queue: Queue, entry: Arc<CachedFile>) {
        match queue {
            Queue::Small => self.small.push_back(entry),
            Queue::Main => self.main.push_back(entry),
            Queue::Pinned => {}
        }
    }

    /// Gives vacant places up once they are more than those taken: what has left must not be held
    /// by its place, however long nothing is evicted.
    fn close_ranks(&mut self) {
        const VACANT_MIN: usize = 64;
        if self.vacant < VACANT_MIN.max(self.entries.len()) {
            return;
        }
        let mut queues = [&mut self.small, &mut self.main].map(std::mem::take);
        for queue in &mut queues {
            queue.retain(|entry| self.slot_of(entry).is_some());
        }
        [self.small, self.main] = queues;
        self.vacant = 0;
    }

    fn clear_queues(&mut self) {
        self.small.clear();
        self.main.clear();
        self.vacant = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use bytes::Bytes;

    use super::*;
    use crate::cache::entry::{CachedFileParts, OpenFile, Representation, Stamp, write_key};

    fn entry(name: &str, content_bytes: usize, is_pinned: bool) -> Arc<CachedFile> {
        let content = Bytes::from(vec![0; content_bytes]);
        let stored = vec![Representation {
            coding: None,
            stamp: Stamp::default(),
            len: content_bytes as u64,
            entity_tag: "".into(),
            content: Some(content),
            file: None,
            head: OnceLock::new(),
        }];
        Arc::new(CachedFile::new(parts(name, stored, is_pinned), 0))
    }

    fn parts(name: &str, stored: Vec<Representation>, is_pinned: bool) -> CachedFileParts {
        CachedFileParts {
            key: name.as_bytes().into(),
            index: None,
            media_type: "".into(),
            modified_secs: 0,
            modified_text: [0; 29],
            is_settled: true,
            varies: false,
            may_compress: false,
            stored: stored.into(),
            is_pinned,
        }
    }

    #[test]
    fn a_crawl_leaves_the_hot_set_alone() {
        let store = Store::new(200_000, 1000);
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
        let store = Store::new(20_000, 1000);
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
        let store = Store::new(100_000, 1000);
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
    fn entries_that_were_replaced_are_not_held_by_their_places() {
        let store = Store::new(100_000_000, 1000);
        store.insert(entry("other", 10, false));
        let first = entry("a", 10, false);
        store.insert(Arc::clone(&first));
        for _ in 0..200 {
            store.insert(entry("a", 10, false));
        }
        assert_eq!(Arc::strong_count(&first), 1);
        let state = store.state.lock();
        assert!(state.small.len() <= 2 + 64, "{}", state.small.len());
    }

    #[test]
    fn what_is_pinned_for_a_handler_that_is_gone_leaves_as_others_do() {
        let store = Store::new(20_000, 1000);
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        write_key(1, b"a", &mut kept);
        write_key(2, b"a", &mut left);
        for key in [&kept, &left] {
            let name = String::from_utf8(key.clone()).unwrap();
            assert!(store.insert(entry(&name, 6000, true)));
        }
        store.unpin_all_but(&HashSet::from([1]));
        for cold in 0..100 {
            store.insert(entry(&format!("cold{cold}"), 4000, false));
        }
        assert!(store.find(&kept).is_some());
        assert!(store.find(&left).is_none());
    }

    #[test]
    fn open_files_take_a_share_of_the_budget() {
        let open = |name: &str| {
            let file = tempfile::tempfile().unwrap();
            let stamp = Stamp::of(&rustix::fs::fstat(&file).unwrap());
            let stored = vec![Representation {
                coding: None,
                stamp,
                len: 0,
                entity_tag: "".into(),
                content: None,
                file: Some(Arc::new(OpenFile::new(file.into(), stamp, true))),
                head: OnceLock::new(),
            }];
            Arc::new(CachedFile::new(parts(name, stored, false), 0))
        };
        let store = Store::new(100_000_000, 10);
        for number in 0..50 {
            store.insert(open(&format!("file{number}")));
        }
        assert!(store.holdings().entries <= 10, "{:?}", store.holdings());
        assert!(store.holdings().entries >= 5, "{:?}", store.holdings());
    }

    #[test]
    fn entry_that_would_not_fit_any_more_has_no_room() {
        let store = Store::new(100_000, 1000);
        let (one, pinned) = (entry("a", 10_000, false), entry("b", 20_000, true));
        assert!(
            store.has_room_for(&one, 1_000_000),
            "it is not of this store"
        );
        assert!(store.insert(Arc::clone(&one)) && store.insert(Arc::clone(&pinned)));
        let free = store.holdings().bytes_max - store.holdings().bytes;
        for entry in [&one, &pinned] {
            let more = if entry.is_pinned { 10_000 } else { 0 };
            assert!(store.has_room_for(entry, free + more));
        }
        assert!(!store.has_room_for(&one, free + 1));
        assert!(!store.has_room_for(&one, u64::MAX));
        assert!(!store.has_room_for(&pinned, 80_000));
    }

    #[test]
    fn growing_counts() {
        let store = Store::new(100_000, 1000);
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
