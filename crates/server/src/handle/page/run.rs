//! Runs a page: on the serving thread as far as it waits for nothing, or on one that may wait.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hob_page::fault::{FunctionFault, PageFault, PageFaultKind};
use hob_page::host::{
    Absent, CivilTime, Host, PageClock, PageEnvironment, PageHead, PagePrograms, Sink, SinkGone,
    Trace, TraceEvent,
};
use hob_page::limits::PageUse;
use hob_page::request::PageRequest;
use hob_page::sql::{Database, DatabaseName, RowSink, RunDone, Statement};
use hob_page::sql_page::{self, SqlPageEnd, SqlPageFormat, SqlPageRequest};

use crate::handle::files::open::May;
use crate::handle::page::Pages;
use crate::handle::page::calls::{RunPrograms, UncalledPrograms};
use crate::handle::page::database::{RunDatabases, ThreadDatabases};
use crate::handle::page::files::{
    FileLookupError, FileUse, KnownFile, LookMoment, PageSource, RunFiles,
};
use crate::handle::page::flat::UnaskedFiles;
use crate::handle::page::output::{PageOutput, RunEnd, RunSink};
use crate::handle::page::request::{CopiedEnvironment, RequestEnvironment};
use crate::local_time;

/// Style of pages that are statements.
const STYLE: &str = concat!(include_str!("../page.css"), include_str!("table.css"));
/// Events of a run that are kept for who watches.
const EVENTS_MAX: usize = 200;

thread_local! {
    /// The run that is under way on this thread.
    static CURRENT: RefCell<Option<Arc<PageOutput>>> = const { RefCell::new(None) };
}

/// Why the run of this thread has to end now, if it has to.
pub(super) fn current_is_over() -> Option<&'static str> {
    CURRENT.with_borrow(|run| run.as_ref().and_then(|run| run.is_over()))
}

/// What a run printed that had not to wait.
pub(super) struct InlineOutput {
    pub(super) head: PageHead,
    pub(super) bytes: Vec<u8>,
    /// What it used; `None` where there is no such block.
    pub(super) used: Option<PageUse>,
}

/// Runs a page here. `None` where it would have to wait, or takes long: nothing has come of it.
pub(super) fn inline(
    pages: &Pages,
    file: &KnownFile,
    request: &PageRequest,
    environment: &RequestEnvironment<'_>,
    moment: LookMoment,
) -> Option<Result<InlineOutput, PageFault>> {
    if file.waits.load(Ordering::Relaxed) {
        return None;
    }
    let page = match &file.page {
        Ok(PageSource::Macro(page)) => page,
        Ok(PageSource::Sql(_)) => return None,
        Err(fault) => return Some(Err(fault.clone())),
    };
    let sources = RunFiles {
        files: &pages.files,
        moment,
        would_wait: Cell::new(false),
    };
    let database = UnaskedDatabase(Cell::new(false));
    let programs = UncalledPrograms {
        settings: &pages.settings,
        is_wanted: Cell::new(false),
    };
    let clock = RunClock(Instant::now());
    let flat = UnaskedFiles {
        of: &pages.flat,
        was_asked: Cell::new(false),
    };
    let host = Host {
        files: &flat,
        registries: &flat,
        ..host(environment, &sources, &database, &programs, &clock)
    };
    let mut sink = InlineSink::default();
    let outcome = hob_page::run::run(page, request, &pages.inline, None, host, &mut sink, None);
    let is_long = matches!(
        &outcome,
        Err(PageFault {
            kind: PageFaultKind::Limit(_),
            ..
        })
    );
    if database.0.get() || flat.was_asked.get() || programs.is_wanted.get() || is_long {
        file.waits.store(true, Ordering::Relaxed);
        return None;
    }
    if sources.would_wait.get() {
        return None;
    }
    Some(outcome.map(|outcome| InlineOutput {
        head: sink.head,
        bytes: sink.bytes,
        used: outcome.has_block.then_some(outcome.used),
    }))
}

/// What a thread is asked to run.
pub(super) struct WaitingRun {
    /// The page's name.
    pub(super) name: String,
    /// The file of that name, if it is known.
    pub(super) file: Option<Arc<KnownFile>>,
    pub(super) request: PageRequest,
    pub(super) environment: CopiedEnvironment,
    pub(super) moment: LookMoment,
    /// Of a page that is statements.
    pub(super) sql: Option<SqlRun>,
    /// Somebody wants to know what happens.
    pub(super) is_watched: bool,
}

/// How statements are run that are a page.
pub(super) struct SqlRun {
    pub(super) format: SqlPageFormat,
    /// The query, as it was sent.
    pub(super) query: Vec<u8>,
    /// Nothing is written.
    pub(super) reads_only: bool,
}

/// Runs a page on a thread that may wait.
pub(super) fn waiting(
    pages: &Pages,
    asked: &WaitingRun,
    connections: &ThreadDatabases,
    output: &Arc<PageOutput>,
) {
    if !output.begin() {
        return output.end(RunEnd::Unbegun, Vec::new());
    }
    let lost = EndsOutput(output);
    CURRENT.set(Some(Arc::clone(output)));
    let mut events = RunEvents::default();
    let trace = asked.is_watched.then_some(&mut events);
    let end = run_found(pages, asked, connections, output, trace);
    CURRENT.set(None);
    connections.end_run();
    std::mem::forget(lost);
    output.end(end, events.0);
}

/// Tells that the run is lost, where a panic ended it.
struct EndsOutput<'a>(&'a PageOutput);

