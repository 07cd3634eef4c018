//! A connection: its prepared statements, its transaction, and the results that are open.
//!
//! A transaction begins with the first statement of a run. Each one after it stands behind a
//! savepoint, so that what fails takes nothing else along. Both go out together with the
//! statement: it costs one round trip.
//!
//! ```text
//! first:  BEGIN                      Bind, Execute up to 64 rows, Sync
//! others: RELEASE hob, SAVEPOINT hob Bind, Execute up to 64 rows, Sync
//! more rows:                         Execute, Sync
//! failed: ROLLBACK, or ROLLBACK TO hob
//! ```

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{DataRowBody, Message, RowDescriptionBody};
use postgres_protocol::message::frontend;

use crate::fault::FunctionFault;
use crate::sql::{BoundKind, BoundValue};

use super::IsOver;
use super::connect::{CancelKey, cancel, connect, ticks};
use super::fault::{ServerFault, broken, coded};
use super::url::PostgresOptions;
use super::wire::Wire;

/// Statements that a connection keeps prepared.
const PREPARED_MAX: usize = 64;
/// Commands that stand around statements.
const COMMANDS: [&str; 8] = [
    "BEGIN",
    "BEGIN READ ONLY",
    "COMMIT",
    "RELEASE hob",
    "ROLLBACK",
    "ROLLBACK TO hob",
    "SAVEPOINT hob",
    "SET TRANSACTION READ ONLY",
];
/// Rows of a result that come at first.
const FIRST_ROWS: i32 = 64;
/// Rows that come at once at most.
const ROWS_MAX: u64 = 4_096;
/// About so many bytes of rows are kept here at once.
const ROWS_BYTES: u64 = 256 << 10;
/// Bytes of rows that may come at once: rows of very different size come together.
const ROUND_BYTES_MAX: usize = 64 << 20;
/// Bytes of rows that are kept while a transaction ends in the middle of a result.
const KEPT_BYTES_MAX: u64 = 16 << 20;
/// How long a server may take to cancel a statement.
const CANCEL_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Names of columns, shared by a statement and its results.
pub(super) type Columns = Arc<[String]>;

/// What a page's statement is to the server.
pub(super) struct Asked<'a> {
    /// With `$1`, `$2`, ... for values.
    pub(super) text: &'a str,
    pub(super) values: &'a [BoundValue],
    /// Whether it may come again.
    pub(super) is_kept: bool,
    /// Whether it may only read.
    pub(super) reads_only: bool,
}

struct PreparedStatement {
    name: String,
    columns: Columns,
    last_use: u64,
}

/// A result whose rows are being handed over.
struct OpenResult {
    columns: Columns,
    rows: VecDeque<DataRowBody>,
    /// Rows and bytes that came so far, which say how many are asked for at once.
    row_count: u64,
    byte_count: u64,
    /// The count of statements when its rows came last.
    last_use: u64,
    /// What the server said at its end.
    tag: Option<String>,
    fault: Option<FunctionFault>,
}

impl OpenResult {
    fn is_done(&self) -> bool {
        self.tag.is_some() || self.fault.is_some()
    }

    fn take(&mut self, row: DataRowBody) {
        self.row_count += 1;
        self.byte_count += row.buffer().len() as u64;
        self.rows.push_back(row);
    }

    /// How many rows are asked for next.
    fn next_rows(&self) -> i32 {
        let row_bytes = (self.byte_count / self.row_count.max(1)).max(1);
        let rows = (ROWS_BYTES / row_bytes).clamp(1, ROWS_MAX);
        i32::try_from(rows).unwrap_or(FIRST_ROWS)
    }
}

/// Who asks whether a run is over, and what was done about it.
pub(super) struct Watch {
    pub(super) options: PostgresOptions,
    pub(super) is_over: Option<IsOver>,
}

pub(super) struct PostgresSession {
    wire: Wire,
    key: CancelKey,
    /// As the server says: `I` idle, `T` in a transaction, `E` in one that failed.
    status: u8,
    /// Ends of transactions that were sent, and whose answers nobody waits for.
    pending_ends: usize,
    /// The transaction may only read, from here on.
    reads_only: bool,
    /// It could do nothing else from its beginning.
    has_only_read: bool,
    has_savepoint: bool,
    /// Statements of this transaction that succeeded.
    pub(super) done_count: u64,
    prepared: HashMap<String, PreparedStatement>,
    use_count: u64,
    results: Vec<OpenResult>,
}

/// Commands that go out before a statement.
struct BeforeStatement {
    commands: usize,
    makes_savepoint: bool,
}

