//! Reports: rows as they come from a database, printed by the page's blocks or by default.

use std::rc::Rc;

use crate::builtin::TableRef;
use crate::sql::{Cell, RowSink, RowsEnd};
use crate::tree::{NameKind, Report, Symbol};
use crate::value::{Marks, Text, ValueOrigin};

use super::call::GivenArgument;
use super::runner::{KnownFunction, Ran, RunFile, Runner, Stop};

/// The report whose blocks are being printed.
pub(super) struct ReportFrame {
    columns: Vec<Box<str>>,
    /// The columns that names of a file were found to mean, by symbol.
    found: Option<(Rc<RunFile>, Vec<Option<usize>>)>,
    row: ReportRow,
    /// The last row's number in its result.
    row_number: u64,
    total: Option<u64>,
}

/// The current row, in one buffer that is used again for the next one.
#[derive(Default)]
struct ReportRow {
    is_there: bool,
    bytes: Vec<u8>,
    /// Where each cell ends, and whether it is NULL.
    cells: Vec<(usize, bool)>,
}

impl ReportRow {
    fn fill(&mut self, cells: &[Cell<'_>]) {
        self.bytes.clear();
        self.cells.clear();
        self.is_there = true;
        for cell in cells {
            write_cell(cell, &mut self.bytes);
            self.cells.push((self.bytes.len(), *cell == Cell::Null));
        }
    }

    /// The cell with this index; `None` inside is NULL.
    fn cell(&self, index: usize) -> Option<Option<&[u8]>> {
        if !self.is_there {
            return None;
        }
        let (end, is_null) = *self.cells.get(index)?;
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.cells[before].0);
        Some((!is_null).then(|| &self.bytes[start..end]))
    }
}

fn write_cell(cell: &Cell<'_>, bytes: &mut Vec<u8>) {
    match cell {
        Cell::Null => {}
        Cell::Integer(number) => {
            bytes.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }
        Cell::Real(number) => bytes.extend_from_slice(number.to_string().as_bytes()),
        Cell::Text(text) => bytes.extend_from_slice(text),
    }
}

impl ReportFrame {
    fn new(columns: &[&str]) -> Self {
        Self {
            columns: columns.iter().map(|name| (*name).into()).collect(),
            found: None,
            row: ReportRow::default(),
            row_number: 0,
            total: None,
        }
    }

    /// The index of the column that a name means.
    fn column(&self, kind: NameKind, name: &str) -> Option<usize> {
        match kind {
            NameKind::Value(number) | NameKind::Column(number) => {
                let index = number.checked_sub(1)?;
                (index < self.columns.len()).then_some(index)
            }
            NameKind::ValueOf | NameKind::ColumnOf => {
                let mut columns = self.columns.iter();
                columns.position(|column| column.eq_ignore_ascii_case(&name[2..]))
            }
            _ => None,
        }
    }

    /// The same for a name of a file, which is looked for once in a result and not for each row.
    fn column_of(&mut self, file: &Rc<RunFile>, kind: NameKind, symbol: Symbol) -> Option<usize> {
        let at = symbol.0 as usize;
        if let Some((of, columns)) = &self.found
            && Rc::ptr_eq(of, file)
            && columns[at].is_some()
        {
            return columns[at];
        }
        let index = self.column(kind, file.page.name(symbol))?;
        let (of, columns) = self
            .found
            .get_or_insert_with(|| (Rc::clone(file), vec![None; file.page.names.len()]));
        if Rc::ptr_eq(of, file) {
            columns[at] = Some(index);
        }
        Some(index)
    }
}

