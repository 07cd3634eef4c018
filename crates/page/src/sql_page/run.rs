//! Has a database run the statements of a page, and prints what comes.

use std::io::Write as _;

use crate::fault::{FunctionFault, PageFault, PageFaultKind};
use crate::host::{PageClock, PageHead, Sink, SinkGone, Trace, TraceEvent, TracePlace};
use crate::limits::{PageLimits, PageUse};
use crate::sql::{
    BoundKind, BoundValue, Cell, Database, DatabaseName, READS_ONLY, RowSink, RowsEnd, RunDone,
    Statement,
};

use super::PAGE_FIELD;
use super::print::{SqlPageFormat, push_csv, push_html, push_json, push_json_cell, push_plain};
use super::read::{SqlPage, SqlPageStatement};

/// What a run is told.
#[derive(Clone, Copy, Debug)]
pub struct SqlPageRequest<'r> {
    /// Names and values of query and form, in their order; the last of a name counts.
    pub fields: &'r [(String, Vec<u8>)],
    /// The query as it was sent, for links to other parts of the result.
    pub query: &'r [u8],
    /// What is written.
    pub format: SqlPageFormat,
    /// Style sheet of a page of HTML.
    pub style: &'r str,
    /// How much it may use.
    pub limits: &'r PageLimits,
}

/// What came of a run that is no fault of the page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SqlPageEnd {
    /// All was printed, and what was written is kept.
    Done(PageUse),
    /// A statement writes, and the database was told that this run only reads.
    Writes,
}

/// Runs all statements of a page.
///
/// # Errors
/// A statement that failed: nothing of this run is kept.
pub fn run<'r>(
    page: &'r SqlPage,
    request: SqlPageRequest<'r>,
    database: &dyn Database,
    clock: &'r dyn PageClock,
    sink: &'r mut dyn Sink,
    trace: Option<&'r mut dyn Trace>,
) -> Result<SqlPageEnd, PageFault> {
    let mut run = Run {
        page,
        request,
        clock,
        sink,
        trace,
        out: Vec::new(),
        has_begun: false,
        used: PageUse::default(),
    };
    let ended = run.all(database);
    if !matches!(ended, Ok(SqlPageEnd::Done(_))) {
        // The connection is given up if even this fails; the host sees to that.
        let _ = database.rollback();
    }
    ended
}

struct Run<'r> {
    page: &'r SqlPage,
    request: SqlPageRequest<'r>,
    clock: &'r dyn PageClock,
    sink: &'r mut dyn Sink,
    trace: Option<&'r mut dyn Trace>,
    out: Vec<u8>,
    has_begun: bool,
    used: PageUse,
}

