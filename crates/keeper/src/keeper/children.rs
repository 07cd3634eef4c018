//! The keeper's children: a small table of roles and a row for every process that runs.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

use super::KeeperFailure;
use super::settings::OpenedConfig;
use crate::channel::{ChannelEnd, ToServer};
use crate::exec::OWN_PROGRAM;
use crate::parcel::{self, Parcel};
use crate::process::orders::SpawnerOrder;

/// Most exits taken in one turn of the loop.
const EXITS_PER_TURN_MAX: usize = 256;
/// Variables that are for the keeper alone.
const KEEPERS_VARIABLES: [&str; 5] = [
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "LISTEN_PIDFDID",
];

/// What a child is for. A new kind of child joins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildRole {
    /// Serves.
    Server,
    /// Starts programs.
    Spawner,
    /// Looks whether the program of an upgrade understands the config; ends by itself.
    Check,
    /// Compresses a rotated log; ends by itself.
    Compress,
    /// Gets certificates from an authority.
    Acme,
}

impl ChildRole {
    /// For messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            ChildRole::Server => "server",
            ChildRole::Spawner => "spawner",
            ChildRole::Check => "check of the new program",
            ChildRole::Compress => "compression of a log",
            ChildRole::Acme => "acme",
        }
    }
}

/// Where a child is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildState {
    /// Not ready yet.
    Starting,
    /// At work.
    Serving,
    /// Finishes what it has and ends.
    Draining,
}

/// One child.
pub(super) struct Child {
    pub(super) role: ChildRole,
    pub(super) pid: Pid,
    /// The channel; none for a child without one, or when it was closed.
    pub(super) end: Option<ChannelEnd>,
    pub(super) state: ChildState,
    pub(super) started: Instant,
    /// When it is killed unless something changes that.
    pub(super) kill_at: Option<Instant>,
    /// Why it said it could not start.
    pub(super) last_words: Option<String>,
    /// Of a server: the spawner it has an end to.
    pub(super) spawner: Option<Pid>,
    /// Of a server: how many there were, this one included; none when an older program started it.
    pub(super) number: Option<u64>,
    /// Of a server: the file of the socket at which the next one asks it for visits.
    pub(super) visits: Option<OwnedFd>,
}

impl Child {
    /// Sends a message, if there is still somebody who listens; a child that takes nothing is
    /// killed, because it would never hear that it should end.
    pub(super) fn send(&mut self, message: ToServer) {
        self.post(message.encode());
    }

    /// The same to a spawner.
    pub(super) fn order(&mut self, order: SpawnerOrder) {
        self.post(order.encode());
    }

    pub(super) fn post(&mut self, parcel: Parcel) {
        let Some(end) = &mut self.end else {
            return;
        };
        match end.send(parcel) {
            Ok(()) | Err(parcel::NotSent::Gone) => {}
            Err(reason @ (parcel::NotSent::Full | parcel::NotSent::TooLarge)) => {
                tracing::error!(
                    pid = pid_number(self.pid),
                    ?reason,
                    "message not taken; killing"
                );
                self.kill();
            }
        }
    }

    /// Asks a server to finish within a deadline; it is killed some time after that, which is
    /// longer by what its programs may take to end.
    pub(super) fn drain(&mut self, drain: Drain, now: Instant) {
        /// Between the deadline, when the server cuts off what is left, and the kill.
        const SLACK: Duration = Duration::from_secs(3);
        let Drain {
            deadline,
            grace,
            programs,
        } = drain;
        self.state = ChildState::Draining;
        let most = deadline.saturating_add(programs).saturating_add(SLACK);
        self.kill_at = now.checked_add(most);
        self.send(ToServer::Drain { deadline, grace });
    }

    /// Ends it at once. Its exit is then reaped like any other.
    pub(super) fn kill(&mut self) {
        self.kill_at = None;
        // A pid stays ours until it is reaped, and reaped children have no row.
        if let Err(error) = kill_process(self.pid, Signal::KILL) {
            tracing::error!(pid = pid_number(self.pid), %error, "cannot kill");
        }
    }
}

/// How long a server may take to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// Until it cuts off what is under way.
    pub(super) deadline: Duration,
    /// How long idle connections may stay.
    pub(super) grace: Duration,
    /// How long programs that stay may take to end after that.
    pub programs: Duration,
}

impl Drain {
    /// As these settings have it.
    pub(super) fn of(settings: &OpenedConfig) -> Drain {
        Drain {
            deadline: settings.config.drain,
            grace: Duration::ZERO,
            programs: settings.grace,
        }
    }
}

/// All children.
#[derive(Default)]
pub(super) struct Children {
    rows: Vec<Child>,
}

impl Children {
    pub(super) fn add(&mut self, child: Child) {
        self.rows.push(child);
    }

    pub(super) fn find(&mut self, pid: Pid) -> Option<&mut Child> {
        self.rows.iter_mut().find(|child| child.pid == pid)
    }

