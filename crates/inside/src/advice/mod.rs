//! What programs cost, and what one rung up the ladder (CGI, warm, resident) would save.
//!
//! - `trend` requests and CPU time of a program in the last minute and the last hour
//! - `runner` who runs a script: the interpreter of its ending, or of its first line (`shebang`)
//! - `start_cost` what a bare start of an interpreter costs, measured once, and behind all else
//! - `follow` all programs over time, from the thread `hob-activity`
//! - `learner` keeps what was learned of scripts and interpreters, and learns when somebody asks
//! - `sentence` the arithmetic, and the words
//!
//! Nothing here is done for a request; scripts are counted when their process has ended (by
//! `handle/script/used` of the server). What is
//! measured starts only when the page is asked for, and never a script.

mod follow;
mod learner;
pub(crate) mod runner;
pub(crate) mod sentence;
pub(crate) mod start_cost;
pub(crate) mod trend;

pub use follow::Advice;
pub(crate) use follow::{Inventory, KeptPool, Lately, RunRoute};
pub(crate) use learner::{Learned, ScriptRef};
