//! The result as it is in JSON.

use super::StudyReport;
use super::result::{
    BareStart, BurstCost, CallCounts, CostResult, CpuTimes, FORMAT, Failed, Growth, In1995,
    Request, RungCost, StageTable, WayCost, WireResult,
};
use crate::experiment::ExperimentRow;
use crate::growth::{Burst, Grown};
use crate::ladder::RungMeasurement;
use crate::past;
use crate::processes::{CpuUs, resolution_us};
use crate::stages::Stages;
use crate::wire::TransportCost;

pub(super) fn result(report: &StudyReport) -> CostResult {
    let failed = report.failed.iter().map(|(part, why)| Failed {
        part,
        why: why.clone(),
    });
    CostResult {
        format: FORMAT,
        subject: report.subject.clone(),
        request: Request {
            method: report.asked.method.clone(),
            body_bytes: report.asked.body.as_ref().map_or(0, Vec::len),
        },
        count: report.count,
        rate_per_s: report.rate,
        cpu_resolution_us: resolution_us(report.count),
        rungs: report.rungs.iter().map(rung).collect(),
        stages: report.stages.as_ref().map(stages),
        bare: report.exchanges.iter().map(exchange).collect(),
        growth: report.grown.iter().map(grown).collect(),
        burst: report.bursts.iter().map(burst).collect(),
        wire: report.wire.as_ref().map(|wire| WireResult {
            ways: wire.ways.iter().map(way).collect(),
            mtu: wire.mtu,
            no_calls: wire.no_calls.clone(),
        }),
        failed: failed.collect(),
        sentence: report.sentence.clone(),
        environment: report.environment.clone(),
    }
}

fn rung(one: &RungMeasurement) -> RungCost {
    let figures = one.figures.as_ref().ok();
    RungCost {
        handler: one.rung.handler,
        carrier: one.rung.carrier,
        program: one.rung.subject.word(),
        language: one.rung.language.word(),
        wall: figures.map(|figures| figures.times),
        cpu_us: figures.map(|figures| cpu(&figures.cpu)),
        not_possible: one.figures.as_ref().err().cloned(),
    }
}

fn stages(stages: &Stages) -> StageTable {
    StageTable {
        script: stages.script.clone(),
        rows: stages.rows.clone(),
        unexplained_us: stages.unexplained_us,
        reap_us: stages.reap_us,
        total: stages.total,
        cpu_us: cpu(&stages.cpu),
        nested: stages.nested.clone(),
        in_1995_ms: In1995 {
            total: past::ms(past::TOTAL),
            blocked: past::ms(past::BLOCKED),
        },
    }
}

fn exchange(one: &ExperimentRow) -> BareStart {
    let bare = one.bare.as_ref().ok();
    BareStart {
        made_by: one.how.word(),
        exec: one.has_exec,
        parent_bytes: one.parent_bytes,
        count: one.count,
        wall: bare.map(|bare| bare.reaped),
        call: bare.map(|bare| bare.called),
        cpu_us: bare.map(|bare| bare.cpu_us()),
        not_possible: one.bare.as_ref().err().cloned(),
    }
}

fn grown(one: &Grown) -> Growth {
    let figures = one.figures.as_ref().ok();
    Growth {
        wanted_bytes: one.wanted_bytes,
        server_bytes: one.server_bytes,
        wall: figures.map(|figures| figures.times),
        cpu_us: figures.map(|figures| cpu(&figures.cpu)),
        not_possible: one.figures.as_ref().err().cloned(),
    }
}

fn burst(one: &Burst) -> BurstCost {
    BurstCost {
        starts: one.starts,
        limit: one.limit,
        wall: one.figures.times,
        cpu_us: cpu(&one.figures.cpu),
    }
}

fn way(way: &TransportCost) -> WayCost {
    let cost = way.figures.as_ref().ok();
    let packets = cost.and_then(|cost| cost.packets);
    let calls = cost.and_then(|cost| cost.calls.as_ref());
    WayCost {
        name: way.name,
        wall: cost.map(|cost| cost.times),
        packets_out: packets.map(|packets| packets.0),
        packets_in: packets.map(|packets| packets.1),
        bytes_out: cost.map(|cost| cost.bytes.0),
        bytes_in: cost.map(|cost| cost.bytes.1),
        round_trips: cost.map(|cost| cost.round_trips),
        tls: cost.and_then(|cost| cost.tls.clone()),
        calls: calls.map(|calls| CallCounts {
            total: calls.total,
            by_name: calls.by_name.iter().cloned().collect(),
        }),
        not_measured: way.figures.as_ref().err().cloned(),
    }
}

fn cpu(cpu: &CpuUs) -> CpuTimes {
    CpuTimes {
        server: cpu.server,
        spawner: cpu.spawner,
        program: cpu.program,
        total: cpu.total(),
    }
}
