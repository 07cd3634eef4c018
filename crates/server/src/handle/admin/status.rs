//! What `hob status` shows.

use std::time::{SystemTime, UNIX_EPOCH};

use hob_http::Answered;
use serde_json::{Value, json};

use super::ask::Ask;
use super::limits::LIMITS;
use super::{Admin, lock, reply};
use crate::acme::CertificateState;
use crate::handle::resident::status::programs;
use crate::handle::warm::status::hosts;

/// What is told of a generation of the config.
#[derive(Clone, Debug)]
pub struct Report {
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
    /// Addresses listened on.
    pub addresses: Vec<String>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// Names of the sites, the default site as `*`.
    pub sites: Vec<String>,
}

/// `GET /v1/status`
pub(super) fn answer(ask: &Ask) -> Answered {
    Answered::Ready(reply::object(200, &status(&ask.admin)))
}

/// What is told of the admin pages; null without them.
fn admin_told(admin: &Admin) -> Value {
    let mut told = admin.door.told();
    if told.is_object() {
        told["readers"] = json!(admin.readers.count());
        told["limit_readers"] = json!(admin.readers.limited());
    }
    told
}

/// Everything `hob status` shows.
pub(super) fn status(admin: &Admin) -> Value {
    let report = lock(&admin.report).clone();
    let holdings = admin.shared.store.holdings();
    let load = admin.shared.pool.load();
    let mut snapshot = admin.counters.merged();
    snapshot.cache_evictions = holdings.evictions;
    let limits = LIMITS.iter().map(|limit| (limit.name, limit.count(admin)));
    let counters = snapshot.metrics().map(|metric| (metric.name, metric.value));
    let counters: serde_json::Map<String, Value> = counters
        .chain(limits)
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let started = report
        .keeper_started
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root();
    let mut all = programs(&admin.shared.fleet);
    all["hosts"] = hosts(&admin.shared.hosts);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "generation": report.generation,
        "listening": report.addresses,
        "sites": report.sites,
        "warnings": report.warnings,
        "certificates": report.certificates.iter().map(CertificateState::json).collect::<Vec<_>>(),
        "keeper": {
            "pid": report.keeper_pid,
            "started_unix": started.as_secs(),
            "servers_started": report.servers_started,
        },
        "server": {
            "pid": std::process::id(),
            "uptime_s": admin.started.elapsed().as_secs(),
            "user_id": rustix::process::geteuid().as_raw(),
            "scripts_separated": report.keeper_uid == 0 && !is_root,
            "threads": admin.crew.thread_count(),
            "connections_by_thread": admin.crew.connections_by_thread(),
        },
        "spawner": report.spawner_pid.map(|pid| json!({ "pid": pid })),
        "cache": {
            "entries": holdings.entries,
            "bytes": holdings.bytes,
            "bytes_max": holdings.bytes_max,
            "pinned_bytes": holdings.pinned_bytes,
            "hits": snapshot.cache_hits,
            "misses": snapshot.cache_misses,
            "revalidations": snapshot.cache_revalidations,
            "evictions": holdings.evictions,
        },
        "file_pool": {
            "threads": load.threads,
            "idle": load.idle,
            "queued": load.queued,
        },
        "names": admin.names.json(),
        "programs": all,
        "admin": admin_told(admin),
        "counters": counters,
    })
}
