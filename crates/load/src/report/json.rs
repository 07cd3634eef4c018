//! The result as it is in JSON.

use std::time::UNIX_EPOCH;

use super::BenchReport;
use super::result::{
    BenchResult, Bytes, Client, Connections, Failure, Judged, Latencies, LatencySummary, Log,
    Machine, Part, Plan, Rate, Replayed, Requests, Server, StatusCount, Stretches, Tls, Url,
};
use super::{pages, result, verdict};
use crate::arrive::Arrivals;
use crate::expect::sha256;
use crate::measure::{self, Failures, Interval, IntervalSeries, Latency};
use crate::plan::{LoadModel, Reuse, Visit};
use crate::replay::Counts;

/// Gathers the whole.
pub(super) fn result(report: &BenchReport) -> BenchResult {
    let tally = &report.tally;
    let notes = verdict::notes(report);
    let begun_at = report.begun_at.duration_since(UNIX_EPOCH);
    let begun_at = begun_at.unwrap_or_default();
    let page = tally.page.as_ref();
    BenchResult {
        format: result::FORMAT,
        plan: plan(report),
        begun_at: begun_at.as_secs(),
        begun_at_ms: begun_at.as_millis() as u64,
        elapsed_s: report.elapsed(),
        interrupted: report.is_interrupted,
        stopped: report.stopped.clone(),
        shard: report.conduct.shard.map(|shard| shard.to_string()),
        command: report.conduct.command.clone(),
        environment: Some(report.environment.clone()),
        requests: requests(report),
        replay: report.log.as_ref().map(log),
        connections: Connections {
            opened: tally.opened,
        },
        tls: Tls {
            terms: tally.tls.clone(),
            full: tally.handshakes_full,
            resumed: tally.handshakes_resumed,
        },
        rate: Rate {
            offered_per_s: report.offered(),
            answered_per_s: report.per_second(tally.answered),
        },
        bytes: Bytes {
            received: tally.received_bytes,
            bodies: tally.body_bytes,
            sent: tally.sent_bytes,
        },
        status: statuses(report),
        failures: failures(&tally.failures),
        latency: Latencies {
            response: times(&tally.response),
            service: times(service(report, &tally.service, &tally.response)),
            connect: times(&tally.connect),
        },
        page: page.map(|all| pages::result(all, report.page_totals())),
        series: series(&tally.series),
        urls: urls(report),
        steps: tally.steps.iter().map(|one| part(report, one)).collect(),
        fairness: tally.fairness(),
        fairness_urls: report.fairness_by_weight(),
        fairness_addresses: report.fairness_over_addresses(),
        addresses: report.addresses(),
        client: Client {
            cpu_us_per_request: report.client_cpu_us(),
            busy_percent: tally.busy_share * 100.0,
        },
        server: Server {
            cpu_us_per_request: report.server_cpu_us(),
            memory_bytes: report.machine.memory_bytes,
            cgroup_cpu_us_per_request: report.cgroup_cpu_us(),
            cgroup_memory_bytes: report.machine.cgroup_memory_bytes,
        },
        machine: Machine {
            busy_percent: report.machine.busy_percent,
            steal_percent: report.machine.steal_percent,
        },
        doubtful: notes.iter().any(|note| note.is_doubt),
        notes: notes.into_iter().map(|note| note.text).collect(),
        thresholds: thresholds(report),
    }
}

fn requests(report: &BenchReport) -> Requests {
    let tally = &report.tally;
    Requests {
        due: tally.due,
        answered: tally.answered,
        good: tally.good,
        failed: report.failed(),
        broken_off: tally.broken_off,
        unfinished: report.unfinished(),
        late: tally.late,
        waited: tally.waited,
        again: tally.again,
    }
}

fn statuses(report: &BenchReport) -> Vec<StatusCount> {
    let all = report.tally.statuses.iter().zip(100u16..);
    all.filter(|(count, _)| **count > 0)
        .map(|(&count, code)| StatusCount { code, count })
        .collect()
}

/// The failures of each kind that occurred.
pub fn failures(failures: &Failures) -> Vec<Failure> {
    let all = failures.all();
    all.map(|(kind, count, first)| Failure {
        kind,
        count,
        first: first.to_owned(),
    })
    .collect()
}

/// In a closed loop requests are sent when they are due: both times are one.
fn service<'a>(report: &BenchReport, service: &'a Latency, response: &'a Latency) -> &'a Latency {
    match report.is_open() {
        true => service,
        false => response,
    }
}

fn part(report: &BenchReport, part: &measure::PartTally) -> Part {
    Part {
        answered: part.answered,
        failed: part.failures.count(),
        failures: failures(&part.failures),
        response: times(&part.response),
        service: times(service(report, &part.service, &part.response)),
    }
}

