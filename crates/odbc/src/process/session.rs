//! A connection: its prepared statements, and the results that are open.

use std::rc::Rc;

use hob_page::sql::Cell;

use crate::message::{
    DriverFault, DriverReply, DriverRequest, Portion, PortionEnd, Rows, Value, ValueWay,
};

use super::unixodbc::{Canceller, OdbcConnection, OdbcStatement};

/// Statements that a connection keeps prepared.
const PREPARED_MAX: usize = 64;
/// Results that are open at once.
const RESULTS_MAX: usize = 128;
/// Bytes of rows that go out at once, and one row more.
const PORTION_BYTES: usize = 64 << 10;
/// Bytes of a row.
const ROW_BYTES_MAX: usize = 16 << 20;

pub(super) struct OdbcSession {
    /// Those that are not in use, the one that was used last behind.
    prepared: Vec<(String, OdbcStatement)>,
    /// The one that was begun last behind.
    results: Vec<OdbcResult>,
    connection: Rc<OdbcConnection>,
    canceller: Canceller,
    keeps_statements: bool,
}

/// A result whose rows are handed over.
struct OdbcResult {
    text: String,
    statement: OdbcStatement,
    has_all_results: bool,
    columns: Vec<CellKind>,
    /// This result has no more rows; another one may come.
    is_at_end: bool,
}

/// How cells of a column are read.
#[derive(Clone, Copy)]
enum CellKind {
    Integer,
    Real,
    Text,
    Bytes,
}

impl CellKind {
    /// By the numbers of `sql.h`.
    fn of(sql_type: i16) -> CellKind {
        match sql_type {
            4 | 5 | -5 | -6 => CellKind::Integer,
            6..=8 => CellKind::Real,
            -4..=-2 => CellKind::Bytes,
            _ => CellKind::Text,
        }
    }
}

impl OdbcSession {
    pub(super) fn new(connection: Rc<OdbcConnection>, canceller: Canceller) -> OdbcSession {
        OdbcSession {
            prepared: Vec::new(),
            results: Vec::new(),
            keeps_statements: connection.keeps_statements(),
            connection,
            canceller,
        }
    }

    pub(super) fn answer(&mut self, request: DriverRequest) -> DriverReply {
        let answered = match request {
            DriverRequest::Run {
                text,
                has_all_results,
                values,
            } => self.run(text, has_all_results, values),
            DriverRequest::More => self.more(),
            DriverRequest::Close => {
                self.close();
                Ok(DriverReply::Done)
            }
            DriverRequest::Commit => self.end(true),
            DriverRequest::Rollback => self.end(false),
            DriverRequest::Open { .. } | DriverRequest::Cancel => {
                Err(unasked("it is open already"))
            }
        };
        answered.unwrap_or_else(DriverReply::Failed)
    }

    fn run(
        &mut self,
        text: String,
        has_all_results: bool,
        values: Vec<(ValueWay, Value)>,
    ) -> Result<DriverReply, DriverFault> {
        if self.results.len() >= RESULTS_MAX {
            return Err(unasked("too many results are open"));
        }
        let known = self.prepared.iter().rposition(|(known, _)| *known == text);
        let mut statement = match known {
            Some(at) => self.prepared.remove(at).1,
            None => self.connection.prepare(&text)?,
        };
        if statement
            .parameters()
            .is_some_and(|count| count != values.len())
        {
            return Err(DriverFault {
                state: "07001".to_owned(),
                native: -313,
                is_gone: false,
                text: "the statement has another number of parameters than of values".to_owned(),
            });
        }
        // One that fails is prepared anew the next time: tables may have changed.
        statement.execute(values, &self.canceller)?;
        let mut result = OdbcResult {
            text,
            statement,
            has_all_results,
            columns: Vec::new(),
            is_at_end: false,
        };
        let columns = result.begin()?;
        self.results.push(result);
        self.portion(Some(columns))
    }

    fn more(&mut self) -> Result<DriverReply, DriverFault> {
        let Some(result) = self.results.last_mut() else {
            return Err(unasked("no result is open"));
        };
        if !result.is_at_end {
            return self.portion(None);
        }
        let columns = match result.next(&self.canceller) {
            Ok(columns) => columns,
            Err(fault) => {
                self.results.pop();
                return Err(fault);
            }
        };
        self.portion(columns)
    }

