//! The requests that one worker has under way, in the order of their numbers.

use std::sync::Arc;
use std::time::Duration;

use hob_http::{Hold, Reactor};

use crate::handle::resident::exchange::WorkerExchange;
use crate::handle::resident::termination::limit;

/// One of them.
pub(super) struct Underway {
    pub(super) number: u32,
    pub(super) exchange: Arc<WorkerExchange>,
    pub(super) has_head: bool,
    /// What follows its head is raw both ways.
    pub(super) is_tunnel: bool,
    /// Its answer is a stream of events.
    pub(super) is_events: bool,
    /// The worker has ended its direction of the tunnel.
    pub(super) has_ended_half: bool,
    /// The worker has said something of it.
    pub(super) is_started: bool,
    /// Bytes of body that may be sent.
    pub(super) body_credit: usize,
    pub(super) is_body_sent: bool,
    /// Bytes of data that may come.
    pub(super) data_credit: usize,
    /// Bytes of data that were thrown away, and not told to the worker yet.
    pub(super) dropped_bytes: usize,
    /// Longest pause between two pieces, once its head is there; zero is none.
    pub(super) pause_max: Duration,
    /// When its head must be there, or its next piece, in loop time; `u64::MAX` for never.
    pub(super) step_due_ms: u64,
    /// When all of it must be there.
    pub(super) total_due_ms: u64,
    /// Nobody waits for it any more; it is to be over by then, or the worker is ended.
    pub(super) given_up_until_ms: Option<u64>,
}

impl Underway {
    /// Its answer is a stream of events, with a limit of its own for its pauses.
    pub(super) fn begin_events(&mut self, pause_max: Duration, now_ms: u64) {
        self.is_events = true;
        self.pause_max = pause_max;
        self.begin_pause(now_ms);
    }

    /// A piece of it has moved, or its head is there: its next pause begins.
    pub(super) fn begin_pause(&mut self, now_ms: u64) {
        self.step_due_ms = limit(now_ms, self.pause_max);
    }
}

/// All of them.
pub(super) struct UnderwayRequests {
    all: Vec<Underway>,
    last_number: u32,
    reactor: Reactor,
    /// There while there are any: the thread does not end before.
    hold: Option<Hold>,
}

impl UnderwayRequests {
    pub(super) fn new(reactor: &Reactor) -> UnderwayRequests {
        UnderwayRequests {
            all: Vec::new(),
            last_number: 0,
            reactor: reactor.clone(),
            hold: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// A number that none of them has.
    pub(super) fn next_number(&mut self) -> u32 {
        loop {
            self.last_number = self.last_number.wrapping_add(1);
            if self.last_number != 0 && self.find(self.last_number).is_none() {
                return self.last_number;
            }
        }
    }

    pub(super) fn push(&mut self, underway: Underway) {
        self.hold.get_or_insert_with(|| self.reactor.hold());
        let numbers = self.all.iter().map(|one| one.number);
        let at = match self.all.last() {
            Some(last) if last.number > underway.number => numbers
                .take_while(|number| *number < underway.number)
                .count(),
            _ => self.all.len(),
        };
        self.all.insert(at, underway);
    }

    /// The place of a number.
    pub(super) fn find(&self, number: u32) -> Option<usize> {
        match self.all[..] {
            [ref only] => (only.number == number).then_some(0),
            _ => self
                .all
                .binary_search_by_key(&number, |one| one.number)
                .ok(),
        }
    }

    pub(super) fn at(&mut self, index: usize) -> &mut Underway {
        &mut self.all[index]
    }

    pub(super) fn remove(&mut self, index: usize) -> Underway {
        let removed = self.all.remove(index);
        if self.all.is_empty() {
            self.hold = None;
        }
        removed
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Underway> {
        self.all.iter()
    }

    pub(super) fn take(&mut self) -> Vec<Underway> {
        self.hold = None;
        std::mem::take(&mut self.all)
    }

    /// When the first of them is due.
    pub(super) fn due_ms(&self) -> u64 {
        let dues = self.all.iter().map(|one| match one.given_up_until_ms {
            Some(until_ms) => until_ms,
            None => one.step_due_ms.min(one.total_due_ms),
        });
        dues.min().unwrap_or(u64::MAX)
    }
}
