//! Who waits for the threads of a run: shows how far they are, and ends the run when a condition
//! for that is met.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::conduct::{Conduct, Stopper};
use crate::measure::Counts;
use crate::page::count;
use crate::plan::BenchPlan;
use crate::send::PreparedRun;
use crate::view::{DisplayState, Glance};

/// How often it is looked how far the run is.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Waits for the threads.
pub(crate) struct ThreadMonitor<'a> {
    plan: &'a BenchPlan,
    prepared: &'a PreparedRun,
    conduct: &'a Conduct,
    ends: &'a Receiver<()>,
    ended_count: usize,
    shown: DisplayState,
    /// Answers so far, and when that grew last or nothing was waited for.
    answered: u64,
    heard: Duration,
    stopped: Option<String>,
}

impl ThreadMonitor<'_> {
    pub(crate) fn new<'a>(
        plan: &'a BenchPlan,
        prepared: &'a PreparedRun,
        conduct: &'a Conduct,
        ends: &'a Receiver<()>,
    ) -> ThreadMonitor<'a> {
        ThreadMonitor {
            plan,
            prepared,
            conduct,
            ends,
            ended_count: 0,
            shown: DisplayState::new(conduct.view),
            answered: 0,
            heard: Duration::ZERO,
            stopped: None,
        }
    }

    /// Waits until so much of the run is over, or until all threads have ended.
    pub(crate) fn until(&mut self, limit: Option<Duration>) {
        while self.ended_count < self.plan.threads {
            let passed = self.prepared.begun.elapsed();
            let left = limit.map(|limit| limit.saturating_sub(passed));
            if left == Some(Duration::ZERO) {
                return;
            }
            let wait = left.unwrap_or(LOOK_PERIOD).min(LOOK_PERIOD);
            match self.ends.recv_timeout(wait) {
                Ok(()) => self.ended_count += 1,
                Err(RecvTimeoutError::Timeout) => self.look(passed),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn look(&mut self, passed: Duration) {
        let live = &self.prepared.live;
        self.stop_if_reached(live.counts());
        if self.prepared.is_stopped.load(Ordering::Relaxed) {
            // Whoever is impatient and ends the program must not be left with our screen.
            return self.shown.clear();
        }
        let silent = self.silent(live.counts(), passed);
        self.shown.look(&Glance {
            plan: self.plan,
            passed,
            silent,
            live,
        });
    }

    /// For how long requests have waited and none was answered.
    fn silent(&mut self, counts: Counts, passed: Duration) -> Duration {
        // What begins in the warm-up is not counted, neither are its answers.
        let begun = passed.min(self.plan.warm_up);
        let is_waited_for = counts.due == 0 || counts.due > counts.answered + counts.failed;
        if counts.answered != self.answered || !is_waited_for || passed == begun {
            self.answered = counts.answered;
            self.heard = passed;
        }
        passed.saturating_sub(self.heard)
    }

    fn stop_if_reached(&mut self, counts: Counts) {
        let value = |stopper| match stopper {
            Stopper::Backlog => (
                counts.backlog,
                "requests were due and waited for a connection",
            ),
            Stopper::Errors => (counts.failed, "requests had failed"),
        };
        let mut reached = self.conduct.stops.iter().filter_map(|stop| {
            let (number, what) = value(stop.stopper);
            let is_reached = stop.is_reached(number);
            is_reached.then(|| format!("{stop}: {} {what}", count(number)))
        });
        let is_running =
            self.stopped.is_none() && !self.prepared.is_stopped.load(Ordering::Relaxed);
        if let Some(reached) = reached.next().filter(|_| is_running) {
            self.stopped = Some(reached);
            self.prepared.is_stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Takes away what was shown, and tells the condition that ended the run, if one did.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.shown.clear();
        self.stopped
    }
}