/// What came of the messages up to the next `ReadyForQuery`.
struct Round {
    fault: Option<ServerFault>,
    columns: Option<Columns>,
    rows: Vec<DataRowBody>,
    tags: Vec<String>,
}

impl PostgresSession {
    /// Connects, and prepares the commands that stand around statements.
    pub(super) fn open(watch: &mut Watch) -> Result<PostgresSession, FunctionFault> {
        let (wire, key) = connect(&watch.options)?;
        let mut session = PostgresSession {
            wire,
            key,
            status: b'I',
            pending_ends: 0,
            reads_only: false,
            has_only_read: false,
            has_savepoint: false,
            done_count: 0,
            prepared: HashMap::new(),
            use_count: 0,
            results: Vec::new(),
        };
        for command in COMMANDS {
            let out = &mut session.wire.output;
            let written = frontend::parse(command, command, [], out);
            debug_assert!(written.is_ok(), "a command of ours can be written");
        }
        match session.round(watch) {
            Ok(Round { fault: None, .. }) => Ok(session),
            Ok(Round {
                fault: Some(fault), ..
            }) => Err(fault.fault()),
            Err(SessionFault::Statement(fault) | SessionFault::Gone(fault)) => Err(fault),
        }
    }

    /// Nothing is going on, and yet there is something to be read: the server has ended it.
    pub(super) fn is_stale(&mut self, watch: &mut Watch) -> bool {
        if self.status != b'I' || !self.results.is_empty() {
            return false;
        }
        self.settle(watch).is_err() || self.wire.is_stale()
    }

    /// Takes the answers that nobody waited for.
    fn settle(&mut self, watch: &mut Watch) -> Result<(), SessionFault> {
        while self.pending_ends > 0 {
            self.answers(watch)?;
            self.pending_ends -= 1;
            if self.status != b'I' {
                return Err(SessionFault::Gone(lost_result()));
            }
        }
        Ok(())
    }

    /// Statements that are prepared.
    pub(super) fn prepared_count(&self) -> usize {
        self.prepared.len()
    }

    /// Runs a statement; its result is open until `close`, under the index that is returned.
    pub(super) fn start(
        &mut self,
        asked: &Asked<'_>,
        watch: &mut Watch,
    ) -> Result<usize, SessionFault> {
        let mut types = Vec::new();
        let mut tries = 0;
        loop {
            tries += 1;
            let fault = match self.try_start(asked, &types, watch)? {
                Ok(index) => return Ok(index),
                Err(fault) => fault,
            };
            self.recover(&fault, watch)?;
            let is_again = match &*fault.state {
                // The server cannot tell what type a parameter has: it is text then.
                "42P18" => add_text(&fault, asked.values.len(), &mut types),
                // Tables have changed, or somebody dropped what was prepared.
                "0A000" | "26000" => tries == 1 && self.prepared.remove(asked.text).is_some(),
                _ => false,
            };
            if !is_again {
                return Err(SessionFault::Statement(fault.fault()));
            }
        }
    }

    fn try_start(
        &mut self,
        asked: &Asked<'_>,
        types: &[u32],
        watch: &mut Watch,
    ) -> Result<Result<usize, ServerFault>, SessionFault> {
        let (start, index) = (self.wire.output.len(), self.results.len());
        let before = self.begin(asked.reads_only);
        let (name, known) = self.named(asked);
        if let Err(error) = self.ask(asked, index, &name, known.is_none(), types) {
            self.wire.output.truncate(start);
            return Ok(Err(ServerFault {
                state: "22021".to_owned(),
                message: format!("the statement cannot be sent: {error}"),
                is_last: false,
            }));
        }
        let mut round = self.round(watch)?;
        if before.makes_savepoint && round.tags.len() >= before.commands {
            self.has_savepoint = true;
        }
        if let Some(fault) = round.fault {
            return Ok(Err(fault));
        }
        let is_new = known.is_none();
        let columns = known.or(round.columns).unwrap_or_default();
        if is_new && asked.is_kept {
            self.keep(asked.text, name, &columns);
        }
        let mut result = OpenResult {
            columns,
            rows: VecDeque::new(),
            row_count: 0,
            byte_count: 0,
            last_use: self.use_count,
            tag: round.tags.drain(..).nth(before.commands),
            fault: None,
        };
        round.rows.into_iter().for_each(|row| result.take(row));
        self.results.push(result);
        self.done_count += 1;
        Ok(Ok(index))
    }

