//! The last minute: response times of all requests, and how many each route had.

use std::collections::{HashMap, VecDeque};

use hob_trace::histogram::HistogramSnapshot;
use hob_trace::series::SeriesRegistry;

/// Seconds between two looks that are kept.
const EVERY_S: u64 = 5;
/// Looks that are kept: a minute of them, and the one it begins with.
const LOOKS: usize = 13;

/// What the last minute was like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    /// Response times.
    pub(crate) total: HistogramSnapshot,
    /// Waits for programs.
    pub(crate) queue: HistogramSnapshot,
    /// Requests a second of each series.
    pub(crate) rates: HashMap<u16, f64>,
}

/// Looks of the last minute.
#[derive(Debug)]
pub(crate) struct Looks {
    looks: VecDeque<RecentSample>,
    next_s: u64,
}

#[derive(Debug, Default)]
struct RecentSample {
    at_s: u64,
    total: HistogramSnapshot,
    queue: HistogramSnapshot,
    requests: HashMap<u16, u64>,
}

impl Default for Looks {
    fn default() -> Looks {
        Looks {
            // The server begins with nothing counted.
            looks: VecDeque::from([RecentSample::default()]),
            next_s: EVERY_S,
        }
    }
}

impl Looks {
    /// Takes in what has been counted by this second of uptime, and tells of the minute before it.
    pub(crate) fn take_in(
        &mut self,
        now_s: u64,
        total: &HistogramSnapshot,
        queue: &HistogramSnapshot,
        series: &SeriesRegistry,
    ) -> Recent {
        let requests = series.requests();
        let recent = match self.looks.front() {
            Some(first) => {
                let seconds = now_s.saturating_sub(first.at_s).max(1) as f64;
                let before = |number: &u16| first.requests.get(number).copied().unwrap_or(0);
                let rates = requests.iter().map(|(number, count)| {
                    let since = count.saturating_sub(before(number));
                    (*number, since as f64 / seconds)
                });
                Recent {
                    total: total.since(&first.total),
                    queue: queue.since(&first.queue),
                    rates: rates.collect(),
                }
            }
            None => Recent::default(),
        };
        if now_s >= self.next_s {
            self.next_s = now_s + EVERY_S;
            self.looks.push_back(RecentSample {
                at_s: now_s,
                total: total.clone(),
                queue: queue.clone(),
                requests,
            });
            while self.looks.len() > LOOKS {
                self.looks.pop_front();
            }
        }
        recent
    }
}

#[cfg(test)]
mod tests {
    use hob_trace::histogram::Histogram;

    use super::*;

    #[test]
    fn only_the_last_minute_is_told() {
        let (histogram, series) = (Histogram::default(), SeriesRegistry::new(1));
        let mut looks = Looks::default();
        let mut counts = Vec::new();
        for second in 0..200 {
            histogram.record(second);
            let mut total = HistogramSnapshot::default();
            histogram.add_to(&mut total);
            let recent = looks.take_in(second, &total, &HistogramSnapshot::default(), &series);
            counts.push(recent.total.count());
        }
        assert_eq!(counts[..3], [1, 2, 3]);
        assert!(counts[190..].iter().all(|count| (60..=65).contains(count)));
    }
}
