//! When requests are due in an open loop, whatever the server does.
//!
//! An `ArrivalRate` is a shape over time: constant, a ramp, or steps of equal length. Its integral
//! N(t) is how many requests are due by t; requests are due where N passes 1, 2, 3, ... (constant
//! gaps) or sums of exponential gaps (Poisson). Threads take turns, so that together they keep the
//! rate.

use std::str::FromStr;
use std::time::Duration;

use crate::limits::{RATE_MAX, STEP_COUNT_MAX};
use crate::quantity::plain_number;
use crate::random::Random;

/// How many requests per second are due, over the measured time.
#[derive(Debug, Clone, PartialEq)]
pub enum ArrivalRate {
    /// The same all the time.
    Constant(f64),
    /// From one to the other, by and by.
    Ramp(f64, f64),
    /// One after the other, each for an equal part of the time.
    Steps(Vec<f64>),
}

/// Gaps between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// As even as the rate is.
    Constant,
    /// Those of many visitors who know nothing of each other: exponential.
    Poisson,
}

impl FromStr for ArrivalRate {
    type Err = String;

    /// Reads `5000`, `100..2000` or `1000,2000,4000`.
    fn from_str(text: &str) -> Result<ArrivalRate, String> {
        let wrong = || {
            format!(
                "{text:?} is no rate; write requests per second: 5000, a ramp 100..2000 or \
                 steps 1000,2000,4000"
            )
        };
        let number = |text: &str| {
            let number = plain_number(text).filter(|number| *number <= RATE_MAX);
            number.ok_or_else(wrong)
        };
        let positive =
            |text: &str| number(text).and_then(|n| (n > 0.0).then_some(n).ok_or_else(wrong));
        if let Some((from, to)) = text.split_once("..") {
            let (from, to) = (number(from)?, number(to)?);
            return (from + to > 0.0)
                .then_some(ArrivalRate::Ramp(from, to))
                .ok_or_else(wrong);
        }
        if !text.contains(',') {
            return positive(text).map(ArrivalRate::Constant);
        }
        let steps: Vec<f64> = text.split(',').map(positive).collect::<Result<_, _>>()?;
        if steps.len() > STEP_COUNT_MAX {
            return Err(format!("a rate has at most {STEP_COUNT_MAX} steps"));
        }
        Ok(ArrivalRate::Steps(steps))
    }
}

impl ArrivalRate {
    /// The rate as it is written.
    pub fn text(&self) -> String {
        match self {
            ArrivalRate::Constant(rate) => rate.to_string(),
            ArrivalRate::Ramp(from, to) => format!("{from}..{to}"),
            ArrivalRate::Steps(steps) => {
                let steps: Vec<String> = steps.iter().map(f64::to_string).collect();
                steps.join(",")
            }
        }
    }

    /// The step that a moment of the measured time belongs to.
    pub(crate) fn step(&self, at_ns: u64, duration_ns: u64) -> usize {
        match self {
            ArrivalRate::Steps(steps) => {
                let step = u128::from(at_ns) * steps.len() as u128 / u128::from(duration_ns.max(1));
                (step as usize).min(steps.len() - 1)
            }
            _ => 0,
        }
    }

    fn first(&self) -> f64 {
        match self {
            ArrivalRate::Constant(rate) | ArrivalRate::Ramp(rate, _) => *rate,
            ArrivalRate::Steps(steps) => steps[0],
        }
    }

    /// Seconds into the measured time at which `due` requests are due; none when there never are.
    fn reached(&self, due: f64, duration: f64) -> Option<f64> {
        match self {
            _ if due <= 0.0 => Some(0.0),
            ArrivalRate::Constant(rate) => Some(due / rate),
            ArrivalRate::Ramp(from, to) => {
                // due = from t + slope t²/2, in a form that is exact for small slopes too.
                let slope = (to - from) / duration;
                let root = from * from + 2.0 * slope * due;
                (root >= 0.0 && from + root.sqrt() > 0.0).then(|| 2.0 * due / (from + root.sqrt()))
            }
            ArrivalRate::Steps(steps) => {
                let length = duration / steps.len() as f64;
                let mut left = due;
                for (index, rate) in steps.iter().enumerate() {
                    if left <= rate * length || index + 1 == steps.len() {
                        return Some(index as f64 * length + left / rate);
                    }
                    left -= rate * length;
                }
                None
            }
        }
    }
}

/// The times at which one thread's requests are due.
#[derive(Debug)]
pub(crate) struct Schedule {
    rate: ArrivalRate,
    warm_up: f64,
    duration: f64,
    thread_count: f64,
    /// Requests due so far, those of this thread only; a fraction lies between two.
    due: f64,
    gaps: Option<Random>,
}

