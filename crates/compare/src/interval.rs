//! Means with their 95 % intervals, by Student's t-distribution: rounds are few.

use hob_load::student_t;
use schemars::JsonSchema;
use serde::Serialize;

/// A mean, and how far from it the true one may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Mean {
    /// Mean of the rounds, of ratios the geometric one.
    pub(crate) mean: f64,
    /// Half of its 95 % interval; null of one round.
    #[serde(rename = "half_95")]
    pub(crate) half: Option<f64>,
    /// Rounds.
    pub(crate) n: usize,
}

impl Mean {
    /// Of these values; nothing of none.
    pub(crate) fn of(values: &[f64]) -> Option<Mean> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half = (n > 1).then(|| {
            let deviation = (squares / (n - 1) as f64).sqrt();
            student_t((n - 1) as f64) * deviation / (n as f64).sqrt()
        });
        Some(Mean { n, mean, half })
    }

    /// Half of the interval in percent of the mean.
    pub(crate) fn percent(&self) -> Option<f64> {
        let half = self.half?;
        (self.mean != 0.0).then(|| half * 100.0 / self.mean.abs())
    }

    /// The same for people: `±1.2 %`.
    pub(crate) fn spread(&self) -> String {
        match self.percent() {
            None => "-".to_owned(),
            Some(percent) if percent < 10.0 => format!("±{percent:.1} %"),
            Some(percent) => format!("±{percent:.0} %"),
        }
    }

    /// Between what a ratio lies: as far above as below on a logarithmic scale, so never below
    /// nothing.
    pub(crate) fn ratio_bounds(&self) -> Option<(f64, f64)> {
        let spread = self.ratio_spread()?;
        Some((self.mean / spread, self.mean * spread))
    }

    /// The factor by which a ratio's interval goes up and down.
    pub(crate) fn ratio_spread(&self) -> Option<f64> {
        // `asinh().exp()`, without a call that glibc has had anew since 2.35.
        let part = self.half? / self.mean;
        Some(part + (part * part + 1.0).sqrt())
    }

    /// The ratio of two means that were not measured in the same rounds; nothing where there is
    /// nothing to divide by.
    pub(crate) fn quotient(value: &Mean, base: &Mean) -> Option<Mean> {
        if base.mean <= 0.0 || value.mean <= 0.0 {
            return None;
        }
        let mean = value.mean / base.mean;
        let half = value.half.zip(base.half);
        Some(Mean {
            mean,
            half: half.map(|(of_value, of_base)| {
                let (one, other) = (of_value / value.mean, of_base / base.mean);
                // Not `hypot`, which glibc has had anew since 2.35.
                mean * (one * one + other * other).sqrt()
            }),
            n: value.n.min(base.n),
        })
    }

    /// The ratio of two series that were measured in the same rounds: what disturbed a round
    /// disturbed both, and falls out. Geometric, so that the ratio the other way is its inverse.
    pub(crate) fn ratio(values: &[f64], bases: &[f64]) -> Option<Mean> {
        let pairs = values.iter().zip(bases);
        let logs: Vec<f64> = pairs
            .filter(|(value, base)| **value > 0.0 && **base > 0.0)
            .map(|(value, base)| (value / base).ln())
            .collect();
        let log = Mean::of(&logs)?;
        let mean = log.mean.exp();
        Some(Mean {
            n: log.n,
            mean,
            half: log
                .half
                .map(|half| mean * (half.exp() - (-half).exp()) / 2.0),
        })
    }
}

/// The middle of these values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
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
    fn interval_is_that_of_the_t_distribution() {
        // Mean 10, deviation 1, n 4: t(3) / 2.
        let values = [9.0, 9.0 + 2.0 / 3.0, 10.0 + 1.0 / 3.0, 11.0];
        let mean = Mean::of(&values).unwrap();
        let deviation = (values.iter().map(|v| (v - 10.0f64).powi(2)).sum::<f64>() / 3.0).sqrt();
        assert!((mean.mean - 10.0).abs() < 1e-12);
        assert!((mean.half.unwrap() - 3.182 * deviation / 2.0).abs() < 1e-9);
        assert!((mean.percent().unwrap() - mean.half.unwrap() * 10.0).abs() < 1e-9);
    }

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(Mean::of(&[]), None);
        let one = Mean::of(&[5.0]).unwrap();
        assert_eq!(
            (one.n, one.mean, one.half, one.percent()),
            (1, 5.0, None, None)
        );
        assert_eq!(one.spread(), "-");
        assert_eq!(Mean::of(&[1.0, 1.0]).unwrap().spread(), "±0.0 %");
    }

    #[test]
    fn ratio_of_paired_rounds_forgets_what_disturbed_both() {
        let bases = [10.0, 20.0, 40.0];
        let values = [20.0, 40.0, 80.0];
        let ratio = Mean::ratio(&values, &bases).unwrap();
        assert!((ratio.mean - 2.0).abs() < 1e-12 && ratio.half.unwrap() < 1e-9);
        let inverse = Mean::ratio(&bases, &values).unwrap();
        assert!((inverse.mean - 0.5).abs() < 1e-12);
        assert_eq!(Mean::ratio(&[0.0], &[1.0]), None);
        // 1/2 and 8 are as far from 2 as each other: t(1) is 12.706 logarithms away.
        let wide = Mean::ratio(&[1.0, 8.0], &[2.0, 1.0]).unwrap();
        let (low, high) = wide.ratio_bounds().unwrap();
        assert!(0.0 < low && low < 0.5 && high > 8.0);
        assert!(
            (low * high - 4.0).abs() < 1e-6
                && (high - low - 2.0 * wide.half.unwrap()).abs() / high < 1e-9
        );
    }

    #[test]
    fn median_is_the_middle_or_between_the_two_in_it() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
