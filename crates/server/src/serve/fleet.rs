//! The workers of all resident programs together: how many there may be, on which threads they
//! start, and the pools they belong to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use hob_http::thread::{Crew, Handle, Thread};
use hob_machine::usable_memory_bytes;
use hob_trace::Mutex;

use crate::handle::page::visits::home::PageVisitHome;
use crate::handle::resident::grow::WorkerStart;
use crate::handle::resident::pool::{Keep, Pool};
use crate::handle::script::visits::told::ProgramVisits;
use crate::handle::session::visit::SessionTable;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::run::program::RunProgram;
use crate::handle::warm::WarmHost;
use crate::serve::context::Answers;
use crate::serve::predecessor::Predecessor;

/// All workers.
pub struct Fleet {
    workers_max: AtomicUsize,
    workers: AtomicUsize,
    /// A bit for each thread that has ended.
    lost_threads: AtomicU64,
    /// When an idle worker was last told to make room, in loop time.
    room_ms: AtomicU64,
    /// Read when it is first asked for.
    memory_bytes: OnceLock<u64>,
    crew: OnceLock<Arc<Crew>>,
    /// By name of their program and all its settings.
    pools: Mutex<HashMap<String, RegisteredPool>>,
    /// Visits of programs, by the same.
    tables: Registered<SessionTable>,
    /// Visits of pages, by their routes.
    pub(crate) page_visits: Registered<PageVisitHome>,
    /// Another server has come, and passes on what belongs to visits here.
    keeps_visits: AtomicBool,
}

/// What outlives a reload as long as somebody uses it, by name.
pub(crate) struct Registered<T>(Mutex<HashMap<String, Weak<T>>>);

impl<T> Registered<T> {
    fn new() -> Registered<T> {
        Registered(Mutex::default())
    }

    /// The one of this name, or what `make` makes.
    pub(crate) fn get_or(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = self.0.lock();
        all.retain(|_, known| known.strong_count() > 0);
        if let Some(known) = all.get(name).and_then(Weak::upgrade) {
            return known;
        }
        let made = Arc::new(make());
        all.insert(name.to_owned(), Arc::downgrade(&made));
        made
    }

    /// All of them, by their names.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let all = self.0.lock();
        let mut all: Vec<_> = all.iter().collect();
        all.sort_by_key(|(name, _)| *name);
        let all = all.into_iter();
        all.filter_map(|(_, known)| known.upgrade()).collect()
    }
}

/// A pool, and what keeps it.
struct RegisteredPool {
    keep: Weak<Keep>,
    pool: Weak<Pool>,
}

/// Why there is no place for one more worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSeat {
    /// One is being made.
    Soon,
    /// All are in use.
    Full,
}

/// Milliseconds between two idle workers that make room: one that was told takes a while to go.
const ROOM_MS_EVERY: u64 = 100;
/// Milliseconds within which an idle worker that was told to go is taken to be gone.
const ROOM_MS_MAX: u64 = 2_000;

/// A worker's place among all.
pub(crate) struct WorkerSeat(Arc<Fleet>);

