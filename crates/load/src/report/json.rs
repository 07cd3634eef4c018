//! The result as JSON. `fields` describes every field; a test holds the two against each other.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::Report;
use super::fields::FORMAT;
use super::pages;
use super::verdict;
use crate::arrive::Arrivals;
use crate::expect::sha256;
use crate::measure::{Failures, Interval, Latency, Part, Series};
use crate::plan::{Pace, Reuse, Visit};
use crate::replay::Counts;

/// Writes the whole.
pub(super) fn write(report: &Report) -> Value {
    let tally = &report.tally;
    let machine = &report.machine;
    let notes = verdict::notes(report);
    let begun_at = report.begun_at.duration_since(UNIX_EPOCH);
    let begun_at = begun_at.unwrap_or_default();
    json!({
        "format": FORMAT,
        "plan": plan(report),
        "begun_at": begun_at.as_secs(),
        "begun_at_ms": begun_at.as_millis() as u64,
        "elapsed_s": report.elapsed(),
        "interrupted": report.is_interrupted,
        "stopped": report.stopped,
        "shard": report.conduct.shard.map(|shard| shard.to_string()),
        "command": report.conduct.command,
        "environment": report.environment.json(),
        "requests": requests(report),
        "replay": report.log.as_ref().map(log),
        "connections": { "opened": tally.opened },
        "tls": {
            "terms": tally.tls,
            "full": tally.handshakes_full,
            "resumed": tally.handshakes_resumed,
        },
        "rate": {
            "offered_per_s": report.offered(),
            "answered_per_s": report.per_second(tally.answered),
        },
        "bytes": {
            "received": tally.received_bytes,
            "bodies": tally.body_bytes,
            "sent": tally.sent_bytes,
        },
        "status": statuses(report),
        "failures": failures(&tally.failures),
        "latency": {
            "response": times(&tally.response),
            "service": times(if report.is_open() { &tally.service } else { &tally.response }),
            "connect": times(&tally.connect),
        },
        "page": tally.page.as_ref().map(|all| pages::write(all, report.page_totals())),
        "series": series(&tally.series),
        "urls": classes(report),
        "steps": parts(report, &tally.steps),
        "fairness": tally.fairness(),
        "fairness_urls": report.fairness_by_weight(),
        "fairness_addresses": report.fairness_over_addresses(),
        "addresses": report.addresses_json(),
        "client": {
            "cpu_us_per_request": report.client_cpu_us(),
            "busy_percent": tally.busy_share * 100.0,
        },
        "server": {
            "cpu_us_per_request": report.server_cpu_us(),
            "memory_bytes": machine.memory_bytes,
            "cgroup_cpu_us_per_request": report.cgroup_cpu_us(),
            "cgroup_memory_bytes": machine.cgroup_memory_bytes,
        },
        "machine": {
            "busy_percent": machine.busy_percent,
            "steal_percent": machine.steal_percent,
        },
        "doubtful": notes.iter().any(|note| note.is_doubt),
        "notes": notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(),
        "thresholds": thresholds(report),
    })
}

fn requests(report: &Report) -> Value {
    let tally = &report.tally;
    json!({
        "due": tally.due,
        "answered": tally.answered,
        "good": tally.good,
        "failed": report.failed(),
        "unfinished": report.unfinished(),
        "late": tally.late,
        "waited": tally.waited,
        "again": tally.again,
    })
}

fn statuses(report: &Report) -> Vec<Value> {
    let all = report.tally.statuses.iter().zip(100u16..);
    all.filter(|(count, _)| **count > 0)
        .map(|(count, status)| json!({ "code": status, "count": count }))
        .collect()
}

fn failures(failures: &Failures) -> Vec<Value> {
    let all = failures.all();
    all.map(|(kind, count, first)| json!({ "kind": kind, "count": count, "first": first }))
        .collect()
}

fn parts(report: &Report, parts: &[Part]) -> Vec<Value> {
    let part = |part: &Part| {
        let service = match report.is_open() {
            true => &part.service,
            false => &part.response,
        };
        json!({
            "answered": part.answered,
            "failed": part.failures.count(),
            "failures": failures(&part.failures),
            "response": times(&part.response),
            "service": times(service),
        })
    };
    parts.iter().map(part).collect()
}

/// What came of each row of URLs, with what was asked for.
fn classes(report: &Report) -> Vec<Value> {
    let mut all = parts(report, &report.tally.classes);
    for (class, row) in all.iter_mut().zip(report.rows()) {
        class["name"] = row.name.into();
        class["url"] = row.url.into();
        class["url_count"] = row.url_count.into();
        class["method"] = row.method.into();
        class["weight"] = row.weight.into();
    }
    for (class, part) in all.iter_mut().zip(&report.tally.classes) {
        class["fairness"] = part.fairness().into();
    }
    all
}

