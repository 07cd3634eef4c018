//! What a program used in the last minute and in the last hour, from looks at what it has used in
//! all.

use std::collections::VecDeque;

use hob_server::handle::script::used::ProgramUsage;

/// What was used in so many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsageWindow {
    pub(crate) seconds: u64,
    pub(crate) used: ProgramUsage,
}

/// Looks at one program.
#[derive(Clone, Debug)]
pub(crate) struct Trend {
    minute: Looks,
    hour: Looks,
}

#[derive(Clone, Debug)]
struct Looks {
    every_s: u64,
    kept: usize,
    looks: VecDeque<(u64, ProgramUsage)>,
}

/// Seconds between two looks of the last minute, and of the last hour.
pub(crate) const MINUTE_EVERY_S: u64 = 10;
const HOUR_EVERY_S: u64 = 300;
/// How many make a minute, and an hour: the one they begin with too.
const MINUTE_LOOKS: usize = 7;
const HOUR_LOOKS: usize = 13;

impl Trend {
    /// Of a program that had used so much at this second of uptime.
    pub(crate) fn new(begun_s: u64, used: ProgramUsage) -> Trend {
        let looks = |every_s, kept| Looks {
            every_s,
            kept,
            looks: VecDeque::from([(begun_s, used)]),
        };
        Trend {
            minute: looks(MINUTE_EVERY_S, MINUTE_LOOKS),
            hour: looks(HOUR_EVERY_S, HOUR_LOOKS),
        }
    }

    /// So much was used by this second.
    pub(crate) fn take_in(&mut self, now_s: u64, used: ProgramUsage) {
        self.minute.take_in(now_s, used);
        self.hour.take_in(now_s, used);
    }

    /// The last minute, up to now.
    pub(crate) fn minute(&self, now_s: u64, used: ProgramUsage) -> UsageWindow {
        self.minute.span(now_s, used)
    }

    /// The last hour, up to now.
    pub(crate) fn hour(&self, now_s: u64, used: ProgramUsage) -> UsageWindow {
        self.hour.span(now_s, used)
    }
}

impl Looks {
    fn take_in(&mut self, now_s: u64, used: ProgramUsage) {
        let is_due = |(at_s, _): &(u64, ProgramUsage)| now_s >= at_s + self.every_s;
        if self.looks.back().is_none_or(is_due) {
            self.looks.push_back((now_s, used));
            while self.looks.len() > self.kept {
                self.looks.pop_front();
            }
        }
    }

    fn span(&self, now_s: u64, used: ProgramUsage) -> UsageWindow {
        let (from_s, before) = self.looks.front().copied().unwrap_or_default();
        UsageWindow {
            seconds: now_s.saturating_sub(from_s),
            used: used.since(before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_and_an_hour_are_told_and_no_more() {
        let mut trend = Trend::new(100, ProgramUsage::default());
        // Two requests a second, of 3 ms each.
        let used = |now_s: u64| {
            let requests = 2 * (now_s - 100);
            ProgramUsage {
                requests,
                cpu_us: 3000 * requests,
            }
        };
        assert_eq!(trend.minute(103, used(103)).used.requests, 6);
        for now_s in 100..10_000 {
            trend.take_in(now_s, used(now_s));
        }
        let minute = trend.minute(10_000, used(10_000));
        assert!((60..=70).contains(&minute.seconds), "{minute:?}");
        assert_eq!(minute.used.requests, 2 * minute.seconds);
        assert_eq!(minute.used.each_us(), Some(3000.0));
        let hour = trend.hour(10_000, used(10_000));
        assert!((3600..=3900).contains(&hour.seconds), "{hour:?}");
        assert_eq!(hour.used.requests, 2 * hour.seconds);
        assert_eq!(ProgramUsage::default().each_us(), None);
        let behind = trend.minute(0, ProgramUsage::default());
        assert_eq!((behind.seconds, behind.used), (0, ProgramUsage::default()));
    }
}