    pub(super) fn remove(&mut self, pid: Pid) -> Option<Child> {
        let position = self.rows.iter().position(|child| child.pid == pid)?;
        Some(self.rows.remove(position))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Child> {
        self.rows.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        self.rows.iter_mut()
    }

    pub(super) fn pids(&self) -> Vec<Pid> {
        self.rows.iter().map(|child| child.pid).collect()
    }

    /// Which servers live, by the last eight bits of their numbers; all may when one has none.
    pub(super) fn servers(&self) -> Vec<u8> {
        let mut servers = self.iter().filter(|child| child.role == ChildRole::Server);
        let numbers = servers.try_fold(Vec::new(), |mut numbers, child| {
            numbers.push((child.number? & 0xff) as u8);
            Some(numbers)
        });
        numbers.unwrap_or_else(|| (0..=u8::MAX).collect())
    }

    pub(super) fn count(&self, role: ChildRole) -> usize {
        self.rows.iter().filter(|child| child.role == role).count()
    }
}

/// Everybody who ended since the last look, orphans that came to us included.
pub(super) fn reap() -> Vec<(Pid, WaitStatus)> {
    let mut exits = Vec::new();
    while exits.len() < EXITS_PER_TURN_MAX {
        // Whatever process group they are in: spawners, and what programs left, have others.
        match wait(WaitOptions::NOHANG) {
            Ok(Some(exit)) => exits.push(exit),
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => break,
        }
    }
    exits
}

/// A new server or spawner of our own program, with the channel as its standard input.
pub(super) fn start_own(
    role: ChildRole,
    name: &OsString,
    environment: &[(OsString, OsString)],
    start_limit: Duration,
) -> io::Result<Child> {
    let (ours, theirs) = parcel::pair()?;
    let mut command = Command::new(OWN_PROGRAM);
    command.arg0(name).arg(role.name());
    command
        .env_clear()
        .envs(for_child(environment))
        .stdin(theirs);
    let now = Instant::now();
    Ok(Child {
        role,
        pid: spawn(&mut command)?,
        end: Some(ChannelEnd::of_keeper(ours)),
        state: ChildState::Starting,
        started: now,
        kill_at: now.checked_add(start_limit),
        last_words: None,
        spawner: None,
        number: None,
        visits: None,
    })
}

/// The program of an upgrade, asked whether it understands our arguments, our handover, and the
/// sources on its standard input.
pub(super) fn start_check(
    program: &Path,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
    sources: OwnedFd,
    output: &OwnedFd,
    limit: Duration,
) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(without_resume(arguments).skip(1));
    command.arg(format!("--handover-check={}", super::HANDOVER_VERSION));
    command.env_clear().envs(for_child(environment));
    command
        .stdin(sources)
        .stdout(Stdio::null())
        .stderr(output.try_clone()?);
    let now = Instant::now();
    Ok(Child {
        role: ChildRole::Check,
        pid: spawn(&mut command)?,
        end: None,
        state: ChildState::Serving,
        started: now,
        kill_at: now.checked_add(limit),
        last_words: None,
        spawner: None,
        number: None,
        visits: None,
    })
}

/// Our own program, compressing a file that a log was.
pub(super) fn start_compress(
    path: &Path,
    environment: &[(OsString, OsString)],
) -> io::Result<Child> {
    let mut command = Command::new(OWN_PROGRAM);
    command.arg("compress-log").arg(path);
    command
        .env_clear()
        .envs(for_child(environment))
        .stdin(Stdio::null());
    Ok(Child {
        role: ChildRole::Compress,
        pid: spawn(&mut command)?,
        end: None,
        state: ChildState::Serving,
        started: Instant::now(),
        // No limit: it takes as long as the file is large, and nobody waits for it.
        kill_at: None,
        last_words: None,
        spawner: None,
        number: None,
        visits: None,
    })
}

/// The arguments of the first start, which an upgrade must repeat.
pub(super) fn without_resume(arguments: &[OsString]) -> impl Iterator<Item = &OsString> {
    arguments.iter().filter(|argument| *argument != "--resume")
}

/// The environment without what is for this process only.
pub(super) fn without_keepers(
    environment: &[(OsString, OsString)],
    keep: &[&str],
) -> Vec<(OsString, OsString)> {
    let is_ours = |name: &OsString| {
        KEEPERS_VARIABLES
            .iter()
            .any(|ours| name == ours && !keep.contains(ours))
    };
    environment
        .iter()
        .filter(|(name, _)| !is_ours(name))
        .cloned()
        .collect()
}

fn for_child(environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    without_keepers(environment, &[])
}

// Waited for by `reap`, which takes every child.
#[allow(clippy::zombie_processes)]
fn spawn(command: &mut Command) -> io::Result<Pid> {
    let child = command.spawn()?;
    let number = i32::try_from(child.id()).map_err(io::Error::other)?;
    Pid::from_raw(number).ok_or(io::Error::other("a child without a process id"))
}

/// A pid as people and logs have it.
pub(super) fn pid_number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// How a process ended, in words.
pub(super) fn ending(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("signal {signal} ({name})"),
            None => format!("signal {signal}"),
        },
        (None, None) => "an unknown reason".to_owned(),
    }
}

/// What a dead first server means for the keeper.
pub(super) fn first_start_failure(status: WaitStatus, last_words: Option<String>) -> KeeperFailure {
    let text = last_words
        .unwrap_or_else(|| format!("the server ended by {} before it was ready", ending(status)));
    match status.exit_status() {
        Some(2) => KeeperFailure::Config(text),
        _ => KeeperFailure::System(text),
    }
}
