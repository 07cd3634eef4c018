//! A program as all threads see it: whether it takes requests, who waits for it, what it said last.
//!
//! ```text
//!             it has taken a connection
//!   Starting ---------------------------> Ready
//!    ^    ^   |                             |
//!    |    |   | the last process died       | the last process died
//!    |    |   v                             |
//!    |    '- Failed                         |
//!    '--------------------------------------'
//! ```
//!
//! To be recycled is to have others started, at a listener of their own. Once one of these has
//! taken a connection, requests go there; those before end when the last of their connections is
//! gone. Where they cannot start, everything stays as it is.
//!
//! It outlives a reload that leaves its section as it is, and ends when no route asks it and no
//! request is under way any more.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hob_http::Request;
use hob_trace::Mutex;
use hob_trace::metric::ThreadCounters;

use crate::handle::config::ProgramConfig;
use crate::handle::script::lives::LAST_LINES;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::config::{MemberSettings, MemberTerms};
use crate::handle::upstream::fail::TimeLimit;
use crate::handle::upstream::run::config::RunSettings;
use crate::handle::upstream::run::socket::{RunListener, RunSocket};
use crate::handle::upstream::run::start;
use crate::handle::upstream::run::told::RunReport;
use crate::serve::fleet::Fleet;
use hob_keeper::process::{Exit, ProgramRef, Strings};

/// The programs that routes ask.
#[derive(Default)]
pub struct RunPrograms(Mutex<HashMap<String, Weak<RunProgram>>>);

/// A program that hob runs.
#[derive(Debug)]
pub struct RunProgram {
    /// Site and path of its route.
    route: String,
    pub(super) settings: RunSettings,
    pub(super) arguments: Strings,
    pub(crate) socket: Arc<RunSocket>,
    /// How much of what it prints is logged.
    pub(super) pace: StderrRateLimit,
    /// The thread that looks after it; none yet.
    thread: AtomicUsize,
    state: Mutex<RunState>,
}

#[derive(Debug)]
struct RunState {
    phase: RunPhase,
    /// The rules it is started under: those of the last config that was built.
    rules: ProgramRef,
    /// Requests that wait for another phase.
    waiting: Vec<Waker>,
    /// Its processes.
    processes: Vec<RunProcess>,
    /// Where those listen that are to take the places of others, while they start.
    next: Option<Arc<RunListener>>,
    starts: u64,
    deaths: u64,
    last_lines: VecDeque<String>,
    last_failure: Option<Arc<str>>,
}

/// A process of a program.
#[derive(Debug)]
struct RunProcess {
    at: RunPlace,
    /// 0 where its number is not known.
    pid: u32,
    /// The task that looks after it.
    keeper: Option<Waker>,
}

/// Where a process listens, and its place among those who do.
#[derive(Clone, Debug)]
pub(super) struct RunPlace {
    pub(super) listener: Arc<RunListener>,
    pub(super) index: usize,
}

impl RunPlace {
    fn is(&self, other: &RunPlace) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.listener, &other.listener)
    }
}

/// Whether a process that ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterEnd {
    Again,
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RunPhase {
    Starting,
    Ready,
    Failed(Arc<str>),
}

/// Why a request was given to no program, and what its client is told.
#[derive(Debug)]
pub(crate) struct NotTaken {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
    /// What it said last.
    pub(crate) why: Arc<str>,
}

/// Why a program takes no requests.
#[derive(Debug)]
enum NotReady {
    /// It could not start: why, and what it printed last.
    Failed(Arc<str>),
    /// It has not started in time; why it did not before, if it did not.
    Late(Arc<str>),
}

impl RunPrograms {
    /// The program of this name, or a new one.
    ///
    /// # Errors
    /// There is no socket for it, or its arguments are none.
    pub(crate) fn find(
        &self,
        of: &str,
        settings: &RunSettings,
        (rules, reference): (&ProgramConfig, ProgramRef),
    ) -> Result<Arc<RunProgram>, String> {
        // Where its rules stand in the config is no part of it.
        let same = RunSettings {
            rules: 0,
            ..settings.clone()
        };
        let name = format!("{of} {same:?} {rules:?}");
        let mut programs = self.0.lock();
        programs.retain(|_, program| program.strong_count() > 0);
        if let Some(program) = programs.get(&name).and_then(Weak::upgrade) {
            program.state.lock().rules = reference;
            return Ok(program);
        }
        let program = Arc::new(RunProgram::new(of, settings, rules, reference)?);
        programs.insert(name, Arc::downgrade(&program));
        Ok(program)
    }

