//! The databases of a run: a connection of its thread to each that it names.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::time::Instant;

use hob_odbc::{OdbcDatabase, OdbcOptions};
use hob_page::fault::FunctionFault;
use hob_page::sql::postgres::{PostgresDatabase, PostgresOptions};
use hob_page::sql::sqlite::{SqliteDatabase, SqliteOptions};
use hob_page::sql::{Database, DatabaseName, RowSink, RowsEnd, RunDone, Statement};

use crate::handle::page::config::{DatabasePlace, DatabaseSettings, PagesSettings};
use crate::handle::page::output::PageOutput;
use crate::handle::page::run::current_is_over;

/// Largest value or row, in bytes.
const VALUE_BYTES_MAX: i32 = 64 << 20;
/// Bytes of a statement, or of its plan, that are shown in the log.
const SHOWN_BYTES_MAX: usize = 500;

/// The connections of a thread.
#[derive(Default)]
pub(super) struct ThreadDatabases {
    open: RefCell<Vec<Rc<OpenDatabase>>>,
}

/// A connection that is open.
pub(super) struct OpenDatabase {
    settings: DatabaseSettings,
    database: Box<dyn Database + Send>,
    /// The file it has open: device and inode.
    file: (u64, u64),
    /// Something was asked in this run.
    is_used: Cell<bool>,
}

/// The databases of a run.
pub(super) struct RunDatabases<'a> {
    pub(super) settings: &'a PagesSettings,
    pub(super) connections: &'a ThreadDatabases,
    /// Nothing is written.
    pub(super) reads_only: Cell<bool>,
    /// Who is told of slow statements.
    pub(super) output: &'a PageOutput,
}

impl ThreadDatabases {
    fn known(&self, settings: &DatabaseSettings) -> Option<Rc<OpenDatabase>> {
        let open = self.open.borrow();
        open.iter().find(|one| one.settings == *settings).cloned()
    }

    fn connection(&self, settings: &DatabaseSettings) -> Result<Rc<OpenDatabase>, FunctionFault> {
        if let Some(known) = self.known(settings) {
            // One that was replaced is another, from the next run on.
            if known.is_used.get() || known.file == identity(settings) {
                known.is_used.set(true);
                return Ok(known);
            }
            self.open
                .borrow_mut()
                .retain(|one| !Rc::ptr_eq(one, &known));
        }
        let database = open(settings)?;
        let connection = Rc::new(OpenDatabase {
            file: identity(settings),
            settings: settings.clone(),
            database,
            is_used: Cell::new(true),
        });
        self.open.borrow_mut().push(Rc::clone(&connection));
        Ok(connection)
    }

    /// Ends a run: nothing of it stays open. A connection that cannot even undo is given up.
    pub(super) fn end_run(&self) {
        self.open.borrow_mut().retain(|one| {
            !one.is_used.replace(false)
                || one
                    .database
                    .rollback()
                    .inspect_err(|fault| {
                        let place = &one.settings.place;
                        tracing::warn!("page: {place:?} is opened anew: {}", fault.message);
                    })
                    .is_ok()
        });
    }

    /// Those that a visit kept, for its run: they are found before the thread's own.
    pub(super) fn put(&self, kept: Vec<OpenDatabase>) {
        let mut open = self.open.borrow_mut();
        for one in kept {
            one.is_used.set(true);
            open.insert(0, Rc::new(one));
        }
    }

    /// Those of this run that have an open transaction, for a visit.
    pub(super) fn take_open(&self) -> Vec<OpenDatabase> {
        let mut open = self.open.borrow_mut();
        let (kept, others) = std::mem::take(&mut *open)
            .into_iter()
            .partition(|one| one.is_used.get() && one.database.is_open());
        *open = others;
        let kept: Vec<Rc<OpenDatabase>> = kept;
        kept.into_iter().filter_map(Rc::into_inner).collect()
    }

    /// One for each database is enough: of a visit's and the thread's own, one goes.
    pub(super) fn close_spare(&self) {
        let mut open = self.open.borrow_mut();
        let mut at = 1;
        while at < open.len() {
            let (before, rest) = open.split_at(at);
            match before.iter().any(|one| one.settings == rest[0].settings) {
                true => drop(open.remove(at)),
                false => at += 1,
            }
        }
    }

    /// What was asked of any of them ends so.
    fn end_all(
        &self,
        how: impl Fn(&dyn Database) -> Result<(), FunctionFault>,
    ) -> Result<(), FunctionFault> {
        let open = self.open.borrow();
        let mut used = open.iter().filter(|one| one.is_used.get());
        used.try_for_each(|one| how(&*one.database))
    }
}

