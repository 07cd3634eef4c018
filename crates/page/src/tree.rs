//! What a file of the language is once it is read.
//!
//! Text is a range of the source, never a copy. Names are symbols of their file; a run ties them
//! to its variables the first time it meets them. Built-in functions are found while reading.

use std::sync::{Arc, OnceLock};

use crate::builtin::{BuiltIn, CallForm};
use crate::escape::HtmlPlace;
use crate::fault::{PageFault, PageFaultKind, line_and_column};
use crate::value::Direction;

/// A name of a file: an index into its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Symbol(pub(crate) u32);

/// A file that was read.
#[derive(Debug)]
pub struct Page {
    pub(crate) file: Box<str>,
    pub(crate) may_ask_environment: bool,
    pub(crate) source: Box<[u8]>,
    pub(crate) names: Vec<PageName>,
    pub(crate) contents: PageContents,
    pub(crate) functions: Vec<Arc<FunctionBlock>>,
    /// Names that stand in `$$(name)`.
    pub(crate) hidden: Vec<Symbol>,
}

/// What a file is read as.
#[derive(Debug)]
pub(crate) enum PageContents {
    /// A macro, or an include among declarations.
    Declarations(Vec<Declaration>),
    /// An include inside a block.
    Body(Body),
}

/// A name, and what it means inside a report.
#[derive(Debug)]
pub(crate) struct PageName {
    pub(crate) text: Box<str>,
    pub(crate) kind: NameKind,
}

/// What a name means inside a report, and which names control processing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameKind {
    Plain,
    /// `V1`: the value of a column by its number.
    Value(usize),
    /// `V_name`, `V.name`: the value of a column by its name, which begins at the third byte.
    ValueOf,
    /// `N1`.
    Column(usize),
    /// `N_name`.
    ColumnOf,
    ColumnList,
    ValueList,
    ColumnCount,
    RowNumber,
    TotalRows,
}

impl NameKind {
    pub(crate) fn of(name: &str) -> Self {
        let numbered = |rest: &str| {
            let is_number = rest.bytes().all(|byte| byte.is_ascii_digit()) && rest.len() <= 4;
            is_number.then(|| rest.parse().ok()).flatten()
        };
        match name {
            "NLIST" => Self::ColumnList,
            "VLIST" => Self::ValueList,
            "NUM_COLUMNS" | "NUM_COLS" => Self::ColumnCount,
            "ROW_NUM" => Self::RowNumber,
            "TOTAL_ROWS" => Self::TotalRows,
            _ => match (name.as_bytes().first(), name.get(1..2), name.get(2..)) {
                (Some(b'V' | b'v'), Some("_" | "."), Some(rest)) if !rest.is_empty() => {
                    Self::ValueOf
                }
                (Some(b'N' | b'n'), Some("_" | "."), Some(rest)) if !rest.is_empty() => {
                    Self::ColumnOf
                }
                (Some(b'V'), Some(_), _) => numbered(&name[1..]).map_or(Self::Plain, Self::Value),
                (Some(b'N'), Some(_), _) => numbered(&name[1..]).map_or(Self::Plain, Self::Column),
                _ => Self::Plain,
            },
        }
    }
}

/// What stands in a block or a string.
pub(crate) type Body = Arc<[BodyNode]>;

#[derive(Debug)]
pub(crate) enum BodyNode {
    /// A range of the source, and where it leads to in the page if nothing is open before it.
    Text {
        start: u32,
        end: u32,
        behind: OnceLock<Box<HtmlPlace>>,
    },
    /// `""` inside a string: one quote.
    Quote,
    Reference {
        name: Name,
        at: u32,
    },
    Hidden {
        name: Symbol,
        at: u32,
    },
    Call(Box<Call>),
    If(Box<If<Body>>),
    While(Box<While>),
    Include {
        file: Body,
        at: u32,
    },
    IncludeUrl {
        at: u32,
    },
}

impl BodyNode {
    pub(crate) fn text(start: u32, end: u32) -> Self {
        let behind = OnceLock::new();
        Self::Text { start, end, behind }
    }
}

/// A name that is written down, or one that is put together.
#[derive(Debug)]
pub(crate) enum Name {
    Fixed(Symbol),
    Computed(Body),
}

/// `%IF`, over declarations or inside a body.
#[derive(Debug)]
pub(crate) struct If<B> {
    pub(crate) arms: Vec<(Condition, B)>,
    pub(crate) otherwise: Option<B>,
    pub(crate) at: u32,
}

#[derive(Debug)]
pub(crate) struct While {
    pub(crate) condition: Condition,
    pub(crate) body: Body,
    pub(crate) at: u32,
}

#[derive(Debug)]
pub(crate) enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    Holds(Operand),
    Compares(Operand, Comparison, Operand),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    Greater,
    AtMost,
    AtLeast,
}

/// A term of a condition, or an argument of a call.
#[derive(Debug)]
pub(crate) enum Operand {
    /// A bare name: the variable itself.
    Variable { name: Symbol, at: u32 },
    /// A string, a number, `$(name)` or a call: its value.
    Value { body: Body, at: u32 },
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) at: u32,
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<Operand>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    BuiltIn(&'static BuiltIn, CallForm),
    User(Symbol),
}

#[derive(Debug)]
pub(crate) enum Declaration {
    Define {
        kind: DefineKind,
        entries: Vec<DefineEntry>,
    },
    /// The function with this index, if it is not hoisted: it stands inside an `%IF`.
    Function(usize),
    Message(Arc<[MessageEntry]>),
    Entry(Entry),
    Include {
        file: Body,
        at: u32,
    },
    IncludeUrl {
        at: u32,
    },
    If(Box<If<Vec<Declaration>>>),
    Call(Box<Call>),
}

