//! The visits of one program: by their handles, by their clients, and how many there may be. What
//! keeps a visit's state between requests is another's (`K`).
//!
//! Locks: the table's before a visit's.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use hob_trace::Mutex;

use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::script::visits::handle::VisitHandle;
use crate::handle::script::visits::repeat::RequestsUnderWay;
use crate::handle::script::visits::room::{LOOKED_AT_MAX, VisitRoom};
use crate::handle::script::visits::status::ToldKept;

/// The number of the next visit of this process.
static NUMBER: AtomicU64 = AtomicU64::new(1);
/// Numbers that a process has for its visits, where several processes have some.
const NUMBERS_EACH: u64 = 100_000_000;

/// Visits of this process have numbers that those of no other have which lives.
pub(crate) fn number_visits_by(pid: u32) {
    NUMBER.store(u64::from(pid) * NUMBERS_EACH + 1, Ordering::Relaxed);
}

/// What keeps a visit's state.
pub(crate) trait KeepsVisit {
    /// Since when nothing is under way, in loop time; `None` while something is.
    fn idle_since_ms(&self) -> Option<u64>;
    /// Nobody comes back to it.
    fn end(&self);
    /// What people are told of it.
    fn told(&self) -> ToldKept;
    /// What it takes of the memory, in bytes, where that is known.
    fn memory_bytes(&self) -> Option<u64>;
    /// What one usually takes, in bytes, as long as none is known.
    const BYTES_USUAL: u64;
    /// Most of them where a config does not say it, however much memory there is.
    const COUNT_MOST: usize;
}

/// How many visits there may be, and how long a handle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitRules {
    /// At once; `None` is as many as there is memory for.
    pub count_max: Option<usize>,
    /// Of one client at once; 0 is any number.
    pub client_max: usize,
    /// New ones each second; 0 is any number.
    pub per_second: u64,
    /// New ones in a moment.
    pub at_once: u64,
    /// How long the last handle holds beside a new one.
    pub overlap: Duration,
    /// How long a visitor's next request is waited for, where the program does not say it.
    pub wait: Duration,
    /// The longest that a program may say.
    pub wait_max: Duration,
}

/// The visits of one program.
pub(crate) struct VisitTable<K> {
    /// The route and what runs, for people.
    pub(crate) name: String,
    rules: VisitRules,
    room: VisitRoom,
    rate: StderrRateLimit,
    state: Mutex<TableState<K>>,
}

struct TableState<K> {
    by_handle: HashMap<VisitHandle, Arc<KeptVisit<K>>>,
    /// By number.
    all: HashMap<u64, Arc<KeptVisit<K>>>,
    by_client: HashMap<IpAddr, usize>,
    /// Most at once so far.
    peak: usize,
}

/// One visit.
pub(crate) struct KeptVisit<K> {
    /// No other visit has it, of this process or of a server before it.
    pub(crate) number: u64,
    /// Whose it is: an address, or the network of one.
    pub(crate) client: IpAddr,
    /// When it began, in loop time.
    pub(crate) started_ms: u64,
    /// What keeps its state.
    pub(crate) keeps: K,
    /// Its requests, those that others may be like.
    pub(crate) under_way: Arc<RequestsUnderWay>,
    /// What stands in cookies beside handles of it that can be guessed.
    cookie: OnceLock<Option<VisitHandle>>,
    table: Weak<VisitTable<K>>,
    state: Mutex<VisitState>,
}

struct VisitState {
    current: VisitHandle,
    /// The one before, and until when it holds, in loop time.
    before: Option<(VisitHandle, u64)>,
    /// An answer has kept it.
    is_kept: bool,
    /// How long its next request is waited for.
    wait: Duration,
    /// Answers of it.
    answers: u64,
}

/// Why there is no new visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VisitRefused {
    /// The client has as many as one may.
    Client,
    /// Too many begin.
    Rate,
    /// There are as many as may be, and all are busy.
    Full,
    /// There is no randomness for a handle.
    NoHandle,
}

/// A new visit, and whether another had to go for it.
pub(crate) struct Opened<K> {
    pub(crate) visit: Arc<KeptVisit<K>>,
    pub(crate) has_evicted: bool,
}

