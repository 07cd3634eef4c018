//! The result for people, in a terminal.

use std::fmt::{self, Write};

use hob_load::history;
use hob_load::page::{count, three_digits, time_us};

use super::ComparisonReport;
use super::claims;
use super::standing::verdict;
use super::sweep::SweepVerdict;
use super::{besides, era};
use crate::history::Remarks;
use crate::link::LinkSettings;
use crate::measure::{EntrantResult, RowMeasurement};
use crate::rows::{Per, RowGroup};
use crate::server::ServerTuning;

pub(super) fn write(report: &ComparisonReport) -> String {
    let mut text = String::new();
    // Writing into a string does not go wrong.
    let _ = all(report, &mut text);
    text
}

fn all(report: &ComparisonReport, text: &mut String) -> fmt::Result {
    writeln!(text, "{}\n", verdict(report))?;
    writeln!(
        text,
        "CPU time per request of each server with all its processes, on one CPU; the client had another\n\
         one{}. Rounds interleaved; figures are medians of them, ± is half of the 95 % interval;\n\
         access logs off; {}.",
        joined(report),
        match report.settings {
            ServerTuning::Usual => "servers as they come",
            ServerTuning::Tuned => "servers tuned",
        }
    )?;
    let mut remarks = Remarks::default();
    let mut group = None;
    for row in &report.rows {
        if group.replace(row.row.group) != Some(row.row.group) {
            writeln!(text, "\n== {}", heading(row.row.group))?;
        }
        one(row, report.bandwidth(), &mut remarks, text)?;
    }
    ratios(report, text)?;
    eras(report, text)?;
    claimed(report, text)?;
    then(report, &remarks, text)?;
    writeln!(text, "\nservers")?;
    for server in &report.servers {
        let program = server.program.display();
        writeln!(text, "  {:12} {} ({program})", server.name, server.version)?;
    }
    writeln!(text, "\nenvironment")?;
    for (name, value) in report.machine.facts() {
        writeln!(text, "  {name:14} {value}")?;
    }
    let notes = report.notes();
    if !notes.is_empty() {
        writeln!(text, "\nnotes")?;
    }
    for note in notes {
        writeln!(text, "  {note}")?;
    }
    Ok(())
}

pub(super) fn heading(group: RowGroup) -> &'static str {
    match group {
        RowGroup::Files => "files, HTTP/1.1 in clear text, connections kept",
        RowGroup::Close => "files, HTTP/1.1 in clear text, one connection per request",
        RowGroup::Uncached => "files that no server keeps in its own memory",
        RowGroup::Secure => "files, HTTP/1.1 over TLS 1.3",
        RowGroup::Multiplexed => "files, HTTP/2 and HTTP/3",
        RowGroup::Compressed => "compressed copies of a page",
        RowGroup::Stored => "one file on several file systems",
        RowGroup::Large => "large files",
        RowGroup::Flow => "a large file to many clients at once",
        RowGroup::Scripts => "programs",
        RowGroup::Stream => "long answers and requests of programs",
        RowGroup::Remote => "programs on another machine",
        RowGroup::Ways => "each way that hob has to make an answer",
        RowGroup::Cost => "what it costs to have it on",
        RowGroup::Sweep => "other sizes of what carries answers",
    }
}

/// What client and servers were joined by, behind what is said of them.
pub(super) fn joined(report: &ComparisonReport) -> String {
    if let Some(target) = &report.target {
        let ms = target.round_trip.as_secs_f64() * 1e3;
        let card = target.card_bits_per_second.map_or(String::new(), |bits| {
            format!("; the slower network card says {} Mbit/s", bits / 1_000_000)
        });
        let address = &target.address;
        return format!(
            ", on another machine: servers at {address}, a round trip takes {ms:.3} ms{card}"
        );
    }
    report.link.map_or(String::new(), |link| {
        format!(", in another network namespace: a link of {link}")
    })
}

fn one(
    measured: &RowMeasurement,
    link: Option<LinkSettings>,
    remarks: &mut Remarks,
    text: &mut String,
) -> fmt::Result {
    let row = &measured.row;
    writeln!(text, "\n{}   [{}]", row.title, row.id)?;
    let unit = match row.per {
        Per::Request => "CPU/request",
        Per::Megabyte => "CPU/MB",
    };
    let rate = match row.per {
        Per::Request => "requests/s",
        Per::Megabyte => "MB/s",
    };
    let width = measured.cells.iter().map(|cell| cell.entrant.label.len());
    let width = width.max().unwrap_or(0).max(10);
    let share = if link.is_some() { "  of link" } else { "" };
    writeln!(
        text,
        "  {:width$} {unit:>12} {:>8} {:>3} {:>7} {:>8} {rate:>12} {:>10} {:>10}{share}",
        "", "95 %", "n", "ratio", "95 %", "p50", "p99"
    )?;
    let base = measured.cells.first();
    for cell in &measured.cells {
        write!(text, "  {:width$} ", cell.entrant.label)?;
        figures(cell, base, (row.per, link), text)?;
    }
    for line in besides::lines(measured) {
        writeln!(text, "  {line}")?;
    }
    if measured.repeated + measured.disturbed > 0 {
        writeln!(
            text,
            "  steal: {} rounds made again, {} count all the same",
            measured.repeated, measured.disturbed
        )?;
    }
    if let Some(verdict) = SweepVerdict::of(measured) {
        writeln!(text, "  {}", verdict.text())?;
    }
    for id in &row.then {
        writeln!(text, "  then: {}", remarks.line(id))?;
    }
    if !row.advice.is_empty() {
        writeln!(text, "  advice then: {}", row.advice)?;
    }
    Ok(())
}

