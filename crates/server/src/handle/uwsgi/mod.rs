//! Applications that uWSGI runs, and programs of others, over its protocol. What is not
//! of the protocol is `upstream/program`'s.
//!
//! - `answer` from a request to its answer, `explain` which program would be asked
//! - `wire` the protocol as bytes
//! - `keys` its keys, `config` what they say

mod answer;
pub mod config;
mod explain;
pub(crate) mod keys;
pub mod wire;

use std::sync::Arc;

use crate::handle::upstream::program::UpstreamProgram;

/// A handler of this kind, ready to answer.
pub struct Uwsgi(pub(crate) Arc<UpstreamProgram>);
