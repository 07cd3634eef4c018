//! What is known of a run while it goes on: threads tell it ten times a second, whoever watches
//! looks at it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::series::IntervalSeries;
use super::tally::RequestTally;

/// Counts of all threads so far, and what happened in the seconds that are over.
#[derive(Debug)]
pub(crate) struct Live {
    counts: [AtomicU64; 4],
    /// Only kept where somebody looks at it.
    series: Option<Mutex<IntervalSeries>>,
}

/// Counts at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) due: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// Requests that are due and wait for a connection.
    pub(crate) backlog: u64,
}

impl Counts {
    fn all(self) -> [u64; 4] {
        [self.due, self.answered, self.failed, self.backlog]
    }
}

/// What one thread has told already.
#[derive(Debug, Default)]
pub(crate) struct ReportedCounts {
    counts: Counts,
    until_ns: u64,
}

impl Live {
    /// Nothing so far. The measured time begins at `warm_ns`.
    pub(crate) fn new(warm_ns: u64, is_series_kept: bool) -> Live {
        Live {
            counts: [const { AtomicU64::new(0) }; 4],
            series: is_series_kept.then(|| Mutex::new(IntervalSeries::new(warm_ns))),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let [due, answered, failed, backlog] = self
            .counts
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed));
        Counts {
            due,
            answered,
            failed,
            backlog,
        }
    }

    /// A thread tells what it has counted since it told last.
    pub(crate) fn tell(
        &self,
        told: &mut ReportedCounts,
        tally: &RequestTally,
        backlog: usize,
        now: u64,
    ) {
        let counts = Counts {
            due: tally.due,
            // One that was broken off is waited for no more.
            answered: tally.answered + tally.broken_off,
            failed: tally.failures.count(),
            backlog: backlog as u64,
        };
        let differences = counts.all().into_iter().zip(told.counts.all());
        for (count, (now, before)) in self.counts.iter().zip(differences) {
            // A backlog may shrink; the sum over all threads does not go below zero.
            count.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        }
        told.counts = counts;
        let Some(series) = &self.series else { return };
        let width = tally.series.width_ns();
        let first = told.until_ns.max(tally.series.begin_ns());
        told.until_ns = first;
        while told.until_ns + width <= now {
            if let Some(interval) = tally.series.interval_at(told.until_ns) {
                // A thread that panicked has ended the run already.
                if let Ok(mut series) = series.lock() {
                    series.add(told.until_ns, interval);
                }
            }
            told.until_ns += width;
        }
    }

    /// The seconds that are over.
    pub(crate) fn series(&self) -> Option<IntervalSeries> {
        let series = self.series.as_ref()?.lock().ok()?;
        Some(series.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_threads_add_up_and_a_backlog_may_shrink() {
        let live = Live::new(0, true);
        let (mut one, mut other) = (ReportedCounts::default(), ReportedCounts::default());
        let mut tally = RequestTally::new(1, 1, 1);
        tally.due = 5;
        live.tell(&mut one, &tally, 3, 0);
        live.tell(&mut other, &tally, 4, 0);
        live.tell(&mut one, &tally, 0, 0);
        assert_eq!((live.counts().due, live.counts().backlog), (10, 4));
    }

    #[test]
    fn only_seconds_that_are_over_are_told() {
        const SECOND: u64 = 1_000_000_000;
        let live = Live::new(0, true);
        let mut told = ReportedCounts::default();
        let mut tally = RequestTally::new(1, 1, 1);
        tally.series.answered(SECOND / 2, 1000, true);
        live.tell(&mut told, &tally, 0, SECOND / 2);
        assert_eq!(live.series().unwrap().intervals().len(), 0);
        live.tell(&mut told, &tally, 0, 2 * SECOND);
        live.tell(&mut told, &tally, 0, 3 * SECOND);
        assert_eq!(live.series().unwrap().intervals()[0].answered, 1);
        assert!(Live::new(0, false).series().is_none());
    }
}
