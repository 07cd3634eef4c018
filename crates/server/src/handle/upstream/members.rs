//! The members of an upstream: who is asked next, and who is left out for a while because it
//! failed. All threads see the same.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hob_trace::Mutex;

use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::config::UpstreamSettings;
use crate::handle::upstream::kept::KeptConnections;
use crate::handle::upstream::names::ServerName;
use crate::handle::upstream::told::MemberReport;

/// An upstream.
#[derive(Debug)]
pub struct Upstream {
    members: Vec<Member>,
    balance: Balance,
    /// Requests so far, for those that are given out in turn.
    turn: AtomicUsize,
    failing: FailureLimits,
    /// Retries among a hundred requests.
    budget_percent: u64,
    /// Retries that may be made now, in hundredths.
    budget: AtomicU64,
}

/// One of its members.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) address: MemberAddress,
    /// What is to be looked up, where the address is a name.
    pub(crate) name: Option<Arc<ServerName>>,
    /// The address, for people.
    pub(crate) text: Arc<str>,
    /// Connections that rest.
    pub(crate) kept: Arc<KeptConnections>,
    /// Requests it has.
    load: AtomicUsize,
    /// Answers it has begun, and how often it failed.
    answers: AtomicU64,
    failed: AtomicU64,
    latency: Latency,
    /// 0 while it is asked; else when it may be tried again, in milliseconds of loop time.
    out_until_ms: AtomicU64,
    failures: Mutex<FailureCount>,
}

/// Who is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The better of two by requests under way and latency.
    Latency,
    /// Who has the fewest requests under way.
    Requests,
    /// Each in turn.
    RoundRobin,
}

/// When a member is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureLimits {
    /// After so many failures; 0 is never.
    pub count: u32,
    /// Within so long, in milliseconds.
    pub window_ms: u64,
    /// For so long at first, in milliseconds; each failed trial doubles it.
    pub pause_ms: u64,
}

/// Longest time a member is left out between two trials, in milliseconds.
const PAUSE_MAX_MS: u64 = 60_000;
/// How long a trial has before another request may be one, in milliseconds.
const TRIAL_MS: u64 = 10_000;
/// Most retries that can be saved up, in hundredths.
const BUDGET_MAX: u64 = 1_000;

#[derive(Debug, Default)]
struct FailureCount {
    count: u32,
    /// When the first of them was.
    since_ms: u64,
    /// How long it was last left out.
    pause_ms: u64,
}

/// A request on its way to a member, which has it until this is dropped.
#[derive(Debug)]
pub(crate) struct MemberUse {
    upstream: Arc<Upstream>,
    index: usize,
}

impl Drop for MemberUse {
    fn drop(&mut self) {
        self.member().load.fetch_sub(1, Ordering::Relaxed);
    }
}

impl MemberUse {
    pub(crate) fn member(&self) -> &Member {
        &self.upstream.members[self.index]
    }

    /// Its place among the members.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// It has begun to answer, after so long.
    pub(crate) fn answered(&self, after_us: u64, now_ms: u64) {
        let member = self.member();
        member.answers.fetch_add(1, Ordering::Relaxed);
        member.latency.see(after_us, now_ms);
        if member.out_until_ms.load(Ordering::Relaxed) != 0 {
            *member.failures.lock() = FailureCount::default();
            member.out_until_ms.store(0, Ordering::Relaxed);
        }
    }

    /// It has failed. True when that leaves it out.
    pub(crate) fn failed(&self, now_ms: u64) -> bool {
        self.member().failed.fetch_add(1, Ordering::Relaxed);
        let limits = self.upstream.failing;
        if limits.count == 0 || self.upstream.members.len() == 1 {
            return false;
        }
        let member = self.member();
        let mut failures = member.failures.lock();
        let is_out = member.out_until_ms.load(Ordering::Relaxed) != 0;
        if failures.count == 0 || now_ms >= failures.since_ms + limits.window_ms {
            (failures.count, failures.since_ms) = (0, now_ms);
        }
        failures.count += 1;
        if !is_out && failures.count < limits.count {
            return false;
        }
        failures.pause_ms = match is_out {
            true => (failures.pause_ms * 2).min(PAUSE_MAX_MS),
            false => limits.pause_ms,
        };
        let until = (now_ms + failures.pause_ms).max(1);
        member.out_until_ms.store(until, Ordering::Relaxed);
        !is_out
    }
}

