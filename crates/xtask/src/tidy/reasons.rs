//! A rule about what users look up: reasons of failures.

use super::report::TidyReport;
use super::source::RustSource;
use super::tree::Tree;

/// Where users look a reason up.
const PAGE: &str = "docs/src/how-to/502.md";

/// Files whose texts are reasons of records.
const FILES: &[&str] = &[
    "crates/server/src/handle/cgi/fail.rs",
    "crates/server/src/handle/script/head.rs",
    "crates/server/src/handle/resident/fail.rs",
    "crates/server/src/handle/resident/file.rs",
    "crates/server/src/handle/resident/tunnel.rs",
    "crates/server/src/handle/upstream/program/ask.rs",
    "crates/server/src/handle/upstream/program/fail.rs",
];

/// How a reason begins: other texts of these files are parts of a detail, a page or a log line.
const BEGINNINGS: &[&str] = &[
    "the ",
    "a ",
    "an ",
    "there ",
    "limits: ",
    "Location ",
    "Content-Length ",
];

pub(super) fn told(tree: &Tree, report: &mut TidyReport) {
    let page = tree.file(PAGE).map_or("", |page| page.text.as_str());
    // Samples of this rule have some of the files.
    let is_whole = tree.has("crates/xtask/src/tidy/reasons.rs");
    let gone = FILES.iter().filter(|file| is_whole && !tree.has(file));
    for file in gone {
        report.add(
            PAGE,
            1,
            format!("{file} is not there; tidy/reasons.rs names it"),
        );
    }
    for (file, source) in tree.product() {
        if !FILES.contains(&file.path.as_str()) {
            continue;
        }
        for (at, text) in texts(&file.text, source) {
            let is_reason = BEGINNINGS.iter().any(|begin| text.starts_with(begin));
            let is_whole = !text.contains('{');
            if is_reason && is_whole && !source.in_test(at) && !page.contains(&text) {
                report.add(
                    &file.path,
                    source.line(at),
                    format!("{PAGE} lacks {text:?}"),
                );
            }
        }
    }
}

/// What stands in quotes, and where; lines that a backslash joins are one.
fn texts<'a>(text: &'a str, source: &'a RustSource) -> impl Iterator<Item = (usize, String)> + 'a {
    let mut quotes = source.code.match_indices('"').map(|(at, _)| at);
    std::iter::from_fn(move || {
        let (begin, end) = (quotes.next()?, quotes.next()?);
        let lines = text[begin + 1..end].split("\\\n");
        let joined: Vec<_> = lines.map(str::trim_start).collect();
        Some((begin, joined.concat()))
    })
}