impl Schedule {
    /// The schedule of one thread of several. During the warm-up the rate is the first one.
    pub(crate) fn new(
        rate: &ArrivalRate,
        arrivals: Arrivals,
        (warm_up, duration): (Duration, Duration),
        (thread, thread_count): (usize, usize),
        seed: u64,
    ) -> Schedule {
        let mut gaps = match arrivals {
            Arrivals::Constant => None,
            Arrivals::Poisson => Some(Random::new(
                seed ^ (thread as u64).wrapping_mul(0xd6e8_feb8_6659_fd93),
            )),
        };
        let due = match &mut gaps {
            None => thread as f64 / thread_count as f64,
            Some(random) => random.exponential(),
        };
        Schedule {
            rate: rate.clone(),
            warm_up: warm_up.as_secs_f64(),
            duration: duration.as_secs_f64(),
            thread_count: thread_count as f64,
            due,
            gaps,
        }
    }

    /// Nanoseconds from the beginning of the run at which the next request is due.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let all = self.due * self.thread_count;
        let first = self.rate.first();
        let in_warm_up = first * self.warm_up;
        let seconds = if all < in_warm_up {
            all / first
        } else {
            self.warm_up + self.rate.reached(all - in_warm_up, self.duration)?
        };
        self.due += self.gaps.as_mut().map_or(1.0, Random::exponential);
        Some((seconds * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All times of several threads within the run, in order.
    fn times(rate: &str, arrivals: Arrivals, threads: usize, seconds: (u64, u64)) -> Vec<u64> {
        let rate: ArrivalRate = rate.parse().unwrap();
        let times = (
            Duration::from_secs(seconds.0),
            Duration::from_secs(seconds.1),
        );
        let end = (seconds.0 + seconds.1) * 1_000_000_000;
        let mut all = Vec::new();
        for thread in 0..threads {
            let mut schedule = Schedule::new(&rate, arrivals, times, (thread, threads), 1);
            all.extend(std::iter::from_fn(|| schedule.next()).take_while(|time| *time < end));
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn rates_are_numbers_ramps_and_steps() {
        assert_eq!("5000".parse(), Ok(ArrivalRate::Constant(5000.0)));
        assert_eq!("0.5".parse(), Ok(ArrivalRate::Constant(0.5)));
        assert_eq!("0..10".parse(), Ok(ArrivalRate::Ramp(0.0, 10.0)));
        assert_eq!("1,2".parse(), Ok(ArrivalRate::Steps(vec![1.0, 2.0])));
        for wrong in [
            "",
            "0",
            "-1",
            "1,",
            "a",
            "1e3",
            "0..0",
            "1..",
            "999999999999",
        ] {
            assert!(wrong.parse::<ArrivalRate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn constant_gaps_are_even_however_many_threads_share_them() {
        let even: Vec<u64> = (0..3000).map(|index| index * 1_000_000).collect();
        assert!(times("1000", Arrivals::Constant, 1, (1, 2)) == even);
        let of_four = times("1000", Arrivals::Constant, 4, (1, 2));
        assert_eq!(of_four.len(), even.len());
        assert!(of_four.iter().zip(&even).all(|(a, b)| a.abs_diff(*b) < 10));
    }

    #[test]
    fn ramp_has_as_many_requests_as_its_mean_rate() {
        let up = times("0..1000", Arrivals::Constant, 2, (0, 4));
        assert!(up.len().abs_diff(2000) <= 2, "{}", up.len());
        let first_half = up.iter().filter(|time| **time < 2_000_000_000).count();
        assert!(first_half.abs_diff(500) <= 2, "{first_half}");
        let down = times("1000..0", Arrivals::Constant, 1, (0, 4));
        assert!(down.len().abs_diff(2000) <= 2, "{}", down.len());
    }

    #[test]
    fn steps_last_equally_long() {
        let all = times("100,300", Arrivals::Constant, 3, (1, 4));
        let between = |from: u64, to: u64| {
            let inside = |time: &&u64| (from * 1_000_000_000..to * 1_000_000_000).contains(*time);
            all.iter().filter(inside).count()
        };
        assert!(between(0, 1).abs_diff(100) <= 1);
        assert!(between(1, 3).abs_diff(200) <= 1);
        assert!(between(3, 5).abs_diff(600) <= 1);
        let rate: ArrivalRate = "100,300".parse().unwrap();
        let second = 1_000_000_000;
        let steps: Vec<_> = (0..5)
            .map(|at| rate.step(at * second, 4 * second))
            .collect();
        assert_eq!(steps, [0, 0, 1, 1, 1]);
    }

    #[test]
    fn poisson_arrivals_keep_the_rate_with_gaps_as_spread_as_their_mean() {
        let all = times("20000", Arrivals::Poisson, 3, (0, 5));
        assert!(all.len().abs_diff(100_000) < 2000, "{}", all.len());
        let gaps: Vec<f64> = all.windows(2).map(|two| (two[1] - two[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let spread = variance.sqrt() / mean;
        assert!((spread - 1.0).abs() < 0.03, "{spread}");
    }
}
