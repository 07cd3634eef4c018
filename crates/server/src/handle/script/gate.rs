//! How many processes of a program may run at once, or connections to it there are, and who waits:
//! one gate per program, shared by all threads. First come, first served; who gives up leaves the
//! queue at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hob_http::{HandlerPhase, Request};
use hob_trace::Mutex;
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::RequestStage;

/// The gate of one program.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<GateState>,
}

#[derive(Debug, Default)]
struct GateState {
    running_max: usize,
    queue_max: usize,
    running: usize,
    /// Who waits, in the order they came.
    waiting: BTreeMap<u64, Option<Waker>>,
    /// Who may go in and has not seen it yet; they count as running.
    called: BTreeSet<u64>,
    next: u64,
}

/// A place among the running. Dropped when the process is gone.
#[derive(Debug)]
pub struct Permit(Arc<Gate>);

/// A place in the queue; gives the permit.
#[derive(Debug)]
pub struct GateWaiter {
    gate: Arc<Gate>,
    ticket: Option<u64>,
}

/// What asking for a place gives.
#[derive(Debug)]
pub enum GateAdmission {
    /// Go in.
    Permit(Permit),
    /// Wait.
    Queued(GateWaiter),
    /// The queue is full (503).
    Full,
}

impl Gate {
    /// Nobody inside.
    pub fn new(running_max: usize, queue_max: usize) -> Gate {
        let state = GateState {
            running_max,
            queue_max,
            ..GateState::default()
        };
        Gate {
            state: Mutex::new(state),
        }
    }

    /// Other limits. Who is inside stays; who waits may go in at once.
    pub fn set_limits(&self, running_max: usize, queue_max: usize) {
        let mut state = self.state.lock();
        (state.running_max, state.queue_max) = (running_max, queue_max);
        let wakers = state.call();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Asks for a place.
    pub fn enter(self: &Arc<Gate>) -> GateAdmission {
        let mut state = self.state.lock();
        if state.running < state.running_max && state.waiting.is_empty() {
            state.running += 1;
            return GateAdmission::Permit(Permit(Arc::clone(self)));
        }
        if state.waiting.len() >= state.queue_max {
            return GateAdmission::Full;
        }
        let ticket = state.next;
        state.next += 1;
        state.waiting.insert(ticket, None);
        GateAdmission::Queued(GateWaiter {
            gate: Arc::clone(self),
            ticket: Some(ticket),
        })
    }

    /// How many are inside and how many wait.
    pub fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.running, state.waiting.len())
    }

    /// Most that may be inside.
    pub fn running_max(&self) -> usize {
        self.state.lock().running_max
    }

    fn leave(&self) {
        let mut state = self.state.lock();
        debug_assert!(state.running > 0, "who leaves was inside");
        state.running -= 1;
        let wakers = state.call();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateRefusal {
    /// As many wait as may.
    Full,
    /// None became free in time.
    Time,
}

/// Waits for a place of a request's program, for at most `patience`.
pub(crate) async fn enter(
    gate: &Arc<Gate>,
    request: &Request,
    counters: &ThreadCounters,
    patience: Duration,
) -> Result<Permit, GateRefusal> {
    let waiting = match gate.enter() {
        GateAdmission::Permit(permit) => return Ok(permit),
        GateAdmission::Queued(waiting) => waiting,
        GateAdmission::Full => {
            counters.limit_program_queue.add(1);
            return Err(GateRefusal::Full);
        }
    };
    counters.limit_program_concurrent.add(1);
    let entered = wait_for(gate, waiting, request, patience).await;
    if entered.is_err() {
        counters.limit_program_queue_time.add(1);
    }
    entered
}

/// Waits at a gate for a request's turn, for at most `patience`; the time counts as the request's
/// in a queue.
pub(crate) async fn wait_for(
    gate: &Gate,
    waiting: GateWaiter,
    request: &Request,
    patience: Duration,
) -> Result<Permit, GateRefusal> {
    request.set_phase(HandlerPhase::Queued);
    request.tell(RequestStage::Queue, format_args!("{}", FullMessage(gate)));
    let started = Instant::now();
    let timer = request.reactor().timer();
    timer.set(patience);
    let mut waiting = pin!(waiting);
    let entered = poll_fn(|cx| {
        if let Poll::Ready(permit) = waiting.as_mut().poll(cx) {
            return Poll::Ready(Ok(permit));
        }
        timer.poll_elapsed(cx).map(|()| Err(GateRefusal::Time))
    })
    .await;
    request.set_phase(HandlerPhase::Server);
    request.record_mut().queue_us += started.elapsed().as_micros() as u64;
    request.tell(RequestStage::Queue, format_args!("its waiting is over"));
    entered
}

/// A gate that lets nobody in for now, in words.
struct FullMessage<'a>(&'a Gate);

