//! The database that `--database` names.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hob_odbc::{OdbcDatabase, OdbcOptions};
use hob_page::fault::FunctionFault;
use hob_page::sql::postgres::{PostgresDatabase, PostgresOptions};
use hob_page::sql::sqlite::{SqliteDatabase, SqliteOptions};
use hob_page::sql::{Database, DatabaseName, RowSink, RunDone, Statement};

use crate::CommandFailure;
use crate::args::PageRunOptions;
use crate::escape;

use super::{failure, start_odbc};

/// How long a statement waits for another writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a value or a row.
const VALUE_BYTES_MAX: i32 = 16 << 20;

/// Opens it; without one, statements are told so.
pub(super) fn open(
    options: &PageRunOptions,
    environment: &[(OsString, OsString)],
) -> Result<Box<dyn Database>, CommandFailure> {
    let database = match &options.database {
        Some(url) => opened(url, options.read_only, environment)?,
        None => return Ok(Box::new(Nothing)),
    };
    Ok(match options.plan {
        true => Box::new(Explained(database)),
        false => database,
    })
}

/// A database whose plan of each statement is shown.
struct Explained(Box<dyn Database>);

impl Database for Explained {
    fn run(
        &self,
        name: &DatabaseName,
        statement: &Statement,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        match self.0.plan(name, statement) {
            Ok(steps) => steps
                .iter()
                .for_each(|step| eprintln!("{}", escape::line(&format!("plan: {step}")))),
            Err(fault) => eprintln!("{}", escape::line(&format!("no plan: {}", fault.message))),
        }
        self.0.run(name, statement, rows)
    }

    fn read_only(&self) -> Result<(), FunctionFault> {
        self.0.read_only()
    }

    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    fn commit(&self) -> Result<(), FunctionFault> {
        self.0.commit()
    }

    fn rollback(&self) -> Result<(), FunctionFault> {
        self.0.rollback()
    }

    fn crash(&self) -> Option<String> {
        self.0.crash()
    }
}

/// Opens the database of a URL.
pub(super) fn opened(
    url: &str,
    is_read_only: bool,
    environment: &[(OsString, OsString)],
) -> Result<Box<dyn Database>, CommandFailure> {
    let (scheme, file) = url.split_once(':').unwrap_or((url, ""));
    match scheme {
        "sqlite" if !file.is_empty() => sqlite(file, is_read_only),
        "postgres" | "postgresql" => postgres(url, is_read_only, environment),
        "odbc" => odbc(url, is_read_only, environment),
        _ => {
            let forms = "sqlite:FILE, postgres://USER@HOST/DATABASE or odbc:DSN=NAME";
            // It may have a password in it.
            Err(failure(
                2,
                format!("--database {scheme}:...: write {forms}"),
            ))
        }
    }
}

fn sqlite(file: &str, is_read_only: bool) -> Result<Box<dyn Database>, CommandFailure> {
    let options = SqliteOptions {
        path: PathBuf::from(file),
        is_read_only,
        creates: false,
        busy_timeout: BUSY_TIMEOUT,
        value_bytes_max: VALUE_BYTES_MAX,
    };
    match SqliteDatabase::open(&options, None) {
        Ok(database) => Ok(Box::new(database)),
        Err(fault) => {
            let text = format!("cannot open the database {file}: {}", fault.message);
            Err(failure(1, text))
        }
    }
}

fn postgres(
    url: &str,
    is_read_only: bool,
    environment: &[(OsString, OsString)],
) -> Result<Box<dyn Database>, CommandFailure> {
    let options = PostgresOptions::parse(url);
    let mut options = options.map_err(|text| failure(2, format!("--database: {text}")))?;
    options.is_read_only = is_read_only;
    if options.password.is_none() {
        options.password = variable("PGPASSWORD", environment);
    }
    match PostgresDatabase::open(options, None) {
        Ok(database) => Ok(Box::new(database)),
        Err(fault) => Err(failure(1, fault.message)),
    }
}

fn odbc(
    url: &str,
    is_read_only: bool,
    environment: &[(OsString, OsString)],
) -> Result<Box<dyn Database>, CommandFailure> {
    let options = OdbcOptions::parse(url);
    let mut options = options.map_err(|text| failure(2, format!("--database: {text}")))?;
    options.is_read_only = is_read_only;
    if !options.has_password()
        && let Some(password) = variable("HOB_ODBC_PASSWORD", environment)
    {
        options.set_password(password);
    }
    match OdbcDatabase::open(options, start_odbc, None) {
        Ok(database) => Ok(Box::new(database)),
        Err(fault) => Err(failure(1, fault.message)),
    }
}

fn variable(name: &str, environment: &[(OsString, OsString)]) -> Option<String> {
    let mut variables = environment.iter();
    let found = variables.find(|(known, _)| known == name);
    found
        .and_then(|(_, value)| value.to_str())
        .map(str::to_owned)
}

/// No database.
struct Nothing;

impl Database for Nothing {
    fn run(
        &self,
        _: &DatabaseName,
        _: &Statement,
        _: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        let message = "no database was named; `--database sqlite:FILE` does";
        Err(FunctionFault::new(-1, message))
    }

    fn read_only(&self) -> Result<(), FunctionFault> {
        Ok(())
    }

    fn commit(&self) -> Result<(), FunctionFault> {
        Ok(())
    }

    fn rollback(&self) -> Result<(), FunctionFault> {
        Ok(())
    }
}
