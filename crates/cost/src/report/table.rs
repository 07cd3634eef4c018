//! The result for people, on a terminal.

use super::StudyReport;
use super::columns::columns;
use super::section::{self, Column, Section};

pub(super) fn write(report: &StudyReport) -> String {
    let mut text = format!("{}\n{}\n", report.subject, report.asked_in_words());
    for section in section::all(report) {
        text.push_str(&write_section(&section));
    }
    for (part, why) in &report.failed {
        text.push_str(&format!("\n{part} is not measured: {why}\n"));
    }
    if !report.sentence.is_empty() {
        text.push_str(&format!("\n{}\n", report.sentence));
    }
    text
}

fn write_section(section: &Section) -> String {
    let titles = section
        .columns
        .iter()
        .map(|column| column.title().to_owned());
    let mut rows = vec![titles.collect::<Vec<_>>()];
    rows.extend(section.rows.iter().cloned());
    let is_left: Vec<bool> = section
        .columns
        .iter()
        .map(|column| matches!(column, Column::Text(_)))
        .collect();
    let mut text = format!("\n{}\n{}", section.title, columns(&rows, &is_left));
    for note in &section.notes {
        text.push_str(&format!("({note})\n"));
    }
    text
}
