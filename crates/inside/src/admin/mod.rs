//! The admin API: JSON over HTTP on the control socket, and on the admin listener.
//!
//! `endpoints` is the one table of what may be asked for and who answers; each part of the API has
//! a file of its own. Every answer is a JSON object. `door` is the way in for browsers.

mod access;
mod activity;
mod ask;
pub mod audit;
mod bans;
mod cached;
pub mod certificates;
mod config_edit;
mod configured;
mod control;
pub mod door;
pub mod endpoints;
mod environment;
pub mod events;
mod explained;
pub mod helm;
mod history;
pub(crate) mod limits;
mod live;
mod logs;
mod maintenance;
mod overview;
mod programs;
pub mod query;
mod reply;
mod resources;
mod routes;
mod running;
mod state;
mod statistics;
mod status;
mod steer;
mod threads;
mod told;
mod upstreams;
mod watch;

pub use configured::{Configured, text_difference, text_hash};
pub use events::Readers;
pub use live::Live;
pub use state::Admin;
pub use statistics::Ledger;
pub use status::GenerationReport;
