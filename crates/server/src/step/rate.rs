//! How many requests a route answers in a time: the generic cell rate algorithm (ITU-T I.371), one
//! time for each client.
//!
//! Of each client only the time is kept at which it would have been right to send its next request
//! if it had sent all of them evenly. One that comes before that by more than its burst allows is
//! refused and changes nothing. Times that have passed say no more than none at all: their places
//! are free. The table has twice as many places as there may be clients; where a client finds none,
//! it is counted together with others of its network.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::Duration;

use hob_config::RateSettings;
use hob_trace::Mutex;

use super::request_key::CountedRequest;

/// The rate of a site or a route.
#[derive(Debug)]
pub struct RateLimit {
    /// What the config says.
    pub settings: RateSettings,
    /// Who has sent how much: it outlives a reload.
    pub clients: Arc<RateClients>,
}

/// What is made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateOutcome {
    /// It is answered.
    Within,
    /// It comes too early; the next one is right after this time.
    Above(Duration),
}

/// The times of clients, shared by all threads.
#[derive(Debug)]
pub struct RateClients {
    /// So many have places.
    pub keys: usize,
    hasher: RandomState,
    shards: Box<[Mutex<Vec<RatePlace>>]>,
    /// Of those who found no place.
    crowds: Mutex<Vec<u64>>,
}

/// A client's hash, and when its next request is right, in nanoseconds; both 0 where nobody was.
type RatePlace = [u64; 2];

/// The table is locked in so many parts at most.
const SHARDS_MAX: usize = 64;
/// A client's place is one of so many behind each other.
const PLACES_TRIED: usize = 128;
/// Clients without places are counted in so many crowds at most.
const CROWDS: usize = 4096;

/// When requests are right.
#[derive(Clone, Copy, Debug)]
struct Pace {
    interval_ns: u64,
    /// So much earlier they may come.
    early_ns: u64,
}

impl RateClients {
    /// Nobody yet, and places for so many.
    pub fn new(keys: usize) -> RateClients {
        let wanted = keys * 2;
        // Few clients need few locks.
        let shards = (wanted / PLACES_TRIED).next_power_of_two().min(SHARDS_MAX);
        let places = wanted
            .div_ceil(shards)
            .next_power_of_two()
            .max(PLACES_TRIED);
        RateClients {
            keys,
            hasher: RandomState::new(),
            // Memory of zeroes costs nothing until it is used.
            shards: (0..shards)
                .map(|_| Mutex::new(vec![[0; 2]; places]))
                .collect(),
            crowds: Mutex::new(vec![0; CROWDS.min(keys * 64)]),
        }
    }

    /// Has a client do what takes it so long, once all that it did before is over: how long it has
    /// to wait for that. False beside it: it is counted with its crowd.
    pub(crate) fn reserve(
        &self,
        client: impl Hash,
        crowd: impl Hash,
        cost_ns: u64,
        now_ns: u64,
    ) -> (u64, bool) {
        self.move_on(client, crowd, now_ns, |right_ns| {
            let due_ns = right_ns.max(now_ns);
            (due_ns - now_ns, due_ns.saturating_add(cost_ns))
        })
    }

    /// Takes a request of a client at a time, or finds it too early. False beside it: the client
    /// found no place and is counted with its crowd.
    fn take(
        &self,
        client: impl Hash,
        crowd: impl Hash,
        pace: Pace,
        now_ns: u64,
    ) -> (RateOutcome, bool) {
        self.move_on(client, crowd, now_ns, |right_ns| {
            pace.take(right_ns, now_ns)
        })
    }

    /// Has `next` say what comes of a client's time, and which is its next one. False beside it:
    /// the client found no place, and it was that of its crowd.
    fn move_on<T>(
        &self,
        client: impl Hash,
        crowd: impl Hash,
        now_ns: u64,
        next: impl FnOnce(u64) -> (T, u64),
    ) -> (T, bool) {
        let hash = self.hasher.hash_one(client).max(1);
        let mut places = self.shards[hash as usize % self.shards.len()].lock();
        if let Some(at) = find(&places, hash, now_ns) {
            let [_, right_ns] = places[at];
            let known_ns = if places[at][0] == hash { right_ns } else { 0 };
            let (outcome, next_ns) = next(known_ns);
            places[at] = [hash, next_ns];
            return (outcome, true);
        }
        drop(places);
        let mut crowds = self.crowds.lock();
        let at = self.hasher.hash_one(crowd) as usize % crowds.len();
        let (outcome, next_ns) = next(crowds[at]);
        crowds[at] = next_ns;
        (outcome, false)
    }
}

/// The place of a client, or the first that is free for it.
fn find(places: &[RatePlace], hash: u64, now_ns: u64) -> Option<usize> {
    let first = (hash as usize / SHARDS_MAX) % places.len();
    let mut free = None;
    for step in 0..PLACES_TRIED {
        let at = (first + step) % places.len();
        match places[at] {
            [known, _] if known == hash => return Some(at),
            // Nobody has ever been here, so the client is at none of the next ones.
            [0, _] => return free.or(Some(at)),
            [_, right_ns] if right_ns <= now_ns && free.is_none() => free = Some(at),
            _ => {}
        }
    }
    free
}

impl Pace {
    /// What becomes of a request, and when the next one is right.
    fn take(self, right_ns: u64, now_ns: u64) -> (RateOutcome, u64) {
        let due_ns = right_ns.max(now_ns);
        let early_ns = due_ns - now_ns;
        match early_ns.checked_sub(self.early_ns).filter(|over| *over > 0) {
            Some(over) => (RateOutcome::Above(Duration::from_nanos(over)), right_ns),
            None => (RateOutcome::Within, due_ns.saturating_add(self.interval_ns)),
        }
    }
}

impl RateLimit {
    /// Takes a request, or finds that it is one too many. False beside it: there are more clients
    /// than are counted each for itself.
    pub(crate) fn take(&self, counted: &CountedRequest<'_>) -> (RateOutcome, bool) {
        let RateLimit { settings, clients } = self;
        let interval_ns = settings.interval_ns();
        let pace = Pace {
            interval_ns,
            early_ns: interval_ns.saturating_mul(u64::from(settings.burst) - 1),
        };
        let key = counted.key(&settings.by, settings.v6_prefix);
        let now_ns = counted.request.reactor().now_us().saturating_mul(1000);
        clients.take(key, counted.crowd(), pace, now_ns)
    }
}

#[cfg(test)]
mod tests;
