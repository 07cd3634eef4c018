//! A small bounded pool of threads that may wait for a disk, so that serving threads never do.
//!
//! Threads start when there is work and no one idle, and end after a while without any. Jobs stand
//! in lanes, one for each root folder, and lanes take turns. A job that hangs holds its thread, not
//! the others; when a whole file system hangs, its lane holds its share of the threads and fills
//! its own queue, and the other lanes go on.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Most threads of the pool.
pub const THREADS_MAX: usize = 32;
/// Most threads that work for one lane at a time.
pub const LANE_THREADS_MAX: usize = 16;
/// Most jobs that wait for a thread.
pub const QUEUE_MAX: usize = 4096;
/// Most jobs of one lane that wait for a thread.
pub const LANE_QUEUE_MAX: usize = 1024;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);
/// Stack of a pool thread, in bytes; brotli wants the most.
const STACK_BYTES: usize = 512 * 1024;

/// The pool, as one lane of it sees it. Cloning counts.
#[derive(Clone, Default)]
pub struct Pool {
    inner: Arc<Inner>,
    lane: u64,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    lanes: HashMap<u64, Lane>,
    /// Lanes with a job that may be begun, each once, in the order of their turns.
    turns: VecDeque<u64>,
    queued: usize,
    threads: usize,
    idle: usize,
}

/// Jobs of one lane.
#[derive(Default)]
struct Lane {
    queue: VecDeque<Job>,
    running: usize,
    has_turn: bool,
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
    /// The same pool for another lane.
    pub fn for_lane(&self, lane: u64) -> Pool {
        Pool {
            inner: Arc::clone(&self.inner),
            lane,
        }
    }

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
        if !state.line_up(self.lane, job)? {
            // The lane has all the threads it may have.
            return Ok(());
        }
        if state.idle >= state.ready() {
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
            queued: state.queued,
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
            if let Some((lane, job)) = state.begin() {
                drop(state);
                // A job that panics loses its answer, not the thread.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = self.lock();
                state.end(lane);
                continue;
            }
            state.idle += 1;
            let (again, waited) = self
                .work
                .wait_timeout(state, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state = again;
            state.idle -= 1;
            if waited.timed_out() && state.turns.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

impl State {
    /// Puts a job into its lane. Returns whether it may be begun.
    fn line_up(&mut self, number: u64, job: Job) -> Result<bool, Full> {
        let lane = self.lanes.entry(number).or_default();
        if lane.queue.len() >= LANE_QUEUE_MAX || self.queued >= QUEUE_MAX {
            return Err(Full);
        }
        lane.queue.push_back(job);
        self.queued += 1;
        let may_begin = lane.running + lane.queue.len() <= LANE_THREADS_MAX;
        self.give_turn(number);
        Ok(may_begin)
    }

    /// Jobs that may be begun now.
    fn ready(&self) -> usize {
        let lanes = self
            .turns
            .iter()
            .filter_map(|number| self.lanes.get(number));
        lanes
            .map(|lane| lane.queue.len().min(LANE_THREADS_MAX - lane.running))
            .sum()
    }

    /// The next job, of the lane whose turn it is.
    fn begin(&mut self) -> Option<(u64, Job)> {
        let number = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&number)?;
        lane.has_turn = false;
        let job = lane.queue.pop_front()?;
        lane.running += 1;
        self.queued -= 1;
        self.give_turn(number);
        Some((number, job))
    }

    fn end(&mut self, number: u64) {
        let Some(lane) = self.lanes.get_mut(&number) else {
            return;
        };
        lane.running -= 1;
        if lane.running == 0 && lane.queue.is_empty() {
            self.lanes.remove(&number);
        } else {
            self.give_turn(number);
        }
    }

    /// Has the lane take its turn after the others if it has a job that may be begun.
    fn give_turn(&mut self, number: u64) {
        let Some(lane) = self.lanes.get_mut(&number) else {
            return;
        };
        if !lane.has_turn && !lane.queue.is_empty() && lane.running < LANE_THREADS_MAX {
            lane.has_turn = true;
            self.turns.push_back(number);
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
    fn lane_that_hangs_fills_its_own_queue_and_the_others_go_on() {
        let pool = Pool::default();
        let (slow, quick) = (pool.for_lane(1), pool.for_lane(2));
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
        let mut answers: Vec<_> = (0..LANE_THREADS_MAX)
            .map(|_| slow.run(hang()).unwrap())
            .collect();
        for _ in 0..LANE_THREADS_MAX {
            starts.recv().unwrap();
        }
        answers.extend((0..LANE_QUEUE_MAX).map(|_| slow.run(|| ()).unwrap()));
        assert_eq!(slow.run(|| ()).err(), Some(Full));
        assert_eq!(
            pool.load(),
            Load {
                threads: LANE_THREADS_MAX,
                idle: 0,
                queued: LANE_QUEUE_MAX
            }
        );
        for number in 0..100 {
            assert_eq!(wait(quick.run(move || number).unwrap()), Some(number));
        }
        drop(release);
        for answer in answers {
            assert_eq!(wait(answer), Some(()));
        }
        assert_eq!(wait(slow.run(|| 1).unwrap()), Some(1));
    }

    #[test]
    fn lanes_take_turns_and_an_empty_one_is_forgotten() {
        let mut state = State::default();
        for (lane, count) in [(1, 3), (2, 2), (3, 1)] {
            for _ in 0..count {
                assert_eq!(state.line_up(lane, Box::new(|| ())), Ok(true));
            }
        }
        assert_eq!((state.ready(), state.queued), (6, 6));
        let mut order = Vec::new();
        while let Some((lane, _)) = state.begin() {
            order.push(lane);
        }
        assert_eq!(order, [1, 2, 3, 1, 2, 1]);
        order.into_iter().for_each(|lane| state.end(lane));
        assert!(state.lanes.is_empty() && state.turns.is_empty());
    }
}
