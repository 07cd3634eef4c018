//! What a run sees of a database behind ODBC.

use std::cell::{Cell as Flag, RefCell};

use hob_page::fault::FunctionFault;
use hob_page::sql::{
    BoundKind, BoundValue, Cell, Database, DatabaseName, READS_ONLY, RowSink, RowsEnd, RunDone,
    Statement, code_of_state,
};

use crate::link::{IsOver, NoReply, OdbcLink, StartProcess};
use crate::message::{
    DriverFault, DriverReply, DriverRequest, MESSAGE_BYTES_MAX, Portion, PortionEnd, Value,
    ValueWay,
};
use crate::options::OdbcOptions;

/// The way to the database is gone.
const GONE: (i64, &str) = (-30081, "08006");
/// Work that was done before is lost.
const LOST: (i64, &str) = (-911, "40000");
/// Significant digits that a double keeps.
const DIGITS_MAX: usize = 15;

/// A connection, in a process of its own.
pub struct OdbcDatabase {
    options: OdbcOptions,
    start: StartProcess,
    link: RefCell<Option<OdbcLink>>,
    is_over: RefCell<Option<IsOver>>,
    /// Statements of this transaction that succeeded.
    done_count: Flag<u64>,
    /// One that was sent in it may have written.
    has_written: Flag<bool>,
    /// The connection broke in a transaction in which something was done.
    is_lost: Flag<bool>,
    /// Something failed for no reason that is known: perhaps the connection is of no use, and its
    /// driver does not notice.
    is_doubtful: Flag<bool>,
    /// This run writes nothing.
    reads_only: Flag<bool>,
    /// What ended the process in this run.
    crash: RefCell<Option<String>>,
}

