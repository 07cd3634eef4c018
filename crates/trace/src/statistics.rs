//! Statistics: finished requests told apart by what they were and what came of them.
//!
//! One table of arrays, each thread has a block of its own, and a request counts once in every
//! array: three plain additions. What is told by itself but has few words, such as the protocol,
//! shares one array with a cell for each combination; it is taken apart when somebody asks.

use crate::block::{Blocks, CounterBlock, CounterCell};
use crate::record::{CacheOutcome, Fault, HandlerKind, Outcome, Protocol, Record};

/// Status codes that are counted one by one, from 100.
const STATUS_COUNT: usize = 500;
/// The first of them.
const STATUS_FIRST: u16 = 100;
const PROTOCOLS: usize = Protocol::ALL.len();
const HANDLERS: usize = HandlerKind::ALL.len();
const CACHES: usize = CacheOutcome::ALL.len();
const OUTCOMES: usize = Outcome::ALL.len();
const FAULTS: usize = Fault::ALL.len();
/// Combinations of them.
const KINDS: usize = PROTOCOLS * HANDLERS * CACHES * OUTCOMES * FAULTS;
/// Methods that are told apart, in the order of their cells; the last is any other.
pub const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "other",
];

macro_rules! statistics {
    ($($name:ident[$count:expr]: $help:literal;)+) => {
        /// The statistics of one thread. Written by that thread, read by any.
        #[derive(Debug)]
        #[repr(align(128))]
        pub struct ThreadStatistics {
            $($name: [CounterCell; $count],)+
        }

        impl Default for ThreadStatistics {
            fn default() -> ThreadStatistics {
                ThreadStatistics { $($name: [const { CounterCell::new() }; $count],)+ }
            }
        }

        /// The statistics of all threads at one moment.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Statistics {
            $(#[doc = $help] pub $name: [u64; $count],)+
        }

        impl Default for Statistics {
            fn default() -> Statistics {
                Statistics { $($name: [0; $count],)+ }
            }
        }

        impl CounterBlock for ThreadStatistics {
            // On the heap: these are some 25 KiB.
            type Sum = Box<Statistics>;

            fn add_to(&self, sum: &mut Box<Statistics>) {
                $(for (sum, cell) in sum.$name.iter_mut().zip(&self.$name) {
                    *sum = sum.wrapping_add(cell.value());
                })+
            }
        }

        impl Statistics {
            /// What was counted since `before`.
            pub fn since(&self, before: &Statistics) -> Box<Statistics> {
                let mut since = Box::new(self.clone());
                $(for (now, before) in since.$name.iter_mut().zip(&before.$name) {
                    *now = now.wrapping_sub(*before);
                })+
                since
            }
        }
    };
}

statistics! {
    methods[METHODS.len()]: "By method, as in [`METHODS`].";
    statuses[STATUS_COUNT]: "By status code, from 100.";
    kinds[KINDS]: "By protocol, handler, cache, end and fault, the last one fastest.";
}

/// The statistics of all threads.
pub type AllStatistics = Blocks<ThreadStatistics>;

impl ThreadStatistics {
    /// Counts a finished request with this method.
    #[inline]
    pub fn count(&self, record: &Record, method: &[u8]) {
        let add = |cells: &[CounterCell], index: usize| {
            if let Some(cell) = cells.get(index) {
                cell.add(1);
            }
        };
        add(&self.methods, method_index(method));
        let status = usize::from(record.status.wrapping_sub(STATUS_FIRST));
        add(&self.statuses, status);
        add(&self.kinds, kind(record));
    }
}

/// The cell of a request's kind.
#[inline]
fn kind(record: &Record) -> usize {
    let kind = record.protocol as usize * HANDLERS + record.handler as usize;
    let kind = kind * CACHES + record.cache as usize;
    let kind = kind * OUTCOMES + record.outcome as usize;
    kind * FAULTS + record.fault as usize
}

impl Statistics {
    /// Requests by HTTP version, as in [`Protocol::ALL`].
    pub fn protocols(&self) -> [u64; PROTOCOLS] {
        self.by(HANDLERS * CACHES * OUTCOMES * FAULTS)
    }

    /// Requests by who answered.
    pub fn handlers(&self) -> [u64; HANDLERS] {
        self.by(CACHES * OUTCOMES * FAULTS)
    }

    /// Requests by what the cache did.
    pub fn caches(&self) -> [u64; CACHES] {
        self.by(OUTCOMES * FAULTS)
    }

    /// Requests by how the exchange ended.
    pub fn outcomes(&self) -> [u64; OUTCOMES] {
        self.by(FAULTS)
    }

