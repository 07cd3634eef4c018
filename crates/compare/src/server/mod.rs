//! The servers that can be compared: how each is found, and what it is told.
//!
//! One file for each: `setup` writes its configuration "out of the box", which is what its own
//! defaults and its packages' say, with addresses, paths and certificate of this comparison, no
//! access log, and no limit on how many requests a connection carries. `Settings::Tuned` adds what
//! each server's own documentation names for speed.

mod apache;
mod caddy;
mod find;
mod h2o;
mod hob;
mod lighttpd;
mod nginx;

use std::path::PathBuf;

use crate::keeper::Program;
use crate::site::Site;

pub(crate) use find::{Installed, Missing};
pub(crate) use find::{find, names};

/// A server that can be told what to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// This program, or another build of it.
    Hob,
    /// nginx.
    Nginx,
    /// Apache httpd.
    Apache,
    /// lighttpd.
    Lighttpd,
    /// H2O.
    H2o,
    /// Caddy.
    Caddy,
}

/// Out of the box, or as the servers' documentation says that they are fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// As it comes.
    Usual,
    /// With open files cached, one process, and what else is named for speed.
    Tuned,
}

/// What of hob is switched on besides, for the question what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extra {
    /// Nothing.
    None,
    /// An access log in combined format.
    CombinedLog,
    /// An access log in a format of one's own.
    CustomLog,
    /// So many routes before the one that answers.
    Routes(u32),
    /// Served at this nice level.
    Nice(i32),
    /// Without the cache of files: from the page cache of the kernel.
    NoCache,
    /// With HTTP/3, which HTTP/1.1 and 2 would tell of in each answer.
    Http3,
}

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) clear: u16,
    pub(crate) secure: u16,
}

/// All that a configuration depends on.
pub(crate) struct Ground<'a> {
    /// The program that is started.
    pub(crate) program: &'a str,
    /// A folder of the server's own.
    pub(crate) folder: PathBuf,
    pub(crate) site: &'a Site,
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) extra: Extra,
    pub(crate) is_root: bool,
}

/// What is written, and what is started.
pub(crate) struct Setup {
    /// Names in the server's folder, and contents. The first is what the report shows.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Folders that must be there.
    pub(crate) folders: Vec<&'static str>,
    pub(crate) programs: Vec<Program>,
}

impl Kind {
    /// What this kind of server is told.
    pub(crate) fn setup(self, ground: &Ground<'_>) -> Setup {
        match self {
            Kind::Hob => hob::setup(ground),
            Kind::Nginx => nginx::setup(ground),
            Kind::Apache => apache::setup(ground),
            Kind::Lighttpd => lighttpd::setup(ground),
            Kind::H2o => h2o::setup(ground),
            Kind::Caddy => caddy::setup(ground),
        }
    }
}

impl Ground<'_> {
    /// A path in the server's folder, as configurations write it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub(crate) fn is_tuned(&self) -> bool {
        self.settings == Settings::Tuned
    }

    /// The text, where there is a certificate for TLS.
    pub(crate) fn where_secure(&self, text: impl FnOnce(&str, &str) -> String) -> String {
        match &self.site.certificate {
            Some(pair) => text(&pair.certificate, &pair.key),
            None => String::new(),
        }
    }

    /// One program, started with these arguments.
    pub(crate) fn program(&self, name: &str, arguments: &[&str]) -> Program {
        let command = std::iter::once(self.program).chain(arguments.iter().copied());
        Program {
            name: name.to_owned(),
            command: command.map(str::to_owned).collect(),
            environment: Vec::new(),
        }
    }
}
