//! The look at everything, once a second, and the board where others read what came of it.

use hob_http::unix_ms;
use std::sync::{Arc, OnceLock};

use hob_machine::hardware;
use hob_machine::process::descriptors;
use hob_trace::Mutex;

use super::alarms::{Alarms, Alert};
use super::conditions::{self, ServerVitals};
use super::minute::Minutes;
use super::reading::{Interface, MachineReading, descriptors_max, interfaces};
use super::trim::Trim;
use crate::admin::Admin;
use crate::admin::certificates::ServedCertificate;
use crate::api::{InterfaceFacts, ResourceSeries};
use hob_server::cache::store::Holdings;
use hob_server::handle::resident::status::{pids, pool_facts};
use hob_server::handle::warm;
use hob_server::serve::fleet::now_ms;

/// What was seen, for whoever asks.
#[derive(Debug, Default)]
pub struct Resources {
    minutes: Mutex<Minutes>,
    alerts: Mutex<Vec<Alert>>,
    /// Interfaces when the server began to look, and requests it had by then.
    began: OnceLock<(Vec<Interface>, u64)>,
}

impl Resources {
    /// What an operator should look at, the worst first.
    pub fn alerts(&self) -> Vec<Alert> {
        self.alerts.lock().clone()
    }

    /// Interfaces, and how many packets passed each for a request, of which there were so many.
    pub(crate) fn interfaces(&self, requests: u64) -> Vec<InterfaceFacts> {
        let now = interfaces().into_iter();
        now.map(|interface| {
            let packets = self.packets_since_start(&interface, requests);
            InterfaceFacts {
                mtu: hardware::interface(&interface.name, "mtu"),
                packets_per_request: packets,
                name: interface.name,
            }
        })
        .collect()
    }

    /// None as long as there were no requests, or where it came later than the server.
    fn packets_since_start(&self, now: &Interface, requests: u64) -> Option<f64> {
        let (before, requests_before) = self.began.get()?;
        let before = before.iter().find(|before| before.name == now.name)?;
        let packets = |of: &Interface| of.traffic.packets_in + of.traffic.packets_out;
        let passed = packets(now).checked_sub(packets(before))?;
        let requests = requests.checked_sub(*requests_before);
        let requests = requests.filter(|requests| *requests > 0)?;
        Some(passed as f64 / requests as f64)
    }

    /// Minutes from one Unix time to another, in rows of `step_s` seconds.
    pub fn told(&self, from_s: u64, to_s: u64, step_s: u64) -> ResourceSeries {
        let minutes = self.minutes.lock().told(from_s, to_s, step_s);
        ResourceSeries {
            descriptors_max: descriptors_max(),
            alerts: self.alerts(),
            ..minutes
        }
    }
}

/// Looks at everything. One thread has it, and no serving thread: it reads files.
pub struct Sampler {
    admin: Arc<Admin>,
    alarms: Alarms,
    before: ServerVitals,
    trim: Trim,
    /// The last minute's end: its number, what was read, and what the cache held.
    minute: (u64, MachineReading, ServerVitals, Holdings),
}

impl Sampler {
    /// Begins to look at this server.
    pub fn new(admin: &Arc<Admin>) -> Sampler {
        let facts = facts(admin);
        let reading = MachineReading::take(now_ms(), pools(admin));
        let minute = unix_ms() / 60_000;
        let began = (reading.interfaces.clone(), facts.counters.requests);
        let _ = admin.resources.began.set(began);
        Sampler {
            alarms: Alarms::default(),
            before: facts.clone(),
            trim: Trim::default(),
            minute: (minute, reading, facts, admin.shared.store.holdings()),
            admin: Arc::clone(admin),
        }
    }

    /// Looks at everything now, which is this Unix time. To be called every second.
    pub fn sample(&mut self, unix_ms: u64) {
        self.admin
            .statistics
            .tick(&self.admin.shared.counts, unix_ms);
        let facts = facts(&self.admin);
        conditions::events(&mut self.alarms, &self.before, &facts, unix_ms);
        conditions::levels(&mut self.alarms, &facts, unix_ms);
        // A clock that is put back does not bring minutes back.
        if unix_ms / 60_000 > self.minute.0 {
            self.end_minute(&facts, unix_ms);
        }
        let counters = &facts.counters;
        let (ended, readings) = (counters.connections_closed, self.admin.shared.generation());
        self.trim.look(counters.requests, ended, readings);
        self.before = facts;
        *self.admin.resources.alerts.lock() = self.alarms.alerts();
    }

    fn end_minute(&mut self, facts: &ServerVitals, unix_ms: u64) {
        let reading = MachineReading::take(now_ms(), pools(&self.admin));
        let holdings = self.admin.shared.store.holdings();
        let (_, before, facts_before, holdings_before) = &self.minute;
        let mut minutes = self.admin.resources.minutes.lock();
        let number = unix_ms / 60_000;
        let minute = minutes.add(number, before, &reading);
        conditions::machine(&mut self.alarms, &minute, minutes.links(), unix_ms);
        drop(minutes);
        conditions::cache(
            &mut self.alarms,
            (&facts_before.counters, holdings_before),
            (&facts.counters, &holdings),
            unix_ms,
        );
        self.minute = (number, reading, facts.clone(), holdings);
    }
}

/// Process ids of all programs that stay, by pool or kept interpreter.
fn pools(admin: &Admin) -> Vec<(String, Vec<u32>)> {
    let mut pools = pids(&admin.shared.fleet);
    pools.extend(warm::status::pids(&admin.shared.hosts));
    pools.extend(admin.shared.runs.pids());
    pools
}

/// What the server knows of itself now.
fn facts(admin: &Admin) -> ServerVitals {
    let (workers, workers_max) = admin.shared.fleet.load();
    let report = admin.report.lock();
    let refused = report.certificates.iter().filter_map(|state| {
        let name = state.names.first().cloned().unwrap_or_default();
        Some((name, state.error.clone()?))
    });
    let refused_certificates = refused.collect();
    let seen = admin.inside.seen();
    drop(report);
    let certificates = admin
        .certificates
        .lock()
        .iter()
        .map(ServedCertificate::expiry)
        .collect();
    ServerVitals {
        counters: admin.shared.counts.merged(),
        connections: admin.crew.open_connections() as u64,
        connections_max: admin.config().limits.connections as u64,
        descriptors: descriptors().unwrap_or(0),
        descriptors_max: descriptors_max(),
        workers: workers as u64,
        workers_max: workers_max as u64,
        pools: pool_facts(&admin.shared.fleet),
        certificates,
        refused_certificates,
        requests: seen.last.requests.into(),
        errors: seen.last.errors.into(),
        queued: seen.workers.queued as u64,
        idle: seen.workers.idle as u64,
        busy: seen.workers.busy as u64,
        is_blind: !admin.inside.has_activity,
        failed_write: seen.failed_write,
    }
}
