//! How long requests take a worker, and from that how many it is handed ahead.

use crate::handle::resident::limits::{AHEAD_MAX, AHEAD_US_MAX, SERVICE_MS, SERVICE_US_FIRST};

/// A worker's pace, in loop time: the time it has requests, by the requests it answers.
///
/// Pauses count only as far as the clock shows them, so one that is given a request at a time is
/// never taken to be faster than it is.
#[derive(Debug)]
pub(super) struct Service {
    /// Microseconds a request takes, over the last [`SERVICE_MS`] of work.
    us: u64,
    /// When those began; later by every pause since.
    since_ms: u64,
    /// Requests answered since then.
    count: u64,
}

impl Service {
    pub(super) fn new(now_ms: u64) -> Service {
        Service {
            us: SERVICE_US_FIRST,
            since_ms: now_ms,
            count: 0,
        }
    }

    /// It has a request after it had none since `idle_since_ms`.
    pub(super) fn resume(&mut self, idle_since_ms: u64, now_ms: u64) {
        self.since_ms += now_ms.saturating_sub(idle_since_ms.max(self.since_ms));
    }

    /// One more request was answered.
    pub(super) fn note(&mut self, now_ms: u64) {
        self.count += 1;
        let elapsed_ms = now_ms.saturating_sub(self.since_ms);
        if elapsed_ms >= SERVICE_MS {
            self.us = elapsed_ms * 1000 / self.count;
            self.since_ms = now_ms;
            self.count = 0;
        }
    }

    /// Requests that were handed ahead had to be taken back: nothing is known any more.
    pub(super) fn forget(&mut self, now_ms: u64) {
        *self = Service::new(now_ms);
    }

    /// How many requests to hand ahead of those it works on.
    pub(super) fn ahead(&self) -> usize {
        let ahead = AHEAD_US_MAX / self.us.max(1);
        usize::try_from(ahead).map_or(AHEAD_MAX, |ahead| ahead.min(AHEAD_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_requests_are_not_handed_ahead() {
        assert_eq!(Service::new(0).ahead(), 0);
    }

    #[test]
    fn short_requests_one_at_a_time_are_found_to_be_short() {
        let mut service = Service::new(5);
        // A hundred in each millisecond, each begun after the one before it was over.
        for request in 0..100 * SERVICE_MS {
            let now_ms = 5 + (request + 1) / 100;
            service.resume(5 + request / 100, now_ms);
            service.note(now_ms);
            service.resume(now_ms, now_ms);
        }
        for request in 0..=1000 {
            service.note(5 + SERVICE_MS + request / 100);
        }
        assert_eq!(service.ahead(), AHEAD_MAX);
    }

    #[test]
    fn pauses_are_not_work() {
        let mut service = Service::new(0);
        let mut now_ms = 0;
        for _ in 0..40 {
            let idle_since_ms = now_ms;
            now_ms += 5_000;
            service.resume(idle_since_ms, now_ms);
            now_ms += 1;
            service.note(now_ms);
        }
        assert_eq!(service.us, 1000);
        assert_eq!(service.ahead(), 1);
    }

    #[test]
    fn long_requests_are_not_handed_ahead() {
        let mut service = Service::new(0);
        for request in 1..=20 {
            service.note(request * 50);
        }
        assert_eq!(service.us, 50_000);
        assert_eq!(service.ahead(), 0);
    }

    #[test]
    fn requests_taken_back_end_it() {
        let mut service = Service::new(0);
        for request in 0..10_000 {
            service.note(request / 100);
        }
        assert_eq!(service.ahead(), AHEAD_MAX);
        service.forget(100);
        assert_eq!(service.ahead(), 0);
    }
}
