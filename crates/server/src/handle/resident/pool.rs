//! The workers of one program and the requests that wait for one: the one place that decides who
//! gets what, whichever threads they are on.
//!
//! A request takes room of a worker of its own thread if there is any, else of another thread's,
//! else it waits. A worker that gets room takes the request that waits longest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use hob_trace::Mutex;

use crate::cache;
use crate::handle::config::{self, CarrierChoice};
use crate::handle::resident::bound::{BondEnd, PoolBond};
use crate::handle::resident::exchange::{Ending, WorkerExchange};
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::{
    ENDS_AT_ONCE, ENDS_PER_SECOND, LEAVE_SLACK, LOOK_EVERY, REMARKS_MAX, RETRY_S_MAX,
    UNSET_MEMORY_SHARE, UNSET_WORKERS_MAX,
};
use crate::handle::resident::mailbox::{ToDriver, WorkerMailbox};
use crate::handle::resident::members::{Back, Member, PoolState, WorkerStage};
use crate::handle::resident::scale::Gauge;
use crate::handle::resident::start::Recipe;
use crate::handle::resident::watch::FolderWatch;
use crate::handle::script::stderr::StderrRateLimit;
use crate::serve::fleet::Fleet;

/// The workers of one program.
pub struct Pool {
    /// No other pool of this process ever has it.
    pub number: u64,
    /// The route and what runs, for people.
    pub(super) name: String,
    /// As configured.
    pub(super) settings: Arc<config::Resident>,
    /// Whose its one worker is, where it is a visitor's.
    pub(super) bond: Option<PoolBond>,
    /// Most workers.
    pub(super) workers_max: usize,
    /// How many are there whatever memory they take, where the most is not set.
    workers_usual: Option<usize>,
    /// How its processes are started.
    pub(super) recipe: Mutex<Recipe>,
    /// How much of what they print is logged.
    pub(super) pace: StderrRateLimit,
    /// How many ends of workers it may log.
    pub(super) ends: StderrRateLimit,
    /// Threads that may wait for files the program passes.
    pub(super) disk: cache::disk_threads::DiskThreads,
    pub(super) fleet: Arc<Fleet>,
    pub(super) state: Mutex<PoolState>,
}

/// Handlers hold this; when the last of them goes, so do the workers.
pub struct Keep(pub Arc<Pool>, Option<FolderWatch>);

/// What asking for a worker gives.
pub(super) enum PoolAdmission {
    /// One has it.
    Given,
    /// It waits, under this number.
    Queued(u64),
    /// It gets none.
    Refused(ResidentFailure),
}

/// How a worker ended.
pub(super) struct Gone {
    /// Requests that it had not started.
    pub(super) unstarted: Vec<Arc<WorkerExchange>>,
    /// It was not asked to end.
    pub(super) is_crash: bool,
    /// Somebody else sent SIGKILL (an administrator, or the kernel for want of memory), or there
    /// was nothing to start it with.
    pub(super) is_blameless: bool,
    /// What happened, for people.
    pub(super) text: String,
}

impl Keep {
    /// Keeps a pool. `is_served`: its workers will run, so the program's files are watched if they
    /// are to be. May wait for a disk.
    pub(crate) fn new(pool: Arc<Pool>, is_served: bool) -> Keep {
        let watch = if is_served { pool.watch() } else { None };
        Keep(pool, watch)
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        drop(self.1.take());
        self.0.retire();
    }
}

impl Pool {
    pub(super) fn new(
        name: String,
        settings: Arc<config::Resident>,
        recipe: Recipe,
        disk: cache::disk_threads::DiskThreads,
        fleet: &Arc<Fleet>,
    ) -> Pool {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let workers = &settings.workers;
        let usual = (fleet.cores() * 2).max(workers.min);
        let most = UNSET_WORKERS_MAX.max(usual);
        Pool {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            name,
            workers_max: workers.max.unwrap_or(most).max(1),
            workers_usual: workers.max.is_none().then_some(usual),
            settings,
            bond: None,
            recipe: Mutex::new(recipe),
            pace: StderrRateLimit::default(),
            ends: StderrRateLimit::new(ENDS_AT_ONCE, ENDS_PER_SECOND),
            disk,
            fleet: Arc::clone(fleet),
            state: Mutex::new(PoolState {
                members: Vec::new(),
                waiting: BTreeMap::new(),
                next_ticket: 1 << 48,
                front_ticket: 1 << 48,
                next_number: 1,
                is_retired: false,
                failures: 0,
                is_unstartable: false,
                retry_at_ms: 0,
                last_failure: String::new(),
                told_failure: String::new(),
                told_remarks: Vec::new(),
                gauge: Gauge::default(),
                pace_ms: (0, 0),
                next_look_ms: 0,
                started: 0,
                lost: 0,
                replaced: 0,
                version: 0,
            }),
        }
    }

