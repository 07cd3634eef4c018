//! Tallies: finished requests told apart by what they were and what came of them.
//!
//! One table of arrays for statistics and metrics alike. Each array has one cell for each word of
//! its axis, each thread a block of its own, so that counting a request is a handful of plain
//! additions. A request counts once in every array.

use std::sync::{Mutex, PoisonError};

use crate::block::{Block, Blocks, Cell};
use crate::record::{CacheOutcome, Fault, HandlerKind, Outcome, Protocol, Record};

/// Sites that are told apart; more share number 0 with requests that found no site.
pub const SITE_COUNT_MAX: usize = 63;
/// Status codes that are counted one by one, from 100.
const STATUS_COUNT: usize = 500;
/// The first of them.
const STATUS_FIRST: u16 = 100;
/// Numbers of sites, that of all others included.
const SITE_NUMBERS: usize = SITE_COUNT_MAX + 1;
/// Classes of status: none was sent, then 1xx to 5xx.
pub const CLASS_COUNT: usize = 6;
/// Handlers there are.
const HANDLER_COUNT: usize = HandlerKind::ALL.len();

/// Methods that are told apart, in the order of their cells; the last is any other.
pub const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "other",
];

/// What is counted for each site and handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Requests by class of status: none was sent, then 1xx to 5xx.
    pub requests: [u64; CLASS_COUNT],
    /// Bytes of requests, heads and bodies.
    pub bytes_in: u64,
    /// Bytes of answers, heads and bodies.
    pub bytes_out: u64,
}

macro_rules! tallies {
    ($($name:ident[$count:expr]: $help:literal;)+) => {
        /// The tallies of one thread. Written by that thread, read by any.
        #[derive(Debug)]
        #[repr(align(128))]
        pub struct ThreadTally {
            $($name: [Cell; $count],)+
        }

        impl Default for ThreadTally {
            fn default() -> ThreadTally {
                ThreadTally { $($name: [const { Cell::new() }; $count],)+ }
            }
        }

        /// The tallies of all threads at one moment.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Tally {
            $(#[doc = $help] pub $name: [u64; $count],)+
        }

        impl Default for Tally {
            fn default() -> Tally {
                Tally { $($name: [0; $count],)+ }
            }
        }

        impl Block for ThreadTally {
            // On the heap: these are some 30 KiB.
            type Sum = Box<Tally>;

            fn add_to(&self, sum: &mut Box<Tally>) {
                $(for (sum, cell) in sum.$name.iter_mut().zip(&self.$name) {
                    *sum = sum.wrapping_add(cell.value());
                })+
            }
        }

        impl Tally {
            /// What was counted since `before`.
            pub fn since(&self, before: &Tally) -> Box<Tally> {
                let mut since = Box::new(self.clone());
                $(for (now, before) in since.$name.iter_mut().zip(&before.$name) {
                    *now = now.wrapping_sub(*before);
                })+
                since
            }
        }
    };
}

tallies! {
    methods[METHODS.len()]: "By method, as in [`METHODS`].";
    protocols[Protocol::ALL.len()]: "By HTTP version.";
    handlers[HANDLER_COUNT]: "By who answered.";
    statuses[STATUS_COUNT]: "By status code, from 100.";
    caches[CacheOutcome::ALL.len()]: "By what the cache did.";
    outcomes[Outcome::ALL.len()]: "By how the exchange ended.";
    faults[Fault::ALL.len()]: "By whose fault a failure was.";
    site_requests[SITE_NUMBERS * HANDLER_COUNT * CLASS_COUNT]: "By site, handler and class.";
    site_bytes_in[SITE_NUMBERS * HANDLER_COUNT]: "Bytes of requests, by site and handler.";
    site_bytes_out[SITE_NUMBERS * HANDLER_COUNT]: "Bytes of answers, by site and handler.";
}

/// The tallies of all threads.
pub type Tallies = Blocks<ThreadTally>;

impl ThreadTally {
    /// Counts a finished request with this method.
    #[inline]
    pub fn count(&self, record: &Record, method: &[u8]) {
        let add = |cells: &[Cell], index: usize| {
            if let Some(cell) = cells.get(index) {
                cell.add(1);
            }
        };
        add(&self.methods, method_index(method));
        add(&self.protocols, record.protocol as usize);
        add(&self.handlers, record.handler as usize);
        let status = usize::from(record.status.wrapping_sub(STATUS_FIRST));
        add(&self.statuses, status);
        add(&self.caches, record.cache as usize);
        add(&self.outcomes, record.outcome as usize);
        add(&self.faults, record.fault as usize);
        let share = share_index(usize::from(record.tally_site), record.handler);
        add(
            &self.site_requests,
            share * CLASS_COUNT + class(record.status),
        );
        if let Some(cell) = self.site_bytes_in.get(share) {
            cell.add(record.bytes_in);
        }
        if let Some(cell) = self.site_bytes_out.get(share) {
            cell.add(record.head_bytes_out + record.body_bytes_out);
        }
    }
}

impl Tally {
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

