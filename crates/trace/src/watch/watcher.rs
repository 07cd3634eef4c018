//! One watcher: what it asks for, and the events that wait for it. Bounded everywhere; what does
//! not fit is dropped and counted, and whoever is watched never waits.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use crate::Record;
use crate::mutex::Mutex;
use crate::watch::event::{self, GAP};
use crate::watch::{
    DECIDED_COUNT_MAX, FLUSH_BYTES, HELD_BYTES_MAX, HELD_COUNT_MAX, Hidden, QUEUE_BYTES_MAX, Trail,
    WatchTerms,
};

/// A watcher.
pub struct Watcher {
    /// What it asks for.
    pub terms: WatchTerms,
    /// What it is not shown.
    pub hidden: Hidden,
    /// Its place among the watchers, which is its bit in a [`Trail`].
    pub(super) slot: u32,
    state: Mutex<WatcherState>,
}

#[derive(Default)]
struct WatcherState {
    /// Events on their way.
    out: Vec<u8>,
    /// Events that did not fit, since the last one that told of them.
    dropped: u64,
    dropped_total: u64,
    /// Events of requests whose end decides, by connection and request.
    held: HashMap<(u64, u32), HeldEvents>,
    held_bytes: usize,
    decided: Decided,
    /// The last events before the trigger.
    kept: VecDeque<Vec<u8>>,
    has_fired: bool,
    /// The server ends: nothing more comes.
    is_over: bool,
    waker: Option<Waker>,
}

/// Requests whose end has decided, the oldest first, and whether they were shown.
#[derive(Default)]
struct Decided {
    order: VecDeque<(u64, u32)>,
    is_shown: HashMap<(u64, u32), bool>,
}

impl Decided {
    /// Remembers one whose program may print still.
    fn note(&mut self, trail: &Trail, record: &Record, is_shown: bool) {
        let is_program = record.handler.runs_program();
        if !is_program {
            return;
        }
        if self.order.len() == DECIDED_COUNT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.is_shown.remove(&oldest);
        }
        let key = (trail.connection, trail.request);
        self.order.push_back(key);
        self.is_shown.insert(key, is_shown);
    }
}

#[derive(Default)]
struct HeldEvents {
    events: Vec<u8>,
    dropped: u64,
}

impl Watcher {
    pub(super) fn new(terms: WatchTerms, hidden: Hidden, slot: u32) -> Watcher {
        let state = WatcherState {
            has_fired: terms.trigger.is_none(),
            ..WatcherState::default()
        };
        Watcher {
            terms,
            hidden,
            slot,
            state: Mutex::new(state),
        }
    }

    pub(super) fn bit(&self) -> u32 {
        1 << self.slot
    }

