//! Medians of rounds and of their ratios, each with an interval of its own that is right for few
//! rounds.
//!
//! Rounds are few, and now and then something else on the machine makes one of them many times as
//! long: a mean follows that round wherever it goes, a median does not. Which interval belongs to
//! a median depends on how many rounds there are:
//!
//! - 9 and more: between the k-th smallest and the k-th largest, k as large as the sign test allows
//!   at 95 %. That holds whatever the distribution is (J.-Y. Le Boudec, *Performance Evaluation of
//!   Computer and Communication Systems*, 2010, section 2.2; recommended for measurements of
//!   performance by T. Hoefler and R. Belli, *Scientific Benchmarking of Parallel Computing
//!   Systems*, SC 2015). From 9 rounds on neither the smallest nor the largest is an end of it.
//! - 4 to 8: as far up and down as the median absolute deviation, times a factor. Order statistics
//!   would need the smallest and the largest here (below 6 rounds even these have under 95 %), so
//!   that one bad round made the interval as wide as itself. A scale that one bad value cannot move
//!   exists from 4 values on (P. J. Rousseeuw and S. Verboven, *Robust estimation in very small
//!   samples*, Computational Statistics & Data Analysis 40, 2002).
//! - 2 and 3: half of the range, times a factor: no scale withstands one bad value of three. With a
//!   bad round among them the interval is as wide as that round, which makes it no figure.
//!
//! Factors are those with which 95 % of intervals have the true median where rounds are distributed
//! normally, from 4 million samples each. Below 9 rounds nothing holds for every distribution: of
//! 1 million samples each, between 90.4 and 97.3 % had it where they were uniform, exponential,
//! log-normal, Laplace's, or normal with ten times the deviation in one of ten. The interval of
//! ratios is made of their logarithms, so that the interval of the inverse is the inverse.

use schemars::JsonSchema;
use serde::Serialize;

/// The middle of the rounds, and between what the true one lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Estimate {
    /// Median of the rounds; of ratios that of the rounds' own ratios.
    pub(crate) median: f64,
    /// Lower end of its 95 % interval; null of one round.
    #[serde(rename = "low_95")]
    pub(crate) low: Option<f64>,
    /// Its upper end.
    #[serde(rename = "high_95")]
    pub(crate) high: Option<f64>,
    /// Rounds.
    pub(crate) n: usize,
}

/// What half of the range is multiplied by, of 2 and 3 values: that of 2 is Student's.
const RANGE_FACTORS: [f64; 2] = [12.706, 2.686];
/// What the median absolute deviation is multiplied by, of 4 to 8 values.
const DEVIATION_FACTORS: [f64; 5] = [4.755, 4.215, 2.655, 2.490, 1.935];
/// How sure an interval is.
const COVERAGE: f64 = 0.95;

impl Estimate {
    /// Of these values, which cannot be below nothing; nothing of none.
    pub(crate) fn of(values: &[f64]) -> Option<Estimate> {
        let (median, ends) = middle(values)?;
        let (low, high) = ends.unzip();
        Some(Estimate {
            median,
            low: low.map(|low| low.max(0.0)),
            high,
            n: values.len(),
        })
    }

    /// The ratio of two series that were measured in the same rounds: what disturbed a round
    /// disturbed both, and falls out. The ratio the other way is its inverse.
    pub(crate) fn ratio(values: &[f64], bases: &[f64]) -> Option<Estimate> {
        let pairs = values.iter().zip(bases);
        let logs: Vec<f64> = pairs
            .filter(|(value, base)| **value > 0.0 && **base > 0.0)
            .map(|(value, base)| (value / base).ln())
            .collect();
        let (median, ends) = middle(&logs)?;
        let (low, high) = ends.unzip();
        Some(Estimate {
            median: median.exp(),
            low: low.map(f64::exp),
            high: high.map(f64::exp),
            n: logs.len(),
        })
    }