impl Runner<'_> {
    /// What a name is worth in the innermost report; `None` if it is not one of its own.
    pub(super) fn report_text(
        &mut self,
        file: &RunFile,
        kind: NameKind,
        name: &str,
    ) -> Ran<Option<Text>> {
        let Some(frame) = self.frames.last() else {
            return Ok(None);
        };
        let data = |bytes: &[u8]| Text::of_data(bytes, ValueOrigin::Database);
        Ok(Some(match kind {
            NameKind::Value(_) | NameKind::ValueOf => {
                let cell = frame
                    .column(kind, name)
                    .and_then(|index| frame.row.cell(index));
                match cell {
                    None => return Ok(None),
                    Some(Some(bytes)) => data(bytes),
                    Some(None) => return self.null_text(file).map(Some),
                }
            }
            NameKind::Column(_) | NameKind::ColumnOf => match frame.column(kind, name) {
                None => return Ok(None),
                Some(index) => data(frame.columns[index].as_bytes()),
            },
            NameKind::ColumnList => data(frame.columns.join(" ").as_bytes()),
            NameKind::ValueList => {
                let cells = (0..frame.columns.len()).map(|index| frame.row.cell(index));
                let cells: Vec<&[u8]> = cells.map(|c| c.flatten().unwrap_or_default()).collect();
                data(&cells.join(&b' '))
            }
            NameKind::ColumnCount => Text::of_count(frame.columns.len()),
            NameKind::RowNumber => Text::of_count(frame.row_number),
            NameKind::TotalRows => frame.total.map_or_else(Text::new, Text::of_count),
            NameKind::Plain => return Ok(None),
        }))
    }

    fn null_text(&mut self, file: &RunFile) -> Ran<Text> {
        match self.variables.find("NULL_RPT_FIELD") {
            Some(slot) => self.slot_text(file, 0, slot),
            None => Ok(Text::of_data("", ValueOrigin::Database)),
        }
    }

    /// Prints a value of the current row right from its buffer; says whether the name is one.
    pub(super) fn print_named_cell(
        &mut self,
        file: &Rc<RunFile>,
        at: u32,
        kind: NameKind,
        symbol: Symbol,
    ) -> Ran<bool> {
        let is_value = matches!(kind, NameKind::Value(_) | NameKind::ValueOf);
        let frame = self.frames.last_mut().filter(|_| is_value);
        match frame.and_then(|frame| frame.column_of(file, kind, symbol)) {
            Some(index) => self.print_cell(file, at, index),
            None => Ok(false),
        }
    }

    /// Prints the cell with this index; says whether there is one that is not NULL.
    fn print_cell(&mut self, file: &RunFile, at: u32, index: usize) -> Ran<bool> {
        let frame = self.frames.last();
        let Some(Some(bytes)) = frame.and_then(|frame| frame.row.cell(index)) else {
            return Ok(false);
        };
        if !self.has_printed || !self.header.is_over() {
            // More is looked at before the first byte.
            let value = Text::of_data(bytes, ValueOrigin::Database);
            return self.print_text(file, at, &value).map(|()| true);
        }
        let before = self.out.len();
        let written = self.html.data(bytes, Marks::NONE, &mut self.out);
        self.count_data(file, at, before, written).map(|()| true)
    }

    /// Reports of a function that has no rows: what stands around them.
    pub(super) fn empty_reports(&mut self, known: &KnownFunction) -> Ran<()> {
        for report in &known.block.reports {
            self.frames.push(ReportFrame::new(&[]));
            self.print(&known.file, &report.header)?;
            self.print(&known.file, &report.footer)?;
            self.frames.pop();
        }
        Ok(())
    }
}

/// How rows without a block of the page's are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefaultReport {
    Table,
    Lines,
}

/// The result that is coming.
struct OpenResult {
    /// The index of its block.
    report: Option<usize>,
    default: Option<DefaultReport>,
    tables: Vec<TableRef>,
    /// Rows to be printed: from the first to before the second, counted from one.
    window: (u64, u64),
    has_header: bool,
    row: u64,
    /// Rows to be printed once their number is known (`DTW_SET_TOTAL_ROWS`).
    kept: Option<Vec<(u64, ReportRow)>>,
}

/// Takes rows from a database and prints them.
pub(super) struct Reporter<'s, 'r> {
    runner: &'s mut Runner<'r>,
    known: &'s KnownFunction,
    tables: Vec<(Symbol, TableRef)>,
    open: Option<OpenResult>,
    stop: Option<Stop>,
    pub(super) rows: u64,
    pub(super) results: usize,
}

impl<'s, 'r> Reporter<'s, 'r> {
    pub(super) fn new(
        runner: &'s mut Runner<'r>,
        known: &'s KnownFunction,
        given: &[GivenArgument],
    ) -> Self {
        let tables = known.block.parameters.iter().zip(given);
        let tables = tables.filter_map(|(parameter, given)| {
            let table = given.table.as_ref()?;
            Some((parameter.name, Rc::clone(table)))
        });
        Self {
            tables: tables.collect(),
            runner,
            known,
            open: None,
            stop: None,
            rows: 0,
            results: 0,
        }
    }

    /// All rows have come.
    pub(super) fn end(mut self) -> Ran<()> {
        if let Some(stop) = self.stop {
            return Err(stop);
        }
        self.close()
    }

    /// The statement failed; what was printed so far stays.
    pub(super) fn give_up(self) -> Ran<()> {
        if self.open.is_some() {
            self.runner.frames.pop();
        }
        self.stop.map_or(Ok(()), Err)
    }

