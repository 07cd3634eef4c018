//! Threads on which pages run that may wait: for a disk, or a database.
//!
//! Each has connections of its own to databases, which it keeps from one run to the next. Who was
//! idle last is woken first: its connections are the warmest. Threads start when there is work and
//! nobody idle, and end with their route.
//!
//! One thread at a time is on its way from sleep to work. Once it is there, it wakes the next one
//! if there is more to do: runs that wait for nothing are done by few threads, one after the other,
//! and each that has to wait gets one of its own.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};

use hob_trace::Mutex;

use crate::handle::page::database::ThreadDatabases;

/// Stack of a thread, in bytes: pages may stand inside each other as deep as their limits let them,
/// and statements as deep as SQLite does.
const STACK_BYTES: usize = 8 << 20;

/// What a thread is asked to do, with its connections.
type PageJob = Box<dyn FnOnce(&mut ThreadDatabases) + Send>;

/// The threads of a route.
pub(super) struct PageThreads {
    shared: Arc<PageThreadsShared>,
}

struct PageThreadsShared {
    state: Mutex<PageThreadsState>,
    threads_max: usize,
    queue_max: usize,
}

#[derive(Default)]
struct PageThreadsState {
    queue: VecDeque<PageJob>,
    threads: usize,
    /// Threads without work, the last one behind.
    idle: Vec<Arc<IdleThread>>,
    /// A thread was woken, or started, and has not looked for work yet.
    is_waking: bool,
    is_over: bool,
}

/// A thread that waits for work.
#[derive(Default)]
struct IdleThread {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl IdleThread {
    fn wake(&self) {
        *self.is_woken.lock() = true;
        self.woken.notify_one();
    }

    fn sleep(&self) {
        let mut is_woken = self.is_woken.lock();
        while !std::mem::take(&mut *is_woken) {
            is_woken = self
                .woken
                .wait(is_woken)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The queue is full (503).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageQueueFull;

impl PageThreads {
    pub(super) fn new(threads_max: usize, queue_max: usize) -> PageThreads {
        PageThreads {
            shared: Arc::new(PageThreadsShared {
                state: Mutex::default(),
                threads_max,
                queue_max,
            }),
        }
    }

    /// Has a thread do this, now or when one is free.
    pub(super) fn run(
        &self,
        job: impl FnOnce(&mut ThreadDatabases) + Send + 'static,
    ) -> Result<(), PageQueueFull> {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        let free = state.idle.len() + (shared.threads_max - state.threads);
        if state.queue.len() >= shared.queue_max + free {
            return Err(PageQueueFull);
        }
        state.queue.push_back(Box::new(job));
        shared.wake_one(state)
    }
}

impl Drop for PageThreads {
    /// What waits is still done; then the threads end.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_over = true;
        state.idle.drain(..).for_each(|idle| idle.wake());
    }
}

impl PageThreadsShared {
    /// Wakes a thread for what waits, or starts one, unless one is on its way. An error says that
    /// there is none, and that the last job is not done.
    fn wake_one(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, PageThreadsState>,
    ) -> Result<(), PageQueueFull> {
        if state.queue.is_empty() || state.is_waking {
            return Ok(());
        }
        if let Some(idle) = state.idle.pop() {
            state.is_waking = true;
            drop(state);
            idle.wake();
            return Ok(());
        }
        if state.threads >= self.threads_max {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let builder = std::thread::Builder::new()
            .name("hob-page".into())
            .stack_size(STACK_BYTES);
        match builder.spawn(move || shared.work()) {
            Ok(_) => {
                state.threads += 1;
                state.is_waking = true;
            }
            Err(error) => {
                tracing::error!(%error, "a thread for pages could not be started");
                if state.threads == 0 {
                    state.queue.pop_back();
                    return Err(PageQueueFull);
                }
            }
        }
        Ok(())
    }

    fn work(self: &Arc<Self>) {
        let mut connections = ThreadDatabases::default();
        let own = Arc::new(IdleThread::default());
        let mut is_woken = true;
        while let Some(job) = self.next(&own, is_woken) {
            is_woken = false;
            // A run that panics loses its answer and its connections, not the thread.
            if catch_unwind(AssertUnwindSafe(|| job(&mut connections))).is_err() {
                connections = ThreadDatabases::default();
            }
        }
    }

    /// The next job, once there is one; `None` at the end.
    fn next(self: &Arc<Self>, own: &Arc<IdleThread>, mut is_woken: bool) -> Option<PageJob> {
        loop {
            let mut state = self.state.lock();
            if std::mem::take(&mut is_woken) {
                state.is_waking = false;
            }
            if let Some(job) = state.queue.pop_front() {
                // Others that wait are somebody else's.
                let _ = self.wake_one(state);
                return Some(job);
            }
            if state.is_over {
                state.threads -= 1;
                return None;
            }
            state.idle.push(Arc::clone(own));
            drop(state);
            own.sleep();
            is_woken = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, mpsc};

    use super::*;

    #[test]
    fn runs_that_wait_for_each_other_have_a_thread_each() {
        const THREADS: usize = 3;
        // Those of the round before may be on their way to sleep still.
        let threads = PageThreads::new(THREADS, THREADS);
        let (done, ended) = mpsc::channel();
        // Threads that are started, and then the same ones out of their sleep.
        for _ in 0..5 {
            let all = Arc::new(Barrier::new(THREADS));
            for _ in 0..THREADS {
                let (all, done) = (Arc::clone(&all), done.clone());
                let job = move |_: &mut ThreadDatabases| {
                    all.wait();
                    done.send(()).expect("somebody counts");
                };
                threads.run(job).expect("there is room");
            }
            assert_eq!(ended.iter().take(THREADS).count(), THREADS);
        }
    }

    #[test]
    fn more_than_may_wait_are_refused_and_the_others_done_at_last() {
        let threads = PageThreads::new(1, 2);
        let (began, begun) = mpsc::channel();
        let (go, going) = mpsc::channel::<()>();
        let (done, ended) = mpsc::channel();
        let first = move |_: &mut ThreadDatabases| {
            began.send(()).expect("somebody waits");
            // Ends when it may go on.
            assert!(going.recv().is_err());
        };
        threads.run(first).expect("a thread is started");
        begun.recv().expect("it runs");
        for number in 1..=3 {
            let done = done.clone();
            let job = move |_: &mut ThreadDatabases| done.send(number).expect("somebody counts");
            assert_eq!(threads.run(job).is_ok(), number < 3);
        }
        drop((threads, done));
        drop(go);
        assert_eq!(ended.iter().collect::<Vec<_>>(), [1, 2]);
    }
}
