//! What happened when: counts and response times by stretches of the measured time, a second each
//! until there would be too many.

use hdrhistogram::Histogram;

use super::encode::{decode_into, encode};
use crate::limits::{DURATION_MAX, INTERVAL_COUNT_MAX};

/// Length of a stretch at first.
const WIDTH_NS: u64 = 1_000_000_000;
/// Digits and unit of the times of a stretch: right to a hundredth, from a microsecond on.
const SIGNIFICANT_DIGITS: u8 = 2;
const UNIT_NS: u64 = 1000;

/// One stretch. Requests belong to where they ended.
#[derive(Debug, Clone)]
pub(crate) struct Interval {
    pub(crate) answered: u64,
    /// Those of them that were answered as expected.
    pub(crate) good: u64,
    pub(crate) failed: u64,
    response: Histogram<u32>,
}

impl Interval {
    pub(crate) fn new() -> Interval {
        let histogram = Histogram::new_with_bounds(UNIT_NS, 2 * UNIT_NS, SIGNIFICANT_DIGITS);
        let mut response: Histogram<u32> =
            histogram.expect("the bounds are constants that make sense");
        // Most stretches have no long times, and the memory for these only where they are.
        response.auto(true);
        Interval {
            answered: 0,
            good: 0,
            failed: 0,
            response,
        }
    }

    /// An answer that took so long.
    pub(crate) fn answered(&mut self, ns: u64, is_good: bool) {
        self.answered += 1;
        self.good += u64::from(is_good);
        self.record(ns);
    }

    fn record(&mut self, ns: u64) {
        let ns = ns.min(DURATION_MAX.as_nanos() as u64);
        self.response
            .record(ns)
            .expect("the histogram grows as it needs to");
    }

    pub(crate) fn merge(&mut self, other: &Interval) {
        // Those of many results that were written down may come to anything.
        self.answered = self.answered.saturating_add(other.answered);
        self.good = self.good.saturating_add(other.good);
        self.failed = self.failed.saturating_add(other.failed);
        let added = self.response.add(&other.response);
        added.expect("the histogram grows as it needs to");
    }

    /// Times recorded.
    pub(crate) fn count(&self) -> u64 {
        self.response.len()
    }

    /// In nanoseconds; none without a time.
    pub(crate) fn percentile(&self, percent: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.response.value_at_quantile(percent / 100.0))
    }

    /// Times and how many there are of each, in nanoseconds, from the shortest.
    pub(crate) fn times(&self) -> Vec<(u64, u64)> {
        let cells = self.response.iter_recorded();
        cells
            .map(|cell| (cell.value_iterated_to(), u64::from(cell.count_at_value())))
            .collect()
    }

    /// The times as text that HdrHistogram's tools read.
    pub(crate) fn histogram(&self) -> String {
        encode(&self.response)
    }

    /// A stretch of what is written down of one; none where the text is no such histogram.
    pub(crate) fn read([answered, good, failed]: [u64; 3], histogram: &str) -> Option<Interval> {
        let mut interval = Interval::new();
        (interval.answered, interval.good, interval.failed) = (answered, good, failed);
        decode_into(&mut interval.response, histogram)?;
        Some(interval)
    }
}

/// All stretches of a run, or of one thread of it.
#[derive(Debug, Clone)]
pub(crate) struct IntervalSeries {
    /// Where the first one begins, in nanoseconds of the run.
    begin_ns: u64,
    width_ns: u64,
    intervals: Vec<Interval>,
}

impl IntervalSeries {
    /// Nothing so far; the measured time begins there.
    pub(crate) fn new(begin_ns: u64) -> IntervalSeries {
        IntervalSeries {
            begin_ns,
            width_ns: WIDTH_NS,
            intervals: Vec::new(),
        }
    }

    /// What was written down of a run.
    pub(crate) fn of(width_ns: u64, intervals: Vec<Interval>) -> IntervalSeries {
        IntervalSeries {
            begin_ns: 0,
            width_ns: width_ns.max(1),
            intervals,
        }
    }

    pub(super) fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    pub(crate) fn width_ns(&self) -> u64 {
        self.width_ns
    }

    pub(crate) fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// A request was answered.
    pub(super) fn answered(&mut self, at_ns: u64, response_ns: u64, is_good: bool) {
        let interval = self.at(at_ns);
        interval.answered += 1;
        interval.good += u64::from(is_good);
        interval.failed += u64::from(!is_good);
        interval.record(response_ns);
    }

    /// A request failed; if it waited, for so long.
    pub(super) fn failed(&mut self, at_ns: u64, waited_ns: Option<u64>) {
        let interval = self.at(at_ns);
        interval.failed += 1;
        if let Some(waited) = waited_ns {
            interval.record(waited);
        }
    }

    /// Adds a stretch that begins there.
    pub(super) fn add(&mut self, at_ns: u64, interval: &Interval) {
        self.at(at_ns).merge(interval);
    }

