//! A folder of pages and a database of SQLite, for tests: what a server is to pages.
#![allow(dead_code, reason = "each test file uses its part of it")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hob_page::fault::{FunctionFault, PageFault};
use hob_page::host::{
    CivilTime, ContentChange, Files, Host, PageClock, PageHead, PagePrograms, PageVisits,
    ProgramAnswer, ProgramCall, Registries, RegistryChange, RegistryEntry, Sink, SinkGone,
    SourceFault, Sources, Trace, TraceEvent,
};
use hob_page::request::PageRequest;
use hob_page::run::{PageSettings, RunOutcome, SavedVariables, run};
use hob_page::sql::Statement;
use hob_page::sql::sqlite::{SqliteDatabase, SqliteOptions};
use hob_page::tree::Page;

/// Pages of a folder.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    fn read(
        &self,
        name: &str,
        parse: fn(&str, &[u8]) -> Result<Page, PageFault>,
    ) -> Result<Arc<Page>, SourceFault> {
        let is_below = !name.contains("..") && !name.starts_with('/');
        let source = std::fs::read(self.0.join(name)).ok().filter(|_| is_below);
        let source = source.ok_or(SourceFault::Missing)?;
        parse(name, &source)
            .map(Arc::new)
            .map_err(SourceFault::Wrong)
    }
}

impl Sources for Folder {
    fn declarations(&self, name: &str) -> Result<Arc<Page>, SourceFault> {
        self.read(name, Page::parse)
    }

    fn body(&self, name: &str) -> Result<Arc<Page>, SourceFault> {
        self.read(name, Page::parse_body)
    }
}

/// A clock that stands still: 28 November 2026, a Saturday.
pub(crate) struct Still;

impl PageClock for Still {
    fn micros(&self) -> u64 {
        0
    }

    fn civil(&self) -> CivilTime {
        CivilTime {
            year: 2026,
            month: 11,
            day: 28,
            hour: 22,
            minute: 35,
            second: 7,
            micros: 123_456,
        }
    }
}

/// A program that tells how it was called.
pub(crate) struct Echo;

impl PagePrograms for Echo {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, FunctionFault> {
        let mut output = String::new();
        for argument in &call.arguments {
            let _ = write!(output, "[{}]", argument.to_str());
        }
        for (name, table) in &call.tables {
            let _ = write!(output, "{name}={} rows", table.rows.len());
        }
        let parameters = call.parameters.iter();
        let outs = parameters.map(|(name, _, value)| {
            let value = value.to_str().to_uppercase();
            (name.clone(), value.into_bytes())
        });
        Ok(ProgramAnswer {
            output: output.into_bytes(),
            outs: outs.collect(),
            code: 0,
        })
    }
}

type Entries = HashMap<String, Vec<RegistryEntry>>;

/// Files and registries, in memory.
#[derive(Default)]
pub(crate) struct Memory {
    files: RefCell<HashMap<String, Vec<u8>>>,
    registries: RefCell<Entries>,
}

fn missing(code: i64) -> FunctionFault {
    FunctionFault::new(code, "it is not there")
}

impl Files for Memory {
    fn read(&self, name: &str) -> Result<Vec<u8>, FunctionFault> {
        self.files.borrow().get(name).cloned().ok_or(missing(2000))
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault> {
        self.files.borrow_mut().insert(name.into(), content.into());
        Ok(())
    }

    fn append(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault> {
        let mut files = self.files.borrow_mut();
        files.entry(name.into()).or_default().extend(content);
        Ok(())
    }

    fn change(&self, name: &str, change: &mut ContentChange<'_>) -> Result<(), FunctionFault> {
        let content = change(&self.read(name)?)?;
        self.write(name, &content)
    }

    fn exists(&self, name: &str) -> Result<bool, FunctionFault> {
        Ok(self.files.borrow().contains_key(name))
    }

    fn remove(&self, name: &str) -> Result<(), FunctionFault> {
        let removed = self.files.borrow_mut().remove(name);
        removed.map(|_| ()).ok_or(missing(2000))
    }
}

impl Registries for Memory {
    fn create(&self, registry: &str) -> Result<(), FunctionFault> {
        self.registries
            .borrow_mut()
            .insert(registry.into(), Vec::new());
        Ok(())
    }

    fn delete(&self, registry: &str) -> Result<(), FunctionFault> {
        let removed = self.registries.borrow_mut().remove(registry);
        removed.map(|_| ()).ok_or(missing(3001))
    }

    fn entries(&self, registry: &str) -> Result<Vec<RegistryEntry>, FunctionFault> {
        let registries = self.registries.borrow();
        registries.get(registry).cloned().ok_or(missing(3001))
    }

    fn change(&self, registry: &str, change: &RegistryChange<'_>) -> Result<(), FunctionFault> {
        let mut registries = self.registries.borrow_mut();
        change.apply(registries.get_mut(registry).ok_or(missing(3001))?)
    }
}

/// A visit with a handle of its own.
#[derive(Default)]
pub(crate) struct Visit {
    pub(crate) handle: String,
    pub(crate) is_kept: Cell<bool>,
    pub(crate) has_ended: Cell<bool>,
    pub(crate) log: RefCell<Vec<String>>,
}

impl PageVisits for Visit {
    fn keep(&self, seconds: Option<u64>) -> Result<(), FunctionFault> {
        self.is_kept.set(true);
        self.log.borrow_mut().push(format!("static {seconds:?}"));
        Ok(())
    }

    fn handle(&self) -> Result<String, FunctionFault> {
        Ok(self.handle.clone())
    }

    fn accept(&self, handle: &[u8], seconds: Option<u64>) -> Result<(), FunctionFault> {
        let handle = String::from_utf8_lossy(handle);
        self.log
            .borrow_mut()
            .push(format!("accept {handle} {seconds:?}"));
        Ok(())
    }

    fn terminate(&self) -> Result<(), FunctionFault> {
        self.has_ended.set(true);
        Ok(())
    }
}

/// Takes everything.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) head: Option<PageHead>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) pieces: usize,
}

impl Sink for Taken {
    fn begin(&mut self, head: &PageHead) -> Result<(), SinkGone> {
        assert!(self.head.is_none(), "a page begins once");
        self.head = Some(head.clone());
        Ok(())
    }

