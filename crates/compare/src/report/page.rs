//! The result as one page of HTML: a summary in sentences, charts, tables, and folded below them
//! configurations and environment.

use hob_load::history::documents_of;
use hob_load::page::{
    Axis, Bar, BarChart, BarGroup, Details, PageCell as TableCell, PageElement, PageTable,
    ReportPage, Sentence, Tone, Unit, count, three_digits,
};

use super::ComparisonReport;
use super::standing::{RelativeCost, Standing};
use super::sweep::{Distance, SweepVerdict};
use super::table::{heading, joined, percent_text, rate_of};
use super::{besides, claims, era};
use crate::history::Remarks;
use crate::link::LinkSettings;
use crate::measure::{EntrantResult, RowMeasurement};
use crate::rows::{Per, RowGroup};
use crate::server::ServerTuning;

pub(super) fn write(report: &ComparisonReport) -> String {
    let mut page = ReportPage::new("Servers side by side");
    let names: Vec<String> = report
        .servers
        .iter()
        .map(|server| format!("{} {}", server.name, server.version))
        .collect();
    let settings = match report.settings {
        ServerTuning::Usual => "as they come",
        ServerTuning::Tuned => "tuned",
    };
    page.subtitle(format!("{}; {settings}, access logs off", names.join(", ")));
    page.push(summary(report));
    page.text(format!(
        "CPU time per request is that of a server with all its processes and programs, on one \
         CPU; the client had another one{}. Rounds of all servers were interleaved, so that a \
         machine that drifts treats all alike. Figures are medians of the rounds, ratios those of \
         the rounds' own ratios; intervals are of 95 %.",
        joined(report)
    ));
    let mut group = None;
    for row in &report.rows {
        if group.replace(row.row.group) == Some(row.row.group) {
            continue;
        }
        let rows = report.rows.iter();
        let rows: Vec<&RowMeasurement> = rows
            .filter(|other| other.row.group == row.row.group)
            .collect();
        page.section(heading(row.row.group));
        for part in of_group(row.row.group, &rows, report.bandwidth()) {
            page.push(part);
        }
    }
    secure(report, &mut page);
    eras(report, &mut page);
    claimed(report, &mut page);
    below(report, &mut page);
    page.html()
}

/// What somebody with two minutes reads: each rival in one sentence, then what to know.
fn summary(report: &ComparisonReport) -> Vec<Sentence> {
    let is_doubtful = !report.doubts().is_empty();
    let standings = Standing::all(report);
    let sentence = |standing: &Standing| {
        let text = standing.text();
        match standing.side() {
            RelativeCost::More if !is_doubtful => Sentence::good(text),
            RelativeCost::Less if !is_doubtful => Sentence::bad(text),
            _ => Sentence::doubtful(text),
        }
    };
    let mut all: Vec<Sentence> = standings.iter().map(sentence).collect();
    for row in &report.rows {
        if let Some(verdict) = SweepVerdict::of(row) {
            let text = format!("{}: {}", row.row.title, verdict.text());
            all.push(match verdict.distance {
                Distance::Near if !is_doubtful => Sentence::good(text),
                Distance::Far if !is_doubtful => Sentence::bad(text),
                _ => Sentence::doubtful(text),
            });
        }
    }
    all.extend(report.notes().into_iter().map(Sentence::doubtful));
    all
}

fn of_group(
    group: RowGroup,
    rows: &[&RowMeasurement],
    link: Option<LinkSettings>,
) -> Vec<PageElement> {
    match group {
        RowGroup::Files
        | RowGroup::Close
        | RowGroup::Uncached
        | RowGroup::Secure
        | RowGroup::Large
        | RowGroup::Multiplexed => {
            let mut parts = vec![ratios(rows).into()];
            for per in [Per::Request, Per::Megabyte] {
                let of_unit = rows.iter().copied().filter(|row| row.row.per == per);
                let of_unit: Vec<&RowMeasurement> = of_unit.collect();
                if !of_unit.is_empty() {
                    parts.push(beside(per, &of_unit).into());
                }
            }
            parts.extend(link.map(|link| shares(link, rows).into()));
            parts
        }
        RowGroup::Compressed
        | RowGroup::Stored
        | RowGroup::Flow
        | RowGroup::Scripts
        | RowGroup::Stream
        | RowGroup::Remote
        | RowGroup::Ways
        | RowGroup::Cost
        | RowGroup::Sweep => rows.iter().flat_map(|row| alone(row, link)).collect(),
    }
}

