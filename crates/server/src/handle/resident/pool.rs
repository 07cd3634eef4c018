//! The workers of one program and the requests that wait for one: the one place that decides who
//! gets what, whichever threads they are on.
//!
//! A request takes room of a worker of its own thread if there is any, else of another thread's,
//! else it waits. A worker that gets room takes the request that waits longest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::cache;
use crate::config::{self, CarrierChoice};
use crate::handle::cgi::stderr::Pace;
use crate::handle::resident::exchange::{Ending, Exchange};
use crate::handle::resident::fail::Failure;
use crate::handle::resident::limits::LOOK_EVERY;
use crate::handle::resident::members::{Back, Member, Stage, State};
use crate::handle::resident::post::{Letter, Post};
use crate::handle::resident::scale::Gauge;
use crate::handle::resident::start::Recipe;
use crate::handle::resident::watch::Watch;
use crate::shared::fleet::Fleet;

/// The workers of one program.
pub(crate) struct Pool {
    /// No other pool of this process ever has it.
    pub(crate) number: u64,
    /// The route and what runs, for people.
    pub(super) name: String,
    /// As configured.
    pub(super) settings: config::Resident,
    /// Most workers.
    pub(super) workers_max: usize,
    /// How its processes are started.
    pub(super) recipe: Mutex<Recipe>,
    /// How much of what they print is logged.
    pub(super) pace: Pace,
    /// Threads that may wait for files the program passes.
    pub(super) disk: cache::pool::Pool,
    pub(super) fleet: Arc<Fleet>,
    state: Mutex<State>,
}

/// Handlers hold this; when the last of them goes, so do the workers.
pub(crate) struct Keep(pub(crate) Arc<Pool>, Option<Watch>);

/// What asking for a worker gives.
pub(super) enum Entry {
    /// One has it.
    Given,
    /// It waits, under this number.
    Queued(u64),
    /// It gets none.
    Refused(Failure),
}

