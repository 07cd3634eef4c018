//! Everything that threads count: events where they happen, and each finished request once, in the
//! statistics and in the row of its site. What is the same again in fewer words (answers by class
//! of status, bytes, what the cache did) is taken from these when somebody asks.

use std::sync::Arc;

use crate::metric::{Counters, Snapshot, ThreadCounters};
use crate::record::{CacheOutcome, Record};
use crate::statistics::{AllStatistics, Statistics, ThreadStatistics};
use crate::tally::{Tallies, ThreadTally};

/// What all threads have counted.
#[derive(Debug, Default)]
pub struct ServerCounts {
    /// Events.
    pub counters: Arc<Counters>,
    /// Finished requests, told apart by what they were.
    pub statistics: AllStatistics,
    /// The same by site.
    pub tallies: Tallies,
}

/// Where one thread counts.
#[derive(Debug)]
pub struct ThreadCounts {
    /// Events.
    pub counters: Arc<ThreadCounters>,
    statistics: Arc<ThreadStatistics>,
    tally: Arc<ThreadTally>,
}

impl ServerCounts {
    /// Blocks for one more thread, of which it has that of events already.
    pub fn new_thread(&self, counters: Arc<ThreadCounters>) -> ThreadCounts {
        ThreadCounts {
            counters,
            statistics: self.statistics.new_thread(),
            tally: self.tallies.new_thread(),
        }
    }

    /// The sum over all threads. A request that is in `requests` is in all other numbers too.
    pub fn merged(&self) -> Snapshot {
        // Read first what a thread counts last.
        let mut sum = self.counters.merged();
        sum.add_requests(&self.statistics.merged());
        (sum.bytes_in, sum.bytes_out) = self.tallies.bytes();
        sum
    }
}

impl ThreadCounts {
    /// Counts a finished request with this method in all but `requests`, which is for the caller to
    /// count once others can find all else of it.
    #[inline]
    pub fn count(&self, record: &Record, method: &[u8]) {
        self.statistics.count(record, method);
        self.tally.count(record);
        if record.disk_wait_us > 0 {
            self.counters.disk_jobs.add(1);
            self.counters.disk_wait_us.add(record.disk_wait_us);
        }
    }
}

impl Snapshot {
    /// Adds what follows from the statistics of the same requests.
    fn add_requests(&mut self, statistics: &Statistics) {
        for (status, count) in statistics.statuses_sent() {
            let class = match status / 100 {
                1 => &mut self.responses_1xx,
                2 => &mut self.responses_2xx,
                3 => &mut self.responses_3xx,
                4 => &mut self.responses_4xx,
                _ => &mut self.responses_5xx,
            };
            *class += count;
        }
        let caches = statistics.caches();
        let [hits, revalidations, misses] = [
            CacheOutcome::Hit,
            CacheOutcome::Revalidated,
            CacheOutcome::Miss,
        ]
        .map(|outcome| caches[outcome as usize]);
        self.cache_hits += hits + revalidations;
        self.cache_revalidations += revalidations;
        self.cache_misses += misses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(records: &[Record]) -> Snapshot {
        let counts = ServerCounts::default();
        let thread = counts.new_thread(counts.counters.new_thread());
        thread.counters.responses_1xx.add(1);
        for record in records {
            thread.count(record, b"GET");
        }
        counts.merged()
    }

    #[test]
    fn answers_are_told_by_class_beside_interim_ones() {
        let records = [0, 101, 200, 304, 404, 499, 500, 599, 600, u16::MAX].map(|status| Record {
            status,
            ..Record::empty()
        });
        let sum = counted(&records);
        let classes = [
            sum.responses_1xx,
            sum.responses_2xx,
            sum.responses_3xx,
            sum.responses_4xx,
            sum.responses_5xx,
        ];
        assert_eq!(classes, [2, 1, 1, 2, 2]);
    }

    #[test]
    fn bytes_and_what_the_cache_did_are_told_of_all_requests() {
        let of = |cache| Record {
            cache,
            bytes_in: 7,
            head_bytes_out: 100,
            body_bytes_out: 1000,
            disk_wait_us: 3,
            ..Record::empty()
        };
        let sum = counted(&[
            of(CacheOutcome::Hit),
            of(CacheOutcome::Revalidated),
            of(CacheOutcome::Miss),
            of(CacheOutcome::None),
        ]);
        assert_eq!((sum.bytes_in, sum.bytes_out), (28, 4400));
        assert_eq!((sum.disk_jobs, sum.disk_wait_us), (4, 12));
        let cache = (sum.cache_hits, sum.cache_revalidations, sum.cache_misses);
        assert_eq!(cache, (2, 1, 1));
    }
}
