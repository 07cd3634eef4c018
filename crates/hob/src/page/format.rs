//! `hob page fmt`: lays pages out.

use std::io::{self, Write};
use std::path::Path;

use hob_page::sql_page::SqlPage;
use hob_page::tree::Page;

use crate::CommandFailure;
use crate::args::PageFmtOptions;
use crate::output;
use crate::replace::replace;

use super::{failure, read};

/// Lays all files out; what is wrong with one does not keep the others from it.
pub(super) fn run(options: &PageFmtOptions) -> Result<(), CommandFailure> {
    let mut is_good = true;
    for path in &options.files {
        match lay_out(path, options) {
            Ok(is_as_wanted) => is_good &= is_as_wanted,
            Err(text) => {
                eprintln!("hob: {text}");
                is_good = false;
            }
        }
    }
    match is_good {
        true => Ok(()),
        false => Err(failure(1, "")),
    }
}

/// Lays one file out; says whether it was so already, where that is asked.
fn lay_out(path: &Path, options: &PageFmtOptions) -> Result<bool, String> {
    let name = path.to_string_lossy();
    let source = read(path)?;
    let text = match reason_to_leave(&name, &source)? {
        None => Page::format(&name, &source).map_err(|fault| fault.to_string())?,
        Some(reason) => {
            eprintln!("hob: {name} {reason}, and is left as it is");
            source.clone()
        }
    };
    let is_same = text == source;
    if options.check {
        if !is_same {
            output::line(&name);
        }
        return Ok(is_same);
    }
    if !options.write {
        // A reader that has left is no fault.
        let _ = io::stdout().lock().write_all(&text);
    } else if !is_same {
        replace(path, &text).map_err(|error| format!("cannot write {name}: {error}"))?;
        output::line(&name);
    }
    Ok(true)
}

/// Why a file is not laid out, if it is not.
fn reason_to_leave(name: &str, source: &[u8]) -> Result<Option<&'static str>, String> {
    if SqlPage::is_one(source) {
        return Ok(Some("is a page of statements"));
    }
    let page = Page::parse(name, source).map_err(|fault| fault.to_string())?;
    // Inside of a block its blanks are printed.
    Ok((!page.declares()).then_some("declares nothing"))
}