/// What is told of a visit.
pub(crate) struct VisitShown {
    pub(crate) handle: VisitHandle,
    pub(crate) wait: Duration,
    pub(crate) answers: u64,
}

impl<K: KeepsVisit> VisitTable<K> {
    pub(crate) fn new(name: String, rules: VisitRules) -> VisitTable<K> {
        VisitTable {
            name,
            room: VisitRoom::new(rules.count_max, K::BYTES_USUAL, K::COUNT_MOST),
            rate: StderrRateLimit::new(rules.at_once, rules.per_second),
            rules,
            state: Mutex::new(TableState {
                by_handle: HashMap::new(),
                all: HashMap::new(),
                by_client: HashMap::new(),
                peak: 0,
            }),
        }
    }

    /// The visit that a handle names now, with what the cookie beside it has.
    pub(crate) fn find(
        &self,
        (text, beside): (&[u8], Option<&[u8]>),
        now_ms: u64,
    ) -> Option<Arc<KeptVisit<K>>> {
        // What cannot be one is none.
        let handle = VisitHandle::carried(text, beside)?;
        let mut state = self.state.lock();
        let visit = state.by_handle.get(&handle)?;
        let mut own = visit.state.lock();
        if own.current == handle {
            drop(own);
            return Some(Arc::clone(visit));
        }
        let holds = own
            .before
            .as_ref()
            .is_some_and(|(_, until_ms)| now_ms < *until_ms);
        if !holds {
            own.before = None;
            drop(own);
            state.by_handle.remove(&handle);
            return None;
        }
        drop(own);
        Some(Arc::clone(visit))
    }

    /// A new visit of a client, kept by what `make` makes for its handle.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn open(
        self: &Arc<Self>,
        client: Option<IpAddr>,
        now_ms: u64,
        make: impl FnOnce(&Weak<KeptVisit<K>>) -> K,
    ) -> Result<Opened<K>, VisitRefused> {
        let client = client.map_or(IpAddr::from([0; 4]), network_of);
        let handle = VisitHandle::random().ok_or(VisitRefused::NoHandle)?;
        self.room.look(now_ms, || self.sizes());
        let mut state = self.state.lock();
        let of_client = state.by_client.get(&client).copied().unwrap_or_default();
        if self.rules.client_max > 0 && of_client >= self.rules.client_max {
            return Err(VisitRefused::Client);
        }
        let is_full = state.all.len() >= self.room.count_max();
        let oldest = match is_full {
            true => Some(state.idle_longest().ok_or(VisitRefused::Full)?),
            false => None,
        };
        if self.rules.per_second > 0 && self.rate.allows(now_ms).is_none() {
            return Err(VisitRefused::Rate);
        }
        if let Some(oldest) = &oldest {
            state.remove(oldest);
        }
        let visit = Arc::new_cyclic(|visit| KeptVisit {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            client,
            started_ms: now_ms,
            keeps: make(visit),
            under_way: Arc::default(),
            cookie: OnceLock::new(),
            table: Arc::downgrade(self),
            state: Mutex::new(VisitState {
                current: handle.clone(),
                before: None,
                is_kept: false,
                wait: self.rules.wait,
                answers: 0,
            }),
        });
        state.by_handle.insert(handle, Arc::clone(&visit));
        state.all.insert(visit.number, Arc::clone(&visit));
        *state.by_client.entry(client).or_default() += 1;
        state.peak = state.peak.max(state.all.len());
        drop(state);
        let has_evicted = oldest.is_some();
        if let Some(oldest) = oldest {
            oldest.keeps.end();
        }
        Ok(Opened { visit, has_evicted })
    }

    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<KeptVisit<K>>> {
        let mut all: Vec<_> = self.state.lock().all.values().cloned().collect();
        all.sort_by_key(|visit| visit.number);
        all
    }

    /// There is one.
    pub(crate) fn has_some(&self) -> bool {
        !self.state.lock().all.is_empty()
    }

    /// Most at once so far.
    pub(crate) fn peak(&self) -> usize {
        self.state.lock().peak
    }

    /// Most at once.
    pub(crate) fn count_max(&self) -> usize {
        self.room.count_max()
    }

    /// From now on there are no more than this, unless the config says it.
    pub(crate) fn set_most(&self, most: usize) {
        self.room.set_most(most);
    }

    /// How many there may be, in words.
    pub(crate) fn room_words(&self) -> String {
        self.room.words()
    }

    /// What the newest of them take, those of which it is known.
    fn sizes(&self) -> Vec<u64> {
        let all = self.all();
        let newest = all.iter().rev().take(LOOKED_AT_MAX);
        newest
            .filter_map(|visit| visit.keeps.memory_bytes())
            .collect()
    }
}

