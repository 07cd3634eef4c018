//! Programs that other processes keep, over FastCGI: php-fpm, and whatever else speaks it.
//!
//! - `answer` from a request to its answer, `reply` the answer made of what comes back
//! - `explain` which program would be asked, `check` how one is asked how it is
//! - `find` the script that a path means
//! - `wire` the protocol as bytes, `exchange` a request on its connection, `body` its answer's body
//! - `fail` what goes wrong, and who is told
//! - `keys` its keys, `config` what they say, `limits` what nobody needs to set

mod answer;
mod body;
mod check;
pub mod config;
mod exchange;
mod explain;
mod fail;
pub(crate) mod find;
pub(crate) mod keys;
mod limits;
mod reply;
pub mod wire;

use std::sync::Arc;

use hob_http::HalfClose;

use crate::handle::fastcgi::config::FastCgiSettings;
use crate::handle::fastcgi::find::Scripts;
use crate::handle::script::gate::Gate;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::upstream::members::Upstream;

/// A handler of this kind, ready to answer.
pub struct FastCgi {
    /// As configured.
    pub settings: FastCgiSettings,
    /// Who answers, for people.
    pub(crate) addresses: String,
    /// Which scripts there are.
    pub(crate) scripts: Scripts,
    /// What programs are told is the site's root.
    pub(crate) document_root: Vec<u8>,
    /// Who answers.
    pub(crate) upstream: Arc<Upstream>,
    /// How many connections there are at once.
    pub(crate) gate: Arc<Gate>,
    /// How much standard error is logged.
    pub(crate) pace: StderrRateLimit,
    /// What FIN from a client means while a program works for it.
    pub(crate) half_close: HalfClose,
}

impl FastCgi {
    /// Whether the config sets this variable.
    fn sets(&self, name: &[u8]) -> bool {
        let env = &self.settings.env;
        env.binary_search_by(|(known, _)| known.as_bytes().cmp(name))
            .is_ok()
    }
}
