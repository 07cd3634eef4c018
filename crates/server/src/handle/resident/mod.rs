//! Programs that stay: their processes are started once, and each answers many requests.
//!
//! ```text
//! connection's thread            anywhere            worker's thread           process
//!   answer, body  <--Exchange-->  pool   <--Post-->   worker (driver)  <-wire->  program
//! ```
//!
//! - `answer` from a request to its answer, `block` the request as its program gets it, `body` the
//!   answer's body, `spooled` the body of a request that was collected first
//! - `exchange` where a request and its worker meet, `post` the letters to a driver
//! - `pool` who has room and who waits, `members` its workers, `grow` what it starts, `scale` when
//!   one more worker helps
//! - `worker` the driver of one process, `driver` what it knows and hears, `requests` what it has
//!   under way, `handing` how that comes and goes,
//!   `wire` how messages travel, `lines` the carrier of lines, `callout` what the program asks,
//!   `said` what it prints, `ladder` and `ending` how it is ended
//! - `start` starting a process, `host` the hosts that hob brings along, `native` the compiled
//!   parts that make them faster
//! - `watch` files whose change replaces the workers, `renew` how
//! - `tunnel` answers after which raw bytes flow both ways
//! - `file` files that a program passes by their descriptors
//! - `fail` what went wrong, `status` what is told of pools
//! - `build` a handler as the config has it, `limits` what nobody needs to set

pub(crate) mod answer;
mod block;
mod body;
pub mod build;
mod callout;
mod chunk;
mod driver;
mod ending;
mod exchange;
mod fail;
mod file;
pub(crate) mod grow;
mod handing;
pub(in crate::handle) mod host;
mod ladder;
mod limits;
mod lines;
mod members;
pub(in crate::handle) mod native;
pub(crate) mod operate;
pub(crate) mod pool;
mod post;
mod renew;
mod requests;
mod said;
pub(crate) mod scale;
mod service;
mod shared;
mod spooled;
mod start;
pub(crate) mod status;
mod tunnel;
mod watch;
mod wire;
pub(crate) mod worker;

use std::sync::{Arc, PoisonError};

use hob_http::HalfClose;

use crate::config;
pub(crate) use worker::Home;

/// A handler of this kind, ready to answer.
pub struct Resident {
    /// Tells it from all others of this process.
    pub(crate) number: u64,
    /// As configured.
    pub settings: config::Resident,
    /// The program's workers; they are told to go when the last handler of theirs does.
    pub(crate) pool: Arc<pool::Keep>,
    /// What the program is told is the site's root.
    pub document_root: Vec<u8>,
    /// The program's file, or the host's.
    pub file: Vec<u8>,
    /// The route stands for many paths: what follows its fixed part is the program's own.
    pub splits_path: bool,
    /// What FIN from a client means while the program works for it.
    pub half_close: HalfClose,
}

impl Resident {
    /// How its processes are started.
    pub(crate) fn recipe(&self) -> start::Recipe {
        let recipe = self.pool.0.recipe.lock();
        recipe.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
