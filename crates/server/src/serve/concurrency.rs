//! How many requests a route has in service at once: a gate for each key, first come, first served.
//!
//! A gate is there while somebody is inside or waits, so the table holds no more gates than there
//! are requests under way. Where it knows as many keys as it may, those of others share the gate of
//! their network.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hob_config::ConcurrencySettings;
use hob_trace::Mutex;
use hob_trace::metric::ThreadCounters;

use crate::by_hash::ByHash;
use crate::handle::script::gate::{Gate, GateAdmission, GateWaiter, Permit};
use crate::step::request_key::CountedRequest;

/// The limit of a site or a route.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    /// What the config says.
    pub settings: ConcurrencySettings,
    /// Who is in service and who waits: it outlives a reload.
    pub gates: Arc<KeyGates>,
}

/// Gates by their keys, shared by all threads.
#[derive(Debug)]
pub struct KeyGates {
    /// So many keys have gates of their own.
    pub keys: usize,
    hasher: RandomState,
    /// Most that are inside of a gate, and most that wait at it.
    limits: Mutex<(usize, usize)>,
    shards: Box<[Mutex<GateTable>]>,
    /// Keys with gates of their own now.
    known: AtomicUsize,
}

/// Whose a gate is, by the hash of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateKey {
    Own(u64),
    Crowd(u64),
}

type GateTable = ByHash<GateKey, SharedGate>;

/// A gate, and how many places at it there are, inside and waiting.
#[derive(Debug)]
struct SharedGate {
    gate: Arc<Gate>,
    users: usize,
}

/// A place at a gate, inside or waiting; the gate goes with the last one.
#[derive(Debug)]
pub(crate) struct GateSeat {
    gates: Arc<KeyGates>,
    key: GateKey,
    pub(crate) gate: Arc<Gate>,
}

/// A place in service; dropped when the answer has left.
pub(crate) struct ServicePlace {
    /// Given back first, so that the gate is still there for who is called.
    permit: Option<Permit>,
    seat: GateSeat,
    counters: Arc<ThreadCounters>,
}

/// What asking for a place gives.
pub(crate) enum ServiceAdmission {
    /// A place.
    Place(ServicePlace),
    /// A wait for one.
    Wait(GateSeat, GateWaiter),
    /// As many wait as may.
    Full,
}

/// The table is locked in so many parts.
const SHARDS: usize = 64;
/// Keys without gates of their own share so many.
const CROWDS: u64 = 4096;

impl KeyGates {
    /// Nobody yet.
    pub fn new(keys: usize, limits: (usize, usize)) -> KeyGates {
        KeyGates {
            keys,
            hasher: RandomState::new(),
            limits: Mutex::new(limits),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            known: AtomicUsize::new(0),
        }
    }

    /// Other limits, also for who waits now.
    pub fn set_limits(&self, limits: (usize, usize)) {
        *self.limits.lock() = limits;
        for shard in &self.shards {
            let gates: Vec<_> = {
                let shard = shard.lock();
                let all = shard.values();
                all.map(|shared| Arc::clone(&shared.gate)).collect()
            };
            for gate in gates {
                gate.set_limits(limits.0, limits.1);
            }
        }
    }

    /// A seat at the gate of a key. False beside it: it is the gate of its crowd.
    fn seat(self: &Arc<KeyGates>, key: impl Hash, crowd: impl Hash) -> (GateSeat, bool) {
        let own = GateKey::Own(self.hasher.hash_one(key));
        let known = self.seat_at(own, |all| {
            let mut before = all.known.load(Ordering::Relaxed);
            while before < all.keys {
                let next = before + 1;
                match all.known.compare_exchange_weak(
                    before,
                    next,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => return true,
                    Err(now) => before = now,
                }
            }
            false
        });
        if let Some(seat) = known {
            return (seat, true);
        }
        let crowd = GateKey::Crowd(self.hasher.hash_one(crowd) % CROWDS);
        let seat = self.seat_at(crowd, |_| true);
        (seat.expect("a crowd always may have a gate"), false)
    }

