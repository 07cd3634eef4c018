//! The servers that can be compared: how each is found, and what it is told.
//!
//! One file for each: `setup` writes its configuration "out of the box", which is what its own
//! defaults and its packages' say, with addresses, paths and certificate of this comparison, no
//! access log, and no limit on how many requests a connection carries. `ServerTuning::Tuned` adds
//! what each server's own documentation names for speed.

mod apache;
mod caddy;
mod find;
mod fpm;
mod ground;
mod h2o;
mod hob;
mod lighttpd;
mod nginx;
mod python;
mod uwsgi;

pub(crate) use apache::Embedded;
pub(crate) use find::{Installed, Missing, find, names};
pub(crate) use ground::{Door, Ground, Ports, Setup};
pub(crate) use hob::CONTROL;

/// A server that can be told what to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerSoftware {
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
pub enum ServerTuning {
    /// As it comes.
    Usual,
    /// With open files cached, one process, and what else is named for speed.
    Tuned,
}

/// What is different from how a server is started else: of hob, what is switched on besides, for
/// the question what it costs; of others, what they run.
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
    /// With neither history nor activity.
    Bare,
    /// With the names of clients, in a log.
    Names,
    /// With a watcher of every event of every request.
    Watched,
    /// With a watcher of requests that nobody makes.
    WatchedElsewhere,
    /// With ten admin pages open.
    Pages,
    /// With metrics that are read each second.
    Scraped,
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
    /// With so many chunks in the memory it shares with a worker.
    Chunks(u32),
    /// With chunks of so many KiB in it.
    ChunkKib(u32),
    /// Behind nginx instead of speaking HTTP itself.
    Behind,
    /// An ASGI application instead of a WSGI one.
    Asgi,
    /// With interpreters in its own processes.
    Embedded,
}

impl Extra {
    /// Does somebody look at the server, over its control socket?
    pub(crate) fn is_looked_at(self) -> bool {
        matches!(
            self,
            Extra::Watched | Extra::WatchedElsewhere | Extra::Pages | Extra::Scraped
        )
    }
}

impl ServerSoftware {
    /// What this kind of server is told.
    pub(crate) fn setup(self, ground: &Ground<'_>) -> Setup {
        match self {
            ServerSoftware::Hob => hob::setup(ground),
            ServerSoftware::Nginx => nginx::setup(ground),
            ServerSoftware::Apache => apache::setup(ground),
            ServerSoftware::Lighttpd => lighttpd::setup(ground),
            ServerSoftware::H2o => h2o::setup(ground),
            ServerSoftware::Caddy => caddy::setup(ground),
            ServerSoftware::Fpm => fpm::setup(ground),
            ServerSoftware::Uwsgi => uwsgi::setup(ground),
            ServerSoftware::Granian => python::granian(ground),
            ServerSoftware::Gunicorn => python::gunicorn(ground),
            ServerSoftware::Uvicorn => python::uvicorn(ground),
        }
    }

    /// Does it serve files, or applications alone?
    pub(crate) fn has_files(self) -> bool {
        matches!(
            self,
            ServerSoftware::Hob
                | ServerSoftware::Nginx
                | ServerSoftware::Apache
                | ServerSoftware::Lighttpd
                | ServerSoftware::H2o
                | ServerSoftware::Caddy
        )
    }
}
