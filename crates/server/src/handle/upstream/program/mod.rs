//! Programs that other processes keep, behind upstreams: what is the same whatever is spoken there.
//!
//! - `protocol` what one protocol brings
//! - `ask` from a request to its answer, `reply` the answer made of what comes back
//! - `explain` what would be asked, `check` how a member is asked how it is
//! - `exchange` a request on its connection, `body` its answer's body
//! - `fail` what goes wrong, and who is told
//! - `keys` keys that all have, `config` what they say, `limits` what nobody needs to set

pub(crate) mod ask;
mod body;
pub(crate) mod check;
pub mod config;
mod exchange;
pub(crate) mod explain;
pub(crate) mod fail;
pub(crate) mod keys;
mod limits;
pub mod protocol;
mod reply;

use std::sync::Arc;

use hob_http::HalfClose;

use crate::handle::script::gate::Gate;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::program::config::ProgramSettings;
use crate::handle::upstream::program::protocol::ProgramProtocol;
use crate::handle::upstream::run::program::RunProgram;

/// A program of a route, ready to be asked.
pub struct UpstreamProgram {
    /// As configured.
    pub(crate) settings: ProgramSettings,
    /// What is spoken there.
    pub(crate) protocol: Arc<dyn ProgramProtocol>,
    /// Who answers, for people.
    pub(crate) addresses: String,
    /// Who answers.
    pub(crate) upstream: Arc<Upstream>,
    /// What hob runs itself to be asked.
    pub(crate) run: Option<Arc<RunProgram>>,
    /// How many connections there are at once.
    pub(crate) gate: Arc<Gate>,
    /// How much standard error is logged.
    pub(crate) pace: StderrRateLimit,
    /// What FIN from a client means while a program works for it.
    pub(crate) half_close: HalfClose,
}