    /// The name of a prepared statement, and its columns if it is known already.
    fn named(&mut self, asked: &Asked<'_>) -> (String, Option<Columns>) {
        self.use_count += 1;
        match self.prepared.get_mut(asked.text) {
            Some(known) => {
                known.last_use = self.use_count;
                (known.name.clone(), Some(Arc::clone(&known.columns)))
            }
            None if asked.is_kept => (format!("s{}", self.use_count), None),
            None => (String::new(), None),
        }
    }

    fn ask(
        &mut self,
        asked: &Asked<'_>,
        index: usize,
        name: &str,
        is_new: bool,
        types: &[u32],
    ) -> io::Result<()> {
        let out = &mut self.wire.output;
        if is_new {
            frontend::parse(name, asked.text, types.iter().copied(), out)?;
            frontend::describe(b'S', name, out)?;
        }
        bind(&portal(index), name, asked.values, out)?;
        frontend::execute(&portal(index), FIRST_ROWS, out)
    }

    /// Writes what stands before a statement.
    fn begin(&mut self, reads_only: bool) -> BeforeStatement {
        if self.status == b'I' {
            self.has_savepoint = false;
            self.done_count = 0;
            self.reads_only = reads_only;
            self.has_only_read = reads_only;
            self.command(match reads_only {
                true => "BEGIN READ ONLY",
                false => "BEGIN",
            });
            return BeforeStatement {
                commands: 1,
                makes_savepoint: false,
            };
        }
        let mut commands = 1;
        if reads_only && !self.reads_only {
            // From here on: the server refuses the way back.
            self.reads_only = true;
            self.command("SET TRANSACTION READ ONLY");
            commands += 1;
        }
        if self.has_savepoint {
            self.command("RELEASE hob");
            commands += 1;
        }
        self.command("SAVEPOINT hob");
        BeforeStatement {
            commands,
            makes_savepoint: true,
        }
    }

    /// Adds a command that has no rows.
    fn command(&mut self, command: &str) {
        let out = &mut self.wire.output;
        // All of them are prepared, by their own names.
        let written = bind("", command, &[], out).and_then(|()| frontend::execute("", 0, out));
        debug_assert!(written.is_ok(), "a command of ours can be written");
    }

    fn keep(&mut self, text: &str, name: String, columns: &Columns) {
        if self.prepared.len() >= PREPARED_MAX {
            let oldest = self.prepared.iter().min_by_key(|(_, known)| known.last_use);
            let oldest = oldest.map(|(text, _)| text.clone());
            if let Some(known) = oldest.and_then(|text| self.prepared.remove(&text)) {
                // It goes out with the next statement.
                let closed = frontend::close(b'S', &known.name, &mut self.wire.output);
                debug_assert!(closed.is_ok(), "a name of ours can be written");
            }
        }
        let prepared = PreparedStatement {
            name,
            columns: Arc::clone(columns),
            last_use: self.use_count,
        };
        self.prepared.insert(text.to_owned(), prepared);
    }

    /// Columns of an open result; `None` if it went away with its transaction or connection.
    pub(super) fn columns(&self, index: usize) -> Option<Columns> {
        let result = self.results.get(index)?;
        Some(Arc::clone(&result.columns))
    }

    /// Rows that are here, or come next; none at the end.
    pub(super) fn rows(
        &mut self,
        index: usize,
        watch: &mut Watch,
    ) -> Result<VecDeque<DataRowBody>, SessionFault> {
        let Some(result) = self.results.get_mut(index) else {
            return Err(SessionFault::Statement(lost_result()));
        };
        if result.rows.is_empty() && !result.is_done() {
            self.more(index, watch)?;
        }
        let result = &mut self.results[index];
        match result.fault.take() {
            Some(fault) if result.rows.is_empty() => Err(SessionFault::Statement(fault)),
            fault => {
                result.fault = fault;
                Ok(std::mem::take(&mut result.rows))
            }
        }
    }

    /// Gets more rows of a result.
    fn more(&mut self, index: usize, watch: &mut Watch) -> Result<(), SessionFault> {
        let rows = self.results[index].next_rows();
        let mut commands = 0;
        if self.results[index].last_use != self.use_count {
            // Others ran since: what they did stays if this fails.
            commands = self.begin(self.reads_only).commands;
            self.has_savepoint = true;
            self.results[index].last_use = self.use_count;
        }
        let asked = frontend::execute(&portal(index), rows, &mut self.wire.output);
        debug_assert!(asked.is_ok(), "a name of ours can be written");
        let round = self.round(watch)?;
        let result = &mut self.results[index];
        round.rows.into_iter().for_each(|row| result.take(row));
        result.tag = round.tags.into_iter().nth(commands);
        if let Some(fault) = round.fault {
            result.fault = Some(fault.clone().fault());
            self.recover(&fault, watch)?;
        }
        Ok(())
    }

