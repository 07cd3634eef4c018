//! The rules themselves.

use std::sync::Arc;

use crate::builtin::{BuiltIn, BuiltInForms, CallForm, Tier};
use crate::escape::{EscapeMode, HtmlPlace};
use crate::fault::line_and_column;
use crate::host::{SourceFault, Sources};
use crate::program::program_of;
use crate::request::PAGING_VARIABLES;
use crate::sql::{BindRules, bind};
use crate::tree::{
    BodyNode, Call, Callee, Declaration, DefineEntry, DefineValue, Entry, FunctionBlock,
    FunctionBody, Language, MessageEntry, Name, Page, PageContents,
};

use super::guess::{Definitions, Guess, data, fixed};
use super::header::{BlockStart, StartSeeker, is_announced};
use super::{LintFinding, LintLevel, walk};

const NO_INCLUDE_URL: &str = "%INCLUDE_URL is not there: a page fetches nothing from other servers";
/// Characters from which on a parameter is large enough to hold a statement.
const STATEMENT_CHARS: usize = 2_000;

/// How an included file is read.
#[derive(Clone, Copy)]
enum FilePart {
    Declarations,
    Body,
}

pub(super) struct Checker<'p> {
    page: &'p Arc<Page>,
    known: &'p Definitions,
    sources: &'p dyn Sources,
    programs: Option<&'p [String]>,
    findings: Vec<LintFinding>,
}

impl<'p> Checker<'p> {
    /// A checker of one file. `known` is what its page and all its includes define.
    pub(super) fn new(
        page: &'p Arc<Page>,
        known: &'p Definitions,
        sources: &'p dyn Sources,
        programs: Option<&'p [String]>,
    ) -> Self {
        Self {
            page,
            known,
            sources,
            programs,
            findings: Vec::new(),
        }
    }

    pub(super) fn findings(mut self) -> Vec<LintFinding> {
        let page = self.page;
        for function in &page.functions {
            self.function(function);
        }
        match &page.contents {
            PageContents::Declarations(all) => {
                self.declarations(all);
                walk::declared_calls(all, &mut |call| self.call(call));
            }
            PageContents::Body(body) => self.output(body, &[]),
        }
        walk::nodes(page, &mut |node| match node {
            BodyNode::Call(call) => self.call(call),
            BodyNode::Include { file, at } => self.include(*at, file, FilePart::Body),
            BodyNode::IncludeUrl { at } => {
                self.add(*at, LintLevel::Error, "not-there", NO_INCLUDE_URL)
            }
            BodyNode::Reference { name, at } if is_of_scripts(page, name) => self.add(
                *at,
                LintLevel::Warning,
                "script-name",
                "this is a variable of the page, and most likely empty; a script can say `jQuery(`",
            ),
            BodyNode::Reference {
                name: Name::Fixed(name),
                at,
            } if PAGING_VARIABLES.contains(&page.name(*name)) => {
                let name = page.name(*name);
                let message = format!("{name} is a client's to set, to a whole number");
                self.add(*at, LintLevel::Note, "client-control", message);
            }
            _ => {}
        });
        self.findings
    }

    fn add(&mut self, at: u32, level: LintLevel, rule: &'static str, message: impl Into<String>) {
        let (line, column) = line_and_column(&self.page.source, at as usize);
        self.findings.push(LintFinding {
            file: self.page.file().into(),
            line,
            column,
            level,
            rule,
            message: message.into(),
        });
    }

    /// An include whose name is written down has to be there.
    fn include(&mut self, at: u32, file: &[BodyNode], part: FilePart) {
        let Some(name) = fixed(self.page, file) else {
            return;
        };
        let read = match part {
            FilePart::Body => self.sources.body(&name),
            FilePart::Declarations => self.sources.declarations(&name),
        };
        let message = match read {
            Ok(_) => return,
            Err(SourceFault::Missing) => format!("there is no file {name:?} to include"),
            Err(SourceFault::Wrong(fault)) => fault.to_string(),
        };
        self.add(at, LintLevel::Error, "include", message);
    }

