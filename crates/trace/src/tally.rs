//! Requests counted by site, handler and class of status: a table per thread, summed when asked.
//!
//! A request is counted in one row, of its site and its handler: three plain stores in one cache
//! line. A row has one writer, the thread that owns the table; its memory is there once the site
//! has had a request on that thread. Sites have numbers that stay theirs over reloads, so counts
//! only grow; a config may name more sites than have numbers, the rest share one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::metric::CounterCell;
use crate::mutex::Mutex;
use crate::record::{HandlerKind, Record};

/// Most sites with a number of their own, whatever the config says.
pub const SITES_MAX: usize = 1000;
/// The number of requests that no site was chosen for.
pub const NO_SITE: u16 = 0;
/// The number of all sites that have none of their own.
pub const OTHER_SITES: u16 = 1;
/// The first number of a site.
const FIRST_SITE: usize = 2;
const HANDLERS: usize = HandlerKind::ALL.len();
/// What they are called.
const OTHER: &str = "other";
/// How requests are told apart by status; those without an answer are first.
pub const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// What one site's requests to one kind of handler came to.
#[derive(Debug, Default)]
#[repr(align(64))]
struct TallyRow {
    by_class: [CounterCell; CLASSES.len()],
    bytes_in: CounterCell,
    bytes_out: CounterCell,
}

type Rows = Box<[TallyRow; HANDLERS]>;

/// The table of one thread. Written by that thread, read by any.
#[derive(Debug)]
pub struct ThreadTally {
    sites: Box<[OnceLock<Rows>]>,
}

/// One row of the sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallySum {
    /// The site's name; empty where none was chosen, `other` where it has no number of its own.
    pub site: String,
    /// Who answered.
    pub handler: HandlerKind,
    /// Requests by the classes of [`CLASSES`].
    pub by_class: [u64; CLASSES.len()],
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of answers.
    pub bytes_out: u64,
}

/// The tables of all threads, and the numbers of the sites.
#[derive(Debug, Default)]
pub struct Tallies {
    threads: Mutex<Vec<Arc<ThreadTally>>>,
    names: Mutex<Vec<String>>,
    sites_max: AtomicUsize,
}

