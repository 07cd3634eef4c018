//! The servers that can be compared: how each is found, and what it is told.
//!
//! One file for each: `setup` writes its configuration "out of the box", which is what its own
//! defaults and its packages' say, with addresses, paths and certificate of this comparison, no
//! access log, and no limit on how many requests a connection carries. `ServerTuning::Tuned` adds
//! what each server's own documentation names for speed.

mod apache;
mod caddy;
mod extra;
mod find;
mod fpm;
mod ground;
mod h2o;
mod hob;
mod lighttpd;
mod nginx;
mod python;
mod rules;
mod uwsgi;

use serde::{Deserialize, Serialize};

pub(crate) use apache::Embedded;
pub(crate) use extra::{DiagnosticsLevel, Extra};
pub(crate) use find::{Installed, Missing, find, names};
use ground::STORE;
pub(crate) use ground::{Door, Ground, OtherMachine, Ports, Setup};
pub(crate) use hob::CONTROL;
pub(crate) use lighttpd::has_lighttpd_deflate;
pub(crate) use rules::{ASKED_PATH, CREDENTIALS, TOKEN};

/// A server that can be told what to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerTuning {
    /// As it comes.
    Usual,
    /// With open files cached, one process, and what else is named for speed.
    Tuned,
}

impl ServerSoftware {
    /// What this kind of server is told.
    pub(crate) fn setup(self, ground: &Ground<'_>) -> Setup {
        let mut setup = self.own_setup(ground);
        setup.mounts = ground.mounts();
        setup
            .folders
            .extend((!setup.mounts.is_empty()).then_some(STORE));
        setup
    }

    fn own_setup(self, ground: &Ground<'_>) -> Setup {
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
