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

use crate::handle::config::ProgramConfig;
use crate::handle::script::lives::LAST_LINES;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::run::config::RunSettings;
use crate::handle::upstream::run::socket::RunSocket;
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
    /// The process at each place, 0 where its number is not known.
    processes: Vec<Option<u32>>,
    /// The tasks that look after them.
    keepers: Vec<Option<Waker>>,
    starts: u64,
    deaths: u64,
    last_lines: VecDeque<String>,
    last_failure: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RunPhase {
    Starting,
    Ready,
    Failed(Arc<str>),
}

/// Why a program takes no requests.
#[derive(Debug)]
pub(crate) enum NotReady {
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
        let program = Arc::new(RunProgram::new(settings, rules, reference)?);
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
        settings: &RunSettings,
        rules: &ProgramConfig,
        reference: ProgramRef,
    ) -> Result<RunProgram, String> {
        let name = settings.name();
        let socket = RunSocket::new(name);
        let socket = socket.map_err(|error| format!("no socket for {name}: {error}"))?;
        let processes = settings.processes();
        Ok(RunProgram {
            arguments: start::arguments(settings, rules)?,
            settings: settings.clone(),
            socket: Arc::new(socket),
            pace: StderrRateLimit::default(),
            thread: AtomicUsize::new(usize::MAX),
            state: Mutex::new(RunState {
                phase: RunPhase::Starting,
                rules: reference,
                waiting: Vec::new(),
                processes: vec![None; processes],
                keepers: vec![None; processes],
                starts: 0,
                deaths: 0,
                last_lines: VecDeque::new(),
                last_failure: None,
            }),
        })
    }

    /// The rules it is started under.
    pub(super) fn rules(&self) -> ProgramRef {
        self.state.lock().rules
    }

    /// A process of it is started at this place.
    pub(super) fn begin(&self, place: usize) {
        let mut state = self.state.lock();
        state.starts += 1;
        state.processes[place] = Some(0);
        if matches!(state.phase, RunPhase::Failed(_)) {
            state.phase = RunPhase::Starting;
            state.last_lines.clear();
        }
    }

    /// The number of the process at this place, and who is to be woken when nobody wants it.
    pub(super) fn look_after(&self, place: usize, pid: Option<u32>, waker: &Waker) {
        let mut state = self.state.lock();
        state.processes[place] = Some(pid.unwrap_or(0));
        let keeper = &mut state.keepers[place];
        if !keeper.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *keeper = Some(waker.clone());
        }
    }

    /// It takes requests.
    pub(super) fn is_ready(&self) -> bool {
        self.state.lock().phase == RunPhase::Ready
    }

    /// It has taken a connection.
    pub(super) fn set_ready(&self) {
        let mut state = self.state.lock();
        state.phase = RunPhase::Ready;
        state.last_lines.clear();
        state.wake_waiting();
    }

    /// The process at this place is gone, or did not come to be.
    pub(super) fn note_end(&self, place: usize, why: &str, exit: Exit) {
        let mut state = self.state.lock();
        state.deaths += 1;
        state.processes[place] = None;
        state.keepers[place] = None;
        let reason: Arc<str> = state.explain(why).into();
        state.last_failure = Some(Arc::clone(&reason));
        if state.processes.iter().any(Option::is_some) {
            return;
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
            self.socket.refuse_waiting();
        }
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
    pub(crate) async fn ready(
        &self,
        request: &Request,
        patience: Duration,
    ) -> Result<(), NotReady> {
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
            RunPhase::Starting => "starting",
            RunPhase::Ready => "ready",
            RunPhase::Failed(_) => "failed",
        };
        let pids = state.processes.iter().flatten().copied();
        RunReport {
            program: self.settings.name().to_owned(),
            state: name.to_owned(),
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
        let keepers = std::mem::take(&mut self.state.lock().keepers);
        keepers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl RunState {
    fn wake_waiting(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
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
