//! A host as all threads see it: whether it is there, who waits for it, what it said last.
//!
//! ```text
//!          first request              ready
//!   Off ------------------> Starting --------> Up
//!    ^  back-off over           | died          | died
//!    '------------ Broken <-----'---------------'
//! ```
//!
//! One thread starts a host and looks after it (`keep`); the others get a link of their own over
//! the host's first one. A host outlives a reload that leaves its settings as they are, and ends
//! when no route wants it any more.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::config::Language;
use crate::handle::warm::limits::{BACK_OFF, BACK_OFF_MAX, LAST_LINES, PROVEN_AFTER};
use crate::handle::warm::protocol;
use crate::life::parcel;
use crate::process::packet::{self, Sent};
use crate::process::{End, Strings};

/// The hosts that routes want.
#[derive(Default)]
pub struct Hosts(Mutex<HashMap<String, Weak<Host>>>);

impl Hosts {
    /// The host of this name, or a new one.
    pub(super) fn find(&self, name: String, make: impl FnOnce() -> Host) -> Arc<Host> {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|_, host| host.strong_count() > 0);
        if let Some(host) = hosts.get(&name).and_then(Weak::upgrade) {
            return host;
        }
        let host = Arc::new(make());
        hosts.insert(name, Arc::downgrade(&host));
        host
    }
}

/// What a host is started with.
#[derive(Clone, Debug)]
pub(super) struct Birth {
    pub(super) language: Language,
    /// The interpreter's file.
    pub(super) interpreter: Vec<u8>,
    pub(super) arguments: Strings,
    /// What every request's environment begins with.
    pub(super) environment: Strings,
    /// Where it loads modules from.
    pub(super) dir: Vec<u8>,
}

/// An interpreter that is kept, or will be when someone asks.
pub struct Host {
    pub(super) birth: Birth,
    state: Mutex<State>,
    last_run: AtomicU64,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// Requests that wait for another phase.
    waiting: Vec<Waker>,
    /// The task that looks after it, and what it is to do.
    keeper: Option<Waker>,
    orders: VecDeque<Order>,
    last_lines: VecDeque<String>,
    /// Deaths in a row.
    deaths: u32,
}

/// What a thread wants done to a host that another thread started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// End this run.
    EndRun(u64, End),
    /// End the host with everything.
    EndAll,
}

#[derive(Clone, Default)]
enum Phase {
    #[default]
    Off,
    Starting,
    Up(Arc<Up>),
    Broken {
        until: Instant,
        reason: Arc<str>,
    },
}

/// A host that runs.
pub(super) struct Up {
    /// Counts all starts of hosts.
    pub(super) serial: u64,
    /// The first link.
    first: OwnedFd,
    since: Instant,
}

/// Why there is no host.
#[derive(Clone, Debug)]
pub(crate) struct Broken(pub(crate) Arc<str>);

/// What asking for a host gives.
pub(super) enum Asked {
    Up(Arc<Up>),
    /// Nobody has started it: whoever asks has to.
    Start,
    /// It is being started.
    Wait,
    Broken(Broken),
}

/// What a run's process is marked with begins here: above what any limit would sensibly be.
const FIRST_RUN: u64 = 1 << 62;

impl Host {
    pub(super) fn new(birth: Birth) -> Host {
        Host {
            birth,
            state: Mutex::default(),
            last_run: AtomicU64::new(FIRST_RUN),
        }
    }