    /// Those that some route asks, by name.
    fn all(&self) -> Vec<Arc<RunProgram>> {
        let programs = self.0.lock();
        let mut all: Vec<_> = programs.iter().collect();
        all.sort_by_key(|(name, _)| *name);
        all.into_iter()
            .filter_map(|(_, program)| program.upgrade())
            .collect()
    }

    /// Has every program started that is new: called when a config has come into force.
    pub fn tend(&self, fleet: &Fleet) {
        let all = self.all();
        let home_of = |program: &RunProgram| program.thread.load(Ordering::Relaxed);
        for program in all.iter().filter(|one| home_of(one) == usize::MAX) {
            let on = |thread| all.iter().filter(|one| home_of(one) == thread).count();
            let Some(thread) = fleet.choose_thread(on) else {
                return;
            };
            program.thread.store(thread, Ordering::Relaxed);
            fleet.start_run(thread, Arc::clone(program));
        }
    }

    /// Has others take the places of the processes of each that this means: by what runs, or by
    /// its route, with or without the `/*` at its end. Returns their process ids, of each.
    pub fn recycle(&self, wanted: &str, fleet: &Fleet) -> Vec<Result<Vec<u32>, String>> {
        let all = self.all().into_iter();
        let meant = all.filter(|program| program.is_of(wanted));
        let recycled = meant.map(|program| {
            let pids = program.recycle()?;
            fleet.start_run(program.thread.load(Ordering::Relaxed), program);
            Ok(pids)
        });
        recycled.collect()
    }

    /// How those are called that could be meant.
    pub fn names(&self) -> Vec<String> {
        let all = self.all().into_iter();
        all.map(|program| program.full_name()).collect()
    }

    /// What is told of the one that listens there.
    pub(crate) fn told(&self, address: &MemberAddress) -> Option<RunReport> {
        let MemberAddress::Run(socket) = address else {
            return None;
        };
        let mut all = self.all().into_iter();
        all.find_map(|one| (one.socket == *socket).then(|| one.told()))
    }

    /// Process ids of those that run, by what they are.
    pub fn pids(&self) -> Vec<(String, Vec<u32>)> {
        let all = self.all().into_iter();
        all.map(|program| (program.settings.name().to_owned(), program.told().pids))
            .collect()
    }
}

impl RunProgram {
    fn new(
        route: &str,
        settings: &RunSettings,
        rules: &ProgramConfig,
        reference: ProgramRef,
    ) -> Result<RunProgram, String> {
        let name = settings.name();
        let socket = RunSocket::new(name);
        let socket = socket.map_err(|error| format!("no socket for {name}: {error}"))?;
        Ok(RunProgram {
            route: route.to_owned(),
            arguments: start::arguments(settings, rules)?,
            settings: settings.clone(),
            socket: Arc::new(socket),
            pace: StderrRateLimit::default(),
            thread: AtomicUsize::new(usize::MAX),
            state: Mutex::new(RunState {
                phase: RunPhase::Starting,
                rules: reference,
                waiting: Vec::new(),
                processes: Vec::new(),
                next: None,
                starts: 0,
                deaths: 0,
                last_lines: VecDeque::new(),
                last_failure: None,
            }),
        })
    }

    /// What an upstream has as its one member.
    pub(crate) fn member(&self) -> MemberSettings {
        MemberTerms::default().at(MemberAddress::Run(Arc::clone(&self.socket)))
    }

    /// The rules it is started under.
    pub(super) fn rules(&self) -> ProgramRef {
        self.state.lock().rules
    }

    fn path(&self) -> &str {
        self.route.rsplit_once(' ').map_or("", |(_, path)| path)
    }

