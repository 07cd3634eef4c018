//! What is doubtful about a page, found without running it.
//!
//! `walk` visits everything in a file, `guess` says what a value may be made of, `rules` looks
//! at functions, statements and output, `header` at how blocks begin. A page is looked at together
//! with the files it includes by a fixed name.

mod guess;
mod header;
mod rules;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::builtin::{LIST, Tier};
use crate::host::Sources;
use crate::tree::{BodyNode, Callee, Page};

use guess::Definitions;

/// How much a finding matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LintLevel {
    /// Worth knowing.
    Note,
    /// It works, and may not do what was meant.
    Warning,
    /// It fails when it is reached.
    Error,
}

/// Something found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LintFinding {
    /// The file as it was named when it was read: the page, or one that it includes.
    pub file: Box<str>,
    /// Counted from one.
    pub line: usize,
    /// Counted from one.
    pub column: usize,
    /// How much it matters.
    pub level: LintLevel,
    /// The rule's name; see [`RULES`].
    pub rule: &'static str,
    /// One sentence.
    pub message: String,
}

/// The rules, with what each looks for.
pub const RULES: &[(&str, &str)] = &[
    (
        "sql-name",
        "data stands in a statement where only a value may; it is always refused",
    ),
    (
        "sql-override",
        "a client that sends a variable of this name has the statement refused",
    ),
    (
        "sql-argument",
        "text of SQL goes to a procedure as an argument, where nothing protects it",
    ),
    (
        "output-place",
        "data stands in markup where it is left out unless it is harmless",
    ),
    (
        "own-header",
        "a page says that it prints its own header, and a block prints none",
    ),
    (
        "script-name",
        "a name of scripts stands in `$( )`, which is a variable of the page",
    ),
    ("raw", "data is printed as it is, by `DTW_RAW`"),
    (
        "exec",
        "a program is called; one that is not listed never is",
    ),
    (
        "file-name",
        "a client has a say in the name of a file or registry",
    ),
    (
        "client-control",
        "a variable that controls a report is a client's to set",
    ),
    (
        "include",
        "a file that is included is not there, or is wrong itself",
    ),
    (
        "unknown-function",
        "nothing defines a function that is called",
    ),
    (
        "argument-count",
        "a function is called with another number of arguments than it takes",
    ),
    (
        "not-there",
        "something of the language that hob does not have",
    ),
    (
        "rare",
        "something of the language that hardly any page uses",
    ),
];

/// Looks at a page and what it includes, and gives what it finds: the page first, then file by
/// file, in the order of their lines. `programs` are the names of those that pages may call, where
/// they are known.
pub fn check(
    page: &Arc<Page>,
    sources: &dyn Sources,
    programs: Option<&[String]>,
) -> Vec<LintFinding> {
    let known = Definitions::of(page, sources);
    let mut findings = Vec::new();
    for file in std::iter::once(page).chain(&known.included) {
        findings.extend(rules::Checker::new(file, &known, sources, programs).findings());
    }
    findings.sort_by(|one, other| {
        let is_included = |finding: &LintFinding| *finding.file != *page.file();
        (is_included(one), one).cmp(&(is_included(other), other))
    });
    findings.dedup();
    findings
}

/// Built-in functions that a file calls, with how common they are.
pub fn used(page: &Page) -> BTreeMap<&'static str, Tier> {
    let mut used = BTreeMap::new();
    walk::nodes(page, &mut |node| {
        if let BodyNode::Call(call) = node
            && let Callee::BuiltIn(function, _) = call.callee
        {
            used.insert(function.name, function.tier);
        }
    });
    debug_assert!(used.len() <= LIST.len(), "a function is used once");
    used
}
