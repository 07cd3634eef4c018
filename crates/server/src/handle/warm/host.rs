//! A host as all threads see it: whether it is there, who waits for it, what it said last.
//!
//! ```text
//!       a config in force                ready
//!   Off ----------------> Starting -----------------> Up
//!                          ^   | died                  | died
//!        a reload, or      |   v                       v
//!        a request when    '- Failed                 Resting
//!        its back-off is over                           |
//!                         Starting <--------------------'
//!                                     back-off over
//! ```
//!
//! One thread starts a host and looks after it (`keep`); the others get a link of their own over
//! the host's first one. A host that had been ready is started again by itself, and requests wait
//! for that; one that could not start is tried again when a request wants it, so that an error of a
//! module is told once and not for ever. A host outlives a reload that leaves its settings as they
//! are, and ends when no route wants it any more.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hob_trace::Mutex;

use crate::handle::config::Language;
use crate::handle::script::lives::{LAST_LINES, PROVEN_AFTER, back_off};
use crate::handle::script::stderr::cause;
use crate::handle::script::stderr::one_line;
use crate::handle::warm::protocol;
use crate::handle::warm::tally::HostCounters;
use crate::serve::fleet::Fleet;
use hob_keeper::parcel;
use hob_keeper::process::packet::{self, PacketSendOutcome};
use hob_keeper::process::{EndSignal, ProgramRef, Strings};

/// The hosts that routes want.
#[derive(Default)]
pub struct Hosts(Mutex<HashMap<String, Weak<WarmHost>>>);

impl Hosts {
    /// The host of this name, or a new one.
    pub(super) fn find(&self, name: String, make: impl FnOnce() -> WarmHost) -> Arc<WarmHost> {
        let mut hosts = self.0.lock();
        hosts.retain(|_, host| host.strong_count() > 0);
        if let Some(host) = hosts.get(&name).and_then(Weak::upgrade) {
            return host;
        }
        let host = Arc::new(make());
        hosts.insert(name, Arc::downgrade(&host));
        host
    }

    /// Those that some route wants, by name.
    pub(super) fn all(&self) -> Vec<Arc<WarmHost>> {
        let hosts = self.0.lock();
        let mut all: Vec<_> = hosts.iter().collect();
        all.sort_by_key(|(name, _)| *name);
        all.into_iter()
            .filter_map(|(_, host)| host.upgrade())
            .collect()
    }

    /// Their processes.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let all = self.all();
        let pids = all
            .iter()
            .map(|host| host.tally.pid.load(Ordering::Relaxed));
        pids.filter(|pid| *pid != 0).collect()
    }

    /// Has every host started that never was, or could not: called when a config has come into
    /// force.
    pub fn tend(&self, fleet: &Fleet) {
        let all = self.all();
        let home_of = |host: &Arc<WarmHost>| host.tally.thread.load(Ordering::Relaxed);
        for host in &all {
            let on = |thread| all.iter().filter(|one| home_of(one) == thread).count();
            let Some(thread) = fleet.choose_thread(on) else {
                return;
            };
            if host.is_begun() {
                host.tally.thread.store(thread, Ordering::Relaxed);
                fleet.start_host(thread, Arc::clone(host));
            }
        }
    }
}

/// What a host is started with.
#[derive(Clone, Debug)]
pub(super) struct Birth {
    pub(super) language: Language,
    /// Modules it loads.
    pub(super) preload: Vec<String>,
    /// It keeps scripts compiled.
    pub(super) compiles: bool,
    /// The interpreter's file.
    pub(super) interpreter: Vec<u8>,
    pub(super) arguments: Strings,
    /// Where it loads modules from.
    pub(super) dir: Vec<u8>,
}

/// An interpreter that is kept, or will be when someone asks.
pub struct WarmHost {
    pub(super) birth: Birth,
    pub(super) tally: HostCounters,
    state: Mutex<HostState>,
    last_run: AtomicU64,
}

struct HostState {
    phase: HostPhase,
    /// The rules it is started under: those of the last config that was built.
    program: ProgramRef,
    /// Requests that wait for another phase.
    waiting: Vec<Waker>,
    /// The task that looks after it, and what it is to do.
    keeper: Option<Waker>,
    orders: VecDeque<HostCommand>,
    last_lines: VecDeque<String>,
    /// Deaths in a row.
    deaths: u32,
    /// Why it last could not start, or died.
    last_failure: Option<Arc<str>>,
    /// Why it could not start, as the log was told last; until it does.
    told_failure: String,
}

/// What a thread wants done to a host that another thread started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostCommand {
    /// End this run.
    EndRun(u64, EndSignal),
    /// End the host with everything.
    EndAll,
}

#[derive(Clone, Default)]
enum HostPhase {
    #[default]
    Off,
    Starting,
    Up(Arc<Up>),
    /// It could not start, and is let alone for a while.
    Failed {
        until: Instant,
        reason: Arc<str>,
    },
    /// It died, and its keeper starts it again in a moment.
    Resting,
}

