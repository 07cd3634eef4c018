//! SQLite as a page's database: one connection, opened by whoever owns the run.
//!
//! A connection reads and writes one file. It cannot attach others, load code or change its schema
//! behind SQLite's back. What writes begins with `BEGIN IMMEDIATE`, so that a writer waits at its
//! start and not in its middle; what only reads holds no transaction.

use std::cell::Cell as Flag;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::fault::FunctionFault;

use super::database::{
    BoundKind, BoundValue, Cell, Database, DatabaseName, READS_ONLY, RowSink, RunDone, Statement,
};
use super::plan;

/// Statements that a connection keeps prepared.
const PREPARED_MAX: usize = 64;
/// Steps of SQLite's machine between two looks at the clock.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file. It has to be there, unless `creates` is set.
    pub path: PathBuf,
    /// Nothing is written.
    pub is_read_only: bool,
    /// The file is made if it is not there, with a write-ahead log.
    pub creates: bool,
    /// How long a statement waits for another writer.
    pub busy_timeout: Duration,
    /// Bytes of a value or a row.
    pub value_bytes_max: i32,
}

/// A connection.
#[derive(Debug)]
pub struct SqliteDatabase {
    connection: Connection,
    in_transaction: Flag<bool>,
    /// This run writes nothing.
    reads_only: Flag<bool>,
}

impl SqliteDatabase {
    /// Opens a file. `is_over` is asked while statements run; yes ends them.
    pub fn open(
        options: &SqliteOptions,
        is_over: Option<Box<dyn FnMut() -> bool + Send>>,
    ) -> Result<Self, FunctionFault> {
        Self::opened(options, is_over).map_err(|error| fault_of(&error))
    }

    fn opened(
        options: &SqliteOptions,
        is_over: Option<Box<dyn FnMut() -> bool + Send>>,
    ) -> rusqlite::Result<Self> {
        let mut flags = match options.is_read_only {
            true => OpenFlags::SQLITE_OPEN_READ_ONLY,
            false => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let makes_it = options.creates && !options.path.exists();
        if makes_it {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        flags |= OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&options.path, flags)?;
        connection.busy_timeout(options.busy_timeout)?;
        if makes_it {
            connection.pragma_update(None, "journal_mode", "WAL")?;
        }
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "query_only", options.is_read_only)?;
        for (switch, is_on) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        ] {
            connection.set_db_config(switch, is_on)?;
        }
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, options.value_bytes_max)?;
        connection.set_prepared_statement_cache_capacity(PREPARED_MAX);
        // From here on, everything is asked for.
        connection.authorizer(Some(authorize))?;
        connection.progress_handler(STEPS_BETWEEN_LOOKS, is_over)?;
        Ok(Self {
            connection,
            in_transaction: Flag::new(false),
            reads_only: Flag::new(false),
        })
    }

    fn execute(&self, statement: &Statement, rows: &mut dyn RowSink) -> rusqlite::Result<RunDone> {
        let mut prepared = self.connection.prepare_cached(&statement.text)?;
        if self.reads_only.get() && !prepared.readonly() {
            let code = rusqlite::ffi::SQLITE_READONLY;
            let why = "the statement writes, and this run only reads".to_string();
            let failure = rusqlite::ffi::Error::new(code);
            return Err(rusqlite::Error::SqliteFailure(failure, Some(why)));
        }
        if !prepared.readonly() && !self.in_transaction.get() {
            self.connection
                .prepare_cached("BEGIN IMMEDIATE")?
                .raw_execute()?;
            self.in_transaction.set(true);
        }
        if prepared.parameter_count() != statement.parameters.len() {
            let (wanted, found) = (prepared.parameter_count(), statement.parameters.len());
            return Err(rusqlite::Error::InvalidParameterCount(found, wanted));
        }
        for (index, value) in statement.parameters.iter().enumerate() {
            bind(&mut prepared, index + 1, value)?;
        }
        let names = prepared.column_names();
        let mut done = RunDone::default();
        if names.is_empty() {
            done.changed_rows = prepared.raw_execute()? as u64;
            return Ok(done);
        }
        if rows.columns(&names).is_err() {
            return Ok(done);
        }
        let width = names.len();
        let mut found = prepared.raw_query();
        while let Some(row) = found.next()? {
            let mut cells = Vec::with_capacity(width);
            for index in 0..width {
                cells.push(match row.get_ref(index)? {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(number) => Cell::Integer(number),
                    ValueRef::Real(number) => Cell::Real(number),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Cell::Text(bytes),
                });
            }
            if rows.row(&cells).is_err() {
                break;
            }
        }
        Ok(done)
    }

    fn end(&self, how: &str) -> Result<(), FunctionFault> {
        if !self.in_transaction.get() {
            return Ok(());
        }
        let ended = self.connection.prepare_cached(how);
        let ended = ended.and_then(|mut statement| statement.raw_execute());
        // A failed COMMIT may leave the transaction open; some failures have ended it already.
        self.in_transaction.set(!self.connection.is_autocommit());
        ended.map(|_| ()).map_err(|error| fault_of(&error))
    }
}