impl Run<'_> {
    fn all(&mut self, database: &dyn Database) -> Result<SqlPageEnd, PageFault> {
        let count = self.page.statements.len();
        self.head();
        for (at, statement) in self.page.statements.iter().enumerate() {
            let is_last = at + 1 == count;
            if let Err(fault) = self.one(database, statement, is_last)? {
                if fault.code == READS_ONLY {
                    return Ok(SqlPageEnd::Writes);
                }
                return Err(self.fault(database, statement, fault));
            }
        }
        if let Err(fault) = database.commit() {
            let last = &self.page.statements[count - 1];
            let message = format!("what the page wrote could not be kept: {}", fault.message);
            return Err(self.fault(database, last, FunctionFault { message, ..fault }));
        }
        self.tail();
        self.hand_over().map_err(|SinkGone| self.gone())?;
        Ok(SqlPageEnd::Done(self.used))
    }

    fn fault(
        &self,
        database: &dyn Database,
        statement: &SqlPageStatement,
        fault: FunctionFault,
    ) -> PageFault {
        let kind = match (self.clock.is_over(), database.crash()) {
            (Some(_), _) => PageFaultKind::Limit("time"),
            (None, Some(_)) => PageFaultKind::Crash,
            (None, None) => PageFaultKind::Page,
        };
        self.fault_at(statement.line, kind, fault.message)
    }

    fn fault_at(&self, line: usize, kind: PageFaultKind, message: String) -> PageFault {
        PageFault {
            file: self.page.file.clone(),
            line,
            column: 1,
            kind,
            message,
        }
    }

    fn gone(&self) -> PageFault {
        self.fault_at(
            1,
            PageFaultKind::Gone,
            "nobody reads the page any more".to_string(),
        )
    }

    /// Runs one statement, and prints its result if it is to be seen.
    fn one(
        &mut self,
        database: &dyn Database,
        statement: &SqlPageStatement,
        is_last: bool,
    ) -> Result<Result<(), FunctionFault>, PageFault> {
        let asked = Statement {
            text: statement.text.clone(),
            parameters: statement
                .parameters
                .iter()
                .map(|name| self.bound(name))
                .collect(),
            procedure: None,
        };
        self.used.statements += 1;
        let before = self.clock.micros();
        let is_shown = is_last || self.request.format == SqlPageFormat::Html;
        let mut rows = Rows::new(self, is_shown);
        let answer = database.run(&DatabaseName::default(), &asked, &mut rows);
        let (has_columns, stopped, count) = (rows.has_columns, rows.stopped, rows.count);
        let (is_more, skipped) = (rows.is_more, rows.skipped);
        let micros = self.clock.micros().saturating_sub(before);
        if let Some(trace) = &mut self.trace {
            let place = TracePlace {
                file: &self.page.file,
                line: statement.line,
            };
            trace.event(TraceEvent::Statement {
                place,
                statement: &asked,
                rows: count,
                micros,
                fault: answer.as_ref().err(),
            });
        }
        match stopped {
            Some(Stopped::Gone) => return Err(self.gone()),
            Some(Stopped::Rows) => {
                let message = "the run has reached its limit rows_max".to_string();
                let kind = PageFaultKind::Limit("rows_max");
                return Err(self.fault_at(statement.line, kind, message));
            }
            None => {}
        }
        Ok(answer.map(|done| {
            if is_shown {
                self.end_result(has_columns, &done, (count, is_more, skipped));
            }
        }))
    }

    /// The field of this name as a value: a whole number, a text, or nothing.
    fn bound(&self, name: &str) -> BoundValue {
        let fields = self.request.fields.iter().rev();
        let value = fields.clone().find(|(field, _)| field == name);
        let value = value.map(|(_, value)| value.clone()).unwrap_or_default();
        let text = std::str::from_utf8(&value).unwrap_or_default();
        let number = text.parse::<i64>().ok();
        let kind = match number {
            _ if value.is_empty() => BoundKind::Null,
            // `007` is another text than `7`.
            Some(number) if number.to_string() == text => BoundKind::Integer,
            _ => BoundKind::Text,
        };
        BoundValue { kind, value }
    }

    /// Which part of a result is wanted, counted from zero.
    fn part(&self) -> u64 {
        let fields = self.request.fields.iter();
        let mut asked = fields.filter(|(name, _)| name == PAGE_FIELD);
        let asked = asked.next_back().map(|(_, value)| value.as_slice());
        let asked = std::str::from_utf8(asked.unwrap_or_default()).unwrap_or_default();
        asked.parse::<u64>().unwrap_or(1).clamp(1, 1 << 40) - 1
    }

    fn head(&mut self) {
        if self.request.format != SqlPageFormat::Html {
            return;
        }
        let title = self.page.title.as_bytes();
        let out = &mut self.out;
        out.extend_from_slice(b"<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
        out.extend_from_slice(
            b"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
        );
        push_html(title, out);
        out.extend_from_slice(b"</title>\n<style>\n");
        out.extend_from_slice(self.request.style.as_bytes());
        out.extend_from_slice(b"</style>\n<h1>");
        push_html(title, out);
        out.extend_from_slice(b"</h1>\n");
    }

    fn tail(&mut self) {
        if self.request.format == SqlPageFormat::Html {
            self.out.extend_from_slice(b"</html>\n");
        }
    }

    /// What stands behind a result.
    fn end_result(
        &mut self,
        has_columns: bool,
        done: &RunDone,
        (count, is_more, skipped): (u64, bool, u64),
    ) {
        let changed = done.changed_rows;
        // Writing to a vector cannot fail.
        let _ = match (self.request.format, has_columns) {
            (SqlPageFormat::Html, true) => {
                let _ = writeln!(self.out, "</table>");
                if count == 0 && skipped == 0 {
                    self.out.extend_from_slice(b"<p>Nothing was found.</p>\n");
                }
                self.links(is_more);
                Ok(())
            }
            (SqlPageFormat::Html, false) => writeln!(self.out, "<p>{changed} rows changed.</p>"),
            (SqlPageFormat::Json, true) => match count {
                0 => writeln!(self.out, "[]"),
                _ => writeln!(self.out, "\n]"),
            },
            (SqlPageFormat::Json, false) => writeln!(self.out, "{{\"changed\":{changed}}}"),
            (SqlPageFormat::Csv, true) => Ok(()),
            (SqlPageFormat::Csv, false) => write!(self.out, "changed\r\n{changed}\r\n"),
        };
    }

    /// Links to the parts before and behind this one.
    fn links(&mut self, is_more: bool) {
        let part = self.part();
        if part == 0 && !is_more {
            return;
        }
        self.out.extend_from_slice(b"<p>");
        if part > 0 {
            self.link(part, "Before");
        }
        if is_more {
            self.link(part + 2, "More");
        }
        self.out.extend_from_slice(b"</p>\n");
    }

    fn link(&mut self, number: u64, word: &str) {
        let field = format!("{PAGE_FIELD}=");
        let pairs = self.request.query.split(|byte| *byte == b'&');
        let others = pairs.filter(|pair| !pair.is_empty() && !pair.starts_with(field.as_bytes()));
        let mut query = Vec::new();
        for pair in others {
            query.extend_from_slice(pair);
            query.push(b'&');
        }
        let _ = write!(query, "{field}{number}");
        self.out.extend_from_slice(b"<a href=\"?");
        push_html(&query, &mut self.out);
        let _ = write!(self.out, "\">{word}</a> ");
    }

    fn hand_over(&mut self) -> Result<(), SinkGone> {
        if !self.has_begun {
            self.has_begun = true;
            self.sink.begin(&PageHead::default())?;
        }
        self.used.output_bytes += self.out.len() as u64;
        match self.out.is_empty() {
            true => Ok(()),
            false => {
                self.sink.piece(&mut self.out)?;
                self.out.clear();
                Ok(())
            }
        }
    }
}