/// A host that runs.
pub(super) struct Up {
    /// Counts all starts of hosts.
    pub(super) serial: u64,
    /// The first link.
    first: OwnedFd,
    since: Instant,
    /// What it says it is.
    what: String,
    /// Runs that had ended before it started.
    ended_before: u64,
}

/// A host as `hob status` shows it.
pub(super) struct Condition {
    pub(super) name: &'static str,
    pub(super) what: Option<String>,
    pub(super) age: Option<Duration>,
    pub(super) last_failure: Option<Arc<str>>,
}

/// Why there is no host.
#[derive(Clone, Debug)]
pub(crate) struct Broken(pub(crate) Arc<str>);

/// What asking for a host gives.
pub(super) enum HostReadiness {
    Up(Arc<Up>),
    /// Nobody has started it: whoever asks has to.
    Start,
    /// It is being started.
    Wait,
    Broken(Broken),
}

/// What a run's process is marked with begins here: above what any limit would sensibly be.
const FIRST_RUN: u64 = 1 << 62;

impl WarmHost {
    pub(super) fn new(birth: Birth, program: ProgramRef) -> WarmHost {
        WarmHost {
            birth,
            tally: HostCounters::default(),
            state: Mutex::new(HostState {
                phase: HostPhase::Off,
                program,
                waiting: Vec::new(),
                keeper: None,
                orders: VecDeque::new(),
                last_lines: VecDeque::new(),
                deaths: 0,
                last_failure: None,
                told_failure: String::new(),
            }),
            last_run: AtomicU64::new(FIRST_RUN),
        }
    }

    /// The rules it is started under.
    pub(super) fn program(&self) -> ProgramRef {
        self.state.lock().program
    }

    /// The same rules as they are called in another config.
    pub(super) fn set_program(&self, program: ProgramRef) {
        self.state.lock().program = program;
    }

    /// Whether whoever asks has to start it: nobody has yet, or it could not be started.
    fn is_begun(&self) -> bool {
        let mut state = self.state.lock();
        let is_idle = matches!(state.phase, HostPhase::Off | HostPhase::Failed { .. });
        if is_idle {
            state.begin();
        }
        is_idle
    }

    /// Its keeper starts it once more.
    pub(super) fn begin_again(&self) {
        self.state.lock().begin();
    }

