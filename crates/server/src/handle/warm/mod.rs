//! Unchanged scripts, each request a fork of an interpreter that has started already: a *host*.
//! What a request costs, what it gets and how it ends is otherwise as with `cgi`, whose code does
//! all of that; here is only where its process comes from.
//!
//! - `protocol` what server and host say to each other
//! - `host` one host, as all threads see it; `keep` the task that starts it and looks after it
//! - `link` a thread's way to a host: runs go out, their ends come back
//! - `tally` what is counted of a host, `status` what is told of it
//! - `keys` its keys, `config` what they say; `answer` and `explain` hand on to `cgi`
//! - `build` what a route needs of all this, `limits` what nobody needs to set

mod answer;
pub mod build;
pub mod config;
pub(crate) mod explain;
mod host;
pub(crate) mod keep;
pub(crate) mod keys;
mod limits;
mod link;
mod protocol;
pub mod status;
mod tally;
pub mod told;

use std::sync::Arc;

use crate::handle::cgi::Cgi;
pub use host::{Hosts, WarmHost};
pub use link::HostLinks;
pub(crate) use link::{Forked, NoWay, Way};
pub(crate) use protocol::ScriptStart;

/// What a route forks its scripts from.
pub struct RouteHosts {
    /// The hosts; a request goes to the one with the fewest.
    pub hosts: Vec<Arc<WarmHost>>,
}

/// A handler of this kind, ready to answer: `cgi`, whose processes are forked.
pub struct Warm(pub Arc<Cgi>);
