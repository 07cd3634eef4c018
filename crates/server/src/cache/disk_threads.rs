//! A small bounded pool of threads that may wait for a disk, so that serving threads never do.
//!
//! Threads start when there is work and no one idle, and end after a while without any. Jobs stand
//! in lanes, one for each root folder, and lanes take turns. A job that hangs holds its thread, not
//! the others; when a whole file system hangs, its lane holds its share of the threads and fills
//! its own queue, and the other lanes go on. Who waits no longer for a job that hangs can leave it
//! to itself ([`DiskJobHandle::in_time`]): others of its lane are begun in its place.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hob_http::Reactor;
use hob_trace::Mutex;
use tokio::sync::oneshot;

/// Most threads of the pool.
pub const THREADS_MAX: usize = 32;
/// Most threads that work for one lane at a time.
pub const LANE_THREADS_MAX: usize = 16;
/// Most jobs that wait for a thread.
pub const QUEUE_MAX: usize = 4096;
/// Most jobs of one lane that wait for a thread.
pub const LANE_QUEUE_MAX: usize = 1024;
/// Most threads besides whose jobs were left to themselves.
pub const LEFT_MAX: usize = 32;
/// How long a look at a few files may take.
pub const LOOK_TIME: Duration = Duration::from_secs(10);
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);
/// Stack of a pool thread, in bytes; brotli wants the most.
const STACK_BYTES: usize = 512 * 1024;

/// The pool, as one lane of it sees it. Cloning counts.
#[derive(Clone, Default)]
pub struct DiskThreads {
    inner: Arc<DiskScheduler>,
    lane: u64,
}

#[derive(Default)]
struct DiskScheduler {
    state: Mutex<DiskSchedulerState>,
    work: Condvar,
}

#[derive(Default)]
struct DiskSchedulerState {
    lanes: HashMap<u64, Lane>,
    /// Lanes with a job that may be begun, each once, in the order of their turns.
    turns: VecDeque<u64>,
    queued: usize,
    threads: usize,
    idle: usize,
    /// Jobs under way that nobody waits for; their threads are not among the others.
    left: HashSet<u64>,
    /// How many jobs were not waited for any longer.
    hung: u64,
    /// The number of the next job.
    next: u64,
}

/// Jobs of one lane.
#[derive(Default)]
struct Lane {
    queue: VecDeque<DiskJob>,
    /// Numbers of those that are under way.
    running: Vec<u64>,
    has_turn: bool,
}

struct DiskJob {
    number: u64,
    run: Box<dyn FnOnce() + Send>,
}

/// The pool's queue is full (503).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskQueueFull;

/// How busy the pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Threads there are.
    pub threads: usize,
    /// Of these, waiting for work.
    pub idle: usize,
    /// Jobs waiting for a thread.
    pub queued: usize,
    /// Threads besides whose jobs hang and were left to themselves.
    pub left: usize,
}

impl DiskThreads {
    /// The same pool for another lane.
    pub fn for_lane(&self, lane: u64) -> DiskThreads {
        DiskThreads {
            inner: Arc::clone(&self.inner),
            lane,
        }
    }

    /// Has the job done by a thread of the pool. The answer can be awaited; dropping it does not
    /// stop the job.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<DiskJobHandle<T>, DiskQueueFull> {
        let (sender, answer) = oneshot::channel();
        // Who has dropped the answer wants it no more.
        let number = self.push(Box::new(move || drop(sender.send(job()))))?;
        Ok(DiskJobHandle {
            answer,
            pool: self.clone(),
            number,
        })
    }

    fn push(&self, job: Box<dyn FnOnce() + Send>) -> Result<u64, DiskQueueFull> {
        let mut state = self.inner.state.lock();
        let (number, may_begin) = state.line_up(self.lane, job)?;
        // Else the lane has all the threads it may have.
        if may_begin {
            self.see_to_threads(state);
        }
        Ok(number)
    }

    /// Has a thread begin what may be begun.
    fn see_to_threads(&self, mut state: MutexGuard<'_, DiskSchedulerState>) {
        if state.idle >= state.ready() {
            self.inner.work.notify_one();
        } else if state.threads < THREADS_MAX {
            state.threads += 1;
            drop(state);
            self.start_thread();
        }
    }

    /// Nobody waits for this job any more: it is taken back, or left to itself if it is under way.
    fn leave(&self, number: u64) {
        let mut state = self.inner.state.lock();
        state.hung += 1;
        if state.leave(self.lane, number) && state.ready() > 0 {
            self.see_to_threads(state);
        }
    }

    fn start_thread(&self) {
        let inner = Arc::clone(&self.inner);
        let builder = std::thread::Builder::new()
            .name("hob-disk".into())
            .stack_size(STACK_BYTES);
        if let Err(error) = builder.spawn(move || inner.work()) {
            tracing::error!(%error, "a thread of the file pool could not be started");
            self.inner.state.lock().threads -= 1;
        }
    }

    /// How many jobs took longer than [`LOOK_TIME`].
    pub fn hung(&self) -> u64 {
        self.inner.state.lock().hung
    }

    /// How busy it is.
    pub fn load(&self) -> Load {
        let state = self.inner.state.lock();
        Load {
            threads: state.threads,
            idle: state.idle,
            queued: state.queued,
            left: state.left.len(),
        }
    }
}