/// How a worker ended.
pub(super) struct Gone {
    /// Requests that it had not started.
    pub(super) unstarted: Vec<Arc<Exchange>>,
    /// It was not asked to end.
    pub(super) is_crash: bool,
    /// Somebody else sent SIGKILL: an administrator, or the kernel for want of memory.
    pub(super) was_killed: bool,
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
        settings: config::Resident,
        recipe: Recipe,
        disk: cache::pool::Pool,
        fleet: &Arc<Fleet>,
    ) -> Pool {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let workers = &settings.workers;
        let usual = (fleet.cores() * 2).max(workers.min);
        Pool {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            name,
            workers_max: workers.max.unwrap_or(usual).max(1),
            settings,
            recipe: Mutex::new(recipe),
            pace: Pace::default(),
            disk,
            fleet: Arc::clone(fleet),
            state: Mutex::new(State {
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
                gauge: Gauge::default(),
                next_look_ms: 0,
                started: 0,
                lost: 0,
                replaced: 0,
                version: 0,
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a worker for a request of this thread.
    pub(super) fn enter(
        self: &Arc<Self>,
        exchange: &Arc<Exchange>,
        thread: usize,
        now_us: u64,
    ) -> Entry {
        let now_ms = now_us / 1000;
        let mut state = self.lock();
        if let Some(post) = state.assign(exchange, thread, now_us) {
            drop(state);
            self.hand(&post, exchange, now_ms);
            return Entry::Given;
        }
        if state.waiting.len() >= self.settings.queue {
            let why = self.why_no_more(&state);
            return Entry::Refused(Failure::QueueFull(why));
        }
        if state.is_hopeless(now_ms) {
            return Entry::Refused(Failure::Unstartable(state.last_failure.clone()));
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.insert(ticket, Arc::clone(exchange));
        state.next_look_ms = match state.next_look_ms {
            0 => now_ms + LOOK_EVERY.as_millis() as u64,
            set => set,
        };
        self.tend_locked(state, now_ms);
        Entry::Queued(ticket)
    }

    /// A request waits no longer. False when a worker has got it meanwhile.
    pub(super) fn withdraw(&self, ticket: u64) -> bool {
        self.lock().waiting.remove(&ticket).is_some()
    }

    /// Sees to it that there are as many workers as there should be.
    pub(crate) fn tend(self: &Arc<Self>, now_ms: u64) {
        let state = self.lock();
        self.tend_locked(state, now_ms);
    }

    /// A worker is ready for its first requests: those that wait.
    pub(super) fn ready(
        self: &Arc<Self>,
        post: &Arc<Post>,
        now_us: u64,
        next: &mut VecDeque<Arc<Exchange>>,
    ) {
        let mut state = self.lock();
        let mut drained = None;
        if let Some(member) = state.member(post) {
            if member.stage != Stage::Starting {
                return;
            }
            member.stage = Stage::Ready;
            member.room_max = member.concurrency;
            member.idle_since_ms = now_us / 1000;
            drained = member.replaces.take();
            let version = member.version;
            state.drain_before(version);
        }
        if let Some(number) = drained {
            state.drain(number);
            state.replaced += 1;
        }
        state.fill(post, now_us, next);
        self.tend_locked(state, now_us / 1000);
    }

    /// A worker has finished a request, and may have so many ahead of those it works on; gives the
    /// next ones.
    pub(super) fn finished(
        &self,
        post: &Arc<Post>,
        exchange: &Arc<Exchange>,
        ahead: usize,
        now_us: u64,
        next: &mut VecDeque<Arc<Exchange>>,
    ) {
        let mut state = self.lock();
        state.failures = 0;
        let Some(member) = state.member(post) else {
            return;
        };
        member.lose(exchange);
        member.idle_since_ms = now_us / 1000;
        member.room_max = member.concurrency + ahead;
        state.fill(post, now_us, next);
    }

    /// A worker has not come to requests that it was handed ahead: others get them, or they wait
    /// again, in front.
    pub(super) fn give_back(
        self: &Arc<Self>,
        post: &Arc<Post>,
        exchanges: Vec<Arc<Exchange>>,
        now_ms: u64,
    ) {
        let mut state = self.lock();
        if let Some(member) = state.member(post) {
            member.room_max = member.concurrency.min(member.room_max);
            exchanges.iter().for_each(|exchange| member.lose(exchange));
        }
        let back = state.take_in(exchanges, post.thread, now_ms);
        self.tend_locked(state, now_ms);
        self.see_to(back, now_ms);
    }

    /// A worker is told of a request that it was given. If it has ended meanwhile, others are.
    fn hand(self: &Arc<Self>, post: &Arc<Post>, exchange: &Arc<Exchange>, now_ms: u64) {
        if !post.post(Letter::Begin(Arc::clone(exchange))) {
            self.give_back(post, vec![Arc::clone(exchange)], now_ms);
        }
    }

    fn see_to(self: &Arc<Self>, back: Back, now_ms: u64) {
        for (post, exchange) in back.given {
            self.hand(&post, &exchange, now_ms);
        }
        back.wakers.into_iter().for_each(Waker::wake);
    }

    /// A worker takes no more requests.
    pub(super) fn close(&self, post: &Arc<Post>) {
        if let Some(member) = self.lock().member(post) {
            member.stage = Stage::Draining;
        }
    }

    /// A worker that is idle asks whether it may go: there are more than `min`.
    pub(super) fn may_go(&self, post: &Arc<Post>) -> bool {
        let mut state = self.lock();
        let alive = state.alive();
        let min = self.settings.workers.min;
        match state.member(post) {
            Some(member) if member.active.is_empty() && alive > min => {
                member.stage = Stage::Draining;
                true
            }
            _ => false,
        }
    }

    /// A worker is due to be replaced: another is started, and when that is ready this one goes;
    /// before, where there may be none beside it. False when it stays for now.
    pub(super) fn replace(self: &Arc<Self>, post: &Arc<Post>, now_ms: u64) -> bool {
        let mut state = self.lock();
        let may_start = now_ms >= state.retry_at_ms && !state.is_retired;
        match state.member(post) {
            Some(member) if may_start && !member.is_being_replaced => {
                member.is_being_replaced = true;
            }
            _ => return false,
        }
        match self.order(&mut state, Some(post.number), now_ms) {
            Ok(order) => {
                drop(state);
                self.fleet.start(order);
            }
            Err(_) => {
                state.drain(post.number);
                state.replaced += 1;
            }
        }
        true
    }

    /// A worker's process has ended.
    pub(super) fn gone(self: &Arc<Self>, post: &Arc<Post>, gone: Gone, now_ms: u64) {
        let mut state = self.lock();
        let Some(index) = state
            .members
            .iter()
            .position(|one| Arc::ptr_eq(&one.post, post))
        else {
            return;
        };
        let member = state.members.swap_remove(index);
        if let Some(old) = member.replaces {
            let mut members = state.members.iter_mut();
            if let Some(old) = members.find(|one| one.post.number == old) {
                old.is_being_replaced = false;
            }
        }
        if gone.is_crash {
            state.lost += 1;
            // One of older files says nothing of those that are there now.
            if member.version == state.version {
                state.last_failure = gone.text;
                let begun = member.active.len().saturating_sub(gone.unstarted.len());
                let was_ready = match self.settings.carrier {
                    // It does not say that it is.
                    CarrierChoice::Lines => begun > 0 || post.served.load(Ordering::Relaxed) > 0,
                    _ => member.room_max > 0,
                };
                state.note_crash(was_ready, gone.was_killed, now_ms);
                // Nor do those answer for them: clients are told what is wrong.
                state.drain_before(member.version);
            }
        }
        let back = state.take_in(gone.unstarted, post.thread, now_ms);
        // Its seat may be the one that the next needs.
        drop(member);
        self.tend_locked(state, now_ms);
        self.see_to(back, now_ms);
    }

    /// How long until a failed start may be tried again.
    pub(super) fn pause(&self, now_ms: u64) -> Option<Duration> {
        let state = self.lock();
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
        let Ok(mut state) = self.state.try_lock() else {
            return false;
        };
        if state.alive() <= self.settings.workers.min {
            return false;
        }
        let ready = state.members.iter().filter(|one| one.stage == Stage::Ready);
        let idle = ready.filter(|one| one.active.is_empty());
        let Some(number) = idle
            .min_by_key(|one| one.idle_since_ms)
            .map(|one| one.post.number)
        else {
            return false;
        };
        state.drain(number);
        true
    }

    /// The server stops: programs end their tunnels when they hear that no more requests come.
    pub(crate) fn drain_tunnels(&self) {
        self.lock().drain_tunnels();
    }

    /// The program is no longer in the config.
    fn retire(&self) {
        let mut state = self.lock();
        state.is_retired = true;
        state.members.iter_mut().for_each(Member::drain);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        fail_all(waiting, &Failure::Stopping);
    }

    /// Why there is no further worker, for people.
    pub(super) fn why(&self) -> String {
        self.why_no_more(&self.lock())
    }

    fn why_no_more(&self, state: &State) -> String {
        let alive = state.alive();
        match alive >= self.workers_max {
            true => format!("{alive} workers, the most there may be"),
            false => format!("{alive} workers; {}", state.gauge.why),
        }
    }
}

pub(super) fn fail_all(waiting: BTreeMap<u64, Arc<Exchange>>, failure: &Failure) {
    for exchange in waiting.into_values() {
        if let Some(waker) = exchange.end(Ending::Failed(failure.clone())) {
            waker.wake();
        }
    }
}
