//! One member of an upstream: what is known of it, and whether it is asked or left out, because it
//! failed, because a check says so, or because an operator wants it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hob_trace::Mutex;

use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::balance;
use crate::handle::upstream::config::{MemberSettings, UpstreamSettings};
use crate::handle::upstream::kept::KeptConnections;
use crate::handle::upstream::latency::Latency;
use crate::handle::upstream::names::ServerName;
use crate::handle::upstream::run::socket::RunSeat;
use crate::handle::upstream::told::MemberReport;

/// One of its members. It outlives the upstream where another one has the same member.
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
    /// Since when it is asked again, or is there at all, in milliseconds of loop time; 0 is since
    /// long ago.
    in_since_ms: AtomicU64,
    /// An operator wants it to have no new requests.
    is_draining: AtomicBool,
    checked: CheckedHealth,
    /// Until when it is taken for one that speaks HTTP/1.1 alone, in milliseconds of loop time.
    pub(crate) http1_until_ms: AtomicU64,
}

/// What checks found.
#[derive(Debug, Default)]
struct CheckedHealth {
    /// It is left out for that.
    is_out: AtomicBool,
    /// How many in a row say otherwise than what holds.
    against: AtomicUsize,
    /// Why the last one failed; empty where it did not.
    why: Mutex<String>,
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

/// Whether a member is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberStanding {
    In,
    /// It is left out after failures, until then, in milliseconds of loop time.
    Failed(u64),
    /// Checks say that it is ill.
    Ill,
    Draining,
}

impl Member {
    pub(super) fn new(
        address: &MemberAddress,
        settings: &UpstreamSettings,
        in_since_ms: u64,
    ) -> Member {
        let kept = KeptConnections::new(settings.keep, settings.keep_limits);
        Member {
            address: address.clone(),
            name: match address.place() {
                MemberAddress::Name(name, port) => {
                    Some(ServerName::new((name, *port), &settings.resolver, &kept))
                }
                _ => None,
            },
            text: address.to_string().into(),
            kept,
            load: AtomicUsize::new(0),
            answers: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            latency: Latency::default(),
            out_until_ms: AtomicU64::new(0),
            failures: Mutex::default(),
            in_since_ms: AtomicU64::new(in_since_ms),
            is_draining: AtomicBool::new(false),
            checked: CheckedHealth::default(),
            http1_until_ms: AtomicU64::new(0),
        }
    }

    /// A server of a service, with a name and a port, at these addresses.
    pub(crate) fn of_service(
        (name, port): (&str, u16),
        addresses: Vec<SocketAddr>,
        (settings, in_since_ms): (&UpstreamSettings, u64),
    ) -> Arc<Member> {
        let address = MemberAddress::Name(name.to_owned(), port);
        let member = Member::new(&address, settings, in_since_ms);
        let name = ServerName::of_server((name, port), &member.kept, addresses);
        Arc::new(Member {
            name: Some(name),
            ..member
        })
    }

    /// Whether it is the server of a service with this name and port.
    pub(crate) fn is_server(&self, (name, port): (&str, u16)) -> bool {
        matches!(&self.address, MemberAddress::Name(own, at) if own == name && *at == port)
    }

    /// A place for a connection to it, where it is a program that hob runs.
    pub(crate) fn seat(&self) -> Option<RunSeat> {
        match &self.address {
            MemberAddress::Run(socket) => Some(socket.seat()),
            _ => None,
        }
    }

    /// Whether it is this one, of an upstream with these settings.
    pub(super) fn is_at(&self, one: &MemberSettings, settings: &UpstreamSettings) -> bool {
        let mut name = self.name.iter();
        self.address == one.address && name.all(|name| name.asks(&settings.resolver))
    }

    /// One request more has it.
    pub(super) fn begin_use(&self) {
        self.load.fetch_add(1, Ordering::Relaxed);
    }

    /// One fewer.
    pub(super) fn end_use(&self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
    }

    /// Requests it has.
    pub(super) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// How long its answers took lately.
    pub(super) fn latency_us(&self, now_ms: u64) -> f64 {
        self.latency.now(now_ms)
    }

