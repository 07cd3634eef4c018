//! Other HTTP servers: requests are passed on over HTTP/1.1 or HTTP/2, answers passed back.
//!
//! - `answer` from a request to its answer, `reply` the answer made of what comes back
//! - `explain` what would be asked, `check` how a member is asked how it is
//! - `head` the request as it is sent, `link` what it is sent over, `exchange` a request that was
//!   sent: over `http1`, with `wire` what comes back as bytes, or over `http2`; `body` its answer's
//!   body, `tunnel` raw bytes both ways
//! - `rewrite` where answers lead
//! - `fail` what goes wrong, and who is told
//! - `keys` its keys, `config` what they say, `limits` what nobody needs to set

mod answer;
mod body;
pub(crate) mod check;
pub mod config;
mod exchange;
mod explain;
mod fail;
pub mod head;
mod http1;
mod http2;
pub(crate) mod keys;
mod limits;
mod link;
mod reply;
mod rewrite;
mod tunnel;
pub mod wire;

use std::sync::Arc;

use hob_http::HalfClose;

use crate::handle::proxy::config::ProxySettings;
use crate::handle::script::gate::Gate;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::run::program::RunProgram;

/// A handler of this kind, ready to answer.
pub struct Proxy {
    /// As configured.
    pub settings: ProxySettings,
    /// Who answers, for people.
    pub(crate) addresses: String,
    /// Who answers.
    pub(crate) upstream: Arc<Upstream>,
    /// Who answers, where hob starts it.
    pub(crate) run: Option<Arc<RunProgram>>,
    /// How many connections there are at once.
    pub(crate) gate: Arc<Gate>,
    /// What FIN from a client means while it waits.
    pub(crate) half_close: HalfClose,
}