impl<K: KeepsVisit> TableState<K> {
    fn idle_longest(&self) -> Option<Arc<KeptVisit<K>>> {
        let idle = self.all.values().filter_map(|visit| {
            let since_ms = visit.keeps.idle_since_ms()?;
            Some((since_ms, visit))
        });
        let (_, longest) = idle.min_by_key(|(since_ms, _)| *since_ms)?;
        Some(Arc::clone(longest))
    }

    /// True when it was there.
    fn remove(&mut self, visit: &KeptVisit<K>) -> bool {
        if self.all.remove(&visit.number).is_none() {
            return false;
        }
        let own = visit.state.lock();
        self.by_handle.remove(&own.current);
        if let Some((before, _)) = &own.before {
            self.by_handle.remove(before);
        }
        drop(own);
        if let Some(count) = self.by_client.get_mut(&visit.client) {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&visit.client);
            }
        }
        true
    }
}

impl<K: KeepsVisit> KeptVisit<K> {
    /// Its handle.
    pub(crate) fn handle(&self) -> VisitHandle {
        self.state.lock().current.clone()
    }

    /// A handle that its program gives, as it is one of this visit: beside a cookie where it can be
    /// guessed. `None` where there is no randomness for that.
    pub(crate) fn own(&self, handle: VisitHandle) -> Option<VisitHandle> {
        if !handle.is_weak() {
            return Some(handle);
        }
        let cookie = self.cookie.get_or_init(VisitHandle::random).as_ref()?;
        Some(handle.beside(cookie.as_bytes()))
    }

    /// It has this handle, or had it just now.
    pub(crate) fn has(&self, handle: &VisitHandle) -> bool {
        let own = self.state.lock();
        let before = own.before.as_ref().map(|(before, _)| before);
        own.current == *handle || before == Some(handle)
    }

    /// Requests still lead to it.
    pub(crate) fn is_there(&self) -> bool {
        let table = self.table.upgrade();
        table.is_some_and(|table| table.state.lock().all.contains_key(&self.number))
    }

    /// An answer has kept it.
    pub(crate) fn is_kept(&self) -> bool {
        self.state.lock().is_kept
    }

    /// What is told of it.
    pub(crate) fn shown(&self) -> VisitShown {
        let own = self.state.lock();
        VisitShown {
            handle: own.current.clone(),
            wait: own.wait,
            answers: own.answers,
        }
    }

    /// An answer keeps it under this handle, which may be the one it has. Returns how long its next
    /// request is waited for; `None` when another visit has the handle, or it is no longer there.
    pub(crate) fn keep(
        &self,
        handle: &VisitHandle,
        wait: Option<Duration>,
        now_ms: u64,
    ) -> Option<Duration> {
        let table = self.table.upgrade()?;
        let rules = &table.rules;
        let wait = wait.filter(|wait| !wait.is_zero()).unwrap_or(rules.wait);
        let wait = wait.min(rules.wait_max);
        let mut state = self.state.lock();
        if state.current != *handle {
            drop(state);
            let mut all = table.state.lock();
            let this = Arc::clone(all.all.get(&self.number)?);
            state = self.state.lock();
            let own_before = state.before.as_ref().map(|(before, _)| before);
            if own_before != Some(handle) && all.by_handle.contains_key(handle) {
                return None;
            }
            if let Some((before, _)) = state.before.take() {
                all.by_handle.remove(&before);
            }
            let until_ms = now_ms + rules.overlap.as_millis() as u64;
            let last = std::mem::replace(&mut state.current, handle.clone());
            state.before = Some((last, until_ms));
            all.by_handle.insert(handle.clone(), this);
        }
        (state.is_kept, state.wait) = (true, wait);
        state.answers += 1;
        Some(wait)
    }

