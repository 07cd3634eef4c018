//! The control API: JSON over HTTP on the control socket.
//!
//! `GET /v1/status`, `POST /v1/reload`, `/v1/upgrade`, `/v1/stop`. Every answer is a JSON object.

pub mod helm;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hob_http::thread::Crew;
use hob_http::{Answered, Body, Request, Response};
use hob_trace::metric::Counters;
use serde_json::{Value, json};

use crate::handle::admin::helm::{Helm, Outcome};
use crate::handle::plain;
use crate::life::Wish;
use crate::shared::Shared;

/// What the control API tells and steers.
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
    /// Addresses listened on.
    pub addresses: Vec<String>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// Names of the sites, the default site as `*`.
    pub sites: Vec<String>,
}

/// Answers a request on the control socket.
pub fn answer(admin: &Arc<Admin>, request: &Request) -> Answered {
    let allowed_uid = lock(&admin.report).keeper_uid;
    // The socket's own mode says the same; this holds when it is passed on or its mode is changed.
    if !matches!(request.facts().peer_uid, Some(uid) if uid == 0 || uid == allowed_uid) {
        return Answered::Ready(object(
            403,
            &json!({"text": "this user may not steer this server"}),
        ));
    }
    let head = request.head();
    let wish = match (head.method(), head.path()) {
        (b"GET" | b"HEAD", b"/v1/status") => {
            return Answered::Ready(object(200, &status(admin)));
        }
        (b"POST", b"/v1/reload") => Wish::Reload,
        (b"POST", b"/v1/upgrade") => Wish::Upgrade,
        (b"POST", b"/v1/stop") => Wish::Stop,
        (_, b"/v1/status") => return Answered::Ready(wrong_method(b"GET, HEAD")),
        (_, b"/v1/reload" | b"/v1/upgrade" | b"/v1/stop") => {
            return Answered::Ready(wrong_method(b"POST"));
        }
        _ => return Answered::Ready(object(404, &json!({"text": "there is nothing here"}))),
    };
    let asked = admin.helm.ask(wish);
    Answered::Later(Box::pin(async move {
        let Outcome { is_ok, text } = asked.await;
        object(if is_ok { 200 } else { 409 }, &json!({ "text": text }))
    }))
}

fn wrong_method(allowed: &[u8]) -> Response {
    let mut response = object(405, &json!({"text": "this method does nothing here"}));
    response.fields_mut().add(b"Allow", allowed);
    response
}

fn object(status: u16, value: &Value) -> Response {
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"application/json");
    fields.add(b"Cache-Control", b"no-store");
    Response::new(status, fields, Body::Bytes(format!("{value}\n").into()))
}

/// Everything `hob status` shows.
fn status(admin: &Admin) -> Value {
    let report = lock(&admin.report).clone();
    let holdings = admin.shared.store.holdings();
    let load = admin.shared.pool.load();
    let mut snapshot = admin.counters.merged();
    snapshot.cache_evictions = holdings.evictions;
    let counters: serde_json::Map<String, Value> = snapshot
        .metrics()
        .map(|metric| (metric.name.to_owned(), metric.value.into()))
        .collect();
    let started = report
        .keeper_started
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "generation": report.generation,
        "listening": report.addresses,
        "sites": report.sites,
        "warnings": report.warnings,
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
        "counters": counters,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
