//! When the requests of a log are due: its times, counted from the first one, divided by the
//! speed-up, never going back.
//!
//! Most logs know times to the second. Requests of one second are spread over it evenly, in their
//! order: all at its beginning would be a burst that never was.

use super::feed::Logged;
use crate::limits::{LOG_SECOND_BYTES_MAX, LOG_SECOND_COUNT_MAX};

const SECOND_US: u64 = 1_000_000;
/// A line that is older than the one before by more than this begins another log, which goes on
/// where the one before ended. Less is the order in which answers ended.
const BACK_US_MAX: i64 = 60 * 1_000_000;
/// One that is younger by more than this does so too: no run waits for a time that somebody's clock
/// has made up.
const FORTH_US_MAX: i64 = 24 * 3600 * 1_000_000;

/// What a log's times are on the clock of the run.
#[derive(Debug)]
pub(super) struct Clock {
    speed_up: f64,
    /// The time of the log at which the run begins.
    begin_us: Option<i64>,
    /// The latest time so far, counted from there.
    last_us: u64,
    /// Requests of that second, which have not got their moments.
    second: Vec<Logged>,
    second_bytes: usize,
    /// The latest moment that was given.
    given_ns: u64,
    /// Lines older than a line before them by a little, and those so far from the one before that
    /// another log began.
    pub(super) back_count: u64,
    pub(super) jump_count: u64,
}

/// A request with its moment, in nanoseconds of the run.
pub(super) type Timed = (u64, Logged);

impl Clock {
    pub(super) fn new(speed_up: f64) -> Clock {
        Clock {
            speed_up,
            begin_us: None,
            last_us: 0,
            second: Vec::new(),
            second_bytes: 0,
            given_ns: 0,
            back_count: 0,
            jump_count: 0,
        }
    }

    /// The time that the log spans so far, jumps left out.
    pub(super) fn span_us(&self) -> u64 {
        self.last_us
    }

    /// The latest moment that was given, in nanoseconds of the run.
    pub(super) fn given_ns(&self) -> u64 {
        self.given_ns
    }

    /// A request of the log; those that have their moments now are put into `timed`.
    pub(super) fn add(
        &mut self,
        (at_us, is_exact): (i64, bool),
        logged: Logged,
        timed: &mut Vec<Timed>,
    ) {
        let begin_us = *self.begin_us.get_or_insert(at_us);
        let passed_us = at_us.saturating_sub(begin_us);
        let mut now_us = u64::try_from(passed_us).unwrap_or(0);
        let step_us = passed_us.saturating_sub(self.last_us as i64);
        if !(-BACK_US_MAX..=FORTH_US_MAX).contains(&step_us) {
            self.jump_count += 1;
            self.begin_us = Some(at_us.saturating_sub(self.last_us as i64));
            now_us = self.last_us;
        } else if step_us < 0 {
            self.back_count += 1;
            now_us = self.last_us;
        }
        if now_us != self.last_us || is_exact {
            self.finish(timed);
        }
        self.last_us = now_us;
        if is_exact {
            return self.give(now_us as f64, logged, timed);
        }
        self.second_bytes += logged.target.len();
        self.second.push(logged);
        let is_full = self.second.len() >= LOG_SECOND_COUNT_MAX;
        if is_full || self.second_bytes >= LOG_SECOND_BYTES_MAX {
            self.finish(timed);
        }
    }

    /// Nothing more comes of the second at hand: its requests are spread over it.
    pub(super) fn finish(&mut self, timed: &mut Vec<Timed>) {
        let second = std::mem::take(&mut self.second);
        self.second_bytes = 0;
        let gap_us = SECOND_US as f64 / second.len().max(1) as f64;
        for (index, logged) in second.into_iter().enumerate() {
            let at_us = self.last_us as f64 + (index as f64 + 0.5) * gap_us;
            self.give(at_us, logged, timed);
        }
    }

    fn give(&mut self, at_us: f64, logged: Logged, timed: &mut Vec<Timed>) {
        let at_ns = (at_us * 1e3 / self.speed_up) as u64;
        self.given_ns = self.given_ns.max(at_ns);
        timed.push((self.given_ns, logged));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments of requests at these times, in milliseconds.
    fn moments(times: &[(i64, bool)], speed_up: f64) -> (Vec<u64>, Clock) {
        let mut clock = Clock::new(speed_up);
        let mut timed = Vec::new();
        for (ms, is_exact) in times {
            let logged = Logged {
                kind: 0,
                status: 200,
                target: b"/".to_vec().into(),
            };
            clock.add((ms * 1000, *is_exact), logged, &mut timed);
        }
        clock.finish(&mut timed);
        let moments = timed.iter().map(|(at_ns, _)| at_ns / 1_000_000);
        (moments.collect(), clock)
    }

    #[test]
    fn requests_of_a_second_are_spread_over_it() {
        let times = [5000, 5000, 5000, 5000, 7000].map(|ms| (ms, false));
        assert_eq!(moments(&times, 1.0).0, [125, 375, 625, 875, 2500]);
        assert_eq!(moments(&times, 2.0).0, [62, 187, 312, 437, 1250]);
    }

    #[test]
    fn exact_times_are_kept() {
        let times = [1250, 1250, 1300, 4000].map(|ms| (ms, true));
        assert_eq!(moments(&times, 1.0).0, [0, 0, 50, 2750]);
        assert_eq!(moments(&times, 0.5).0, [0, 0, 100, 5500]);
    }

    #[test]
    fn time_that_goes_back_stands_still_and_is_counted() {
        let times = [60_000, 62_000, 61_000, 63_000].map(|ms| (ms, false));
        let (found, clock) = moments(&times, 1.0);
        assert_eq!(found, [500, 2250, 2750, 3500]);
        assert_eq!((clock.back_count, clock.jump_count), (1, 0));
        assert_eq!(clock.span_us(), 3_000_000);
    }

    #[test]
    fn log_behind_a_log_goes_on_where_the_first_ended() {
        let times = [900_000, 902_000, 100_000, 103_000].map(|ms| (ms, false));
        let (found, clock) = moments(&times, 1.0);
        assert_eq!(found, [500, 2250, 2750, 5500]);
        assert_eq!((clock.back_count, clock.jump_count), (0, 1));
    }

    #[test]
    fn time_that_leaps_forward_begins_another_log() {
        const DAY: i64 = 24 * 3600 * 1000;
        let times = [0, DAY, 2 * DAY + 1, 2 * DAY + 5, 1000 * DAY, 2 * DAY + 9];
        let (found, clock) = moments(&times.map(|ms| (ms, true)), 1.0);
        let day = DAY as u64;
        assert_eq!(found, [0, day, day, day + 4, day + 4, day + 4]);
        assert_eq!((clock.back_count, clock.jump_count), (0, 3));
    }

    #[test]
    fn times_of_any_size_do_no_harm() {
        let times = [
            (i64::MAX / 1000, true),
            (i64::MIN / 1000, false),
            (0, false),
        ];
        let (found, _) = moments(&times, 1.0);
        assert_eq!(found.len(), 3);
        assert!(found.is_sorted());
    }
}