    fn declarations(&mut self, all: &[Declaration]) {
        for declaration in all {
            match declaration {
                Declaration::Include { file, at } => {
                    self.include(*at, file, FilePart::Declarations);
                }
                Declaration::IncludeUrl { at } => {
                    self.add(*at, LintLevel::Error, "not-there", NO_INCLUDE_URL);
                }
                Declaration::Entry(entry) => {
                    if entry.is_xml {
                        let at = first(&entry.body);
                        let message = "%XML blocks are printed as they are, and hardly used";
                        self.add(at, LintLevel::Note, "rare", message);
                    }
                    self.output(&entry.body, &[]);
                    self.start(entry);
                }
                Declaration::Message(entries) => self.messages(entries, &[]),
                Declaration::Define { entries, .. } => {
                    for entry in entries {
                        self.define(entry);
                    }
                }
                Declaration::If(node) => {
                    let inner = node.arms.iter().map(|(_, inner)| inner);
                    for inner in inner.chain(&node.otherwise) {
                        self.declarations(inner);
                    }
                }
                _ => {}
            }
        }
    }

    /// A block of a page that says that it prints its own header begins with one.
    fn start(&mut self, entry: &Entry) {
        let mut seeker = StartSeeker::new(self.page, self.known, self.sources);
        if is_announced(self.known) && seeker.block(&entry.body) == BlockStart::Body {
            let message = format!(
                "DTW_PRINT_HEADER is \"NO\", and block {} prints no header of its own: it gets the \
                 usual one",
                entry.name
            );
            self.add(
                first(&entry.body),
                LintLevel::Warning,
                "own-header",
                message,
            );
        }
    }

    fn define(&mut self, entry: &DefineEntry) {
        match entry {
            DefineEntry::Variable {
                at,
                value: DefineValue::Exec(body),
                ..
            } => {
                let message = "each reference to this variable calls a program";
                self.exec(*at, body, message);
            }
            DefineEntry::Include { at, .. } => {
                let message = "an include inside %DEFINE ends the run; it belongs behind it";
                self.add(*at, LintLevel::Error, "include", message);
            }
            _ => {}
        }
    }

    /// A call of a program: it has to be one of those that pages may call, where they are known.
    fn exec(&mut self, at: u32, body: &[BodyNode], message: &str) {
        let word = match body.first() {
            Some(BodyNode::Text { start, end, .. }) => {
                let text = String::from_utf8_lossy(self.page.text(*start, *end));
                let text = text.trim_start();
                let word = text.split_whitespace().next().unwrap_or_default();
                // What stands right behind it may be a part of it.
                let is_whole = word.len() < text.len() || body.len() == 1;
                (is_whole && !word.contains(['"', '\''])).then(|| word.to_owned())
            }
            _ => None,
        };
        match (self.programs, word) {
            (Some(programs), Some(word)) if program_of(programs, &word).is_none() => {
                let message = format!("{message}, and {word:?} is none of those it may");
                self.add(at, LintLevel::Error, "exec", message);
            }
            (_, Some(word)) => {
                let message = format!("{message}: {word:?}");
                self.add(at, LintLevel::Note, "exec", message);
            }
            (_, None) => self.add(at, LintLevel::Note, "exec", message),
        }
    }

    fn function(&mut self, function: &FunctionBlock) {
        let page = self.page;
        let parameters = function.parameters.iter();
        let parameters: Vec<&str> = parameters.map(|known| page.name(known.name)).collect();
        match (&function.language, &function.body) {
            (Language::Sql, FunctionBody::Statements(body)) => {
                self.statement(function, body, &parameters);
            }
            (Language::Macro, FunctionBody::Statements(body)) => self.output(body, &parameters),
            (Language::Program(_), FunctionBody::Exec(body)) => {
                let message = format!("function {} calls a program", function.name);
                self.exec(function.at, body, &message);
            }
            (Language::Program(language), _) => {
                let message = format!("{language} inside a page is not run; %EXEC names a program");
                self.add(function.at, LintLevel::Error, "not-there", message);
            }
            _ => {}
        }
        if &*function.name == "%SQL" {
            let message = "%SQL is the way of the first version; %FUNCTION(DTW_SQL) is today's";
            self.add(function.at, LintLevel::Note, "rare", message);
        }
        for report in &function.reports {
            let mut whole: Vec<&[BodyNode]> = vec![&report.header];
            whole.extend(report.row.as_deref());
            whole.push(&report.footer);
            let mut place = HtmlPlace::new(EscapeMode::Context);
            for body in whole {
                self.print(body, &parameters, &mut place);
            }
        }
        self.messages(&function.messages, &parameters);
    }

