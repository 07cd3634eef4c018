//! What is certain about the ratio of two figures: from repeated runs by Welch's method on their
//! logarithms, from the stretches of one run each by a bootstrap of blocks.

use crate::measure::{Interval, IntervalSeries};
use crate::random::Random;
use crate::student::student_t;

/// Share of cases in which an interval holds the true value.
pub(super) const CONFIDENCE_PERCENT: f64 = 95.0;
/// Samples that are drawn.
const DRAW_COUNT: usize = 1000;
/// Stretches that are told apart in drawing.
const STRETCH_COUNT_MAX: usize = 120;
/// Fewer stretches or runs say nothing about how much a figure varies.
pub(super) const STRETCH_COUNT_MIN: usize = 8;
pub(super) const RUN_COUNT_MIN: usize = 3;

/// An estimate and the interval it lies in, as factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub(super) estimate: f64,
    pub(super) interval: Option<(f64, f64)>,
}

/// Welch's interval of the ratio of two figures of which each run has given one.
pub(super) fn of_runs(before: &[f64], after: &[f64]) -> Option<Ratio> {
    let logs = |all: &[f64]| -> Option<Vec<f64>> {
        let logs = all.iter().map(|value| (*value > 0.0).then(|| value.ln()));
        logs.collect()
    };
    let (before, after) = (logs(before)?, logs(after)?);
    if before.len() < RUN_COUNT_MIN || after.len() < RUN_COUNT_MIN {
        return None;
    }
    let ((mean_a, square_a), (mean_b, square_b)) = (moments(&before), moments(&after));
    let difference = mean_b - mean_a;
    let squares = square_a + square_b;
    // Without any spread the difference is as certain as the clock.
    let half = match squares > 0.0 {
        false => 0.0,
        true => {
            let parts = square_a.powi(2) / (before.len() - 1) as f64
                + square_b.powi(2) / (after.len() - 1) as f64;
            student_t(squares.powi(2) / parts) * squares.sqrt()
        }
    };
    Some(Ratio {
        estimate: difference.exp(),
        interval: Some(((difference - half).exp(), (difference + half).exp())),
    })
}

/// The mean, and the square of its standard error.
fn moments(all: &[f64]) -> (f64, f64) {
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    let spread: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, spread / (count - 1.0) / count)
}

/// The stretches of a run, laid out for drawing.
pub(super) struct Stretches {
    width_s: f64,
    good: Vec<u64>,
    failed: Vec<u64>,
    /// Times that occur, in nanoseconds, and how often in each stretch.
    times: Vec<u64>,
    counts: Vec<Vec<u64>>,
}

/// What stretches together say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawn {
    pub(super) rate: f64,
    pub(super) failed_percent: f64,
    pub(super) mean_ns: f64,
    times: Vec<(u64, u64)>,
    count: u64,
}

