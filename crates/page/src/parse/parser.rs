//! The state of reading: the place, the names met so far, and how deep it is.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::builtin::{BuiltIn, CallForm};
use crate::fault::{PageFault, PageFaultKind};
use crate::lex::{Keyword, Scanner};
use crate::limits::{FILE_BYTES_MAX, PARSE_DEPTH_MAX};
use crate::tree::{FunctionBlock, NameKind, Page, PageContents, PageName, Symbol, fault_in};

pub(super) type Parsed<T> = Result<T, PageFault>;

/// What a part of the source is, for whoever lays it out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SourceMark {
    /// `%` and its word.
    Keyword,
    /// The name of a built-in function.
    BuiltIn(&'static BuiltIn, CallForm),
    /// What stands between declarations, and means nothing.
    Gap,
}

/// Two files that are the halves of one loop cannot both be whole.
const INCLUDED_HALF: &str = "; an included file is read by itself, so what begins in it ends in it: \
     where two files are the halves of something, write both into the page";

pub(super) struct PageParser<'a> {
    pub(super) file: &'a str,
    /// It is read as a part of a block.
    pub(super) is_included: bool,
    pub(super) scanner: Scanner<'a>,
    names: Vec<PageName>,
    symbols: HashMap<&'a str, Symbol>,
    pub(super) functions: Vec<Arc<FunctionBlock>>,
    pub(super) hidden: Vec<Symbol>,
    /// What a layout may change.
    pub(super) marks: Vec<(Range<usize>, SourceMark)>,
    depth: u32,
    /// How many `%IF` stand around the declarations being read.
    pub(super) declaration_depth: u32,
}

impl<'a> PageParser<'a> {
    pub(super) fn new(file: &'a str, source: &'a [u8]) -> Parsed<Self> {
        let parser = Self {
            file,
            is_included: false,
            scanner: Scanner::new(source),
            names: Vec::new(),
            symbols: HashMap::new(),
            functions: Vec::new(),
            hidden: Vec::new(),
            marks: Vec::new(),
            depth: 0,
            declaration_depth: 0,
        };
        match source.len() > FILE_BYTES_MAX {
            true => parser.fail(0, "the file is larger than 16 MiB"),
            false => Ok(parser),
        }
    }

    pub(super) fn page(self, contents: PageContents) -> Page {
        Page {
            file: self.file.into(),
            may_ask_environment: may_ask_environment(self.scanner.source),
            source: self.scanner.source.into(),
            names: self.names,
            contents,
            functions: self.functions,
            hidden: self.hidden,
        }
    }

    pub(super) fn at(&self) -> u32 {
        u32::try_from(self.scanner.at).unwrap_or(u32::MAX)
    }

    pub(super) fn fail<T>(&self, at: usize, message: impl Into<String>) -> Parsed<T> {
        let (source, kind) = (self.scanner.source, PageFaultKind::Syntax);
        Err(fault_in(self.file, source, at, kind, message.into()))
    }

    /// Something has no beginning, or no end, in this file.
    pub(super) fn fail_half<T>(&self, at: usize, message: impl Into<String>) -> Parsed<T> {
        let mut message = message.into();
        if self.is_included {
            message.push_str(INCLUDED_HALF);
        }
        self.fail(at, message)
    }

    pub(super) fn fail_here<T>(&self, message: impl Into<String>) -> Parsed<T> {
        self.fail(self.scanner.at, message)
    }

    pub(super) fn symbol(&mut self, name: &'a str) -> Symbol {
        let next = Symbol(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        let symbol = *self.symbols.entry(name).or_insert(next);
        if symbol == next {
            let kind = NameKind::of(name);
            let text = name.into();
            self.names.push(PageName { text, kind });
        }
        symbol
    }

    pub(super) fn names(&self) -> &[PageName] {
        &self.names
    }

    /// Passes blanks and comments.
    pub(super) fn skip(&mut self) -> Parsed<()> {
        match self.scanner.skip() {
            Ok(()) => Ok(()),
            Err(at) => self.fail(at, "this comment has no end; `%}` ends it"),
        }
    }

    /// Passes blanks and comments, then these bytes.
    pub(super) fn expect(&mut self, bytes: &str, of: &str) -> Parsed<()> {
        self.skip()?;
        match self.scanner.eat(bytes.as_bytes()) {
            true => Ok(()),
            false => self.fail_here(format!("`{bytes}` is missing {of}{}", self.found())),
        }
    }

    /// Passes blanks and comments, then a name.
    pub(super) fn name(&mut self, of: &str) -> Parsed<Symbol> {
        let name = self.name_text(of)?;
        Ok(self.symbol(name))
    }

    pub(super) fn name_text(&mut self, of: &str) -> Parsed<&'a str> {
        self.skip()?;
        match self.scanner.name() {
            Some(name) => Ok(name),
            None => self.fail_here(format!("a name is missing {of}{}", self.found())),
        }
    }

    /// Passes `%}` that ends what began at `start`.
    pub(super) fn close(&mut self, start: usize, what: &str) -> Parsed<()> {
        self.skip()?;
        if self.scanner.eat(b"%}") {
            return Ok(());
        }
        match self.scanner.peek() {
            None => self.fail_half(start, format!("{what} has no end; `%}}` ends it")),
            Some(_) => self.fail_here(format!("`%}}` is missing at the end of {what}")),
        }
    }

    /// What stands here instead, for messages.
    fn found(&self) -> String {
        let line = self.scanner.rest().split(|byte| *byte == b'\n').next();
        let line = String::from_utf8_lossy(line.unwrap_or_default());
        let start: String = line.trim_end().chars().take(20).collect();
        match start.is_empty() {
            true => String::new(),
            false => format!(", here stands `{start}`"),
        }
    }

    /// One step deeper; [`Self::leave`] comes back.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        match self.depth > PARSE_DEPTH_MAX {
            true => self.fail_here(format!("this is more than {PARSE_DEPTH_MAX} levels deep")),
            false => Ok(()),
        }
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Passes this keyword if it comes next.
    pub(super) fn take_keyword(&mut self, keyword: Keyword) -> bool {
        let start = self.scanner.at;
        let is_next = self.scanner.eat_keyword(keyword);
        if is_next {
            self.mark(start, SourceMark::Keyword);
        }
        is_next
    }

    /// Remembers what the source from `start` up to here is.
    pub(super) fn mark(&mut self, start: usize, mark: SourceMark) {
        self.marks.push((start..self.scanner.at, mark));
    }

    pub(super) fn eat_keyword(&mut self, keyword: Keyword) -> Parsed<bool> {
        self.skip()?;
        Ok(self.take_keyword(keyword))
    }
}

/// Whether a run could come to a variable of the environment, or to an included file that does.
fn may_ask_environment(source: &[u8]) -> bool {
    let source = source.to_ascii_lowercase();
    let words: [&[u8]; 3] = [b"envvar", b"getenv", b"%include"];
    words
        .iter()
        .any(|word| memchr::memmem::find(&source, word).is_some())
}
