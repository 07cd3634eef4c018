//! The keeper's loop: signals, messages, exits, time; then wait for the next of them.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, WaitStatus, getrlimit, set_child_subreaper,
    set_dumpable_behavior, setrlimit,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};

use super::backoff::Backoff;
use super::change::{Ask, Change};
use super::children::{self, Child, Children, Role, State, ending, pid_number};
use super::control::{self, KeptControl};
use super::listeners::{KeptListener, announcement};
use super::settings::Settings;
use super::{Failure, Options, handover, logs};
use crate::life::channel::{ToKeeper, ToServer, Wish};
use crate::life::notify::Notify;
use crate::life::papers::Facts;
use crate::life::parcel::NotReceived;
use crate::life::signals::{self, Signals};

/// Most messages taken from one child in one turn.
const MESSAGES_PER_TURN_MAX: usize = 64;
/// A server that is not ready after this is killed and started again.
const START_LIMIT: Duration = Duration::from_secs(60);
/// A child that closed its channel has this long to end.
const CLOSED_LIMIT: Duration = Duration::from_secs(5);

/// Where the keeper is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    Running,
    Stopping,
}

/// The first process.
pub(super) struct Keeper {
    pub(super) options: Options,
    pub(super) signals: Signals,
    pub(super) notify: Notify,
    pub(super) settings: Settings,
    pub(super) control: Option<KeptControl>,
    /// Said at the start and again by `hob status`.
    pub(super) control_warning: Option<String>,
    pub(super) children: Children,
    /// The server that serves, or will.
    pub(super) current: Option<Pid>,
    pub(super) phase: Phase,
    /// The one change under way.
    pub(super) change: Option<Change>,
    /// Changes that signals asked for while another was under way.
    pub(super) is_reload_wanted: bool,
    pub(super) is_upgrade_wanted: bool,
    pub(super) backoff: Backoff,
    pub(super) restart_at: Option<Instant>,
    pub(super) started: SystemTime,
    pub(super) servers_started: u64,
    pub(super) finished: Option<Result<(), Failure>>,
}

