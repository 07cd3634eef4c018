//! Rules about the text of Rust files: size, beginnings, and words that may not stand there.

use super::report::TidyReport;
use super::source::RustSource;
use super::tree::{TextFile, Tree};

const CONTENTS_LINES_MAX: usize = 149;
const FILE_LINES_MAX: usize = 799;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

pub(super) fn purpose(tree: &Tree, report: &mut TidyReport) {
    for (file, _) in tree.rust() {
        let mut lines = file.text.lines().map(str::trim).filter(|line| {
            !line.is_empty() && !line.starts_with("#![") && !line.starts_with("// Generated")
        });
        if !lines.next().is_some_and(|line| line.starts_with("//!")) {
            report.add(
                &file.path,
                1,
                "begin with `//!` and say what the file is for",
            );
        }
    }
}

pub(super) fn contents_pages(tree: &Tree, report: &mut TidyReport) {
    for (file, _) in tree.rust() {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if matches!(name, "lib.rs" | "mod.rs") && !tree.is_test(file) {
            at_most(file, CONTENTS_LINES_MAX, "a contents page", report);
        }
    }
}

pub(super) fn file_length(tree: &Tree, report: &mut TidyReport) {
    for (file, _) in tree.rust() {
        at_most(file, FILE_LINES_MAX, "a file", report);
    }
}

fn at_most(file: &TextFile, lines_max: usize, what: &str, report: &mut TidyReport) {
    let count = file.text.lines().count();
    if count > lines_max {
        let message = format!("{count} lines; {what} has at most {lines_max}");
        report.add(&file.path, lines_max + 1, message);
    }
}

pub(super) fn function_length(tree: &Tree, report: &mut TidyReport) {
    for (file, source) in tree.product() {
        for body in source
            .bodies
            .iter()
            .filter(|body| !source.in_test(body.start))
        {
            let first = source.line(body.start);
            // The lines between the braces.
            let count = source.line(body.end - 1).saturating_sub(first + 1);
            if count > FUNCTION_LINES_MAX {
                let message = format!("a body of {count} lines; at most {FUNCTION_LINES_MAX}");
                report.add(&file.path, first, message);
            }
        }
    }
}

pub(super) fn line_width(tree: &Tree, report: &mut TidyReport) {
    for (file, _) in tree.rust() {
        for (number, line) in file.lines() {
            let width = line.chars().count();
            let is_excused = line.contains('"') || line.contains("://");
            if width > COLUMNS_MAX && !is_excused {
                let message = format!("{width} columns; at most {COLUMNS_MAX}");
                report.add(&file.path, number, message);
            }
        }
    }
}

pub(super) fn unwrap(tree: &Tree, report: &mut TidyReport) {
    for (file, source) in tree
        .rust()
        .filter(|(file, _)| file.crate_and_rest().is_some())
    {
        if tree.is_test(file) {
            continue;
        }
        for at in source.find(".unwrap()") {
            if !source.in_test(at) {
                let message = "`unwrap()` outside tests; return an error, or `expect` the proof";
                report.add(&file.path, source.line(at), message);
            }
        }
    }
}

pub(super) fn unfinished(tree: &Tree, report: &mut TidyReport) {
    for (file, source) in tree.rust() {
        for name in ["todo!", "unimplemented!", "dbg!"] {
            for at in source.find(name) {
                report.add(
                    &file.path,
                    source.line(at),
                    format!("`{name}` is left over"),
                );
            }
        }
    }
}

pub(super) fn cfg_inside(tree: &Tree, report: &mut TidyReport) {
    for (file, source) in tree.rust() {
        for word in ["#[cfg(", "#[cfg_attr(", "cfg!("] {
            let inside = |at: &usize| source.in_body(*at) && !is_test_cfg(source, *at);
            for at in source.find(word).into_iter().filter(inside) {
                let message = "`cfg` inside a function; make two versions behind one `mod`";
                report.add(&file.path, source.line(at), message);
            }
        }
    }
}

/// `#[cfg(test)]`, and `cfg!(miri)` by which a test that Miri runs goes fewer rounds.
fn is_test_cfg(source: &RustSource, at: usize) -> bool {
    let here = &source.code[at..];
    here.starts_with("#[cfg(test)]") || here.starts_with("cfg!(miri)")
}

pub(super) fn ignored(tree: &Tree, report: &mut TidyReport) {
    for (file, source) in tree.rust() {
        for at in source.find("#[ignore") {
            let message = "an ignored test; let it say why it cannot run, or assert what is so";
            report.add(&file.path, source.line(at), message);
        }
    }
}

pub(super) fn sleep(tree: &Tree, report: &mut TidyReport) {
    for (file, source) in tree.rust() {
        let is_test = tree.is_test(file);
        for at in source.find("sleep(") {
            if is_test || source.in_test(at) {
                report.add(
                    &file.path,
                    source.line(at),
                    "a test that sleeps; wait for the event",
                );
            }
        }
    }
}
