//! What code on a server thread waits with: descriptors, timers and tasks on the thread's own loop.
//!
//! - `watched` a descriptor in the thread's epoll set
//! - `timer` deadlines on the thread's clock, a tick each or to the millisecond
//! - `task` futures that belong to the thread and to no connection
//! - `standby` queues in memory that other processes fill
//! - `files` open files that count beside those of clients
//! - `draining` who ends at once when the thread drains
//! - `ready` connections that are to be driven, `wheel` deadlines of connections
//! - `wake` how wakers reach the thread, from itself and from others
//! - `slab` numbered places for all of them
//!
//! A [`Reactor`] is a counted handle that stays on its thread; [`Request::reactor`] gives it to
//! whoever answers, [`Answer::start`] to whoever lives as long as the thread.
//!
//! [`Request::reactor`]: crate::Request::reactor
//! [`Answer::start`]: crate::Answer::start

mod draining;
mod files;
pub(crate) mod ready;
mod slab;
mod standby;
mod task;
mod timer;
pub(crate) mod wake;
mod watched;
pub(crate) mod wheel;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hob_trace::watch::Station;
use rustix::event::epoll::EventFlags;

use draining::DrainWatches;
use ready::ReadyList;
use standby::Standbys;
use task::{Care, Tasks};
use timer::Timers;
use wake::Bell;
use watched::{IoSources, WatchedSet};

pub use draining::DrainWatch;
pub(crate) use files::{FilesBeside, HeldFile};
pub use standby::{Standby, StandbyGuard};
pub use task::Hold;
pub use timer::Timer;
pub use watched::{RestingFd, Watched};

/// Keys with this bit belong to the reactor: to a watched descriptor among the events of the epoll
/// set, to a task among wakes. Keys of connections never have it.
pub(crate) const REACTOR: u64 = 1 << 63;

/// The loop of one server thread, for what is not a connection.
#[derive(Clone)]
pub struct Reactor(Rc<ReactorState>);

struct ReactorState {
    /// `None` when no thread drives it.
    home: Option<ReactorThread>,
    /// Connections to be driven in this turn: a task that makes an answer puts its own there.
    ready: Rc<ReadyList>,
    /// When this turn began, in microseconds of loop time.
    now_us: Cell<u64>,
    /// When the next timer is due; asked for in every turn.
    next_timer_ms: Cell<u64>,
    /// The same for precise ones.
    next_precise_ms: Cell<u64>,
    /// Descriptors that somebody waits for.
    sources: RefCell<IoSources>,
    /// Moments that somebody waits for.
    timers: RefCell<Timers>,
    /// Futures that this thread drives.
    tasks: RefCell<Tasks>,
    /// Counted: one here, and one for each [`Hold`].
    holds: Rc<()>,
    /// The same for [`Reactor::stay`].
    stays: Rc<()>,
    /// Queues in memory that are looked at before the thread sleeps.
    standbys: RefCell<Standbys>,
    /// Who wants to hear that the thread drains.
    drain_watches: RefCell<DrainWatches>,
    /// Who watches what happens on this thread.
    station: Station,
    /// Tasks to be polled, in order.
    woken: RefCell<VecDeque<u64>>,
}

/// The thread that drives a reactor, as the reactor sees it.
struct ReactorThread {
    set: Arc<WatchedSet>,
    /// What wakes it from other threads.
    bell: Arc<dyn Bell>,
    beside: FilesBeside,
}

impl Reactor {
    /// The reactor of a thread.
    pub(crate) fn new(epoll: &Arc<OwnedFd>, bell: Arc<dyn Bell>, beside: FilesBeside) -> Reactor {
        Reactor::with_home(Some(ReactorThread {
            set: Arc::new(WatchedSet::new(epoll)),
            bell,
            beside,
        }))
    }

    /// A reactor that nobody drives: what waits on it waits for ever, and its time stands still.
    pub(crate) fn offline() -> Reactor {
        Reactor::with_home(None)
    }

    fn with_home(home: Option<ReactorThread>) -> Reactor {
        Reactor(Rc::new(ReactorState {
            home,
            ready: Rc::default(),
            now_us: Cell::new(0),
            next_timer_ms: Cell::new(u64::MAX),
            next_precise_ms: Cell::new(u64::MAX),
            sources: RefCell::default(),
            timers: RefCell::default(),
            tasks: RefCell::default(),
            holds: Rc::default(),
            stays: Rc::default(),
            standbys: RefCell::default(),
            drain_watches: RefCell::default(),
            station: Station::default(),
            woken: RefCell::default(),
        }))
    }