/// Connects to a database, or opens its file.
fn open(settings: &DatabaseSettings) -> Result<Box<dyn Database + Send>, FunctionFault> {
    let is_over = Box::new(|| current_is_over().is_some());
    let url = match &settings.place {
        DatabasePlace::File(file) => {
            let options = SqliteOptions {
                path: file.clone(),
                is_read_only: settings.is_read_only,
                creates: settings.creates,
                busy_timeout: settings.busy,
                value_bytes_max: VALUE_BYTES_MAX,
            };
            let database = SqliteDatabase::open(&options, Some(is_over));
            let database = database.map_err(|fault| FunctionFault {
                message: format!("{}: {}", file.display(), fault.message),
                ..fault
            });
            return Ok(Box::new(database?));
        }
        DatabasePlace::Odbc(options) => {
            let mut options: OdbcOptions = options.clone();
            options.is_read_only = settings.is_read_only;
            if let Some(password) = password(settings)? {
                options.set_password(password);
            }
            options.memory_bytes = settings.memory_bytes;
            let start = |memory_bytes| hob_keeper::beside::start("odbc", memory_bytes);
            return Ok(Box::new(OdbcDatabase::open(options, start, Some(is_over))?));
        }
        DatabasePlace::Server(url) => url,
    };
    let mut options = PostgresOptions::parse(url).map_err(not_let_in)?;
    options.is_read_only = settings.is_read_only;
    if let Some(password) = password(settings)? {
        options.password = Some(password);
    }
    Ok(Box::new(PostgresDatabase::open(options, Some(is_over))?))
}

/// What its file says, if there is one.
fn password(settings: &DatabaseSettings) -> Result<Option<String>, FunctionFault> {
    let Some(file) = &settings.password_file else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| not_let_in(format!("{}: {error}", file.display())))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn not_let_in(message: String) -> FunctionFault {
    FunctionFault {
        sql_state: Some("08001".into()),
        ..FunctionFault::new(-30082, message)
    }
}

/// Device and inode of its file; zeros where it is not there, or has none.
fn identity(settings: &DatabaseSettings) -> (u64, u64) {
    let DatabasePlace::File(file) = &settings.place else {
        return (0, 0);
    };
    let found = std::fs::metadata(file);
    found.map_or((0, 0), |found| (found.dev(), found.ino()))
}

impl RunDatabases<'_> {
    /// The database that a page names.
    fn named(&self, name: &DatabaseName) -> Result<&DatabaseSettings, FunctionFault> {
        let wanted = name.database.trim();
        let own = self.settings.database.as_ref();
        let mut all = own.iter().copied().chain(&self.settings.others);
        let is_wanted = |one: &&DatabaseSettings| one.name.eq_ignore_ascii_case(wanted);
        let found = match wanted.is_empty() {
            true => own,
            false => all.find(is_wanted),
        };
        found.ok_or_else(|| {
            let message = match wanted.is_empty() {
                true => "the route of this page has no database, and the page names none; the \
                         config's `database` does"
                    .to_owned(),
                false => format!(
                    "the config has no database {wanted:?}; add `[[database]]` with this `name`"
                ),
            };
            FunctionFault {
                sql_state: Some("08001".into()),
                ..FunctionFault::new(-1013, message)
            }
        })
    }
}

impl Database for RunDatabases<'_> {
    fn run(
        &self,
        name: &DatabaseName,
        statement: &Statement,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        let settings = self.named(name)?;
        let connection = self.connections.connection(settings)?;
        if self.reads_only.get() {
            connection.database.read_only()?;
        }
        let started = Instant::now();
        let mut counted = CountedRows { rows, count: 0 };
        let done = connection.database.run(name, statement, &mut counted);
        let (taken, rows) = (started.elapsed(), counted.count);
        if taken >= settings.slow {
            let text = shown(&statement.text);
            let ms = taken.as_millis();
            let mut what = format!("{}: {ms} ms, {rows} rows: {text}", settings.name);
            if settings.tells_plan && done.is_ok() {
                match connection.database.plan(name, statement) {
                    Ok(steps) => _ = write!(what, "; plan: {}", shown(&steps.join("; "))),
                    Err(fault) => _ = write!(what, "; no plan: {}", fault.message),
                }
            }
            tracing::warn!("page: slow statement of {what}");
            self.output.note_slow(ms, what);
        }
        done
    }

    fn read_only(&self) -> Result<(), FunctionFault> {
        self.reads_only.set(true);
        Ok(())
    }

    fn commit(&self) -> Result<(), FunctionFault> {
        self.connections.end_all(|one| one.commit())
    }

    fn rollback(&self) -> Result<(), FunctionFault> {
        self.connections.end_all(|one| one.rollback())
    }

    fn crash(&self) -> Option<String> {
        let open = self.connections.open.borrow();
        open.iter().find_map(|one| one.database.crash())
    }
}

/// A statement or its plan on one line, not too long.
fn shown(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    if line.len() > SHOWN_BYTES_MAX {
        let mut ends = (0..=SHOWN_BYTES_MAX).rev();
        let end = ends.find(|end| line.is_char_boundary(*end));
        line.truncate(end.unwrap_or_default());
        line.push_str(" ...");
    }
    line
}

/// Counts rows on their way.
struct CountedRows<'a> {
    rows: &'a mut dyn RowSink,
    count: u64,
}

impl RowSink for CountedRows<'_> {
    fn columns(&mut self, names: &[&str]) -> Result<(), RowsEnd> {
        self.rows.columns(names)
    }

    fn row(&mut self, cells: &[hob_page::sql::Cell<'_>]) -> Result<(), RowsEnd> {
        self.count += 1;
        self.rows.row(cells)
    }
}