fn thresholds(report: &Report) -> Vec<Value> {
    let judged = verdict::thresholds(report);
    let one = |judged: &verdict::Judged<'_>| {
        json!({
            "text": judged.threshold.to_string(),
            "value": judged.value,
            "crossed": judged.is_crossed,
        })
    };
    judged.iter().map(one).collect()
}

fn plan(report: &Report) -> Value {
    let plan = &report.plan;
    let (rate, arrivals, think) = match &plan.pace {
        Pace::Closed { think } => (None, None, Some(think.as_secs_f64())),
        Pace::Open { rate, arrivals } => {
            let arrivals = match arrivals {
                Arrivals::Constant => "constant",
                Arrivals::Poisson => "poisson",
            };
            (Some(rate.text()), Some(arrivals), None)
        }
        Pace::Log(_) => (None, None, None),
    };
    json!({
        "urls": plan
            .entries
            .iter()
            .map(|entry| entry.url.text.as_str())
            .collect::<Vec<_>>(),
        "weights": plan.entries.iter().map(|entry| entry.weight).collect::<Vec<_>>(),
        "seed": plan.seed,
        "address": report.address,
        "protocol": plan.protocol.name(),
        "page": plan.page.map(Visit::name),
        "streams": plan.streams,
        "method": plan.method,
        "headers": plan
            .fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect::<Vec<_>>(),
        "body_bytes": plan.body.as_ref().map(Vec::len),
        "body_sha256": plan.body.as_ref().map(|body| sha256(body)),
        "list_sha256": report.list_hash(),
        "tls": report.tls_mode(),
        "loop": if report.is_open() { "open" } else { "closed" },
        "rate": rate,
        "arrivals": arrivals,
        "think_s": think,
        "replay": replay(&plan.pace),
        "connections": plan.connections,
        "sources": plan.sources,
        "keep_alive": plan.reuse == Reuse::KeepAlive,
        "threads": plan.threads,
        "warm_up_s": plan.warm_up.as_secs_f64(),
        "duration_s": plan.duration.map(|duration| duration.as_secs_f64()),
        "count": plan.count,
        "timeout_s": plan.timeout.as_secs_f64(),
        "pid": plan.pid,
        "expectations": plan
            .expectations
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    })
}

fn replay(pace: &Pace) -> Option<Value> {
    let Pace::Log(replay) = pace else { return None };
    Some(json!({
        "file": replay.file.to_string_lossy(),
        "speed_up": replay.speed_up,
        "methods": replay.methods,
    }))
}

/// What there was in the log.
fn log(counts: &Counts) -> Value {
    json!({
        "lines": counts.lines,
        "requests": counts.requests,
        "other_methods": counts.other_methods,
        "unreadable": counts.unreadable,
        "unsendable": counts.unsendable,
        "first": counts.first,
        "back": counts.back,
        "jumps": counts.jumps,
        "span_s": counts.span_s,
        "error": counts.error,
    })
}

/// What happened when.
pub(crate) fn series(series: &Series) -> Value {
    let all = series.intervals();
    let times = |percent: f64| {
        all.iter()
            .map(|one| one.percentile(percent).map(|ns| ns as f64 / 1e3))
            .collect::<Vec<_>>()
    };
    json!({
        "interval_s": series.width_ns() as f64 / 1e9,
        "answered": all.iter().map(|one| one.answered).collect::<Vec<_>>(),
        "good": all.iter().map(|one| one.good).collect::<Vec<_>>(),
        "failed": all.iter().map(|one| one.failed).collect::<Vec<_>>(),
        "p50_us": times(50.0),
        "p99_us": times(99.0),
        "max_us": times(100.0),
        "histograms": all.iter().map(Interval::histogram).collect::<Vec<_>>(),
    })
}

/// Times in microseconds; nothing where there are none.
pub(crate) fn times(times: &Latency) -> Value {
    if times.count() == 0 {
        return Value::Null;
    }
    let us = |ns: u64| ns as f64 / 1e3;
    json!({
        "count": times.count(),
        "mean_us": times.mean() / 1e3,
        "min_us": us(times.min()),
        "p50_us": us(times.percentile(50.0)),
        "p75_us": us(times.percentile(75.0)),
        "p90_us": us(times.percentile(90.0)),
        "p95_us": us(times.percentile(95.0)),
        "p99_us": us(times.percentile(99.0)),
        "p99_9_us": us(times.percentile(99.9)),
        "p99_99_us": us(times.percentile(99.99)),
        "max_us": us(times.max()),
        "histogram": times.text(),
    })
}
