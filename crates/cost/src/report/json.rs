//! The result as JSON.

use serde_json::{Map, Value, json};

use super::Report;
use super::layout::FORMAT;
use crate::calls::Calls;
use crate::experiment::Exchange;
use crate::growth::{Burst, Grown};
use crate::ladder::Measured;
use crate::load::Times;
use crate::past;
use crate::processes::{CpuUs, resolution_us};
use crate::stages::Stages;
use crate::wire::{Way, Wire};

pub(super) fn write(report: &Report) -> Value {
    json!({
        "format": FORMAT,
        "subject": report.subject,
        "request": {
            "method": report.asked.method,
            "body_bytes": report.asked.body.as_ref().map_or(0, Vec::len),
        },
        "count": report.count,
        "rate_per_s": report.rate,
        "cpu_resolution_us": resolution_us(report.count),
        "rungs": report.rungs.iter().map(rung).collect::<Vec<_>>(),
        "stages": report.stages.as_ref().map(stages),
        "bare": report.exchanges.iter().map(exchange).collect::<Vec<_>>(),
        "growth": report.grown.iter().map(grown).collect::<Vec<_>>(),
        "burst": report.bursts.iter().map(burst).collect::<Vec<_>>(),
        "wire": report.wire.as_ref().map(wire),
        "failed": report.failed.iter().map(|(part, why)| json!({ "part": part, "why": why })).collect::<Vec<_>>(),
        "environment": report.environment.json(),
        "sentence": report.sentence,
    })
}

fn rung(one: &Measured) -> Value {
    json!({
        "handler": one.rung.handler,
        "carrier": one.rung.carrier,
        "program": one.rung.subject.word(),
        "language": one.rung.language.word(),
        "wall": there(&one.figures, |figures| times(&figures.times)),
        "cpu_us": there(&one.figures, |figures| cpu(&figures.cpu)),
        "not_possible": reason(&one.figures),
    })
}

/// Of what was measured; null where it was not.
fn there<T>(measured: &Result<T, String>, part: impl FnOnce(&T) -> Value) -> Value {
    measured.as_ref().map_or(Value::Null, part)
}

/// Why it was not measured.
fn reason<T>(measured: &Result<T, String>) -> Option<&str> {
    measured.as_ref().err().map(String::as_str)
}

fn stages(stages: &Stages) -> Value {
    let row = |stage: &crate::stages::Stage| {
        json!({
            "name": stage.name,
            "wall_us": stage.wall_us,
            "p99_us": stage.p99_us,
            "cpu_us": stage.cpu_us,
            "in_1995_ms": stage.past,
            "remark": stage.remark,
        })
    };
    let nested = |nested: &crate::stages::Nested| json!({ "name": nested.name, "wall": times(&nested.times), "cpu_us": nested.cpu_us });
    json!({
        "script": stages.script,
        "rows": stages.rows.iter().map(row).collect::<Vec<_>>(),
        "unexplained_us": stages.unexplained_us,
        "reap_us": stages.reap_us,
        "total": times(&stages.total),
        "cpu_us": cpu(&stages.cpu),
        "nested": stages.nested.iter().map(nested).collect::<Vec<_>>(),
        "in_1995_ms": { "total": past::TOTAL_MS, "blocked": past::BLOCKED_MS },
    })
}

fn exchange(one: &Exchange) -> Value {
    json!({
        "made_by": one.how.word(),
        "exec": one.has_exec,
        "parent_bytes": one.parent_bytes,
        "count": one.count,
        "wall": there(&one.bare, |bare| times(&bare.reaped)),
        "call": there(&one.bare, |bare| times(&bare.called)),
        "cpu_us": there(&one.bare, |bare| bare.cpu_us().into()),
        "not_possible": reason(&one.bare),
    })
}

fn grown(one: &Grown) -> Value {
    json!({
        "wanted_bytes": one.wanted_bytes,
        "server_bytes": one.server_bytes,
        "wall": there(&one.figures, |figures| times(&figures.times)),
        "cpu_us": there(&one.figures, |figures| cpu(&figures.cpu)),
        "not_possible": reason(&one.figures),
    })
}

fn burst(one: &Burst) -> Value {
    json!({
        "starts": one.starts,
        "limit": one.limit,
        "wall": times(&one.figures.times),
        "cpu_us": cpu(&one.figures.cpu),
    })
}

fn wire(wire: &Wire) -> Value {
    json!({
        "ways": wire.ways.iter().map(way).collect::<Vec<_>>(),
        "no_calls": wire.no_calls,
    })
}

fn way(way: &Way) -> Value {
    let cost = way.figures.as_ref().ok();
    let packets = cost.and_then(|cost| cost.packets);
    json!({
        "name": way.name,
        "wall": cost.map(|cost| times(&cost.times)),
        "packets_out": packets.map(|packets| packets.0),
        "packets_in": packets.map(|packets| packets.1),
        "bytes_out": cost.map(|cost| cost.bytes.0),
        "bytes_in": cost.map(|cost| cost.bytes.1),
        "round_trips": cost.map(|cost| cost.round_trips),
        "tls": cost.and_then(|cost| cost.tls.as_deref()),
        "calls": cost.and_then(|cost| cost.calls.as_ref()).map(calls),
        "not_measured": reason(&way.figures),
    })
}

fn calls(calls: &Calls) -> Value {
    let by_name = calls.by_name.iter().cloned();
    let by_name: Map<String, Value> = by_name.map(|(name, each)| (name, each.into())).collect();
    json!({ "total": calls.total, "by_name": by_name })
}

fn times(times: &Times) -> Value {
    json!({ "p50_us": times.p50_us, "p99_us": times.p99_us, "mean_us": times.mean_us })
}

fn cpu(cpu: &CpuUs) -> Value {
    json!({
        "server": cpu.server,
        "spawner": cpu.spawner,
        "program": cpu.program,
        "total": cpu.total(),
    })
}
