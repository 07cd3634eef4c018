//! A small bounded pool of threads that may wait for a disk, so that serving threads never do.
//!
//! Threads start when there is work and no one idle, and end after a while without any. A job that
//! hangs holds its thread, not the others; when all hang, the queue fills and further jobs are
//! refused.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Most threads of the pool.
pub const THREADS_MAX: usize = 16;
/// Most jobs that wait for a thread.
pub const QUEUE_MAX: usize = 1024;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);
/// Stack of a pool thread, in bytes; brotli wants the most.
const STACK_BYTES: usize = 512 * 1024;

/// The pool. Cloning counts.
#[derive(Clone, Default)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

type Job = Box<dyn FnOnce() + Send>;

/// The pool's queue is full (503).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// How busy the pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Threads there are.
    pub threads: usize,
    /// Of these, waiting for work.
    pub idle: usize,
    /// Jobs waiting for a thread.
    pub queued: usize,
}

impl Pool {
    /// Has the job done by a thread of the pool. The answer can be awaited; dropping it does not
    /// stop the job.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Answer<T>, Full> {
        let slot = Arc::new(Mutex::new(Slot::<T> {
            answer: None,
            waker: None,
            is_lost: false,
        }));
        let guard = SlotGuard(Arc::clone(&slot));
        self.push(Box::new(move || guard.fill(job())))?;
        Ok(Answer { slot })
    }

    fn push(&self, job: Job) -> Result<(), Full> {
        let mut state = self.inner.lock();
        if state.queue.len() >= QUEUE_MAX {
            return Err(Full);
        }
        state.queue.push_back(job);
        if state.idle >= state.queue.len() {
            self.inner.work.notify_one();
        } else if state.threads < THREADS_MAX {
            state.threads += 1;
            drop(state);
            self.start_thread();
        }
        Ok(())
    }

    fn start_thread(&self) {
        let inner = Arc::clone(&self.inner);
        let builder = std::thread::Builder::new()
            .name("hob-disk".into())
            .stack_size(STACK_BYTES);
        if let Err(error) = builder.spawn(move || inner.work()) {
            tracing::error!(%error, "a thread of the file pool could not be started");
            self.inner.lock().threads -= 1;
        }
    }

    /// How busy it is.
    pub fn load(&self) -> Load {
        let state = self.inner.lock();
        Load {
            threads: state.threads,
            idle: state.idle,
            queued: state.queue.len(),
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                // A job that panics loses its answer, not the thread.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let (again, waited) = self
                .work
                .wait_timeout(state, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state = again;
            state.idle -= 1;
            if waited.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

/// The answer of a job.
pub struct Answer<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

struct Slot<T> {
    answer: Option<T>,
    waker: Option<Waker>,
    is_lost: bool,
}

/// Fills the slot, also when its job panics or is never run.
struct SlotGuard<T>(Arc<Mutex<Slot<T>>>);

impl<T> SlotGuard<T> {
    fn fill(self, answer: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).answer = Some(answer);
    }
}

impl<T> Drop for SlotGuard<T> {
    fn drop(&mut self) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.is_lost = slot.answer.is_none();
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Answer<T> {
    /// `None` when the job panicked.
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = slot.answer.take() {
            return Poll::Ready(Some(answer));
        }
        if slot.is_lost {
            return Poll::Ready(None);
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;

    use super::*;

    struct Unpark(std::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn wait<T>(mut answer: Answer<T>) -> Option<T> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match Pin::new(&mut answer).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    #[test]
    fn a_panicking_job_loses_its_answer_and_nothing_else() {
        let pool = Pool::default();
        let lost = pool.run(|| -> u32 { std::panic::resume_unwind(Box::new("lost")) });
        assert_eq!(wait(lost.unwrap()), None);
        assert_eq!(wait(pool.run(|| 7).unwrap()), Some(7));
    }

    #[test]
    fn hanging_jobs_fill_the_queue_and_then_jobs_are_refused() {
        let pool = Pool::default();
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let (started, starts) = mpsc::channel();
        let hang = || {
            let (blocked, started) = (Arc::clone(&blocked), started.clone());
            move || {
                started.send(()).unwrap();
                let _ = blocked.lock().unwrap().recv();
            }
        };
        let mut answers: Vec<_> = (0..THREADS_MAX)
            .map(|_| pool.run(hang()).unwrap())
            .collect();
        for _ in 0..THREADS_MAX {
            starts.recv().unwrap();
        }
        answers.extend((0..QUEUE_MAX).map(|_| pool.run(|| ()).unwrap()));
        assert_eq!(pool.run(|| ()).err(), Some(Full));
        assert_eq!(
            pool.load(),
            Load {
                threads: THREADS_MAX,
                idle: 0,
                queued: QUEUE_MAX
            }
        );
        drop(release);
        for answer in answers {
            assert_eq!(wait(answer), Some(()));
        }
        assert_eq!(wait(pool.run(|| 1).unwrap()), Some(1));
    }
}
