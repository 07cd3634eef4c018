//! The state of a run, and the walk over declarations up to the block that was asked for.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::escape::{EscapeMode, HtmlPlace};
use crate::fault::{FunctionFault, PageFault, PageFaultKind};
use crate::host::{Host, PageHead, Sink, SourceFault, Trace, TracePlace};
use crate::ini::Ini;
use crate::limits::{PageLimits, PageUse};
use crate::request::{PageRequest, is_fit, is_for_clients};
use crate::tree::{
    Body, Declaration, Entry, FunctionBlock, MessageEntry, Page, PageContents, Symbol,
};
use crate::value::{Text, ValueOrigin};

use super::header::HeaderProgress;
use super::report::ReportFrame;
use super::saved::SavedVariables;
use super::variables::{SlotSource, Variable, Variables};

/// How pages are run.
#[derive(Clone, Default, Debug)]
pub struct PageSettings {
    /// How data is escaped.
    pub escape: EscapeMode,
    /// How much a run may use.
    pub limits: PageLimits,
    /// The initialization file.
    pub ini: Ini,
    /// A secret from which names in `$$(name)` are made.
    pub hidden_key: u64,
    /// Whether a page may say `LOGIN` and `PASSWORD`.
    pub has_page_logins: bool,
    /// Variables that each run begins with, as `DATABASE`; pages may change them.
    pub variables: Vec<(String, String)>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Whether there is such a block. If not, nothing was printed.
    pub has_block: bool,
    /// What it used.
    pub used: PageUse,
    /// Variables that the next request of this visit begins with, if the page lasts.
    pub saved: Option<SavedVariables>,
}

/// Runs one block of a page. `saved` is what an earlier request of the visit left.
pub fn run<'r>(
    page: &Arc<Page>,
    request: &'r PageRequest,
    settings: &'r PageSettings,
    saved: Option<&SavedVariables>,
    host: Host<'r>,
    sink: &'r mut dyn Sink,
    trace: Option<&'r mut dyn Trace>,
) -> Result<RunOutcome, PageFault> {
    let file = RunFile::new(Arc::clone(page));
    let mut runner = Runner::new(&file, request, settings, host, sink, trace);
    let result = runner.page(&file, saved);
    let outcome = match result {
        Ok(()) | Err(Stop::Exit) => runner.end(&file),
        Err(Stop::Fault(fault)) => {
            runner.undo();
            Err(fault)
        }
    };
    runner.variables.keep();
    outcome
}

/// Why a run goes no further.
#[derive(Debug)]
pub(super) enum Stop {
    /// The page said so.
    Exit,
    Fault(PageFault),
}

impl From<PageFault> for Stop {
    fn from(fault: PageFault) -> Self {
        Self::Fault(fault)
    }
}

pub(super) type Ran<T> = Result<T, Stop>;

/// A file in this run: its names are tied to variables when they are first met.
pub(super) struct RunFile {
    pub(super) page: Arc<Page>,
    links: Vec<Cell<u32>>,
}

impl RunFile {
    pub(super) fn new(page: Arc<Page>) -> Rc<Self> {
        let links = vec![Cell::new(0); page.names.len()];
        Rc::new(Self { page, links })
    }

    pub(super) fn place(&self, at: u32) -> TracePlace<'_> {
        TracePlace {
            file: &self.page.file,
            line: self.page.line(at),
        }
    }

    pub(super) fn stop<T>(&self, at: u32, message: impl Into<String>) -> Ran<T> {
        let fault = self.page.fault(at, PageFaultKind::Page, message.into());
        Err(Stop::Fault(fault))
    }
}

/// A function that can be called, and the file it stands in.
#[derive(Clone)]
pub(super) struct KnownFunction {
    pub(super) file: Rc<RunFile>,
    pub(super) block: Arc<FunctionBlock>,
}