impl Stretches {
    /// The stretches of one run or of several. Those that were not measured to their end are left
    /// out: they would look slow.
    pub(super) fn of(runs: Vec<(IntervalSeries, f64)>) -> Stretches {
        let runs: Vec<(IntervalSeries, f64)> = runs
            .into_iter()
            .map(|(series, elapsed)| (series.coarsened(STRETCH_COUNT_MAX), elapsed))
            .collect();
        let width_ns = runs
            .iter()
            .map(|(series, _)| series.width_ns())
            .max()
            .unwrap_or(1);
        let mut whole: Vec<Interval> = Vec::new();
        for (series, elapsed) in runs {
            let series = series.widened(width_ns);
            let complete = (elapsed * 1e9 / width_ns as f64 + 1e-6) as usize;
            whole.extend(series.intervals().iter().take(complete).cloned());
        }
        let lists: Vec<Vec<(u64, u64)>> = whole.iter().map(Interval::times).collect();
        let mut times: Vec<u64> = lists.iter().flatten().map(|(ns, _)| *ns).collect();
        times.sort_unstable();
        times.dedup();
        let row = |list: &Vec<(u64, u64)>| {
            let mut row = vec![0; times.len()];
            for (ns, count) in list {
                if let Ok(index) = times.binary_search(ns) {
                    row[index] = *count;
                }
            }
            row
        };
        Stretches {
            width_s: width_ns as f64 / 1e9,
            good: whole.iter().map(|one| one.good).collect(),
            failed: whole.iter().map(|one| one.failed).collect(),
            counts: lists.iter().map(row).collect(),
            times,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.good.len()
    }

    /// All of them, each once.
    pub(super) fn whole(&self) -> Drawn {
        self.sum(0..self.count())
    }

    /// Samples as long as the run, made of blocks, since what follows on each other is alike.
    pub(super) fn draw(&self, seed: u64) -> Vec<Drawn> {
        let count = self.count();
        let block = (count as f64).cbrt().ceil() as usize;
        let mut random = Random::new(seed);
        let mut draw = || {
            let mut picked = Vec::with_capacity(count + block);
            while picked.len() < count {
                let from = (random.share() * count as f64) as usize;
                picked.extend((from..from + block).map(|index| index % count));
            }
            picked.truncate(count);
            self.sum(picked.into_iter())
        };
        (0..DRAW_COUNT).map(|_| draw()).collect()
    }

    fn sum(&self, picked: impl Iterator<Item = usize>) -> Drawn {
        let mut counts = vec![0u64; self.times.len()];
        let (mut good, mut failed, mut stretches) = (0, 0, 0);
        for index in picked {
            stretches += 1;
            good += self.good[index];
            failed += self.failed[index];
            for (sum, count) in counts.iter_mut().zip(&self.counts[index]) {
                *sum += count;
            }
        }
        let times: Vec<(u64, u64)> = self.times.iter().copied().zip(counts).collect();
        let count: u64 = times.iter().map(|(_, count)| count).sum();
        let sum: f64 = times
            .iter()
            .map(|(ns, count)| *ns as f64 * *count as f64)
            .sum();
        Drawn {
            rate: good as f64 / (f64::from(stretches) * self.width_s),
            failed_percent: failed as f64 * 100.0 / (good + failed).max(1) as f64,
            mean_ns: sum / count.max(1) as f64,
            times,
            count,
        }
    }
}

impl Drawn {
    pub(super) fn percentile(&self, percent: f64) -> f64 {
        let wanted = ((percent / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (ns, count) in &self.times {
            seen += count;
            if seen >= wanted {
                return *ns as f64;
            }
        }
        f64::NAN
    }
}

/// The interval of a ratio of what was drawn on both sides.
pub(super) fn of_draws(
    whole: (&Drawn, &Drawn),
    draws: (&[Drawn], &[Drawn]),
    figure: impl Fn(&Drawn) -> f64,
) -> Option<Ratio> {
    let estimate = figure(whole.1) / figure(whole.0);
    let pairs = draws.0.iter().zip(draws.1);
    let mut ratios: Vec<f64> = pairs
        .map(|(before, after)| figure(after) / figure(before))
        .collect();
    let is_certain = ratios.iter().all(|ratio| ratio.is_finite()) && !ratios.is_empty();
    ratios.sort_by(f64::total_cmp);
    let at = |percent: f64| ratios[((ratios.len() - 1) as f64 * percent / 100.0).round() as usize];
    let rest = (100.0 - CONFIDENCE_PERCENT) / 2.0;
    estimate.is_finite().then(|| Ratio {
        estimate,
        interval: is_certain.then(|| (at(rest), at(100.0 - rest))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_more_than_they_vary_are_told_apart() {
        let ratio = of_runs(&[100.0, 101.0, 99.0, 100.0], &[110.0, 111.0, 109.0, 110.0]).unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!(low > 1.08 && high < 1.12, "{low} {high}");
        assert!((ratio.estimate - 1.1).abs() < 0.001);
        let ratio = of_runs(&[100.0, 120.0, 80.0], &[105.0, 125.0, 85.0]).unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!(low < 1.0 && high > 1.0, "{low} {high}");
        assert_eq!(of_runs(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(of_runs(&[0.0, 1.0, 1.0], &[2.0, 2.0, 2.0]), None);
    }

    /// A run of 20 s with so many answers a second, each after so many microseconds, with a swing.
    fn run(per_second: u64, us: u64) -> Stretches {
        const SECOND: u64 = 1_000_000_000;
        let mut random = Random::new(us);
        let mut intervals = Vec::new();
        for _ in 0..20 {
            let mut series = IntervalSeries::of(SECOND, Vec::new());
            for _ in 0..per_second {
                let ns = (us as f64 * 1e3 * (0.8 + 0.4 * random.share())) as u64;
                series.record(0, ns);
            }
            intervals.extend(series.intervals().iter().cloned());
        }
        Stretches::of(vec![(IntervalSeries::of(SECOND, intervals), 20.0)])
    }

    #[test]
    fn stretches_tell_what_differs_and_what_does_not() {
        let (before, same, slower) = (run(100, 500), run(100, 501), run(80, 600));
        let interval = |after: &Stretches, figure: fn(&Drawn) -> f64| {
            let draws = (before.draw(1), after.draw(2));
            let whole = (before.whole(), after.whole());
            let ratio = of_draws((&whole.0, &whole.1), (&draws.0, &draws.1), figure);
            ratio.unwrap().interval.unwrap()
        };
        let p50: fn(&Drawn) -> f64 = |drawn| drawn.percentile(50.0);
        let (low, high) = interval(&slower, p50);
        assert!(low > 1.1 && high < 1.3, "{low} {high}");
        let (low, high) = interval(&same, p50);
        assert!(low < 1.01 && high > 0.99, "{low} {high}");
        let (low, high) = interval(&slower, |drawn| drawn.rate);
        assert!(
            (low - 0.8).abs() < 1e-9 && (high - 0.8).abs() < 1e-9,
            "{low} {high}"
        );
    }
}
