//! Servers side by side on this machine: what `hob compare` does.
//!
//! Finds the servers that are installed (`server`), writes what they serve (`site`), starts each
//! with a `supervisor` that ends whatever happens, asks them in turn (`measure`, `round`) for the
//! same things (`rows`), counts the CPU time of all their processes (`account`), and tells it as a
//! table, as JSON and as a page (`report`), the figures of old documents (`history`) beside ours.
//! Requests are made by `hob_load`, over the loopback or a `link`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod account;
mod address;
mod compare;
mod copies;
mod distant;
mod error;
mod flow;
mod forget;
mod fuse;
mod history;
mod instance;
mod interval;
mod limits;
mod link;
mod machine;
mod measure;
mod mounts;
mod noise;
mod onlooker;
mod plan;
mod preparation;
mod programs;
mod progress;
mod report;
mod round;
mod rows;
mod running;
mod server;
mod site;
mod stray;
mod supervisor;
mod tree;

pub use address::TargetAddress;
pub use compare::{compare, list};
pub use distant::{ControlPort, ServePlan, replay_words, serve};
pub use error::CompareError;
pub use link::LinkSettings;
pub use plan::ComparisonPlan;
pub use report::{ComparisonReport, reference, release_table, schema};
pub use rows::Scope;
pub use server::ServerTuning;
pub use supervisor::{serve_folder, supervise};