impl std::fmt::Debug for OdbcDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OdbcDatabase")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl OdbcDatabase {
    /// Starts a process and connects. `is_over` is asked while statements run; yes has the driver
    /// cancel them, and ends the process of one that does not.
    pub fn open(
        options: OdbcOptions,
        start: StartProcess,
        is_over: Option<IsOver>,
    ) -> Result<OdbcDatabase, FunctionFault> {
        let database = OdbcDatabase {
            reads_only: Flag::new(options.is_read_only),
            options,
            start,
            link: RefCell::new(None),
            is_over: RefCell::new(is_over),
            done_count: Flag::new(0),
            has_written: Flag::new(false),
            is_lost: Flag::new(false),
            is_doubtful: Flag::new(false),
            crash: RefCell::new(None),
        };
        // One that crashes now does so for the run that opened it, too: it asks again.
        match database.connected() {
            Err(_) if database.crash.borrow().is_some() => Ok(database),
            connected => connected.map(|_| database),
        }
    }

    /// A process for the next statement: the one there is, or a new one. True for a new one.
    fn connected(&self) -> Result<bool, FunctionFault> {
        if let Some(crash) = &*self.crash.borrow() {
            return Err(coded(GONE, crash.clone()));
        }
        if self.is_lost.get() {
            return Err(coded(
                LOST,
                "the connection broke, and what was done before is undone",
            ));
        }
        let mut held = self.link.borrow_mut();
        if self.done_count.get() == 0 && held.as_ref().is_some_and(OdbcLink::is_stale) {
            *held = None;
        }
        if held.is_some() {
            return Ok(false);
        }
        let link = OdbcLink::start(self.start, self.options.memory_bytes).map_err(|error| {
            let message = format!("no process can be started for the driver: {error}");
            coded(GONE, message)
        })?;
        *held = Some(link);
        drop(held);
        let request = DriverRequest::Open {
            connection: self.options.connection(),
            is_read_only: self.options.is_read_only,
        };
        match self.ask(&request) {
            Ok(_) => Ok(true),
            Err(fault) => {
                *self.link.borrow_mut() = None;
                let message = format!("{}: {}", self.options.place(), fault.message);
                Err(FunctionFault { message, ..fault })
            }
        }
    }

    /// Asks the process, and lets go of it when it is of no use any more.
    fn ask(&self, request: &DriverRequest) -> Result<DriverReply, FunctionFault> {
        let mut held = self.link.borrow_mut();
        let Some(link) = held.as_mut() else {
            return Err(coded(
                LOST,
                "the connection broke before the result was read",
            ));
        };
        let reply = link.ask(request, &mut self.is_over.borrow_mut());
        let fault = match reply {
            Ok(DriverReply::Failed(fault)) => {
                let told = self.told(&fault);
                if !fault.is_gone {
                    return Err(told);
                }
                told
            }
            Ok(reply) => return Ok(reply),
            Err(NoReply::Ended(why)) => coded(GONE, why),
            Err(NoReply::Crashed(why)) => {
                let place = self.options.place();
                let why = format!("the ODBC driver of {place} crashed: {why}");
                self.crash.replace(Some(why.clone()));
                coded(GONE, why)
            }
        };
        self.is_lost
            .set(self.is_lost.get() || self.done_count.get() > 0);
        *held = None;
        Err(fault)
    }

    /// What a driver says, with the code that macros know.
    fn told(&self, fault: &DriverFault) -> FunctionFault {
        let state = &*fault.state;
        self.is_doubtful
            .set(self.is_doubtful.get() || state == "HY000");
        let code = match (fault.native, code_of_state(state)) {
            // DB2's own number is what macros ask for.
            (native @ ..0, _) => i64::from(native),
            (_, Some(code)) => code,
            _ if fault.is_gone => GONE.0,
            (0, None) => -1,
            (native, None) => -i64::from(native),
        };
        FunctionFault {
            code,
            sql_state: Some(state.into()),
            message: self.options.without_password(fault.text.clone()),
        }
    }

    fn query(
        &self,
        request: &DriverRequest,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        let is_new = self.connected()?;
        let is_first = self.done_count.get() == 0;
        let begun = match self.ask(request) {
            // A database that went away while nothing was asked is found again: nothing was done.
            Err(_) if self.may_ask_again(is_new, is_first) => {
                self.connected()?;
                self.ask(request)
            }
            begun => begun,
        };
        let DriverReply::Portion(portion) = begun? else {
            return Err(coded(GONE, "the process of the driver says something else"));
        };
        self.done_count.set(self.done_count.get() + 1);
        self.hand_over(portion, rows)
    }

    fn may_ask_again(&self, is_new: bool, is_first: bool) -> bool {
        let is_gone = self.link.borrow().is_none() && self.crash.borrow().is_none();
        let is_over = self
            .is_over
            .borrow_mut()
            .as_mut()
            .is_some_and(|is_over| is_over());
        is_first && is_gone && !is_new && !is_over
    }

    /// Hands rows over as they come. The process is free meanwhile: a row may run statements.
    fn hand_over(
        &self,
        mut portion: Portion,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        let mut width = 0;
        loop {
            if let Some(names) = &portion.columns {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                width = names.len();
                if width > 0 && rows.columns(&names).is_err() {
                    return self.close(&portion.end);
                }
            }
            let mut reader = portion.rows.read(width);
            let mut cells = Vec::with_capacity(width);
            while reader.next(&mut cells).map_err(|_| self.broken())? {
                if rows.row(&cells).is_err() {
                    return self.close(&portion.end);
                }
            }
            portion = match portion.end {
                PortionEnd::Failed(fault) => return Err(self.told(&fault)),
                PortionEnd::Done(changed_rows, values) => {
                    let outs = values
                        .into_iter()
                        .map(|value| (Box::default(), came(value)));
                    return Ok(RunDone {
                        changed_rows,
                        outs: outs.collect(),
                        ..RunDone::default()
                    });
                }
                PortionEnd::Paused => match self.ask(&DriverRequest::More)? {
                    DriverReply::Portion(next) => next,
                    _ => return Err(self.broken()),
                },
            };
        }
    }

    /// No more rows are wanted.
    fn close(&self, end: &PortionEnd) -> Result<RunDone, FunctionFault> {
        if *end == PortionEnd::Paused {
            self.ask(&DriverRequest::Close)?;
        }
        Ok(RunDone::default())
    }

    /// The process does not keep to what was agreed on: it is of no use.
    fn broken(&self) -> FunctionFault {
        *self.link.borrow_mut() = None;
        let why = "the driver's process says what makes no sense, and was ended";
        self.crash.replace(Some(why.to_owned()));
        coded(GONE, why)
    }

    fn end(&self, request: &DriverRequest) -> Result<(), FunctionFault> {
        self.done_count.set(0);
        self.has_written.set(false);
        let is_open = self.link.borrow().is_some();
        let ended = match is_open {
            true => self.ask(request).map(|_| ()),
            false => Ok(()),
        };
        if self.is_doubtful.take() {
            *self.link.borrow_mut() = None;
        }
        ended
    }

    fn kept(&self) -> Result<(), FunctionFault> {
        if let Some(crash) = &*self.crash.borrow() {
            return Err(coded(LOST, crash.clone()));
        }
        if self.is_lost.get() {
            let message = "the connection broke, and what was written before is undone";
            return Err(coded(LOST, message));
        }
        match self.reads_only.get() {
            // Whatever a driver let through is not kept.
            true => self.end(&DriverRequest::Rollback),
            false => self.end(&DriverRequest::Commit),
        }
    }

    fn undone(&self) -> Result<(), FunctionFault> {
        self.is_lost.set(false);
        let ended = self.end(&DriverRequest::Rollback);
        self.is_lost.set(false);
        match ended {
            // A connection that broke has rolled back.
            Err(_) if self.link.borrow().is_none() => Ok(()),
            ended => ended,
        }
    }

    fn run_now(
        &self,
        statement: &Statement,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        let mut text = statement.text.clone();
        let mut has_all_results = false;
        if statement.procedure.is_some() {
            has_all_results = true;
            text = format!("{{{text}}}");
        }
        let words = StatementWords::of(&text);
        let list: Vec<&str> = words.list.iter().map(String::as_str).collect();
        match list[..] {
            ["COMMIT" | "END", ..] => return self.kept().map(|()| RunDone::default()),
            ["ROLLBACK" | "ABORT", ref rest @ ..] if !rest.contains(&"TO") => {
                return self.undone().map(|()| RunDone::default());
            }
            ["BEGIN" | "START" | "SAVEPOINT" | "RELEASE" | "ROLLBACK", ..] => {
                return refused(
                    "a transaction begins by itself; TRANSACTION_SCOPE says where it ends",
                );
            }
            ["SET" | "RESET" | "USE" | "PRAGMA" | "ATTACH" | "DETACH", ..]
            | ["ALTER", "SESSION", ..] => {
                return refused("this would stay for other pages; write it into the data source");
            }
            _ if self.reads_only.get() && !words.only_read() => {
                return Err(coded((READS_ONLY, "25006"), "nothing may be written here"));
            }
            _ => {}
        }
        let bytes = statement
            .parameters
            .iter()
            .map(|value| value.value.len() + 16);
        if text.len() + bytes.sum::<usize>() > MESSAGE_BYTES_MAX - 64 {
            return Err(coded(
                (-302, "22001"),
                "the values are larger than a statement may have",
            ));
        }
        let ways = ways(statement);
        let values = ways.into_iter().zip(statement.parameters.iter().map(value));
        let request = DriverRequest::Run {
            text,
            has_all_results,
            values: values.collect(),
        };
        self.has_written
            .set(self.has_written.get() || !words.only_read());
        let Some(procedure) = &statement.procedure else {
            return self.query(&request, rows);
        };
        let outs = procedure.parameters.iter().filter(|one| one.is_out);
        let outs: Vec<_> = outs.map(|one| one.name.clone()).collect();
        let mut done = match procedure.result_sets == 0 && !outs.is_empty() {
            // Some drivers have what comes back as a result, too.
            true => self.query(&request, &mut NoRows),
            false => self.query(&request, rows),
        }?;
        for ((name, _), own) in done.outs.iter_mut().zip(outs) {
            *name = own;
        }
        Ok(done)
    }
}