impl Drop for EndsOutput<'_> {
    fn drop(&mut self) {
        CURRENT.set(None);
        self.0.end(RunEnd::Lost, Vec::new());
    }
}

fn run_found(
    pages: &Pages,
    asked: &WaitingRun,
    connections: &ThreadDatabases,
    output: &Arc<PageOutput>,
    trace: Option<&mut RunEvents>,
) -> RunEnd {
    let moment = LookMoment {
        may: May::Wait,
        ..asked.moment
    };
    let found = match &asked.file {
        Some(file) => Ok(Arc::clone(file)),
        None => pages.files.find(&asked.name, FileUse::Page, moment),
    };
    let source = match found {
        Ok(found) => found.page.clone(),
        Err(error) => return RunEnd::NoPage(error),
    };
    let database = RunDatabases {
        settings: &pages.settings,
        connections,
        reads_only: Cell::new(false),
    };
    let clock = RunClock(Instant::now());
    let trace = trace.map(|events| events as &mut dyn Trace);
    let request = &asked.request;
    match (source, &asked.sql) {
        (Err(fault), _) => RunEnd::Fault(fault),
        (Ok(PageSource::Sql(page)), Some(sql)) => {
            database.reads_only.set(sql.reads_only);
            let request = SqlPageRequest {
                fields: &request.fields,
                query: &sql.query,
                format: sql.format,
                style: STYLE,
                limits: &pages.waiting.limits,
            };
            let mut sink = RunSink(output);
            match sql_page::run(&page, request, &database, &clock, &mut sink, trace) {
                Ok(SqlPageEnd::Done(used)) => RunEnd::Done(used),
                Ok(SqlPageEnd::Writes) => RunEnd::Writes,
                Err(fault) => RunEnd::Fault(fault),
            }
        }
        (Ok(PageSource::Macro(page)), None) => {
            let sources = RunFiles {
                files: &pages.files,
                moment,
                would_wait: Cell::new(false),
            };
            let programs = RunPrograms {
                settings: &pages.settings,
                calls: &output.calls,
            };
            let host = Host {
                files: &pages.flat,
                registries: &pages.flat,
                ..host(&asked.environment, &sources, &database, &programs, &clock)
            };
            let mut sink = RunSink(output);
            match hob_page::run::run(&page, request, &pages.waiting, None, host, &mut sink, trace) {
                Ok(outcome) if outcome.has_block => RunEnd::Done(outcome.used),
                Ok(_) => RunEnd::NoBlock,
                Err(fault) => RunEnd::Fault(fault),
            }
        }
        (Ok(_), _) => RunEnd::NoPage(FileLookupError::Missing),
    }
}

/// What a run has.
fn host<'h>(
    environment: &'h dyn PageEnvironment,
    sources: &'h RunFiles<'h>,
    database: &'h dyn Database,
    programs: &'h dyn PagePrograms,
    clock: &'h RunClock,
) -> Host<'h> {
    Host {
        environment,
        sources,
        database: Some(database),
        programs,
        files: &Absent,
        registries: &Absent,
        visits: &Absent,
        clock,
    }
}

/// A database that nobody may ask on a serving thread.
struct UnaskedDatabase(Cell<bool>);

impl Database for UnaskedDatabase {
    fn run(
        &self,
        _: &DatabaseName,
        _: &Statement,
        _: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault> {
        self.0.set(true);
        Err(FunctionFault::new(-1, "it would have to wait"))
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

/// Holds what a run prints that does not wait.
#[derive(Default)]
struct InlineSink {
    head: PageHead,
    bytes: Vec<u8>,
}

impl Sink for InlineSink {
    fn begin(&mut self, head: &PageHead) -> Result<(), SinkGone> {
        self.head = head.clone();
        Ok(())
    }

    fn piece(&mut self, bytes: &mut Vec<u8>) -> Result<(), SinkGone> {
        match self.bytes.is_empty() {
            true => self.bytes = std::mem::take(bytes),
            false => self.bytes.append(bytes),
        }
        Ok(())
    }
}

/// The clock of a run that began then.
struct RunClock(Instant);

impl PageClock for RunClock {
    fn micros(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }

    fn civil(&self) -> CivilTime {
        local_time::civil()
    }

    fn is_over(&self) -> Option<&'static str> {
        current_is_over()
    }
}

/// What happened in a run, for who watches.
#[derive(Default)]
struct RunEvents(Vec<String>);

impl Trace for RunEvents {
    fn event(&mut self, event: TraceEvent<'_>) {
        if self.0.len() >= EVENTS_MAX {
            return;
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = match event {
            TraceEvent::Variable { .. } => return,
            TraceEvent::Statement {
                place,
                statement,
                rows,
                micros,
                fault,
            } => {
                let (file, line) = (place.file, place.line);
                let words: Vec<_> = statement.text.split_whitespace().collect();
                let sql = words.join(" ");
                let _ = write!(text, "{file}:{line}: {sql}: {rows} rows, {micros} us");
                match fault {
                    Some(fault) => write!(text, ": {}: {}", fault.code, fault.message),
                    None => Ok(()),
                }
            }
            TraceEvent::Code { place, fault } => {
                let (file, line, code) = (place.file, place.line, fault.code);
                write!(text, "{file}:{line}: {code}: {}", fault.message)
            }
            TraceEvent::Refused { place, reason } => {
                let (file, line) = (place.file, place.line);
                write!(text, "{file}:{line}: a value is left out: {reason}")
            }
        };
        self.0.push(text);
    }
}
