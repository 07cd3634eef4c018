//! `GET /v1/overview`: how the server is doing, on one page.

use hob_http::Answered;
use hob_http::unix_ms;
use hob_trace::activity::ActivityRow;
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::routes::{rounded, times};
use super::{Admin, activity, reply};
use crate::api::{CacheUse, CpuUse, MemoryUse, Overview, Rates, WorkersUse};
use hob_keeper::usable_cores;

/// Seconds of activity that come with it.
const SECONDS: u64 = 120;
/// Seconds of its rates.
const RATE_S: u64 = 10;

/// Answers with the overview.
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    Answered::Ready(reply::object(200, &overview(&ask.admin)))
}

/// The overview.
pub(super) fn overview(admin: &Admin) -> Value {
    let now_unix_ms = unix_ms();
    let generation = admin.report.lock().generation;
    let seen = admin.inside.seen();
    let seconds = admin
        .inside
        .activity
        .last_seconds(SECONDS, now_unix_ms / 1000);
    let counters = admin.shared.counts.merged();
    let holdings = admin.shared.store.holdings();
    let asked = counters.cache_hits + counters.cache_misses;
    let hit_ratio = (asked > 0).then(|| rounded(counters.cache_hits as f64 / asked as f64));
    let last: Vec<ActivityRow> = seconds
        .rows
        .iter()
        .rev()
        .take(RATE_S as usize)
        .filter_map(|row| *row)
        .collect();
    let per_second = |value: fn(&ActivityRow) -> u64| {
        let sum: u64 = last.iter().map(value).sum();
        rounded(sum as f64 / last.len().max(1) as f64)
    };
    let cores = |value: fn(&ActivityRow) -> u64| rounded(per_second(value) / 1_000_000.0);
    let workers = &seen.workers;
    json!(Overview {
        now_unix_ms,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: admin.started.elapsed().as_secs(),
        generation,
        hostname: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        rate: Rates {
            requests_s: per_second(|row| row.requests.into()),
            errors_s: per_second(|row| row.errors.into()),
            bytes_in_s: per_second(|row| row.bytes_in),
            bytes_out_s: per_second(|row| row.bytes_out),
        },
        latency: times(&seen.recent.total),
        running: counters.running(),
        connections_open: admin.crew.open_connections(),
        workers: WorkersUse {
            busy: workers.busy,
            idle: workers.idle,
            starting: workers.starting,
            max: workers.max,
            queued: workers.queued,
            queue_wait_p99_us: seen.recent.queue.percentile_us(990),
        },
        cache: CacheUse {
            entries: holdings.entries,
            bytes: holdings.bytes,
            bytes_max: holdings.bytes_max,
            hit_ratio,
        },
        memory: MemoryUse {
            server_bytes: seen.server_bytes,
            programs_bytes: seen.programs_bytes,
        },
        cpu: CpuUse {
            server_cores: cores(|row| row.server_cpu_us),
            programs_cores: cores(|row| row.programs_cpu_us),
            machine_cores: usable_cores(),
        },
        alerts: admin.resources.alerts(),
        seconds: activity::series(&seconds),
    })
}
