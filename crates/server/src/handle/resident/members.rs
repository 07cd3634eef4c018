//! The workers of one pool, and the requests that wait: what its lock protects.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use crate::handle::resident::exchange::{Requeued, WorkerExchange};
use crate::handle::resident::limits::{BACKOFF_FIRST, BACKOFF_MAX, BACKOFF_REQUEST_MAX};
use crate::handle::resident::mailbox::{ToDriver, WorkerMailbox};
use crate::handle::resident::scale::Gauge;
use crate::serve::fleet::WorkerSeat;

/// What a pool's lock protects.
pub(super) struct PoolState {
    /// Its workers, on whichever thread they are at home.
    pub(super) members: Vec<Member>,
    /// Requests that no worker had room for, by ticket: the lowest is first.
    pub(super) waiting: BTreeMap<u64, Arc<WorkerExchange>>,
    /// For the next request that goes to the end of the queue.
    pub(super) next_ticket: u64,
    /// Requests that go back to the front get falling numbers.
    pub(super) front_ticket: u64,
    /// For the next worker.
    pub(super) next_number: u64,
    /// Its config is gone: workers end when they have no request, and none is started.
    pub(super) is_retired: bool,
    /// Workers in a row that ended before they were of use.
    pub(super) failures: u32,
    /// The last of them had no request: the program cannot be started.
    pub(super) is_unstartable: bool,
    /// Before this, no worker is started in place of one that failed.
    pub(super) retry_at_ms: u64,
    /// Why a worker ended or did not start, the last time.
    pub(super) last_failure: String,
    /// Why a worker did not start, as the log was told last; until one does.
    pub(super) told_failure: String,
    /// What workers said of all of them, as the log was told.
    pub(super) told_remarks: Vec<Box<[u8]>>,
    /// Whether its workers compute or wait, by which it may grow beyond the CPUs.
    pub(super) gauge: Gauge,
    /// When a waiting request was last given to a worker, and the time between two, smoothed.
    pub(super) pace_ms: (u64, u64),
    /// When who waits looks again whether one more worker would help.
    pub(super) next_look_ms: u64,
    /// Workers so far.
    pub(super) started: u64,
    /// Those of them that ended unasked.
    pub(super) lost: u64,
    /// Those of them whose place another took: by age, requests, memory, changed files.
    pub(super) replaced: u64,
    /// How often the program's files have changed.
    pub(super) version: u64,
}

/// One worker as its pool sees it.
pub(super) struct Member {
    pub(super) mailbox: Arc<WorkerMailbox>,
    pub(super) stage: WorkerStage,
    /// Of the program's files when it was started.
    pub(super) version: u64,
    /// Requests it may have, those handed to it ahead included.
    pub(super) room_max: usize,
    /// Requests it works on at a time.
    pub(super) concurrency: usize,
    pub(super) active: Vec<Arc<WorkerExchange>>,
    /// It takes the place of this one once it is ready.
    pub(super) replaces: Option<u64>,
    /// Another is on its way to take its place.
    pub(super) is_being_replaced: bool,
    /// Since when it has no request, in loop time.
    pub(super) idle_since_ms: u64,
    pub(super) _seat: WorkerSeat,
}

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerStage {
    Starting,
    Ready,
    Draining,
}

/// What became of requests that came back. To be seen to without the lock.
#[derive(Default)]
pub(super) struct Back {
    /// Workers that have them now.
    pub(super) given: Vec<(Arc<WorkerMailbox>, Arc<WorkerExchange>)>,
    /// Whoever waits again.
    pub(super) wakers: Vec<Waker>,
}

impl PoolState {
    /// Workers that are there or on their way.
    pub(super) fn alive(&self) -> usize {
        let alive = self
            .members
            .iter()
            .filter(|one| one.stage != WorkerStage::Draining);
        alive.filter(|one| one.replaces.is_none()).count()
    }

    /// Workers that have not greeted yet.
    pub(super) fn starting(&self) -> usize {
        let members = self.members.iter();
        members
            .filter(|one| one.stage == WorkerStage::Starting)
            .count()
    }

    /// How many may be started at once: after a failure one at a time, until one is of use.
    pub(super) fn at_once_max(&self) -> usize {
        match self.failures {
            0 => usize::MAX,
            _ => usize::from(self.starting() == 0),
        }
    }

    /// A worker ended that nobody had asked to. One that ended by itself before it was ready shows
    /// that the program cannot be started; requests that end their workers, and whoever kills them,
    /// must not keep others waiting.
    pub(super) fn note_crash(&mut self, was_ready: bool, is_blameless: bool, now_ms: u64) {
        self.failures += 1;
        self.is_unstartable = !was_ready && !is_blameless;
        let pause = match self.is_unstartable {
            true => backoff(self.failures),
            false if self.failures == 1 => Duration::ZERO,
            false => backoff(self.failures - 1).min(BACKOFF_REQUEST_MAX),
        };
        self.retry_at_ms = now_ms + pause.as_millis() as u64;
    }

    /// There is no worker, and there will be none soon.
    pub(super) fn is_hopeless(&self, now_ms: u64) -> bool {
        let mut stages = self.members.iter().map(|one| one.stage);
        self.is_unstartable
            && now_ms < self.retry_at_ms
            && stages.all(|stage| stage == WorkerStage::Draining)
    }

