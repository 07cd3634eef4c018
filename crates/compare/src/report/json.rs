//! The result as JSON, every round included.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::Report;
use super::layout::FORMAT;
use super::sweep::{Distance, Verdict};
use super::table::heading;
use crate::history::figures;
use crate::interval::{Mean, median};
use crate::measure::{Cell, Measured};
use crate::round::Round;
use crate::rows::{Per, Scope};
use crate::server::Settings;
use hob_load::Reuse;

pub(super) fn write(report: &Report) -> Value {
    let servers = report.servers.iter().map(|server| {
        json!({
            "name": server.name,
            "version": server.version,
            "program": server.program,
            "configuration": configuration(report, &server.name),
        })
    });
    let missing = report.missing.iter();
    let missing = missing.map(|one| json!({ "name": one.name, "why": one.why }));
    json!({
        "format": FORMAT,
        "begun_at": report.begun_at.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        "elapsed_s": report.elapsed.as_secs_f64(),
        "interrupted": report.is_interrupted,
        "scope": match report.scope {
            Scope::Quick => "quick",
            Scope::Usual => "usual",
            Scope::Full => "full",
        },
        "settings": match report.settings {
            Settings::Usual => "usual",
            Settings::Tuned => "tuned",
        },
        "environment": report.machine.json(),
        "servers": servers.collect::<Vec<_>>(),
        "missing": missing.collect::<Vec<_>>(),
        "notes": report.notes(),
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
        "secure_to_plain": report.secure_to_plain().iter().map(|(id, ratios)| {
            json!({ "row": id, "ratios": ratios.iter().map(|(label, ratio)| {
                json!({ "label": label, "ratio": ratio })
            }).collect::<Vec<_>>() })
        }).collect::<Vec<_>>(),
    })
}

/// What a server was told: as it is started usually, else in the first of its other ways.
fn configuration<'a>(report: &'a Report, name: &str) -> Option<&'a String> {
    let way = format!("{name} (");
    let ways = &report.configurations;
    let other = || ways.iter().find(|(name, _)| name.starts_with(&way));
    ways.get(name).or_else(|| other().map(|(_, text)| text))
}

fn row(measured: &Measured) -> Value {
    let row = &measured.row;
    let then = row.then.iter().flat_map(|id| figures(id));
    let then = then.map(|then| {
        json!({
            "id": then.id,
            "server": then.server,
            "figure": then.figure,
            "unit": then.unit,
            "remark": then.remark,
        })
    });
    let base = measured.cells.first();
    json!({
        "id": row.id,
        "title": row.title,
        "group": heading(row.group),
        "connections": row.connections,
        "keep_alive": row.reuse == Reuse::KeepAlive,
        "protocol": row.protocol.name(),
        "streams": row.streams,
        "tls": row.is_secure,
        "per": match row.per {
            Per::Request => "request",
            Per::Megabyte => "megabyte",
        },
        "repeated_rounds": measured.repeated,
        "disturbed_rounds": measured.disturbed,
        "then": then.collect::<Vec<_>>(),
        "advice": row.advice,
        "sweep": Verdict::of(measured).map(|verdict| json!({
            "default": verdict.default,
            "best": verdict.best,
            "ratio": mean(verdict.ratio),
            "within_5_percent": match verdict.distance {
                Distance::Near => Some(true),
                Distance::Far => Some(false),
                Distance::Unknown => None,
            },
        })),
        "cells": measured.cells.iter().map(|one| cell(one, base)).collect::<Vec<_>>(),
    })
}

fn cell(cell: &Cell, base: Option<&Cell>) -> Value {
    let cpu: Vec<f64> = cell.rounds.iter().map(|round| round.cpu_us).collect();
    json!({
        "label": cell.entrant.label,
        "server": cell.entrant.server,
        "path": cell.entrant.path,
        "cpu_us": cell.cpu().map(mean),
        "cpu_us_median": median(&cpu),
        "ratio": base.and_then(|base| cell.ratio_to(base)).map(mean),
        "failed": cell.failed(),
        "not_measured": cell.why_not.as_ref().filter(|_| cell.rounds.is_empty()),
        "doubtful": cell.doubt(),
        "rounds": cell.rounds.iter().map(round).collect::<Vec<_>>(),
    })
}

fn mean(mean: Mean) -> Value {
    json!({ "mean": mean.mean, "half_95": mean.half, "n": mean.n })
}

fn round(round: &Round) -> Value {
    json!({
        "cpu_us": round.cpu_us,
        "per_second": round.per_second,
        "bytes_per_second": round.bytes_per_second,
        "good": round.good,
        "failed": round.failed,
        "failure": round.failure,
        "p50_us": round.p50_us,
        "p99_us": round.p99_us,
        "client_cpu_us": round.client_us,
        "steal_percent": round.steal_percent,
        "tls": round.tls,
    })
}