    fn at(&mut self, at_ns: u64) -> &mut Interval {
        let into = at_ns.saturating_sub(self.begin_ns);
        while into / self.width_ns >= INTERVAL_COUNT_MAX as u64 {
            self.coarsen();
        }
        let index = (into / self.width_ns) as usize;
        if index >= self.intervals.len() {
            self.intervals.resize_with(index + 1, Interval::new);
        }
        &mut self.intervals[index]
    }

    /// Two stretches become one.
    fn coarsen(&mut self) {
        self.width_ns *= 2;
        let mut whole = Vec::with_capacity(INTERVAL_COUNT_MAX);
        for pair in self.intervals.chunks(2) {
            let mut one = pair[0].clone();
            if let Some(other) = pair.get(1) {
                one.merge(other);
            }
            whole.push(one);
        }
        self.intervals = whole;
    }

    /// Adds what was written down of another run, which began so much later. Its stretches are laid
    /// on the nearest ones here.
    pub(crate) fn add_all(&mut self, other: &IntervalSeries, later_ns: u64) {
        if self.intervals.is_empty() {
            self.width_ns = other.width_ns;
        }
        while self.width_ns < other.width_ns {
            self.coarsen();
        }
        let begin_ns = self.begin_ns.saturating_add(later_ns);
        let mut at_ns = begin_ns.saturating_add(other.width_ns / 2);
        for interval in &other.intervals {
            self.add(at_ns, interval);
            at_ns = at_ns.saturating_add(other.width_ns);
        }
    }

    /// Stretches at least this long.
    pub(crate) fn widened(mut self, width_ns: u64) -> IntervalSeries {
        while self.width_ns < width_ns {
            self.coarsen();
        }
        self
    }

    /// A time of a stretch, in tests.
    #[cfg(test)]
    pub(crate) fn record(&mut self, at_ns: u64, response_ns: u64) {
        self.answered(at_ns, response_ns, true);
    }

    /// At most so many stretches.
    pub(crate) fn coarsened(mut self, count_max: usize) -> IntervalSeries {
        while self.intervals.len() > count_max.max(1) {
            self.coarsen();
        }
        self
    }

    /// Adds what happened elsewhere at the same time.
    pub(crate) fn merge(&mut self, mut other: IntervalSeries) {
        while self.width_ns < other.width_ns {
            self.coarsen();
        }
        while other.width_ns < self.width_ns {
            other.coarsen();
        }
        let count = self.intervals.len().max(other.intervals.len());
        self.intervals.resize_with(count, Interval::new);
        for (own, others) in self.intervals.iter_mut().zip(&other.intervals) {
            own.merge(others);
        }
    }

    /// The stretch at a moment, in nanoseconds of the run.
    pub(super) fn interval_at(&self, at_ns: u64) -> Option<&Interval> {
        let into = at_ns.checked_sub(self.begin_ns)?;
        self.intervals.get((into / self.width_ns) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn answered(series: &IntervalSeries) -> Vec<u64> {
        let intervals = series.intervals.iter();
        intervals.map(|interval| interval.answered).collect()
    }

    #[test]
    fn requests_belong_to_the_second_in_which_they_ended() {
        let mut series = IntervalSeries::new(5 * SECOND);
        series.answered(5 * SECOND, 1_000_000, true);
        series.answered(6 * SECOND - 1, 3_000_000, false);
        series.failed(7 * SECOND, None);
        assert_eq!(answered(&series), [2, 0, 0]);
        let first = &series.intervals[0];
        assert_eq!((first.failed, series.intervals[2].failed), (1, 1));
        let p100 = first.percentile(100.0).unwrap() as f64;
        assert!((p100 / 3e6 - 1.0).abs() < 0.01, "{p100}");
        assert_eq!(series.intervals[2].percentile(50.0), None);
    }

    #[test]
    fn long_runs_have_longer_stretches_and_lose_nothing() {
        let mut series = IntervalSeries::new(0);
        for second in 0..5000 {
            series.answered(second * SECOND, 1000, true);
        }
        assert!(series.intervals.len() <= INTERVAL_COUNT_MAX);
        assert_eq!(series.width_ns, 16 * SECOND);
        assert_eq!(answered(&series).iter().sum::<u64>(), 5000);
        let mut short = IntervalSeries::new(0);
        short.answered(0, 1000, true);
        short.merge(series);
        assert_eq!(answered(&short)[0], 17);
    }

    #[test]
    fn stretch_comes_back_from_text() {
        let mut series = IntervalSeries::new(0);
        for us in 1..1000 {
            series.answered(0, us * 10_000, us % 2 == 0);
        }
        let one = &series.intervals[0];
        let back = Interval::read([999, 499, 500], &one.histogram()).unwrap();
        assert_eq!(back.times(), one.times());
        assert_eq!(back.percentile(99.0), one.percentile(99.0));
        assert!(Interval::read([1, 1, 0], "x").is_none());
    }
}
