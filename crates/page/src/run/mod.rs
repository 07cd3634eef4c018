//! Runs pages.
//!
//! `runner` holds the state of a run and walks over declarations; `body` prints and computes what
//! stands in blocks and strings; `variables` are the variables and `names` their names, `condition`
//! compares, `call` calls built-in and user functions, `statement` runs SQL and `report` its
//! reports, `program` runs programs, `message` picks messages, `output` is the way to the sink,
//! `header` what a page's own header is there, `saved` what a visit keeps.

mod body;
mod call;
mod condition;
mod header;
mod message;
mod names;
mod output;
mod program;
mod report;
mod runner;
mod saved;
mod statement;
mod variables;

pub use runner::{PageSettings, RunOutcome, run};
pub use saved::SavedVariables;