impl ThreadTally {
    fn new() -> ThreadTally {
        ThreadTally {
            sites: (0..FIRST_SITE + SITES_MAX)
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// Counts a finished request. Only the thread that owns the table may.
    #[inline]
    pub fn count(&self, record: &Record) {
        let place = self.sites.get(usize::from(record.tally));
        let Some(place) = place else { return };
        let row = &place.get_or_init(Rows::default)[record.handler as usize];
        let class = usize::from(record.status / 100);
        row.by_class[if class < CLASSES.len() { class } else { 0 }].add(1);
        row.bytes_in.add(record.bytes_in);
        row.bytes_out
            .add(record.head_bytes_out + record.body_bytes_out);
    }
}

impl Tallies {
    /// No threads yet; sites get numbers of their own once [`Tallies::set_sites_max`] allows some.
    pub fn new() -> Tallies {
        Tallies::default()
    }

    /// A table for one more thread.
    pub fn new_thread(&self) -> Arc<ThreadTally> {
        let table = Arc::new(ThreadTally::new());
        self.threads.lock().push(Arc::clone(&table));
        table
    }

    /// So many sites have a number of their own from now on, at most [`SITES_MAX`]; those that have
    /// one keep it.
    pub fn set_sites_max(&self, count: usize) {
        self.sites_max
            .store(count.min(SITES_MAX), Ordering::Relaxed);
    }

    /// The number of the site of this name.
    pub fn number(&self, name: &str) -> u16 {
        let mut names = self.names.lock();
        let found = names.iter().position(|known| known == name);
        let index = found.unwrap_or_else(|| {
            if names.len() < self.sites_max.load(Ordering::Relaxed) {
                names.push(name.to_owned());
                names.len() - 1
            } else {
                usize::MAX
            }
        });
        let number = index.checked_add(FIRST_SITE);
        number
            .and_then(|number| u16::try_from(number).ok())
            .unwrap_or(OTHER_SITES)
    }

    /// What the site of this name is called among the numbers; one that has none of its own gets
    /// none by this.
    pub fn label(&self, name: &str) -> String {
        let is_known = name.is_empty() || self.names.lock().iter().any(|known| known == name);
        if is_known { name } else { OTHER }.to_owned()
    }

    /// The name of a number.
    pub fn name(&self, number: u16) -> String {
        match number {
            NO_SITE => String::new(),
            OTHER_SITES => OTHER.to_owned(),
            number => {
                let names = self.names.lock();
                let name = names.get(usize::from(number) - FIRST_SITE);
                name.cloned().unwrap_or_else(|| OTHER.to_owned())
            }
        }
    }

    /// Bytes of all requests, and of all answers.
    pub fn bytes(&self) -> (u64, u64) {
        let (mut bytes_in, mut bytes_out) = (0, 0);
        for table in &*self.threads.lock() {
            for row in table
                .sites
                .iter()
                .filter_map(OnceLock::get)
                .flat_map(|rows| &**rows)
            {
                bytes_in += row.bytes_in.value();
                bytes_out += row.bytes_out.value();
            }
        }
        (bytes_in, bytes_out)
    }

    /// The sum over all threads: rows with a request in them, by site and handler.
    pub fn merged(&self) -> Vec<TallySum> {
        let threads = self.threads.lock().clone();
        let mut sums = Vec::new();
        // The lock is taken anew for each name below.
        let count = FIRST_SITE + self.names.lock().len();
        for number in 0..count {
            for &handler in HandlerKind::ALL {
                let mut sum = TallySum {
                    site: String::new(),
                    handler,
                    by_class: [0; CLASSES.len()],
                    bytes_in: 0,
                    bytes_out: 0,
                };
                let rows = threads.iter().filter_map(|table| table.sites[number].get());
                rows.for_each(|rows| sum.add(&rows[handler as usize]));
                if sum.by_class != [0; CLASSES.len()] {
                    // `number` is below FIRST_SITE + SITES_MAX.
                    sum.site = self.name(number as u16);
                    sums.push(sum);
                }
            }
        }
        sums
    }
}

impl TallySum {
    fn add(&mut self, row: &TallyRow) {
        for (sum, cell) in self.by_class.iter_mut().zip(&row.by_class) {
            *sum += cell.value();
        }
        self.bytes_in += row.bytes_in.value();
        self.bytes_out += row.bytes_out.value();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tally: u16, handler: HandlerKind, status: u16) -> Record {
        Record {
            tally,
            handler,
            status,
            bytes_in: 10,
            head_bytes_out: 20,
            body_bytes_out: 3,
            ..Record::empty()
        }
    }

    #[test]
    fn rows_are_summed_over_threads_and_named() {
        let tallies = Tallies::new();
        tallies.set_sites_max(9);
        let site = tallies.number("a.example");
        let (first, second) = (tallies.new_thread(), tallies.new_thread());
        first.count(&record(site, HandlerKind::Files, 200));
        second.count(&record(site, HandlerKind::Files, 404));
        second.count(&record(NO_SITE, HandlerKind::None, 0));
        second.count(&record(NO_SITE, HandlerKind::None, 999));
        let sum = |site: &str, handler, by_class, count: u64| TallySum {
            site: site.to_owned(),
            handler,
            by_class,
            bytes_in: 10 * count,
            bytes_out: 23 * count,
        };
        let wanted = [
            sum("", HandlerKind::None, [2, 0, 0, 0, 0, 0], 2),
            sum("a.example", HandlerKind::Files, [0, 0, 1, 0, 1, 0], 2),
        ];
        assert_eq!(tallies.merged(), wanted);
        assert_eq!(tallies.bytes(), (40, 92));
    }

    #[test]
    fn sites_beyond_the_limit_share_a_number_and_others_keep_theirs() {
        let tallies = Tallies::new();
        assert_eq!(tallies.number("early"), OTHER_SITES);
        tallies.set_sites_max(2);
        let numbers = ["a", "b", "c", "a"].map(|name| tallies.number(name));
        assert_eq!(numbers, [2, 3, OTHER_SITES, 2]);
        tallies.set_sites_max(1);
        assert_eq!(tallies.number("b"), 3);
        assert_eq!(tallies.name(3), "b");
        assert_eq!(tallies.name(OTHER_SITES), "other");
    }
}
