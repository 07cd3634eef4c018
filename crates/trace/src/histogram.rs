//! Latency histograms: times in buckets that grow with them, one writer, any reader.
//!
//! ```text
//! value, us   0 1 .. 7 | 8 9 .. 15 | 16-17 18-19 .. 30-31 | 32-35 .. | ... | 2^31 .. 2^32 - 1
//! buckets     8, exact | 8, exact  | 8, two values each   | 8        |     | 8
//! ```
//!
//! Below 16 us a bucket is one value; above, each doubling has [`STEPS`] buckets, so a bucket is at
//! most an eighth of its smallest value wide and its middle at most 6.25 % off. Times beyond
//! [`VALUE_US_MAX`] (71 minutes) count as that. Adding is three plain loads and stores; a reader
//! may see one number a moment newer than another.

use crate::metric::CounterCell;

/// Buckets of each doubling.
pub const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 3;
/// Largest time told apart, in microseconds.
pub const VALUE_US_MAX: u64 = (1 << VALUE_BITS) - 1;
const VALUE_BITS: u32 = 32;
/// All buckets.
pub const BUCKETS: usize = (VALUE_BITS - STEP_BITS + 1) as usize * STEPS;

/// Times of one kind on one thread. Written by that thread, read by any.
#[derive(Debug)]
pub struct Histogram {
    buckets: [CounterCell; BUCKETS],
    sum_us: CounterCell,
    max_us: CounterCell,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: std::array::from_fn(|_| CounterCell::default()),
            sum_us: CounterCell::default(),
            max_us: CounterCell::default(),
        }
    }
}

impl Histogram {
    /// Counts a time. Only the thread that owns the histogram may.
    #[inline]
    pub fn record(&self, value_us: u64) {
        self.buckets[bucket_of(value_us)].add(1);
        self.sum_us.add(value_us);
        self.max_us.raise(value_us);
    }

    /// Adds what has been counted so far to `sum`.
    pub fn add_to(&self, sum: &mut HistogramSnapshot) {
        for (sum, cell) in sum.buckets.iter_mut().zip(&self.buckets) {
            *sum = sum.wrapping_add(cell.value());
        }
        sum.sum_us = sum.sum_us.wrapping_add(self.sum_us.value());
        sum.max_us = sum.max_us.max(self.max_us.value());
    }
}

/// Times as they were counted by one thread or many, at one moment or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    buckets: [u64; BUCKETS],
    sum_us: u64,
    max_us: u64,
}

impl Default for HistogramSnapshot {
    fn default() -> HistogramSnapshot {
        HistogramSnapshot {
            buckets: [0; BUCKETS],
            sum_us: 0,
            max_us: 0,
        }
    }
}

impl HistogramSnapshot {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// Their sum, in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// The longest, in microseconds.
    pub fn max_us(&self) -> u64 {
        self.max_us
    }

    /// Their mean, in microseconds; 0 when there are none.
    pub fn mean_us(&self) -> u64 {
        self.sum_us.checked_div(self.count()).unwrap_or(0)
    }

    /// The time that a share of them, in parts of a thousand, does not exceed, in microseconds; the
    /// middle of its bucket, and never more than the longest. 0 when there are none.
    pub fn percentile_us(&self, per_mille: u64) -> u64 {
        self.percentiles_us([per_mille])[0]
    }

    /// Several of those at once, in rising order.
    pub fn percentiles_us<const N: usize>(&self, per_mille: [u64; N]) -> [u64; N] {
        debug_assert!(per_mille.is_sorted());
        let count = self.count();
        let mut found = [0; N];
        if count == 0 {
            return found;
        }
        let mut wanted = 0;
        let mut seen = 0;
        for (index, in_bucket) in self.buckets.iter().enumerate().filter(|(_, n)| **n > 0) {
            seen += in_bucket;
            while wanted < N && seen >= rank(count, per_mille[wanted]) {
                found[wanted] = middle_of(index).min(self.max_us);
                wanted += 1;
            }
        }
        found
    }

