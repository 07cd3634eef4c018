//! Rules about where files are and how they are called.

use super::report::TidyReport;
use super::tree::{TextFile, Tree};

/// Words that a name may not be.
const FORBIDDEN: &[&str] = &[
    "common", "util", "utils", "misc", "helper", "helpers", "core", "base", "types", "manager",
];

/// Of these, the words that a name may not hold either: `file_utils`.
const FORBIDDEN_INSIDE: &[&str] = &[
    "common", "util", "utils", "misc", "helper", "helpers", "manager",
];

pub(super) fn forbidden_names(tree: &Tree, report: &mut TidyReport) {
    // What a test reads is called after what it tests, such as the log format `common`.
    let files = tree.files.iter().filter(|file| !file.is_test_data());
    let files = files.map(|file| file.path.as_str());
    for path in files.chain(tree.folders.iter().map(String::as_str)) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name
            .split('.')
            .find(|part| !part.is_empty())
            .unwrap_or(name)
            .to_lowercase();
        let inside = |part| FORBIDDEN_INSIDE.contains(&part);
        if FORBIDDEN.contains(&stem.as_str()) || stem.split(['_', '-']).any(inside) {
            report.add(
                path,
                1,
                format!("{name:?} does not say what is inside; name the thing"),
            );
        }
    }
}

/// The folder of handlers, and those of what several of them share: that run programs, that ask
/// other servers.
const HANDLERS: &str = "crates/server/src/handle/";
const SHARED: [&str; 2] = ["script", "upstream"];
/// Where the list of handlers is.
const LIST: &str = "crates/trace/src/record.rs";

pub(super) fn five_places(tree: &Tree, report: &mut TidyReport) {
    for folder in &tree.folders {
        let Some(name) = folder
            .strip_prefix(HANDLERS)
            .filter(|rest| !rest.contains('/'))
        else {
            continue;
        };
        // Folders without code hold what tests compare with.
        let is_inside = |file: &TextFile| file.path.starts_with(&format!("{folder}/"));
        // What belongs to a file of the same name, or to several handlers, is no handler's.
        let is_part = tree.has(&format!("{folder}.rs")) || SHARED.contains(&name);
        if is_part || !tree.rust().any(|(file, _)| is_inside(file)) {
            continue;
        }
        let needed = [
            format!("crates/hob/tests/{name}.rs"),
            format!("docs/src/how-to/{name}.md"),
        ];
        for path in needed.iter().filter(|path| !tree.has(path)) {
            report.add(folder, 1, format!("the handler {name} needs {path}"));
        }
    }
}

/// One line of the list of handlers.
struct Listed<'a> {
    /// Its folder's name.
    name: &'a str,
    /// What it is called among types.
    variant: &'a str,
    runs_programs: bool,
    line: usize,
}

/// Lines such as `cgi Cgi = 4, program started;`, between `handlers` and its end.
fn listed(tree: &Tree) -> Vec<Listed<'_>> {
    let text = tree.file(LIST).map_or("", |file| file.text.as_str());
    let lines = text.lines().enumerate();
    let lines = lines.skip_while(|(_, line)| *line != "macro_rules! handlers {");
    let lines = lines.take_while(|(_, line)| *line != "}");
    let listed = lines.filter_map(|(at, line)| {
        let (words, number) = line.trim().strip_suffix(';')?.split_once(" = ")?;
        let (name, variant) = words.split_once(' ')?;
        Some(Listed {
            name,
            variant,
            runs_programs: number.contains("program "),
            line: at + 1,
        })
    });
    listed.collect()
}

pub(super) fn handler_shape(tree: &Tree, report: &mut TidyReport) {
    for handler in listed(tree) {
        for file in ["mod.rs", "config.rs", "answer.rs", "explain.rs"] {
            let path = format!("{HANDLERS}{}/{file}", handler.name);
            if !tree.has(&path) {
                report.add(LIST, handler.line, format!("there is no {path}"));
            }
        }
    }
}

