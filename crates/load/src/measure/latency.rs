//! A histogram of times: nanoseconds, three significant digits, merged and never averaged.

use hdrhistogram::Histogram;

use super::encode::{add, decode_into, encode};
use crate::limits::DURATION_MAX;

/// Digits a recorded value keeps: an error of at most one in a thousand.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Times of one kind.
#[derive(Debug)]
pub struct Latency(Histogram<u64>);

impl Latency {
    pub(crate) fn new() -> Latency {
        let high = DURATION_MAX.as_nanos() as u64;
        let histogram = Histogram::new_with_bounds(1, high, SIGNIFICANT_DIGITS);
        Latency(histogram.expect("the bounds are constants that make sense"))
    }

    pub(crate) fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    pub(crate) fn merge(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// So many percent of the times are at most this, in nanoseconds.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.0.value_at_quantile(percent / 100.0)
    }

    pub(crate) fn min(&self) -> u64 {
        self.0.min()
    }

    /// The longest one, in nanoseconds.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// As text that HdrHistogram's tools read.
    pub(crate) fn text(&self) -> String {
        encode(&self.0)
    }

    /// Adds what such a text holds; none where it is no histogram of this kind.
    pub(crate) fn add_text(&mut self, text: &str) -> Option<()> {
        decode_into(&mut self.0, text)
    }

    /// From the shortest to the longest: share of times, time in nanoseconds, how many are at most
    /// that long. So many steps from one halving of what is left to the next.
    pub(crate) fn steps(&self, steps_per_halving: u32) -> Vec<(f64, f64, u64)> {
        let mut count = 0;
        let steps = self.0.iter_quantiles(steps_per_halving).map(|cell| {
            count += cell.count_since_last_iteration();
            (
                cell.quantile_iterated_to(),
                cell.value_iterated_to() as f64,
                count,
            )
        });
        steps.collect()
    }

    /// The standard deviation, in nanoseconds.
    pub(crate) fn deviation(&self) -> f64 {
        self.0.stdev()
    }

    /// How many buckets there are, and how many parts each has.
    pub(crate) fn buckets(&self) -> (u8, u32) {
        (self.0.buckets(), 2 * 1024)
    }
}

/// A histogram below its compression as text, and what that text is once it was read again; none
/// where it is no histogram. The fuzz target holds them against each other.
pub fn replay_histogram(whole: &[u8]) -> Option<(String, String)> {
    let (mut once, mut again) = (Latency::new(), Latency::new());
    add(&mut once.0, whole)?;
    again.add_text(&once.text())?;
    Some((once.text(), again.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_thousandth() {
        let (mut one, mut other) = (Latency::new(), Latency::new());
        for us in 1..=100_000u64 {
            let half = if us % 2 == 0 { &mut one } else { &mut other };
            half.record(us * 1000);
        }
        one.merge(&other);
        assert_eq!(one.count(), 100_000);
        for percent in [1.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            let expected = percent * 1e6;
            let found = one.percentile(percent) as f64;
            assert!(
                (found / expected - 1.0).abs() <= 0.001,
                "p{percent}: {found}"
            );
        }
        assert!((one.mean() / 50_000_500.0 - 1.0).abs() < 0.001);
    }
}