impl DiskScheduler {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((lane, job)) = state.begin() {
                drop(state);
                // A job that panics loses its answer, not the thread.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job.run));
                state = self.state.lock();
                match state.end(lane, job.number) {
                    true => continue,
                    // Another has its place.
                    false => return,
                }
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

impl DiskSchedulerState {
    /// Puts a job into its lane. Returns its number, and whether it may be begun.
    fn line_up(
        &mut self,
        lane_number: u64,
        run: Box<dyn FnOnce() + Send>,
    ) -> Result<(u64, bool), DiskQueueFull> {
        let lane = self.lanes.entry(lane_number).or_default();
        if lane.queue.len() >= LANE_QUEUE_MAX || self.queued >= QUEUE_MAX {
            return Err(DiskQueueFull);
        }
        let number = self.next;
        self.next += 1;
        lane.queue.push_back(DiskJob { number, run });
        self.queued += 1;
        let may_begin = lane.running.len() + lane.queue.len() <= LANE_THREADS_MAX;
        self.give_turn(lane_number);
        Ok((number, may_begin))
    }

    /// Jobs that may be begun now.
    fn ready(&self) -> usize {
        let lanes = self
            .turns
            .iter()
            .filter_map(|number| self.lanes.get(number));
        lanes
            .map(|lane| lane.queue.len().min(LANE_THREADS_MAX - lane.running.len()))
            .sum()
    }

    /// The next job, of the lane whose turn it is.
    fn begin(&mut self) -> Option<(u64, DiskJob)> {
        let number = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&number)?;
        lane.has_turn = false;
        let job = lane.queue.pop_front()?;
        lane.running.push(job.number);
        self.queued -= 1;
        self.give_turn(number);
        Some((number, job))
    }

    /// A job has ended. False when it had been left to itself, and with it the thread.
    fn end(&mut self, lane: u64, job: u64) -> bool {
        if self.left.remove(&job) {
            return false;
        }
        self.give_place(lane, job);
        true
    }

    /// A job of the lane is not under way any more, as far as the lane is concerned.
    fn give_place(&mut self, number: u64, job: u64) {
        let Some(lane) = self.lanes.get_mut(&number) else {
            return;
        };
        lane.running.retain(|running| *running != job);
        if lane.running.is_empty() && lane.queue.is_empty() {
            self.lanes.remove(&number);
        } else {
            self.give_turn(number);
        }
    }

    /// Takes a job back that waits, or leaves one to itself that is under way. True when there is a
    /// thread fewer now.
    fn leave(&mut self, number: u64, job: u64) -> bool {
        let Some(lane) = self.lanes.get_mut(&number) else {
            return false;
        };
        let waiting = lane.queue.len();
        lane.queue.retain(|waiting| waiting.number != job);
        if lane.queue.len() < waiting {
            self.queued -= 1;
            return false;
        }
        if !lane.running.contains(&job) || self.left.len() >= LEFT_MAX {
            return false;
        }
        self.left.insert(job);
        self.threads -= 1;
        self.give_place(number, job);
        true
    }

    /// Has the lane take its turn after the others if it has a job that may be begun.
    fn give_turn(&mut self, number: u64) {
        let Some(lane) = self.lanes.get_mut(&number) else {
            return;
        };
        if !lane.has_turn && !lane.queue.is_empty() && lane.running.len() < LANE_THREADS_MAX {
            lane.has_turn = true;
            self.turns.push_back(number);
        }
    }
}

/// The answer of a job.
pub struct DiskJobHandle<T> {
    answer: oneshot::Receiver<T>,
    pool: DiskThreads,
    number: u64,
}

/// Why a job has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It panicked.
    Panicked,
    /// It took too long, and was left to itself.
    Hangs,
}

