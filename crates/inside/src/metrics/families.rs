//! Every family of numbers, once: the reference page follows from this table and from the table of
//! counters.
//!
//! A counter of `hob_trace::metric` is a family of its own, `hob_NAME`, unless [`of_counter`] makes
//! it one number of a family with a label.

use std::borrow::Cow;
use std::fmt::Write as _;

use hob_trace::Snapshot;
use hob_trace::exposition::{Family, Shape};
use hob_trace::metric::{Metric, MetricKind};

use crate::admin::limits;

use Shape::{Counter, Gauge, Histogram, Info};

macro_rules! families {
    ($($name:ident = $text:literal, $shape:ident, $labels:expr, $help:literal;)+) => {
        $(pub(super) const $name: Family = Family::new($text, $shape, $labels, $help);)+
        /// All of them, in the order they are written.
        static TABLE: &[Family] = &[$($name),+];
    };
}

families! {
    BUILD = "hob_build", Info, &["version"], "The program that runs.";
    PROCESS_CPU = "process_cpu_seconds", Counter, &[], "CPU time of the server process, user and system.";
    PROCESS_RESIDENT = "process_resident_memory_bytes", Gauge, &[], "Memory of the server process that is in RAM.";
    PROCESS_VIRTUAL = "process_virtual_memory_bytes", Gauge, &[], "Address space of the server process.";
    PROCESS_STARTED = "process_start_time_seconds", Gauge, &[], "When the server process began, in seconds since 1970.";
    PROCESS_FDS = "process_open_fds", Gauge, &[], "Descriptors the server process has open.";
    PROCESS_FDS_MAX = "process_max_fds", Gauge, &[], "Descriptors the server process may have open.";
    PROCESS_THREADS = "process_threads", Gauge, &[], "Threads of the server process.";
    GENERATION = "hob_config_generation", Gauge, &[], "Loads of the config, the first one counted.";
    SERVERS = "hob_servers_started", Counter, &[], "Server processes the keeper has started.";
    REQUESTS = "hob_requests", Counter, &["site", "handler", "class"], "Finished requests by site, handler and class of status; class `none` had no answer.";
    REQUEST_BYTES = "hob_request_bytes", Counter, &["site", "handler"], "Bytes of requests, heads and bodies.";
    RESPONSE_BYTES = "hob_response_bytes", Counter, &["site", "handler"], "Bytes of answers, heads and bodies.";
    CONNECTIONS = "hob_connections_open", Gauge, &[], "Connections open now.";
    THREAD_CONNECTIONS = "hob_thread_connections", Gauge, &["thread"], "Connections that a server thread has.";
    LISTENER_OPEN = "hob_listener_connections_open", Gauge, &["listener"], "Connections open now, by the address they came to.";
    LISTENER_ACCEPTED = "hob_listener_connections", Counter, &["listener"], "Connections accepted, by the address they came to.";
    TLS_HANDSHAKES = "hob_tls_handshakes", Counter, &["version", "kind"], "TLS handshakes done, by version; kind `resumed` had a ticket of an earlier one.";
    CERTIFICATE_ENDS = "hob_certificate_expires_seconds", Gauge, &["certificate"], "When a certificate that is served ends, in seconds since 1970, by its first name; the first to end of those that share one.";
    CERTIFICATE_FAILS = "hob_certificate_order_failed", Gauge, &["certificate"], "1 while the last order of a certificate from an authority has failed, else 0.";
    LIMITS = "hob_limit_reached", Counter, &["limit"], "How often a limit was reached; the reference page says what each one means.";
    CONCURRENCY = "hob_concurrency_requests", Gauge, &["state"], "Requests that a `concurrency` counts, `running` or `waiting`.";
    OVERLOAD = "hob_overload_level", Gauge, &[], "Priorities that are refused now (`overload`): 0 none, 1 low, 2 low and normal.";
    BANS = "hob_bans", Gauge, &[], "Clients that are banned.";
    CACHE_ENTRIES = "hob_cache_entries", Gauge, &[], "Files the cache knows.";
    CACHE_BYTES = "hob_cache_bytes", Gauge, &[], "Memory of the cache.";
    CACHE_PINNED = "hob_cache_pinned_bytes", Gauge, &[], "Memory of pinned files in the cache.";
    CACHE_MAX = "hob_cache_max_bytes", Gauge, &[], "Memory the cache may have.";
    FILE_POOL = "hob_file_pool_threads", Gauge, &["state"], "Threads that may wait for a disk, `busy` or `idle`.";
    FILE_POOL_QUEUE = "hob_file_pool_queue_length", Gauge, &[], "Jobs that wait for such a thread.";
    WORKERS = "hob_workers", Gauge, &["program", "state"], "Workers of resident programs: `starting`, `idle`, `busy` or `leaving`.";
    WORKERS_MAX = "hob_workers_max", Gauge, &["program"], "Most workers a resident program may have.";
    WORKER_MEMORY = "hob_worker_memory_bytes", Gauge, &["program"], "Memory of a resident program's workers that is in RAM, shared pages counted in each.";
    WORKERS_BY_CARRIER = "hob_carrier_workers", Gauge, &["carrier"], "Workers that are ready, by what carries their requests: `shm`, `stream` or `lines`.";
    PROCESSES = "hob_program_processes", Gauge, &["program"], "Processes that run for one request each (`cgi`, `warm`), and connections to programs and servers elsewhere (`fastcgi`, `scgi`, `uwsgi`, `proxy`, `remote`).";
    QUEUE = "hob_queue_length", Gauge, &["program"], "Requests that wait for a program.";
    MEMBER_IN = "hob_upstream_member_in", Gauge, &["upstream", "member"], "1 while a member of an upstream is asked, 0 while it is left out or drains.";
    MEMBER_REQUESTS = "hob_upstream_member_requests", Gauge, &["upstream", "member"], "Requests that a member has now.";
    MEMBER_ANSWERS = "hob_upstream_member_answers", Counter, &["upstream", "member"], "Answers that a member has begun.";
    MEMBER_FAILURES = "hob_upstream_member_failures", Counter, &["upstream", "member"], "How often a member failed.";
    HOSTS = "hob_warm_hosts", Gauge, &["state"], "Interpreters that scripts are forked from.";
    HOST_RUNS = "hob_warm_running", Gauge, &[], "Scripts forked from them that run now.";
    DURATION = "hob_request_duration_seconds", Histogram, &["site", "handler"], "From a request's first byte to the last of its answer.";
    FIRST_BYTE = "hob_first_byte_seconds", Histogram, &["handler"], "From a request's first byte to the head of its answer.";
    QUEUE_WAIT = "hob_queue_wait_seconds", Histogram, &["handler"], "What requests waited in a program's queue.";
    PROGRAM_START = "hob_program_start_seconds", Histogram, &["handler"], "From asking for a program until a worker had the request, its warm interpreter was there, or its process was started.";
    PROGRAM_CPU = "hob_program_cpu_seconds", Histogram, &["handler"], "CPU time a request took in its program, where it is known.";
}

