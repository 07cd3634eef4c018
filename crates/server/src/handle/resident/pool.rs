//! The workers of one program and the requests that wait for one: the one place that decides who
//! gets what, whichever threads they are on.
//!
//! A request takes room of a worker of its own thread if there is any, else of another thread's,
//! else it waits. A worker that gets room takes the request that waits longest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::cache;
use crate::config::{self, CarrierChoice};
use crate::handle::cgi::stderr::Pace;
use crate::handle::resident::exchange::{Ending, Exchange};
use crate::handle::resident::fail::Failure;
use crate::handle::resident::limits::{
    BACKOFF_FIRST, BACKOFF_MAX, BACKOFF_REQUEST_MAX, LOOK_EVERY,
};
use crate::handle::resident::post::{Letter, Post};
use crate::handle::resident::scale::Gauge;
use crate::handle::resident::start::Recipe;
use crate::handle::resident::watch::Watch;
use crate::shared::fleet::{Fleet, NoSeat, Seat, now_ms};

/// The workers of one program.
pub(crate) struct Pool {
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

pub(super) struct State {
    pub(super) members: Vec<Member>,
    pub(super) waiting: BTreeMap<u64, Arc<Exchange>>,
    next_ticket: u64,
    /// Requests that go back to the front get falling numbers.
    front_ticket: u64,
    next_number: u64,
    pub(super) is_retired: bool,
    /// Workers in a row that ended before they were of use.
    pub(super) failures: u32,
    /// The last of them had no request: the program cannot be started.
    pub(super) is_unstartable: bool,
    pub(super) retry_at_ms: u64,
    pub(super) last_failure: String,
    pub(super) gauge: Gauge,
    next_look_ms: u64,
    pub(super) started: u64,
    pub(super) lost: u64,
    pub(super) replaced: u64,
    /// How often the program's files have changed.
    pub(super) version: u64,
}

/// One worker as its pool sees it.
pub(super) struct Member {
    pub(super) post: Arc<Post>,
    pub(super) stage: Stage,
    /// Of the program's files when it was started.
    pub(super) version: u64,
    /// Requests it may have, those handed to it ahead included.
    room_max: usize,
    /// Requests it works on at a time.
    concurrency: usize,
    pub(super) active: Vec<Arc<Exchange>>,
    /// It takes the place of this one once it is ready.
    replaces: Option<u64>,
    /// Another is on its way to take its place.
    is_being_replaced: bool,
    /// Since when it has no request, in loop time.
    pub(super) idle_since_ms: u64,
    _seat: Seat,
}

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Starting,
    Ready,
    Draining,
}

/// What asking for a worker gives.
pub(super) enum Entry {
    /// One has it.
    Given,
    /// It waits, under this number.
    Queued(u64),
    /// It gets none.
    Refused(Failure),
}

/// A worker to be started on a thread. Dropped unheard, it is as if the worker had ended.
pub(crate) struct Order {
    pub(super) pool: Arc<Pool>,
    pub(super) post: Arc<Post>,
    is_taken: bool,
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

impl Order {
    /// The thread it is to be started on.
    pub(crate) fn thread(&self) -> usize {
        self.post.thread
    }