    /// The next rows, and what comes behind them.
    fn portion(&mut self, columns: Option<Vec<String>>) -> Result<DriverReply, DriverFault> {
        let mut rows = Rows::default();
        let Some(result) = self.results.last_mut() else {
            return Err(unasked("no result is open"));
        };
        let end = match result.fill(&mut rows, &self.canceller) {
            Ok(true) => PortionEnd::Paused,
            Ok(false) => {
                let changed = match result.columns.is_empty() {
                    true => result.statement.changed(),
                    false => 0,
                };
                let outs = result.statement.outs();
                self.close();
                match outs {
                    Ok(outs) => PortionEnd::Done(changed, outs),
                    Err(fault) => PortionEnd::Failed(fault),
                }
            }
            Err(fault) => {
                self.results.pop();
                PortionEnd::Failed(fault)
            }
        };
        Ok(DriverReply::Portion(Portion { columns, rows, end }))
    }

    /// Lets go of the last result, and keeps its statement.
    fn close(&mut self) {
        let Some(mut result) = self.results.pop() else {
            return;
        };
        result.statement.close();
        if self.prepared.len() >= PREPARED_MAX {
            self.prepared.remove(0);
        }
        self.prepared.push((result.text, result.statement));
    }

    fn end(&mut self, keep: bool) -> Result<DriverReply, DriverFault> {
        if !self.keeps_statements {
            self.prepared.clear();
        }
        self.connection.end(keep)?;
        match keep && self.connection.is_dead() {
            true => Err(DriverFault {
                state: "08007".to_owned(),
                native: 0,
                is_gone: true,
                text: "the database went away while the transaction ended".to_owned(),
            }),
            false => Ok(DriverReply::Done),
        }
    }
}

impl OdbcResult {
    /// Columns of the result that it is at.
    fn begin(&mut self) -> Result<Vec<String>, DriverFault> {
        let columns = self.statement.columns()?;
        let kinds = columns.iter().map(|column| CellKind::of(column.sql_type));
        self.columns = kinds.collect();
        self.is_at_end = false;
        Ok(columns.into_iter().map(|column| column.name).collect())
    }

    /// Goes to the next result that has columns; `None` if there is none.
    fn next(&mut self, canceller: &Canceller) -> Result<Option<Vec<String>>, DriverFault> {
        while self.has_all_results && self.statement.next_result(canceller)? {
            let columns = self.begin()?;
            if !columns.is_empty() {
                return Ok(Some(columns));
            }
        }
        self.has_all_results = false;
        self.is_at_end = true;
        Ok(None)
    }

    /// Reads rows until there are enough of them. False where nothing more comes.
    fn fill(&mut self, rows: &mut Rows, canceller: &Canceller) -> Result<bool, DriverFault> {
        self.is_at_end |= self.columns.is_empty();
        while !self.is_at_end {
            if rows.bytes() >= PORTION_BYTES {
                return Ok(true);
            }
            if !self.statement.fetch(canceller)? {
                self.is_at_end = true;
                break;
            }
            let before = rows.bytes();
            for (at, kind) in self.columns.iter().enumerate() {
                let number = u16::try_from(at + 1).unwrap_or(u16::MAX);
                let room = (before + ROW_BYTES_MAX).saturating_sub(rows.bytes());
                push_cell(&self.statement, number, *kind, rows, room)?;
            }
            rows.end_row();
        }
        Ok(self.has_all_results)
    }
}

fn push_cell(
    statement: &OdbcStatement,
    number: u16,
    kind: CellKind,
    rows: &mut Rows,
    room: usize,
) -> Result<(), DriverFault> {
    if matches!(kind, CellKind::Bytes) {
        let mut bytes = Vec::new();
        match statement.cell::<u8>(number, &mut bytes, room)? {
            true => rows.push(&Cell::Text(&bytes)),
            false => rows.push(&Cell::Null),
        }
        return Ok(());
    }
    let mut units = Vec::new();
    if !statement.cell::<u16>(number, &mut units, room)? {
        rows.push(&Cell::Null);
        return Ok(());
    }
    let text = String::from_utf16_lossy(&units);
    // What a driver calls a number need not be one.
    let real = || text.parse().ok().filter(|number: &f64| number.is_finite());
    let cell = match kind {
        CellKind::Integer => text.parse().ok().map(Cell::Integer),
        CellKind::Real => real().map(Cell::Real),
        CellKind::Text | CellKind::Bytes => None,
    };
    rows.push(&cell.unwrap_or(Cell::Text(text.as_bytes())));
    Ok(())
}

/// What is asked makes no sense where it is asked.
pub(super) fn unasked(why: &str) -> DriverFault {
    DriverFault {
        state: "24000".to_owned(),
        native: -501,
        is_gone: false,
        text: why.to_owned(),
    }
}