impl<T> DiskJobHandle<T> {
    /// The answer of a job that looks at a few files. One that takes longer than [`LOOK_TIME`]
    /// hangs at a disk: neither who asks next nor a server that stops is to wait for it.
    pub async fn in_time(mut self, reactor: &Reactor) -> Result<T, Undone> {
        let timer = reactor.timer();
        timer.set(LOOK_TIME);
        let done = poll_fn(|cx| match Pin::new(&mut self).poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        });
        match done.await {
            Some(done) => done.ok_or(Undone::Panicked),
            None => {
                self.leave();
                Err(Undone::Hangs)
            }
        }
    }

    /// Waits no longer, as the job seems to hang: its lane begins another in its place. As long as
    /// [`LEFT_MAX`] others hang, it keeps its place.
    fn leave(self) {
        self.pool.leave(self.number);
    }
}

impl<T> Future for DiskJobHandle<T> {
    /// `None` when the job panicked or was never run.
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.answer).poll(cx).map(Result::ok)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::{Wake, Waker};

    use super::*;

    struct Unpark(std::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn wait<T>(mut answer: DiskJobHandle<T>) -> Option<T> {
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
        let pool = DiskThreads::default();
        let lost = pool.run(|| -> u32 { std::panic::resume_unwind(Box::new("lost")) });
        assert_eq!(wait(lost.unwrap()), None);
        assert_eq!(wait(pool.run(|| 7).unwrap()), Some(7));
    }

    #[test]
    fn lane_that_hangs_fills_its_own_queue_and_the_others_go_on() {
        let pool = DiskThreads::default();
        let (slow, quick) = (pool.for_lane(1), pool.for_lane(2));
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let (started, starts) = mpsc::channel();
        let hang = || {
            let (blocked, started) = (Arc::clone(&blocked), started.clone());
            move || {
                started.send(()).unwrap();
                let _ = blocked.lock().recv();
            }
        };
        let mut answers: Vec<_> = (0..LANE_THREADS_MAX)
            .map(|_| slow.run(hang()).unwrap())
            .collect();
        for _ in 0..LANE_THREADS_MAX {
            starts.recv().unwrap();
        }
        answers.extend((0..LANE_QUEUE_MAX).map(|_| slow.run(|| ()).unwrap()));
        assert_eq!(slow.run(|| ()).err(), Some(DiskQueueFull));
        assert_eq!(
            pool.load(),
            Load {
                threads: LANE_THREADS_MAX,
                idle: 0,
                queued: LANE_QUEUE_MAX,
                left: 0
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
        let mut state = DiskSchedulerState::default();
        for (lane, count) in [(1, 3), (2, 2), (3, 1)] {
            for _ in 0..count {
                assert!(state.line_up(lane, Box::new(|| ())).unwrap().1);
            }
        }
        assert_eq!((state.ready(), state.queued), (6, 6));
        let mut order = Vec::new();
        let mut begun = Vec::new();
        while let Some((lane, job)) = state.begin() {
            order.push(lane);
            begun.push((lane, job.number));
        }
        assert_eq!(order, [1, 2, 3, 1, 2, 1]);
        for (lane, job) in begun {
            assert!(state.end(lane, job));
        }
        assert!(state.lanes.is_empty() && state.turns.is_empty());
    }
    #[test]
    fn jobs_that_hang_can_be_left_and_their_lane_goes_on() {
        let pool = DiskThreads::default().for_lane(1);
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let (started, starts) = mpsc::channel();
        let hang = || {
            let (blocked, started) = (Arc::clone(&blocked), started.clone());
            move || {
                started.send(()).unwrap();
                let _ = blocked.lock().recv();
            }
        };
        let mut hanging = Vec::new();
        for _ in 0..LEFT_MAX / LANE_THREADS_MAX {
            let answers = (0..LANE_THREADS_MAX).map(|_| pool.run(hang()).unwrap());
            hanging.extend(answers.collect::<Vec<_>>());
            (0..LANE_THREADS_MAX).for_each(|_| starts.recv().unwrap());
            let behind = pool.run(|| 7).unwrap();
            hanging.drain(..).for_each(DiskJobHandle::leave);
            assert_eq!(wait(behind), Some(7));
        }
        assert_eq!(pool.load().left, LEFT_MAX);
        // As many as there may be: what hangs now keeps its place, and what waits is taken back.
        let answers = (0..LANE_THREADS_MAX).map(|_| pool.run(hang()).unwrap());
        hanging.extend(answers.collect::<Vec<_>>());
        (0..LANE_THREADS_MAX).for_each(|_| starts.recv().unwrap());
        let behind = pool.run(|| 8).unwrap();
        pool.run(|| 9).unwrap().leave();
        hanging.drain(..).for_each(DiskJobHandle::leave);
        assert_eq!((pool.load().left, pool.load().queued), (LEFT_MAX, 1));
        drop(release);
        assert_eq!(wait(behind), Some(8));
        while pool.load().left > 0 {
            std::thread::yield_now();
        }
        assert_eq!(wait(pool.run(|| 10).unwrap()), Some(10));
    }
}
