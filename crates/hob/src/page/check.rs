//! `hob page check`: what is wrong and what is doubtful about pages.

use std::path::Path;
use std::sync::Arc;

use hob_page::fault::PageFault;
use hob_page::lint::{LintFinding, LintLevel, check};
use hob_page::sql_page::SqlPage;
use hob_page::tree::Page;

use crate::CommandFailure;
use crate::args::PageCheckOptions;
use crate::{escape, output};

use super::folder::PageFolders;
use super::{PageIni, failure, grammar, read};

/// What was found, by how much it matters.
#[derive(Default)]
struct FindingCounts {
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// Checks all files, and says what it found.
pub(super) fn run(options: &PageCheckOptions) -> Result<(), CommandFailure> {
    if options.grammar {
        output::write(&grammar::text());
        return Ok(());
    }
    let ini = PageIni::read(options.ini.as_deref())?;
    let mut counts = FindingCounts::default();
    for path in &options.files {
        let before = (counts.errors, counts.warnings, counts.notes);
        look_at(path, &ini, options, &mut counts);
        if before == (counts.errors, counts.warnings, counts.notes) {
            tell(&format!("{}: nothing to say", path.display()));
        }
    }
    let FindingCounts {
        errors,
        warnings,
        notes,
    } = counts;
    if errors + warnings + notes > 0 {
        tell(&format!(
            "{}, {}, {}",
            counted(errors, "error"),
            counted(warnings, "warning"),
            counted(notes, "note")
        ));
    }
    match errors {
        0 => Ok(()),
        _ => Err(failure(1, "")),
    }
}

fn look_at(path: &Path, ini: &PageIni, options: &PageCheckOptions, counts: &mut FindingCounts) {
    let name = path.to_string_lossy();
    let found = match statements(path, &name) {
        Some(Ok(())) => return,
        Some(Err(text)) => Err(text),
        None => page(path, &name, ini),
    };
    let (page, folders) = match found {
        Ok(found) => found,
        Err(text) => {
            counts.errors += 1;
            return tell(&text);
        }
    };
    let programs = (!options.programs.is_empty()).then_some(&options.programs[..]);
    for finding in check(&page, &folders, programs) {
        let LintFinding {
            file,
            line,
            column,
            level,
            rule,
            message,
        } = finding;
        let (count, word) = match level {
            LintLevel::Error => (&mut counts.errors, "error"),
            LintLevel::Warning => (&mut counts.warnings, "warning"),
            LintLevel::Note => (&mut counts.notes, "note"),
        };
        *count += 1;
        tell(&format!(
            "{file}:{line}:{column}: {word}: {message} ({rule})"
        ));
    }
}

/// Whether a page of statements is right; `None` if it is none.
fn statements(path: &Path, name: &str) -> Option<Result<(), String>> {
    let source = read(path).ok().filter(|source| SqlPage::is_one(source))?;
    let page = SqlPage::parse(name, &source);
    Some(page.map(|_| ()).map_err(|fault| told(name, &fault)))
}

fn told(name: &str, fault: &PageFault) -> String {
    let (line, column) = (fault.line, fault.column);
    format!("{name}:{line}:{column}: error: {}", fault.message)
}

/// The page, read; what keeps it from that is the one finding.
fn page(path: &Path, name: &str, ini: &PageIni) -> Result<(Arc<Page>, PageFolders), String> {
    let source = read(path).map_err(|text| format!("{name}:1:1: error: {text}"))?;
    let wrong = |fault: PageFault| told(name, &fault);
    let mut page = Page::parse(name, &source).map_err(wrong)?;
    if !page.declares() {
        // Most likely it is included inside of a block.
        page = Page::parse_body(name, &source).map_err(wrong)?;
    }
    Ok((Arc::new(page), PageFolders::of(path, ini)?))
}

/// A line for people; what files say of themselves steers no terminal.
fn tell(text: &str) {
    output::line(&escape::line(text));
}

fn counted(count: usize, word: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {word}{plural}")
}
