//! Failed logins of each client address in a minute.

use std::collections::HashMap;
use std::net::IpAddr;

/// How long a failure counts.
const WINDOW_MS: u64 = 60_000;
/// Addresses remembered; at one more those are forgotten whose time is nearest to its end.
const ADDRESSES_MAX: usize = 4096;

/// Failures by address.
#[derive(Default)]
pub(super) struct Tries {
    by_address: HashMap<Option<IpAddr>, Failures>,
}

#[derive(Clone, Copy)]
struct Failures {
    count: usize,
    /// When they are forgotten.
    until_ms: u64,
}

impl Tries {
    /// Seconds until this address may try again; `None` when it may now.
    pub(super) fn wait_s(&self, address: Option<IpAddr>, now_ms: u64, most: usize) -> Option<u64> {
        let failures = self.by_address.get(&address)?;
        let left_ms = failures.until_ms.checked_sub(now_ms)?;
        (failures.count >= most && left_ms > 0).then(|| left_ms.div_ceil(1000))
    }

    /// One more failure. A try counts before it is known to fail, or many at once would all pass.
    /// True when another address had to be forgotten for it.
    pub(super) fn count(&mut self, address: Option<IpAddr>, now_ms: u64) -> bool {
        self.by_address.retain(|_, one| now_ms < one.until_ms);
        let is_full =
            self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&address);
        if is_full {
            let first = self.by_address.iter().min_by_key(|(_, one)| one.until_ms);
            if let Some(first) = first.map(|(address, _)| *address) {
                self.by_address.remove(&first);
            }
        }
        let failures = self.by_address.entry(address).or_insert(Failures {
            count: 0,
            until_ms: now_ms.saturating_add(WINDOW_MS),
        });
        failures.count += 1;
        is_full
    }

    /// The last try was right: it does not count.
    pub(super) fn take_back(&mut self, address: Option<IpAddr>) {
        if let Some(failures) = self.by_address.get_mut(&address) {
            failures.count = failures.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(number.into()))
    }

    #[test]
    fn an_address_waits_for_the_end_of_its_minute() {
        let mut tries = Tries::default();
        for now_ms in [1000, 2000] {
            assert_eq!(tries.wait_s(address(1), now_ms, 2), None);
            tries.count(address(1), now_ms);
        }
        assert_eq!(tries.wait_s(address(1), 2000, 2), Some(59));
        assert_eq!(tries.wait_s(address(2), 2000, 2), None);
        assert_eq!(tries.wait_s(address(1), 61_000, 2), None);
        tries.count(address(1), 61_000);
        assert_eq!(tries.wait_s(address(1), 61_000, 2), None);
    }

    #[test]
    fn a_right_try_does_not_count_and_addresses_are_bounded() {
        let mut tries = Tries::default();
        tries.count(address(1), 0);
        tries.take_back(address(1));
        assert_eq!(tries.wait_s(address(1), 0, 1), None);
        let forgotten = (0..5000).filter(|number| tries.count(address(*number), 1));
        // The first was there already.
        assert_eq!(forgotten.count(), 5000 - ADDRESSES_MAX);
        assert_eq!(tries.by_address.len(), ADDRESSES_MAX);
    }
}
