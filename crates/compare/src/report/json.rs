//! The result as it is in JSON, every round included.

use std::time::UNIX_EPOCH;

use hob_load::Reuse;
use hob_load::history::figures_of;

use super::ComparisonReport;
use super::besides::{FlowResult, body_bytes, link_frames};
use super::claims;
use super::era;
use super::result::{
    CellResult, CompareResult, FORMAT, LabelRatio, LinkResult, RowResult, SecureToPlain,
    ServerResult, StandingResult, SweepResult, TargetResult,
};
use super::standing::Standing;
use super::sweep::{Distance, SweepVerdict};
use super::table::heading;
use crate::link::{FrameCount, LinkSettings};
use crate::measure::{EntrantResult, RowMeasurement};
use crate::rows::Per;
use crate::server::ServerTuning;

pub(super) fn result(report: &ComparisonReport) -> CompareResult {
    let servers = report.servers.iter().map(|server| ServerResult {
        name: server.name.clone(),
        version: server.version.clone(),
        program: server.program.display().to_string(),
        configuration: configuration(report, &server.name).cloned(),
    });
    let begun_at = report.begun_at.duration_since(UNIX_EPOCH);
    CompareResult {
        format: FORMAT,
        begun_at: begun_at.map_or(0, |time| time.as_secs()),
        elapsed_s: report.elapsed.as_secs_f64(),
        interrupted: report.is_interrupted,
        scope: report.scope.name(),
        settings: match report.settings {
            ServerTuning::Usual => "usual",
            ServerTuning::Tuned => "tuned",
        },
        link: report.link.map(|link| LinkResult {
            bits_per_second: link.bits_per_second,
            round_trip_us: link.round_trip.as_secs_f64() * 1e6,
            frames: FrameCount::sum(
                { report.rows.iter() }
                    .flat_map(|row| &row.cells)
                    .filter_map(link_frames),
            ),
        }),
        target: report.target.as_ref().map(|target| TargetResult {
            address: target.address.clone(),
            round_trip_us: target.round_trip.as_secs_f64() * 1e6,
            card_bits_per_second: target.card_bits_per_second,
            lost: target.lost.clone(),
        }),
        servers: servers.collect(),
        missing: report.missing.clone(),
        notes: report.notes(),
        doubts: report.doubts(),
        standings: Standing::all(report).into_iter().map(standing).collect(),
        rows: report
            .rows
            .iter()
            .map(|one| row(one, report.bandwidth()))
            .collect(),
        secure_to_plain: secure_to_plain(report),
        eras: era::ratios(report),
        claims: claims::all(report),
        environment: report.machine.clone(),
    }
}

/// What a server was told: as it is started usually, else in the first of its other ways.
fn configuration<'a>(report: &'a ComparisonReport, name: &str) -> Option<&'a String> {
    let way = format!("{name} (");
    let ways = &report.configurations;
    let other = || ways.iter().find(|(name, _)| name.starts_with(&way));
    ways.get(name).or_else(|| other().map(|(_, text)| text))
}

fn standing(standing: Standing) -> StandingResult {
    let (low, high) = standing.bounds.unzip();
    StandingResult {
        server: standing.server,
        work: standing.work,
        ratio: standing.ratio,
        low,
        high,
        rows: standing.rows,
        left_out: standing.left_out,
    }
}

fn row(measured: &RowMeasurement, link: Option<LinkSettings>) -> RowResult {
    let row = &measured.row;
    let base = measured.cells.first();
    RowResult {
        id: row.id.clone(),
        title: row.title.clone(),
        group: heading(row.group),
        connections: row.connections,
        keep_alive: row.reuse == Reuse::KeepAlive,
        protocol: row.protocol.name(),
        streams: row.streams,
        tls: row.is_secure,
        per: match row.per {
            Per::Request => "request",
            Per::Megabyte => "megabyte",
        },
        repeated_rounds: measured.repeated,
        disturbed_rounds: measured.disturbed,
        then: row
            .then
            .iter()
            .flat_map(|id| figures_of(id))
            .cloned()
            .collect(),
        advice: row.advice.to_string(),
        sweep: SweepVerdict::of(measured).map(sweep),
        cells: { measured.cells.iter() }
            .map(|one| cell(one, base, link))
            .collect(),
    }
}

fn sweep(verdict: SweepVerdict) -> SweepResult {
    SweepResult {
        default: verdict.default,
        best: verdict.best,
        ratio: verdict.ratio,
        within_5_percent: match verdict.distance {
            Distance::Near => Some(true),
            Distance::Far => Some(false),
            Distance::Unknown => None,
        },
    }
}

fn cell(
    cell: &EntrantResult,
    base: Option<&EntrantResult>,
    link: Option<LinkSettings>,
) -> CellResult {
    CellResult {
        label: cell.entrant.label.clone(),
        server: cell.entrant.server.clone(),
        path: cell.entrant.path.clone(),
        cpu_us: cell.cpu(),
        ratio: base.and_then(|base| cell.ratio_to(base)),
        link_percent: cell.link_percent(link),
        body_bytes: body_bytes(cell),
        flow: FlowResult::of(cell),
        link_frames: link_frames(cell),
        failed: cell.failed(),
        not_measured: cell.why_not.clone().filter(|_| cell.rounds.is_empty()),
        doubtful: cell.doubt(),
        rounds: cell.rounds.clone(),
    }
}

fn secure_to_plain(report: &ComparisonReport) -> Vec<SecureToPlain> {
    let ratio = |(label, ratio): (&str, f64)| LabelRatio {
        label: label.to_owned(),
        ratio,
    };
    let rows = report.secure_to_plain().into_iter();
    rows.map(|(row, ratios)| SecureToPlain {
        row: row.to_owned(),
        ratios: ratios.into_iter().map(ratio).collect(),
    })
    .collect()
}
