//! What is known of addresses, and which wait to be looked up: both bounded. Time is an argument.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

/// What is known, and what waits.
#[derive(Debug, Default)]
pub(super) struct Cache {
    known: HashMap<IpAddr, CachedName>,
    /// In the order they came in; what is oldest goes first.
    order: VecDeque<IpAddr>,
    waiting: VecDeque<IpAddr>,
    /// Addresses that were forgotten to make room.
    pub(super) forgotten: u64,
    /// Bounds of both.
    pub(super) entry_count_max: usize,
    pub(super) waiting_count_max: usize,
}

#[derive(Debug)]
struct CachedName {
    /// None: it has no name, or none that counts.
    name: Option<Arc<str>>,
    until_ms: u64,
    state: NameLookupState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameLookupState {
    /// It waits, or is being looked up.
    Wanted,
    /// It was looked up.
    Settled,
}

/// What asking the cache gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameCacheLookup {
    /// Its name, or that it has none.
    Name(Option<Arc<str>>),
    /// It is looked up; this is what was known of it before.
    Wanted(Option<Arc<str>>),
    /// As many wait as may.
    Full,
}

impl Cache {
    /// What is known of an address; where that is nothing, or too old, it waits from now on.
    pub(super) fn ask(&mut self, address: IpAddr, now_ms: u64) -> NameCacheLookup {
        let is_room = self.waiting.len() < self.waiting_count_max;
        match self.known.get_mut(&address) {
            Some(known) if known.state == NameLookupState::Wanted => {
                NameCacheLookup::Wanted(known.name.clone())
            }
            Some(known) if now_ms < known.until_ms => NameCacheLookup::Name(known.name.clone()),
            Some(_) if !is_room => NameCacheLookup::Full,
            Some(known) => {
                known.state = NameLookupState::Wanted;
                let before = known.name.clone();
                self.waiting.push_back(address);
                NameCacheLookup::Wanted(before)
            }
            None if !is_room => NameCacheLookup::Full,
            None => {
                self.make_room();
                let known = CachedName {
                    name: None,
                    until_ms: 0,
                    state: NameLookupState::Wanted,
                };
                self.known.insert(address, known);
                self.order.push_back(address);
                self.waiting.push_back(address);
                NameCacheLookup::Wanted(None)
            }
        }
    }

    /// The next address to be looked up.
    pub(super) fn next(&mut self) -> Option<IpAddr> {
        self.waiting.pop_front()
    }

    /// What came of looking an address up, and until when it holds.
    pub(super) fn settle(&mut self, address: IpAddr, name: Option<Arc<str>>, until_ms: u64) {
        // What was thrown out meanwhile stays so.
        if let Some(known) = self.known.get_mut(&address) {
            *known = CachedName {
                name,
                until_ms,
                state: NameLookupState::Settled,
            };
        }
    }

    /// Is it known by now?
    pub(super) fn is_settled(&self, address: IpAddr) -> bool {
        let known = self.known.get(&address);
        known.is_none_or(|known| known.state == NameLookupState::Settled)
    }

    /// Forgets everything: who is asked has changed.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.order.clear();
        self.waiting.clear();
    }

    /// Addresses that are known or waited for, and those that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.known.len(), self.waiting.len())
    }

    fn make_room(&mut self) {
        while self.known.len() >= self.entry_count_max.max(1) {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.known.remove(&oldest);
            self.forgotten += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    fn cache(entry_count_max: usize, waiting_count_max: usize) -> Cache {
        Cache {
            entry_count_max,
            waiting_count_max,
            ..Cache::default()
        }
    }

    #[test]
    fn address_is_looked_up_once_and_again_when_it_is_too_old() {
        let mut cache = cache(10, 10);
        assert_eq!(cache.ask(address(1), 0), NameCacheLookup::Wanted(None));
        assert_eq!(cache.ask(address(1), 0), NameCacheLookup::Wanted(None));
        assert_eq!((cache.next(), cache.next()), (Some(address(1)), None));
        assert!(!cache.is_settled(address(1)));
        cache.settle(address(1), Some("a.example".into()), 100);
        assert!(cache.is_settled(address(1)));
        let name = Some(Arc::from("a.example"));
        assert_eq!(
            cache.ask(address(1), 99),
            NameCacheLookup::Name(name.clone())
        );
        assert_eq!(
            cache.ask(address(1), 100),
            NameCacheLookup::Wanted(name),
            "the old one meanwhile"
        );
        assert_eq!(cache.next(), Some(address(1)));
    }

    #[test]
    fn having_no_name_is_known_as_well() {
        let mut cache = cache(10, 10);
        cache.ask(address(1), 0);
        cache.settle(address(1), None, 100);
        assert_eq!(cache.ask(address(1), 50), NameCacheLookup::Name(None));
    }

    #[test]
    fn neither_entries_nor_what_waits_grows_without_bound() {
        let mut cache = cache(4, 2);
        assert_eq!(cache.ask(address(1), 0), NameCacheLookup::Wanted(None));
        assert_eq!(cache.ask(address(2), 0), NameCacheLookup::Wanted(None));
        assert_eq!(cache.ask(address(3), 0), NameCacheLookup::Full);
        for number in 3..100 {
            while cache.next().is_some() {}
            cache.ask(address(number), 0);
            assert!(cache.counts().0 <= 4 && cache.order.len() <= 4);
        }
        cache.settle(address(1), Some("gone.example".into()), 100);
        assert_eq!(
            cache.ask(address(1), 0),
            NameCacheLookup::Wanted(None),
            "it was thrown out"
        );
        assert_eq!(cache.forgotten, 96);
        cache.clear();
        assert_eq!(cache.counts(), (0, 0));
    }
}
