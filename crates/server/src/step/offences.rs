//! How often each client was refused of late: what bans are made of.
//!
//! Of each client the times are kept that still count, so that a ban comes with the very refusal
//! that the rule names. Clients stand in places that their networks are spread over by a keyed
//! hash; where all of one's places are taken, the client of whom nothing had come for longest is
//! forgotten. A ban of somebody who only shares a place would be worse.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use hob_config::BanSettings;
use hob_trace::Mutex;

use super::banned_network::BanNetwork;

/// A rule that bans, and whom it has counted.
#[derive(Debug)]
pub struct BanRule {
    /// What the config says.
    pub settings: BanSettings,
    /// Who was refused how often: it outlives a reload.
    pub clients: Arc<Offenders>,
}

/// What becomes of a client that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffenceOutcome {
    /// It is to be banned; nothing is counted of it any more.
    pub is_reached: bool,
    /// Another client was forgotten for it.
    pub has_forgotten: bool,
}

/// Refusals of clients, shared by all threads.
#[derive(Debug)]
pub struct Offenders {
    /// So many have places.
    pub keys: usize,
    begin: Instant,
    hasher: RandomState,
    places_per_shard: usize,
    /// Empty until the first client comes to one.
    shards: Box<[Mutex<Vec<OffenderPlace>>]>,
}

/// A client, and when it was refused, in milliseconds.
#[derive(Debug, Default)]
struct OffenderPlace {
    network: Option<BanNetwork>,
    times_ms: VecDeque<u64>,
}

/// How many refusals in what time make a ban.
#[derive(Clone, Copy, Debug)]
struct BanThreshold {
    count: usize,
    window_ms: u64,
}

/// The table is locked in so many parts.
const SHARDS: usize = 16;
/// A client's place is one of so many behind each other.
const PLACES_TRIED: usize = 16;

impl Offenders {
    /// Nobody yet, and places for so many.
    pub fn new(keys: usize) -> Offenders {
        Offenders {
            keys,
            begin: Instant::now(),
            hasher: RandomState::new(),
            // Twice as many, so that hardly anybody finds all of theirs taken before.
            places_per_shard: (keys * 2).div_ceil(SHARDS).max(PLACES_TRIED),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    fn count(&self, network: BanNetwork, at: BanThreshold, now_ms: u64) -> OffenceOutcome {
        let hash = self.hasher.hash_one(network) as usize;
        let mut places = self.shards[hash % SHARDS].lock();
        if places.is_empty() {
            places.resize_with(self.places_per_shard, OffenderPlace::default);
        }
        let first = hash / SHARDS % places.len();
        let (index, has_forgotten) = find(&places, first, network, at.window_ms, now_ms);
        let place = &mut places[index];
        if place.network != Some(network) {
            place.network = Some(network);
            place.times_ms.clear();
        }
        while let Some(time_ms) = place.times_ms.front()
            && time_ms.saturating_add(at.window_ms) <= now_ms
        {
            place.times_ms.pop_front();
        }
        place.times_ms.push_back(now_ms);
        let is_reached = place.times_ms.len() >= at.count;
        if is_reached {
            *place = OffenderPlace::default();
        }
        OffenceOutcome {
            is_reached,
            has_forgotten,
        }
    }
}

/// The place of a client, or the best one that it can have, and whether somebody is forgotten then.
fn find(
    places: &[OffenderPlace],
    first: usize,
    network: BanNetwork,
    window_ms: u64,
    now_ms: u64,
) -> (usize, bool) {
    let all = (0..PLACES_TRIED).map(|step| (first + step) % places.len());
    let last_ms = |index: &usize| places[*index].times_ms.back().copied().unwrap_or(0);
    let own = { all.clone() }.find(|index| places[*index].network == Some(network));
    if let Some(own) = own {
        return (own, false);
    }
    let is_free = |index: &usize| {
        let place = &places[*index];
        place.network.is_none() || last_ms(index).saturating_add(window_ms) <= now_ms
    };
    if let Some(free) = all.clone().find(is_free) {
        return (free, false);
    }
    (all.min_by_key(last_ms).unwrap_or(first), true)
}

impl BanRule {
    /// Counts a refusal of a client.
    pub fn count(&self, network: BanNetwork) -> OffenceOutcome {
        let at = BanThreshold {
            count: self.settings.count as usize,
            window_ms: self.settings.window.as_millis() as u64,
        };
        let now_ms = self.clients.begin.elapsed().as_millis() as u64;
        self.clients.count(network, at, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRICE: BanThreshold = BanThreshold {
        count: 3,
        window_ms: 100,
    };

    fn client(number: u32) -> BanNetwork {
        BanNetwork::of(std::net::Ipv4Addr::from(number).into(), 32)
    }

    #[test]
    fn ban_comes_with_the_last_refusal_of_the_count_and_only_within_the_window() {
        let all = Offenders::new(100);
        let reached = |number, now_ms| all.count(client(number), THRICE, now_ms).is_reached;
        assert_eq!([0, 50, 99].map(|ms| reached(1, ms)), [false, false, true]);
        // Nothing is left of what made a ban.
        assert_eq!([99, 99, 99].map(|ms| reached(1, ms)), [false, false, true]);
        // What is as old as the window counts no more.
        assert_eq!([0, 50, 100].map(|ms| reached(2, ms)), [false, false, false]);
        assert!(reached(2, 149));
        assert!(!reached(3, 0), "each is counted for itself");
    }

    #[test]
    fn threads_count_together_and_reach_it_once_for_each_count() {
        let all = Offenders::new(100);
        let at = BanThreshold {
            count: 10,
            window_ms: 1000,
        };
        let count = || {
            (0..500)
                .filter(|_| all.count(client(1), at, 5).is_reached)
                .count()
        };
        let reached: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(reached, 4 * 500 / 10);
    }

    #[test]
    fn more_clients_than_places_have_the_longest_silent_one_forgotten() {
        let all = Offenders::new(100);
        let forgotten = (0..10_000u32).filter(|number| {
            let outcome = all.count(client(*number), THRICE, u64::from(*number) / 1000);
            outcome.has_forgotten
        });
        let forgotten = forgotten.count();
        let places: usize = all.shards.iter().map(|shard| shard.lock().len()).sum();
        assert_eq!(places, SHARDS * PLACES_TRIED);
        assert!(forgotten >= 10_000 - places, "{forgotten}");
        // Whoever came last is known.
        assert!(!all.count(client(9_999), THRICE, 20).is_reached);
        assert!(all.count(client(9_999), THRICE, 20).is_reached);
        // Once all that came is too old, nobody is forgotten.
        assert!(!all.count(client(7), THRICE, 1000).has_forgotten);
    }
}