impl Drop for WorkerSeat {
    fn drop(&mut self) {
        self.0.workers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Fleet {
    /// No workers, and no threads to start them on yet.
    pub(crate) fn new() -> Arc<Fleet> {
        Arc::new(Fleet {
            workers_max: AtomicUsize::new(usize::MAX),
            workers: AtomicUsize::new(0),
            lost_threads: AtomicU64::new(0),
            room_ms: AtomicU64::new(0),
            memory_bytes: OnceLock::new(),
            crew: OnceLock::new(),
            pools: Mutex::default(),
            keeps_visits: AtomicBool::new(false),
            tables: Registered::new(),
            page_visits: Registered::new(),
        })
    }

    /// From now on workers can be started.
    pub fn set_crew(&self, crew: &Arc<Crew>) {
        // Called once; there is one crew.
        let _ = self.crew.set(Arc::clone(crew));
    }

    /// Most workers.
    pub fn set_workers_max(&self, workers_max: usize) {
        self.workers_max.store(workers_max, Ordering::Relaxed);
    }

    /// How many there are, and may be.
    pub fn load(&self) -> (usize, usize) {
        let workers_max = self.workers_max.load(Ordering::Relaxed);
        (self.workers.load(Ordering::Relaxed), workers_max)
    }

    /// Cores that may be used, CPU quota counted.
    pub(crate) fn cores(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Memory that there is for all of it, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        *self.memory_bytes.get_or_init(usable_memory_bytes)
    }

    /// The pool of this name, or the one that `make` makes.
    pub(crate) fn pool(&self, name: &str, make: impl FnOnce() -> Pool) -> Arc<Keep> {
        let mut pools = self.pools.lock();
        pools.retain(|_, known| known.pool.strong_count() > 0);
        if let Some(keep) = pools.get(name).and_then(|known| known.keep.upgrade()) {
            return keep;
        }
        let pool = Arc::new(make());
        let known_pool = Arc::downgrade(&pool);
        // Who only asks what a config means starts nothing.
        let keep = Arc::new(Keep::new(pool, self.crew.get().is_some()));
        let known = RegisteredPool {
            keep: Arc::downgrade(&keep),
            pool: known_pool,
        };
        pools.insert(name.to_owned(), known);
        keep
    }

    /// The visits of this name, or the table that `make` makes for them.
    pub(crate) fn visits(
        &self,
        name: &str,
        make: impl FnOnce() -> SessionTable,
    ) -> Arc<SessionTable> {
        self.tables.get_or(name, make)
    }

    /// What is told of visits of all programs and pages.
    pub fn told_visits(&self) -> Vec<ProgramVisits> {
        let now_ms = now_ms();
        let tables = self.tables.all();
        let programs = tables.iter().map(|table| table.told(now_ms));
        let homes = self.page_visits.all();
        let pages = homes.iter().map(|home| home.table.told(now_ms));
        programs.chain(pages).collect()
    }

    /// Ends the visit of this number, whosever it is. False where there is none.
    pub fn end_visit(&self, number: u64) -> bool {
        let mut tables = self.tables.all().into_iter();
        let mut homes = self.page_visits.all().into_iter();
        tables.any(|table| table.end(number)) || homes.any(|home| home.table.end(number))
    }

    /// From now on a thread that drains waits for the end of visits, or does so no more.
    pub fn keep_visits(&self, keeps_visits: bool) {
        self.keeps_visits.store(keeps_visits, Ordering::Relaxed);
    }

    /// Visits are to go on that are here, or with another server.
    pub(crate) fn has_visits_to_keep(&self, predecessor: Option<&Predecessor>) -> bool {
        let is_anywhere = || {
            let has_some = self.tables.all().iter().any(|table| table.has_some())
                || self.page_visits.all().iter().any(|home| home.has_some());
            has_some || predecessor.is_some_and(Predecessor::is_there)
        };
        self.keeps_visits.load(Ordering::Relaxed) && is_anywhere()
    }

    /// All pools, by their names; those too that only finish what they have.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        let pools = self.pools.lock();
        let mut all: Vec<_> = pools.iter().collect();
        all.sort_by_key(|(name, _)| *name);
        all.into_iter()
            .filter_map(|(_, known)| known.pool.upgrade())
            .collect()
    }

    /// The server stops: workers with tunnels, which would not end by themselves, are told.
    pub fn drain_tunnels(&self) {
        for pool in self.pools() {
            pool.drain_tunnels();
        }
    }

    /// The server ends, and no thread has a request any more: all workers go. Returns how long that
    /// may take.
    pub(crate) fn leave(&self) -> Duration {
        let pools = self.pools();
        let times = pools.iter().map(|pool| pool.leave());
        let tables = self.tables.all();
        let visits = tables.iter().flat_map(|table| table.all());
        let visits = visits.map(|visit| visit.keeps.resident.pool.0.leave());
        times.chain(visits).max().unwrap_or_default()
    }

    /// Sees to it that every pool has the workers it should have.
    pub fn tend(&self) {
        for pool in self.pools() {
            pool.tend(now_ms());
        }
    }

    /// A place for one more worker of this pool. When there is none, or this is the last, an idle
    /// worker of another program makes room.
    pub(crate) fn seat(self: &Arc<Self>, asking: &Pool, now_ms: u64) -> Result<WorkerSeat, NoSeat> {
        let (workers, workers_max) = self.load();
        let since_ms = now_ms.saturating_sub(self.room_ms.load(Ordering::Relaxed));
        if workers + 1 >= workers_max && since_ms >= ROOM_MS_EVERY {
            let others = self.pools();
            let mut others = others.iter().filter(|pool| !std::ptr::eq(&***pool, asking));
            if others.any(|pool| pool.make_room()) {
                self.room_ms.store(now_ms, Ordering::Relaxed);
            }
        }
        let taken = self
            .workers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |workers| {
                (workers < workers_max).then_some(workers + 1)
            });
        if taken.is_ok() {
            return Ok(WorkerSeat(Arc::clone(self)));
        }
        let since_ms = now_ms.saturating_sub(self.room_ms.load(Ordering::Relaxed));
        Err(match since_ms < ROOM_MS_MAX {
            true => NoSeat::Soon,
            false => NoSeat::Full,
        })
    }