    fn messages(&mut self, entries: &[MessageEntry], parameters: &[&str]) {
        for entry in entries {
            self.output(&entry.text, parameters);
        }
    }

    fn statement(&mut self, function: &FunctionBlock, body: &[BodyNode], parameters: &[&str]) {
        let names = {
            let slot = "DTW_SQL_IDENT";
            let guess = Guess::new(&[], None);
            let text = self.known.named_text(slot, &guess);
            text.map(|text| {
                text.to_str()
                    .split_whitespace()
                    .map(str::to_string)
                    .collect()
            })
        };
        let rules = BindRules {
            names: names.unwrap_or_default(),
            is_upper: None,
        };
        let page = self.page;
        let bound = |known: &Definitions, overridden: Option<&str>| {
            let guess = Guess::new(parameters, overridden);
            bind(&known.text(page, body, &guess), &rules)
        };
        if let Err(fault) = bound(self.known, None) {
            let message = format!("function {}: {}", function.name, fault.message);
            return self.add(function.at, LintLevel::Error, "sql-name", message);
        }
        let overridable = self.known.overridable();
        let mut refused = overridable.into_iter();
        let refused: Vec<String> = refused
            .by_ref()
            .filter(|name| bound(self.known, Some(name)).is_err())
            .map(str::to_string)
            .collect();
        if !refused.is_empty() {
            let names = refused.join(", ");
            let message = format!(
                "function {}: a client that sends {names} has this statement refused; \
                 %DEFINE(PROTECTED) makes it the page's alone, DTW_SQL_IDENT lists what it may be",
                function.name
            );
            self.add(function.at, LintLevel::Note, "sql-override", message);
        }
        for parameter in &function.parameters {
            let sql_type = parameter.sql_type.as_deref().unwrap_or_default();
            let size = sql_type.split(['(', ')', ',']).nth(1);
            let size = size.and_then(|size| size.trim().parse::<usize>().ok());
            if sql_type.contains("CHAR") && size.is_some_and(|size| size >= STATEMENT_CHARS) {
                let name = page.name(parameter.name);
                let message = format!(
                    "function {}: if {name} is text of SQL, only the procedure can protect it",
                    function.name
                );
                self.add(function.at, LintLevel::Warning, "sql-argument", message);
            }
        }
    }

    /// Follows the markup of a body, and says where data would be left out.
    fn output(&mut self, body: &[BodyNode], parameters: &[&str]) {
        let mut place = HtmlPlace::new(EscapeMode::Context);
        self.print(body, parameters, &mut place);
    }

    fn print(&mut self, body: &[BodyNode], parameters: &[&str], place: &mut HtmlPlace) {
        let mut out = Vec::new();
        let page = self.page;
        for node in body {
            out.clear();
            match node {
                BodyNode::Text { start, end, .. } => {
                    place.author(page.text(*start, *end), &mut out)
                }
                BodyNode::Reference { at, .. } => {
                    let guess = Guess::new(parameters, None);
                    let text = self.known.text(page, std::slice::from_ref(node), &guess);
                    self.print_text(*at, &text, place);
                }
                BodyNode::Call(call) => {
                    let guess = Guess::new(parameters, None);
                    let text = match call.callee {
                        Callee::User(_) => data(),
                        Callee::BuiltIn(..) => {
                            self.known.text(page, std::slice::from_ref(node), &guess)
                        }
                    };
                    if !matches!(call.callee, Callee::User(_)) {
                        self.print_text(call.at, &text, place);
                    }
                }
                BodyNode::If(node) => {
                    let before = place.clone();
                    let bodies = node.arms.iter().map(|(_, body)| body);
                    for (index, body) in bodies.chain(&node.otherwise).enumerate() {
                        let mut inner = before.clone();
                        self.print(body, parameters, &mut inner);
                        if index == 0 {
                            *place = inner;
                        }
                    }
                }
                BodyNode::While(node) => self.print(&node.body, parameters, place),
                _ => {}
            }
        }
    }

    fn print_text(&mut self, at: u32, text: &crate::value::Text, place: &mut HtmlPlace) {
        let mut out = Vec::new();
        for (bytes, provenance) in text.runs() {
            if !provenance.is_data() {
                place.author(bytes, &mut out);
            } else if let Err(reason) = place.data(bytes, provenance.marks, &mut out) {
                let message = format!("{reason}; it is left out unless it is harmless");
                self.add(at, LintLevel::Warning, "output-place", message);
            }
        }
    }