    /// Nothing leads to it any more. True the first time.
    pub(crate) fn forget(&self) -> bool {
        let table = self.table.upgrade();
        table.is_some_and(|table| {
            let mut state = table.state.lock();
            let visit = state.all.get(&self.number).cloned();
            // The last holder may end it, and must not do so under the lock.
            let is_first = state.remove(self);
            drop(state);
            drop(visit);
            is_first
        })
    }
}

/// The addresses that one client may have: one of IPv4, a network of IPv6.
fn network_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(network.into())
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[derive(Default)]
    struct Kept {
        idle_since_ms: AtomicU64,
        is_busy: AtomicBool,
        is_over: AtomicBool,
    }

    impl KeepsVisit for Kept {
        fn idle_since_ms(&self) -> Option<u64> {
            let is_busy = self.is_busy.load(Ordering::Relaxed);
            (!is_busy).then(|| self.idle_since_ms.load(Ordering::Relaxed))
        }

        fn end(&self) {
            self.is_over.store(true, Ordering::Relaxed);
        }

        fn told(&self) -> ToldKept {
            ToldKept::default()
        }

        fn memory_bytes(&self) -> Option<u64> {
            None
        }

        const BYTES_USUAL: u64 = 1;
        const COUNT_MOST: usize = 1;
    }

    const RULES: VisitRules = VisitRules {
        count_max: Some(3),
        client_max: 2,
        per_second: 0,
        at_once: 1,
        overlap: Duration::from_secs(5),
        wait: Duration::from_secs(300),
        wait_max: Duration::from_secs(1800),
    };

    fn table(rules: VisitRules) -> Arc<VisitTable<Kept>> {
        Arc::new(VisitTable::new("test".to_owned(), rules))
    }

    fn open(
        table: &Arc<VisitTable<Kept>>,
        client: &str,
    ) -> Result<Arc<KeptVisit<Kept>>, VisitRefused> {
        let opened = table.open(client.parse().ok(), 1, |_| Kept::default());
        opened.map(|opened| opened.visit)
    }

    fn finds(table: &Arc<VisitTable<Kept>>, handle: &VisitHandle, now_ms: u64) -> Option<u64> {
        let found = table.find((handle.as_bytes(), handle.cookie()), now_ms);
        found.map(|visit| visit.number)
    }

    #[test]
    fn visit_is_found_by_its_handle_until_it_is_forgotten() {
        let table = table(RULES);
        let (one, other) = (open(&table, "::1").unwrap(), open(&table, "::1").unwrap());
        assert_eq!(finds(&table, &one.handle(), 2), Some(one.number));
        assert_eq!(finds(&table, &other.handle(), 2), Some(other.number));
        let handle = one.handle();
        for wrong in [
            &handle.as_bytes()[..32],
            &handle.as_bytes()[1..],
            &handle.as_bytes().to_ascii_uppercase(),
            b"",
        ] {
            assert!(table.find((wrong, None), 2).is_none());
        }
        assert!(one.forget());
        assert!(!one.forget());
        assert_eq!(finds(&table, &handle, 2), None);
        assert_eq!(table.all().len(), 1);
    }

    #[test]
    fn last_handle_holds_for_a_moment_beside_a_new_one() {
        let table = table(RULES);
        let visit = open(&table, "::1").unwrap();
        let [first, second, third] = [0; 3].map(|_| VisitHandle::random().unwrap());
        let made = visit.handle();
        assert!(!visit.is_kept());
        assert_eq!(visit.keep(&made, None, 10), Some(RULES.wait));
        assert!(visit.is_kept());
        assert!(visit.keep(&first, None, 10).is_some());
        for handle in [&made, &first] {
            assert_eq!(finds(&table, handle, 5_009), Some(visit.number));
        }
        assert_eq!(finds(&table, &made, 5_010), None);
        assert_eq!(finds(&table, &first, 5_010), Some(visit.number));
        assert!(visit.keep(&second, None, 6_000).is_some());
        // Only the last one holds beside it.
        assert!(visit.keep(&third, None, 6_001).is_some());
        assert_eq!(finds(&table, &first, 6_002), None);
        assert_eq!(finds(&table, &second, 6_002), Some(visit.number));
        visit.forget();
        for handle in [&second, &third] {
            assert_eq!(finds(&table, handle, 6_003), None);
        }
    }

    #[test]
    fn handle_of_another_visit_is_not_taken() {
        let table = table(RULES);
        let (one, other) = (
            open(&table, "::1").unwrap(),
            open(&table, "::2:0:0:0:1").unwrap(),
        );
        assert_eq!(one.keep(&other.handle(), None, 10), None);
        assert_eq!(finds(&table, &other.handle(), 11), Some(other.number));
        one.forget();
        assert_eq!(one.keep(&VisitHandle::random().unwrap(), None, 12), None);
    }

    #[test]
    fn two_visits_may_have_the_same_handle_that_can_be_guessed() {
        let table = table(RULES);
        let all = ["::1", "::2:0:0:0:1"].map(|client| open(&table, client).unwrap());
        let weak = VisitHandle::or_weak(b"42").unwrap();
        let own = all.each_ref().map(|visit| {
            let own = visit.own(weak.clone()).unwrap();
            assert!(visit.keep(&own, None, 10).is_some());
            assert!(visit.has(&own));
            own
        });
        for (visit, own) in all.iter().zip(&own) {
            assert_eq!(finds(&table, own, 11), Some(visit.number));
        }
        assert!(table.find((b"42", None), 11).is_none());
        assert!(table.find((b"42", Some(b"~forged")), 11).is_none());
        assert!(table.find((b"41", own[0].cookie()), 11).is_none());
        all[0].forget();
        assert_eq!(finds(&table, &own[0], 12), None);
        assert_eq!(finds(&table, &own[1], 12), Some(all[1].number));
    }

    #[test]
    fn wait_is_what_the_program_says_up_to_the_most() {
        let table = table(RULES);
        let visit = open(&table, "::1").unwrap();
        let handle = visit.handle();
        for (said, wait) in [
            (Some(60), 60),
            (Some(0), 300),
            (Some(3600), 1800),
            (None, 300),
        ] {
            let said = said.map(Duration::from_secs);
            let kept = visit.keep(&handle, said, 10);
            assert_eq!(kept, Some(Duration::from_secs(wait)));
        }
    }

    #[test]
    fn client_has_so_many_and_its_network_of_ipv6_counts_as_one() {
        let table = table(RULES);
        let first = open(&table, "2001:db8::1").unwrap();
        open(&table, "2001:db8::ffff:2").unwrap();
        let third = open(&table, "2001:db8::3");
        assert_eq!(third.err(), Some(VisitRefused::Client));
        first.forget();
        assert!(open(&table, "2001:db8::3").is_ok());
    }

    #[test]
    fn idle_one_goes_for_a_new_one_and_none_does_while_all_are_busy() {
        let table = table(VisitRules {
            client_max: 0,
            ..RULES
        });
        let all = [30, 10, 20].map(|since_ms| {
            let visit = open(&table, "::1").unwrap();
            visit.keeps.idle_since_ms.store(since_ms, Ordering::Relaxed);
            visit
        });
        let fourth = open(&table, "::1").unwrap();
        let over = all
            .each_ref()
            .map(|visit| visit.keeps.is_over.load(Ordering::Relaxed));
        assert_eq!(over, [false, true, false]);
        assert_eq!(finds(&table, &all[1].handle(), 40), None);
        for visit in [&all[0], &all[2], &fourth] {
            visit.keeps.is_busy.store(true, Ordering::Relaxed);
        }
        assert_eq!(open(&table, "::1").err(), Some(VisitRefused::Full));
        assert_eq!((table.all().len(), table.peak()), (3, 3));
    }

    #[test]
    fn new_ones_come_at_a_rate() {
        let table = table(VisitRules {
            per_second: 1,
            at_once: 1,
            ..RULES
        });
        open(&table, "::1").unwrap();
        assert_eq!(open(&table, "::1").err(), Some(VisitRefused::Rate));
        let later = table.open(None, 1_001, |_| Kept::default());
        assert!(later.is_ok());
    }
}