    fn report(&self) -> Option<&'s Report> {
        let index = self.open.as_ref()?.report?;
        self.known.block.reports.get(index)
    }

    fn begin(&mut self, names: &[&str]) -> Ran<()> {
        self.close()?;
        let index = self.results;
        self.results += 1;
        let table = self.tables.get(index).cloned();
        let reports = &self.known.block.reports;
        let has_names = reports.iter().any(|report| report.result.is_some());
        let report = match (has_names, &table) {
            (true, Some((name, _))) => reports
                .iter()
                .position(|report| report.result == Some(*name)),
            (true, None) => None,
            (false, _) => (index < reports.len()).then_some(index),
        };
        let file = &self.known.file;
        let runner = &mut *self.runner;
        let is_default = reports.is_empty() && table.is_none();
        let mut tables: Vec<TableRef> = table.into_iter().map(|(_, table)| table).collect();
        let saved_in = runner.control(file, "DTW_SAVE_TABLE_IN")?;
        if let Some(slot) = runner.variables.find(&saved_in) {
            tables.extend(runner.table_at(slot));
        }
        for table in &tables {
            let mut table = table.borrow_mut();
            table.clear();
            let columns_max = table.shape.columns_max.unwrap_or(usize::MAX);
            let columns = names.iter().take(columns_max);
            table.columns = columns
                .map(|n| Text::of_data(*n, ValueOrigin::Database))
                .collect();
        }
        let is_wanted = !runner
            .control(file, "DTW_DEFAULT_REPORT")?
            .eq_ignore_ascii_case("NO");
        let default = match is_default && is_wanted && !names.is_empty() {
            false => None,
            true if runner.control_is(file, "DTW_HTML_TABLE", false)? => Some(DefaultReport::Table),
            true => Some(DefaultReport::Lines),
        };
        self.open = Some(OpenResult {
            report,
            default,
            tables,
            window: runner.window(file)?,
            has_header: false,
            row: 0,
            kept: runner
                .control_is(file, "DTW_SET_TOTAL_ROWS", false)?
                .then(Vec::new),
        });
        runner.frames.push(ReportFrame::new(names));
        Ok(())
    }

    fn take(&mut self, cells: &[Cell<'_>]) -> Ran<bool> {
        let file = &self.known.file;
        let at = self.known.block.at;
        self.rows += 1;
        self.runner.used.rows += 1;
        let limits = self.runner.settings.limits;
        if self.runner.used.rows > limits.rows_max {
            return self.runner.over(file, at, "rows_max");
        }
        self.runner.step(file, at)?;
        let Some(open) = &mut self.open else {
            return Ok(false);
        };
        open.row += 1;
        let row = open.row;
        for table in &open.tables {
            let mut table = table.borrow_mut();
            if table.has_room() {
                if table.cell_count() + table.columns.len() > limits.cells_max {
                    return self.runner.over(file, at, "cells_max");
                }
                let width = table.columns.len();
                table
                    .rows
                    .push(cells.iter().take(width).map(cell_text).collect());
            }
        }
        let is_printed = open.report.is_some() || open.default.is_some();
        let is_wanted = !open.tables.is_empty() || open.kept.is_some();
        if row >= open.window.1 || !is_printed {
            return Ok(is_wanted || row < open.window.1);
        }
        if row < open.window.0 {
            return Ok(true);
        }
        if let Some(kept) = &mut open.kept {
            if kept.len() * cells.len() >= limits.cells_max {
                return self.runner.over(file, at, "cells_max");
            }
            let mut held = ReportRow::default();
            held.fill(cells);
            kept.push((row, held));
            return Ok(true);
        }
        if let Some(frame) = self.runner.frames.last_mut() {
            frame.row.fill(cells);
            frame.row_number = row;
        }
        self.header()?;
        self.print_row()?;
        Ok(true)
    }

    /// Prints the rows that were kept until their number was known.
    fn print_kept(&mut self) -> Ran<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let total = open.row;
        let Some(kept) = open.kept.take() else {
            return Ok(());
        };
        if let Some(frame) = self.runner.frames.last_mut() {
            frame.total = Some(total);
        }
        self.header()?;
        for (number, row) in kept {
            if let Some(frame) = self.runner.frames.last_mut() {
                frame.row = row;
                frame.row_number = number;
            }
            self.print_row()?;
        }
        Ok(())
    }

    /// Prints what stands before the rows, once.
    fn header(&mut self) -> Ran<()> {
        let (report, file) = (self.report(), &self.known.file);
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if std::mem::replace(&mut open.has_header, true) {
            return Ok(());
        }
        let default = open.default;
        let code = if open.row == 0 { 100 } else { 0 };
        let runner = &mut *self.runner;
        runner.set_codes(code, None);
        // The header stands before the row: its values are not there yet.
        let row = runner
            .frames
            .last_mut()
            .map(|frame| std::mem::take(&mut frame.row));
        if let Some(report) = report {
            runner.print(file, &report.header)?;
        }
        if let Some(style) = default {
            runner.default_header(file, style)?;
        }
        if let (Some(frame), Some(row)) = (runner.frames.last_mut(), row) {
            frame.row = row;
        }
        Ok(())
    }

    fn print_row(&mut self) -> Ran<()> {
        let file = &self.known.file;
        if let Some(row) = self.report().and_then(|report| report.row.as_ref()) {
            self.runner.print(file, row)?;
        }
        match self.open.as_ref().and_then(|open| open.default) {
            Some(style) => self.runner.default_row(file, style),
            None => Ok(()),
        }
    }

    /// Prints what stands behind the rows.
    fn close(&mut self) -> Ran<()> {
        if self.open.is_none() {
            return Ok(());
        }
        self.print_kept()?;
        self.header()?;
        let (report, file) = (self.report(), &self.known.file);
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        if let Some(frame) = self.runner.frames.last_mut() {
            frame.row.is_there = false;
        }
        if let Some(report) = report {
            self.runner.print(file, &report.footer)?;
        }
        match open.default {
            Some(DefaultReport::Table) => self.runner.print_bytes(file, 0, b"</table>\n")?,
            Some(DefaultReport::Lines) => self.runner.print_bytes(file, 0, b"</pre>\n")?,
            None => {}
        }
        self.runner.frames.pop();
        Ok(())
    }

    fn kept<T>(&mut self, result: Ran<T>) -> Result<T, RowsEnd> {
        result.map_err(|stop| {
            self.stop = Some(stop);
            RowsEnd
        })
    }
}