impl Upstream {
    pub(crate) fn new(settings: &UpstreamSettings) -> Arc<Upstream> {
        let member = |address: &MemberAddress| Member {
            address: address.clone(),
            name: match address {
                MemberAddress::Name(name, port) => Some(ServerName::new(name, *port)),
                _ => None,
            },
            text: address.to_string().into(),
            kept: KeptConnections::new(settings.keep),
            load: AtomicUsize::new(0),
            answers: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            latency: Latency::default(),
            out_until_ms: AtomicU64::new(0),
            failures: Mutex::default(),
        };
        Arc::new(Upstream {
            members: settings.members.iter().map(member).collect(),
            balance: settings.balance,
            turn: AtomicUsize::new(0),
            failing: settings.fail,
            budget_percent: settings.retry.budget_percent,
            budget: AtomicU64::new(BUDGET_MAX),
        })
    }

    /// What its members are at.
    pub(crate) fn told(&self, now_ms: u64) -> Vec<MemberReport> {
        self.members
            .iter()
            .map(|member| member.told(now_ms))
            .collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Chooses who gets a request, except those that it was given to already; `None` when nobody is
    /// left.
    pub(crate) fn pick(self: &Arc<Self>, tried: &[usize], now_ms: u64) -> Option<MemberUse> {
        let index = match self.members.len() {
            1 => Some(0).filter(|_| tried.is_empty()),
            _ => self.choose(tried, now_ms),
        }?;
        self.members[index].load.fetch_add(1, Ordering::Relaxed);
        let upstream = Arc::clone(self);
        Some(MemberUse { upstream, index })
    }

    fn choose(&self, tried: &[usize], now_ms: u64) -> Option<usize> {
        // Who has been out for long enough is tried by one request.
        let mut inside: Vec<usize> = Vec::with_capacity(self.members.len());
        for (index, member) in self.members.iter().enumerate() {
            if tried.contains(&index) {
                continue;
            }
            match member.out_until_ms.load(Ordering::Relaxed) {
                0 => inside.push(index),
                until if until <= now_ms && member.begin_trial(until, now_ms) => {
                    return Some(index);
                }
                _ => {}
            }
        }
        if inside.len() < 2 {
            return inside.first().copied();
        }
        match self.balance {
            Balance::RoundRobin => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                Some(inside[turn % inside.len()])
            }
            Balance::Requests => {
                // Where several have as few, each has its turn.
                let turn = self.turn.fetch_add(1, Ordering::Relaxed) % inside.len();
                inside.rotate_left(turn);
                let load = |index: &usize| self.members[*index].load.load(Ordering::Relaxed);
                inside.into_iter().min_by_key(load)
            }
            Balance::Latency => {
                let first = random() as usize % inside.len();
                let other = (first + 1 + random() as usize % (inside.len() - 1)) % inside.len();
                let cost = |at: usize| self.members[inside[at]].cost(now_ms);
                let best = if cost(other) < cost(first) {
                    other
                } else {
                    first
                };
                Some(inside[best])
            }
        }
    }

