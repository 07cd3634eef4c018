//! The admin API: JSON over HTTP on the control socket, and on the admin listener.
//!
//! `endpoints` is the one table of what may be asked for and who answers; each part of the API has a
//! file of its own. Every answer is a JSON object.

mod activity;
mod ask;
mod control;
pub mod endpoints;
mod environment;
pub mod helm;
mod history;
mod overview;
mod reply;
mod resources;
mod routes;
mod running;
mod statistics;
mod status;
mod steer;
mod threads;
mod told;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hob_http::thread::Crew;
use hob_trace::metric::Counters;

use crate::activity::Inside;
use crate::handle::admin::helm::Helm;
use crate::names::ClientNames;
use crate::resources::Resources;
use crate::shared::Shared;

pub use control::answer;
pub use statistics::Ledger;
pub use status::Report;

/// What the API tells and steers.
pub struct Admin {
    /// Wishes to the keeper.
    pub helm: Helm,
    /// Counters of all threads.
    pub counters: Arc<Counters>,
    /// What requests were, and since when that is counted.
    pub statistics: Ledger,
    /// Names of clients.
    pub names: Arc<ClientNames>,
    /// What is used of the machine, and alerts.
    pub resources: Resources,
    /// The threads.
    pub crew: Arc<Crew>,
    /// Cache and pool.
    pub shared: Arc<Shared>,
    /// History and activity.
    pub inside: Arc<Inside>,
    /// When this server started.
    pub started: Instant,
    /// What is told of the generation being served.
    pub report: Mutex<Report>,
}

impl Admin {
    /// What is told of the generation being served.
    pub(crate) fn report(&self) -> MutexGuard<'_, Report> {
        lock(&self.report)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
