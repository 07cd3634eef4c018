//! Figures that are made of what was counted, and how they are written for people.

use super::Report;
use crate::plan::Pace;

impl Report {
    /// Measured time in seconds: until its end, or the last answer where that came later.
    pub(super) fn elapsed(&self) -> f64 {
        let last = self.tally.last_ns.saturating_sub(self.warm_ns);
        let ns = if self.is_interrupted {
            self.tally.wall_ns
        } else if self.end_ns == u64::MAX || self.is_count_reached() {
            last
        } else {
            last.max(self.end_ns - self.warm_ns)
        };
        ns as f64 / 1e9
    }

    fn is_count_reached(&self) -> bool {
        self.plan.count.is_some_and(|count| self.tally.due >= count)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.plan.pace, Pace::Open { .. })
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
        let whole = (self.end_ns != u64::MAX && !self.is_interrupted && !self.is_count_reached())
            .then(|| (self.end_ns - self.warm_ns) as f64 / 1e9);
        Some(whole.map_or_else(|| self.per_second(due), |seconds| due as f64 / seconds))
    }

    /// Requests with no good answer.
    pub(super) fn failed(&self) -> u64 {
        self.tally.failures.count()
    }

    /// Requests whose answer was still on its way when the run was interrupted.
    pub(super) fn unfinished(&self) -> u64 {
        self.tally
            .due
            .saturating_sub(self.tally.good + self.failed())
    }

    /// Microseconds of the load generator's own CPU time per answer.
    pub(super) fn client_cpu_us(&self) -> Option<f64> {
        let answers = self.tally.answers_since_warm_up;
        (answers > 0).then(|| self.tally.cpu_ns as f64 / 1e3 / answers as f64)
    }

    /// The same of the watched process and its children.
    pub(super) fn server_cpu_us(&self) -> Option<f64> {
        let answers = self.tally.answers_since_warm_up;
        let cpu = self.machine.cpu_ns.filter(|_| answers > 0)?;
        Some(cpu as f64 / 1e3 / answers as f64)
    }

    pub(super) fn percent_of_due(&self, count: u64) -> f64 {
        match self.tally.due {
            0 => 0.0,
            due => count as f64 * 100.0 / due as f64,
        }
    }
}

/// A time for people, with three digits: `1.23 ms`.
pub(super) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if ns < 1e6 => (ns / 1e3, "us"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = match value {
        _ if value < 10.0 => 2,
        _ if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// A count for people: `12,345`.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate for people: whole from a hundred on.
pub(super) fn rate(rate: f64) -> String {
    if rate >= 100.0 {
        count(rate.round() as u64)
    } else {
        format!("{rate:.1}")
    }
}

/// A number of bytes for people, in thousands.
pub(super) fn bytes(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(time(1234.0), "1.23 us");
        assert_eq!(time(56_780_000.0), "56.8 ms");
        assert_eq!(time(2e9), "2.00 s");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(rate(12.34), "12.3");
        assert_eq!(rate(4999.6), "5,000");
        assert_eq!(bytes(999.0), "999 B");
        assert_eq!(bytes(12_340_000.0), "12.3 MB");
    }
}