    /// The thread with the fewest workers of a kind; none while there is no thread.
    pub(crate) fn choose_thread(&self, count: impl Fn(usize) -> usize) -> Option<usize> {
        let crew = self.crew.get()?;
        let lost = self.lost_threads.load(Ordering::Relaxed);
        let threads = 0..crew.thread_count();
        let alive = threads.filter(|thread| *thread >= 64 || lost >> thread & 1 == 0);
        alive.min_by_key(|thread| count(*thread))
    }

    /// Has a worker started on its thread.
    pub(crate) fn start(&self, order: WorkerStart) {
        if let Some(crew) = self.crew.get() {
            let thread = order.thread();
            // A thread that has ended drops the order, which is told to the pool.
            Handle::new(crew, thread)
                .run(move |thread: &mut Thread<Answers>| thread.answer_mut().start_worker(order));
        }
    }

    /// Has an interpreter that scripts are forked from started on a thread.
    pub(crate) fn start_host(&self, thread: usize, host: Arc<WarmHost>) {
        if let Some(crew) = self.crew.get() {
            Handle::new(crew, thread)
                .run(move |thread: &mut Thread<Answers>| thread.answer_mut().start_host(&host));
        }
    }

    /// Has a program started that is run to be asked, on a thread.
    pub(crate) fn start_run(&self, thread: usize, program: Arc<RunProgram>) {
        if let Some(crew) = self.crew.get() {
            Handle::new(crew, thread)
                .run(move |thread: &mut Thread<Answers>| thread.answer_mut().start_run(&program));
        }
    }

    /// Has the members of an upstream looked at, by one of the threads, each in its turn.
    pub(crate) fn begin_checks(&self, turn: usize, upstream: Arc<Upstream>) {
        let in_turn =
            |crew: &Arc<Crew>| self.choose_thread(|thread| (thread + turn) % crew.thread_count());
        if let Some(crew) = self.crew.get()
            && let Some(thread) = in_turn(crew)
        {
            Handle::new(crew, thread).run(move |thread: &mut Thread<Answers>| {
                thread.answer_mut().begin_checks(&upstream);
            });
        }
    }

    /// A thread has ended: nothing is started on it any more.
    pub(crate) fn lose_thread(&self, thread: usize) {
        if thread < 64 {
            self.lost_threads.fetch_or(1 << thread, Ordering::Relaxed);
        }
    }

    /// A thread has ended, so the others will too.
    pub(crate) fn is_stopping(&self) -> bool {
        self.lost_threads.load(Ordering::Relaxed) != 0
    }
}

/// Now, as threads count their loop time.
pub fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}
