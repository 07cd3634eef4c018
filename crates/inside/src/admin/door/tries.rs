//! Failed logins of each client in a minute. A client is an address, or, as one machine has as many
//! of those as it likes, the network of an IPv6 address (/64).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// How long a failure counts.
const WINDOW_MS: u64 = 60_000;
/// Clients remembered; at one more those are forgotten whose time is nearest to its end.
const CLIENTS_MAX: usize = 4096;

/// Failures by client.
#[derive(Default)]
pub(super) struct Tries {
    by_client: HashMap<Option<IpAddr>, Failures>,
}

#[derive(Clone, Copy)]
struct Failures {
    count: usize,
    /// When they are forgotten.
    until_ms: u64,
}

impl Tries {
    /// Seconds until who has this address may try again; `None` when it may now.
    pub(super) fn wait_s(&self, address: Option<IpAddr>, now_ms: u64, most: usize) -> Option<u64> {
        let failures = self.by_client.get(&client(address))?;
        let left_ms = failures.until_ms.checked_sub(now_ms)?;
        (failures.count >= most && left_ms > 0).then(|| left_ms.div_ceil(1000))
    }

    /// One more failure. A try counts before it is known to fail, or many at once would all pass.
    /// True when another client had to be forgotten for it.
    pub(super) fn count(&mut self, address: Option<IpAddr>, now_ms: u64) -> bool {
        let client = client(address);
        self.by_client.retain(|_, one| now_ms < one.until_ms);
        let is_full = self.by_client.len() >= CLIENTS_MAX && !self.by_client.contains_key(&client);
        if is_full {
            let first = self.by_client.iter().min_by_key(|(_, one)| one.until_ms);
            if let Some(first) = first.map(|(client, _)| *client) {
                self.by_client.remove(&first);
            }
        }
        let failures = self.by_client.entry(client).or_insert(Failures {
            count: 0,
            until_ms: now_ms.saturating_add(WINDOW_MS),
        });
        failures.count += 1;
        is_full
    }

    /// The last try was right: it does not count.
    pub(super) fn take_back(&mut self, address: Option<IpAddr>) {
        if let Some(failures) = self.by_client.get_mut(&client(address)) {
            failures.count = failures.count.saturating_sub(1);
        }
    }
}

/// Whose address it is.
fn client(address: Option<IpAddr>) -> Option<IpAddr> {
    let network = |address: Ipv6Addr| {
        let [a, b, c, d, ..] = address.segments();
        Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)
    };
    // Over a socket for both families, an address of IPv4 comes as one of IPv6.
    match address?.to_canonical() {
        IpAddr::V6(address) => Some(network(address).into()),
        address => Some(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_client() {
        let mut tries = Tries::default();
        let of = |text: &str| Some(text.parse().unwrap());
        for number in 0..3 {
            tries.count(of(&format!("2001:db8:0:1:{number}::7")), 0);
        }
        assert!(tries.wait_s(of("2001:db8:0:1:ffff::"), 0, 3).is_some());
        assert_eq!(tries.wait_s(of("2001:db8:0:2::"), 0, 3), None);
        tries.take_back(of("2001:db8:0:1::1"));
        assert_eq!(tries.wait_s(of("2001:db8:0:1::"), 0, 3), None);
        // Those of IPv4 are told apart, however they are written.
        tries.count(of("::ffff:192.0.2.1"), 0);
        assert!(tries.wait_s(of("192.0.2.1"), 0, 1).is_some());
        assert_eq!(tries.wait_s(of("::ffff:192.0.2.2"), 0, 1), None);
    }

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
        assert_eq!(forgotten.count(), 5000 - CLIENTS_MAX);
        assert_eq!(tries.by_client.len(), CLIENTS_MAX);
    }
}