/// All rows of a group in one chart, in times of hob; doubtful ones have no bar.
fn ratios(rows: &[&RowMeasurement]) -> BarChart {
    let axis = Axis::new("times hob's CPU time", Unit::Factor);
    let mut chart = BarChart::new("CPU time in times of hob's: shorter is better", axis);
    let labels = labels(rows);
    for label in &labels {
        chart = chart.series(label.clone());
    }
    for row in rows {
        let bar = |label: &String| {
            let cell = row.cells.iter().find(|cell| cell.entrant.label == *label)?;
            let base = row.cells.first()?;
            if cell.doubt().or(base.doubt()).is_some() {
                return None;
            }
            let ratio = cell.ratio_to(base)?;
            let bar = Bar::new(ratio.median);
            Some(match ratio.bounds() {
                Some((low, high)) if low < high => bar.interval(low, high),
                _ => bar,
            })
        };
        let bars = labels
            .iter()
            .map(|label| bar(label).unwrap_or(Bar::new(f64::NAN)));
        chart = chart.group(BarGroup::new(row.row.short.clone(), bars.collect()));
    }
    chart
}

/// The same as a table of absolute figures in one unit, the old ones beside them.
fn beside(per: Per, rows: &[&RowMeasurement]) -> PageTable {
    let labels = labels(rows);
    let unit = match per {
        Per::Request => "microseconds of CPU time per request",
        Per::Megabyte => "microseconds of CPU time per MB",
    };
    let mut table = PageTable::new(unit).text("row");
    for label in &labels {
        table = table.number(label.clone());
    }
    table = table.text("then");
    let mut remarks = Remarks::default();
    for row in rows {
        let mut cells = vec![TableCell::new(&row.row.short).small(&row.row.id)];
        for label in &labels {
            let cell = row.cells.iter().find(|cell| cell.entrant.label == *label);
            cells.push(match cell {
                Some(cell) => absolute(cell),
                None => TableCell::new("–"),
            });
        }
        cells.push(TableCell::new(then(row, &mut remarks)));
        table = table.row(cells);
    }
    for footnote in remarks.footnotes() {
        table = table.note(footnote);
    }
    for row in rows {
        for cell in &row.cells {
            if let Some(note) = note(cell) {
                table = table.note(format!("{}: {note}", row.row.id));
            }
        }
    }
    table
}

/// What share of the link's bandwidth the bodies took.
fn shares(link: LinkSettings, rows: &[&RowMeasurement]) -> PageTable {
    let labels = labels(rows);
    let table = PageTable::new("percent of the link's bandwidth that bodies took").text("row");
    let table = { labels.iter() }.fold(table, |table, label| table.number(label.clone()));
    rows.iter().fold(table, |table, row| {
        let share = |label: &String| {
            let mut cells = row.cells.iter();
            let cell = cells.find(|cell| cell.entrant.label == *label);
            let percent = cell.and_then(|cell| cell.link_percent(Some(link)));
            TableCell::new(percent.map_or("–".to_owned(), percent_text))
        };
        let first = TableCell::new(&row.row.short).small(&row.row.id);
        table.row([first].into_iter().chain(labels.iter().map(share)))
    })
}

/// The CPU time of a cell, marked where it is doubtful.
fn absolute(cell: &EntrantResult) -> TableCell {
    let Some(cpu) = cell.cpu() else {
        return TableCell::new("–");
    };
    if cell.wide_percent().is_some() {
        let small = format!("no figure: {}, n {}", cpu.spread(), cpu.n);
        return TableCell::new("–").tone(Tone::Doubtful).small(small);
    }
    let shown = TableCell::new(three_digits(cpu.median));
    let small = format!("{}, n {}", cpu.spread(), cpu.n);
    match cell.doubt() {
        None => shown.small(small),
        Some(_) => shown
            .tone(Tone::Doubtful)
            .small(format!("{small}, doubtful")),
    }
}

/// What must be known about a cell: why it is doubtful, or why there is nothing.
fn note(cell: &EntrantResult) -> Option<String> {
    let label = &cell.entrant.label;
    if let Some(doubt) = cell.doubt() {
        return Some(format!("{label} is doubtful: {doubt}"));
    }
    let why = cell.why_not.as_ref()?;
    Some(format!("{label} not measured: {why}"))
}

