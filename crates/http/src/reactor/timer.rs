//! Timers on the thread's clock, in ticks of [`TICK_MS`].
//!
//! A timer stands in one tick at a time and knows where, so it leaves nothing behind when it goes.
//! Setting it later costs nothing: it is looked at when its old tick comes, and moved.
//!
//! For a short wait that somebody feels, a tick is too coarse. A precise timer stands in a
//! millisecond instead, and the thread's wait for events, which comes anyway, ends then: no
//! descriptor is armed for it, and nothing is left to fire when it was not needed after all.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::reactor::Reactor;
use crate::reactor::slab::Slab;
use crate::reactor::watched::keep;
use crate::reactor::wheel::{TICK_MS, Wheel};

/// A timer of this thread. Setting it costs no system call; it is up to a tick late, unless it is
/// set to be precise.
pub struct Timer {
    reactor: Reactor,
    key: u64,
}

/// All timers of a thread.
#[derive(Default)]
pub(super) struct Timers {
    timers: Slab<TimerEntry>,
    ticks: Ticks,
    /// The precise ones, by millisecond.
    precise: Ticks,
}

type Ticks = BTreeMap<u64, Vec<u64>>;

struct TimerEntry {
    /// `u64::MAX` when it is not set.
    deadline_ms: u64,
    precision: Precision,
    has_elapsed: bool,
    /// The tick it stands in and its place there; 0 is none.
    tick: u64,
    position: usize,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    Tick,
    Millisecond,
}

impl Timer {
    pub(super) fn new(reactor: &Reactor) -> Timer {
        let key = reactor.0.timers.borrow_mut().timers.insert(TimerEntry {
            deadline_ms: u64::MAX,
            precision: Precision::Tick,
            has_elapsed: false,
            tick: 0,
            position: 0,
            waker: None,
        });
        Timer {
            reactor: reactor.clone(),
            key,
        }
    }

    /// Elapses so long after the begin of this turn; what was set before is forgotten.
    pub fn set(&self, after: Duration) {
        self.set_at(self.reactor.after(after), Precision::Tick);
    }

    /// The same to the millisecond, for waits much shorter than a tick. It costs no system call
    /// either, but each time it is set it is moved at once.
    pub fn set_precise(&self, after: Duration) {
        self.set_at(self.reactor.after(after), Precision::Millisecond);
    }

    /// Elapses no more.
    pub fn clear(&self) {
        self.set_at(u64::MAX, Precision::Tick);
    }

    fn set_at(&self, deadline_ms: u64, precision: Precision) {
        self.reactor
            .with_timers(|timers| timers.set(self.key, deadline_ms, precision));
    }

    /// Ready once the time is up, until it is set or cleared.
    pub fn poll_elapsed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut timers = self.reactor.0.timers.borrow_mut();
        let replaced = match timers.timers.get_mut(self.key) {
            Some(entry) if entry.has_elapsed => return Poll::Ready(()),
            Some(entry) => keep(&mut entry.waker, cx),
            None => None,
        };
        drop(timers);
        drop(replaced);
        Poll::Pending
    }

    /// Waits until the time is up.
    pub async fn elapsed(&self) {
        std::future::poll_fn(|cx| self.poll_elapsed(cx)).await;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let entry = self.reactor.with_timers(|timers| timers.remove(self.key));
        // The waker goes when nothing is borrowed.
        drop(entry);
    }
}

impl Timers {
    /// When the next tick with a timer in it comes.
    pub(super) fn next_ms(&self) -> u64 {
        self.ticks
            .first_key_value()
            .map_or(u64::MAX, |(tick, _)| tick.saturating_mul(TICK_MS))
    }

    /// When the next precise timer elapses.
    pub(super) fn next_precise_ms(&self) -> u64 {
        self.precise
            .first_key_value()
            .map_or(u64::MAX, |(ms, _)| *ms)
    }

    /// Those who wait for timers whose time is up.
    pub(super) fn take_due(&mut self, now_ms: u64) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(first) = self.precise.first_entry()
            && *first.key() <= now_ms
        {
            for key in first.remove() {
                self.look_at(key, now_ms, &mut wakers);
            }
        }
        while let Some(first) = self.ticks.first_entry()
            && first.key().saturating_mul(TICK_MS) <= now_ms
        {
            for key in first.remove() {
                self.look_at(key, now_ms, &mut wakers);
            }
        }
        wakers
    }

    /// A timer's tick has come: it elapses, or is moved to where it should be.
    fn look_at(&mut self, key: u64, now_ms: u64, wakers: &mut Vec<Waker>) {
        let Some(entry) = self.timers.get_mut(key) else {
            return;
        };
        entry.tick = 0;
        if entry.deadline_ms <= now_ms {
            entry.deadline_ms = u64::MAX;
            entry.has_elapsed = true;
            wakers.extend(entry.waker.take());
        } else if entry.deadline_ms != u64::MAX {
            self.enter(key);
        }
    }

    fn set(&mut self, key: u64, deadline_ms: u64, precision: Precision) {
        let Some(entry) = self.timers.get_mut(key) else {
            return;
        };
        // A precise timer that is not needed any more would end a wait for nothing.
        let is_coarse = entry.precision == Precision::Tick && precision == Precision::Tick;
        let may_stay =
            is_coarse && (deadline_ms == u64::MAX || Wheel::tick_of(deadline_ms) >= entry.tick);
        entry.deadline_ms = deadline_ms;
        entry.has_elapsed = false;
        if entry.tick != 0 && may_stay {
            return;
        }
        self.leave(key);
        if let Some(entry) = self.timers.get_mut(key) {
            entry.precision = precision;
        }
        if deadline_ms != u64::MAX {
            self.enter(key);
        }
    }

    fn remove(&mut self, key: u64) -> Option<TimerEntry> {
        self.leave(key);
        self.timers.remove(key)
    }

    /// Puts a timer into its tick.
    fn enter(&mut self, key: u64) {
        let Some(entry) = self.timers.get_mut(key) else {
            return;
        };
        let ticks = match entry.precision {
            Precision::Tick => {
                entry.tick = Wheel::tick_of(entry.deadline_ms);
                &mut self.ticks
            }
            Precision::Millisecond => {
                // 0 is none, and over since the machine was started.
                entry.tick = entry.deadline_ms.max(1);
                &mut self.precise
            }
        };
        let keys = ticks.entry(entry.tick).or_default();
        entry.position = keys.len();
        keys.push(key);
    }

    /// Takes a timer out of its tick.
    fn leave(&mut self, key: u64) {
        let Some(entry) = self.timers.get_mut(key) else {
            return;
        };
        let ticks = match entry.precision {
            Precision::Tick => &mut self.ticks,
            Precision::Millisecond => &mut self.precise,
        };
        let (tick, position) = (std::mem::take(&mut entry.tick), entry.position);
        let Some(keys) = ticks.get_mut(&tick) else {
            return;
        };
        debug_assert_eq!(keys[position], key, "a timer knows its place");
        keys.swap_remove(position);
        let is_empty = keys.is_empty();
        if let Some(moved) = keys.get(position)
            && let Some(entry) = self.timers.get_mut(*moved)
        {
            entry.position = position;
        }
        if is_empty {
            ticks.remove(&tick);
        }
    }
}
