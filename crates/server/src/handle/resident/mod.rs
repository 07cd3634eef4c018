//! Programs that stay: their processes are started once, and each answers many requests.
//!
//! ```text
//! connection's thread            anywhere            worker's thread           process
//!   answer, body <-WorkerExchange-> pool <--WorkerMailbox--> worker (driver)  <-wire->  program
//! ```
//!
//! - `answer` from a request to its answer, `block` the request as its program gets it, `body` the
//!   answer's body, `spooled` the body of a request that was collected first
//! - `explain` who would be asked
//! - `exchange` where a request and its worker meet, `mailbox` the messages to a driver
//! - `pool` who has room and who waits, `members` its workers, `grow` what it starts, `scale` when
//!   one more worker helps
//! - `worker` the driver of one process, `driver` what it knows and hears, `requests` what it has
//!   under way, `handing` how that comes and goes,
//!   `wire` how messages travel, `lines` the carrier of lines, `callout` what the program asks,
//!   `said` what it prints, `termination` and `ending` how it is ended
//! - `start` starting a process, `trial` starting one before it is served, to see whether it does
//! - `shared` the memory shared with a process, `chunk` pieces of answers in it
//! - `service` how long requests take, `operate` what an operator has done
//! - `watch` files whose change replaces the workers, `renew` how
//! - `bound` a worker that belongs to one visitor
//! - `tunnel` answers after which raw bytes flow both ways
//! - `file` files that a program passes by their descriptors
//! - `fail` what went wrong, `status` what is told of pools
//! - `keys` its keys, `config` what they say, `build` a handler as the config has it, `limits`
//!   what nobody needs to set

pub(crate) mod answer;
mod block;
mod body;
pub(crate) mod bound;
pub mod build;
mod callout;
mod chunk;
pub mod config;
mod driver;
pub(crate) mod ending;
pub(crate) mod exchange;
mod explain;
pub(crate) mod fail;
mod file;
pub(crate) mod grow;
mod handing;
pub(crate) mod keys;
mod limits;
mod lines;
mod mailbox;
mod members;
pub mod operate;
pub mod pool;
mod renew;
mod requests;
pub(crate) mod said;
pub(crate) mod scale;
mod service;
mod shared;
mod spooled;
pub(crate) mod start;
pub mod status;
mod termination;
pub mod told;
pub(crate) mod trial;
mod tunnel;
mod watch;
mod wire;
pub(crate) mod worker;

use std::sync::Arc;

use hob_http::HalfClose;

pub(crate) use worker::DriverThread;

/// A handler of this kind, ready to answer.
pub struct Resident {
    /// Tells it from all others of this process.
    pub(crate) number: u64,
    /// As configured.
    pub settings: Arc<crate::handle::config::Resident>,
    /// The program's workers; they are told to go when the last handler of theirs does.
    pub pool: Arc<pool::Keep>,
    /// What the program is told is the site's root.
    pub document_root: Vec<u8>,
    /// The program's file, or the host's.
    pub file: Vec<u8>,
    /// The route stands for many paths: what follows its fixed part is the program's own.
    pub splits_path: bool,
    /// The program looks in its folder for what the rest of the path names.
    pub finds_scripts: bool,
    /// What FIN from a client means while the program works for it.
    pub half_close: HalfClose,
}

impl Resident {
    /// How its processes are started.
    pub(crate) fn recipe(&self) -> start::Recipe {
        self.pool.0.recipe.lock().clone()
    }
}