    /// Whoever starts the worker answers for it from now on.
    pub(super) fn take(mut self) -> (Arc<Pool>, Arc<Post>) {
        self.is_taken = true;
        (Arc::clone(&self.pool), Arc::clone(&self.post))
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        if !self.is_taken {
            let gone = Gone {
                unstarted: Vec::new(),
                is_crash: true,
                was_killed: false,
                text: "its thread has ended".to_owned(),
            };
            self.pool.gone(&self.post, gone, now_ms());
        }
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
        let workers = &settings.workers;
        let usual = (fleet.cores() * 2).max(workers.min);
        Pool {
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
        now_ms: u64,
    ) -> Entry {
        let mut state = self.lock();
        if let Some(post) = state.assign(exchange, thread, now_ms) {
            drop(state);
            post.post(Letter::Begin(Arc::clone(exchange)));
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
        now_ms: u64,
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
            member.idle_since_ms = now_ms;
            drained = member.replaces.take();
            let version = member.version;
            state.drain_before(version);
        }
        if let Some(number) = drained {
            state.drain(number);
            state.replaced += 1;
        }
        state.fill(post, now_ms, next);
        self.tend_locked(state, now_ms);
    }

    /// A worker has finished a request, and may have so many ahead of those it works on; gives the
    /// next ones.
    pub(super) fn finished(
        &self,
        post: &Arc<Post>,
        exchange: &Arc<Exchange>,
        ahead: usize,
        now_ms: u64,
        next: &mut VecDeque<Arc<Exchange>>,
    ) {
        let mut state = self.lock();
        state.failures = 0;
        let Some(member) = state.member(post) else {
            return;
        };
        member.active.retain(|one| !Arc::ptr_eq(one, exchange));
        member.idle_since_ms = now_ms;
        member.room_max = member.concurrency + ahead;
        state.fill(post, now_ms, next);
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
            member.room_max = member.concurrency;
            let is_back = |one: &Arc<Exchange>| exchanges.iter().any(|back| Arc::ptr_eq(back, one));
            member.active.retain(|one| !is_back(one));
        }
        let (mut letters, mut wakers) = (Vec::new(), Vec::new());
        for exchange in exchanges.into_iter().rev() {
            match state.assign(&exchange, post.thread, now_ms) {
                Some(post) => letters.push((post, exchange)),
                None => wakers.extend(state.put_in_front(exchange)),
            }
        }
        self.tend_locked(state, now_ms);
        for (post, exchange) in letters {
            post.post(Letter::Begin(exchange));
        }
        wakers.into_iter().for_each(Waker::wake);
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
        let unstarted = gone.unstarted.into_iter().rev();
        let wakers: Vec<_> = unstarted
            .filter_map(|exchange| state.put_in_front(exchange))
            .collect();
        // Its seat may be the one that the next needs.
        drop(member);
        self.tend_locked(state, now_ms);
        wakers.into_iter().for_each(Waker::wake);
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

    /// The program is no longer in the config.
    fn retire(&self) {
        let mut state = self.lock();
        state.is_retired = true;
        for member in &mut state.members {
            member.stage = Stage::Draining;
            member.post.post(Letter::Drain);
        }
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

    /// Starts what should be started, and tells those whose waiting is in vain.
    pub(super) fn tend_locked(self: &Arc<Self>, mut state: MutexGuard<'_, State>, now_ms: u64) {
        let mut orders = Vec::new();
        let mut refused = None;
        let wanted = self.wanted(&mut state, now_ms);
        for _ in 0..wanted {
            match self.order(&mut state, None, now_ms) {
                Ok(order) => orders.push(order),
                Err(NoSeat::Soon) => {
                    state.gauge.why = "an idle worker of another program makes room".to_owned();
                    break;
                }
                Err(NoSeat::Full) => {
                    state.gauge.why = "every worker of the server is in use".to_owned();
                    if state.members.is_empty() {
                        refused = Some(Failure::NoWorkers);
                    }
                    break;
                }
            }
        }
        if state.is_hopeless(now_ms) {
            refused = Some(Failure::Unstartable(state.last_failure.clone()));
        }
        let in_vain = match &refused {
            Some(_) => std::mem::take(&mut state.waiting),
            None => BTreeMap::new(),
        };
        drop(state);
        if let Some(failure) = &refused {
            fail_all(in_vain, failure);
        }
        for order in orders {
            self.fleet.start(order);
        }
    }

    /// How many workers to start now.
    fn wanted(&self, state: &mut State, now_ms: u64) -> usize {
        if state.is_retired || now_ms < state.retry_at_ms {
            return 0;
        }
        let alive = state.alive();
        // A server that stops starts nothing but what somebody waits for.
        let min = match self.fleet.is_stopping() {
            true => 0,
            false => self.settings.workers.min,
        };
        let least = min.max(usize::from(!state.waiting.is_empty()));
        let starting = state
            .members
            .iter()
            .filter(|one| one.stage == Stage::Starting)
            .count();
        let mut members = state.members.iter();
        if members.any(|one| one.stage == Stage::Draining && one.room_max == 0) {
            // How one ends that never was ready says whether another is worth its while.
            return 0;
        }
        // After a failure one at a time, until one is of use.
        let at_once_max = match state.failures {
            0 => usize::MAX,
            _ => usize::from(starting == 0),
        };
        if alive < least {
            return (least - alive).min(at_once_max);
        }
        if state.waiting.is_empty() {
            state.next_look_ms = 0;
            return 0;
        }
        if starting > 0 || alive >= self.workers_max || now_ms < state.next_look_ms {
            return 0;
        }
        state.next_look_ms = now_ms + LOOK_EVERY.as_millis() as u64;
        let pids: Vec<u32> = state
            .members
            .iter()
            .filter_map(|one| one.post.pid())
            .collect();
        let room = self.workers_max - alive;
        let waiting = state.waiting.len();
        state.gauge.more(
            &pids,
            now_ms,
            self.fleet.cores(),
            waiting.min(room).min(at_once_max),
        )
    }

    /// Takes a seat and a thread for one more worker.
    pub(super) fn order(
        self: &Arc<Self>,
        state: &mut State,
        replaces: Option<u64>,
        now_ms: u64,
    ) -> Result<Order, NoSeat> {
        let seat = self.fleet.seat(self, now_ms)?;
        let thread = self.fleet.choose_thread(|thread| {
            let members = state.members.iter();
            members.filter(|one| one.post.thread == thread).count()
        });
        let thread = thread.ok_or(NoSeat::Full)?;
        let post = Post::new(state.next_number, thread, now_ms);
        state.next_number += 1;
        state.started += 1;
        state.members.push(Member {
            post: Arc::clone(&post),
            stage: Stage::Starting,
            version: state.version,
            room_max: 0,
            concurrency: usize::from(self.settings.workers.concurrency),
            active: Vec::new(),
            replaces,
            is_being_replaced: false,
            idle_since_ms: now_ms,
            _seat: seat,
        });
        Ok(Order {
            pool: Arc::clone(self),
            post,
            is_taken: false,
        })
    }
}

impl State {
    /// Workers that are there or on their way.
    pub(super) fn alive(&self) -> usize {
        let alive = self
            .members
            .iter()
            .filter(|one| one.stage != Stage::Draining);
        alive.filter(|one| one.replaces.is_none()).count()
    }

    /// A worker ended that nobody had asked to. One that ended by itself before it was ready shows
    /// that the program cannot be started; requests that end their workers, and whoever kills them,
    /// must not keep others waiting.
    fn note_crash(&mut self, was_ready: bool, was_killed: bool, now_ms: u64) {
        self.failures += 1;
        self.is_unstartable = !was_ready && !was_killed;
        let pause = match self.is_unstartable {
            true => backoff(self.failures),
            false if self.failures == 1 => Duration::ZERO,
            false => backoff(self.failures - 1).min(BACKOFF_REQUEST_MAX),
        };
        self.retry_at_ms = now_ms + pause.as_millis() as u64;
    }

    /// There is no worker, and there will be none soon.
    fn is_hopeless(&self, now_ms: u64) -> bool {
        let mut stages = self.members.iter().map(|one| one.stage);
        self.is_unstartable
            && now_ms < self.retry_at_ms
            && stages.all(|stage| stage == Stage::Draining)
    }

    fn member(&mut self, post: &Arc<Post>) -> Option<&mut Member> {
        let mut members = self.members.iter_mut();
        members.find(|one| Arc::ptr_eq(&one.post, post))
    }

    /// Gives a request to the worker with the most room, one of this thread first.
    fn assign(
        &mut self,
        exchange: &Arc<Exchange>,
        thread: usize,
        now_ms: u64,
    ) -> Option<Arc<Post>> {
        let members = self.members.iter_mut();
        let free = members.filter(|one| one.has_room_for(exchange));
        let best = free.min_by_key(|one| {
            let is_ahead = one.active.len() >= one.concurrency;
            (is_ahead, one.post.thread != thread, one.active.len())
        })?;
        best.give(exchange, now_ms);
        Some(Arc::clone(&best.post))
    }

    /// The requests that wait longest go to this worker, as far as it has room.
    fn fill(&mut self, post: &Arc<Post>, now_ms: u64, next: &mut VecDeque<Arc<Exchange>>) {
        let mut members = self.members.iter_mut();
        let Some(member) = members.find(|one| Arc::ptr_eq(&one.post, post)) else {
            return;
        };
        while let Some(first) = self.waiting.first_entry()
            && member.has_room_for(first.get())
        {
            let exchange = first.remove();
            member.give(&exchange, now_ms);
            next.push_back(exchange);
        }
    }

    /// A request comes back and waits before all others.
    fn put_in_front(&mut self, exchange: Arc<Exchange>) -> Option<Waker> {
        self.front_ticket -= 1;
        let waker = exchange.requeue(self.front_ticket);
        self.waiting.insert(self.front_ticket, exchange);
        waker
    }

    pub(super) fn drain(&mut self, number: u64) {
        let mut members = self.members.iter_mut();
        if let Some(member) = members.find(|one| one.post.number == number) {
            member.stage = Stage::Draining;
            member.post.post(Letter::Drain);
        }
    }
}

impl Member {
    /// A request with a body cannot be taken back, so it is never handed over ahead.
    fn has_room_for(&self, exchange: &Exchange) -> bool {
        let room_max = match exchange.has_body {
            true => self.concurrency,
            false => self.room_max,
        };
        self.stage == Stage::Ready && self.active.len() < room_max
    }

    fn give(&mut self, exchange: &Arc<Exchange>, now_ms: u64) {
        exchange.give(&self.post, now_ms);
        self.active.push(Arc::clone(exchange));
    }
}

/// The pause after so many workers in a row that were of no use.
fn backoff(failures: u32) -> Duration {
    let doubled = failures.saturating_sub(1).min(16);
    (BACKOFF_FIRST * (1 << doubled)).min(BACKOFF_MAX)
}

fn fail_all(waiting: BTreeMap<u64, Arc<Exchange>>, failure: &Failure) {
    for exchange in waiting.into_values() {
        if let Some(waker) = exchange.end(Ending::Failed(failure.clone())) {
            waker.wake();
        }
    }
}