    /// The ratio of two that were not measured in the same rounds; nothing where there is nothing
    /// to divide by. Its interval has those of both, joined on the scale of logarithms as G. Y. Zou
    /// and A. Donner do (*Construction of confidence limits about effect measures*, Statistics in
    /// Medicine 27, 2008), which need not be as far above as below.
    pub(crate) fn quotient(value: &Estimate, base: &Estimate) -> Option<Estimate> {
        if base.median <= 0.0 || value.median <= 0.0 {
            return None;
        }
        let median = value.median / base.median;
        let is_open = |(low, _): &(f64, f64)| *low <= 0.0;
        let both = value.bounds().zip(base.bounds());
        let ends = both.filter(|(own, other)| !is_open(own) && !is_open(other));
        let ends = ends.map(|(own, other)| {
            // Not `hypot`, which glibc has had anew since 2.35.
            let joined = |one: f64, two: f64| (one.ln().powi(2) + two.ln().powi(2)).sqrt().exp();
            let down = joined(value.median / own.0, other.1 / base.median);
            let up = joined(own.1 / value.median, base.median / other.0);
            (median / down, median * up)
        });
        let (low, high) = ends.unzip();
        Some(Estimate {
            median,
            low,
            high,
            n: value.n.min(base.n),
        })
    }

