//! The parts of a report as tables of texts, the same for a terminal and for a page.

use hob_load::Environment;
use hob_load::page::{count, time_us};

use super::StudyReport;
use crate::experiment::ExperimentRow;
use crate::growth::{Burst, Grown};
use crate::ladder::RungMeasurement;
use crate::past;
use crate::processes::resolution_us;
use crate::stages::Stages;
use crate::wire::WireCosts;

/// System calls that are named, the most frequent ones.
const CALLS_SHOWN: usize = 8;

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Text(&'static str),
    Number(&'static str),
}

impl Column {
    pub(super) fn title(self) -> &'static str {
        match self {
            Column::Text(title) | Column::Number(title) => title,
        }
    }
}

use Column::{Number, Text};

/// A table with what is said around it.
#[derive(Debug, Clone)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) notes: Vec<String>,
    /// Of interest only to those who want to know how a figure came about.
    pub(super) is_detail: bool,
}

/// All tables, in their order.
pub(super) fn all(report: &StudyReport) -> Vec<Section> {
    let mut all = Vec::new();
    if !report.rungs.is_empty() {
        all.push(ladder(&report.rungs, report.count));
    }
    if let Some(stages) = &report.stages {
        all.push(table(stages, report.count));
        all.push(totals(stages, report.count));
    }
    if !report.exchanges.is_empty() {
        all.push(exchanges(&report.exchanges));
    }
    if !report.grown.is_empty() {
        all.push(grown(&report.grown, report.count));
    }
    if !report.bursts.is_empty() {
        all.push(bursts(&report.bursts));
    }
    if let Some(wire) = &report.wire {
        all.push(ways(wire, report.count));
    }
    all.push(environment(&report.environment));
    all
}

/// The 99th percentile; of fewer than a hundred values that is the largest one, and called so.
fn high(p99_us: f64, values: u64) -> String {
    match values {
        0..100 => format!("max {}", time_us(p99_us)),
        _ => time_us(p99_us),
    }
}

fn environment(environment: &Environment) -> Section {
    let facts = environment.facts().into_iter();
    Section {
        title: "Where it was measured".to_owned(),
        columns: vec![Text("what"), Text("here")],
        rows: facts
            .map(|(name, here)| vec![name.to_owned(), here])
            .collect(),
        notes: Environment::doubt()
            .map(str::to_owned)
            .into_iter()
            .collect(),
        is_detail: true,
    }
}

fn ladder(rungs: &[RungMeasurement], requests: u64) -> Section {
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for one in rungs {
        let program = format!("{} ({})", one.rung.subject.word(), one.rung.language.word());
        match &one.figures {
            Ok(figures) => {
                let cpu = &figures.cpu;
                rows.push(vec![
                    one.rung.name(),
                    program,
                    time_us(figures.times.p50_us),
                    high(figures.times.p99_us, requests),
                    time_us(cpu.total()),
                    time_us(cpu.server),
                    time_us(cpu.spawner),
                    time_us(cpu.program),
                    format!("{}/s", count((1e6 / cpu.total().max(0.001)) as u64)),
                ]);
            }
            Err(reason) => {
                let name = one.rung.name();
                notes.push(format!("not as {name}, {program}: {reason}"));
            }
        }
    }
    notes.push(format!(
        "over one connection; CPU time of programs that end is known to {}",
        time_us(resolution_us(requests))
    ));
    Section {
        title: "Ways to run it".to_owned(),
        columns: vec![
            Text("way"),
            Text("program"),
            Number("p50"),
            Number("p99"),
            Number("CPU"),
            Number("server"),
            Number("spawner"),
            Number("program"),
            Number("per core"),
        ],
        rows,
        notes,
        is_detail: false,
    }
}

fn table(stages: &Stages, requests: u64) -> Section {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for stage in &stages.rows {
        rows.push(vec![
            stage.name.to_owned(),
            time_us(stage.wall_us),
            high(stage.p99_us, requests),
            stage.cpu_us.map_or("-".to_owned(), time_us),
            stage.past.clone(),
            stage.remark.clone(),
        ]);
    }
    rows.push(vec![
        "not explained".to_owned(),
        time_us(stages.unexplained_us),
        "-".to_owned(),
        "-".to_owned(),
        past::text(past::BLOCKED),
        "the whole less the stages".to_owned(),
    ]);
    rows.push(vec![
        "whole request".to_owned(),
        time_us(stages.total.p50_us),
        high(stages.total.p99_us, requests),
        time_us(stages.cpu.total()),
        past::text(past::TOTAL),
        "seen by the client".to_owned(),
    ]);
    Section {
        title: format!("Where one request to {} as cgi goes", stages.script),
        columns: vec![
            Text("stage"),
            Number("wall"),
            Number("p99"),
            Number("CPU"),
            Number("1995 ms"),
            Text(""),
        ],
        rows,
        notes: vec![
            "a stage is the difference of two totals, each measured by itself; one that is shorter than \
             what their medians vary by may come out negative"
                .to_owned(),
            format!(
                "the process was waited for {} after the end of its output",
                time_us(stages.reap_us)
            ),
            past::source(),
        ],
        is_detail: false,
    }
}

fn totals(stages: &Stages, requests: u64) -> Section {
    let row = |nested: &crate::stages::Nested| {
        vec![
            nested.name.to_owned(),
            time_us(nested.times.p50_us),
            high(nested.times.p99_us, requests),
            nested.cpu_us.map_or("-".to_owned(), time_us),
        ]
    };
    Section {
        title: "The totals that stages are differences of".to_owned(),
        columns: vec![Text("total"), Number("p50"), Number("p99"), Number("CPU")],
        rows: stages.nested.iter().map(row).collect(),
        notes: Vec::new(),
        is_detail: true,
    }
}