/// The word in parentheses behind `%DEFINE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DefineKind {
    Plain,
    Static,
    Transient,
    Protected,
}

#[derive(Debug)]
pub(crate) enum DefineEntry {
    Variable {
        name: Symbol,
        at: u32,
        value: DefineValue,
    },
    List {
        separator: Body,
        name: Symbol,
        at: u32,
    },
    Include {
        file: Body,
        at: u32,
    },
}

#[derive(Debug)]
pub(crate) enum DefineValue {
    Text(Body),
    Table(crate::value::TableShape),
    Environment,
    Exec(Body),
    Conditional(Arc<Conditional>),
}

/// `test ? "then" : "otherwise"`. Without a test it is `then`, if nothing in it is empty.
#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) test: Option<Operand>,
    pub(crate) then: Body,
    pub(crate) otherwise: Option<Body>,
}

/// `%HTML(name) { ... %}`.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    pub(crate) is_xml: bool,
    pub(crate) body: Body,
}

/// `%FUNCTION` or `%MACRO_FUNCTION`.
#[derive(Debug)]
pub(crate) struct FunctionBlock {
    pub(crate) name: Box<str>,
    pub(crate) at: u32,
    pub(crate) language: Language,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) returns: Option<Symbol>,
    pub(crate) body: FunctionBody,
    pub(crate) reports: Vec<Report>,
    pub(crate) messages: Vec<MessageEntry>,
    /// Whether it stands inside an `%IF`, so that it is known only once that was passed.
    pub(crate) is_conditional: bool,
}

/// Who runs the body of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    Macro,
    Sql,
    /// `DTW_SYSTEM`, `DTW_PERL`, ...: a program named by the host.
    Program(Box<str>),
}

#[derive(Debug)]
pub(crate) enum FunctionBody {
    Nothing,
    /// What a database gets, or what a macro function prints.
    Statements(Body),
    Exec(Body),
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Symbol,
    pub(crate) direction: Direction,
    pub(crate) sql_type: Option<Box<str>>,
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) result: Option<Symbol>,
    pub(crate) header: Body,
    pub(crate) row: Option<Body>,
    pub(crate) footer: Body,
}

#[derive(Debug)]
pub(crate) struct MessageEntry {
    pub(crate) code: MessageCode,
    pub(crate) text: Body,
    pub(crate) is_continue: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MessageCode {
    Exactly(i64),
    Default,
    PositiveDefault,
    NegativeDefault,
    SqlState(Box<str>),
}

impl Page {
    /// Whether a run of it may ask for a variable of the environment; if not, none does.
    pub fn may_ask_environment(&self) -> bool {
        self.may_ask_environment
    }

    /// The file as it was named when it was read.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Whether declarations of this file itself call `@DTW_STATIC`: the page is for visits that
    /// last over several requests.
    pub fn asks_to_last(&self) -> bool {
        match &self.contents {
            PageContents::Declarations(declarations) => asks_to_last(declarations),
            PageContents::Body(_) => false,
        }
    }

    /// Names of the entry blocks that stand in this file itself.
    pub fn entries(&self) -> Vec<&str> {
        self.entry_names().collect()
    }

    /// Whether it has a block of exactly this name.
    pub(crate) fn has_entry(&self, name: &str) -> bool {
        self.entry_names().any(|entry| entry == name)
    }

    fn entry_names(&self) -> impl Iterator<Item = &str> {
        let declarations = match &self.contents {
            PageContents::Declarations(declarations) => &declarations[..],
            PageContents::Body(_) => &[],
        };
        declarations.iter().filter_map(|declaration| {
            let Declaration::Entry(entry) = declaration else {
                return None;
            };
            Some(&*entry.name)
        })
    }

    /// Whether something is declared in this file: a variable, a function, a message, a block. One
    /// that declares nothing may be text that is included inside of a block.
    pub fn declares(&self) -> bool {
        fn any(declarations: &[Declaration]) -> bool {
            declarations.iter().any(|declaration| match declaration {
                Declaration::Define { .. } | Declaration::Message(_) | Declaration::Entry(_) => {
                    true
                }
                Declaration::If(node) => {
                    let inner = node.arms.iter().map(|(_, inner)| inner);
                    inner.chain(&node.otherwise).any(|inner| any(inner))
                }
                _ => false,
            })
        }
        match &self.contents {
            PageContents::Declarations(all) => !self.functions.is_empty() || any(all),
            PageContents::Body(_) => false,
        }
    }

    pub(crate) fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize].text
    }

    pub(crate) fn text(&self, start: u32, end: u32) -> &[u8] {
        &self.source[start as usize..end as usize]
    }

    /// Trouble at a place of this file.
    pub(crate) fn fault(&self, at: u32, kind: PageFaultKind, message: String) -> PageFault {
        fault_in(&self.file, &self.source, at as usize, kind, message)
    }

    pub(crate) fn line(&self, at: u32) -> usize {
        line_and_column(&self.source, at as usize).0
    }
}

fn asks_to_last(declarations: &[Declaration]) -> bool {
    let mut declarations = declarations.iter();
    declarations.any(|declaration| match declaration {
        Declaration::Call(call) => match call.callee {
            Callee::BuiltIn(function, _) => function.name == "DTW_STATIC",
            Callee::User(_) => false,
        },
        Declaration::If(node) => {
            let arms = node.arms.iter().map(|(_, arm)| arm);
            arms.chain(&node.otherwise).any(|arm| asks_to_last(arm))
        }
        _ => false,
    })
}

pub(crate) fn fault_in(
    file: &str,
    source: &[u8],
    at: usize,
    kind: PageFaultKind,
    message: String,
) -> PageFault {
    let (line, column) = line_and_column(source, at);
    PageFault {
        file: file.into(),
        line,
        column,
        kind,
        message,
    }
}
