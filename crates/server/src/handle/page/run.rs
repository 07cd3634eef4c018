//! Runs a page: on the serving thread as far as it waits for nothing, or on one that may wait.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hob_page::fault::{FunctionFault, PageFault, PageFaultKind};
use hob_page::host::{
    Absent, CivilTime, Host, PageClock, PageEnvironment, PageHead, PagePrograms, PageVisits, Sink,
    SinkGone, Sources, Trace, TraceEvent,
};
use hob_page::limits::PageUse;
use hob_page::request::PageRequest;
use hob_page::run::{RunOutcome, SavedVariables};
use hob_page::sql::{Database, DatabaseName, RowSink, RunDone, Statement};
use hob_page::sql_page::{self, SqlPage, SqlPageEnd, SqlPageFormat, SqlPageRequest};
use hob_page::tree::Page;

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
use crate::handle::page::visits::clock::VisitEnd;
use crate::handle::page::visits::run::{RunVisit, VisitSources};
use crate::handle::page::visits::turns::{IncludedPages, KeptPage, PageVisit, TurnDone};
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
    let run = ThreadRun {
        pages,
        asked,
        connections,
        output,
    };
    let (end, events) = run.under_way(|trace| run.found_page(trace));
    output.end(end, events);
}

/// Runs a page of a visit, whose turn it is.
pub(super) fn turn(
    pages: &Pages,
    asked: &WaitingRun,
    (visit, kept): (&PageVisit, Option<KeptPage>),
    connections: &ThreadDatabases,
    output: &Arc<PageOutput>,
) -> TurnDone {
    let run = ThreadRun {
        pages,
        asked,
        connections,
        output,
    };
    let (ran, events) = run.under_way(|trace| run.visit_page(visit, kept, trace));
    connections.close_spare();
    let (end, keeps) = ran;
    TurnDone { keeps, end, events }
}

/// A run on a thread that may wait.
struct ThreadRun<'a> {
    pages: &'a Pages,
    asked: &'a WaitingRun,
    connections: &'a ThreadDatabases,
    output: &'a Arc<PageOutput>,
}

/// Tells that the run is lost, where a panic ended it.
struct EndsOutput<'a>(&'a PageOutput);

impl Drop for EndsOutput<'_> {
    fn drop(&mut self) {
        CURRENT.set(None);
        self.0.end(RunEnd::Lost, Vec::new());
    }
}