    /// What a site's handler answered; the site by its number among the tallies.
    pub fn share(&self, site: u16, handler: HandlerKind) -> Share {
        let index = share_index(usize::from(site), handler);
        let first = index * CLASS_COUNT;
        let mut share = Share::default();
        for (class, cell) in share.requests.iter_mut().zip(first..) {
            *class = self.site_requests.get(cell).copied().unwrap_or_default();
        }
        share.bytes_in = self.site_bytes_in.get(index).copied().unwrap_or_default();
        share.bytes_out = self.site_bytes_out.get(index).copied().unwrap_or_default();
        share
    }
}

fn share_index(site: usize, handler: HandlerKind) -> usize {
    site * HANDLER_COUNT + handler as usize
}

/// The class of a status: 1 to 5, 0 for none.
fn class(status: u16) -> usize {
    match status / 100 {
        class @ 1..=5 => usize::from(class),
        _ => 0,
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

/// The numbers of sites among the tallies, by name: they outlive reloads, unlike indexes.
#[derive(Debug, Default)]
pub struct SiteNumbers {
    names: Mutex<Vec<String>>,
}

impl SiteNumbers {
    /// The number of a site, from 1; 0 when [`SITE_COUNT_MAX`] others were there before.
    pub fn number(&self, name: &str) -> u16 {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.iter().position(|known| known == name);
        let index = known.or_else(|| {
            let is_room = names.len() < SITE_COUNT_MAX;
            is_room.then(|| names.push(name.to_owned()))?;
            Some(names.len() - 1)
        });
        index.map_or(0, |index| index as u16 + 1)
    }

    /// Every name with its number, that of all others last.
    pub fn all(&self) -> Vec<(u16, String)> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let named = (1..).zip(names.iter().cloned());
        named.chain([(0, "other".to_owned())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: u16, handler: HandlerKind, tally_site: u16) -> Record {
        Record {
            status,
            handler,
            tally_site,
            bytes_in: 10,
            head_bytes_out: 100,
            body_bytes_out: 1000,
            ..Record::empty()
        }
    }

    #[test]
    fn request_counts_once_in_every_array() {
        let tallies = Tallies::new();
        let thread = tallies.new_thread();
        thread.count(&record(200, HandlerKind::Cgi, 1), b"POST");
        let sum = tallies.merged();
        for all in [
            sum.methods.iter().sum::<u64>(),
            sum.protocols.iter().sum(),
            sum.handlers.iter().sum(),
            sum.statuses.iter().sum(),
            sum.caches.iter().sum(),
            sum.outcomes.iter().sum(),
            sum.faults.iter().sum(),
            sum.site_requests.iter().sum(),
        ] {
            assert_eq!(all, 1);
        }
        assert_eq!((sum.methods[2], sum.status(200)), (1, 1));
        assert_eq!(sum.handlers[HandlerKind::Cgi as usize], 1);
        assert_eq!(sum.protocols[Protocol::Http11 as usize], 1);
    }

    #[test]
    fn sites_and_handlers_have_their_own_share() {
        let tallies = Tallies::new();
        let thread = tallies.new_thread();
        thread.count(&record(200, HandlerKind::Files, 1), b"GET");
        thread.count(&record(404, HandlerKind::Files, 1), b"GET");
        thread.count(&record(200, HandlerKind::Files, 63), b"GET");
        thread.count(&record(0, HandlerKind::Resident, 63), b"GET");
        let sum = tallies.merged();
        let share = sum.share(1, HandlerKind::Files);
        assert_eq!(share.requests, [0, 0, 1, 0, 1, 0]);
        assert_eq!((share.bytes_in, share.bytes_out), (20, 2200));
        let share = sum.share(63, HandlerKind::Resident);
        assert_eq!(share.requests, [1, 0, 0, 0, 0, 0]);
        assert_eq!(sum.share(0, HandlerKind::Files), Share::default());
        assert_eq!(sum.share(64, HandlerKind::Files), Share::default());
    }

    #[test]
    fn odd_statuses_methods_and_sites_count_elsewhere_or_not_at_all() {
        let tallies = Tallies::new();
        let thread = tallies.new_thread();
        for status in [0, 99, 600, u16::MAX] {
            thread.count(&record(status, HandlerKind::None, u16::MAX), b"BREW");
        }
        let sum = tallies.merged();
        assert_eq!(sum.methods[METHODS.len() - 1], 4);
        assert_eq!(sum.statuses_sent().count(), 0);
        assert_eq!(sum.site_requests.iter().sum::<u64>(), 0);
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
        let tallies = Tallies::new();
        let thread = tallies.new_thread();
        thread.count(&record(200, HandlerKind::Files, 1), b"GET");
        let before = tallies.merged();
        thread.count(&record(304, HandlerKind::Files, 1), b"GET");
        let since = tallies.merged().since(&before);
        assert_eq!(since.statuses_sent().collect::<Vec<_>>(), [(304, 1)]);
    }

    #[test]
    fn numbers_of_sites_stay_and_run_out() {
        let numbers = SiteNumbers::default();
        assert_eq!((numbers.number("a"), numbers.number("b")), (1, 2));
        assert_eq!(numbers.number("a"), 1);
        for more in 2..SITE_COUNT_MAX {
            assert_ne!(numbers.number(&format!("site{more}")), 0);
        }
        assert_eq!(numbers.number("one too many"), 0);
        let all = numbers.all();
        assert_eq!(all.len(), SITE_COUNT_MAX + 1);
        assert_eq!(all.last(), Some(&(0, "other".to_owned())));
    }
}
