//! `cargo xtask tidy`: the rules of the house that a program can check.
//!
//! `rules` is the table of them. Each looks at the `tree` (text files, Rust told apart by `source`)
//! and reports what it finds; all findings come at once. `exceptions` lists what may break a rule.

use std::path::Path;

mod crates;
mod documents;
mod exceptions;
mod layout;
mod names;
mod places;
mod reasons;
mod report;
mod rules;
mod rust;
mod source;
#[cfg(test)]
mod tests;
mod tree;

use report::TidyReport;
use rules::RULES;
use tree::Tree;

/// `tidy` prints findings, `tidy --explain RULE` says what a rule is for.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    match arguments {
        [] => {
            let report = check(root)?;
            print!("{report}");
            Ok(report.is_clean())
        }
        [flag] if flag == "--explain" => {
            print!("{}", rules::list());
            Ok(true)
        }
        [flag, name] if flag == "--explain" => {
            print!("{}", rules::explain(name)?);
            Ok(true)
        }
        _ => Err("usage: cargo xtask tidy [--explain RULE]".to_string()),
    }
}

/// Runs every rule over the repository.
fn check(root: &Path) -> Result<TidyReport, String> {
    let tree = Tree::read(root).map_err(|error| format!("reading {}: {error}", root.display()))?;
    let mut report = TidyReport::new(tree.files.len());
    for rule in RULES {
        report.begin(rule.name);
        (rule.check)(&tree, &mut report);
    }
    exceptions::apply(&mut report);
    Ok(report)
}
