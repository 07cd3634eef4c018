//! When visits end, and what becomes of what they kept: a thread of its own for the pages of a
//! route, once there was a visit. It closes connections, which may wait for a database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, PoisonError, Weak};
use std::time::Duration;

use hob_trace::Mutex;
use hob_trace::metric::ThreadCounters;

use crate::handle::page::visits::turns::{KeptPage, PageVisitTable};
use crate::serve::fleet::now_ms;

/// Why a visit is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::handle::page) enum VisitEnd {
    /// The page said so.
    Terminated,
    /// Its first request did not keep it.
    Unkept,
    /// A run of it failed.
    Failed,
    /// Somebody ended it, or another has its place.
    Ended,
    /// Its visitor did not come back.
    Idle,
    /// It was too old.
    Age,
}

/// What is left of a visit.
pub(in crate::handle::page) struct LeftVisit {
    pub(in crate::handle::page) why: VisitEnd,
    /// The page's name, and its handle as people are shown it.
    pub(in crate::handle::page) page: Box<str>,
    pub(in crate::handle::page) handle: String,
    pub(in crate::handle::page) kept: Option<KeptPage>,
}

/// The thread, as others see it.
pub(in crate::handle::page) struct VisitClock {
    table: Weak<PageVisitTable>,
    /// Counted in by the thread alone.
    counters: Arc<ThreadCounters>,
    has_started: AtomicBool,
    state: Mutex<ClockState>,
    woken: Condvar,
}

struct ClockState {
    left: Vec<LeftVisit>,
    /// When visits are looked at next, in loop time.
    due_ms: u64,
    is_over: bool,
}

impl VisitClock {
    pub(in crate::handle::page) fn new(
        table: &Arc<PageVisitTable>,
        counters: Arc<ThreadCounters>,
    ) -> Arc<VisitClock> {
        Arc::new(VisitClock {
            table: Arc::downgrade(table),
            counters,
            has_started: AtomicBool::new(false),
            state: Mutex::new(ClockState {
                left: Vec::new(),
                due_ms: u64::MAX,
                is_over: false,
            }),
            woken: Condvar::new(),
        })
    }

    /// From now on there may be visits.
    pub(in crate::handle::page) fn start(self: &Arc<Self>) {
        if self.has_started.swap(true, Ordering::Relaxed) {
            return;
        }
        let clock = Arc::clone(self);
        let builder = std::thread::Builder::new().name("hob-visits".into());
        if let Err(error) = builder.spawn(move || clock.run()) {
            tracing::error!(%error, "a thread for visits of pages could not be started");
            self.has_started.store(false, Ordering::Relaxed);
        }
    }

    /// A visit may be over at this time.
    pub(in crate::handle::page) fn look_at(&self, due_ms: u64) {
        let mut state = self.state.lock();
        if due_ms < state.due_ms {
            state.due_ms = due_ms;
            self.woken.notify_one();
        }
    }

    /// A visit is over.
    pub(in crate::handle::page) fn take(&self, left: LeftVisit) {
        self.state.lock().left.push(left);
        self.woken.notify_one();
    }

    /// There will be no more of them.
    pub(in crate::handle::page) fn close(&self) {
        self.state.lock().is_over = true;
        self.woken.notify_one();
    }

    fn run(&self) {
        while let Some(left) = self.next() {
            for one in left {
                self.bury(one);
            }
            if let Some(table) = self.table.upgrade() {
                self.look(&table);
            }
        }
    }

    /// Waits until there is something to do; `None` at the end.
    fn next(&self) -> Option<Vec<LeftVisit>> {
        let mut state = self.state.lock();
        loop {
            let now_ms = now_ms();
            if !state.left.is_empty() || now_ms >= state.due_ms {
                state.due_ms = u64::MAX;
                return Some(std::mem::take(&mut state.left));
            }
            if state.is_over {
                return None;
            }
            let wait = Duration::from_millis(state.due_ms - now_ms);
            state = match state.due_ms {
                u64::MAX => {
                    let woken = self.woken.wait(state);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
                _ => {
                    let woken = self.woken.wait_timeout(state, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Ends visits whose time is up.
    fn look(&self, table: &PageVisitTable) {
        let now_ms = now_ms();
        let all = table.all();
        let due = all.iter().filter_map(|visit| visit.keeps.look(now_ms));
        self.look_at(due.min().unwrap_or(u64::MAX));
    }

    fn bury(&self, left: LeftVisit) {
        let LeftVisit {
            why,
            page,
            handle: visit,
            kept,
        } = left;
        let (page, visit) = (&*page, &*visit);
        // What was not committed is undone.
        drop(kept);
        match why {
            VisitEnd::Terminated => {
                self.counters.session_ends.add(1);
                tracing::debug!(page, visit, "a visit is over");
            }
            VisitEnd::Unkept => tracing::debug!(page, visit, "a visit was not kept"),
            VisitEnd::Failed => {
                self.counters.session_deaths.add(1);
                tracing::warn!(page, visit, "a visit ended with a run that failed");
            }
            VisitEnd::Ended => tracing::info!(page, visit, "a visit was ended"),
            VisitEnd::Idle => {
                self.counters.limit_session_wait.add(1);
                tracing::info!(page, visit, "a visit ended: its visitor did not come back");
            }
            VisitEnd::Age => {
                self.counters.limit_session_life.add(1);
                tracing::info!(page, visit, "a visit ended: it was too old");
            }
        }
    }
}