pub(super) struct Runner<'r> {
    /// The file that was asked for.
    pub(super) root: Rc<RunFile>,
    pub(super) host: Host<'r>,
    pub(super) sink: &'r mut dyn Sink,
    pub(super) trace: Option<&'r mut dyn Trace>,
    pub(super) request: &'r PageRequest,
    pub(super) settings: &'r PageSettings,
    pub(super) variables: Variables,
    functions: Vec<KnownFunction>,
    pub(super) messages: Option<(Rc<RunFile>, Arc<[MessageEntry]>)>,
    pub(super) frames: Vec<ReportFrame>,
    spliced: HashMap<(usize, u32), Rc<RunFile>>,
    pub(super) environment: HashMap<Vec<u8>, Text>,
    pub(super) out: Vec<u8>,
    pub(super) html: HtmlPlace,
    pub(super) head: PageHead,
    pub(super) header: HeaderProgress,
    /// `DTW_REMOVE_WS` of the initialization file.
    pub(super) removes_blanks: bool,
    pub(super) has_begun: bool,
    /// Anything but blanks was printed.
    pub(super) has_printed: bool,
    pub(super) used: PageUse,
    /// The step at which the clock is asked again.
    next_look: u64,
    pub(super) depth: u32,
    /// A statement failed, so nothing of this run is made last.
    pub(super) has_failed: bool,
    /// A statement ran since the last commit.
    pub(super) is_open: bool,
    /// `@DTW_STATIC` was called in this visit.
    pub(super) is_lasting: bool,
    /// This run has called `@DTW_ACCEPT` or `@DTW_TERMINATE`.
    pub(super) has_told_visit: bool,
    pub(super) is_exiting: bool,
    /// The block with the wanted name, exactly, is in the macro itself.
    has_exact_block: bool,
    has_block: bool,
    is_resumed: bool,
}

impl<'r> Runner<'r> {
    fn new(
        file: &Rc<RunFile>,
        request: &'r PageRequest,
        settings: &'r PageSettings,
        host: Host<'r>,
        sink: &'r mut dyn Sink,
        trace: Option<&'r mut dyn Trace>,
    ) -> Self {
        Self {
            root: Rc::clone(file),
            host,
            sink,
            trace,
            request,
            settings,
            variables: Variables::new(settings.limits.variables_max),
            functions: Vec::with_capacity(file.page.functions.len() * 2),
            messages: None,
            frames: Vec::new(),
            spliced: HashMap::new(),
            environment: HashMap::new(),
            out: Vec::with_capacity(OUTPUT_BYTES),
            html: HtmlPlace::new(settings.escape),
            head: PageHead::default(),
            header: HeaderProgress::Unasked,
            removes_blanks: settings.ini.is_on("DTW_REMOVE_WS"),
            has_begun: false,
            has_printed: false,
            used: PageUse::default(),
            next_look: STEPS_BETWEEN_LOOKS,
            depth: 0,
            has_failed: false,
            is_open: false,
            is_lasting: false,
            has_told_visit: false,
            is_exiting: false,
            has_exact_block: false,
            has_block: false,
            is_resumed: false,
        }
    }

    fn page(&mut self, file: &Rc<RunFile>, saved: Option<&SavedVariables>) -> Ran<()> {
        for (name, value) in &self.settings.variables {
            let value = Variable::text(Text::of_macro(value.as_str()));
            self.set_at_start(file, name, value, SlotSource::Page)?;
        }
        if let Some(saved) = saved {
            self.is_resumed = true;
            self.is_lasting = true;
            self.restore(saved)?;
        }
        self.take_fields(file)?;
        self.has_exact_block = file.page.has_entry(&self.request.block);
        self.declare(file)
    }

    fn set_at_start(
        &mut self,
        file: &RunFile,
        name: &str,
        value: Variable,
        source: SlotSource,
    ) -> Ran<()> {
        let slot = self.slot_named(file, 0, name)?;
        self.variables.set(slot, value, source);
        Ok(())
    }