/// A row with a chart and a table of its own: who does its work differs from row to row.
fn alone(row: &RowMeasurement, link: Option<LinkSettings>) -> Vec<PageElement> {
    let (unit, rate) = match row.row.per {
        Per::Request => ("CPU time per request", "requests/s"),
        Per::Megabyte => ("CPU time per MB", "MB/s"),
    };
    let mut chart = BarChart::new(row.row.title.clone(), Axis::new(unit, Unit::Nanoseconds));
    let mut table = PageTable::new(row.row.id.clone())
        .text("who")
        .number("microseconds")
        .number("times the first")
        .number(rate);
    if link.is_some() {
        table = table.number("of the link");
    }
    for cell in &row.cells {
        let label = cell.entrant.label.clone();
        if let Some(note) = note(cell) {
            table = table.note(note);
        }
        let Some(cpu) = cell.cpu() else {
            continue;
        };
        let bar = Bar::new(cpu.median * 1e3);
        let bar = match cpu.bounds() {
            Some((low, high)) => bar.interval(low * 1e3, high * 1e3),
            None => bar,
        };
        if cell.wide_percent().is_none() {
            chart = chart.group(BarGroup::new(label.clone(), vec![bar]));
        }
        let ratio = row.cells.first().and_then(|base| cell.ratio_to(base));
        let mut cells = vec![
            TableCell::new(label),
            absolute(cell),
            TableCell::new(ratio.map_or("–".to_owned(), |ratio| format!("{:.2}", ratio.median))),
            TableCell::new(rate_of(row.row.per, cell)),
        ];
        cells.extend(
            cell.link_percent(link)
                .map(percent_text)
                .map(TableCell::new),
        );
        table = table.row(cells);
    }
    for line in besides::lines(row) {
        table = table.note(line);
    }
    let mut remarks = Remarks::default();
    let then = then(row, &mut remarks);
    if !then.is_empty() {
        table = table.note(format!("then: {then}"));
    }
    for footnote in remarks.footnotes() {
        table = table.note(footnote);
    }
    if !row.row.advice.is_empty() {
        table = table.note(format!("advice then: {}", row.row.advice));
    }
    vec![chart.into(), Details::new("the figures").part(table).into()]
}

fn labels(rows: &[&RowMeasurement]) -> Vec<String> {
    let mut labels: Vec<String> = vec![];
    for cell in rows.iter().flat_map(|row| &row.cells) {
        if !labels.contains(&cell.entrant.label) {
            labels.push(cell.entrant.label.clone());
        }
    }
    labels
}

/// The figures that were printed then, in a line.
fn then(row: &RowMeasurement, remarks: &mut Remarks) -> String {
    let all: Vec<String> = row.row.then.iter().map(|id| remarks.line(id)).collect();
    all.join("; ")
}

fn secure(report: &ComparisonReport, page: &mut ReportPage) {
    let all = report.secure_to_plain();
    if all.is_empty() {
        return;
    }
    page.section("TLS in times of clear text");
    let mut table = PageTable::new("CPU time per request over TLS in times of that in clear text")
        .text("row")
        .text("who")
        .number("ratio");
    for (id, ratios) in all {
        for (label, ratio) in ratios {
            table = table.row([id.to_owned(), label.to_owned(), format!("{ratio:.2}")]);
        }
    }
    page.push(table.note("then: 3.2 for a cached static page [E.secure.static-cached.1k]"));
}

/// Ratios of old documents, each beside the same one here.
fn eras(report: &ComparisonReport, page: &mut ReportPage) {
    let ratios = era::ratios(report);
    if ratios.is_empty() {
        return;
    }
    page.section(era::TITLE);
    let table = PageTable::new(era::UNIT).text("document").text("ratio");
    let table = table.number("then").number("here").number("95 %");
    page.push(ratios.into_iter().fold(table, |table, ratio| {
        table.row([
            ratio.key().to_owned(),
            ratio.title.clone(),
            three_digits(ratio.then),
            three_digits(ratio.now.median),
            ratio.now.spread(),
        ])
    }));
}

/// What the documents claim, each claim once.
fn claimed(report: &ComparisonReport, page: &mut ReportPage) {
    let all = claims::all(report);
    if all.is_empty() {
        return;
    }
    page.section(claims::TITLE);
    let table = PageTable::new(claims::UNIT).text("claim").mark("document");
    let table = table.text("then").text("here").text("why they differ");
    page.push(all.into_iter().fold(table, |table, claim| {
        table.row([
            claim.claim.to_owned(),
            claim.document.to_string(),
            claim.then.clone(),
            claim.here(),
            claim.why.to_owned(),
        ])
    }));
}

/// What it was measured on, what was told to whom, and where the old figures are from.
fn below(report: &ComparisonReport, page: &mut ReportPage) {
    page.section("How it was measured");
    let mut machine = PageTable::new("environment").text("what").text("value");
    for (name, value) in report.machine.facts() {
        machine = machine.row([name.to_owned(), value]);
    }
    for server in &report.servers {
        let program = format!("{} ({})", server.version, server.program.display());
        machine = machine.row([server.name.clone(), program]);
    }
    page.push(machine);
    let rounds: usize = report
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .map(|cell| cell.rounds.len())
        .sum();
    page.text(format!(
        "{} rounds in {} seconds. Figures under \"then\" are as printed, on machines of their time: only \
         ratios within one document compare with ratios here.",
        count(rounds as u64),
        report.elapsed.as_secs()
    ));
    let mut documents = PageTable::new("where the old figures are from")
        .text("key")
        .text("document")
        .text("how");
    for document in documents_of("hob compare") {
        documents = documents.row([
            document.key.to_string(),
            document.title.clone(),
            document.method.clone(),
        ]);
    }
    page.push(Details::new("the old documents").part(documents));
    for (name, text) in &report.configurations {
        let details = Details::new(format!("what {name} was told"));
        page.push(details.part(PageElement::Raw(text.clone())));
    }
}