    /// Takes a descriptor into the thread's epoll set, edge-triggered, and makes it non-blocking.
    ///
    /// # Errors
    /// What the kernel says: a regular file cannot be watched (EPERM).
    pub fn watch(&self, fd: OwnedFd) -> io::Result<Watched> {
        Watched::new(self, fd)
    }

    /// Like [`Reactor::watch`], but the descriptor stays out of the epoll set until
    /// [`Watched::begin`]: for what is mostly over before anyone needs to be woken for it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn watch_later(&self, fd: OwnedFd) -> io::Result<Watched> {
        Watched::unseen(self, fd)
    }

    /// A timer that is not set yet.
    pub fn timer(&self) -> Timer {
        Timer::new(self)
    }

    /// Runs a task on this thread, beside its connections. Nobody waits for its end but the
    /// thread's drain, and that until its deadline; then the task is dropped.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.add_task(Box::pin(task), Care::Awaited);
    }

    /// Runs a task that serves the thread for as long as it lives: a drain does not wait for it.
    pub fn spawn_standing(&self, task: impl Future<Output = ()> + 'static) {
        self.add_task(Box::pin(task), Care::Standing);
    }

    /// Has a drain wait until this is dropped, or its deadline has come: for a standing task that
    /// has something under way.
    pub fn hold(&self) -> Hold {
        self.add_hold()
    }

    /// Has a thread that has finished its drain, and has said so ([`Answer::leave`]), wait until
    /// this is dropped, or the time it was given for that is over.
    ///
    /// [`Answer::leave`]: crate::Answer::leave
    pub fn stay(&self) -> Hold {
        self.add_stay()
    }

    /// When this turn of the loop began, in milliseconds on the monotonic clock.
    pub fn now_ms(&self) -> u64 {
        self.now_us() / 1000
    }

    /// The same in microseconds.
    pub fn now_us(&self) -> u64 {
        self.0.now_us.get()
    }

    /// Who watches what happens on this thread.
    pub fn station(&self) -> &Station {
        &self.0.station
    }

    pub(crate) fn ready(&self) -> &Rc<ReadyList> {
        &self.0.ready
    }

    pub(crate) fn begin_turn(&self, now_us: u64) {
        self.0.now_us.set(now_us);
    }

    /// A watched descriptor can do something now.
    pub(crate) fn note_events(&self, key: u64, flags: EventFlags) {
        let wakers = self.0.sources.borrow_mut().note(key & !REACTOR, flags);
        for waker in wakers.into_iter().flatten() {
            waker.wake();
        }
    }

    /// When the next timer is due, in milliseconds; `u64::MAX` for none.
    pub(crate) fn next_timer_ms(&self) -> u64 {
        self.0.next_timer_ms.get()
    }

    /// How long the thread may wait for events because of a precise timer; `None` if there is none.
    pub(crate) fn wait_ms_max(&self) -> Option<u64> {
        let next_ms = self.0.next_precise_ms.get();
        (next_ms != u64::MAX).then(|| next_ms.saturating_sub(self.now_ms()))
    }

    /// Wakes those whose precise timers have run out.
    pub(crate) fn run_precise_timers(&self) {
        if self.0.next_precise_ms.get() <= self.now_ms() {
            self.run_timers();
        }
    }

    /// Wakes those whose timers have run out.
    pub(crate) fn run_timers(&self) {
        let now_ms = self.now_ms();
        for waker in self.with_timers(|timers| timers.take_due(now_ms)) {
            waker.wake();
        }
    }

    fn with_timers<R>(&self, change: impl FnOnce(&mut Timers) -> R) -> R {
        let mut timers = self.0.timers.borrow_mut();
        let result = change(&mut timers);
        self.0.next_timer_ms.set(timers.next_ms());
        self.0.next_precise_ms.set(timers.next_precise_ms());
        result
    }

    /// The thread ends: what waits here never goes on.
    pub(crate) fn shut(&self) {
        let tasks = self.0.tasks.borrow_mut().shut();
        drop(tasks);
    }

    /// Timers and deadlines are in whole milliseconds, rounded up.
    fn after(&self, time: Duration) -> u64 {
        let ms = u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        self.now_ms().saturating_add(ms)
    }
}