fn cell_text(cell: &Cell<'_>) -> Text {
    let mut bytes = Vec::new();
    write_cell(cell, &mut bytes);
    Text::of_data(bytes, ValueOrigin::Database)
}

impl RowSink for Reporter<'_, '_> {
    fn columns(&mut self, names: &[&str]) -> Result<(), RowsEnd> {
        let begun = self.begin(names);
        self.kept(begun)
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        let taken = self.take(cells);
        match self.kept(taken)? {
            true => Ok(()),
            false => Err(RowsEnd),
        }
    }
}

impl Runner<'_> {
    /// From `START_ROW_NUM` and `RPT_MAX_ROWS`: the first row, and the one behind the last.
    fn window(&mut self, file: &RunFile) -> Ran<(u64, u64)> {
        let start = self.control(file, "START_ROW_NUM")?;
        let start = start.trim().parse().unwrap_or(1).max(1);
        let rows = self.control(file, "RPT_MAX_ROWS")?;
        let most = self.settings.limits.report_rows_max;
        let rows = match rows.trim().parse() {
            Ok(0) | Err(_) => most,
            Ok(rows) => most.min(rows),
        };
        Ok((start, start.saturating_add(rows)))
    }

    fn frame_columns(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.columns.len())
    }

    fn default_header(&mut self, file: &RunFile, style: DefaultReport) -> Ran<()> {
        let (before, between, behind): (&[u8], &[u8], &[u8]) = match style {
            DefaultReport::Table => (b"<table>\n<tr><th>", b"</th><th>", b"</th></tr>\n"),
            DefaultReport::Lines => (b"<pre>\n", b" | ", b"\n"),
        };
        self.print_bytes(file, 0, before)?;
        for index in 0..self.frame_columns() {
            if index > 0 {
                self.print_bytes(file, 0, between)?;
            }
            let kind = NameKind::Column(index + 1);
            let name = self.report_text(file, kind, "")?;
            self.print_text(file, 0, &name.unwrap_or_default())?;
        }
        self.print_bytes(file, 0, behind)
    }

    fn default_row(&mut self, file: &RunFile, style: DefaultReport) -> Ran<()> {
        let (before, between, behind): (&[u8], &[u8], &[u8]) = match style {
            DefaultReport::Table => (b"<tr><td>", b"</td><td>", b"</td></tr>\n"),
            DefaultReport::Lines => (b"", b" | ", b"\n"),
        };
        self.print_bytes(file, 0, before)?;
        for index in 0..self.frame_columns() {
            if index > 0 {
                self.print_bytes(file, 0, between)?;
            }
            if !self.print_cell(file, 0, index)? {
                let null = self.null_text(file)?;
                self.print_text(file, 0, &null)?;
            }
        }
        self.print_bytes(file, 0, behind)
    }
}