    /// A request was made: it adds its share to the budget of retries.
    pub(crate) fn count_request(&self) {
        if self.members.len() > 1 {
            let add = |budget: u64| (budget < BUDGET_MAX).then(|| budget + self.budget_percent);
            let _ = self
                .budget
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    /// Takes a retry out of the budget; false when there is none.
    pub(crate) fn take_retry(&self) -> bool {
        let take = |budget: u64| budget.checked_sub(100);
        self.budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }
}

impl Member {
    fn told(&self, now_ms: u64) -> MemberReport {
        let out_until_ms = self.out_until_ms.load(Ordering::Relaxed);
        let latency_us = self.latency.now(now_ms);
        let (state, out_for_s) = match out_until_ms {
            0 => ("in", None),
            until_ms => ("out", Some(until_ms.saturating_sub(now_ms).div_ceil(1000))),
        };
        MemberReport {
            address: self.text.to_string(),
            state: state.to_owned(),
            out_for_s,
            requests: self.load.load(Ordering::Relaxed),
            resting: self.kept.count(),
            latency_ms: (latency_us > 0.0).then(|| (latency_us / 10.0).round() / 100.0),
            answers: self.answers.load(Ordering::Relaxed),
            failures: self.failed.load(Ordering::Relaxed),
        }
    }

    /// One request tries it; no other does until that has had its time.
    fn begin_trial(&self, until: u64, now_ms: u64) -> bool {
        let next = now_ms + TRIAL_MS;
        let taken =
            self.out_until_ms
                .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok()
    }

    /// What one more request there would cost: how long it would wait, more or less.
    fn cost(&self, now_ms: u64) -> f64 {
        let load = self.load.load(Ordering::Relaxed);
        self.latency.now(now_ms) * (load + 1) as f64
    }
}

/// How long answers took to begin, lately: a slow one counts at once, and is forgotten with time.
#[derive(Debug, Default)]
struct Latency {
    /// Microseconds, as bits.
    mean_us: AtomicU64,
    seen_ms: AtomicU64,
}

/// After so long a third of a latency is left, in milliseconds.
const FORGOTTEN_MS: f64 = 10_000.0;

/// After so long nothing is known of it any more, in milliseconds.
const KNOWN_MS: u64 = 60_000;

impl Latency {
    fn now(&self, now_ms: u64) -> f64 {
        let mean_us = f64::from_bits(self.mean_us.load(Ordering::Relaxed));
        let age_ms = now_ms.saturating_sub(self.seen_ms.load(Ordering::Relaxed));
        match age_ms {
            0 => mean_us,
            KNOWN_MS.. => 0.0,
            age_ms => mean_us * (-(age_ms as f64) / FORGOTTEN_MS).exp(),
        }
    }

    fn see(&self, latency_us: u64, now_ms: u64) {
        let (latency_us, mean_us) = (latency_us as f64, self.now(now_ms));
        // Of what is faster, each answer counts for a sixteenth.
        let next_us = match latency_us > mean_us {
            true => mean_us + (latency_us - mean_us) / 4.0,
            false => mean_us + (latency_us - mean_us) / 16.0,
        };
        self.mean_us.store(next_us.to_bits(), Ordering::Relaxed);
        self.seen_ms.store(now_ms, Ordering::Relaxed);
    }
}

/// A number that nobody needs to guess right: xorshift, one sequence for each thread.
fn random() -> u32 {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::handle::upstream::config::RetryRules;
    use crate::handle::upstream::patience::UpstreamTimeouts;

    const FAILING: FailureLimits = FailureLimits {
        count: 3,
        window_ms: 10_000,
        pause_ms: 1_000,
    };

    fn upstream(members: usize, balance: Balance) -> Arc<Upstream> {
        let address = |port: usize| {
            let text = format!("127.0.0.1:{}", port + 1);
            MemberAddress::parse(&text, |path| path.into()).unwrap()
        };
        Upstream::new(&UpstreamSettings {
            members: (0..members).map(address).collect(),
            balance,
            connections: 1,
            keep: 0,
            queue: 0,
            wait: Duration::ZERO,
            timeout: UpstreamTimeouts {
                connect: Duration::ZERO,
                first_byte: Duration::ZERO,
                total: Duration::ZERO,
                progress: Duration::ZERO,
                events: Duration::ZERO,
            },
            fail: FAILING,
            retry: RetryRules {
                times: 1,
                on: Vec::new(),
                budget_percent: 20,
            },
        })
    }

    #[test]
    fn each_has_its_turn_and_who_was_tried_is_left_out() {
        let upstream = upstream(3, Balance::RoundRobin);
        let picked: Vec<_> = (0..6)
            .map(|_| upstream.pick(&[], 0).unwrap().index())
            .collect();
        assert_eq!(picked, [0, 1, 2, 0, 1, 2]);
        assert_eq!(upstream.pick(&[0, 2], 0).unwrap().index(), 1);
        assert!(upstream.pick(&[0, 1, 2], 0).is_none());
    }

    #[test]
    fn fewest_requests_win() {
        let upstream = upstream(3, Balance::Requests);
        let held: Vec<_> = (0..3).map(|_| upstream.pick(&[], 0).unwrap()).collect();
        let mut indexes: Vec<_> = held.iter().map(MemberUse::index).collect();
        indexes.sort_unstable();
        assert_eq!(indexes, [0, 1, 2]);
        let free = held[1].index();
        drop(held.into_iter().nth(1));
        let again = upstream.pick(&[], 0).unwrap();
        // The others were dropped as well: all are free but for this one.
        assert_ne!(upstream.pick(&[], 0).unwrap().index(), again.index());
        assert!(free < 3);
    }

    #[test]
    fn slow_member_gets_few_requests_and_is_tried_again_with_time() {
        let upstream = upstream(4, Balance::Latency);
        let mut counts = [0; 4];
        for round in 0..4_000_u64 {
            let used = upstream.pick(&[], round / 10).unwrap();
            counts[used.index()] += 1;
            let latency_us = if used.index() == 3 { 10_000 } else { 1_000 };
            used.answered(latency_us, round / 10);
        }
        assert!(counts[3] < 40, "{counts:?}");
        assert!(counts[..3].iter().all(|count| *count > 800), "{counts:?}");
        // A minute later nothing is known of anybody.
        let mut later = [0; 4];
        for _ in 0..400 {
            later[upstream.pick(&[], 400_000).unwrap().index()] += 1;
        }
        assert!(later[3] > 40, "{later:?}");
    }

    #[test]
    fn who_fails_is_left_out_and_comes_back_by_one_trial() {
        let upstream = upstream(2, Balance::RoundRobin);
        let fail = |now_ms| {
            let used = upstream.pick(&[1], now_ms).unwrap();
            used.failed(now_ms)
        };
        assert_eq!([fail(1), fail(2), fail(3)], [false, false, true]);
        for now_ms in [4, 900] {
            assert_eq!(upstream.pick(&[], now_ms).unwrap().index(), 1);
            assert!(upstream.pick(&[1], now_ms).is_none());
        }
        let trial = upstream.pick(&[], 1_003).unwrap();
        assert_eq!(trial.index(), 0);
        assert!(upstream.pick(&[1], 1_003).is_none());
        // It failed once more: twice as long.
        assert!(!trial.failed(1_010));
        assert!(upstream.pick(&[1], 3_009).is_none());
        let trial = upstream.pick(&[1], 3_010).unwrap();
        trial.answered(100, 3_011);
        assert!(upstream.pick(&[1], 3_011).is_some());
        assert!(!fail(3_012));
    }

    #[test]
    fn failures_far_apart_and_those_of_a_lone_member_leave_nobody_out() {
        let two = upstream(2, Balance::RoundRobin);
        for at in [0, 20_000, 40_000, 60_000] {
            assert!(!two.pick(&[1], at).unwrap().failed(at));
        }
        let alone = upstream(1, Balance::Latency);
        for _ in 0..100 {
            assert!(!alone.pick(&[], 1).unwrap().failed(1));
        }
    }

    #[test]
    fn retries_are_a_share_of_requests() {
        let upstream = upstream(2, Balance::Latency);
        let saved = (0..100).filter(|_| upstream.take_retry()).count();
        assert_eq!(saved, 10);
        for _ in 0..100 {
            upstream.count_request();
        }
        assert_eq!((0..100).filter(|_| upstream.take_retry()).count(), 10);
    }
}
