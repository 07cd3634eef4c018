//! What a run sees of PostgreSQL.

use std::cell::{Cell as Flag, RefCell};

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::DataRowBody;

use crate::fault::FunctionFault;
use crate::sql::{
    BoundValue, Cell, Database, DatabaseName, READS_ONLY, RowSink, RowsEnd, RunDone, Statement,
};

use super::super::plan;
use super::IsOver;
use super::fault::{LOST, broken, coded};
use super::marks::numbered;
use super::session::{Asked, PostgresSession, SessionFault, Watch};
use super::url::PostgresOptions;

/// A connection.
pub struct PostgresDatabase {
    session: RefCell<Option<PostgresSession>>,
    watch: RefCell<Watch>,
    /// The connection broke in a transaction in which something was done.
    is_lost: Flag<bool>,
    /// This run writes nothing.
    reads_only: Flag<bool>,
}

impl std::fmt::Debug for PostgresDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let watch = self.watch.borrow();
        f.debug_struct("PostgresDatabase")
            .field("options", &watch.options)
            .finish_non_exhaustive()
    }
}

impl PostgresDatabase {
    /// Connects. `is_over` is asked while statements run; yes has the server cancel them.
    pub fn open(
        options: PostgresOptions,
        is_over: Option<IsOver>,
    ) -> Result<PostgresDatabase, FunctionFault> {
        let mut watch = Watch { options, is_over };
        let session = PostgresSession::open(&mut watch)?;
        Ok(PostgresDatabase {
            session: RefCell::new(Some(session)),
            reads_only: Flag::new(watch.options.is_read_only),
            watch: RefCell::new(watch),
            is_lost: Flag::new(false),
        })
    }

    /// Statements that this connection keeps prepared.
    pub fn prepared_count(&self) -> usize {
        let session = self.session.borrow();
        session.as_ref().map_or(0, PostgresSession::prepared_count)
    }

    /// Does something with the session, and lets go of it when it is of no use any more.
    fn with<T>(
        &self,
        act: impl FnOnce(&mut PostgresSession, &mut Watch) -> Result<T, SessionFault>,
    ) -> Result<T, FunctionFault> {
        let mut held = self.session.borrow_mut();
        let watch = &mut self.watch.borrow_mut();
        let Some(session) = held.as_mut() else {
            return Err(coded(
                LOST,
                "the connection broke before the result was read",
            ));
        };
        match act(session, watch) {
            Ok(value) => Ok(value),
            Err(SessionFault::Statement(fault)) => Err(fault),
            Err(SessionFault::Gone(fault)) => {
                self.is_lost
                    .set(self.is_lost.get() || session.done_count > 0);
                *held = None;
                Err(fault)
            }
        }
    }

    /// A session for the next statement: the one there is, or a new one.
    fn connected(&self) -> Result<(), FunctionFault> {
        let mut held = self.session.borrow_mut();
        let watch = &mut self.watch.borrow_mut();
        if held.as_mut().is_some_and(|session| session.is_stale(watch)) {
            *held = None;
        }
        if held.is_none() {
            *held = Some(PostgresSession::open(watch)?);
        }
        Ok(())
    }

    fn query(
        &self,
        text: &str,
        values: &[BoundValue],
        is_kept: bool,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        self.connected()?;
        let asked = Asked {
            text,
            values,
            is_kept,
            reads_only: self.reads_only.get(),
        };
        let index = self.with(|session, watch| session.start(&asked, watch))?;
        let handed = self.hand_over(index, rows);
        let changed_rows = self.with(|session, _| Ok(session.close(index)));
        handed?;
        Ok(RunDone {
            changed_rows: changed_rows.unwrap_or(0),
            ..RunDone::default()
        })
    }

    /// Hands rows over as they come. The session is free meanwhile: a row may run statements.
    fn hand_over(&self, index: usize, rows: &mut dyn RowSink) -> Result<(), FunctionFault> {
        let columns = self.with(|session, _| Ok(session.columns(index)))?;
        let columns = columns.unwrap_or_default();
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        if !names.is_empty() && rows.columns(&names).is_err() {
            return Ok(());
        }
        loop {
            let portion = self.with(|session, watch| session.rows(index, watch))?;
            if portion.is_empty() {
                return Ok(());
            }
            for row in portion {
                let taken = hand_row(&row, names.len(), rows).map_err(|error| broken(&error))?;
                if taken.is_err() {
                    return Ok(());
                }
            }
        }
    }

    /// Calls a procedure: its row has what comes back, behind it names of cursors for results.
    fn call(
        &self,
        statement: &Statement,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        let Some(procedure) = &statement.procedure else {
            return Ok(RunDone::default());
        };
        let mut text = statement.text.clone();
        for _ in 0..procedure.result_sets {
            // A cursor's name is the server's to choose.
            let is_first = text.ends_with("()");
            text.truncate(text.len() - 1);
            text += if is_first { "NULL)" } else { ", NULL)" };
        }
        let text = marked(&text, statement.parameters.len())?;
        let mut came = OutRow::default();
        self.query(&text, &statement.parameters, true, &mut came)?;
        let outs = procedure.parameters.iter().filter(|known| known.is_out);
        let mut values = came.values.into_iter();
        let mut done = RunDone::default();
        for parameter in outs {
            let value = values.next().unwrap_or_default();
            done.outs.push((parameter.name.clone(), value));
        }
        for cursor in values.take(procedure.result_sets).flatten() {
            let cursor = String::from_utf8_lossy(&cursor).replace('"', "\"\"");
            let fetch = format!("FETCH ALL FROM \"{cursor}\"");
            self.query(&fetch, &[], false, rows)?;
        }
        Ok(done)
    }