    /// Takes whole events of a request that is known to match.
    pub(super) fn push(&self, events: &[u8]) {
        let mut state = self.state.lock();
        let waker = state.push_all(events, &self.terms);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes an event of a request whose end decides.
    pub(super) fn hold(&self, trail: &Trail, event: &[u8]) {
        let mut state = self.state.lock();
        let key = (trail.connection, trail.request);
        if let Some(is_shown) = state.decided.is_shown.get(&key).copied() {
            // A program prints after its request is over.
            let waker = match is_shown {
                true => state.push_all(event, &self.terms),
                false => None,
            };
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
            return;
        }
        if state.held.len() >= HELD_COUNT_MAX {
            state.drop_held();
        }
        let fits = state.held_bytes + event.len() <= HELD_BYTES_MAX;
        if fits {
            state.held_bytes += event.len();
        }
        let held = state.held.entry(key).or_default();
        match fits {
            true => held.events.extend_from_slice(event),
            false => held.dropped += 1,
        }
    }

    /// The end of such a request has come: its events are shown after `before` and followed by
    /// `after`, or forgotten.
    pub(super) fn settle(&self, trail: &Trail, record: &Record, before: &[u8], after: &[u8]) {
        let mut state = self.state.lock();
        let held = state.held.remove(&(trail.connection, trail.request));
        let held = held.unwrap_or_default();
        state.held_bytes -= held.events.len();
        let is_shown = self.terms.match_end(record);
        state.decided.note(trail, record, is_shown);
        if !is_shown {
            return;
        }
        let mut waker = state.push_all(before, &self.terms);
        waker = waker.or(state.push_all(&held.events, &self.terms));
        state.dropped += held.dropped;
        state.dropped_total += held.dropped;
        waker = waker.or(state.push_all(after, &self.terms));
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Forgets what is held of a request that will not be told of.
    pub(super) fn forget(&self, trail: &Trail, record: &Record) {
        let mut state = self.state.lock();
        state.decided.note(trail, record, false);
        if let Some(held) = state.held.remove(&(trail.connection, trail.request)) {
            state.held_bytes -= held.events.len();
        }
    }

    /// How many bytes wait. When there are few, `waker` is woken for the next event, and once there
    /// are [`FLUSH_BYTES`].
    pub fn waiting_bytes(&self, waker: &Waker) -> usize {
        let mut state = self.state.lock();
        if state.out.len() < FLUSH_BYTES {
            state.waker = Some(waker.clone());
        }
        state.out.len()
    }

    /// Nothing more comes.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Nothing more comes; what waits is the last.
    pub fn is_over(&self) -> bool {
        self.state.lock().is_over
    }

    /// Takes what waits, and last what did not fit.
    pub fn take(&self) -> Vec<u8> {
        let mut state = self.state.lock();
        let mut out = std::mem::take(&mut state.out);
        let dropped = std::mem::take(&mut state.dropped);
        if dropped > 0 {
            event::push_dropped(dropped, &mut out);
        }
        out
    }

    /// Events that did not fit, since it began.
    pub fn dropped_so_far(&self) -> u64 {
        self.state.lock().dropped_total
    }
}

impl WatcherState {
    fn drop_held(&mut self) {
        let count = self.held.len() as u64;
        self.held.clear();
        self.held_bytes = 0;
        self.dropped += count;
        self.dropped_total += count;
    }

    /// Takes whole events, one or several. Gives whom to wake.
    fn push_all(&mut self, events: &[u8], terms: &WatchTerms) -> Option<Waker> {
        let before = self.out.len();
        if self.has_fired {
            self.push_fired(events);
        } else {
            let mut rest = events;
            while let Some(at) = memchr_gap(rest) {
                let (event, after) = rest.split_at(at + GAP.len());
                self.push_before(event, terms);
                rest = after;
            }
        }
        let after = self.out.len();
        let is_due = before == 0 && after > 0 || before < FLUSH_BYTES && after >= FLUSH_BYTES;
        match is_due {
            true => self.waker.take(),
            false => None,
        }
    }

    fn push_fired(&mut self, events: &[u8]) {
        if self.out.capacity() == 0 {
            // What is sent at once, and what comes until the thread gets to it.
            self.out.reserve(FLUSH_BYTES + FLUSH_BYTES / 2);
        }
        let room = QUEUE_BYTES_MAX - self.out.len();
        if self.dropped == 0 && events.len() <= room {
            return self.out.extend_from_slice(events);
        }
        let mut rest = events;
        while let Some(at) = memchr_gap(rest) {
            let (event, after) = rest.split_at(at + GAP.len());
            self.push_one(event);
            rest = after;
        }
    }

    /// Once one was dropped, all are until room was made: what is shown has one gap, not many.
    fn push_one(&mut self, event: &[u8]) {
        if self.dropped == 0 && self.out.len() + event.len() <= QUEUE_BYTES_MAX {
            self.out.extend_from_slice(event);
        } else {
            self.dropped += 1;
            self.dropped_total += 1;
        }
    }

    /// Takes an event before the trigger, or the one that is it.
    fn push_before(&mut self, event: &[u8], terms: &WatchTerms) {
        if self.has_fired {
            return self.push_one(event);
        }
        let is_it = terms
            .trigger
            .as_ref()
            .is_some_and(|trigger| trigger.matches(event.trim_ascii_end()));
        if is_it {
            self.has_fired = true;
            for kept in std::mem::take(&mut self.kept) {
                self.push_one(&kept);
            }
            return self.push_one(event);
        }
        if terms.keep > 0 {
            if self.kept.len() == terms.keep {
                self.kept.pop_front();
            }
            self.kept.push_back(event.to_vec());
        }
    }
}

/// Where the next event ends.
fn memchr_gap(events: &[u8]) -> Option<usize> {
    events.windows(GAP.len()).position(|two| two == GAP)
}