    fn is_of(&self, wanted: &str) -> bool {
        let plain = |path: &str| path.trim_end_matches('*').trim_end_matches('/').to_owned();
        let is_path = wanted.starts_with('/') && plain(wanted) == plain(self.path());
        let name = self.settings.name();
        is_path || wanted == name || wanted == self.full_name()
    }

    /// By which it is told from others.
    fn full_name(&self) -> String {
        format!("{} {}", self.path(), self.settings.name())
    }

    /// Others are to take the places of its processes, whose ids it returns.
    fn recycle(&self) -> Result<Vec<u32>, String> {
        let name = self.settings.name();
        let mut state = self.state.lock();
        if state.next.is_some() {
            return Err(format!(
                "others are starting already that take the place of {name}"
            ));
        }
        let pids = state.pids(&self.socket.current());
        if pids.is_empty() {
            return Err(format!(
                "no process of {name} is there: it is started anyway"
            ));
        }
        let next = RunListener::new().map_err(|error| format!("no socket for {name}: {error}"))?;
        state.next = Some(next);
        Ok(pids)
    }

    /// Where those listen that are to be started.
    pub(super) fn listener_to_start(&self) -> Arc<RunListener> {
        let next = self.state.lock().next.clone();
        next.unwrap_or_else(|| self.socket.current())
    }

    fn is_current(&self, at: &RunPlace) -> bool {
        Arc::ptr_eq(&at.listener, &self.socket.current())
    }

    /// A process of it is started at this place.
    pub(super) fn begin(&self, at: &RunPlace) {
        let mut state = self.state.lock();
        state.starts += 1;
        state.processes.push(RunProcess {
            at: at.clone(),
            pid: 0,
            keeper: None,
        });
        if matches!(state.phase, RunPhase::Failed(_)) && self.is_current(at) {
            state.phase = RunPhase::Starting;
            state.last_lines.clear();
        }
    }

