//! The keeper: the first process. It holds sockets and privileges, starts the server again when it
//! dies, and carries out reloads, upgrades and the stop. It sees no byte of a request.
//!
//! ```text
//!             first server ready                  SIGTERM, SIGINT, `hob stop`
//!  Starting ----------------------> Running ---------------------------------> Stopping --> gone
//!     |                              |   ^
//!     | first server died            |   | one change at a time:
//!     v                              v   |   reload:  build settings, Reload, Reloaded
//!   exit 1 or 2                      Change   upgrade: check by the new program, exec it,
//!                                            new server ready, old server drains
//! ```
//!
//! `turn` is the loop, `events` what happens in it, `change` the reload, `upgrade` the upgrade,
//! `handover` what crosses its exec, `load` what it has of a config, `settings` one generation of
//! it with everything opened, `seat` how commands find it, `state` where things are kept,
//! `spawners` who starts programs, `certificates` and `key_watch` what TLS needs, `acme` who gets
//! certificates from an authority.

mod acme;
mod backoff;
mod certificates;
mod change;
mod children;
mod control;
mod events;
mod handover;
mod kept;
mod key_watch;
mod listeners;
mod load;
mod logs;
mod seat;
mod settings;
mod spawners;
mod state;
mod turn;
mod upgrade;

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::servers::{Origin, Runtime};
use hob_config::{ConfigSources, Errors};

pub use handover::VERSION as HANDOVER_VERSION;
pub(super) use listeners::socket_options;
pub use load::{Load, loads};
pub(crate) use load::{OwnConfig, PreflightScope};
pub use turn::run;

/// What a keeper is told by the command line and the environment.
pub struct KeeperOptions {
    /// Reads the sources of the config, now and at every reload.
    pub sources: Box<dyn Fn() -> Result<ConfigSources, Errors>>,
    /// Makes a config of them: [`loads`] of the server's handlers.
    pub load: Load,
    /// What is served.
    pub origin: Origin,
    /// Where this server tells of itself; none for one that commands are not to find.
    pub runtime: Option<Runtime>,
    /// Where the control socket stands.
    pub control: ControlChoice,
    /// Where things are kept over restarts, unless the config says otherwise.
    pub usual_state: Option<PathBuf>,
    /// The program as it can be found on disk: what an upgrade goes over to.
    pub program: PathBuf,
    /// The arguments this process was started with, the program's name included.
    pub arguments: Vec<OsString>,
    /// The environment, for the server and for the program of an upgrade.
    pub environment: Vec<(OsString, OsString)>,
    /// Sockets handed down by systemd, by name.
    pub inherited: Vec<(String, OwnedFd)>,
    /// NOTIFY_SOCKET.
    pub notify: Option<OsString>,
    /// True: an upgrade's exec made this process, and what it takes over waits on standard input.
    pub is_resumed: bool,
}

/// Where the control socket stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlChoice {
    /// Nowhere.
    Off,
    /// Where the command line says.
    At(PathBuf),
    /// Where the config says, else in a place of its own in the runtime folder.
    Config,
}

/// Why a keeper could not start or go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperFailure {
    /// The config is wrong: every error, one a line.
    Config(String),
    /// The system refused something, or the server did not start.
    System(String),
    /// The system refused what the config names: a report with its place.
    Refused(String),
}

impl KeeperFailure {
    /// The exit code that tells the two apart.
    pub fn exit_code(&self) -> u8 {
        match self {
            KeeperFailure::System(_) | KeeperFailure::Refused(_) => 1,
            KeeperFailure::Config(_) => 2,
        }
    }
}

impl fmt::Display for KeeperFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeeperFailure::Config(text)
            | KeeperFailure::System(text)
            | KeeperFailure::Refused(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for KeeperFailure {}
