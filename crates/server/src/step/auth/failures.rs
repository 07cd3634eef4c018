//! Who guesses passwords waits longer and longer: by account and by network, and nobody is locked
//! out.
//!
//! Failures are counted in places that names and networks are spread over by a keyed hash, so that
//! no number of them takes more memory. Who shares a place with somebody else's guesses waits along
//! with them, for a password that is not remembered.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use hob_trace::Mutex;

/// Failures of an account, and of a network, that cost nothing yet.
const FREE: [u32; 2] = [5, 20];
/// Longest waits of one more guess: at an account, where others' guesses must not keep its owner
/// out, and from a network.
const LONGEST: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];
/// The first wait; each failure doubles it.
const FIRST: Duration = Duration::from_millis(250);
/// After so long without another, half of the failures are forgotten.
const HALF_LIFE_MS: u64 = 60_000;
/// Places of each kind.
const PLACES: usize = 16_384;
/// Passwords of one network that are waited for at a time.
const WAITING_OF_NETWORK_MAX: u32 = 8;
/// Of all together.
const WAITING_MAX: u32 = 512;

/// Failed attempts to sign in.
#[derive(Debug)]
pub struct SignInFailures {
    hasher: RandomState,
    /// By account, and by network.
    counted: [Mutex<Vec<FailureCount>>; 2],
    waiting: Mutex<WaitingSignIns>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FailureCount {
    count: u32,
    last_ms: u64,
}

#[derive(Debug, Default)]
struct WaitingSignIns {
    all: u32,
    by_network: HashMap<u64, u32>,
}

/// A password that is waited for; it has its place until it is dropped.
#[derive(Debug)]
pub struct SignInAttempt {
    failures: Arc<SignInFailures>,
    network: u64,
    places: [usize; 2],
}

impl Default for SignInFailures {
    fn default() -> SignInFailures {
        let places = || Mutex::new(vec![FailureCount::default(); PLACES]);
        SignInFailures {
            hasher: RandomState::new(),
            counted: [places(), places()],
            waiting: Mutex::default(),
        }
    }
}

impl SignInFailures {
    /// Begins to check a password for an account from a network; `None` is where too many are
    /// waited for already.
    pub fn begin(
        self: &Arc<SignInFailures>,
        account: (&str, &str),
        peer: Option<IpAddr>,
    ) -> Option<SignInAttempt> {
        let network = self.hasher.hash_one(peer.map(network));
        let mut waiting = self.waiting.lock();
        let of_network = waiting.by_network.get(&network).copied().unwrap_or(0);
        if waiting.all >= WAITING_MAX || of_network >= WAITING_OF_NETWORK_MAX {
            return None;
        }
        waiting.all += 1;
        waiting.by_network.insert(network, of_network + 1);
        let account = self.hasher.hash_one(account) as usize % PLACES;
        Some(SignInAttempt {
            failures: Arc::clone(self),
            network,
            places: [account, network as usize % PLACES],
        })
    }

    /// How many are waited for.
    pub fn waiting(&self) -> u32 {
        self.waiting.lock().all
    }
}

impl SignInAttempt {
    /// How long it waits before its password is looked at.
    pub fn wait(&self, now_ms: u64) -> Duration {
        let waits = [0, 1].map(|kind| {
            let counted = self.failures.counted[kind].lock();
            let count = counted[self.places[kind]].now(now_ms);
            match count.checked_sub(FREE[kind]) {
                None | Some(0) => Duration::ZERO,
                Some(more) => (FIRST * (1 << (more - 1).min(10))).min(LONGEST[kind]),
            }
        });
        waits[0].max(waits[1])
    }

    /// The password was wrong.
    pub fn failed(&self, now_ms: u64) {
        for kind in [0, 1] {
            let mut counted = self.failures.counted[kind].lock();
            let place = &mut counted[self.places[kind]];
            *place = FailureCount {
                count: place.now(now_ms).saturating_add(1),
                last_ms: now_ms,
            };
        }
    }

    /// The password was right: guesses at the account are forgotten, those of the network are not,
    /// where somebody may have an account and guess at others.
    pub fn succeeded(&self) {
        self.failures.counted[0].lock()[self.places[0]] = FailureCount::default();
    }
}

impl Drop for SignInAttempt {
    fn drop(&mut self) {
        let mut waiting = self.failures.waiting.lock();
        waiting.all -= 1;
        if let Some(of_network) = waiting.by_network.get_mut(&self.network) {
            *of_network -= 1;
            if *of_network == 0 {
                waiting.by_network.remove(&self.network);
            }
        }
    }
}

impl FailureCount {
    fn now(self, now_ms: u64) -> u32 {
        let halves = now_ms.saturating_sub(self.last_ms) / HALF_LIFE_MS;
        self.count
            .checked_shr(u32::try_from(halves).unwrap_or(u32::MAX))
            .unwrap_or(0)
    }
}

/// What addresses of one hand have in common: an address of IPv4, 64 bits of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(failures: &Arc<SignInFailures>, name: &str, peer: &str) -> SignInAttempt {
        let peer = Some(peer.parse().unwrap());
        failures.begin(("staff", name), peer).unwrap()
    }

    #[test]
    fn guesses_at_an_account_wait_longer_and_longer_and_its_owner_two_seconds_at_most() {
        let failures = Arc::new(SignInFailures::default());
        let mut waits = Vec::new();
        for guess in 0..12u8 {
            let attempt = begin(&failures, "ann", &format!("192.0.2.{guess}"));
            waits.push(attempt.wait(1000).as_millis());
            attempt.failed(1000);
        }
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 250, 500, 1000, 2000, 2000, 2000]);
        let owner = begin(&failures, "ann", "198.51.100.1");
        assert_eq!(owner.wait(1000), Duration::from_secs(2));
        // Half is forgotten in a minute, all of it in four.
        assert_eq!(owner.wait(61_000), Duration::from_millis(250));
        assert_eq!(owner.wait(121_000), Duration::ZERO);
        owner.succeeded();
        assert_eq!(owner.wait(1000), Duration::ZERO);
    }

    #[test]
    fn guesses_of_a_network_wait_whatever_name_they_are_for() {
        let failures = Arc::new(SignInFailures::default());
        for guess in 0..40 {
            let peer = format!("2001:db8::{guess}");
            let attempt = begin(&failures, &format!("user{guess}"), &peer);
            attempt.failed(0);
            // One of these has an account.
            attempt.succeeded();
        }
        let next = begin(&failures, "someone", "2001:db8::ffff");
        assert_eq!(next.wait(0), LONGEST[1]);
        let other = begin(&failures, "someone", "2001:db8:1::1");
        assert_eq!(other.wait(0), Duration::ZERO);
    }

    #[test]
    fn so_many_of_a_network_and_of_all_are_waited_for_and_no_more() {
        let failures = Arc::new(SignInFailures::default());
        let of = |network: u32| {
            let peer = IpAddr::from(network.to_be_bytes());
            failures.begin(("staff", "ann"), Some(peer))
        };
        let one: Vec<_> = (0..WAITING_OF_NETWORK_MAX)
            .map(|_| of(1).unwrap())
            .collect();
        assert!(of(1).is_none());
        drop(one);
        let all: Vec<_> = (0..WAITING_MAX)
            .map(|network| of(network).unwrap())
            .collect();
        assert_eq!(failures.waiting(), WAITING_MAX);
        assert!(of(WAITING_MAX + 1).is_none());
        drop(all);
        assert_eq!(failures.waiting(), 0);
        assert!(failures.waiting.lock().by_network.is_empty());
    }
}
