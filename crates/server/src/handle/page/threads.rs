//! Threads on which pages run that may wait: for a disk, or a database.
//!
//! Each has connections of its own to databases, which it keeps from one run to the next. Who was
//! idle last is woken first: its connections are the warmest. Threads start when there is work and
//! nobody idle, and end with their route.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, PoisonError};

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
    is_over: bool,
}

/// A thread that waits for work.
#[derive(Default)]
struct IdleThread {
    next: Mutex<NextJob>,
    woken: Condvar,
}

/// What a thread that waits has to do.
#[derive(Default)]
enum NextJob {
    #[default]
    None,
    Run(PageJob),
    /// There will be none.
    End,
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
        if let Some(idle) = state.idle.pop() {
            drop(state);
            *idle.next.lock() = NextJob::Run(Box::new(job));
            idle.woken.notify_one();
            return Ok(());
        }
        if state.threads < shared.threads_max {
            state.threads += 1;
            drop(state);
            return self.start(Box::new(job));
        }
        if state.queue.len() >= shared.queue_max {
            return Err(PageQueueFull);
        }
        state.queue.push_back(Box::new(job));
        Ok(())
    }

    fn start(&self, job: PageJob) -> Result<(), PageQueueFull> {
        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new()
            .name("hob-page".into())
            .stack_size(STACK_BYTES);
        match builder.spawn(move || shared.work(job)) {
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::error!(%error, "a thread for pages could not be started");
                self.shared.state.lock().threads -= 1;
                Err(PageQueueFull)
            }
        }
    }
}

impl Drop for PageThreads {
    /// What waits is still done; then the threads end.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_over = true;
        for idle in state.idle.drain(..) {
            *idle.next.lock() = NextJob::End;
            idle.woken.notify_one();
        }
    }
}

impl PageThreadsShared {
    fn work(&self, first: PageJob) {
        let mut connections = ThreadDatabases::default();
        let own = Arc::new(IdleThread::default());
        let mut next = Some(first);
        while let Some(job) = next.take() {
            // A run that panics loses its answer and its connections, not the thread.
            if catch_unwind(AssertUnwindSafe(|| job(&mut connections))).is_err() {
                connections = ThreadDatabases::default();
            }
            next = self.next(&own);
        }
    }

    /// The next job, once there is one; `None` at the end.
    fn next(&self, own: &Arc<IdleThread>) -> Option<PageJob> {
        {
            let mut state = self.state.lock();
            if let Some(job) = state.queue.pop_front() {
                return Some(job);
            }
            if state.is_over {
                state.threads -= 1;
                return None;
            }
            state.idle.push(Arc::clone(own));
        }
        let mut next = own.next.lock();
        loop {
            match std::mem::take(&mut *next) {
                NextJob::Run(job) => return Some(job),
                NextJob::End => return None,
                NextJob::None => {}
            }
            next = own.woken.wait(next).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
