//! The result for people.

use super::Report;
use super::figures::{columns, count, time};
use crate::ladder::Measured;
use crate::past;
use crate::processes::resolution_us;
use crate::stages::Stages;

pub(super) fn write(report: &Report) -> String {
    let body = report.asked.body.as_ref().map_or(0, Vec::len);
    let mut text = format!(
        "{}\n{} of {}, {} requests of each kind, one after the other\n",
        report.subject,
        report.asked.method,
        if body == 0 {
            "no body".to_owned()
        } else {
            format!("{} bytes", count(body as u64))
        },
        count(report.count),
    );
    if !report.rungs.is_empty() {
        text.push_str(&ladder(&report.rungs, report.count));
    }
    if let Some(stages) = &report.stages {
        text.push_str(&table(stages));
    }
    text.push_str(&format!("\n{}\n", report.sentence));
    text
}

fn ladder(rungs: &[Measured], requests: u64) -> String {
    let cells = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![cells(&[
        "way", "program", "p50", "p99", "CPU", "server", "spawner", "program", "per core",
    ])];
    let mut reasons = String::new();
    for one in rungs {
        let program = format!("{} ({})", one.rung.subject.word(), one.rung.language.word());
        match &one.figures {
            Ok(figures) => {
                let cpu = &figures.cpu;
                rows.push(vec![
                    one.rung.name(),
                    program,
                    time(figures.times.p50_us),
                    time(figures.times.p99_us),
                    time(cpu.total()),
                    time(cpu.server),
                    time(cpu.spawner),
                    time(cpu.program),
                    format!("{}/s", count((1e6 / cpu.total().max(0.001)) as u64)),
                ]);
            }
            Err(reason) => {
                let name = one.rung.name();
                reasons.push_str(&format!("not as {name}, {program}: {reason}\n"));
            }
        }
    }
    format!(
        "\nWays to run it, over one connection; CPU time per request (of programs that end to {})\n{}{reasons}",
        time(resolution_us(requests)),
        columns(&rows, usize::MAX)
    )
}

fn table(stages: &Stages) -> String {
    let cells = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![cells(&["stage", "wall", "p99", "CPU", "1995 ms", ""])];
    for stage in &stages.rows {
        rows.push(vec![
            stage.name.to_owned(),
            time(stage.wall_us),
            time(stage.p99_us),
            stage.cpu_us.map_or("-".to_owned(), time),
            stage.past.clone(),
            stage.remark.clone(),
        ]);
    }
    let blocked = past::BLOCKED_MS.to_string();
    rows.push(vec![
        "not explained".to_owned(),
        time(stages.unexplained_us),
        String::new(),
        String::new(),
        blocked,
        "the whole less the stages".to_owned(),
    ]);
    rows.push(vec![
        "whole request".to_owned(),
        time(stages.total.p50_us),
        time(stages.total.p99_us),
        time(stages.cpu.total()),
        past::TOTAL_MS.to_string(),
        format!("reaped {} later", time(stages.reap_us)),
    ]);
    let mut totals: Vec<Vec<String>> = vec![cells(&["total", "p50", "p99", "CPU"])];
    for nested in &stages.nested {
        totals.push(vec![
            nested.name.to_owned(),
            time(nested.times.p50_us),
            time(nested.times.p99_us),
            nested.cpu_us.map_or("-".to_owned(), time),
        ]);
    }
    format!(
        "\nWhere one request to {} as cgi goes, over a connection of its own\n{}\n\
         The totals these are differences of\n{}",
        stages.script,
        columns(&rows, 4),
        columns(&totals, usize::MAX)
    )
}