    /// The number of the process at this place, and who is to be woken when nobody wants it.
    pub(super) fn look_after(&self, at: &RunPlace, pid: Option<u32>, waker: &Waker) {
        let mut state = self.state.lock();
        let mut processes = state.processes.iter_mut();
        let Some(process) = processes.find(|one| one.at.is(at)) else {
            return;
        };
        process.pid = pid.unwrap_or(0);
        let keeper = &mut process.keeper;
        if !keeper.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *keeper = Some(waker.clone());
        }
    }

    /// It takes requests.
    pub(super) fn is_ready(&self) -> bool {
        self.state.lock().phase == RunPhase::Ready
    }

    /// Those who listen there take connections, or nobody wants to know.
    pub(super) fn is_ready_at(&self, at: &RunPlace) -> bool {
        let state = self.state.lock();
        match &state.next {
            Some(next) if Arc::ptr_eq(next, &at.listener) => false,
            _ => !self.is_current(at) || state.phase == RunPhase::Ready,
        }
    }

    /// Who listens there has taken a connection: requests go there.
    pub(super) fn set_ready(&self, at: &RunPlace) {
        let mut state = self.state.lock();
        let is_next = |next: &Arc<RunListener>| Arc::ptr_eq(next, &at.listener);
        if state.next.as_ref().is_some_and(is_next) {
            state.next = None;
            self.socket.lead_to(Arc::clone(&at.listener));
        }
        state.phase = RunPhase::Ready;
        state.last_lines.clear();
        state.wake_waiting();
    }

    /// The process at this place is gone, or did not come to be. Whether another one takes it.
    pub(super) fn note_end(&self, at: &RunPlace, why: &str, exit: Exit) -> AfterEnd {
        let mut state = self.state.lock();
        state.processes.retain(|one| !one.at.is(at));
        // It was told to end, or is one of several that did not take the places of others.
        if at.listener.is_left() {
            return AfterEnd::Never;
        }
        state.deaths += 1;
        let reason: Arc<str> = state.explain(why).into();
        state.last_failure = Some(Arc::clone(&reason));
        if !self.is_current(at) {
            state.next = None;
            drop(state);
            at.listener.leave();
            return AfterEnd::Never;
        }
        if !state.pids(&at.listener).is_empty() {
            return AfterEnd::Again;
        }
        // One that was ready, or is not to blame, is waited for.
        let was_ready = state.phase == RunPhase::Ready;
        state.phase = match was_ready || exit.is_lack() {
            true => RunPhase::Starting,
            false => RunPhase::Failed(reason),
        };
        let is_failed = matches!(state.phase, RunPhase::Failed(_));
        state.wake_waiting();
        drop(state);
        if is_failed {
            at.listener.refuse_waiting();
        }
        AfterEnd::Again
    }

    /// Remembers what it said.
    pub(super) fn note_line(&self, line: &str) {
        let mut state = self.state.lock();
        if state.last_lines.len() == LAST_LINES {
            state.last_lines.pop_front();
        }
        state.last_lines.push_back(line.to_owned());
    }

    /// Waits until it takes requests, for at most `patience`.
    pub(crate) async fn take(
        &self,
        request: &Request,
        counters: &ThreadCounters,
        patience: Duration,
    ) -> Result<(), NotTaken> {
        let (status, reason, why) = match self.ready(request, patience).await {
            Ok(()) => return Ok(()),
            Err(NotReady::Failed(why)) => (502, "the program does not start", why),
            Err(NotReady::Late(why)) => {
                TimeLimit::Connect.count(counters);
                let reason = "limits: timeout.connect: the program did not start in time";
                (503, reason, why)
            }
        };
        Err(NotTaken {
            status,
            reason,
            why,
        })
    }

    async fn ready(&self, request: &Request, patience: Duration) -> Result<(), NotReady> {
        if self.is_ready() {
            return Ok(());
        }
        let limit = request.reactor().timer();
        limit.set(patience);
        poll_fn(|cx| match self.poll_ready(cx) {
            Poll::Ready(ready) => Poll::Ready(ready),
            Poll::Pending => limit.poll_elapsed(cx).map(|()| {
                let state = self.state.lock();
                Err(NotReady::Late(
                    state.last_failure.clone().unwrap_or_default(),
                ))
            }),
        })
        .await
    }

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), NotReady>> {
        let mut state = self.state.lock();
        match &state.phase {
            RunPhase::Ready => return Poll::Ready(Ok(())),
            RunPhase::Failed(why) => return Poll::Ready(Err(NotReady::Failed(Arc::clone(why)))),
            RunPhase::Starting => {}
        }
        let waker = cx.waker();
        if !state.waiting.iter().any(|known| known.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
        Poll::Pending
    }

    /// What is told of it.
    pub(crate) fn told(&self) -> RunReport {
        let state = self.state.lock();
        let name = match state.phase {
            _ if state.next.is_some() => "recycling",
            RunPhase::Starting => "starting",
            RunPhase::Ready => "ready",
            RunPhase::Failed(_) => "failed",
        };
        let pids = state.processes.iter().map(|one| one.pid);
        RunReport {
            name: self.full_name(),
            program: self.settings.name().to_owned(),
            state: name.to_owned(),
            children: self.settings.children,
            pids: pids.filter(|pid| *pid != 0).collect(),
            starts: state.starts,
            deaths: state.deaths,
            last_failure: state.last_failure.as_deref().map(str::to_owned),
        }
    }
}

impl Drop for RunProgram {
    /// Nobody asks it: its keepers see that and end it.
    fn drop(&mut self) {
        let processes = std::mem::take(&mut self.state.lock().processes);
        let keepers = processes.into_iter().filter_map(|one| one.keeper);
        keepers.for_each(Waker::wake);
    }
}

impl RunState {
    fn wake_waiting(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Those who listen there; 0 where a number is not known.
    fn pids(&self, listener: &Arc<RunListener>) -> Vec<u32> {
        let there = self.processes.iter();
        let there = there.filter(|one| Arc::ptr_eq(&one.at.listener, listener));
        there.map(|one| one.pid).collect()
    }

    fn explain(&self, why: &str) -> String {
        let lines = self.last_lines.iter().map(String::as_str);
        [why]
            .into_iter()
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