/// What came of one, in the columns of its row, or why nothing did.
fn figures(
    cell: &EntrantResult,
    base: Option<&EntrantResult>,
    (per, link): (Per, Option<LinkSettings>),
    text: &mut String,
) -> fmt::Result {
    match (cell.cpu(), &cell.why_not) {
        (Some(cpu), _) if cell.wide_percent().is_some() => {
            let (n, doubt) = (cpu.n, cell.doubt().unwrap_or_default());
            writeln!(text, "{} (n {n})", doubt.replace('\n', "\n    "))?;
        }
        (Some(cpu), _) => {
            let ratio = base.and_then(|base| cell.ratio_to(base));
            let is_base = base.is_some_and(|base| base.entrant == cell.entrant);
            let (ratio, ratio_spread) = match ratio {
                Some(_) if is_base => ("1".to_owned(), String::new()),
                Some(ratio) if ratio.median < 0.1 => {
                    (format!("{:.4}", ratio.median), ratio.spread())
                }
                Some(ratio) => (format!("{:.2}", ratio.median), ratio.spread()),
                None => (String::new(), String::new()),
            };
            write!(
                text,
                "{:>12} {:>8} {:>3} {ratio:>7} {ratio_spread:>8} {:>12} {:>10} {:>10}",
                format!("{} us", three_digits(cpu.median)),
                cpu.spread(),
                cpu.n,
                rate_of(per, cell),
                time_us(cell.median(|round| round.p50_us).unwrap_or(0.0)),
                time_us(cell.median(|round| round.p99_us).unwrap_or(0.0)),
            )?;
            match cell.link_percent(link) {
                Some(percent) => writeln!(text, " {:>8}", percent_text(percent))?,
                None => writeln!(text)?,
            }
            if let Some(doubt) = cell.doubt() {
                let doubt = doubt.replace('\n', "\n    ");
                writeln!(text, "    DOUBTFUL: {doubt}")?;
            }
        }
        (None, Some(why)) => writeln!(text, "not measured: {}", why.replace('\n', "\n    "))?,
        (None, None) => writeln!(text, "not measured")?,
    }
    Ok(())
}

/// A share of a link's bandwidth.
pub(super) fn percent_text(percent: f64) -> String {
    format!("{} %", three_digits(percent))
}

pub(super) fn rate_of(per: Per, cell: &EntrantResult) -> String {
    match per {
        Per::Request => count(cell.median(|round| round.per_second).unwrap_or(0.0).round() as u64),
        Per::Megabyte => {
            three_digits(cell.median(|round| round.bytes_per_second).unwrap_or(0.0) / 1e6)
        }
    }
}

/// What TLS costs in times of clear text, for each who was asked both ways.
fn ratios(report: &ComparisonReport, text: &mut String) -> fmt::Result {
    let secure = report.secure_to_plain();
    if secure.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n== TLS : clear text, CPU time per request")?;
    for (id, ratios) in secure {
        let ratios: Vec<String> = ratios
            .iter()
            .map(|(label, ratio)| format!("{label} {ratio:.2}"))
            .collect();
        writeln!(text, "  {id:30} {}", ratios.join(", "))?;
    }
    writeln!(
        text,
        "  then: 3.2 for a cached static page [E.secure.static-cached.1k]"
    )
}

/// Ratios of old documents, each beside the same one here.
fn eras(report: &ComparisonReport, text: &mut String) -> fmt::Result {
    let ratios = era::ratios(report);
    if ratios.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n== {}: {}", era::TITLE, era::UNIT)?;
    let width = ratios
        .iter()
        .map(|ratio| ratio.title.len())
        .max()
        .unwrap_or(0);
    writeln!(
        text,
        "     {:width$} {:>8} {:>8} {:>8}",
        "", "then", "here", "95 %"
    )?;
    for ratio in ratios {
        let (then, here) = (three_digits(ratio.then), three_digits(ratio.now.median));
        let (key, title, spread) = (ratio.key(), &ratio.title, ratio.now.spread());
        writeln!(
            text,
            "  {key}  {title:width$} {then:>8} {here:>8} {spread:>8}"
        )?;
    }
    Ok(())
}

/// Each claim of the documents in a line, and why it is another one here below it.
fn claimed(report: &ComparisonReport, text: &mut String) -> fmt::Result {
    let all = claims::all(report);
    if all.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n== {}: {}", claims::TITLE, claims::UNIT)?;
    for claim in all {
        writeln!(text, "  {}  {}", claim.document, claim.claim)?;
        writeln!(text, "     then {}; here {}", claim.then, claim.here())?;
        writeln!(text, "     {}", claim.why)?;
    }
    Ok(())
}

fn then(report: &ComparisonReport, remarks: &Remarks, text: &mut String) -> fmt::Result {
    let ids = report.rows.iter().flat_map(|row| &row.row.then);
    let keys: Vec<char> = ids.filter_map(|id| id.chars().next()).collect();
    let mut documents = history::documents()
        .iter()
        .filter(|document| keys.contains(&document.key))
        .peekable();
    if documents.peek().is_some() {
        writeln!(
            text,
            "\nthen: as printed, on machines of their time; only ratios within one document compare with ratios here"
        )?;
    }
    for document in documents {
        writeln!(
            text,
            "  {}  {}: {}",
            document.key, document.title, document.method
        )?;
    }
    for footnote in remarks.footnotes() {
        writeln!(text, "  {footnote}")?;
    }
    Ok(())
}
