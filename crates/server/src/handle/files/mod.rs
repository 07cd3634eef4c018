//! Static files: found below a root, answered from the cache or from disk, never by a thread that
//! waits.
//!
//! - `open` finding a file, within what the route allows
//! - `load` making a cache entry of it, `precompressed` which folders have compressed copies
//! - `find` from a request's path to an entry: this thread's view, memory, or the file pool
//! - `keys` its keys, `config` what they say, `check` and `source_sent` what they say wrongly of
//!   the disk
//! - `answer` a request on a route
//! - `explain` what would be found, `disk` what stands on the disk
//! - `respond` from an entry to an answer: coding, conditions, ranges
//! - `source` bytes of files too large for the cache
//! - `listing`, `folder` folders without an index
//! - `pin` what is loaded at start

mod answer;
pub(in crate::handle) mod check;
pub mod config;
mod disk;
mod explain;
pub mod find;
pub mod folder;
pub(crate) mod keys;
pub mod listing;
pub mod load;
pub mod media_type;
pub mod open;
pub mod pin;
mod precompressed;
pub mod resident;
pub mod respond;
pub mod source;
mod source_sent;

use std::sync::Arc;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::config::HeaderRules;
use crate::handle::files::media_type::MediaTypes;
use crate::handle::files::open::Root;

/// A files handler, ready to answer.
pub struct Files {
    /// The same number for the same settings as long as the process lives: the first part of cache
    /// keys.
    pub id: u32,
    /// As configured.
    pub settings: crate::handle::config::Files,
    /// Media types by suffix.
    pub types: MediaTypes,
    /// The root.
    pub root: Arc<Root>,
    /// The file pool, for this root.
    pub pool: DiskThreads,
    /// Header rules of the route, for heads that are prepared.
    pub headers: HeaderRules,
    /// The same with the cache rules of the fallback, where there is one: it answers under paths
    /// whose own rules it must not have.
    pub fallback: Option<Arc<Files>>,
}