/// Runs the first process until it is stopped.
///
/// # Errors
/// When it cannot start, or its first server does not; `Failure::exit_code` says which.
pub fn run(options: Options) -> Result<(), Failure> {
    let signals = Signals::register(signals::OF_KEEPER).map_err(system("handle signals"))?;
    set_child_subreaper(rustix::process::Pid::from_raw(1)).map_err(system("adopt orphans"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(system("hide memory"))?;
    raise_descriptor_limit();
    let mut keeper = match options.is_resumed {
        true => handover::take_over(options, signals)?,
        false => begin(options, signals)?,
    };
    keeper.turn_until_finished()
}

fn begin(options: Options, signals: Signals) -> Result<Keeper, Failure> {
    let sources = (options.sources)().map_err(|errors| Failure::Config(errors.to_string()))?;
    let settings = Settings::build(sources, 1, &[], &options.inherited)?;
    let opened = control::open(&options.control, &settings.config);
    let (control, control_warning) = opened.inspect_err(|_| {
        super::listeners::give_up_new(&settings.listeners, &[]);
    })?;
    for warning in settings.warnings.iter().chain(&control_warning) {
        tracing::warn!("{warning}");
    }
    let mut keeper = Keeper {
        notify: Notify::to(options.notify.as_ref()),
        options,
        signals,
        settings,
        control,
        control_warning,
        children: Children::default(),
        current: None,
        phase: Phase::Starting,
        change: None,
        is_reload_wanted: false,
        is_upgrade_wanted: false,
        backoff: Backoff::default(),
        restart_at: None,
        started: SystemTime::now(),
        servers_started: 0,
        finished: None,
    };
    if let Err(failure) = keeper.start_server(START_LIMIT) {
        keeper.remove_files();
        return Err(failure);
    }
    Ok(keeper)
}

impl Keeper {
    pub(super) fn turn_until_finished(&mut self) -> Result<(), Failure> {
        loop {
            for signal in self.signals.take() {
                self.handle_signal(signal);
            }
            for pid in self.children.pids() {
                self.handle_messages(pid);
            }
            for (pid, status) in children::reap() {
                // Last words may have come after the messages above were taken.
                self.handle_messages(pid);
                self.handle_exit(pid, status);
            }
            self.handle_time(Instant::now());
            if let Some(result) = self.finished.take() {
                self.remove_files();
                return result;
            }
            self.wait();
        }
    }

    fn handle_signal(&mut self, signal: i32) {
        match signal {
            SIGHUP => self.reload(None),
            SIGUSR2 => self.upgrade(None),
            SIGINT if self.phase == Phase::Stopping => {
                tracing::warn!("stopping at once");
                self.children.iter_mut().for_each(Child::kill);
            }
            SIGTERM | SIGINT => self.stop(),
            _ => {}
        }
    }

    fn handle_messages(&mut self, pid: Pid) {
        for _ in 0..MESSAGES_PER_TURN_MAX {
            let Some(child) = self.children.find(pid) else {
                return;
            };
            let Some(end) = &mut child.end else {
                return;
            };
            // An end that is gone shows when it is read.
            let _ = end.flush();
            let message = end
                .receive()
                .and_then(|parcel| ToKeeper::decode(parcel).map_err(NotReceived::Malformed));
            match message {
                Ok(message) => self.handle_message(pid, message),
                Err(NotReceived::Nothing) => return,
                Err(NotReceived::Gone) => {
                    child.end = None;
                    let limit = Instant::now() + CLOSED_LIMIT;
                    child.kill_at = Some(child.kill_at.map_or(limit, |at| at.min(limit)));
                    return;
                }
                Err(NotReceived::Malformed(error)) => {
                    tracing::error!(pid = pid_number(pid), %error, "killing a server that lies");
                    child.end = None;
                    child.kill();
                    return;
                }
            }
        }
    }

    fn handle_message(&mut self, pid: Pid, message: ToKeeper) {
        match message {
            ToKeeper::Ready => self.handle_ready(pid),
            ToKeeper::StartFailed { text } => {
                if let Some(child) = self.children.find(pid) {
                    child.last_words = Some(text);
                }
            }
            ToKeeper::Reloaded { generation } => self.handle_reloaded(pid, generation),
            ToKeeper::ReloadFailed { text } => self.handle_reload_failed(pid, &text),
            ToKeeper::Ask { wish, request } => {
                let ask = Some(Ask { pid, request });
                match wish {
                    Wish::Reload => self.reload(ask),
                    Wish::Upgrade => self.upgrade(ask),
                    Wish::Stop => {
                        self.answer(ask, true, "stopping");
                        self.stop();
                    }
                }
            }
            ToKeeper::Rotate { index } => self.rotate(pid, index),
            ToKeeper::Leaving => self.handle_leaving(pid),
            ToKeeper::Drained => {
                tracing::debug!(pid = pid_number(pid), "drained");
            }
        }
    }

    fn handle_ready(&mut self, pid: Pid) {
        let Some(child) = self.children.find(pid) else {
            return;
        };
        if child.state != State::Starting {
            return;
        }
        child.state = State::Serving;
        child.kill_at = None;
        tracing::info!(pid = pid_number(pid), "server ready");
        if self.phase == Phase::Starting {
            self.phase = Phase::Running;
            announce(&self.settings.listeners, &[]);
            self.notify.ready();
        }
        self.finish_upgrade(pid);
    }

    /// A server that was told to end by somebody else: it drains on its own account, and another
    /// one takes its place while it does.
    fn handle_leaving(&mut self, pid: Pid) {
        let drain = self.settings.config.drain;
        let now = Instant::now();
        if let Some(child) = self.children.find(pid) {
            child.drain(drain, Duration::ZERO, now);
        }
        if self.current == Some(pid) && self.phase == Phase::Running {
            tracing::warn!(
                pid = pid_number(pid),
                "server was told to end by another process"
            );
            self.current = None;
            self.lose_change("the server was told to end");
            self.restart_at = Some(now);
        }
    }

    fn handle_exit(&mut self, pid: Pid, status: WaitStatus) {
        let Some(child) = self.children.remove(pid) else {
            tracing::debug!(pid = pid_number(pid), "reaped an orphan");
            return;
        };
        let reason = ending(status);
        if child.role == Role::Check {
            self.handle_checked(pid, status);
            return;
        }
        let was_current = self.current == Some(pid);
        if was_current {
            self.current = None;
        }
        match self.phase {
            Phase::Stopping => self.finish_if_empty(),
            Phase::Starting => {
                let failure = children::first_start_failure(status, child.last_words);
                self.finished = Some(Err(failure));
            }
            Phase::Running if was_current => self.handle_loss(&child, &reason),
            Phase::Running => {
                tracing::info!(pid = pid_number(pid), reason, "old server ended");
            }
        }
    }

    /// The server is gone and nobody wanted that.
    fn handle_loss(&mut self, child: &Child, reason: &str) {
        let last_words = child.last_words.as_deref().unwrap_or_default();
        tracing::error!(
            pid = pid_number(child.pid),
            reason,
            last_words,
            "server ended"
        );
        if self.fall_back(last_words, reason) {
            return;
        }
        self.lose_change(&format!("the server ended by {reason}"));
        let now = Instant::now();
        let wait = self
            .backoff
            .after_death(now.saturating_duration_since(child.started));
        self.restart_at = now.checked_add(wait);
        if !wait.is_zero() {
            tracing::warn!(
                wait_ms = wait.as_millis(),
                "starting another server after a pause"
            );
        }
    }

    fn handle_time(&mut self, now: Instant) {
        for child in self.children.iter_mut() {
            if child.kill_at.is_some_and(|at| at <= now) {
                let (pid, role) = (pid_number(child.pid), child.role.name());
                tracing::warn!(pid, role, state = ?child.state, "out of time; killing");
                child.kill();
            }
        }
        self.answer_late_reload(now);
        if self.phase != Phase::Running {
            return;
        }
        if self.restart_at.is_some_and(|at| at <= now) {
            self.restart_at = None;
            if let Err(failure) = self.start_server(START_LIMIT) {
                tracing::error!(%failure, "no server started");
                self.restart_at = now.checked_add(self.backoff.after_death(Duration::ZERO));
            }
        }
        if self.change.is_none() && std::mem::take(&mut self.is_reload_wanted) {
            self.reload(None);
        }
        if self.change.is_none() && std::mem::take(&mut self.is_upgrade_wanted) {
            self.upgrade(None);
        }
    }

    /// Sleeps until a signal, a message, or the next thing that is due.
    fn wait(&mut self) {
        let mut polled = vec![PollFd::from_borrowed_fd(
            self.signals.as_fd(),
            PollFlags::IN,
        )];
        for end in self.children.iter().filter_map(|child| child.end.as_ref()) {
            let mut events = PollFlags::IN;
            events.set(PollFlags::OUT, end.has_waiting());
            polled.push(PollFd::from_borrowed_fd(end.socket(), events));
        }
        let timeout = self.next_due().map(|due| {
            let left = due.saturating_duration_since(Instant::now());
            // Up, so that what is due is due when we wake.
            Timespec::try_from(left + Duration::from_millis(1)).unwrap_or(Timespec {
                tv_sec: 3600,
                tv_nsec: 0,
            })
        });
        // Interrupted or not, the next turn looks at everything.
        let _ = poll(&mut polled, timeout.as_ref());
    }

    fn next_due(&self) -> Option<Instant> {
        let kills = self.children.iter().filter_map(|child| child.kill_at);
        kills
            .chain(self.restart_at)
            .chain(self.late_reload_due())
            .min()
    }

    /// Starts a server on the present settings; it becomes the current one.
    pub(super) fn start_server(&mut self, limit: Duration) -> Result<(), Failure> {
        self.servers_started += 1;
        let name = self
            .options
            .arguments
            .first()
            .cloned()
            .unwrap_or_else(|| "hob".into());
        let outfit = self
            .outfit(&self.settings)
            .map_err(system("prepare the server"))?;
        let mut child = children::start_server(&name, &self.options.environment, limit)
            .map_err(system("start the server"))?;
        child.send(ToServer::Start(outfit));
        tracing::info!(pid = pid_number(child.pid), "server started");
        self.current = Some(child.pid);
        self.children.add(child);
        Ok(())
    }

    pub(super) fn outfit(
        &self,
        settings: &Settings,
    ) -> std::io::Result<crate::life::channel::Outfit> {
        let mut warnings = settings.warnings.clone();
        warnings.extend(self.control_warning.clone());
        let facts = Facts {
            keeper_pid: std::process::id(),
            keeper_uid: rustix::process::geteuid().as_raw(),
            started: self.started,
            servers_started: self.servers_started,
            addresses: settings
                .listeners
                .iter()
                .map(|listener| listener.shown.clone())
                .collect(),
            warnings,
        };
        settings.outfit(facts, self.control.as_ref().map(|control| &control.socket))
    }

    pub(super) fn stop(&mut self) {
        if self.phase == Phase::Stopping {
            return;
        }
        self.phase = Phase::Stopping;
        self.restart_at = None;
        self.notify.stopping();
        self.lose_change("hob is stopping");
        let deadline = self.settings.config.drain;
        tracing::info!(deadline_ms = deadline.as_millis(), "stopping");
        let now = Instant::now();
        for child in self.children.iter_mut() {
            match child.role {
                Role::Server => child.drain(deadline, Duration::ZERO, now),
                Role::Check => child.kill(),
            }
        }
        self.finish_if_empty();
    }

    fn finish_if_empty(&mut self) {
        if self.children.count(Role::Server) == 0 {
            self.finished = Some(Ok(()));
        }
    }

    fn rotate(&mut self, pid: Pid, index: u16) {
        let Some(log) = self.settings.config.logs.get(usize::from(index)) else {
            return;
        };
        if self.current != Some(pid) {
            return;
        }
        match logs::rotate(log).and_then(|file| Ok((file.try_clone()?, file))) {
            Ok((file, kept)) => self.replace_log(index, file, kept),
            Err(error) => tracing::error!(index, %error, "access log not rotated"),
        }
    }

    pub(super) fn replace_log(&mut self, index: u16, file: OwnedFd, kept: OwnedFd) {
        for (known, log) in &mut self.settings.logs {
            if *known == index {
                *log = kept;
                break;
            }
        }
        if let Some(child) = self.current.and_then(|pid| self.children.find(pid)) {
            child.send(ToServer::LogFile { index, file });
        }
    }

    /// Removes what only a running hob should leave in the file system.
    fn remove_files(&self) {
        super::listeners::give_up_new(&self.settings.listeners, &[]);
        if let Some(control) = &self.control {
            control.file.remove();
        }
    }
}

/// Prints the address of every listener that was not there before.
pub(super) fn announce(listeners: &[Rc<KeptListener>], before: &[Rc<KeptListener>]) {
    let mut out = std::io::stdout().lock();
    for listener in listeners {
        if !before.iter().any(|known| known.shown == listener.shown) {
            // Nobody may be reading; serving goes on.
            let _ = writeln!(out, "{}", announcement(listener));
        }
    }
    let _ = out.flush();
}

pub(super) fn system<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Failure {
    move |error| Failure::System(format!("cannot {what}: {error}"))
}

/// Every connection is a descriptor; the hard limit is what the administrator allows.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