    fn call(&mut self, call: &Call) {
        match call.callee {
            Callee::User(symbol) => self.user_call(call, self.page.name(symbol)),
            Callee::BuiltIn(function, form) => {
                if function.name == "DTW_SENDMAIL" {
                    let message = "DTW_SENDMAIL is not there: pages send no mail";
                    self.add(call.at, LintLevel::Error, "not-there", message);
                } else if function.tier == Tier::C {
                    let message = format!("{} is hardly used by any page", function.name);
                    self.add(call.at, LintLevel::Note, "rare", message);
                }
                if function.name == "DTW_RAW" {
                    let message = "this is printed as it is; it must not be what a visitor wrote";
                    self.add(call.at, LintLevel::Warning, "raw", message);
                }
                self.file_names(call, function);
                let has_out = form == CallForm::Plain
                    && matches!(function.forms, BuiltInForms::Value | BuiltInForms::Change);
                let given = call.arguments.len();
                let least = function
                    .parameters
                    .iter()
                    .filter(|known| !known.is_optional);
                let least = least.count() + usize::from(has_out);
                let most = function.parameters.len() + usize::from(has_out);
                if form != CallForm::Change && !(least..=most).contains(&given) {
                    let name = function.name;
                    let message = format!("{name} takes {least} to {most} arguments, not {given}");
                    self.add(call.at, LintLevel::Error, "argument-count", message);
                }
            }
        }
    }

    /// Names of files and registries are best the author's.
    fn file_names(&mut self, call: &Call, function: &BuiltIn) {
        let (page, known) = (self.page, self.known);
        let arguments = call.arguments.iter().zip(function.parameters);
        let is_name = |name| ["file", "from", "to", "registry"].contains(&name);
        let named = arguments.filter(|(_, parameter)| is_name(parameter.name));
        if !function.name.starts_with("DTWF_") && !function.name.starts_with("DTWR_") {
            return;
        }
        for (argument, parameter) in named {
            let is_data = |overridden| {
                let guess = Guess::new(&[], overridden);
                known.argument(page, argument, &guess).has_data()
            };
            let what = match parameter.name {
                "registry" => "registry",
                _ => "file",
            };
            let name = function.name;
            if is_data(None) {
                let message = format!(
                    "{name}: a client may say which {what} this is, of all that pages may use"
                );
                self.add(call.at, LintLevel::Warning, "file-name", message);
                continue;
            }
            let names = known.overridable().into_iter();
            let names: Vec<&str> = names.filter(|name| is_data(Some(name))).collect();
            if !names.is_empty() {
                let names = names.join(", ");
                let message = format!(
                    "{name}: a client that sends {names} says which {what} this is; \
                     %DEFINE(PROTECTED) makes it the page's alone"
                );
                self.add(call.at, LintLevel::Note, "file-name", message);
            }
        }
    }

    fn user_call(&mut self, call: &Call, name: &str) {
        if !self
            .known
            .functions
            .contains_key(&name.to_ascii_lowercase())
        {
            let (level, hint) = match self.known.has_unknown_files {
                true => (
                    LintLevel::Note,
                    "; an include that was not read may have it",
                ),
                false => (LintLevel::Error, ""),
            };
            let message = format!("there is no function {name}{hint}");
            return self.add(call.at, level, "unknown-function", message);
        }
        let page = self.page;
        let mut functions = page.functions.iter();
        let Some(function) = functions.find(|known| known.name.eq_ignore_ascii_case(name)) else {
            return;
        };
        let (wanted, given) = (function.parameters.len(), call.arguments.len());
        if wanted != given {
            let message = format!("{name} takes {wanted} arguments, not {given}");
            self.add(call.at, LintLevel::Error, "argument-count", message);
        }
    }
}

/// Whether a script's author meant this by `$(`.
fn is_of_scripts(page: &Page, name: &Name) -> bool {
    match name {
        Name::Fixed(name) => ["document", "window", "this"].contains(&page.name(*name)),
        Name::Computed(body) => match body.first() {
            Some(BodyNode::Text { start, end, .. }) => {
                page.text(*start, *end).starts_with(b"function")
            }
            _ => false,
        },
    }
}

/// Where a body begins.
fn first(body: &[BodyNode]) -> u32 {
    match body.first() {
        Some(BodyNode::Text { start, .. }) => *start,
        _ => 0,
    }
}