    fn kept(&self) -> Result<(), FunctionFault> {
        if self.is_lost.get() {
            let message = "the connection broke, and what was written before is undone";
            return Err(coded(LOST, message));
        }
        self.end("COMMIT")
    }

    /// The server gives a transaction a number when it first writes, or locks a row.
    fn has_written(&self) -> bool {
        let mut came = OutRow::default();
        let asked = "SELECT txid_current_if_assigned()";
        match self.query(asked, &[], true, &mut came) {
            Ok(_) => came.values != [None],
            Err(_) => true,
        }
    }

    fn undone(&self) -> Result<(), FunctionFault> {
        self.is_lost.set(false);
        match self.end("ROLLBACK") {
            // A connection that broke has rolled back.
            Err(_) if self.session.borrow().is_none() => {
                self.is_lost.set(false);
                Ok(())
            }
            ended => ended,
        }
    }

    fn end_reading(&self) {
        let is_read_only = self.watch.borrow().options.is_read_only;
        self.reads_only.set(is_read_only);
    }

    fn end(&self, how: &str) -> Result<(), FunctionFault> {
        if self.session.borrow().is_none() {
            return Ok(());
        }
        self.with(|session, watch| session.end(how, watch))
    }
}

impl Database for PostgresDatabase {
    fn run(
        &self,
        _: &DatabaseName,
        statement: &Statement,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        if statement.procedure.is_some() {
            return self.call(statement, rows);
        }
        let words = words(&statement.text);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["COMMIT" | "END", ..] => return self.kept().map(|()| RunDone::default()),
            ["ROLLBACK" | "ABORT", ref rest @ ..] if !rest.contains(&"TO") => {
                return self.undone().map(|()| RunDone::default());
            }
            ["BEGIN" | "START" | "SAVEPOINT" | "RELEASE" | "ROLLBACK", ..]
            | ["PREPARE", "TRANSACTION", ..] => {
                return refused(
                    "a transaction begins by itself; TRANSACTION_SCOPE says where it ends",
                );
            }
            ["SET", "LOCAL" | "TRANSACTION" | "CONSTRAINTS", ..] => {
                let text = statement.text.to_ascii_uppercase();
                // A name in quotes may be any.
                let writes = ["WRITE", "READ_ONLY", "\""];
                if self.reads_only.get() && writes.iter().any(|word| text.contains(word)) {
                    return Err(coded((READS_ONLY, "25006"), "nothing may be written here"));
                }
            }
            [
                "SET" | "RESET" | "DISCARD" | "LISTEN" | "PREPARE" | "DEALLOCATE",
                ..,
            ] => {
                return refused(
                    "this would stay for other pages; what SET LOCAL sets ends with the run",
                );
            }
            ["COPY", ..] => return refused("a page copies nothing in or out"),
            _ => {}
        }
        let text = marked(&statement.text, statement.parameters.len())?;
        self.query(&text, &statement.parameters, true, rows)
    }

    fn plan(
        &self,
        name: &DatabaseName,
        statement: &Statement,
    ) -> Result<Vec<String>, FunctionFault> {
        plan::told(self, "EXPLAIN", name, statement)
    }

    fn read_only(&self) -> Result<(), FunctionFault> {
        self.reads_only.set(true);
        Ok(())
    }

    fn is_open(&self) -> bool {
        let session = self.session.borrow();
        let has_done = session
            .as_ref()
            .is_some_and(|session| session.done_count > 0);
        drop(session);
        // A connection that broke has something to tell still.
        self.is_lost.get() || has_done && self.has_written()
    }

    fn commit(&self) -> Result<(), FunctionFault> {
        self.end_reading();
        self.kept()
    }

    fn rollback(&self) -> Result<(), FunctionFault> {
        self.end_reading();
        self.undone()
    }
}

/// The first words of a statement.
fn words(statement: &str) -> Vec<String> {
    let words = statement.split(|c: char| !c.is_ascii_alphabetic());
    let words = words.filter(|word| !word.is_empty()).take(4);
    words.map(str::to_ascii_uppercase).collect()
}

fn refused<T>(why: &str) -> Result<T, FunctionFault> {
    Err(coded((-104, "42601"), why))
}

/// Keeps the one row of a procedure.
#[derive(Default)]
struct OutRow {
    values: Vec<Option<Vec<u8>>>,
}

impl RowSink for OutRow {
    fn columns(&mut self, _: &[&str]) -> Result<(), RowsEnd> {
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        let values = cells.iter().map(|cell| match cell {
            Cell::Text(bytes) => Some(bytes.to_vec()),
            _ => None,
        });
        self.values = values.collect();
        Err(RowsEnd)
    }
}

fn hand_row(
    row: &DataRowBody,
    width: usize,
    rows: &mut dyn RowSink,
) -> std::io::Result<Result<(), RowsEnd>> {
    let buffer = row.buffer();
    let mut cells = Vec::with_capacity(width);
    let mut ranges = row.ranges();
    while let Some(range) = ranges.next()? {
        let bytes = range.and_then(|range| buffer.get(range));
        cells.push(bytes.map_or(Cell::Null, Cell::Text));
    }
    cells.resize(width, Cell::Null);
    Ok(rows.row(&cells))
}

fn marked(text: &str, count: usize) -> Result<String, FunctionFault> {
    let message = "the statement has another number of parameters than of values";
    numbered(text, count).ok_or_else(|| coded((-313, "07001"), message))
}
