//! The admin API: JSON over HTTP on the control socket, and on the admin listener.
//!
//! `endpoints` is the one table of what may be asked for and who answers; each part of the API has a
//! file of its own. Every answer is a JSON object.

mod ask;
mod control;
pub mod endpoints;
pub mod helm;
mod reply;
mod running;
mod status;
mod steer;
mod threads;
mod told;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hob_http::thread::Crew;
use hob_trace::metric::Counters;

use crate::handle::admin::helm::Helm;
use crate::shared::Shared;

pub use control::answer;
pub use status::Report;

/// What the API tells and steers.
pub struct Admin {
    /// Wishes to the keeper.
    pub helm: Helm,
    /// Counters of all threads.
    pub counters: Arc<Counters>,
    /// The threads.
    pub crew: Arc<Crew>,
    /// Cache and pool.
    pub shared: Arc<Shared>,
    /// When this server started.
    pub started: Instant,
    /// What is told of the generation being served.
    pub report: Mutex<Report>,
}

/// The number of this server process among those the keeper started.
pub fn servers_started(admin: &Admin) -> u64 {
    lock(&admin.report).servers_started
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