    /// Variables from the fields of the request. Those of one name are a list.
    fn take_fields(&mut self, file: &Rc<RunFile>) -> Ran<()> {
        let request = self.request;
        for (name, value) in &request.fields {
            if !is_for_clients(name) || !is_fit(name, value) {
                continue;
            }
            let slot = self.slot_named(file, 0, name)?;
            if self.variables.is_protected(slot) {
                continue;
            }
            let hidden = file.page.hidden.iter();
            let mut hidden = hidden.map(|symbol| file.page.name(*symbol));
            let target = hidden.find(|target| self.hidden_token(target).as_bytes() == value);
            let value = match target {
                Some(target) => Variable::Alias(self.slot_named(file, 0, target)?),
                None => Variable::text(Text::of_data(&value[..], ValueOrigin::Client)),
            };
            self.variables.add_field(slot, value);
        }
        Ok(())
    }

    /// What `$$(name)` prints: a posted one means the variable again. It says nothing about names.
    pub(super) fn hidden_token(&self, name: &str) -> String {
        let mut hash = self.settings.hidden_key ^ 0xcbf2_9ce4_8422_2325;
        for _ in 0..2 {
            for byte in name.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        format!("hob-name-{hash:016x}")
    }

    /// Passes the declarations of a file; functions outside of `%IF` are known before.
    fn declare(&mut self, file: &Rc<RunFile>) -> Ran<()> {
        for block in &file.page.functions {
            if !block.is_conditional {
                self.know(file, block);
            }
        }
        let page = Arc::clone(&file.page);
        match &page.contents {
            PageContents::Declarations(declarations) => self.pass(file, declarations),
            PageContents::Body(_) => Ok(()),
        }
    }

    fn know(&mut self, file: &Rc<RunFile>, block: &Arc<FunctionBlock>) {
        self.functions.push(KnownFunction {
            file: Rc::clone(file),
            block: Arc::clone(block),
        });
    }

    /// All functions with this name; the exact one, or else whatever its case.
    pub(super) fn known(&self, name: &str) -> Vec<KnownFunction> {
        let with = |is_same: fn(&str, &str) -> bool| {
            let known = self.functions.iter();
            let known = known.filter(|known| is_same(&known.block.name, name));
            known.cloned().collect::<Vec<KnownFunction>>()
        };
        let exact = with(|one, other| one == other);
        match exact.is_empty() {
            true => with(str::eq_ignore_ascii_case),
            false => exact,
        }
    }

    fn pass(&mut self, file: &Rc<RunFile>, declarations: &[Declaration]) -> Ran<()> {
        for declaration in declarations {
            match declaration {
                Declaration::Define { kind, entries } => {
                    if !self.is_resumed {
                        self.define(file, *kind, entries)?;
                    }
                }
                Declaration::Function(index) => {
                    let block = Arc::clone(&file.page.functions[*index]);
                    self.know(file, &block);
                }
                Declaration::Message(entries) => {
                    self.messages = Some((Rc::clone(file), Arc::clone(entries)));
                }
                Declaration::Entry(entry) => {
                    if self.is_wanted(entry) {
                        return self.entry(file, entry);
                    }
                }
                Declaration::Include { file: name, at } => {
                    let name = self.value(file, name)?;
                    let included = self.include(file, *at, &name, false)?;
                    self.deeper(file, *at, |runner| runner.declare(&included))?;
                }
                Declaration::IncludeUrl { at } => return file.stop(*at, NO_INCLUDE_URL),
                Declaration::If(node) => {
                    let mut chosen = node.otherwise.as_ref();
                    for (condition, declarations) in &node.arms {
                        if self.holds(file, node.at, condition)? {
                            chosen = Some(declarations);
                            break;
                        }
                    }
                    if let Some(declarations) = chosen {
                        self.pass(file, declarations)?;
                    }
                }
                Declaration::Call(call) => {
                    if !self.is_resumed {
                        self.call(file, call, None)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_wanted(&self, entry: &Entry) -> bool {
        match self.has_exact_block {
            true => *entry.name == *self.request.block,
            false => entry.name.eq_ignore_ascii_case(&self.request.block),
        }
    }

    fn entry(&mut self, file: &Rc<RunFile>, entry: &Entry) -> Ran<()> {
        self.has_block = true;
        self.head.is_xml = entry.is_xml;
        self.print(file, &entry.body)?;
        Err(Stop::Exit)
    }

    /// The file of an `%INCLUDE`.
    pub(super) fn include(
        &mut self,
        file: &RunFile,
        at: u32,
        name: &Text,
        is_body: bool,
    ) -> Ran<Rc<RunFile>> {
        let key = (std::ptr::from_ref(file).addr(), at);
        if let Some(included) = self.spliced.get(&key) {
            return Ok(Rc::clone(included));
        }
        self.used.includes += 1;
        if self.used.includes > self.settings.limits.includes_max {
            return self.over(file, at, "includes_max");
        }
        let name = name.to_str();
        let found = match is_body {
            true => self.host.sources.body(&name),
            false => self.host.sources.declarations(&name),
        };
        match found {
            Ok(page) => {
                let included = RunFile::new(page);
                self.spliced.insert(key, Rc::clone(&included));
                Ok(included)
            }
            Err(SourceFault::Wrong(fault)) => Err(Stop::Fault(fault)),
            Err(SourceFault::Missing) => {
                let message = format!("there is no file {name:?} to include");
                let fault = file.page.fault(at, PageFaultKind::Include, message);
                Err(Stop::Fault(fault))
            }
        }
    }

    pub(super) fn print_include(&mut self, file: &Rc<RunFile>, name: &Body, at: u32) -> Ran<()> {
        let name = self.value(file, name)?;
        let included = self.include(file, at, &name, true)?;
        let page = Arc::clone(&included.page);
        match &page.contents {
            PageContents::Body(body) => {
                self.deeper(file, at, |runner| runner.print(&included, body))
            }
            PageContents::Declarations(_) => Ok(()),
        }
    }

    /// A step of the run: counted, and now and then the clock is asked.
    pub(super) fn step(&mut self, file: &RunFile, at: u32) -> Ran<()> {
        self.used.steps += 1;
        if self.used.steps > self.settings.limits.steps_max {
            return self.over(file, at, "steps_max");
        }
        if self.used.steps < self.next_look {
            return Ok(());
        }
        self.next_look = self.used.steps + STEPS_BETWEEN_LOOKS;
        self.look_at_clock(file, at)
    }

    /// Ends the run here if it has to end.
    pub(super) fn look_at_clock(&self, file: &RunFile, at: u32) -> Ran<()> {
        if let Some(reason) = self.host.clock.is_over() {
            let kind = PageFaultKind::Limit("time");
            let message = format!("the run was ended here: {reason}");
            return Err(Stop::Fault(file.page.fault(at, kind, message)));
        }
        Ok(())
    }

    /// Ends the run here if its database has crashed, which is nothing to go on after.
    pub(super) fn look_for_crash(&self, file: &RunFile, at: u32) -> Ran<()> {
        match self.host.database.and_then(|database| database.crash()) {
            Some(message) => {
                let fault = file.page.fault(at, PageFaultKind::Crash, message);
                Err(Stop::Fault(fault))
            }
            None => Ok(()),
        }
    }

    /// What is done with large values counts as more steps; the next one looks at the limit.
    pub(super) fn work(&mut self, bytes: usize) {
        self.used.steps += (bytes / BYTES_OF_A_STEP) as u64;
    }

    /// Something that stands inside something else.
    pub(super) fn deeper<T>(
        &mut self,
        file: &RunFile,
        at: u32,
        inside: impl FnOnce(&mut Self) -> Ran<T>,
    ) -> Ran<T> {
        self.depth += 1;
        if self.depth > self.settings.limits.depth_max {
            return self.over(file, at, "depth_max");
        }
        let result = inside(self);
        self.depth -= 1;
        result
    }

    pub(super) fn over<T>(&self, file: &RunFile, at: u32, limit: &'static str) -> Ran<T> {
        let message = format!("the run has reached its limit {limit}");
        let fault = file.page.fault(at, PageFaultKind::Limit(limit), message);
        Err(Stop::Fault(fault))
    }

    /// The variable that a name of a file means.
    pub(super) fn slot(&mut self, file: &RunFile, at: u32, symbol: Symbol) -> Ran<usize> {
        let link = &file.links[symbol.0 as usize];
        if link.get() == 0 {
            let slot = self.slot_named(file, at, file.page.name(symbol))?;
            link.set(u32::try_from(slot + 1).unwrap_or(0));
            return Ok(slot);
        }
        Ok(link.get() as usize - 1)
    }

    pub(super) fn slot_named(&mut self, file: &RunFile, at: u32, name: &str) -> Ran<usize> {
        match self.variables.slot(name) {
            Some(slot) => Ok(slot),
            None => self.over(file, at, "variables_max"),
        }
    }

    /// Ends the run: what was written is made last before the last piece leaves.
    fn end(&mut self, file: &RunFile) -> Result<RunOutcome, PageFault> {
        if !self.has_block && !self.is_exiting {
            // A visit stays as it was: nothing has run.
            if !self.is_resumed {
                self.undo();
            }
            return Ok(RunOutcome {
                has_block: false,
                used: self.used,
                saved: None,
            });
        }
        if self.is_lasting && !self.has_told_visit {
            self.undo();
            let message = UNTOLD_VISIT.to_owned();
            return Err(file.page.fault(0, PageFaultKind::Page, message));
        }
        if self.has_failed {
            self.undo();
        } else if self.is_open
            && !self.is_lasting
            && let Some(database) = self.host.database
            && let Err(FunctionFault { message, .. }) = database.commit()
        {
            let kind = match database.crash() {
                Some(_) => PageFaultKind::Crash,
                None => PageFaultKind::Page,
            };
            self.undo();
            let message = format!("what the page wrote could not be kept: {message}");
            return Err(file.page.fault(0, kind, message));
        }
        let saved = match self.is_lasting {
            true => match self.save_bounded(file) {
                Ok(saved) => Some(saved),
                Err(fault) => {
                    self.undo();
                    return Err(fault);
                }
            },
            false => None,
        };
        match self.finish_output(file) {
            Ok(()) => Ok(RunOutcome {
                has_block: true,
                used: self.used,
                saved,
            }),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Exit) => Err(file.page.fault(0, PageFaultKind::Gone, String::new())),
        }
    }

    /// What the next request begins with, if it is not too much to be kept.
    fn save_bounded(&self, file: &RunFile) -> Result<SavedVariables, PageFault> {
        const LIMIT: &str = "saved_bytes_max";
        let saved = self.save();
        if saved.byte_count() > self.settings.limits.saved_bytes_max {
            let message = format!("variables that the visit keeps have reached the limit {LIMIT}");
            return Err(file.page.fault(0, PageFaultKind::Limit(LIMIT), message));
        }
        Ok(saved)
    }

    fn undo(&mut self) {
        if let Some(database) = self.host.database {
            // The connection is given up if even this fails; the host sees to that.
            let _ = database.rollback();
        }
        self.is_open = false;
    }
}

pub(super) const UNTOLD_VISIT: &str = "the page lasts (DTW_STATIC), and its block calls neither \
     DTW_ACCEPT nor DTW_TERMINATE before it prints something";
pub(super) const NO_INCLUDE_URL: &str =
    "%INCLUDE_URL is not there: a page fetches nothing from other servers";
/// What a run has room to print at first, in bytes.
const OUTPUT_BYTES: usize = 1 << 10;
/// Steps between two looks at the clock.
const STEPS_BETWEEN_LOOKS: u64 = 256;
/// Bytes that are copied or looked at in about the time of a step.
const BYTES_OF_A_STEP: usize = 256;
pub(super) const VERSION: &str = "hob";