impl ThreadRun<'_> {
    /// Does this as the run of its thread. Returns what happened, too, for who watches.
    fn under_way<T>(&self, act: impl FnOnce(Option<&mut RunEvents>) -> T) -> (T, Vec<String>) {
        let lost = EndsOutput(self.output);
        CURRENT.set(Some(Arc::clone(self.output)));
        let mut events = RunEvents::default();
        let done = act(self.asked.is_watched.then_some(&mut events));
        CURRENT.set(None);
        self.connections.end_run();
        std::mem::forget(lost);
        (done, events.0)
    }

    fn moment(&self) -> LookMoment {
        LookMoment {
            may: May::Wait,
            ..self.asked.moment
        }
    }

    fn files(&self) -> RunFiles<'_> {
        RunFiles {
            files: &self.pages.files,
            moment: self.moment(),
            would_wait: Cell::new(false),
        }
    }

    fn databases(&self) -> RunDatabases<'_> {
        RunDatabases {
            settings: &self.pages.settings,
            connections: self.connections,
            reads_only: Cell::new(false),
            output: self.output,
        }
    }

    /// The page as it is now.
    fn source(&self) -> Result<PageSource, RunEnd> {
        let found = match &self.asked.file {
            Some(file) => Ok(Arc::clone(file)),
            None => {
                let name = &self.asked.name;
                self.pages.files.find(name, FileUse::Page, self.moment())
            }
        };
        let page = found.map_err(RunEnd::NoPage)?.page.clone();
        page.map_err(RunEnd::Fault)
    }

    fn found_page(&self, trace: Option<&mut RunEvents>) -> RunEnd {
        match (self.source(), &self.asked.sql) {
            (Err(end), _) => end,
            (Ok(PageSource::Sql(page)), Some(sql)) => self.sql_page(&page, sql, trace),
            (Ok(PageSource::Macro(page)), None) => {
                match self.macro_page(&page, &self.files(), &Absent, None, trace) {
                    Ok(outcome) if outcome.has_block => RunEnd::Done(outcome.used),
                    Ok(_) => RunEnd::NoBlock,
                    Err(fault) => RunEnd::Fault(fault),
                }
            }
            (Ok(_), _) => RunEnd::NoPage(FileLookupError::Missing),
        }
    }

    fn sql_page(&self, page: &SqlPage, sql: &SqlRun, trace: Option<&mut RunEvents>) -> RunEnd {
        let database = self.databases();
        database.reads_only.set(sql.reads_only);
        let request = SqlPageRequest {
            fields: &self.asked.request.fields,
            query: &sql.query,
            format: sql.format,
            style: STYLE,
            limits: &self.pages.waiting.limits,
        };
        let clock = RunClock(Instant::now());
        let mut sink = RunSink(self.output);
        match sql_page::run(
            page,
            request,
            &database,
            &clock,
            &mut sink,
            trace.map(as_trace),
        ) {
            Ok(SqlPageEnd::Done(used)) => RunEnd::Done(used),
            Ok(SqlPageEnd::Writes) => RunEnd::Writes,
            Err(fault) => RunEnd::Fault(fault),
        }
    }

    /// Runs a page of the macro language, with what its visit kept.
    fn macro_page(
        &self,
        page: &Arc<Page>,
        sources: &dyn Sources,
        visits: &dyn PageVisits,
        saved: Option<&SavedVariables>,
        trace: Option<&mut RunEvents>,
    ) -> Result<RunOutcome, PageFault> {
        let database = self.databases();
        let programs = RunPrograms {
            settings: &self.pages.settings,
            calls: &self.output.calls,
        };
        let clock = RunClock(Instant::now());
        let environment = &self.asked.environment;
        let host = Host {
            files: &self.pages.flat,
            registries: &self.pages.flat,
            visits,
            ..host(environment, sources, &database, &programs, &clock)
        };
        let (request, settings) = (&self.asked.request, &self.pages.waiting);
        let mut sink = RunSink(self.output);
        let trace = trace.map(as_trace);
        hob_page::run::run(page, request, settings, saved, host, &mut sink, trace)
    }

    /// Runs a page in its visit. Returns what the next request begins with, and how long that is
    /// waited for; or why there is none.
    fn visit_page(
        &self,
        visit: &PageVisit,
        kept: Option<KeptPage>,
        trace: Option<&mut RunEvents>,
    ) -> (RunEnd, Result<(KeptPage, Duration), VisitEnd>) {
        let told = RunVisit::new(visit, kept.as_ref());
        let (page, included, saved) = match kept {
            Some(kept) => {
                self.connections.put(kept.databases);
                (kept.page, kept.included, Some(kept.variables))
            }
            None => match self.source() {
                Ok(PageSource::Macro(page)) => (page, IncludedPages::default(), None),
                Ok(PageSource::Sql(_)) => return (RunEnd::NoBlock, Err(VisitEnd::Unkept)),
                Err(end) => return (end, Err(VisitEnd::Unkept)),
            },
        };
        let sources = VisitSources {
            of: &self.files(),
            included: RefCell::new(included),
        };
        let (end, next) = match self.macro_page(&page, &sources, &told, saved.as_ref(), trace) {
            Err(fault) => (RunEnd::Fault(fault), Err(told.failed())),
            Ok(outcome) if outcome.has_block => {
                (RunEnd::Done(outcome.used), told.next(outcome.saved))
            }
            // The visit is as it was.
            Ok(_) => {
                let same = saved.map(|saved| (saved, visit.shown().wait));
                (RunEnd::NoBlock, same.ok_or(VisitEnd::Unkept))
            }
        };
        let keeps = next.map(|(variables, wait)| {
            let kept = KeptPage {
                page,
                included: sources.included.into_inner(),
                variables,
                databases: self.connections.take_open(),
                wait: told.static_wait(),
            };
            (kept, wait)
        });
        (end, keeps)
    }
}

/// What a run has.
fn host<'h>(
    environment: &'h dyn PageEnvironment,
    sources: &'h dyn Sources,
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

fn as_trace(events: &mut RunEvents) -> &mut dyn Trace {
    events
}

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
