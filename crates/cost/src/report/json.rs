//! The result as JSON.

use serde_json::{Map, Value, json};

use super::Report;
use crate::experiment::Exchange;
use crate::growth::{Burst, Grown};
use crate::ladder::Measured;
use crate::load::Times;
use crate::past;
use crate::processes::{CpuUs, resolution_us};
use crate::stages::Stages;
use crate::wire::{Way, Wire};

/// Version of the format; it grows when a field changes its meaning or goes.
const FORMAT: u32 = 1;

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
    let mut value = json!({
        "handler": one.rung.handler,
        "carrier": one.rung.carrier,
        "program": one.rung.subject.word(),
        "language": one.rung.language.word(),
    });
    match &one.figures {
        Ok(figures) => {
            value["wall"] = times(&figures.times);
            value["cpu_us"] = cpu(&figures.cpu);
        }
        Err(reason) => value["not_possible"] = reason.as_str().into(),
    }
    value
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
    let mut value = json!({
        "made_by": one.how.word(),
        "exec": one.has_exec,
        "parent_bytes": one.parent_bytes,
        "count": one.count,
    });
    match &one.bare {
        Ok(bare) => {
            value["wall"] = times(&bare.reaped);
            value["call"] = times(&bare.called);
            value["cpu_us"] = bare.cpu_us().into();
        }
        Err(reason) => value["not_possible"] = reason.as_str().into(),
    }
    value
}

fn grown(one: &Grown) -> Value {
    let mut value = json!({ "wanted_bytes": one.wanted_bytes, "server_bytes": one.server_bytes });
    match &one.figures {
        Ok(figures) => {
            value["wall"] = times(&figures.times);
            value["cpu_us"] = cpu(&figures.cpu);
        }
        Err(reason) => value["not_possible"] = reason.as_str().into(),
    }
    value
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
    let way = |way: &Way| {
        let mut value = json!({ "name": way.name });
        match &way.figures {
            Ok(cost) => {
                value["wall"] = times(&cost.times);
                value["packets_out"] = cost.packets.map(|packets| packets.0).into();
                value["packets_in"] = cost.packets.map(|packets| packets.1).into();
                value["bytes_out"] = cost.bytes.0.into();
                value["bytes_in"] = cost.bytes.1.into();
                value["round_trips"] = cost.round_trips.into();
                value["tls"] = cost.tls.as_deref().into();
                value["calls"] = cost.calls.as_ref().map(|calls| {
                    let by_name = calls.by_name.iter().cloned();
                    json!({
                        "total": calls.total,
                        "by_name": by_name.map(|(name, each)| (name, each.into())).collect::<Map<String, Value>>(),
                    })
                }).into();
            }
            Err(reason) => value["not_measured"] = reason.as_str().into(),
        }
        value
    };
    json!({
        "ways": wire.ways.iter().map(way).collect::<Vec<_>>(),
        "no_calls": wire.no_calls,
    })
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