    pub(super) fn member(&mut self, mailbox: &Arc<WorkerMailbox>) -> Option<&mut Member> {
        let mut members = self.members.iter_mut();
        members.find(|one| Arc::ptr_eq(&one.mailbox, mailbox))
    }

    /// Gives a request to the worker with the most room, one of this thread first.
    pub(super) fn assign(
        &mut self,
        exchange: &Arc<WorkerExchange>,
        thread: usize,
        now_us: u64,
    ) -> Option<Arc<WorkerMailbox>> {
        let members = self.members.iter_mut();
        let free = members.filter(|one| one.has_room_for(exchange));
        let best = free.min_by_key(|one| {
            let is_ahead = one.active.len() >= one.concurrency;
            (is_ahead, one.mailbox.thread != thread, one.active.len())
        })?;
        best.give(exchange, now_us);
        Some(Arc::clone(&best.mailbox))
    }

    /// The requests that wait longest go to this worker, as far as it has room.
    pub(super) fn fill(
        &mut self,
        mailbox: &Arc<WorkerMailbox>,
        now_us: u64,
        next: &mut VecDeque<Arc<WorkerExchange>>,
    ) {
        let mut members = self.members.iter_mut();
        let Some(member) = members.find(|one| Arc::ptr_eq(&one.mailbox, mailbox)) else {
            return;
        };
        while let Some(first) = self.waiting.first_entry()
            && member.has_room_for(first.get())
        {
            let exchange = first.remove();
            member.give(&exchange, now_us);
            let (last_ms, pace_ms) = self.pace_ms;
            let since_ms = (now_us / 1000).saturating_sub(last_ms);
            let pace_ms = if pace_ms == 0 {
                since_ms
            } else {
                (7 * pace_ms + since_ms) / 8
            };
            self.pace_ms = (now_us / 1000, pace_ms);
            next.push_back(exchange);
        }
    }

    /// Requests come back, those that came first in front: workers with room get them, and are to
    /// be told; the others wait before all that wait, and are to be woken.
    pub(super) fn take_in(
        &mut self,
        exchanges: Vec<Arc<WorkerExchange>>,
        thread: usize,
        now_ms: u64,
    ) -> Back {
        let mut back = Back::default();
        let mut waiting = Vec::new();
        for exchange in exchanges {
            match self.assign(&exchange, thread, now_ms * 1000) {
                Some(mailbox) => back.given.push((mailbox, exchange)),
                None => waiting.push(exchange),
            }
        }
        for exchange in waiting.into_iter().rev() {
            self.front_ticket -= 1;
            if let Requeued::Waits(waker) = exchange.requeue(self.front_ticket) {
                self.waiting.insert(self.front_ticket, exchange);
                back.wakers.extend(waker);
            }
        }
        back
    }

    pub(super) fn drain(&mut self, number: u64) {
        let mut members = self.members.iter_mut();
        if let Some(member) = members.find(|one| one.mailbox.number == number) {
            member.drain();
        }
    }

    /// Workers with open tunnels go, when they have finished what they have.
    pub(super) fn drain_tunnels(&mut self) {
        let members = self.members.iter_mut();
        let has_tunnels = |one: &Member| one.mailbox.tunnels.load(Ordering::Relaxed) > 0;
        members
            .filter(|one| has_tunnels(one) && one.stage != WorkerStage::Draining)
            .for_each(Member::drain);
    }

    /// How many places have requests without an end of their own, where there are any.
    pub(super) fn long_lived(&self) -> String {
        let of = |one: &Member| {
            let mailbox = &one.mailbox;
            let streams = mailbox.event_streams.load(Ordering::Relaxed);
            (mailbox.tunnels.load(Ordering::Relaxed) + streams) as usize
        };
        let long: usize = self.members.iter().map(of).sum();
        let places: usize = self.members.iter().map(|one| one.concurrency).sum();
        match long {
            0 => String::new(),
            long => format!(
                "; WebSockets and streams of events have {long} of their {places} places \
                 (`workers.concurrency`)"
            ),
        }
    }

    /// Workers of versions before this one go, when they have finished what they have.
    pub(super) fn drain_before(&mut self, version: u64) {
        let members = self.members.iter_mut();
        members
            .filter(|one| one.version < version && one.stage != WorkerStage::Draining)
            .for_each(Member::drain);
    }
}

impl Member {
    /// A request with a body cannot be taken back, so it is never handed over ahead.
    fn has_room_for(&self, exchange: &WorkerExchange) -> bool {
        let room_max = match exchange.has_body {
            true => self.concurrency,
            false => self.room_max,
        };
        self.stage == WorkerStage::Ready && self.active.len() < room_max
    }

    /// It takes no more requests, and goes when it has finished what it has.
    pub(super) fn drain(&mut self) {
        self.stage = WorkerStage::Draining;
        self.mailbox.send(ToDriver::Drain);
    }

    /// It does not have this request any more.
    pub(super) fn lose(&mut self, exchange: &Arc<WorkerExchange>) {
        self.active.retain(|one| !Arc::ptr_eq(one, exchange));
    }

    fn give(&mut self, exchange: &Arc<WorkerExchange>, now_us: u64) {
        exchange.give(&self.mailbox, now_us);
        self.active.push(Arc::clone(exchange));
    }
}

/// The pause after so many workers in a row that were of no use.
fn backoff(failures: u32) -> Duration {
    let doubled = failures.saturating_sub(1).min(16);
    (BACKOFF_FIRST * (1 << doubled)).min(BACKOFF_MAX)
}