    /// The same, if there is such a gate or may be one more.
    fn seat_at(
        self: &Arc<KeyGates>,
        key: GateKey,
        may_add: impl FnOnce(&KeyGates) -> bool,
    ) -> Option<GateSeat> {
        let mut shard = self.shard(key).lock();
        let shared = match shard.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if !may_add(self) => return None,
            Entry::Vacant(place) => {
                let (running_max, queue_max) = *self.limits.lock();
                let gate = Arc::new(Gate::new(running_max, queue_max));
                place.insert(SharedGate { gate, users: 0 })
            }
        };
        shared.users += 1;
        Some(GateSeat {
            gates: Arc::clone(self),
            key,
            gate: Arc::clone(&shared.gate),
        })
    }

    fn shard(&self, key: GateKey) -> &Mutex<GateTable> {
        &self.shards[key.number() as usize % SHARDS]
    }

    /// Keys with gates of their own now.
    #[cfg(test)]
    fn known(&self) -> usize {
        self.known.load(Ordering::Relaxed)
    }
}

impl GateKey {
    fn number(self) -> u64 {
        let (GateKey::Own(hash) | GateKey::Crowd(hash)) = self;
        hash
    }
}

impl Hash for GateKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Its lowest bits are those of its shard, the same for all there.
        state.write_u64(self.number().rotate_right(SHARDS.ilog2()));
    }
}

impl Drop for GateSeat {
    fn drop(&mut self) {
        let mut shard = self.gates.shard(self.key).lock();
        let Entry::Occupied(mut known) = shard.entry(self.key) else {
            debug_assert!(false, "a gate stays while it has seats");
            return;
        };
        let shared = known.get_mut();
        shared.users -= 1;
        if shared.users > 0 {
            return;
        }
        known.remove();
        drop(shard);
        if matches!(self.key, GateKey::Own(_)) {
            self.gates.known.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl ConcurrencyLimit {
    /// Asks for a place for a request. False beside it: its key has no gate of its own.
    pub(crate) fn enter(
        &self,
        counted: &CountedRequest<'_>,
        counters: &Arc<ThreadCounters>,
    ) -> (ServiceAdmission, bool) {
        let key = counted.key(&self.settings.by, self.settings.v6_prefix);
        let (seat, is_alone) = self.gates.seat(key, counted.crowd());
        let admission = match seat.gate.enter() {
            GateAdmission::Permit(permit) => {
                ServiceAdmission::Place(ServicePlace::new(permit, seat, counters))
            }
            GateAdmission::Queued(waiter) => ServiceAdmission::Wait(seat, waiter),
            GateAdmission::Full => ServiceAdmission::Full,
        };
        (admission, is_alone)
    }

    /// Most that are inside of each gate, and most that wait: in a dry run nobody has to.
    pub(crate) fn limits(settings: &ConcurrencySettings) -> (usize, usize) {
        match settings.dry_run {
            true => (usize::MAX, 0),
            false => (settings.requests, settings.queue),
        }
    }
}

impl ServicePlace {
    pub(crate) fn new(
        permit: Permit,
        seat: GateSeat,
        counters: &Arc<ThreadCounters>,
    ) -> ServicePlace {
        counters.concurrency_begun.add(1);
        ServicePlace {
            permit: Some(permit),
            seat,
            counters: Arc::clone(counters),
        }
    }

    /// It is one of these gates.
    pub(crate) fn is_of(&self, gates: &Arc<KeyGates>) -> bool {
        Arc::ptr_eq(&self.seat.gates, gates)
    }

    /// How many are in service there, with this one.
    pub(crate) fn running(&self) -> usize {
        self.seat.gate.load().0
    }
}

impl Drop for ServicePlace {
    fn drop(&mut self) {
        self.permit.take();
        self.counters.concurrency_ended.add(1);
    }
}

#[cfg(test)]
mod tests;
