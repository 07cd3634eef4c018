//! Who of several members gets a request.

use std::cell::Cell;

use hob_http::Request;

use crate::step::cookie::cookie;

/// By what a member is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The better of two by requests under way and latency.
    Latency,
    /// Who has the fewest requests under way.
    Requests,
    /// Each in turn.
    RoundRobin,
    /// The same one for requests that have this in common.
    Hash(HashKey),
}

/// What requests have in common that come to one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// Their path.
    Path,
    /// The client's address.
    Client,
    /// The value of this field.
    Field(String),
    /// The value of this cookie.
    Cookie(String),
}

impl HashKey {
    /// The key of a request; `None` where it has none.
    pub(crate) fn of(&self, request: &Request) -> Option<u64> {
        let head = request.head();
        match self {
            HashKey::Path => Some(hash(head.path())),
            HashKey::Client => {
                let peer = request.facts().peer?;
                Some(hash(peer.ip().to_string().as_bytes()))
            }
            HashKey::Field(name) => head.values(name.as_bytes()).next().map(hash),
            HashKey::Cookie(name) => cookie(request, name.as_bytes()).map(hash),
        }
    }
}

/// A member that may be chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Its place among the members.
    pub(crate) index: usize,
    /// At least 1.
    pub(crate) weight: u64,
    /// Requests it has.
    pub(crate) load: u64,
}

/// A member has at most so many hundredths of its share of the requests under way, where they are
/// given out by a key: one key that everybody asks for is not one member's alone.
const HASH_LOAD_PERCENT: u64 = 125;

/// Longest schedule: shares of more parts are rounded, and nobody's is none.
const SCHEDULE_MAX: i64 = 1024;

/// Places, each as often as its weight says, those of one never closer than need be.
pub(crate) fn schedule(weights: &[u32]) -> Vec<usize> {
    let common = weights.iter().copied().fold(0, gcd).max(1);
    let mut weights: Vec<i64> = weights.iter().map(|one| i64::from(one / common)).collect();
    let exact: i64 = weights.iter().sum();
    if exact > SCHEDULE_MAX {
        let rounded = |weight: &mut i64| *weight = (*weight * SCHEDULE_MAX / exact).max(1);
        weights.iter_mut().for_each(rounded);
    }
    let total: i64 = weights.iter().sum();
    let mut credits = vec![0; weights.len()];
    let mut schedule = Vec::new();
    for _ in 0..total {
        for (credit, weight) in credits.iter_mut().zip(&weights) {
            *credit += weight;
        }
        let richest = (0..credits.len()).rev().max_by_key(|index| credits[*index]);
        let Some(richest) = richest else { break };
        credits[richest] -= total;
        schedule.push(richest);
    }
    schedule
}

fn gcd(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// The one of these whose turn it is.
pub(crate) fn in_turn(schedule: &[usize], of: &[usize], turn: usize) -> usize {
    let mut entries = schedule.iter().filter(|index| of.contains(index));
    let count = entries.clone().count().max(1);
    entries.nth(turn % count).copied().unwrap_or(of[0])
}

/// Who has the fewest requests for its weight, the first of several.
pub(crate) fn fewest(all: &[Candidate]) -> usize {
    let fewest = all.iter().min_by(|a, b| {
        let (of_a, of_b) = ((a.load + 1) * b.weight, (b.load + 1) * a.weight);
        of_a.cmp(&of_b)
    });
    fewest.map_or(0, |one| one.index)
}

/// The one of two that costs less; chance picks both, by their weights.
pub(crate) fn better_of_two(all: &[Candidate], cost: impl Fn(&Candidate) -> f64) -> usize {
    let draw = |without: Option<usize>| {
        let left = || all.iter().filter(|one| Some(one.index) != without);
        let total: u64 = left().map(|one| one.weight).sum();
        let mut at = u64::from(random()) % total.max(1);
        let drawn = left().find(|one| {
            let is_here = at < one.weight;
            at = at.saturating_sub(one.weight);
            is_here
        });
        drawn.unwrap_or(&all[0])
    };
    let first = draw(None);
    let other = draw(Some(first.index));
    match cost(other) < cost(first) {
        true => other.index,
        false => first.index,
    }
}

/// The same one for the same key, for as long as it is there: others move only where one comes or
/// goes (rendezvous hashing). Who has more than its share of all requests is passed over.
pub(crate) fn by_hash<'a>(all: &[Candidate], key: u64, name: impl Fn(usize) -> &'a str) -> usize {
    let loads: u64 = all.iter().map(|one| one.load).sum();
    let weights: u64 = all.iter().map(|one| one.weight).sum();
    let score = |one: &Candidate| {
        let mixed = mix(key ^ hash(name(one.index).as_bytes()));
        // From just above 0 to 1.
        let unit = ((mixed >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        one.weight as f64 / -unit.ln()
    };
    let has_room = |one: &&Candidate| {
        let share = (loads + 1) * HASH_LOAD_PERCENT * one.weight;
        one.load < share.div_ceil(100 * weights.max(1))
    };
    let best = all
        .iter()
        .filter(has_room)
        .max_by(|a, b| score(a).total_cmp(&score(b)));
    best.or(all.first()).map_or(0, |one| one.index)
}

/// The same in every process and version: FNV-1a, mixed.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Each bit of the result hangs on each of the input (splitmix64).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A number that nobody needs to guess right: xorshift, one sequence for each thread.
pub(crate) fn random() -> u32 {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    STATE.with(|state| {
        let mut now = match state.get() {
            0 => std::ptr::from_ref(state) as u64 | 1,
            now => now,
        };
        now ^= now << 13;
        now ^= now >> 7;
        now ^= now << 17;
        state.set(now);
        (now >> 32) as u32
    })
}
