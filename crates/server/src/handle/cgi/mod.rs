//! A process for each request: CGI programs (RFC 3875), and commands that know nothing of the web.
//!
//! - `answer` from a request to a running program and its answer
//! - `explain` what would run, without running it
//! - `find` which program a path means, `captured` in which of many folders
//! - `arguments`, `command`, `job` what it is started with, `start` starting it
//! - `run` what is known of a running program, and the task that looks after it; `running` its
//!   process, which is started or forked (`handle/warm`)
//! - `output`, `reply` what it prints, and the answer made of that
//! - `fail` what goes wrong, and who is told
//! - `keys` its keys, `config` what they say, `build` a handler as the config has it, `limits`
//!   what nobody needs to set

pub mod answer;
pub mod arguments;
pub mod build;
pub mod captured;
pub mod command;
pub mod config;
mod explain;
mod fail;
pub mod find;
pub(crate) mod job;
pub(crate) mod keys;
mod limits;
mod output;
mod preflight;
mod reply;
mod run;
mod running;
mod start;

use std::sync::Arc;

use hob_http::HalfClose;

use crate::handle::script::gate::Gate;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::script::used::RouteScripts;
use crate::handle::warm::RouteHosts;
use hob_keeper::process::{ProgramRef, Strings};

/// A handler of this kind, ready to answer.
pub struct Cgi {
    /// The same number for the same settings as long as the process lives.
    pub id: u64,
    /// The same number for the same way to run the same programs, as long as the process lives.
    /// What is learned of interpreters is kept by it.
    pub way: u64,
    /// As configured.
    pub settings: crate::handle::config::Cgi,
    /// What runs.
    pub runs: Runs,
    /// The rules it runs under.
    pub program: ProgramRef,
    /// Variables that every run has. The spawner gives them to what it starts.
    pub environment: Strings,
    /// Their names, sorted.
    pub set_names: Vec<String>,
    /// What programs are told is the site's root.
    pub document_root: Vec<u8>,
    /// How many run at once.
    pub gate: Arc<Gate>,
    /// What its scripts have used.
    pub scripts: Arc<RouteScripts>,
    /// How much standard error is logged.
    pub pace: StderrRateLimit,
    /// What FIN from a client means while a program runs for it.
    pub half_close: HalfClose,
    /// Where its processes are forked from, when they are not started.
    pub warm: Option<RouteHosts>,
}

/// What runs.
pub enum Runs {
    /// The program that the path names.
    Folder(find::ProgramFolder),
    /// The same, in a folder of which each account or host has another one.
    Captured(Arc<captured::CapturedPrograms>),
    /// One program for every path.
    Script(RouteProgram),
    /// A command.
    Command(command::RouteCommand),
}

/// One program for every path of a route.
pub struct RouteProgram {
    /// Its file.
    pub file: Vec<u8>,
    /// Who runs it, when it cannot run by itself.
    pub interpreter: Option<find::Interpreter>,
    /// The route stands for many paths: what follows its fixed part is the program's own.
    pub splits_path: bool,
}

impl Cgi {
    /// Whether the config sets this variable.
    fn sets(&self, name: &[u8]) -> bool {
        let names = &self.set_names;
        names
            .binary_search_by(|known| known.as_bytes().cmp(name))
            .is_ok()
    }
}