fn exchanges(all: &[ExperimentRow]) -> Section {
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    for one in all {
        let parent = match one.parent_bytes {
            0 => "small".to_owned(),
            bytes => format!("{} MB", count(bytes as u64 / 1_000_000)),
        };
        let how = format!(
            "{}{}",
            one.how.word(),
            if one.has_exec { " and exec" } else { "" }
        );
        let past = match (one.how.word(), one.has_exec, one.parent_bytes) {
            ("fork", false, 0) => past::text(past::FORK),
            ("fork", true, 0) => past::text(past::FORK_EXEC),
            _ => "-".to_owned(),
        };
        match &one.bare {
            Ok(bare) => rows.push(vec![
                how,
                parent,
                time_us(bare.reaped.p50_us),
                high(bare.reaped.p99_us, one.count),
                time_us(bare.cpu_us()),
                time_us(bare.called.p50_us),
                past,
                count(one.count),
            ]),
            Err(reason) => notes.push(format!("{how}, {parent}: {reason}")),
        }
    }
    notes.push(
        "vfork shares the parent's memory until exec or exit, as hob's spawner does; the parent \
         stands still for the call"
            .to_owned(),
    );
    Section {
        title: "A process, 1,000 bytes each way, and its end; no server".to_owned(),
        columns: vec![
            Text("made by"),
            Text("parent"),
            Number("p50"),
            Number("p99"),
            Number("CPU"),
            Number("call"),
            Number("1995 ms"),
            Number("runs"),
        ],
        rows,
        notes,
        is_detail: false,
    }
}

fn grown(all: &[Grown], requests: u64) -> Section {
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    for one in all {
        let wanted = format!("{} MB", count(one.wanted_bytes as u64 / 1_000_000));
        match &one.figures {
            Ok(figures) => rows.push(vec![
                wanted,
                format!("{} MB", count(one.server_bytes / 1_000_000)),
                time_us(figures.times.p50_us),
                high(figures.times.p99_us, requests),
                time_us(figures.cpu.total()),
            ]),
            Err(reason) => notes.push(format!("{wanted}: {reason}")),
        }
    }
    Section {
        title: "The same as cgi with a server that has grown".to_owned(),
        columns: vec![
            Text("wanted"),
            Number("server"),
            Number("p50"),
            Number("p99"),
            Number("CPU"),
        ],
        rows,
        notes,
        is_detail: false,
    }
}

fn bursts(all: &[Burst]) -> Section {
    let row = |one: &Burst| {
        vec![
            one.limit.map_or("all at once".to_owned(), |limit| {
                format!("{limit} at a time")
            }),
            count(one.starts as u64),
            time_us(one.figures.times.p50_us),
            high(one.figures.times.p99_us, one.starts as u64),
            time_us(one.figures.cpu.total()),
        ]
    };
    Section {
        title: "A burst of starts as cgi".to_owned(),
        columns: vec![
            Text("limit"),
            Number("requests"),
            Number("p50"),
            Number("p99"),
            Number("CPU"),
        ],
        rows: all.iter().map(row).collect(),
        notes: Vec::new(),
        is_detail: false,
    }
}

/// What the packets are to be read with.
fn mtu_note(mtu: u32) -> String {
    const ETHERNET: u32 = 1500;
    let there = match mtu {
        ..=ETHERNET => "",
        _ => "; over Ethernet it has 1,500, and long answers take more packets",
    };
    format!(
        "the longest packet on the way has {} bytes (MTU){there}",
        count(mtu.into())
    )
}

fn ways(wire: &WireCosts, requests: u64) -> Section {
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    let figure = |value: f64| match value {
        few if few < 99.95 => format!("{few:.1}"),
        many => count(many.round() as u64),
    };
    for way in &wire.ways {
        let cost = match &way.figures {
            Ok(cost) => cost,
            Err(reason) => {
                notes.push(format!("not measured, {}: {reason}", way.name));
                continue;
            }
        };
        let packets = |part: fn((f64, f64)) -> f64| {
            cost.packets
                .map_or("-".to_owned(), |packets| figure(part(packets)))
        };
        rows.push(vec![
            way.name.to_owned(),
            time_us(cost.times.p50_us),
            high(cost.times.p99_us, requests),
            packets(|both| both.0),
            packets(|both| both.1),
            figure(cost.bytes.0),
            figure(cost.bytes.1),
            format!("{}", cost.round_trips),
            cost.calls
                .as_ref()
                .map_or("-".to_owned(), |calls| figure(calls.total)),
        ]);
        if let Some(calls) = &cost.calls {
            let most = calls.by_name.iter().take(CALLS_SHOWN);
            let most: Vec<String> = most
                .map(|(name, each)| format!("{name} {}", figure(*each)))
                .collect();
            notes.push(format!("system calls, {}: {}", way.name, most.join(", ")));
        }
    }
    notes.extend(
        wire.no_calls
            .iter()
            .map(|why| format!("no system calls: {why}")),
    );
    notes.extend(wire.mtu.map(mtu_note));
    notes.push(
        "packets of the client's side with those that begin and end a connection, as far as they came \
         before its end (over HTTP/3 every datagram is one); bytes without the headers of TCP, UDP and IP"
            .to_owned(),
    );
    Section {
        title: "On the way, for each request".to_owned(),
        columns: vec![
            Text("connection"),
            Number("p50"),
            Number("p99"),
            Number("packets out"),
            Number("in"),
            Number("bytes out"),
            Number("in"),
            Number("round trips"),
            Number("calls"),
        ],
        rows,
        notes,
        is_detail: false,
    }
}