/// What came of each row of URLs, with what was asked for.
fn urls(report: &BenchReport) -> Vec<Url> {
    let all = report.tally.classes.iter().zip(report.rows());
    all.map(|(counted, row)| Url {
        name: row.name,
        url: row.url.to_owned(),
        url_count: row.url_count,
        method: row.method.to_owned(),
        weight: row.weight,
        fairness: counted.fairness(),
        part: part(report, counted),
    })
    .collect()
}

fn thresholds(report: &BenchReport) -> Vec<Judged> {
    let judged = verdict::thresholds(report).into_iter();
    judged
        .map(|judged| Judged {
            text: judged.threshold.to_string(),
            value: judged.value,
            crossed: judged.is_crossed,
        })
        .collect()
}

fn plan(report: &BenchReport) -> Plan {
    let plan = &report.plan;
    let (rate, arrivals, think_s) = match &plan.pace {
        LoadModel::Closed { think } => (None, None, Some(think.as_secs_f64())),
        LoadModel::Open { rate, arrivals } => {
            let arrivals = match arrivals {
                Arrivals::Constant => "constant",
                Arrivals::Poisson => "poisson",
            };
            (Some(rate.text().to_owned()), Some(arrivals), None)
        }
        LoadModel::Log(_) => (None, None, None),
    };
    let (entries, fields) = (plan.entries.iter(), plan.fields.iter());
    Plan {
        urls: entries.clone().map(|one| one.url.text.clone()).collect(),
        weights: entries.map(|one| one.weight).collect(),
        seed: plan.seed,
        head_percent: plan.acts.head_percent,
        break_percent: plan.acts.break_percent,
        read_rate: plan.acts.read_rate,
        vary: plan.acts.is_varied,
        address: report.address.clone(),
        protocol: plan.protocol.name(),
        page: plan.page.map(Visit::name),
        streams: plan.streams,
        method: plan.method.clone(),
        headers: fields
            .map(|(name, value)| format!("{name}: {value}"))
            .collect(),
        body_bytes: plan.body.as_ref().map(Vec::len),
        body_sha256: plan.body.as_ref().map(|body| sha256(body)),
        list_sha256: report.list_hash(),
        tls: report.tls_mode(),
        loop_kind: if report.is_open() { "open" } else { "closed" },
        rate,
        arrivals,
        think_s,
        replay: replay(&plan.pace),
        connections: plan.connections,
        sources: plan.sources,
        keep_alive: plan.reuse == Reuse::KeepAlive,
        threads: plan.threads,
        warm_up_s: plan.warm_up.as_secs_f64(),
        duration_s: plan.duration.map(|duration| duration.as_secs_f64()),
        count: plan.count,
        timeout_s: plan.timeout.as_secs_f64(),
        pid: plan.pid,
        expectations: plan.expectations.iter().map(ToString::to_string).collect(),
    }
}

fn replay(pace: &LoadModel) -> Option<Replayed> {
    let LoadModel::Log(replay) = pace else {
        return None;
    };
    Some(Replayed {
        file: replay.file.to_string_lossy().into_owned(),
        speed_up: replay.speed_up,
        methods: replay.methods.clone(),
    })
}

/// What there was in the log.
fn log(counts: &Counts) -> Log {
    Log {
        lines: counts.lines,
        requests: counts.requests,
        other_methods: counts.other_methods,
        unreadable: counts.unreadable,
        unsendable: counts.unsendable,
        first: counts.first.clone(),
        back: counts.back,
        jumps: counts.jumps,
        span_s: counts.span_s,
        error: counts.error.clone(),
    }
}

/// What happened when.
pub(crate) fn series(series: &IntervalSeries) -> Stretches {
    let all = series.intervals();
    let times = |percent: f64| {
        all.iter()
            .map(|one| one.percentile(percent).map(|ns| ns as f64 / 1e3))
            .collect()
    };
    Stretches {
        interval_s: series.width_ns() as f64 / 1e9,
        answered: all.iter().map(|one| one.answered).collect(),
        good: all.iter().map(|one| one.good).collect(),
        failed: all.iter().map(|one| one.failed).collect(),
        p50_us: times(50.0),
        p99_us: times(99.0),
        max_us: times(100.0),
        histograms: all.iter().map(Interval::histogram).collect(),
    }
}

/// Times in microseconds; nothing where there are none.
pub fn times(times: &Latency) -> Option<LatencySummary> {
    let us = |ns: u64| ns as f64 / 1e3;
    (times.count() > 0).then(|| LatencySummary {
        count: times.count(),
        mean_us: times.mean() / 1e3,
        min_us: us(times.min()),
        p50_us: us(times.percentile(50.0)),
        p75_us: us(times.percentile(75.0)),
        p90_us: us(times.percentile(90.0)),
        p95_us: us(times.percentile(95.0)),
        p99_us: us(times.percentile(99.0)),
        p99_9_us: us(times.percentile(99.9)),
        p99_99_us: us(times.percentile(99.99)),
        max_us: us(times.max()),
        histogram: times.text(),
    })
}
