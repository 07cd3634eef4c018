//! The admin API: JSON over HTTP on the control socket, and on the admin listener.
//!
//! `endpoints` is the one table of what may be asked for and who answers; each part of the API has
//! a file of its own. Every answer is a JSON object. `door` is the way in for browsers.

mod activity;
mod ask;
pub mod audit;
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
mod overview;
mod programs;
pub mod query;
mod reply;
mod resources;
mod routes;
mod running;
mod statistics;
mod status;
mod steer;
mod threads;
mod told;
mod watch;

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use hob_http::thread::Crew;
use hob_http::{Answered, Request};
use hob_trace::metric::Counters;
use hob_trace::{HandlerKind, Mutex};

use crate::activity::Inside;
use crate::advice::Advice;
use crate::answer::CONTROL_LISTENER;
use crate::config::Config;
use crate::handle::admin::audit::Audit;
use crate::handle::admin::door::Door;
use crate::handle::admin::helm::Helm;
use crate::names::ClientNameResolver;
use crate::resources::Resources;
use crate::shared::ServerState;

pub use configured::Configured;
pub use events::Readers;
pub use live::Live;
pub use statistics::Ledger;
pub use status::GenerationReport;

/// What the API tells and steers.
pub struct Admin {
    /// Wishes to the keeper.
    pub helm: Helm,
    /// Counters of all threads.
    pub counters: Arc<Counters>,
    /// What requests were, and since when that is counted.
    pub statistics: Ledger,
    /// Names of clients.
    pub names: Arc<ClientNameResolver>,
    /// What is used of the machine, and alerts.
    pub resources: Resources,
    /// The threads.
    pub crew: Arc<Crew>,
    /// Cache and pool.
    pub shared: Arc<ServerState>,
    /// History and activity.
    pub inside: Arc<Inside>,
    /// What programs cost, and would cost otherwise.
    pub advice: Advice,
    /// When this server started.
    pub started: Instant,
    /// What is told of the generation being served.
    pub report: Mutex<GenerationReport>,
    /// The config in force.
    pub configured: Mutex<Configured>,
    /// Certificates that are served.
    pub certificates: Mutex<Vec<certificates::ServedCertificate>>,
    /// Who may come in from the admin listener.
    pub door: Door,
    /// What was done, and by whom.
    pub audit: Audit,
    /// Who watches the admin pages.
    pub live: Live,
    /// Readers of events, these and others.
    pub readers: Readers,
}

/// Answers a request that came to the control socket or the admin listener.
pub fn answer(admin: &Arc<Admin>, request: &Request) -> Answered {
    request.record_mut().handler = HandlerKind::Admin;
    match request.facts().listener {
        CONTROL_LISTENER => control::answer(admin, request),
        _ => door::answer(admin, request),
    }
}

/// The number of this server process among those the keeper started.
pub fn servers_started(admin: &Admin) -> u64 {
    admin.report.lock().servers_started
}

impl Admin {
    /// The config in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.configured.lock().config)
    }

    /// What is told of the generation being served.
    pub(crate) fn report(&self) -> MutexGuard<'_, GenerationReport> {
        self.report.lock()
    }
}
