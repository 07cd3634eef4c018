//! Redirects written in the config.
//!
//! - `config` its keys
//! - `answer` from a request to the place where it is sent
//! - `explain` the same, for whoever asks what would be answered

mod answer;
pub mod config;
mod explain;

use crate::route::template::Location;

/// A redirect, ready to answer.
pub struct Redirect {
    /// The target.
    pub to: Location,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}