    fn piece(&mut self, bytes: &mut Vec<u8>) -> Result<(), SinkGone> {
        self.pieces += 1;
        self.bytes.append(bytes);
        Ok(())
    }
}

/// Keeps statements, codes and what was refused, and variables.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) statements: Vec<Statement>,
    pub(crate) lines: Vec<String>,
    pub(crate) variables: Vec<String>,
}

impl Trace for Kept {
    fn event(&mut self, event: TraceEvent<'_>) {
        match event {
            TraceEvent::Statement {
                statement, fault, ..
            } => {
                self.lines.push(format!("sql: {}", shown(statement)));
                if let Some(fault) = fault {
                    self.lines.push(format!("sql fault {}", fault.code));
                }
                self.statements.push(statement.clone());
            }
            TraceEvent::Code { place, fault } => {
                let line = place.line;
                self.lines
                    .push(format!("code {} at {line}: {}", fault.code, fault.message));
            }
            TraceEvent::Refused { place, reason } => {
                self.lines
                    .push(format!("refused at {}: {reason}", place.line));
            }
            TraceEvent::Variable { name, value, .. } => {
                let line = format!("{name} = {}", value.to_str());
                self.variables.push(line);
            }
        }
    }
}

/// The statement, and behind it what is bound.
fn shown(statement: &Statement) -> String {
    let mut line = statement
        .text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for value in &statement.parameters {
        let text = String::from_utf8_lossy(&value.value);
        let _ = write!(line, " [{:?} {text}]", value.kind);
    }
    line
}

/// A folder with a database, files, programs and a visit.
pub(crate) struct Site {
    pub(crate) folder: Folder,
    pub(crate) database: Option<SqliteDatabase>,
    pub(crate) memory: Memory,
    pub(crate) visit: Visit,
    pub(crate) settings: PageSettings,
    _home: tempfile::TempDir,
}

impl Site {
    /// A site over a folder of pages, with a database that these statements made.
    pub(crate) fn new(folder: &Path, schema: &str) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let options = SqliteOptions {
            path: home.path().join("test.db"),
            is_read_only: false,
            creates: true,
            busy_timeout: Duration::from_secs(5),
            value_bytes_max: 1 << 20,
        };
        let database = (!schema.is_empty()).then(|| {
            let maker = rusqlite::Connection::open(&options.path).expect("a database");
            maker.execute_batch(schema).expect("the schema is made");
            drop(maker);
            SqliteDatabase::open(&options, None).expect("the database is opened")
        });
        let mut settings = PageSettings::default();
        settings.limits.turns_max = 1_000;
        Self {
            folder: Folder(folder.to_path_buf()),
            database,
            memory: Memory::default(),
            visit: Visit {
                handle: "h1".to_string(),
                ..Visit::default()
            },
            settings,
            _home: home,
        }
    }

    /// Asks for a block of a page, as a client would.
    pub(crate) fn ask(
        &self,
        page: &Arc<Page>,
        request: &PageRequest,
        saved: Option<&SavedVariables>,
    ) -> Answer {
        let environment = [("SERVER_NAME", "www.example"), ("REMOTE_USER", "ann")];
        let environment = environment.map(|(name, value)| (name.to_string(), value.into()));
        let host = Host {
            environment: &Vec::from(environment),
            sources: &self.folder,
            database: self.database.as_ref().map(|database| database as _),
            programs: &Echo,
            files: &self.memory,
            registries: &self.memory,
            visits: &self.visit,
            clock: &Still,
        };
        let mut taken = Taken::default();
        let mut kept = Kept::default();
        let settings = &self.settings;
        let outcome = run(
            page,
            request,
            settings,
            saved,
            host,
            &mut taken,
            Some(&mut kept),
        );
        Answer {
            outcome,
            taken,
            kept,
        }
    }
}

/// What came of a request.
pub(crate) struct Answer {
    pub(crate) outcome: Result<RunOutcome, PageFault>,
    pub(crate) taken: Taken,
    pub(crate) kept: Kept,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.taken.bytes).into_owned()
    }
}

/// A request for `block?query`.
pub(crate) fn request(target: &str) -> PageRequest {
    let (block, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = PageRequest {
        block: block.to_string(),
        ..PageRequest::default()
    };
    request
        .add_fields(query.as_bytes(), 1_000)
        .expect("few fields");
    request
        .cookies
        .push(("seen".to_string(), b"<yes>".to_vec()));
    request
}

/// Where the golden pages are.
pub(crate) fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages")
}