impl Database for SqliteDatabase {
    fn run(
        &self,
        _: &DatabaseName,
        statement: &Statement,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        if statement.procedure.is_some() {
            return Err(FunctionFault::new(-204, "SQLite has no stored procedures"));
        }
        match first_word(&statement.text).as_str() {
            "COMMIT" | "END" => return self.end("COMMIT").map(|()| RunDone::default()),
            "ROLLBACK" => return self.end("ROLLBACK").map(|()| RunDone::default()),
            "BEGIN" | "SAVEPOINT" | "RELEASE" => {
                return Err(FunctionFault::new(
                    -104,
                    "a transaction begins by itself; TRANSACTION_SCOPE says where it ends",
                ));
            }
            _ => {}
        }
        let done = self
            .execute(statement, rows)
            .map_err(|error| fault_of(&error));
        self.in_transaction.set(!self.connection.is_autocommit());
        done
    }

    fn plan(
        &self,
        name: &DatabaseName,
        statement: &Statement,
    ) -> Result<Vec<String>, FunctionFault> {
        plan::told(self, "EXPLAIN QUERY PLAN", name, statement)
    }

    fn read_only(&self) -> Result<(), FunctionFault> {
        self.reads_only.set(true);
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.in_transaction.get()
    }

    fn commit(&self) -> Result<(), FunctionFault> {
        self.reads_only.set(false);
        self.end("COMMIT")
    }

    fn rollback(&self) -> Result<(), FunctionFault> {
        self.reads_only.set(false);
        self.end("ROLLBACK")
    }
}

fn first_word(statement: &str) -> String {
    let words = statement.split(|c: char| !c.is_ascii_alphabetic());
    let mut words = words.filter(|word| !word.is_empty());
    words.next().unwrap_or_default().to_ascii_uppercase()
}

fn bind(
    prepared: &mut rusqlite::CachedStatement<'_>,
    index: usize,
    value: &BoundValue,
) -> rusqlite::Result<()> {
    let text = String::from_utf8_lossy(&value.value);
    match value.kind {
        BoundKind::Null => return prepared.raw_bind_parameter(index, rusqlite::types::Null),
        BoundKind::Integer => {
            if let Ok(number) = text.parse::<i64>() {
                return prepared.raw_bind_parameter(index, number);
            }
        }
        BoundKind::Decimal => {
            if let Ok(number) = text.parse::<f64>() {
                return prepared.raw_bind_parameter(index, number);
            }
        }
        BoundKind::Text => {}
    }
    prepared.raw_bind_parameter(index, &*text)
}

/// What a page's statement may do: everything with tables, nothing with files and code.
fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Unknown { .. } => {
            Authorization::Deny
        }
        AuthAction::Pragma { pragma_name, .. } => match is_harmless(pragma_name) {
            true => Authorization::Allow,
            false => Authorization::Deny,
        },
        AuthAction::Function { function_name } => {
            let forbidden = [
                "load_extension",
                "readfile",
                "writefile",
                "edit",
                "fts3_tokenizer",
            ];
            match forbidden
                .iter()
                .any(|name| name.eq_ignore_ascii_case(function_name))
            {
                true => Authorization::Deny,
                false => Authorization::Allow,
            }
        }
        AuthAction::CreateVtable { module_name, .. } => match is_search(module_name) {
            true => Authorization::Allow,
            false => Authorization::Deny,
        },
        _ => Authorization::Allow,
    }
}

/// Pragmas that only tell something of tables.
fn is_harmless(pragma: &str) -> bool {
    let harmless = [
        "foreign_key_list",
        "index_info",
        "index_list",
        "table_info",
        "table_xinfo",
    ];
    harmless
        .iter()
        .any(|name| name.eq_ignore_ascii_case(pragma))
}

fn is_search(module: &str) -> bool {
    ["fts5", "rtree"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(module))
}

/// An error with the code that DB2 has for it, which macros know.
fn fault_of(error: &rusqlite::Error) -> FunctionFault {
    let message = error.to_string();
    let (code, state) = match error {
        rusqlite::Error::SqliteFailure(failure, _)
        | rusqlite::Error::SqlInputError { error: failure, .. } => {
            by_failure(failure.code, failure.extended_code, &message)
        }
        rusqlite::Error::InvalidParameterCount(..) => (-313, "07001"),
        _ => (-1, "58005"),
    };
    FunctionFault {
        code,
        sql_state: Some(state.into()),
        message,
    }
}

fn by_failure(code: ErrorCode, extended: i32, message: &str) -> (i64, &'static str) {
    match code {
        ErrorCode::ConstraintViolation => match extended {
            rusqlite::ffi::SQLITE_CONSTRAINT_NOTNULL => (-407, "23502"),
            rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY => (-530, "23503"),
            rusqlite::ffi::SQLITE_CONSTRAINT_CHECK => (-545, "23513"),
            _ => (-803, "23505"),
        },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (-913, "57033"),
        ErrorCode::OperationInterrupted => (-952, "57014"),
        ErrorCode::DiskFull => (-968, "57011"),
        ErrorCode::ReadOnly => (READS_ONLY, "25000"),
        ErrorCode::AuthorizationForStatementDenied => (-551, "42501"),
        ErrorCode::CannotOpen => (-204, "42704"),
        ErrorCode::TooBig => (-302, "22001"),
        _ if message.contains("no such table") => (-204, "42704"),
        _ if message.contains("no such column") => (-206, "42703"),
        _ => (-104, "42601"),
    }
}
