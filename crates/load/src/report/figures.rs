//! Figures that are made of what was counted, and how they are written for people.

use hob_machine::process::waited_ns;

use super::BenchReport;
use super::pages::Totals;
use crate::plan::LoadModel;
use crate::replay::Counts;

impl BenchReport {
    /// Measured time in seconds: until its end, or the last answer where that came later.
    pub(super) fn elapsed(&self) -> f64 {
        let last = self.tally.last_ns.saturating_sub(self.warm_ns);
        let ns = if self.is_cut_short() {
            self.tally.wall_ns
        } else if let Some(log_ns) = self.log_ns() {
            last.max(log_ns)
        } else if self.end_ns == u64::MAX || self.is_count_reached() {
            last
        } else {
            last.max(self.end_ns - self.warm_ns)
        };
        ns as f64 / 1e9
    }

    /// It did not go on for as long as it should have.
    pub(super) fn is_cut_short(&self) -> bool {
        self.is_interrupted || self.stopped.is_some()
    }

    fn is_count_reached(&self) -> bool {
        let part = |count| self.conduct.shard.map_or(count, |shard| shard.part(count));
        self.plan
            .count
            .is_some_and(|count| self.tally.due >= part(count))
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self.plan.pace, LoadModel::Closed { .. })
    }

    pub(super) fn per_second(&self, count: u64) -> f64 {
        let elapsed = self.elapsed();
        if elapsed > 0.0 {
            count as f64 / elapsed
        } else {
            0.0
        }
    }

    /// Requests due per second of the time in which they were due.
    pub(super) fn offered(&self) -> Option<f64> {
        if !self.is_open() {
            return None;
        }
        let due = self.tally.due;
        let is_timed = self.end_ns != u64::MAX && !self.is_cut_short() && !self.is_count_reached();
        let whole = is_timed.then(|| self.end_ns - self.warm_ns);
        let seconds = self
            .log_ns()
            .or(whole)
            .map(|ns| ns as f64 / 1e9)
            .filter(|seconds| *seconds > 0.0);
        Some(seconds.map_or_else(|| self.per_second(due), |seconds| due as f64 / seconds))
    }

    /// The measured time in which requests of a log were due, where there were no more of them and
    /// nothing else ended the run.
    fn log_ns(&self) -> Option<u64> {
        let is_whole = self.has_log_ended();
        let log = self.log.as_ref().filter(|_| is_whole)?;
        Some(log.last_ns.saturating_sub(self.warm_ns))
    }

    /// Did a run end because its log had no more requests?
    pub(super) fn has_log_ended(&self) -> bool {
        let is_ended = |log: &Counts| log.is_ended && log.last_ns < self.end_ns;
        let has_ended = self.log.as_ref().is_some_and(is_ended);
        has_ended && !self.is_cut_short() && !self.is_count_reached()
    }

    /// What figures of one page are made of.
    pub(super) fn page_totals(&self) -> Totals {
        Totals {
            pages: self.tally.answered,
            received_bytes: self.tally.received_bytes,
            connections: self.tally.opened,
        }
    }

    /// Requests with no good answer.
    pub(super) fn failed(&self) -> u64 {
        self.tally.failures.count()
    }

    /// Requests whose answer was still on its way when the run was interrupted.
    pub(super) fn unfinished(&self) -> u64 {
        self.tally
            .due
            .saturating_sub(self.tally.good + self.tally.broken_off + self.failed())
    }

    /// Microseconds of the load generator's own CPU time per answer.
    pub(super) fn client_cpu_us(&self) -> Option<f64> {
        let answers = self.tally.answers_since_warm_up;
        (answers > 0).then(|| self.tally.cpu_ns as f64 / 1e3 / answers as f64)
    }

    /// Microseconds per answer in which threads of the load generator were ready to run and waited
    /// for a CPU; nothing where the kernel does not count that, or of no answers.
    pub fn client_waited_us(&self) -> Option<f64> {
        let answers = self.tally.answers_since_warm_up;
        let is_counted = answers > 0 && waited_ns("thread-self").is_some();
        is_counted.then(|| self.tally.waited_cpu_ns as f64 / 1e3 / answers as f64)
    }

    /// The same of the watched process and its children.
    pub(super) fn server_cpu_us(&self) -> Option<f64> {
        let answers = self.tally.answers_since_warm_up;
        let cpu = self.machine.cpu_ns.filter(|_| answers > 0)?;
        Some(cpu as f64 / 1e3 / answers as f64)
    }

    /// The same of the watched control group.
    pub(super) fn cgroup_cpu_us(&self) -> Option<f64> {
        let answers = self.tally.answers_since_warm_up;
        let cpu = self.machine.cgroup_cpu_ns.filter(|_| answers > 0)?;
        Some(cpu as f64 / 1e3 / answers as f64)
    }

    pub(super) fn percent_of_due(&self, count: u64) -> f64 {
        match self.tally.due {
            0 => 0.0,
            due => count as f64 * 100.0 / due as f64,
        }
    }
}