impl fmt::Display for FullMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (running, waiting) = self.0.load();
        write!(
            f,
            "{running} run, which is as many as may, and {waiting} wait"
        )
    }
}

impl GateState {
    /// Calls in as many as there is room for.
    fn call(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while self.running < self.running_max {
            let Some((ticket, waker)) = self.waiting.pop_first() else {
                break;
            };
            self.running += 1;
            self.called.insert(ticket);
            wakers.extend(waker);
        }
        wakers
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Future for GateWaiter {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        let gate = Arc::clone(&self.gate);
        let Some(ticket) = self.ticket else {
            return Poll::Pending;
        };
        let mut state = gate.state.lock();
        if state.called.remove(&ticket) {
            self.ticket = None;
            drop(state);
            return Poll::Ready(Permit(gate));
        }
        if let Some(waker) = state.waiting.get_mut(&ticket) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for GateWaiter {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.gate.state.lock();
        state.waiting.remove(&ticket);
        let was_called = state.called.remove(&ticket);
        drop(state);
        if was_called {
            self.gate.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn permit(entry: GateAdmission) -> Permit {
        match entry {
            GateAdmission::Permit(permit) => permit,
            other => panic!("{other:?}"),
        }
    }

    fn queued(entry: GateAdmission) -> GateWaiter {
        match entry {
            GateAdmission::Queued(waiting) => waiting,
            other => panic!("{other:?}"),
        }
    }

    fn poll(waiting: &mut GateWaiter, count: &Arc<Count>) -> Option<Permit> {
        let waker = Waker::from(Arc::clone(count));
        match Pin::new(waiting).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_waits_goes_in_by_order_and_the_queue_has_an_end() {
        let gate = Arc::new(Gate::new(1, 2));
        let count = Arc::default();
        let inside = permit(gate.enter());
        let (mut first, mut second) = (queued(gate.enter()), queued(gate.enter()));
        assert!(matches!(gate.enter(), GateAdmission::Full));
        assert_eq!(gate.load(), (1, 2));
        assert!(poll(&mut first, &count).is_none() && poll(&mut second, &count).is_none());
        drop(inside);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(poll(&mut second, &count).is_none());
        let inside = poll(&mut first, &count).unwrap();
        assert_eq!(gate.load(), (1, 1));
        drop(inside);
        let inside = poll(&mut second, &count).unwrap();
        assert_eq!(gate.load(), (1, 0));
        drop(inside);
        assert_eq!(gate.load(), (0, 0));
    }

    #[test]
    fn who_gives_up_hands_the_place_on() {
        let gate = Arc::new(Gate::new(1, 9));
        let count = Arc::default();
        let inside = permit(gate.enter());
        let (called, gone, mut last) = (
            queued(gate.enter()),
            queued(gate.enter()),
            queued(gate.enter()),
        );
        assert!(poll(&mut last, &count).is_none());
        drop(gone);
        drop(inside);
        // Called in, and gone before it saw that.
        drop(called);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        let inside = poll(&mut last, &count).unwrap();
        drop((inside, last));
        assert_eq!(gate.load(), (0, 0));
    }

    #[test]
    fn other_limits_hold_at_once() {
        let gate = Arc::new(Gate::new(1, 9));
        let count = Arc::default();
        let first = permit(gate.enter());
        let mut second = queued(gate.enter());
        gate.set_limits(2, 0);
        let second = poll(&mut second, &count).unwrap();
        assert!(matches!(gate.enter(), GateAdmission::Full));
        gate.set_limits(1, 1);
        drop(first);
        let mut third = queued(gate.enter());
        assert!(poll(&mut third, &count).is_none());
        drop(second);
        assert!(poll(&mut third, &count).is_some());
    }
}