    /// A number for one more run.
    pub(super) fn next_run(&self) -> u64 {
        self.last_run.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The host, or what is to be done for one.
    pub(super) fn ask(&self, cx: &mut Context<'_>) -> Asked {
        let mut state = self.lock();
        match &state.phase {
            Phase::Up(up) => return Asked::Up(Arc::clone(up)),
            Phase::Broken { until, reason } if Instant::now() < *until => {
                return Asked::Broken(Broken(Arc::clone(reason)));
            }
            Phase::Starting => {
                state.waiting.push(cx.waker().clone());
                return Asked::Wait;
            }
            Phase::Off | Phase::Broken { .. } => {}
        }
        state.phase = Phase::Starting;
        state.last_lines.clear();
        state.orders.clear();
        Asked::Start
    }

    /// It is ready.
    pub(super) fn is_up(&self, serial: u64, first: OwnedFd) {
        let mut state = self.lock();
        state.phase = Phase::Up(Arc::new(Up {
            serial,
            first,
            since: Instant::now(),
        }));
        state.wake_waiting();
    }

    /// It died, or could not be started. Who asks before the back-off is over is told why.
    pub(super) fn is_gone(&self, why: &str) {
        let mut state = self.lock();
        let is_proven = matches!(&state.phase, Phase::Up(up) if up.since.elapsed() >= PROVEN_AFTER);
        state.deaths = if is_proven { 0 } else { state.deaths + 1 };
        state.keeper = None;
        let reason = state.explain(why);
        state.phase = Phase::Broken {
            until: Instant::now() + back_off(state.deaths),
            reason: reason.into(),
        };
        state.wake_waiting();
    }

    /// Remembers what it said.
    pub(super) fn note_line(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.last_lines.len() == LAST_LINES {
            state.last_lines.pop_front();
        }
        state
            .last_lines
            .push_back(String::from_utf8_lossy(line).into_owned());
    }

    /// Why it died, once that is known; nothing when there is another one already.
    pub(crate) fn poll_death(&self, cx: &mut Context<'_>) -> Poll<Arc<str>> {
        let mut state = self.lock();
        match &state.phase {
            Phase::Up(_) => {
                state.waiting.push(cx.waker().clone());
                Poll::Pending
            }
            Phase::Broken { reason, .. } => Poll::Ready(Arc::clone(reason)),
            Phase::Off | Phase::Starting => Poll::Ready("".into()),
        }
    }

    /// Has its keeper do something.
    pub(super) fn order(&self, order: Order) {
        let mut state = self.lock();
        state.orders.push_back(order);
        let keeper = state.keeper.take();
        drop(state);
        keeper.into_iter().for_each(Waker::wake);
    }

    /// What its keeper is to do; it is woken for more.
    pub(super) fn poll_order(&self, cx: &mut Context<'_>) -> Poll<Order> {
        let mut state = self.lock();
        if let Some(order) = state.orders.pop_front() {
            return Poll::Ready(order);
        }
        state.keeper = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Host {
    /// No route wants it: its keeper sees that and lets it end.
    fn drop(&mut self) {
        let keeper = self.lock().keeper.take();
        keeper.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn wake_waiting(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    fn explain(&self, why: &str) -> String {
        let mut reason = why.to_owned();
        for line in &self.last_lines {
            reason.push('\n');
            reason.push_str(line);
        }
        reason
    }
}

impl Up {
    /// A link for one more thread.
    pub(super) fn link(&self) -> std::io::Result<OwnedFd> {
        let (ours, theirs) = parcel::pair()?;
        match packet::send(self.first.as_fd(), &protocol::link(), &[theirs]) {
            Sent::Yes => Ok(ours),
            other => Err(std::io::Error::other(format!(
                "the host takes no link: {other:?}"
            ))),
        }
    }
}

fn back_off(deaths: u32) -> Duration {
    match deaths {
        0 => Duration::ZERO,
        deaths => BACK_OFF_MAX.min(BACK_OFF * 2u32.saturating_pow(deaths - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host::new(Birth {
            language: Language::Python,
            interpreter: Vec::new(),
            arguments: Strings::new(),
            environment: Strings::new(),
            dir: Vec::new(),
        })
    }

    fn ask(host: &Host) -> Asked {
        host.ask(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn one_starts_it_others_wait_and_its_death_is_told_with_its_last_words() {
        let host = host();
        assert!(matches!(ask(&host), Asked::Start));
        assert!(matches!(ask(&host), Asked::Wait));
        host.note_line(b"no module named x");
        host.is_gone("the interpreter ended");
        let Asked::Broken(Broken(reason)) = ask(&host) else {
            panic!("it is let alone for a while");
        };
        assert_eq!(&*reason, "the interpreter ended\nno module named x");
        let (ours, _theirs) = parcel::pair().unwrap();
        host.is_up(7, ours);
        assert!(matches!(ask(&host), Asked::Up(up) if up.serial == 7));
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(back_off(0), Duration::ZERO);
        assert_eq!(back_off(1), BACK_OFF);
        assert_eq!(back_off(3), BACK_OFF * 4);
        assert_eq!(back_off(u32::MAX), BACK_OFF_MAX);
    }

    #[test]
    fn hosts_are_found_again_while_someone_has_them() {
        let hosts = Hosts::default();
        let first = hosts.find("a".to_owned(), host);
        assert!(Arc::ptr_eq(&first, &hosts.find("a".to_owned(), host)));
        assert!(!Arc::ptr_eq(&first, &hosts.find("b".to_owned(), host)));
        let weak = Arc::downgrade(&first);
        drop(first);
        assert!(weak.upgrade().is_none());
    }
}