impl Database for OdbcDatabase {
    fn run(
        &self,
        _: &DatabaseName,
        statement: &Statement,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        self.run_now(statement, rows)
    }

    fn read_only(&self) -> Result<(), FunctionFault> {
        self.reads_only.set(true);
        Ok(())
    }

    fn is_open(&self) -> bool {
        // A connection that broke has something to tell still.
        self.is_lost.get() || self.has_written.get()
    }

    fn commit(&self) -> Result<(), FunctionFault> {
        let kept = self.kept();
        self.reads_only.set(self.options.is_read_only);
        kept
    }

    fn rollback(&self) -> Result<(), FunctionFault> {
        self.reads_only.set(self.options.is_read_only);
        self.crash.replace(None);
        self.undone()
    }

    fn crash(&self) -> Option<String> {
        self.crash.borrow().clone()
    }
}

fn coded((code, state): (i64, &str), message: impl Into<String>) -> FunctionFault {
    FunctionFault {
        code,
        sql_state: Some(state.into()),
        message: message.into(),
    }
}

fn refused<T>(why: &str) -> Result<T, FunctionFault> {
    Err(coded((-104, "42601"), why))
}

/// A value as the process binds it. A number is one where a double or 64 bits keep all of it.
fn value(value: &BoundValue) -> Value {
    let text = String::from_utf8_lossy(&value.value);
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match value.kind {
        BoundKind::Null => return Value::Null,
        BoundKind::Integer => {
            if let Ok(number) = text.parse() {
                return Value::Integer(number);
            }
        }
        BoundKind::Decimal if digits <= DIGITS_MAX => {
            if let Ok(number) = text.parse() {
                return Value::Real(number);
            }
        }
        BoundKind::Decimal | BoundKind::Text => {}
    }
    Value::Text(text.into_owned())
}

