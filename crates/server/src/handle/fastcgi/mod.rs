//! Programs that other processes keep, over FastCGI: php-fpm, and whatever else speaks it.
//!
//! - `answer` from a request to its answer, as `upstream/program` gives it
//! - `explain` which program would be asked
//! - `find` the script that a path means
//! - `wire` the protocol as bytes
//! - `keys` its keys, `config` what they say

mod answer;
pub mod config;
mod explain;
pub(crate) mod find;
pub(crate) mod keys;
pub mod wire;

use std::sync::Arc;

use crate::handle::fastcgi::config::FastCgiSettings;
use crate::handle::fastcgi::find::Scripts;
use crate::handle::upstream::program::UpstreamProgram;

/// A handler of this kind, ready to answer.
pub struct FastCgi {
    /// As configured.
    pub settings: FastCgiSettings,
    /// Which scripts there are.
    pub(crate) scripts: Scripts,
    /// Who runs them.
    pub(crate) program: Arc<UpstreamProgram>,
}
