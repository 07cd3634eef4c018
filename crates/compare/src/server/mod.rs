//! The servers that can be compared: how each is found, and what it is told.
//!
//! One file for each: `setup` writes its configuration "out of the box", which is what its own
//! defaults and its packages' say, with addresses, paths and certificate of this comparison, no
//! access log, and no limit on how many requests a connection carries. `Settings::Tuned` adds what
//! each server's own documentation names for speed.

mod apache;
mod caddy;
mod find;
mod fpm;
mod h2o;
mod hob;
mod lighttpd;
mod nginx;
mod python;
mod uwsgi;

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
    /// php-fpm, behind nginx.
    Fpm,
    /// uWSGI, alone or behind nginx.
    Uwsgi,
    /// Granian.
    Granian,
    /// gunicorn.
    Gunicorn,
    /// uvicorn.
    Uvicorn,
}

/// Out of the box, or as the servers' documentation says that they are fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// As it comes.
    Usual,
    /// With open files cached, one process, and what else is named for speed.
    Tuned,
}

/// What is different from how a server is started else: of hob, what is switched on besides, for the
/// question what it costs; of others, what they run.
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
    /// With contents of files up to 16 MiB in its own memory.
    WholeCache,
    /// With so many bytes of send buffer for each connection, where the kernel chooses else.
    SendBuffer(u32),
    /// Behind nginx instead of speaking HTTP itself.
    Behind,
    /// An ASGI application instead of a WSGI one.
    Asgi,
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
    /// nginx, for what stands behind it; else empty.
    pub(crate) front: &'a str,
    /// A folder of the server's own.
    pub(crate) folder: PathBuf,
    pub(crate) site: &'a Site,
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) extra: Extra,
    pub(crate) is_root: bool,
}

/// Where a server is to be reached before it counts as started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Door {
    /// A port of the loopback address.
    Port(u16),
    /// A Unix socket in its folder.
    Socket(&'static str),
}

/// What is written, and what is started.
#[derive(Default)]
pub(crate) struct Setup {
    /// Names in the server's folder, and contents. The report shows those that are configurations.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Folders that must be there.
    pub(crate) folders: Vec<&'static str>,
    pub(crate) programs: Vec<Program>,
    /// Where it must be reached, besides its port for clear text.
    pub(crate) doors: Vec<Door>,
}

impl Setup {
    /// What the report shows of it: its configurations, or how it is called where it has none.
    pub(crate) fn shown(&self) -> String {
        let is_shown = |name: &str| !name.ends_with("_params");
        let files: Vec<_> = self
            .files
            .iter()
            .filter(|(name, _)| is_shown(name))
            .collect();
        match &files[..] {
            [] => {
                let lines = self
                    .programs
                    .iter()
                    .map(|program| program.command.join(" "));
                lines.map(|line| line + "\n").collect()
            }
            [(_, text)] => text.clone(),
            files => {
                let parts = files.iter().map(|(name, text)| format!("# {name}\n{text}"));
                parts.collect::<Vec<_>>().join("\n")
            }
        }
    }
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
            Kind::Fpm => fpm::setup(ground),
            Kind::Uwsgi => uwsgi::setup(ground),
            Kind::Granian => python::granian(ground),
            Kind::Gunicorn => python::gunicorn(ground),
            Kind::Uvicorn => python::uvicorn(ground),
        }
    }

    /// Does it serve files, or applications alone?
    pub(crate) fn has_files(self) -> bool {
        match self {
            Kind::Hob | Kind::Nginx | Kind::Apache | Kind::Lighttpd | Kind::H2o | Kind::Caddy => {
                true
            }
            Kind::Fpm | Kind::Uwsgi | Kind::Granian | Kind::Gunicorn | Kind::Uvicorn => false,
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

    /// The port for TLS, where there is a certificate.
    pub(crate) fn secure_door(&self) -> Option<Door> {
        let certificate = self.site.certificate.as_ref();
        certificate.map(|_| Door::Port(self.ports.secure))
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