    /// Between what the true one lies.
    pub(crate) fn bounds(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Half of the interval in percent of the median.
    pub(crate) fn percent(&self) -> Option<f64> {
        let (low, high) = self.bounds()?;
        (self.median != 0.0).then(|| (high - low) * 50.0 / self.median.abs())
    }

    /// The same for people: `±1.2 %`.
    pub(crate) fn spread(&self) -> String {
        match self.percent() {
            None => "-".to_owned(),
            Some(percent) if percent < 10.0 => format!("±{percent:.1} %"),
            Some(percent) => format!("±{percent:.0} %"),
        }
    }

    /// The factor by which a ratio's interval goes up and down, on the average of both.
    pub(crate) fn ratio_spread(&self) -> Option<f64> {
        let (low, high) = self.bounds()?;
        Some((high / low).sqrt())
    }
}

/// The median of these values and the interval around it, which one value has not.
fn middle(values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = median_of_sorted(&sorted)?;
    let around = |half: f64| (median - half, median + half);
    let count = sorted.len();
    let ends = match count {
        1 => None,
        2 | 3 => {
            let range = sorted[count - 1] - sorted[0];
            Some(around(range / 2.0 * RANGE_FACTORS[count - 2]))
        }
        4..=8 => {
            let mut distances: Vec<f64> = sorted.iter().map(|one| (one - median).abs()).collect();
            distances.sort_by(f64::total_cmp);
            let deviation = median_of_sorted(&distances)?;
            Some(around(deviation * DEVIATION_FACTORS[count - 4]))
        }
        _ => {
            let passed = passed_count(count);
            Some((sorted[passed], sorted[count - 1 - passed]))
        }
    };
    Some((median, ends))
}

/// How many of so many values may be passed over at either end so that the median of what they
/// were drawn from is still within the others: as many as leave 95 %.
fn passed_count(count: usize) -> usize {
    // Of all ways in which values fall above and below the median: the share of those in which just
    // so many are below.
    let mut share = 0.5_f64.powi(count as i32);
    let (mut outside, mut passed) = (share, 0);
    loop {
        share *= (count - passed) as f64 / (passed + 1) as f64;
        outside += share;
        if 1.0 - 2.0 * outside < COVERAGE {
            return passed;
        }
        passed += 1;
    }
}

/// The middle of these values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(Estimate::of(&[]), None);
        let one = Estimate::of(&[5.0]).unwrap();
        assert_eq!((one.n, one.median, one.bounds()), (1, 5.0, None));
        assert_eq!((one.percent(), one.spread()), (None, "-".to_owned()));
        assert_eq!(Estimate::of(&[1.0, 1.0]).unwrap().spread(), "±0.0 %");
    }

    #[test]
    fn interval_of_two_is_that_of_the_t_distribution() {
        let two = Estimate::of(&[9.0, 11.0]).unwrap();
        // Deviation √2, so 12.706 to either side; nothing takes less than nothing.
        assert_eq!((two.median, two.low), (10.0, Some(0.0)));
        assert!((two.high.unwrap() - 22.706).abs() < 1e-9);
    }

    #[test]
    fn interval_of_many_passes_over_as_many_as_the_sign_test_allows() {
        // As tables of the sign test have them.
        let known = [
            (6, 0),
            (8, 0),
            (9, 1),
            (11, 1),
            (12, 2),
            (20, 5),
            (25, 7),
            (100, 39),
        ];
        for (count, passed) in known {
            assert_eq!(passed_count(count), passed, "of {count}");
        }
        let values: Vec<f64> = (1..=12).map(f64::from).collect();
        let twelve = Estimate::of(&values).unwrap();
        assert_eq!((twelve.median, twelve.bounds()), (6.5, Some((3.0, 10.0))));
    }

    #[test]
    fn one_bad_round_moves_neither_figure_nor_ratio_beyond_the_others() {
        let bases = [
            10.0, 10.2, 9.9, 10.1, 9.8, 10.3, 9.7, 10.4, 10.05, 9.95, 10.15, 9.85,
        ];
        let noise = [
            1.0, 1.01, 0.99, 1.02, 0.98, 1.005, 0.995, 1.03, 0.97, 1.0, 1.01, 0.99,
        ];
        for n in 3..=bases.len() {
            for bad in 0..n {
                let mut values: Vec<f64> = { bases.iter().zip(noise) }
                    .map(|(base, noise)| base * 2.0 * noise)
                    .take(n)
                    .collect();
                values[bad] *= 10.0;
                let range = |values: Vec<f64>| {
                    let ends = (f64::INFINITY, f64::NEG_INFINITY);
                    { values.into_iter() }
                        .fold(ends, |(low, high), one| (low.min(one), high.max(one)))
                };
                let others = |values: &[f64]| {
                    let kept = values.iter().enumerate().filter(|(index, _)| *index != bad);
                    range(kept.map(|(_, value)| *value).collect())
                };
                let (low, high) = others(&values);
                let figure = Estimate::of(&values).unwrap();
                assert!(low <= figure.median && figure.median <= high, "{n} {bad}");
                let ratios: Vec<f64> = values.iter().zip(bases).map(|(v, b)| v / b).collect();
                let (low, high) = others(&ratios);
                let ratio = Estimate::ratio(&values, &bases[..n]).unwrap();
                assert!(low <= ratio.median && ratio.median <= high, "{n} {bad}");
                if n > 3 {
                    // The interval stays, too: the figure is one.
                    let percents = (figure.percent().unwrap(), ratio.percent().unwrap());
                    assert!(
                        percents.0 < 50.0 && percents.1 < 50.0,
                        "{n} {bad} {percents:?}"
                    );
                }
                let inverse = Estimate::ratio(&bases[..n], &values).unwrap();
                assert!((inverse.median * ratio.median - 1.0).abs() < 1e-12);
                assert!((inverse.low.unwrap() * ratio.high.unwrap() - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn ratio_of_paired_rounds_forgets_what_disturbed_both() {
        let bases = [10.0, 20.0, 40.0];
        let values = [20.0, 40.0, 80.0];
        let ratio = Estimate::ratio(&values, &bases).unwrap();
        assert!((ratio.median - 2.0).abs() < 1e-12 && ratio.percent().unwrap() < 1e-9);
        assert_eq!(Estimate::ratio(&[0.0], &[1.0]), None);
        // 1/2 and 8 are as far from 2 as each other.
        let wide = Estimate::ratio(&[1.0, 8.0], &[2.0, 1.0]).unwrap();
        let (low, high) = wide.bounds().unwrap();
        assert!(0.0 < low && low < 0.5 && high > 8.0 && (low * high - 4.0).abs() < 1e-6);
        assert!((wide.ratio_spread().unwrap() - high / 2.0).abs() / high < 1e-9);
    }

    #[test]
    fn quotient_has_the_intervals_of_both() {
        let estimate = |median: f64, low: f64, high: f64| Estimate {
            median,
            low: Some(low),
            high: Some(high),
            n: 5,
        };
        let exact = estimate(2.0, 2.0, 2.0);
        let value = estimate(8.0, 4.0, 12.0);
        let ratio = Estimate::quotient(&value, &exact).unwrap();
        let near = |value: Option<f64>, wanted: f64| (value.unwrap() - wanted).abs() < 1e-9;
        assert!(ratio.median == 4.0 && near(ratio.low, 2.0) && near(ratio.high, 6.0));
        // What lies below the one lies above what is divided by it.
        let ratio = Estimate::quotient(&exact, &value).unwrap();
        assert!(near(ratio.low, 1.0 / 6.0) && near(ratio.high, 0.5));
        let open = Estimate::quotient(&value, &estimate(2.0, 0.0, 9.0)).unwrap();
        assert_eq!((open.median, open.bounds()), (4.0, None));
        assert_eq!(Estimate::quotient(&value, &estimate(0.0, 0.0, 0.0)), None);
    }

    #[test]
    fn median_is_the_middle_or_between_the_two_in_it() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    /// Numbers between 0 and 1, the same ones each time (xorshift of 64 bits).
    struct Draws(u64);

    impl Draws {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let far = (-2.0 * self.next().ln()).sqrt();
            far * (std::f64::consts::TAU * self.next()).cos()
        }
    }

    /// Rounds of a machine on which something is more or less in the way: around a median of 1.
    type Noise = fn(&mut Draws) -> f64;

    #[test]
    fn intervals_have_the_true_median_about_as_often_as_they_say() {
        const SAMPLES: usize = 20_000;
        let normal: Noise = |draws| (0.02 * draws.normal()).exp();
        let kinds: [(&str, f64, Noise); 4] = [
            ("normal", 0.945, normal),
            ("one of ten ten times as far", 0.945, |draws| {
                let far = if draws.next() < 0.1 { 0.2 } else { 0.02 };
                (far * draws.normal()).exp()
            }),
            ("never far below, often above", 0.905, |draws| {
                (0.02 * (-draws.next().ln() - std::f64::consts::LN_2)).exp()
            }),
            ("flat", 0.895, |draws| (0.02 * (draws.next() - 0.5)).exp()),
        ];
        let mut draws = Draws(0x2545_f491_4f6c_dd1d);
        for (name, least, noise) in kinds {
            for n in 2..=12 {
                let mut held = 0;
                for _ in 0..SAMPLES {
                    let values: Vec<f64> = (0..n).map(|_| noise(&mut draws)).collect();
                    let (low, high) = Estimate::of(&values).unwrap().bounds().unwrap();
                    held += usize::from(low <= 1.0 && 1.0 <= high);
                }
                let share = held as f64 / SAMPLES as f64;
                // From 9 on it holds whatever the distribution is; what is left is chance.
                let least = if n >= 9 { 0.945 } else { least };
                assert!(
                    (least..0.992).contains(&share),
                    "{name}, {n} rounds: {share}"
                );
            }
        }
        // Ratios of paired rounds likewise, whatever both had to bear together.
        for n in [3, 5, 8, 9] {
            let mut held = 0;
            for _ in 0..SAMPLES {
                let (mut values, mut bases) = (vec![], vec![]);
                for _ in 0..n {
                    let both = 1.0 + draws.next();
                    values.push(3.0 * both * normal(&mut draws));
                    bases.push(both * normal(&mut draws));
                }
                let (low, high) = Estimate::ratio(&values, &bases).unwrap().bounds().unwrap();
                held += usize::from(low <= 3.0 && 3.0 <= high);
            }
            let share = held as f64 / SAMPLES as f64;
            assert!((0.945..0.992).contains(&share), "{n} rounds: {share}");
        }
    }
}