pub(super) fn handler_named(tree: &Tree, report: &mut TidyReport) {
    let listed = listed(tree);
    let outside = tree.product();
    let outside = outside.filter(|(file, _)| !file.path.starts_with(HANDLERS));
    for (file, source) in outside {
        for variant in listed.iter().map(|handler| handler.variant) {
            for kind in ["Handler", "HandlerKind", "HandlerSettings"] {
                let found = source.find(&format!("{kind}::{variant}"));
                for at in found.into_iter().filter(|at| !source.in_test(*at)) {
                    let text = format!("{kind}::{variant} is named; ask the handler instead");
                    report.add(&file.path, source.line(at), text);
                }
            }
        }
    }
}

pub(super) fn handlers_apart(tree: &Tree, report: &mut TidyReport) {
    // A warm handler is `cgi` with processes from elsewhere, a remote one `proxy` to another hob,
    // and each visit of `session` a resident program of one worker.
    const TOGETHER: [[&str; 2]; 3] = [
        ["cgi", "warm"],
        ["proxy", "remote"],
        ["resident", "session"],
    ];
    let handlers = listed(tree);
    let programs = || handlers.iter().filter(|handler| handler.runs_programs);
    for own in programs() {
        let folder = format!("{HANDLERS}{}/", own.name);
        let inside = tree
            .rust()
            .filter(|(file, _)| file.path.starts_with(&folder));
        for (file, source) in inside {
            for other in programs().filter(|other| other.name != own.name) {
                let are_one =
                    |pair: &[&str; 2]| pair.contains(&own.name) && pair.contains(&other.name);
                if TOGETHER.iter().any(are_one) {
                    continue;
                }
                for at in source.find(&format!("handle::{}", other.name)) {
                    let text = format!(
                        "{} knows {}; share it in {}/",
                        own.name, other.name, SHARED[0]
                    );
                    report.add(&file.path, source.line(at), text);
                }
            }
        }
    }
}

pub(super) fn examples(tree: &Tree, report: &mut TidyReport) {
    need_files(
        tree,
        report,
        "examples/",
        &["README.md", "hob.toml", "expected.txt"],
    );
}

pub(super) fn suites(tree: &Tree, report: &mut TidyReport) {
    need_files(tree, report, "conformance/", &["run", "expected.txt"]);
}

fn need_files(tree: &Tree, report: &mut TidyReport, parent: &str, names: &[&str]) {
    for folder in &tree.folders {
        if folder
            .strip_prefix(parent)
            .is_none_or(|rest| rest.contains('/'))
        {
            continue;
        }
        for name in names
            .iter()
            .filter(|name| !tree.has(&format!("{folder}/{name}")))
        {
            report.add(folder, 1, format!("there is no {name} in {folder}"));
        }
    }
}

pub(super) fn fuzz_targets(tree: &Tree, report: &mut TidyReport) {
    let manifest = tree
        .file("fuzz/Cargo.toml")
        .map_or("", |file| file.text.as_str());
    for (file, _) in tree.rust() {
        let Some(name) = file.path.strip_prefix("fuzz/targets/") else {
            continue;
        };
        let name = name.trim_end_matches(".rs");
        if !manifest.contains(&format!("name = \"{name}\"")) {
            report.add(
                &file.path,
                1,
                format!("fuzz/Cargo.toml has no [[bin]] called {name:?}"),
            );
        }
        if !tree.has(&format!("fuzz/corpus/{name}")) {
            report.add(
                &file.path,
                1,
                format!("there is no corpus in fuzz/corpus/{name}"),
            );
        }
    }
}

pub(super) fn shell_scripts(tree: &Tree, report: &mut TidyReport) {
    for file in tree.files.iter().filter(|file| is_shell(file)) {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let may = file.path.starts_with(".ci/")
            || file.path.starts_with("packaging/")
            || file.path.starts_with("examples/")
            || file.path.starts_with("bench/rivals/")
            || file.path.starts_with("lang/shell/")
            || name == "check";
        if !may {
            report.add(
                &file.path,
                1,
                "a shell script; write it in Rust, in crates/xtask",
            );
        }
    }
}

fn is_shell(file: &TextFile) -> bool {
    let first = file.text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").unwrap_or_default();
    file.path.ends_with(".sh") || interpreter.ends_with("/sh") || interpreter.ends_with("bash")
}

pub(super) fn empty_files(tree: &Tree, report: &mut TidyReport) {
    let is_empty = |file: &&TextFile| file.text.trim().is_empty() && !file.is_test_data();
    for file in tree.files.iter().filter(is_empty) {
        report.add(&file.path, 1, "nothing is in it");
    }
}
