//! `hob explain`: what would answer a request, and why, without serving it.
//!
//! The decisions are made by the code that serves: the engine reads the head, the sites choose, the
//! route's handler answers. What is added here is the reason for each.
//!
//! - `asked` from a method and a URL to a request's head
//! - `follow` the request's way through the decisions, as `answer.rs` makes them; handlers explain
//!   their own (`handle/*/explain.rs`)
//! - `admission` whether the client is let in; `rules` by which lines of the config, and the
//!   verdict
//! - `settings` a route's settings by their names, as the schema declares them
//! - `told` the explanation as data
//! - `when` why a route leaves a request to the next one
//! - `text`, `json` the explanation for people and for programs

mod admission;
pub mod answer;
mod asked;
mod country;
mod follow;
mod json;
mod rules;
mod settings;
mod text;
mod told;
mod when;

pub use admission::limit_texts;
pub use asked::ExplainedRequest;
pub use follow::explain;
pub(crate) use follow::{OnExplained, shown, shown_path, wait};
pub use rules::RulePlaces;
pub use told::Explanation;
pub(crate) use told::{DiskOutcome, ExplainedProgram, FileFacts, OnDisk};