/// Which way each value of a statement goes.
fn ways(statement: &Statement) -> Vec<ValueWay> {
    match &statement.procedure {
        None => vec![ValueWay::In; statement.parameters.len()],
        Some(procedure) => {
            let all = procedure.parameters.iter();
            let ways = all.map(|one| match (one.is_in, one.is_out) {
                (_, false) => ValueWay::In,
                (false, true) => ValueWay::Out,
                (true, true) => ValueWay::Both,
            });
            ways.collect()
        }
    }
}

/// A value that has come back, as the language has it; `None` is NULL.
fn came(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        Value::Real(number) => Some(number.to_string().into_bytes()),
        Value::Text(text) => Some(text.into_bytes()),
    }
}

/// Takes rows that nobody wants.
struct NoRows;

impl RowSink for NoRows {
    fn columns(&mut self, _: &[&str]) -> Result<(), RowsEnd> {
        Ok(())
    }

    fn row(&mut self, _: &[Cell<'_>]) -> Result<(), RowsEnd> {
        Ok(())
    }
}

/// Words of a statement, outside of literals, names in quotes and comments.
struct StatementWords {
    /// In upper case.
    list: Vec<String>,
    /// Something stands behind a semicolon.
    has_second: bool,
}

impl StatementWords {
    fn of(text: &str) -> StatementWords {
        let mut words = StatementWords {
            list: Vec::new(),
            has_second: false,
        };
        let mut has_end = false;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
            let skipped = match c {
                '\'' | '"' | '`' => 1 + rest[1..].find(c).map_or(rest.len() - 1, |at| at + 1),
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
                c if is_of_word(c) => {
                    let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                    words.list.push(rest[..end].to_uppercase());
                    words.has_second |= has_end;
                    end
                }
                c => {
                    has_end |= c == ';';
                    c.len_utf8()
                }
            };
            rest = &rest[skipped..];
        }
        words
    }

    /// As far as its words tell, it writes nothing.
    fn only_read(&self) -> bool {
        let begins = matches!(
            self.list.first().map(String::as_str),
            Some("SELECT" | "VALUES" | "WITH")
        );
        let writes = ["INSERT", "DELETE", "MERGE", "INTO"];
        let mut before = "";
        let is_write = self.list.iter().any(|word| {
            let is_lock = std::mem::replace(&mut before, word) == "FOR";
            writes.contains(&&**word) || (word == "UPDATE" && !is_lock)
        });
        begins && !is_write && !self.has_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_write_are_known_by_their_words() {
        for (text, only_reads) in [
            ("SELECT a FROM t;", true),
            ("/* x */ (SELECT 'delete it' AS \"update\")", true),
            ("SELECT a FROM t FOR UPDATE -- insert", true),
            ("WITH n AS (SELECT 1) SELECT * FROM n", true),
            ("VALUES (1)", true),
            ("", false),
            ("DELETE FROM t", false),
            ("CALL p()", false),
            (
                "WITH n AS (DELETE FROM t RETURNING a) SELECT * FROM n",
                false,
            ),
            ("SELECT a INTO u FROM t", false),
            ("SELECT 1; drop table t", false),
            ("SELECT 'a", true),
            ("/* SELECT", false),
        ] {
            assert_eq!(StatementWords::of(text).only_read(), only_reads, "{text}");
        }
    }

    #[test]
    fn numbers_are_numbers_where_nothing_of_them_is_lost() {
        let of = |kind, text: &str| {
            value(&BoundValue {
                kind,
                value: text.into(),
            })
        };
        assert_eq!(of(BoundKind::Null, ""), Value::Null);
        assert_eq!(of(BoundKind::Integer, "-42"), Value::Integer(-42));
        assert_eq!(of(BoundKind::Decimal, "12.50"), Value::Real(12.5));
        let long = "12345678901234.56";
        assert_eq!(of(BoundKind::Decimal, long), Value::Text(long.to_owned()));
        assert_eq!(of(BoundKind::Text, "7"), Value::Text("7".to_owned()));
    }
}