    /// Requests by whose fault a failure was.
    pub fn faults(&self) -> [u64; FAULTS] {
        self.by(1)
    }

    /// The sum over all else of what moves every `stride` cells.
    fn by<const COUNT: usize>(&self, stride: usize) -> [u64; COUNT] {
        let mut sums = [0; COUNT];
        for (cell, count) in self.kinds.iter().enumerate() {
            sums[cell / stride % COUNT] += count;
        }
        sums
    }

    /// Requests answered with a status, 0 for one that is not counted alone.
    pub fn status(&self, status: u16) -> u64 {
        let index = status.checked_sub(STATUS_FIRST).map(usize::from);
        let count = index.and_then(|index| self.statuses.get(index));
        count.copied().unwrap_or_default()
    }

    /// Every status code that was sent, with how often.
    pub fn statuses_sent(&self) -> impl Iterator<Item = (u16, u64)> {
        let all = (STATUS_FIRST..).zip(self.statuses);
        all.filter(|(_, count)| *count > 0)
    }
}

#[inline]
fn method_index(method: &[u8]) -> usize {
    match method {
        b"GET" => 0,
        b"HEAD" => 1,
        b"POST" => 2,
        b"PUT" => 3,
        b"DELETE" => 4,
        b"PATCH" => 5,
        b"OPTIONS" => 6,
        b"CONNECT" => 7,
        b"TRACE" => 8,
        _ => METHODS.len() - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: u16, handler: HandlerKind) -> Record {
        Record {
            status,
            handler,
            ..Record::empty()
        }
    }

    #[test]
    fn request_counts_once_in_every_array() {
        let all = AllStatistics::new();
        let thread = all.new_thread();
        thread.count(&record(200, HandlerKind::Cgi), b"POST");
        let sum = all.merged();
        for all in [
            sum.methods.iter().sum::<u64>(),
            sum.protocols().iter().sum(),
            sum.handlers().iter().sum(),
            sum.statuses.iter().sum(),
            sum.caches().iter().sum(),
            sum.outcomes().iter().sum(),
            sum.faults().iter().sum(),
        ] {
            assert_eq!(all, 1);
        }
        assert_eq!((sum.methods[2], sum.status(200)), (1, 1));
        assert_eq!(sum.handlers()[HandlerKind::Cgi as usize], 1);
        assert_eq!(sum.protocols()[Protocol::Http11 as usize], 1);
    }

    #[test]
    fn every_kind_is_taken_apart_as_it_was_put_together() {
        let all = AllStatistics::new();
        let thread = all.new_thread();
        let mut request = record(200, HandlerKind::Resident);
        request.protocol = Protocol::Http3;
        request.cache = CacheOutcome::Miss;
        request.outcome = Outcome::Broken;
        request.fault = Fault::Upstream;
        thread.count(&request, b"GET");
        let sum = all.merged();
        assert_eq!(sum.protocols()[Protocol::Http3 as usize], 1);
        assert_eq!(sum.handlers()[HandlerKind::Resident as usize], 1);
        assert_eq!(sum.caches()[CacheOutcome::Miss as usize], 1);
        assert_eq!(sum.outcomes()[Outcome::Broken as usize], 1);
        assert_eq!(sum.faults()[Fault::Upstream as usize], 1);
    }

    #[test]
    fn odd_statuses_and_methods_count_elsewhere_or_not_at_all() {
        let all = AllStatistics::new();
        let thread = all.new_thread();
        for status in [0, 99, 600, u16::MAX] {
            thread.count(&record(status, HandlerKind::None), b"BREW");
        }
        let sum = all.merged();
        assert_eq!(sum.methods[METHODS.len() - 1], 4);
        assert_eq!(sum.statuses_sent().count(), 0);
        assert_eq!((sum.status(0), sum.status(u16::MAX)), (0, 0));
    }

    #[test]
    fn every_method_has_its_word() {
        for (index, method) in METHODS.iter().enumerate() {
            assert_eq!(method_index(method.as_bytes()), index);
        }
        assert_eq!(method_index(b"get"), METHODS.len() - 1);
    }

    #[test]
    fn what_was_counted_since_is_the_difference() {
        let all = AllStatistics::new();
        let thread = all.new_thread();
        thread.count(&record(200, HandlerKind::Files), b"GET");
        let before = all.merged();
        thread.count(&record(304, HandlerKind::Files), b"GET");
        let since = all.merged().since(&before);
        assert_eq!(since.statuses_sent().collect::<Vec<_>>(), [(304, 1)]);
    }
}