    /// Ends a result, and says how many rows were changed.
    pub(super) fn close(&mut self, index: usize) -> u64 {
        // Those above it are of statements that ended before.
        self.results.truncate(index + 1);
        let Some(result) = self.results.pop() else {
            return 0;
        };
        let closed = frontend::close(b'P', &portal(index), &mut self.wire.output);
        debug_assert!(closed.is_ok(), "a name of ours can be written");
        let tag = result.tag.unwrap_or_default();
        let mut words = tag.split(' ');
        match words.next() {
            Some("INSERT" | "UPDATE" | "DELETE" | "MERGE") => {
                let count = words.next_back().and_then(|count| count.parse().ok());
                count.unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Ends the transaction, if there is one.
    pub(super) fn end(&mut self, how: &str, watch: &mut Watch) -> Result<(), SessionFault> {
        if self.status == b'I' {
            return Ok(());
        }
        self.keep_rows(watch)?;
        if self.status == b'I' {
            // One of the results failed, and nothing stood before it.
            return Err(SessionFault::Statement(lost_result()));
        }
        self.command(how);
        if self.has_only_read || how == "ROLLBACK" {
            // Nothing depends on the answer: the next statement, which is in no hurry, takes it.
            self.send()?;
            self.pending_ends += 1;
            self.status = b'I';
            self.has_savepoint = false;
            self.done_count = 0;
            return Ok(());
        }
        let round = self.round(watch)?;
        self.has_savepoint = false;
        self.done_count = 0;
        if let Some(fault) = round.fault {
            if self.status != b'I' {
                self.recover_all(watch)?;
            }
            return Err(SessionFault::Statement(fault.fault()));
        }
        // A server that cannot commit says that it rolled back.
        match round.tags.last().map(String::as_str) == Some(how) {
            true => Ok(()),
            false => Err(SessionFault::Statement(lost_result())),
        }
    }

    /// Rows of results that are open: their transaction ends, and they end with it.
    fn keep_rows(&mut self, watch: &mut Watch) -> Result<(), SessionFault> {
        for index in 0..self.results.len() {
            while !self.results[index].is_done() {
                self.more(index, watch)?;
                let result = &mut self.results[index];
                let kept: u64 = result
                    .rows
                    .iter()
                    .map(|row| row.buffer().len() as u64)
                    .sum();
                if kept > KEPT_BYTES_MAX && !result.is_done() {
                    let message = format!(
                        "the transaction ended in the middle of a result with more than \
                         {KEPT_BYTES_MAX} bytes to come"
                    );
                    result.fault = Some(coded((-501, "24501"), message));
                }
            }
        }
        Ok(())
    }

    /// Goes back to before a statement that failed.
    fn recover(&mut self, fault: &ServerFault, watch: &mut Watch) -> Result<(), SessionFault> {
        if fault.is_last {
            return Err(SessionFault::Gone(fault.clone().fault()));
        }
        match (self.status, self.has_savepoint) {
            (b'E', true) => self.back("ROLLBACK TO hob", watch),
            (b'E', false) => self.recover_all(watch),
            // The statement never got there.
            _ => Ok(()),
        }
    }

    fn recover_all(&mut self, watch: &mut Watch) -> Result<(), SessionFault> {
        self.has_savepoint = false;
        self.done_count = 0;
        self.back("ROLLBACK", watch)
    }

    fn back(&mut self, command: &str, watch: &mut Watch) -> Result<(), SessionFault> {
        self.command(command);
        match self.round(watch)?.fault {
            None => Ok(()),
            Some(fault) => Err(SessionFault::Gone(fault.fault())),
        }
    }

    /// Sends what was written, and takes all answers.
    fn round(&mut self, watch: &mut Watch) -> Result<Round, SessionFault> {
        self.send()?;
        self.settle(watch)?;
        self.answers(watch)
    }

    fn send(&mut self) -> Result<(), SessionFault> {
        frontend::sync(&mut self.wire.output);
        let sent = self.wire.send();
        sent.map_err(|error| SessionFault::Gone(broken(&error)))
    }

    /// Takes the answers up to the next `ReadyForQuery`.
    fn answers(&mut self, watch: &mut Watch) -> Result<Round, SessionFault> {
        let gone = |error: io::Error| SessionFault::Gone(broken(&error));
        let mut round = Round {
            fault: None,
            columns: None,
            rows: Vec::new(),
            tags: Vec::new(),
        };
        let mut room = ROUND_BYTES_MAX;
        let mut waited = None;
        let key = self.key;
        loop {
            let message = self.wire.next(&mut || look_up(watch, key, &mut waited));
            match message.map_err(gone)? {
                Message::ReadyForQuery(body) => {
                    self.status = body.status();
                    return Ok(round);
                }
                Message::ErrorResponse(body) => {
                    let fault = ServerFault::of(body.fields());
                    if fault.is_last {
                        return Err(SessionFault::Gone(fault.fault()));
                    }
                    round.fault.get_or_insert(fault);
                }
                Message::DataRow(row) => {
                    room = room.checked_sub(row.buffer().len()).ok_or_else(too_much)?;
                    round.rows.push(row);
                }
                Message::CommandComplete(body) => {
                    round.tags.push(body.tag().map_err(gone)?.to_owned());
                }
                Message::EmptyQueryResponse => round.tags.push(String::new()),
                Message::RowDescription(body) => {
                    round.columns = Some(columns(&body).map_err(gone)?);
                }
                Message::CopyInResponse(_) => {
                    let why = "a page has nothing to copy from";
                    frontend::copy_fail(why, &mut self.wire.output).map_err(gone)?;
                    frontend::sync(&mut self.wire.output);
                    self.wire.send().map_err(gone)?;
                }
                _ => {}
            }
        }
    }
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        self.wire.output.clear();
        frontend::terminate(&mut self.wire.output);
        // A server that is gone needs no farewell.
        let _ = self.wire.send();
    }
}

/// Why something did not work.
pub(super) enum SessionFault {
    /// The statement; the session goes on.
    Statement(FunctionFault),
    /// The session is of no use any more.
    Gone(FunctionFault),
}

fn too_much() -> SessionFault {
    let message = format!("rows of more than {ROUND_BYTES_MAX} bytes came at once");
    SessionFault::Gone(coded(super::fault::TOO_LARGE, message))
}

fn lost_result() -> FunctionFault {
    coded(
        super::fault::LOST,
        "the transaction ended before its result was read",
    )
}

/// Called with each tick of a wait: a run that is over has its statement cancelled.
fn look_up(watch: &mut Watch, key: CancelKey, waited: &mut Option<u64>) -> io::Result<()> {
    match waited {
        Some(0) => {
            let text = "the statement was to end, and the server does not answer";
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
        Some(left) => {
            *left -= 1;
            Ok(())
        }
        None => {
            if watch.is_over.as_mut().is_some_and(|is_over| is_over()) {
                cancel(&watch.options, key);
                *waited = Some(ticks(CANCEL_PATIENCE));
            }
            Ok(())
        }
    }
}

/// The name of an open result.
fn portal(index: usize) -> String {
    format!("p{index}")
}

/// All values are text, and so is all that comes back.
fn bind(portal: &str, name: &str, values: &[BoundValue], out: &mut BytesMut) -> io::Result<()> {
    let write = |value: &BoundValue, out: &mut BytesMut| {
        if value.kind == BoundKind::Null {
            return Ok(IsNull::Yes);
        }
        let text = String::from_utf8_lossy(&value.value);
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    };
    let bound = frontend::bind(portal, name, [], values, write, [], out);
    bound.map_err(|error| match error {
        frontend::BindError::Serialization(error) => io::Error::other(error),
        frontend::BindError::Conversion(error) => io::Error::other(error),
    })
}

fn columns(body: &RowDescriptionBody) -> io::Result<Columns> {
    let names = body.fields().map(|field| Ok(field.name().to_owned()));
    Ok(names.collect::<Vec<String>>()?.into())
}

/// Makes the parameter text whose type the server cannot tell: its message has `$n`. Says whether
/// that is something new.
fn add_text(fault: &ServerFault, count: usize, types: &mut Vec<u32>) -> bool {
    /// The number of the type `text`.
    const TEXT: u32 = 25;
    let number = fault.message.split('$').nth(1).unwrap_or_default();
    let digits = number.find(|c: char| !c.is_ascii_digit());
    let number = &number[..digits.unwrap_or(number.len())];
    let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let Some(index) = index.filter(|index| *index < count) else {
        return false;
    };
    types.resize(count, 0);
    std::mem::replace(&mut types[index], TEXT) != TEXT
}