    /// Adds those of others.
    pub fn merge(&mut self, other: &HistogramSnapshot) {
        for (sum, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum = sum.wrapping_add(*more);
        }
        self.sum_us = self.sum_us.wrapping_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Those that were counted since an earlier look at the same histograms. The longest of them is
    /// known as exactly as its bucket is.
    pub fn since(&self, earlier: &HistogramSnapshot) -> HistogramSnapshot {
        let mut since = self.clone();
        for (now, before) in since.buckets.iter_mut().zip(&earlier.buckets) {
            *now = now.saturating_sub(*before);
        }
        since.sum_us = since.sum_us.saturating_sub(earlier.sum_us);
        let last = since.buckets.iter().rposition(|in_bucket| *in_bucket > 0);
        since.max_us = match last {
            // A longest one that is new is known to the microsecond.
            Some(_) if self.max_us > earlier.max_us => self.max_us,
            Some(last) => bounds_of(last).1.min(self.max_us),
            None => 0,
        };
        since
    }

    /// Buckets with something in them: the largest time each one takes, in microseconds, and how
    /// many are in it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.buckets.iter().enumerate();
        all.filter(|(_, in_bucket)| **in_bucket > 0)
            .map(|(index, in_bucket)| (bounds_of(index).1, *in_bucket))
    }
}

/// Which one of so many, in rising order, a share in parts of a thousand ends at; from 1.
fn rank(count: u64, per_mille: u64) -> u64 {
    let exact = u128::from(count) * u128::from(per_mille.min(1000));
    u64::try_from(exact.div_ceil(1000)).unwrap_or(count).max(1)
}

#[inline]
fn bucket_of(value_us: u64) -> usize {
    let value = value_us.min(VALUE_US_MAX);
    if value < STEPS as u64 {
        return value as usize;
    }
    let octave = value.ilog2();
    let step = (value >> (octave - STEP_BITS)) as usize & (STEPS - 1);
    (octave - STEP_BITS + 1) as usize * STEPS + step
}

/// The smallest and the largest time of a bucket.
fn bounds_of(index: usize) -> (u64, u64) {
    if index < STEPS {
        return (index as u64, index as u64);
    }
    let shift = (index / STEPS - 1) as u32;
    let low = ((STEPS + index % STEPS) as u64) << shift;
    (low, low + (1 << shift) - 1)
}

fn middle_of(index: usize) -> u64 {
    let (low, high) = bounds_of(index);
    low + (high - low) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(values: impl IntoIterator<Item = u64>) -> HistogramSnapshot {
        let histogram = Histogram::default();
        values.into_iter().for_each(|value| histogram.record(value));
        let mut times = HistogramSnapshot::default();
        histogram.add_to(&mut times);
        times
    }

    #[test]
    fn buckets_follow_each_other_without_gap_and_take_what_is_theirs() {
        let mut next = 0;
        for index in 0..BUCKETS {
            let (low, high) = bounds_of(index);
            assert_eq!(low, next, "bucket {index}");
            assert_eq!((bucket_of(low), bucket_of(high)), (index, index));
            next = high + 1;
        }
        assert_eq!(next, VALUE_US_MAX + 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn middle_of_a_bucket_is_within_a_sixteenth_of_every_value_in_it() {
        for index in 0..BUCKETS {
            let (low, high) = bounds_of(index);
            let middle = middle_of(index);
            for value in [low, high] {
                assert!(middle.abs_diff(value) * 16 <= value, "{value}");
            }
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let all = times(1..=10_000);
        assert_eq!(all.count(), 10_000);
        assert_eq!((all.max_us(), all.mean_us()), (10_000, 5_000));
        for (per_mille, exact) in [(500, 5_000u64), (900, 9_000), (990, 9_900), (1000, 10_000)] {
            let told = all.percentile_us(per_mille);
            assert!(told.abs_diff(exact) * 16 <= exact, "{per_mille}: {told}");
        }
        assert_eq!(all.percentile_us(0), 1);
        let few = times([3, 3, 3, 900]);
        assert_eq!(few.percentiles_us([500, 750, 990]), [3, 3, 900]);
        assert_eq!(times([]).percentiles_us([500, 1000]), [0, 0]);
        assert_eq!(times([]).mean_us(), 0);
    }

    #[test]
    fn what_came_since_is_told_apart() {
        let histogram = Histogram::default();
        let look = || {
            let mut times = HistogramSnapshot::default();
            histogram.add_to(&mut times);
            times
        };
        histogram.record(5_000);
        let first = look();
        histogram.record(10);
        histogram.record(11);
        let second = look();
        let since = second.since(&first);
        assert_eq!((since.count(), since.sum_us(), since.max_us()), (2, 21, 11));
        histogram.record(7_777);
        assert_eq!(look().since(&second).max_us(), 7_777);
        assert_eq!(look().since(&look()), HistogramSnapshot::default());
    }

    #[test]
    fn merged_times_are_those_of_both() {
        let mut both = times([1, 100]);
        both.merge(&times([1, 1_000_000_000_000]));
        assert_eq!(both.count(), 4);
        assert_eq!(both.max_us(), 1_000_000_000_000);
        assert_eq!(both.buckets().next(), Some((1, 2)));
    }
}
