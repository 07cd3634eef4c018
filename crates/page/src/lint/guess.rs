//! What a value may be made of: the author's text as it is defined, and data where it would be.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::builtin::{BuiltInForms, CallForm};
use crate::host::Sources;
use crate::request::is_for_clients;
use crate::tree::{
    BodyNode, Callee, Declaration, DefineEntry, DefineKind, DefineValue, Name, NameKind, Operand,
    Page, PageContents,
};
use crate::value::{Direction, Text, ValueOrigin};

use super::walk;

/// What stands for data. It is no number, no name of a scheme and no word that is let through.
const DATA: &str = "x1";
const DEPTH_MAX: u32 = 20;
const FILES_MAX: usize = 200;

/// What is known of the variables of a page and its includes.
#[derive(Default)]
pub(super) struct Definitions {
    defined: HashMap<String, Defined>,
    /// Variables that calls set: what they hold is seen only in a run.
    assigned: HashSet<String>,
    /// Functions, lower case, with which of their parameters come back.
    pub(super) functions: HashMap<String, Vec<bool>>,
    /// Variables given to functions of pages: function, place, name.
    given: Vec<(String, usize, String)>,
    /// An include could not be read, or its name is put together.
    pub(super) has_unknown_files: bool,
    /// Files that were included, each once.
    pub(super) included: Vec<Arc<Page>>,
    files: usize,
}

#[derive(Default)]
struct Defined {
    values: Vec<DefinedValue>,
    separator: Option<(Arc<Page>, crate::tree::Body)>,
    is_protected: bool,
}

enum DefinedValue {
    Body(Arc<Page>, crate::tree::Body),
    Data,
    Nothing,
}

impl Definitions {
    pub(super) fn of(page: &Arc<Page>, sources: &dyn Sources) -> Self {
        let mut definitions = Self::default();
        definitions.add_file(page, sources);
        for (function, index, name) in std::mem::take(&mut definitions.given) {
            let outs = definitions.functions.get(&function);
            if outs.is_some_and(|outs| outs.get(index) == Some(&true)) {
                definitions.assigned.insert(name);
            }
        }
        definitions
    }

    fn add_file(&mut self, page: &Arc<Page>, sources: &dyn Sources) {
        self.files += 1;
        if self.files > FILES_MAX {
            self.has_unknown_files = true;
            return;
        }
        for function in &page.functions {
            let parameters = function.parameters.iter();
            let outs = parameters.map(|known| known.direction != Direction::In);
            let name = function.name.to_ascii_lowercase();
            self.functions.insert(name, outs.collect());
        }
        let mut includes = Vec::new();
        walk::nodes(page, &mut |node| match node {
            BodyNode::Call(call) => self.add_outs(page, call),
            BodyNode::Include { file, .. } => includes.push((Arc::clone(file), true)),
            _ => {}
        });
        if let PageContents::Declarations(declarations) = &page.contents {
            walk::declared_calls(declarations, &mut |call| self.add_outs(page, call));
            self.add_declarations(page, declarations, &mut includes);
        }
        for (file, is_body) in includes {
            let name = fixed(page, &file);
            let read = name.and_then(|name| match is_body {
                true => sources.body(&name).ok(),
                false => sources.declarations(&name).ok(),
            });
            match read {
                Some(included) if self.included.iter().any(|known| is_same(known, &included)) => {}
                Some(included) => {
                    self.included.push(Arc::clone(&included));
                    self.add_file(&included, sources);
                }
                None => self.has_unknown_files = true,
            }
        }
    }