    /// It has begun to answer, after so long.
    pub(super) fn answered(&self, after_us: u64, now_ms: u64) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.latency.see(after_us, now_ms);
        if self.out_until_ms.load(Ordering::Relaxed) != 0 {
            *self.failures.lock() = FailureCount::default();
            self.in_since_ms.store(now_ms, Ordering::Relaxed);
            self.out_until_ms.store(0, Ordering::Relaxed);
        }
    }

    /// It has failed. True when these limits leave it out for that.
    pub(super) fn failed(&self, limits: Option<FailureLimits>, now_ms: u64) -> bool {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let Some(limits) = limits else {
            return false;
        };
        let mut failures = self.failures.lock();
        let is_out = self.out_until_ms.load(Ordering::Relaxed) != 0;
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
        self.out_until_ms.store(until, Ordering::Relaxed);
        !is_out
    }

    /// Has it get no new requests, or get them again.
    pub(super) fn set_draining(&self, is_draining: bool, now_ms: u64) {
        if self.is_draining.swap(is_draining, Ordering::Relaxed) && !is_draining {
            self.in_since_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// What checks found of it counts no more.
    pub(super) fn forget_checks(&self) {
        self.checked.is_out.store(false, Ordering::Relaxed);
    }

    pub(super) fn standing(&self) -> MemberStanding {
        if self.is_draining.load(Ordering::Relaxed) {
            return MemberStanding::Draining;
        }
        if self.checked.is_out.load(Ordering::Relaxed) {
            return MemberStanding::Ill;
        }
        match self.out_until_ms.load(Ordering::Relaxed) {
            0 => MemberStanding::In,
            until_ms => MemberStanding::Failed(until_ms),
        }
    }

    pub(crate) fn told(&self, now_ms: u64) -> MemberReport {
        let latency_us = self.latency.now(now_ms);
        let (state, out_for_s, why) = match self.standing() {
            MemberStanding::In => ("in", None, String::new()),
            MemberStanding::Draining => ("draining", None, String::new()),
            MemberStanding::Ill => ("out", None, self.checked.why.lock().clone()),
            MemberStanding::Failed(until_ms) => {
                let left_s = until_ms.saturating_sub(now_ms).div_ceil(1000);
                ("out", Some(left_s), "requests to it failed".to_owned())
            }
        };
        MemberReport {
            address: self.text.to_string(),
            state: state.to_owned(),
            out_for_s,
            why: Some(why).filter(|why| !why.is_empty()),
            requests: self.load.load(Ordering::Relaxed),
            resting: self.kept.count(),
            latency_ms: (latency_us > 0.0).then(|| (latency_us / 10.0).round() / 100.0),
            answers: self.answers.load(Ordering::Relaxed),
            failures: self.failed.load(Ordering::Relaxed),
            ..MemberReport::default()
        }
    }

    /// One request tries it; no other does until that has had its time.
    pub(super) fn begin_trial(&self, until: u64, now_ms: u64) -> bool {
        let next = now_ms + TRIAL_MS;
        let taken =
            self.out_until_ms
                .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok()
    }

    /// Whether a request may come to it that has not been asked for long: more of them may with
    /// time, and by chance.
    pub(super) fn passes_slow_start(&self, slow_ms: u64, now_ms: u64) -> bool {
        let since_ms = self.in_since_ms.load(Ordering::Relaxed);
        let age_ms = now_ms.saturating_sub(since_ms);
        if since_ms == 0 || age_ms >= slow_ms {
            return true;
        }
        let part = (age_ms * 1000 / slow_ms).max(SLOW_PART_MIN);
        u64::from(balance::random()) % 1000 < part
    }

    /// Notes what a check found. It is left out after so many in a row that failed, and asked again
    /// after so many that did not. True when that changes.
    pub(crate) fn check_found(
        &self,
        found: Result<(), String>,
        (fall, rise): (usize, usize),
        now_ms: u64,
    ) -> bool {
        let checked = &self.checked;
        let (is_out, is_ill) = (checked.is_out.load(Ordering::Relaxed), found.is_err());
        *checked.why.lock() = found.err().unwrap_or_default();
        if is_out == is_ill {
            checked.against.store(0, Ordering::Relaxed);
            return false;
        }
        let against = checked.against.fetch_add(1, Ordering::Relaxed) + 1;
        if against < if is_ill { fall } else { rise } {
            return false;
        }
        checked.against.store(0, Ordering::Relaxed);
        if !is_ill {
            self.in_since_ms.store(now_ms, Ordering::Relaxed);
        }
        checked.is_out.store(is_ill, Ordering::Relaxed);
        true
    }
}

#[derive(Debug, Default)]
struct FailureCount {
    count: u32,
    /// When the first of them was.
    since_ms: u64,
    /// How long it was last left out.
    pause_ms: u64,
}

/// Longest time a member is left out between two trials, in milliseconds.
const PAUSE_MAX_MS: u64 = 60_000;
/// How long a trial has before another request may be one, in milliseconds.
const TRIAL_MS: u64 = 10_000;
/// Who begins slowly has this part of its requests at first, in thousandths.
const SLOW_PART_MIN: u64 = 100;
