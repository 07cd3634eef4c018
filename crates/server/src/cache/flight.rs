//! One fetch for many: requests that miss the same key wait for a single job.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hob_trace::Mutex;

use crate::cache::disk_threads::{DiskQueueFull, DiskThreads};
use crate::cache::entry::Key;

/// Jobs under way, by key.
pub struct Flights<T> {
    under_way: Arc<Mutex<HashMap<Key, Arc<Flight<T>>>>>,
}

struct Flight<T> {
    state: Mutex<FlightState<T>>,
}

struct FlightState<T> {
    outcome: Option<Option<T>>,
    waiters: Vec<Waker>,
}

impl<T> Default for Flights<T> {
    fn default() -> Flights<T> {
        Flights {
            under_way: Arc::default(),
        }
    }
}

impl<T: Clone + Send + 'static> Flights<T> {
    /// Waits for the job of this key that is under way, or starts it.
    pub fn join(
        &self,
        pool: &DiskThreads,
        key: Key,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<FlightWaiter<T>, DiskQueueFull> {
        let state = Mutex::new(FlightState {
            outcome: None,
            waiters: Vec::new(),
        });
        let flight = Arc::new(Flight { state });
        {
            let mut under_way = self.under_way.lock();
            if let Some(flight) = under_way.get(&key) {
                return Ok(FlightWaiter {
                    flight: Arc::clone(flight),
                });
            }
            under_way.insert(key.clone(), Arc::clone(&flight));
        }
        // The lock is free again: a refused job lands at once.
        let under_way = Arc::clone(&self.under_way);
        let landing = Landing {
            flight: Arc::clone(&flight),
            under_way,
            key,
            outcome: None,
        };
        pool.run(move || {
            let mut landing = landing;
            landing.outcome = Some(job());
        })?;
        Ok(FlightWaiter { flight })
    }
}

/// Tells all who wait, also when the job panicked or was refused.
struct Landing<T> {
    flight: Arc<Flight<T>>,
    under_way: Arc<Mutex<HashMap<Key, Arc<Flight<T>>>>>,
    key: Key,
    outcome: Option<T>,
}

impl<T> Drop for Landing<T> {
    fn drop(&mut self) {
        self.under_way.lock().remove(&self.key);
        let mut state = self.flight.state.lock();
        state.outcome = Some(self.outcome.take());
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
    }
}

/// The outcome, when it is there; `None` when the job panicked.
pub struct FlightWaiter<T> {
    flight: Arc<Flight<T>>,
}

impl<T: Clone> Future for FlightWaiter<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.flight.state.lock();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        if !state
            .waiters
            .iter()
            .any(|waker| waker.will_wake(cx.waker()))
        {
            state.waiters.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
