//! Programs that stay for one visitor: each has a process of its own, which remembers what was said
//! before. A visit is a resident program with one worker, found by a handle.
//!
//! ```text
//! no handle --visits of the program: one more--> its process starts, has the request
//! a handle  --visits of the program: which one--> its process has the request next
//! answer keeps it: waits for the next; else, or after the wait: the process is told to end
//! ```
//!
//! - `answer` from a request to its visit, and what the visit adds to the answer
//! - `visit` what a visit keeps: its process
//! - `explain` what would be done
//! - `build` a handler as the config has it, `keys` its keys, `config` what they say
//!
//! Handles, and the table of visits, are in `script/visits`: they do not know what a visit keeps.

mod answer;
pub mod build;
pub mod config;
mod explain;
pub(crate) mod keys;
pub(crate) mod visit;

use std::sync::Arc;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::resident::build::ResidentParts;
use crate::handle::resident::start::Recipe;
use crate::handle::script::visits::carrier::VisitCarriers;
use crate::handle::session::config::SessionSettings;
use crate::handle::session::visit::SessionTable;

/// A handler of this kind, ready to answer.
pub struct Session {
    /// As configured.
    pub settings: SessionSettings,
    /// The program's visits; they are over when the last handler of theirs goes.
    pub(crate) table: Arc<SessionTable>,
    /// What each visit's program is but its process.
    parts: ResidentParts,
    /// How processes are started.
    recipe: Recipe,
    /// Who looks at files that programs pass.
    disk: DiskThreads,
    /// Where handles are looked for.
    carriers: VisitCarriers,
}