    fn add_declarations(
        &mut self,
        page: &Arc<Page>,
        declarations: &[Declaration],
        includes: &mut Vec<(crate::tree::Body, bool)>,
    ) {
        for declaration in declarations {
            match declaration {
                Declaration::Define { kind, entries } => {
                    entries
                        .iter()
                        .for_each(|entry| self.add(page, *kind, entry));
                }
                Declaration::Include { file, .. } => includes.push((Arc::clone(file), false)),
                Declaration::If(node) => {
                    let inner = node.arms.iter().map(|(_, inner)| inner);
                    for inner in inner.chain(&node.otherwise) {
                        self.add_declarations(page, inner, includes);
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, page: &Arc<Page>, kind: DefineKind, entry: &DefineEntry) {
        match entry {
            DefineEntry::Variable { name, value, .. } => {
                let known = self.defined.entry(page.name(*name).to_string());
                let known = known.or_default();
                known.is_protected |= kind == DefineKind::Protected;
                let body = |body: &crate::tree::Body| {
                    DefinedValue::Body(Arc::clone(page), Arc::clone(body))
                };
                let value = match value {
                    DefineValue::Text(text) => body(text),
                    DefineValue::Conditional(conditional) => body(&conditional.then),
                    DefineValue::Environment | DefineValue::Exec(_) => {
                        known.is_protected = true;
                        DefinedValue::Data
                    }
                    DefineValue::Table(_) => {
                        known.is_protected = true;
                        DefinedValue::Nothing
                    }
                };
                if known.separator.is_none() {
                    known.values.clear();
                }
                known.values.push(value);
            }
            DefineEntry::List {
                separator, name, ..
            } => {
                let known = self.defined.entry(page.name(*name).to_string());
                known.or_default().separator = Some((Arc::clone(page), Arc::clone(separator)));
            }
            DefineEntry::Include { .. } => self.has_unknown_files = true,
        }
    }

    /// Variables that a call sets: the last of a plain call, and whatever a function may give back.
    fn add_outs(&mut self, page: &Page, call: &crate::tree::Call) {
        for (index, argument) in call.arguments.iter().enumerate() {
            let Operand::Variable { name, .. } = argument else {
                continue;
            };
            let name = page.name(*name).to_string();
            match call.callee {
                Callee::BuiltIn(function, form) => {
                    let is_last = index + 1 == call.arguments.len() && form == CallForm::Plain;
                    let is_valued =
                        matches!(function.forms, BuiltInForms::Value | BuiltInForms::Change);
                    let parameter = function.parameters.get(index);
                    let is_out = parameter.is_some_and(|known| known.direction != Direction::In);
                    if is_out || is_last && is_valued || form == CallForm::Change {
                        self.assigned.insert(name);
                    }
                }
                Callee::User(function) => {
                    let function = page.name(function).to_ascii_lowercase();
                    self.given.push((function, index, name));
                }
            }
        }
    }

    /// Variables that are the page's by definition and a client's to override.
    pub(super) fn overridable(&self) -> Vec<&str> {
        let defined = self.defined.iter();
        let mut names: Vec<&str> = defined
            .filter(|(name, known)| !known.is_protected && is_for_clients(name))
            .map(|(name, _)| &**name)
            .collect();
        names.sort_unstable();
        names
    }

    /// What a body comes to. `parameters` are data, and so is the variable `overridden`.
    pub(super) fn text(&self, page: &Page, body: &[BodyNode], guess: &Guess<'_>) -> Text {
        let mut text = Text::new();
        for node in body {
            match node {
                BodyNode::Text { start, end, .. } => text.push_macro(page.text(*start, *end)),
                BodyNode::Quote => text.push_macro(b"\""),
                BodyNode::Reference { name, .. } => text.push_text(&match name {
                    Name::Fixed(symbol) => self.variable(page.name(*symbol), guess),
                    Name::Computed(_) => data(),
                }),
                BodyNode::Hidden { .. } => text.push_macro(b"x"),
                BodyNode::Call(call) => text.push_text(&self.call(page, call, guess)),
                BodyNode::If(node) => {
                    if let Some((_, body)) = node.arms.first() {
                        text.push_text(&self.text(page, body, guess));
                    }
                }
                BodyNode::While(node) => text.push_text(&self.text(page, &node.body, guess)),
                BodyNode::Include { .. } | BodyNode::IncludeUrl { .. } => {}
            }
        }
        text
    }

    /// What a variable is defined as, if it is.
    pub(super) fn named_text(&self, name: &str, guess: &Guess<'_>) -> Option<Text> {
        let is_defined = self.defined.contains_key(name);
        is_defined.then(|| self.variable(name, guess))
    }

    fn variable(&self, name: &str, guess: &Guess<'_>) -> Text {
        let is_data = guess.overridden == Some(name)
            || guess.parameters.contains(&name)
            || NameKind::of(name) != NameKind::Plain;
        if is_data {
            return data();
        }
        let known = self.defined.get(name);
        if self.assigned.contains(name) {
            // It is put together in a run; one of the author's words is the least it can be.
            return Text::of_macro("x");
        }
        let Some(known) = known else {
            return data();
        };
        if guess.depth >= DEPTH_MAX {
            return Text::new();
        }
        let deeper = Guess {
            depth: guess.depth + 1,
            ..*guess
        };
        let mut text = Text::new();
        for (index, value) in known.values.iter().enumerate() {
            if index > 0 {
                match &known.separator {
                    Some((page, body)) => text.push_text(&self.text(page, body, &deeper)),
                    None => text.push_macro(b" "),
                }
            }
            match value {
                DefinedValue::Body(page, body) => {
                    text.push_text(&self.text(page, body, &deeper));
                }
                DefinedValue::Data => text.push_text(&data()),
                DefinedValue::Nothing => {}
            }
        }
        text
    }

    /// What an argument comes to.
    pub(super) fn argument(&self, page: &Page, argument: &Operand, guess: &Guess<'_>) -> Text {
        match argument {
            Operand::Variable { name, .. } => self.variable(page.name(*name), guess),
            Operand::Value { body, .. } => self.text(page, body, guess),
        }
    }

    fn call(&self, page: &Page, call: &crate::tree::Call, guess: &Guess<'_>) -> Text {
        let Callee::BuiltIn(function, form) = call.callee else {
            return data();
        };
        if form != CallForm::Value {
            return Text::new();
        }
        let counts = [
            "DTW_LENGTH",
            "DTW_POS",
            "DTW_LASTPOS",
            "DTW_WORDS",
            "DTW_DATE",
            "DTW_TIME",
            "DTW_TB_ROWS",
            "DTW_TB_COLS",
            "DTW_RTVHANDLE",
        ];
        if counts.contains(&function.name) {
            return Text::of_macro("1");
        }
        let arguments = call.arguments.iter();
        let arguments = arguments.map(|argument| self.argument(page, argument, guess));
        let arguments: Vec<Text> = arguments.collect();
        let is_authors = !arguments.is_empty() && !arguments.iter().any(Text::has_data);
        let reads = [
            "DTW_GETENV",
            "DTW_GETCOOKIE",
            "DTW_TB_GETV",
            "DTW_TB_GETN",
            "DTWR_RTVENTRY",
        ];
        match (
            is_authors && !reads.contains(&function.name),
            arguments.first(),
        ) {
            (true, Some(first)) => first.clone(),
            _ => data(),
        }
    }
}

/// How a value is guessed.
#[derive(Clone, Copy, Default)]
pub(super) struct Guess<'g> {
    /// Names that are parameters here.
    pub(super) parameters: &'g [&'g str],
    /// A variable that a client has sent.
    pub(super) overridden: Option<&'g str>,
    depth: u32,
}

impl<'g> Guess<'g> {
    pub(super) fn new(parameters: &'g [&'g str], overridden: Option<&'g str>) -> Self {
        Self {
            parameters,
            overridden,
            depth: 0,
        }
    }
}

pub(super) fn data() -> Text {
    Text::of_data(DATA, ValueOrigin::Client)
}

/// Whether it is one file, read in the same way.
fn is_same(one: &Page, other: &Page) -> bool {
    let kind = std::mem::discriminant::<PageContents>;
    one.file() == other.file() && kind(&one.contents) == kind(&other.contents)
}

/// A file's name, if it is written down.
pub(super) fn fixed(page: &Page, body: &[BodyNode]) -> Option<String> {
    match body {
        [BodyNode::Text { start, end, .. }] => {
            let name = page.text(*start, *end);
            Some(String::from_utf8_lossy(name).into_owned())
        }
        _ => None,
    }
}