/// What becomes of a number of the table of counters.
pub(super) enum OfCounter {
    /// It is one of `hob_limit_reached`, with this label.
    Limit(&'static str),
    /// Others with labels say the same.
    Told,
    /// A family of its own.
    Own(Family),
}

/// What a number of the table of counters is called.
pub(super) fn of_counter(metric: &Metric) -> OfCounter {
    if let Some(limit) = metric.name.strip_prefix("limit_") {
        return OfCounter::Limit(limit);
    }
    let is_told = metric.kind == MetricKind::Gauge
        || metric.name.starts_with("tls_handshakes") && metric.name != "tls_handshakes_failed"
        || metric.name.starts_with("tls_resumed")
        || metric.name.starts_with("responses_") && metric.name != "responses_1xx"
        || ["requests", "bytes_in", "bytes_out"].contains(&metric.name);
    if is_told {
        return OfCounter::Told;
    }
    let name = match metric.name {
        "responses_1xx" => "hob_interim_responses".to_owned(),
        name => match name.strip_suffix("_us") {
            Some(name) => format!("hob_{name}_seconds"),
            None => format!("hob_{name}"),
        },
    };
    let help = match metric.help.strip_prefix("Microseconds requests") {
        Some(rest) => format!("Time requests{rest}"),
        None => metric.help.to_owned(),
    };
    OfCounter::Own(Family {
        name: Cow::Owned(name),
        shape: Counter,
        labels: &[],
        help: Cow::Owned(help),
    })
}

/// The value of a counter with a family of its own: times are seconds there.
pub(super) fn is_time(metric: &Metric) -> bool {
    metric.name.ends_with("_us")
}

/// The tables as a page of the documentation, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    let counters: Vec<Metric> = Snapshot::default().metrics().collect();
    let own = counters
        .iter()
        .filter_map(|metric| match of_counter(metric) {
            OfCounter::Own(family) => Some(family),
            _ => None,
        });
    for family in TABLE.iter().cloned().chain(own) {
        let labels: Vec<String> = family.labels.iter().map(|one| format!("`{one}`")).collect();
        let (suffix, shape) = (family.shape.suffix(), family.shape.word());
        let (name, labels) = (&family.name, labels.join(", "));
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `{name}{suffix}` | {shape} | {labels} | {} |",
            family.help
        );
    }
    page.push_str(LIMITS_INTRODUCTION);
    for metric in &counters {
        if let OfCounter::Limit(limit) = of_counter(metric) {
            let _ = writeln!(page, "| `{limit}` | {} |", metric.help);
        }
    }
    for limits::Limit { name, text, .. } in limits::LIMITS {
        let _ = writeln!(page, "| `{}` | {text} |", name.trim_start_matches("limit_"));
    }
    page
}

const INTRODUCTION: &str = "\
# Metrics

What `/metrics` tells, by name. Counters only grow while a server process runs; a histogram has
`_bucket`, `_sum` and `_count`. `site` is a site's first name, `*` for the default site, empty where
a request was refused before a site was chosen, and `other` beyond the first `sites` of `[metrics]`,
as `certificate` is beyond as many; `handler` is who answered; `program` is the route and what runs
there, `other` beyond `programs`.

| name | type | labels | what it tells |
| --- | --- | --- | --- |
";

const LIMITS_INTRODUCTION: &str = "
## Limits

The values of `limit` in `hob_limit_reached_total`.

| limit | what happened |
| --- | --- |
";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_family_has_a_name_of_its_own_that_prometheus_takes() {
        let counters: Vec<Metric> = Snapshot::default().metrics().collect();
        let own = counters
            .iter()
            .filter_map(|metric| match of_counter(metric) {
                OfCounter::Own(family) => Some(family),
                _ => None,
            });
        let mut names = HashSet::new();
        for family in TABLE.iter().cloned().chain(own) {
            let is_right =
                |byte: u8| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
            assert!(family.name.bytes().all(is_right), "{}", family.name);
            assert!(!family.name.ends_with("_total") && !family.name.ends_with("_us"));
            assert!(family.help.ends_with('.') && !family.help.contains(['\n', '\\']));
            assert!(
                names.insert(family.name.clone()),
                "{} stands twice",
                family.name
            );
        }
    }
}