    /// The same for one worker, which belongs to a visitor.
    pub(super) fn bound(self, bond: PoolBond) -> Pool {
        Pool {
            bond: Some(bond),
            workers_max: 1,
            ..self
        }
    }

    /// Asks for a worker for a request of this thread.
    pub(super) fn enter(
        self: &Arc<Self>,
        exchange: &Arc<WorkerExchange>,
        thread: usize,
        now_us: u64,
    ) -> PoolAdmission {
        let now_ms = now_us / 1000;
        let mut state = self.state.lock();
        if let Some(mailbox) = state.assign(exchange, thread, now_us) {
            drop(state);
            self.hand(&mailbox, exchange, now_ms);
            return PoolAdmission::Given;
        }
        if state.is_retired {
            return PoolAdmission::Refused(self.retired());
        }
        if let Some(failure) = self.refuse_bound(&state) {
            return PoolAdmission::Refused(failure);
        }
        if state.waiting.len() >= self.settings.queue && !self.is_bound() {
            let why = self.why_no_more(&state);
            return PoolAdmission::Refused(ResidentFailure::QueueFull(why));
        }
        if state.is_hopeless(now_ms) {
            return PoolAdmission::Refused(ResidentFailure::Unstartable(
                state.last_failure.clone(),
            ));
        }
        if state.waiting.is_empty() {
            state.pace_ms.0 = now_ms;
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.insert(ticket, Arc::clone(exchange));
        state.next_look_ms = match state.next_look_ms {
            0 => now_ms + LOOK_EVERY.as_millis() as u64,
            set => set,
        };
        self.tend_locked(state, now_ms);
        PoolAdmission::Queued(ticket)
    }

    /// A request waits no longer. False when a worker has got it meanwhile.
    pub(super) fn withdraw(&self, ticket: u64) -> bool {
        self.state.lock().waiting.remove(&ticket).is_some()
    }

    /// Sees to it that there are as many workers as there should be.
    pub(crate) fn tend(self: &Arc<Self>, now_ms: u64) {
        let state = self.state.lock();
        self.tend_locked(state, now_ms);
    }

    /// A worker is ready for its first requests: those that wait.
    pub(super) fn ready(
        self: &Arc<Self>,
        mailbox: &Arc<WorkerMailbox>,
        now_us: u64,
        next: &mut VecDeque<Arc<WorkerExchange>>,
    ) {
        let mut state = self.state.lock();
        let mut drained = None;
        if let Some(member) = state.member(mailbox) {
            if member.stage != WorkerStage::Starting {
                return;
            }
            member.stage = WorkerStage::Ready;
            member.room_max = member.concurrency;
            member.idle_since_ms = now_us / 1000;
            drained = member.replaces.take();
            let version = member.version;
            state.drain_before(version);
        }
        if self.settings.carrier != CarrierChoice::Lines {
            state.told_failure.clear();
        }
        if let Some(number) = drained {
            state.drain(number);
            state.replaced += 1;
        }
        state.fill(mailbox, now_us, next);
        self.tend_locked(state, now_us / 1000);
    }

    /// A worker has finished a request, and may have so many ahead of those it works on; gives the
    /// next ones.
    pub(super) fn finished(
        &self,
        mailbox: &Arc<WorkerMailbox>,
        exchange: &Arc<WorkerExchange>,
        ahead: usize,
        now_us: u64,
        next: &mut VecDeque<Arc<WorkerExchange>>,
    ) {
        let mut state = self.state.lock();
        state.failures = 0;
        state.told_failure.clear();
        let Some(member) = state.member(mailbox) else {
            return;
        };
        member.lose(exchange);
        member.idle_since_ms = now_us / 1000;
        // What ends a visit is in the answer: nothing is handed over before that.
        member.room_max = match self.is_bound() {
            true => member.concurrency,
            false => member.concurrency + ahead,
        };
        state.fill(mailbox, now_us, next);
    }

    /// A worker has not come to requests that it was handed ahead: others get them, or they wait
    /// again, in front.
    pub(super) fn give_back(
        self: &Arc<Self>,
        mailbox: &Arc<WorkerMailbox>,
        exchanges: Vec<Arc<WorkerExchange>>,
        now_ms: u64,
    ) {
        let mut state = self.state.lock();
        if let Some(member) = state.member(mailbox) {
            member.room_max = member.concurrency.min(member.room_max);
            exchanges.iter().for_each(|exchange| member.lose(exchange));
        }
        let back = state.take_in(exchanges, mailbox.thread, now_ms);
        self.tend_locked(state, now_ms);
        self.see_to(back, now_ms);
    }

    /// A worker is told of a request that it was given. If it has ended meanwhile, others are.
    fn hand(
        self: &Arc<Self>,
        mailbox: &Arc<WorkerMailbox>,
        exchange: &Arc<WorkerExchange>,
        now_ms: u64,
    ) {
        if !mailbox.send(ToDriver::Begin(Arc::clone(exchange))) {
            self.give_back(mailbox, vec![Arc::clone(exchange)], now_ms);
        }
    }

    fn see_to(self: &Arc<Self>, back: Back, now_ms: u64) {
        for (mailbox, exchange) in back.given {
            self.hand(&mailbox, &exchange, now_ms);
        }
        back.wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether no worker has said this of all of them yet.
    pub(super) fn is_new_remark(&self, line: &[u8]) -> bool {
        let told = &mut self.state.lock().told_remarks;
        let is_new = told.len() < REMARKS_MAX && !told.iter().any(|one| **one == *line);
        if is_new {
            told.push(line.into());
        }
        is_new
    }

    /// Whether the log has not been told of this failed start yet.
    pub(super) fn is_new_failure(&self, why: &str) -> bool {
        let mut state = self.state.lock();
        let is_new = state.told_failure != why;
        why.clone_into(&mut state.told_failure);
        is_new
    }

    /// A worker takes no more requests.
    pub(super) fn close(&self, mailbox: &Arc<WorkerMailbox>) {
        if let Some(member) = self.state.lock().member(mailbox) {
            member.stage = WorkerStage::Draining;
        }
    }

    /// A worker that is idle asks whether it may go: there are more than `min`.
    pub(super) fn may_go(&self, mailbox: &Arc<WorkerMailbox>) -> bool {
        let mut state = self.state.lock();
        let alive = state.alive();
        let min = match self.is_bound() {
            true => 0,
            false => self.settings.workers.min,
        };
        match state.member(mailbox) {
            Some(member) if member.active.is_empty() && alive > min => {
                member.stage = WorkerStage::Draining;
                true
            }
            _ => false,
        }
    }

    /// A worker is due to be replaced: another is started, and when that is ready this one goes;
    /// before, where there may be none beside it. False when it stays for now.
    pub(super) fn replace(self: &Arc<Self>, mailbox: &Arc<WorkerMailbox>, now_ms: u64) -> bool {
        let mut state = self.state.lock();
        let may_start = now_ms >= state.retry_at_ms && !state.is_retired && !self.is_bound();
        match state.member(mailbox) {
            Some(member) if may_start && !member.is_being_replaced => {
                member.is_being_replaced = true;
            }
            _ => return false,
        }
        match self.order(&mut state, Some(mailbox.number), now_ms) {
            Ok(order) => {
                drop(state);
                self.fleet.start(order);
            }
            Err(_) => {
                state.drain(mailbox.number);
                state.replaced += 1;
            }
        }
        true
    }

    /// A worker's process has ended.
    pub(super) fn gone(self: &Arc<Self>, mailbox: &Arc<WorkerMailbox>, gone: Gone, now_ms: u64) {
        let mut state = self.state.lock();
        let Some(index) = state
            .members
            .iter()
            .position(|one| Arc::ptr_eq(&one.mailbox, mailbox))
        else {
            return;
        };
        let member = state.members.swap_remove(index);
        if let Some(old) = member.replaces {
            let mut members = state.members.iter_mut();
            if let Some(old) = members.find(|one| one.mailbox.number == old) {
                old.is_being_replaced = false;
            }
        }
        if self.is_bound() {
            drop(state);
            drop(member);
            return self.end_bound(mailbox, gone);
        }
        if gone.is_crash {
            state.lost += 1;
            // One of older files says nothing of those that are there now.
            if member.version == state.version {
                state.last_failure = gone.text;
                let begun = member.active.len().saturating_sub(gone.unstarted.len());
                let was_ready = match self.settings.carrier {
                    // It does not say that it is.
                    CarrierChoice::Lines => begun > 0 || mailbox.served.load(Ordering::Relaxed) > 0,
                    _ => member.room_max > 0,
                };
                state.note_crash(was_ready, gone.is_blameless, now_ms);
                // Nor do those answer for them: clients are told what is wrong.
                state.drain_before(member.version);
            }
        }
        let back = state.take_in(gone.unstarted, mailbox.thread, now_ms);
        // Its seat may be the one that the next needs.
        drop(member);
        self.tend_locked(state, now_ms);
        self.see_to(back, now_ms);
    }

    /// The one worker of a visitor is gone, and no other takes its place.
    fn end_bound(&self, mailbox: &WorkerMailbox, gone: Gone) {
        let was_of_use = mailbox.served.load(Ordering::Relaxed) > 0;
        let failure = match gone.is_crash && !was_of_use {
            true => ResidentFailure::Unstartable(gone.text.clone()),
            false => ResidentFailure::VisitOver,
        };
        for exchange in gone.unstarted {
            if let Some(waker) = exchange.end(Ending::Failed(failure.clone())) {
                waker.wake();
            }
        }
        let mut state = self.state.lock();
        state.is_retired = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        fail_all(waiting, &failure);
        self.tell_end(&match gone.is_crash {
            true => BondEnd::Died(gone.text),
            false => BondEnd::Ended,
        });
    }

    /// How long until a failed start may be tried again.
    pub(super) fn pause(&self, now_ms: u64) -> Option<Duration> {
        let state = self.state.lock();
        let left = state
            .retry_at_ms
            .checked_sub(now_ms)
            .filter(|left| *left > 0)?;
        Some(Duration::from_millis(left))
    }

    /// An idle worker above `min` goes, so that another program can have one.
    ///
    /// Whoever asks holds the lock of its own pool, so this never waits for one.
    pub(crate) fn make_room(&self) -> bool {
        let Some(mut state) = self.state.try_lock() else {
            return false;
        };
        if state.alive() <= self.settings.workers.min {
            return false;
        }
        let ready = state
            .members
            .iter()
            .filter(|one| one.stage == WorkerStage::Ready);
        let idle = ready.filter(|one| one.active.is_empty());
        let Some(number) = idle
            .min_by_key(|one| one.idle_since_ms)
            .map(|one| one.mailbox.number)
        else {
            return false;
        };
        state.drain(number);
        true
    }

    /// The server stops: programs end their tunnels when they hear that no more requests come.
    pub(crate) fn drain_tunnels(&self) {
        self.state.lock().drain_tunnels();
    }

    /// The server ends, and no thread has a request any more. Returns the time its workers have.
    pub(crate) fn leave(&self) -> Duration {
        self.retire();
        let state = self.state.lock();
        state.members.iter().for_each(|one| {
            one.mailbox.send(ToDriver::Leave);
        });
        self.settings.grace + LEAVE_SLACK
    }

    /// The program is no longer in the config, or the server ends.
    pub(super) fn retire(&self) {
        let mut state = self.state.lock();
        state.is_retired = true;
        state.members.iter_mut().for_each(Member::drain);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        fail_all(waiting, &self.retired());
    }

    /// Why there is no further worker, for people.
    pub(super) fn why(&self) -> String {
        self.why_no_more(&self.state.lock())
    }

    /// How many more workers there is memory for, when those there are take so much.
    pub(super) fn memory_room(&self, bytes: u64, count: usize, alive: usize) -> usize {
        let Some(usual) = self.workers_usual else {
            return usize::MAX;
        };
        let each = bytes.checked_div(count as u64).unwrap_or_default().max(1);
        let fit = self.fleet.memory_bytes() / UNSET_MEMORY_SHARE / each;
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        fit.max(usual).saturating_sub(alive)
    }

    /// Seconds after which a client that was turned away may try again: as long as those before it
    /// will take, at the pace of the last ones.
    pub(super) fn retry_after_s(&self, now_ms: u64) -> u64 {
        let state = self.state.lock();
        let count = state.waiting.len() as u64 + 1;
        let since_last_ms = now_ms.saturating_sub(state.pace_ms.0);
        let each_ms = match state.pace_ms.1 {
            0 => since_last_ms,
            pace_ms => pace_ms,
        };
        (count * each_ms).div_ceil(1000).clamp(1, RETRY_S_MAX)
    }

    fn why_no_more(&self, state: &PoolState) -> String {
        let alive = state.alive();
        let long = state.long_lived();
        match alive >= self.workers_max {
            true => format!("{alive} workers, the most there may be{long}"),
            false => format!("{alive} workers; {}{long}", state.gauge.why),
        }
    }

    /// What holds it back, for people.
    pub(super) fn growth(&self, state: &PoolState) -> String {
        let long = state.long_lived();
        let is_full = state.alive() >= self.workers_max && !state.waiting.is_empty();
        match is_full && !long.is_empty() {
            true => format!("as many workers as there may be{long}"),
            false => state.gauge.why.clone(),
        }
    }
}

pub(super) fn fail_all(waiting: BTreeMap<u64, Arc<WorkerExchange>>, failure: &ResidentFailure) {
    for exchange in waiting.into_values() {
        if let Some(waker) = exchange.end(Ending::Failed(failure.clone())) {
            waker.wake();
        }
    }
}
