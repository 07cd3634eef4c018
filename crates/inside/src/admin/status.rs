//! What `hob status` shows.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hob_http::Answered;
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::limits::LIMITS;
use super::{Admin, programs as told_programs, reply};
use crate::api;
use hob_keeper::acme::CertificateState;
use hob_server::handle::warm::status::hosts;

/// What is told of a generation of the config.
#[derive(Clone, Debug)]
pub struct GenerationReport {
    /// Counts loads, from 1.
    pub generation: u64,
    /// Process id of the keeper.
    pub keeper_pid: u32,
    /// User who may use the control socket, besides root.
    pub keeper_uid: u32,
    /// When the keeper first started.
    pub keeper_started: SystemTime,
    /// Servers started so far.
    pub servers_started: u64,
    /// Process id of the spawner, once there is one.
    pub spawner_pid: Option<u32>,
    /// Certificates that come from an authority.
    pub certificates: Vec<CertificateState>,
    /// The config that is served, without symbolic links; none where a folder is.
    pub config: Option<PathBuf>,
    /// Addresses listened on.
    pub addresses: Vec<String>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// Names of the sites, the default site as `*`.
    pub sites: Vec<String>,
}

/// `GET /v1/status`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let admin = Arc::clone(&ask.admin);
    if !admin.shared.has_old_server() {
        return Answered::Ready(reply::object(200, &status(&admin)));
    }
    // It is asked for its visits, which may take a moment.
    let pool = admin.shared.pool.for_lane(told_programs::LANE);
    let (ask, job) = (ask.clone(), pool.run(move || status(&admin)));
    Answered::Later(Box::pin(async move {
        let done = ask.done(job).await;
        done.map_or_else(|refusal| refusal, |value| reply::object(200, &value))
    }))
}

/// Everything `hob status` shows. May wait for a server before this one.
pub(super) fn status(admin: &Admin) -> Value {
    let report = admin.report.lock().clone();
    let holdings = admin.shared.store.holdings();
    let load = admin.shared.pool.load();
    let mut snapshot = admin.shared.counts.merged();
    snapshot.cache_evictions = holdings.evictions;
    let limits = LIMITS.iter().map(|limit| (limit.name, limit.count(admin)));
    let counters = snapshot.metrics().map(|metric| (metric.name, metric.value));
    let counters = counters.chain(limits);
    let counters = counters.map(|(name, value)| (name.to_owned(), value));
    let started = report.keeper_started.duration_since(UNIX_EPOCH);
    let is_root = rustix::process::geteuid().is_root();
    json!(api::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        generation: report.generation,
        config: report.config.map(|path| path.display().to_string()),
        listening: report.addresses,
        sites: report.sites,
        warnings: admin.warnings(),
        certificates: report.certificates.iter().map(api::Order::from).collect(),
        keeper: api::KeeperProcess {
            pid: report.keeper_pid,
            started_unix: started.unwrap_or_default().as_secs(),
            servers_started: report.servers_started,
        },
        server: api::ServerProcess {
            pid: std::process::id(),
            uptime_s: admin.started.elapsed().as_secs(),
            user_id: rustix::process::geteuid().as_raw(),
            scripts_separated: report.keeper_uid == 0 && !is_root,
            threads: admin.crew.thread_count(),
            connections_by_thread: admin.crew.connections_by_thread(),
        },
        spawner: report.spawner_pid.map(|pid| api::SpawnerProcess { pid }),
        bans: admin.shared.bans.count(hob_http::unix_ms()),
        cache: api::Cache {
            entries: holdings.entries,
            bytes: holdings.bytes,
            bytes_max: holdings.bytes_max,
            pinned_bytes: holdings.pinned_bytes,
            hits: snapshot.cache_hits,
            misses: snapshot.cache_misses,
            revalidations: snapshot.cache_revalidations,
            evictions: holdings.evictions,
        },
        file_pool: api::Threads {
            threads: load.threads,
            idle: load.idle,
            queued: load.queued,
            left: load.left,
        },
        names: admin.names.told(),
        programs: programs(admin),
        admin: admin.door.told().map(|door| api::AdminPages {
            readers: admin.readers.count(),
            limit_readers: admin.readers.limited(),
            ..door
        }),
        counters: counters.collect(),
    })
}

fn programs(admin: &Admin) -> api::Programs {
    let fleet = &admin.shared.fleet;
    let (workers, workers_max) = fleet.load();
    api::Programs {
        workers,
        // No limit is no number.
        workers_max: Some(workers_max).filter(|most| *most != usize::MAX),
        pools: fleet.pools().iter().map(|pool| pool.told()).collect(),
        visits: admin.shared.all_visits(),
        hosts: hosts(&admin.shared.hosts),
        upstreams: admin.shared.upstreams(),
        offers: admin.shared.sites().offered(),
    }
}