    /// A number for one more run.
    pub(super) fn next_run(&self) -> u64 {
        self.last_run.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The host, or what is to be done for one.
    pub(super) fn ask(&self, cx: &mut Context<'_>) -> HostReadiness {
        let mut state = self.state.lock();
        match &state.phase {
            HostPhase::Up(up) => return HostReadiness::Up(Arc::clone(up)),
            HostPhase::Failed { until, reason } if Instant::now() < *until => {
                return HostReadiness::Broken(Broken(Arc::clone(reason)));
            }
            HostPhase::Starting | HostPhase::Resting => {
                state.waiting.push(cx.waker().clone());
                return HostReadiness::Wait;
            }
            HostPhase::Off | HostPhase::Failed { .. } => {}
        }
        state.begin();
        HostReadiness::Start
    }

    /// It is ready, and says what it is.
    pub(super) fn is_up(&self, serial: u64, first: OwnedFd, what: String) {
        let mut state = self.state.lock();
        state.phase = HostPhase::Up(Arc::new(Up {
            serial,
            first,
            since: Instant::now(),
            what,
            ended_before: self.tally.ends.load(Ordering::Relaxed),
        }));
        self.tally.is_up.store(true, Ordering::Relaxed);
        state.told_failure.clear();
        state.wake_waiting();
    }

    /// It died, or could not be started. When it had been ready, or was not to blame, it is to be
    /// started again after this time; else who asks before the back-off is over is told why.
    pub(super) fn is_gone(&self, why: &str, is_blameless: bool) -> Option<Duration> {
        let mut state = self.state.lock();
        self.tally.is_up.store(false, Ordering::Relaxed);
        self.tally.pid.store(0, Ordering::Relaxed);
        let was_up = match &state.phase {
            HostPhase::Up(up) => {
                let ended = self.tally.ends.load(Ordering::Relaxed);
                if up.since.elapsed() >= PROVEN_AFTER || ended > up.ended_before {
                    state.deaths = 0;
                }
                true
            }
            _ => false,
        };
        let count = match was_up {
            true => &self.tally.crashes,
            false => &self.tally.failures,
        };
        count.fetch_add(1, Ordering::Relaxed);
        state.deaths += 1;
        state.keeper = None;
        let reason: Arc<str> = state.explain(why).into();
        state.last_failure = Some(Arc::clone(&reason));
        let pause = back_off(state.deaths);
        let is_again = was_up || is_blameless;
        state.phase = match is_again {
            true => HostPhase::Resting,
            false => HostPhase::Failed {
                until: Instant::now() + pause,
                reason,
            },
        };
        state.wake_waiting();
        is_again.then_some(pause)
    }

    /// Why it could not start, in a line, unless the log has been told just that.
    pub(super) fn new_cause(&self, why: &str) -> Option<String> {
        let mut state = self.state.lock();
        let printed: Vec<&str> = state.last_lines.iter().map(String::as_str).collect();
        let text = match cause(&printed.join("\n")) {
            "" => why.to_owned(),
            cause => format!("{why}: {}", one_line(cause)),
        };
        if state.told_failure == text {
            return None;
        }
        text.clone_into(&mut state.told_failure);
        Some(text)
    }

    /// Remembers what it said.
    pub(super) fn note_line(&self, line: &[u8]) {
        let mut state = self.state.lock();
        if state.last_lines.len() == LAST_LINES {
            state.last_lines.pop_front();
        }
        state
            .last_lines
            .push_back(String::from_utf8_lossy(line).into_owned());
    }

    /// Why it died, once that is known; nothing when there is another one already.
    pub(crate) fn poll_death(&self, cx: &mut Context<'_>) -> Poll<Arc<str>> {
        let mut state = self.state.lock();
        match &state.phase {
            HostPhase::Up(_) => {
                state.waiting.push(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(state.last_failure.clone().unwrap_or_else(|| "".into())),
        }
    }

    /// What is told of it: its state, what it says it is, how long it has been ready, and why it
    /// last failed.
    pub(super) fn condition(&self) -> Condition {
        let state = self.state.lock();
        let (name, up) = match &state.phase {
            HostPhase::Off => ("off", None),
            HostPhase::Starting => ("starting", None),
            HostPhase::Up(up) => ("ready", Some(up)),
            HostPhase::Failed { .. } => ("failed", None),
            HostPhase::Resting => ("restarting", None),
        };
        Condition {
            name,
            what: up.map(|up| up.what.clone()),
            age: up.map(|up| up.since.elapsed()),
            last_failure: state.last_failure.clone(),
        }
    }

    /// Has its keeper do something.
    pub(super) fn order(&self, order: HostCommand) {
        let mut state = self.state.lock();
        state.orders.push_back(order);
        let keeper = state.keeper.take();
        drop(state);
        keeper.into_iter().for_each(Waker::wake);
    }

    /// What its keeper is to do; it is woken for more.
    pub(super) fn poll_order(&self, cx: &mut Context<'_>) -> Poll<HostCommand> {
        let mut state = self.state.lock();
        if let Some(order) = state.orders.pop_front() {
            return Poll::Ready(order);
        }
        state.keeper = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for WarmHost {
    /// No route wants it: its keeper sees that and lets it end.
    fn drop(&mut self) {
        let keeper = self.state.lock().keeper.take();
        keeper.into_iter().for_each(Waker::wake);
    }
}

impl HostState {
    fn begin(&mut self) {
        self.phase = HostPhase::Starting;
        self.last_lines.clear();
        self.orders.clear();
    }

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
            PacketSendOutcome::Yes => Ok(ours),
            other => Err(std::io::Error::other(format!(
                "the host takes no link: {other:?}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::script::lives::BACK_OFF;

    fn host() -> WarmHost {
        let birth = Birth {
            language: Language::Python,
            preload: Vec::new(),
            compiles: true,
            interpreter: Vec::new(),
            arguments: Strings::new(),
            dir: Vec::new(),
        };
        let program = ProgramRef {
            generation: 1,
            index: 0,
        };
        WarmHost::new(birth, program)
    }

    fn ask(host: &WarmHost) -> HostReadiness {
        host.ask(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn one_starts_it_others_wait_and_its_death_is_told_with_its_last_words() {
        let host = host();
        assert!(matches!(ask(&host), HostReadiness::Start));
        assert!(matches!(ask(&host), HostReadiness::Wait));
        host.note_line(b"no module named x");
        assert_eq!(host.is_gone("the interpreter ended", false), None);
        let HostReadiness::Broken(Broken(reason)) = ask(&host) else {
            panic!("it is let alone for a while");
        };
        assert_eq!(&*reason, "the interpreter ended\nno module named x");
        let (ours, _theirs) = parcel::pair().unwrap();
        host.is_up(7, ours, "python 3".to_owned());
        assert!(matches!(ask(&host), HostReadiness::Up(up) if up.serial == 7));
    }

    #[test]
    fn one_that_was_ready_is_started_again_and_requests_wait_for_it() {
        let host = host();
        let up = || {
            host.begin_again();
            host.is_up(7, parcel::pair().unwrap().0, String::new());
        };
        assert!(host.is_begun());
        assert!(!host.is_begun());
        up();
        assert_eq!(host.is_gone("killed", false), Some(BACK_OFF));
        assert!(matches!(ask(&host), HostReadiness::Wait));
        up();
        assert_eq!(host.is_gone("killed", false), Some(BACK_OFF * 2));
        // One that has served is not one that cannot.
        up();
        host.tally.ends.fetch_add(1, Ordering::Relaxed);
        assert_eq!(host.is_gone("killed", false), Some(BACK_OFF));
        host.begin_again();
        assert!(host.is_gone("no spawner", true).is_some());
        let counts = [&host.tally.crashes, &host.tally.failures];
        assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [3, 1]);
        let condition = host.condition();
        assert_eq!(condition.name, "restarting");
        assert_eq!(condition.last_failure.as_deref(), Some("no spawner"));
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
