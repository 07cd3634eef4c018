//! What the admin API tells and steers, and how a server has it.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use hob_http::thread::Crew;
use hob_http::{Answered, Request, unix_ms};
use hob_trace::metric::ThreadCounters;
use hob_trace::ring::Producer;
use hob_trace::{HandlerKind, Mutex, Recorder};

use crate::activity::{Inside, SampledServer};
use crate::admin::audit::Audit;
use crate::admin::door::Door;
use crate::admin::helm::Helm;
use crate::advice::Advice;
use crate::environment::slow_file_systems;
use crate::metrics;
use crate::names::ClientNameResolver;
use crate::resources::Resources;
use hob_server::answer::{CONTROL_LISTENER, ThreadBooks};
use hob_server::config::Config;
use hob_server::serve::ServerState;
use hob_server::serve::maintenance::ALL;

use super::{Configured, GenerationReport, Ledger, Live, Readers, certificates};
use super::{control, door};

/// What the API tells and steers.
pub struct Admin {
    /// Wishes to the keeper.
    pub helm: Helm,
    /// Since when requests are counted.
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

impl hob_server::inside::AnswersInside for Admin {
    fn answer(self: Arc<Admin>, request: &Request) -> Answered {
        request.record_mut().handler = HandlerKind::Admin;
        match request.facts().listener {
            CONTROL_LISTENER => control::answer(&self, request),
            _ => door::answer(&self, request),
        }
    }

    fn metrics(self: Arc<Admin>, request: &Request) -> Answered {
        metrics::page(&self, request)
    }
}

impl Admin {
    /// Of a server that starts, with the generation that it begins with.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn new(
        crew: &Arc<Crew>,
        shared: &Arc<ServerState>,
        inside: Inside,
        report: GenerationReport,
        configured: Configured,
    ) -> io::Result<Admin> {
        Ok(Admin {
            helm: Helm::new()?,
            statistics: Ledger::new(unix_ms()),
            resources: Resources::default(),
            names: ClientNameResolver::new(),
            crew: Arc::clone(crew),
            audit: Audit::new(&shared.pool),
            shared: Arc::clone(shared),
            inside: Arc::new(inside),
            advice: Advice::default(),
            started: Instant::now(),
            report: Mutex::new(report),
            configured: Mutex::new(configured),
            certificates: Mutex::default(),
            door: Door::default(),
            live: Live::default(),
            readers: Readers::default(),
        })
    }

    /// What the sampler looks at.
    pub fn sampled(&self) -> SampledServer {
        SampledServer {
            crew: Arc::clone(&self.crew),
            shared: Arc::clone(&self.shared),
            inside: Arc::clone(&self.inside),
        }
    }

    /// Where a thread counts its requests and keeps them; `ring` is what the access log reads.
    pub fn thread_books(
        &self,
        index: usize,
        counters: Arc<ThreadCounters>,
        ring: Producer,
    ) -> ThreadBooks {
        let series = self.inside.has_activity.then_some(&self.shared.series);
        let recorder = Recorder::new(&self.inside.history, series);
        self.inside.watch(index, recorder.waiting());
        ThreadBooks {
            index,
            counters,
            recorder,
            ring,
        }
    }

    /// The config in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.configured.lock().config)
    }

    /// What is told of the generation being served.
    pub(crate) fn report(&self) -> MutexGuard<'_, GenerationReport> {
        self.report.lock()
    }

    /// What the operator should know of it, and of what its folders stand on.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut all = self.report().warnings.clone();
        all.extend(slow_file_systems(&self.shared.sites()));
        let down = self.shared.maintenance.sites();
        all.extend(down.iter().map(|site| match site.as_str() {
            ALL => "all sites are down for maintenance; `hob maintenance off` ends it".to_owned(),
            site => format!(
                "the site {site} is down for maintenance; `hob maintenance off --site {site}` ends it"
            ),
        }));
        all
    }
}
