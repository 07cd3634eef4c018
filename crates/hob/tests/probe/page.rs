//! The page that shows what a run gave, and whether it still does.

use std::fmt::Write;

use crate::cases::{self, Case};
use crate::harness::library::root;
use crate::site::{Outcome, Tried};
use crate::tools;

const PAGE: &str = "docs/src/reference/matrix.md";

/// The line with versions, which differ from machine to machine.
const VERSIONS: &str = "This page was written by a run with ";

/// What stands above the tables.
const INTRODUCTION: &str = include_str!("introduction.md");

/// Fails when the page is not that of this run; or writes it.
pub(crate) fn compare(run: &[Tried]) {
    let missing = run.iter().filter_map(|tried| tried.missing.as_deref());
    let missing: Vec<&str> = missing.collect();
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    if let Some(reason) = missing.first() {
        assert!(!is_update, "the page would not be whole: {reason}");
        println!("skipped: the page is not compared: {reason}");
        return;
    }
    let path = root().join(PAGE);
    let found = page(run);
    if is_update {
        std::fs::write(path, found).unwrap();
        return;
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let same = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with(VERSIONS));
        lines.map(str::to_owned).collect()
    };
    let (found, written) = (same(&found), same(&written));
    let differ = (0..found.len().max(written.len())).find(|&at| found.get(at) != written.get(at));
    assert!(
        differ.is_none(),
        "{PAGE} says\n{:?}\nwhere this run found\n{:?}\nrun again with UPDATE_GOLDEN=1",
        differ.and_then(|at| written.get(at)),
        differ.and_then(|at| found.get(at)),
    );
}

fn page(run: &[Tried]) -> String {
    let cases = cases::all();
    let languages = languages(run);
    let versions: Vec<String> = languages.iter().map(|name| tools::version(name)).collect();
    let mut page = INTRODUCTION.to_owned();
    writeln!(page, "{VERSIONS}{}.\n", versions.join(", ")).unwrap();
    for language in languages {
        let columns = run.iter().filter(|tried| tried.way.language == language);
        let columns: Vec<&Tried> = columns.collect();
        page += &section(language, &columns, &cases);
    }
    page
}

fn languages(run: &[Tried]) -> Vec<&'static str> {
    let mut languages: Vec<&str> = run.iter().map(|tried| tried.way.language).collect();
    languages.dedup();
    languages
}

/// A language: its ways, then its cases, then why some are skipped.
fn section(language: &str, columns: &[&Tried], cases: &[Case]) -> String {
    let mut text = format!(
        "## {language}\n\n| | written to | handler | carrier | done by | passed | skipped |\n\
         | --- | --- | --- | --- | --- | ---: | ---: |\n"
    );
    for (at, column) in columns.iter().enumerate() {
        let way = column.way;
        let count = |is_counted: fn(&Outcome) -> bool| {
            let outcomes = column.outcomes.iter();
            outcomes.filter(|(_, outcome)| is_counted(outcome)).count()
        };
        let passed = count(|outcome| matches!(outcome, Outcome::Passed));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        let (interface, handler) = (way.interface, way.handler);
        let (carrier, helper) = (way.carrier(), way.helper());
        writeln!(
            text,
            "| {} | {interface} | `{handler}` | {carrier} | {helper} | {passed} | {skipped} |",
            at + 1
        )
        .unwrap();
    }
    let numbers: Vec<String> = (1..=columns.len())
        .map(|number| number.to_string())
        .collect();
    let numbers = numbers.join(" | ");
    let rules = " :-: |".repeat(columns.len());
    write!(
        text,
        "\n| case | what it shows | {numbers} |\n| --- | --- |{rules}\n"
    )
    .unwrap();
    let mut reasons = Vec::new();
    for (row, case) in cases.iter().enumerate() {
        write!(text, "| {} | {} |", case.name, case.claim).unwrap();
        for column in columns {
            write!(text, " {} |", cell(&column.outcomes[row].1, &mut reasons)).unwrap();
        }
        text.push('\n');
    }
    text.push('\n');
    for (reason, letter) in reasons.iter().zip('a'..) {
        writeln!(text, "- *{letter}*: skipped, {reason}").unwrap();
    }
    if !reasons.is_empty() {
        text.push('\n');
    }
    text
}

fn cell(outcome: &Outcome, reasons: &mut Vec<&'static str>) -> String {
    match outcome {
        Outcome::Passed => "✓".to_owned(),
        Outcome::Failed(_) => "✗".to_owned(),
        Outcome::Skipped(reason) => {
            let known = reasons.iter().position(|other| other == reason);
            let at = known.unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            format!("*{}*", char::from(b'a' + at as u8))
        }
    }
}
