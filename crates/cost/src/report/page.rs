//! The result as one page of HTML.

use hob_load::page::{
    Axis, Bar, BarChart, BarGroup, Details, PageTable, ReportPage, Sentence, Unit,
};

use super::StudyReport;
use super::section::{self, Column, Section};
use crate::ladder::RungMeasurement;
use crate::stages::Stages;

pub(super) fn write(report: &StudyReport) -> String {
    let mut page = ReportPage::new(format!("What a request to {} costs", report.subject));
    page.subtitle(report.asked_in_words());
    if !report.sentence.is_empty() {
        page.push(vec![Sentence::plain(report.sentence.as_str())]);
    }
    let failed = report.failed.iter();
    let failed: Vec<Sentence> = failed
        .map(|(part, why)| Sentence::bad(format!("{part} is not measured: {why}")))
        .collect();
    if !failed.is_empty() {
        page.push(failed);
    }
    for section in section::all(report) {
        if section.is_detail {
            page.push(Details::new(section.title.as_str()).part(table(&section)));
            continue;
        }
        page.section(section.title.as_str());
        if let Some(chart) = chart(report, &section) {
            page.push(chart);
        }
        page.push(table(&section));
    }
    page.html()
}

fn table(section: &Section) -> PageTable {
    let mut table = PageTable::new(section.title.as_str());
    for column in &section.columns {
        table = match column {
            Column::Text(title) => table.text(*title),
            Column::Number(title) => table.number(*title),
        };
    }
    for row in &section.rows {
        table = table.row(row.iter().map(String::as_str));
    }
    section
        .notes
        .iter()
        .fold(table, |table, note| table.note(note.as_str()))
}

/// Charts of the ladder and of the stages, which stand first.
fn chart(report: &StudyReport, section: &Section) -> Option<BarChart> {
    let first = section.columns.first()?.title();
    match (first, &report.stages) {
        ("way", _) => Some(ladder(&report.rungs)),
        ("stage", Some(stages)) => Some(staged(stages)),
        _ => None,
    }
}

fn ladder(rungs: &[RungMeasurement]) -> BarChart {
    let axis = Axis::new("CPU time per request", Unit::Nanoseconds);
    let mut chart = BarChart::new("CPU time per request", axis).stacked();
    for name in ["server", "spawner", "program"] {
        chart = chart.series(name);
    }
    for one in rungs {
        if let Ok(figures) = &one.figures {
            let cpu = &figures.cpu;
            let parts = [cpu.server, cpu.spawner, cpu.program];
            let bars = parts.map(|us| Bar::new(us * 1e3)).to_vec();
            let name = format!("{}, {}", one.rung.name(), one.rung.language.word());
            chart = chart.group(BarGroup::new(name, bars));
        }
    }
    chart
}

fn staged(stages: &Stages) -> BarChart {
    let axis = Axis::new("wall time", Unit::Nanoseconds);
    let mut chart = BarChart::new("Wall time by stage, medians", axis).series("wall time");
    for stage in &stages.rows {
        let bar = Bar::new(stage.wall_us.max(0.0) * 1e3);
        chart = chart.group(BarGroup::new(stage.name, vec![bar]));
    }
    chart
}