/// Why no more rows are taken.
#[derive(Clone, Copy)]
enum Stopped {
    Gone,
    Rows,
}

/// Prints rows as they come.
struct Rows<'a, 'r> {
    run: &'a mut Run<'r>,
    is_shown: bool,
    /// Rows before those that are wanted, and how many these are.
    to_skip: u64,
    wanted: u64,
    has_columns: bool,
    names: Vec<Vec<u8>>,
    skipped: u64,
    count: u64,
    is_more: bool,
    stopped: Option<Stopped>,
}

impl<'a, 'r> Rows<'a, 'r> {
    fn new(run: &'a mut Run<'r>, is_shown: bool) -> Self {
        let (to_skip, wanted) = match run.request.format {
            SqlPageFormat::Html => (run.part() * run.page.rows, run.page.rows),
            SqlPageFormat::Json | SqlPageFormat::Csv => (0, u64::MAX),
        };
        Self {
            run,
            is_shown,
            to_skip,
            wanted,
            has_columns: false,
            names: Vec::new(),
            skipped: 0,
            count: 0,
            is_more: false,
            stopped: None,
        }
    }

    fn print(&mut self, cells: &[Cell<'_>]) {
        let out = &mut self.run.out;
        match self.run.request.format {
            SqlPageFormat::Html => {
                out.extend_from_slice(b"<tr>");
                let mut text = Vec::new();
                for cell in cells {
                    out.extend_from_slice(b"<td>");
                    text.clear();
                    push_plain(cell, b"", &mut text);
                    push_html(&text, out);
                }
                out.push(b'\n');
            }
            SqlPageFormat::Json => {
                out.extend_from_slice(match self.count {
                    1 => b"[\n{",
                    _ => b",\n{",
                });
                for (at, (name, cell)) in self.names.iter().zip(cells).enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(name);
                    out.push(b':');
                    push_json_cell(cell, out);
                }
                out.push(b'}');
            }
            SqlPageFormat::Csv => {
                let mut text = Vec::new();
                for (at, cell) in cells.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    text.clear();
                    push_plain(cell, b"", &mut text);
                    push_csv(&text, out);
                }
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}

impl RowSink for Rows<'_, '_> {
    fn columns(&mut self, names: &[&str]) -> Result<(), RowsEnd> {
        self.has_columns = true;
        if !self.is_shown {
            return Ok(());
        }
        let out = &mut self.run.out;
        match self.run.request.format {
            SqlPageFormat::Html => {
                out.extend_from_slice(b"<table>\n<tr>");
                for name in names {
                    out.extend_from_slice(b"<th scope=\"col\">");
                    push_html(name.as_bytes(), out);
                }
                out.push(b'\n');
            }
            SqlPageFormat::Json => {
                self.names = names
                    .iter()
                    .map(|name| {
                        let mut text = Vec::new();
                        push_json(name.as_bytes(), &mut text);
                        text
                    })
                    .collect();
            }
            SqlPageFormat::Csv => {
                for (at, name) in names.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    push_csv(name.as_bytes(), out);
                }
                out.extend_from_slice(b"\r\n");
            }
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        self.run.used.rows += 1;
        if self.run.used.rows > self.run.request.limits.rows_max {
            self.stopped = Some(Stopped::Rows);
            return Err(RowsEnd);
        }
        if self.skipped < self.to_skip {
            self.skipped += 1;
            return Ok(());
        }
        if self.count >= self.wanted {
            self.is_more = true;
            return Err(RowsEnd);
        }
        self.count += 1;
        if !self.is_shown {
            return Ok(());
        }
        self.print(cells);
        if self.run.out.len() >= self.run.request.limits.piece_bytes
            && self.run.hand_over().is_err()
        {
            self.stopped = Some(Stopped::Gone);
            return Err(RowsEnd);
        }
        Ok(())
    }
}
