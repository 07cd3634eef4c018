//! Rules about crates: who knows whom, how they are called, what they depend on.

use super::report::TidyReport;
use super::tree::{TextFile, Tree};

/// Each crate, and the crates of ours it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "hob",
        &[
            "inside", "server", "keeper", "http", "odbc", "page", "pam", "compare", "cost", "load",
            "trace",
        ],
    ),
    ("compare", &["load", "machine"]),
    (
        "inside",
        &[
            "server", "keeper", "config", "http", "trace", "ipc", "machine",
        ],
    ),
    (
        "server",
        &[
            "keeper", "config", "http", "trace", "ipc", "machine", "odbc", "page", "pam",
        ],
    ),
    ("keeper", &["config", "http", "trace", "machine"]),
    ("config", &["trace"]),
    ("http", &["trace"]),
    ("cost", &["load", "machine"]),
    ("load", &["machine"]),
    ("libhob", &["ipc"]),
    ("odbc", &["page"]),
    ("trace", &[]),
    ("ipc", &[]),
    ("machine", &[]),
    ("page", &[]),
    ("pam", &[]),
    ("xtask", &[]),
];

/// What tests of a crate may depend on besides: programs linked with libhob run behind the server,
/// so cargo builds the library whenever it builds those tests, and clients that misbehave.
const TEST_ARROWS: &[(&str, &str)] = &[("hob", "libhob"), ("hob", "mischief")];

const LOCKED_PACKAGES_MAX: usize = 400;

/// One `key = value` line of a manifest, with the table it stands in.
struct ManifestEntry<'a> {
    table: &'a str,
    key: &'a str,
    value: &'a str,
    line: usize,
}

pub(super) fn arrows(tree: &Tree, report: &mut TidyReport) {
    for (folder, manifest) in manifests_of(tree) {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == folder) else {
            report.add(
                &manifest.path,
                1,
                format!(
                    "crate {folder} is not in the table of arrows (tidy/crates.rs); a new crate \
                     needs a reason that Cargo can enforce"
                ),
            );
            continue;
        };
        for entry in entries(&manifest.text).filter(|entry| is_dependency(entry.table)) {
            let Some(other) = our_crate(dependency(&entry)) else {
                continue;
            };
            let is_for_tests = entry.table.ends_with("dev-dependencies");
            if is_for_tests && TEST_ARROWS.contains(&(folder, other)) {
                continue;
            }
            if !allowed.contains(&other) {
                report.add(
                    &manifest.path,
                    entry.line,
                    format!("{folder} may not depend on {other}; it may know: {allowed:?}"),
                );
            }
        }
    }
}

pub(super) fn manifests(tree: &Tree, report: &mut TidyReport) {
    for (folder, manifest) in manifests_of(tree) {
        let expected = match folder {
            "hob" | "libhob" | "xtask" => folder.to_string(),
            other => format!("hob-{other}"),
        };
        let value = |table: &str, key: &str| {
            let mut all = entries(&manifest.text);
            all.find(|entry| entry.table == table && entry.key == key)
                .map(|entry| (entry.value.trim_matches('"').to_string(), entry.line))
        };
        let (name, line) = value("package", "name").unwrap_or_default();
        if name != expected {
            report.add(
                &manifest.path,
                line.max(1),
                format!("the package is called {name:?}, its folder asks for {expected:?}"),
            );
        }
        if value("lints", "workspace").is_none_or(|(value, _)| value != "true") {
            report.add(&manifest.path, 1, "add `[lints]` with `workspace = true`");
        }
    }
}

pub(super) fn dependency_reasons(tree: &Tree, report: &mut TidyReport) {
    let Some(manifest) = tree.file("Cargo.toml") else {
        return;
    };
    let used: Vec<(&str, usize)> = entries(&manifest.text)
        .filter(|entry| is_dependency(entry.table))
        .map(|entry| (dependency(&entry), entry.line))
        .filter(|(name, _)| our_crate(name).is_none())
        .collect();
    let explained = tree
        .file("ARCHITECTURE.md")
        .map(dependency_rows)
        .unwrap_or_default();
    for (name, line) in &used {
        if !explained.iter().any(|(row, _)| row == name) {
            let message =
                format!("`{name}` has no row under \"## Dependencies\" in ARCHITECTURE.md");
            report.add("Cargo.toml", *line, message);
        }
    }
    for (name, line) in &explained {
        if !used.iter().any(|(other, _)| other == name) {
            let message = format!("`{name}` is no longer a dependency; remove its row");
            report.add("ARCHITECTURE.md", *line, message);
        }
    }
}

pub(super) fn locked_packages(tree: &Tree, report: &mut TidyReport) {
    let Some(lock) = tree.file("Cargo.lock") else {
        return;
    };
    let count = lock
        .text
        .lines()
        .filter(|line| *line == "[[package]]")
        .count();
    if count > LOCKED_PACKAGES_MAX {
        let message = format!("{count} packages are locked, {LOCKED_PACKAGES_MAX} are allowed");
        report.add("Cargo.lock", 1, message);
    }
}

/// The manifests of `crates/*`, with their folder's name.
fn manifests_of(tree: &Tree) -> impl Iterator<Item = (&str, &TextFile)> {
    tree.files
        .iter()
        .filter_map(|file| match file.crate_and_rest() {
            Some((folder, "Cargo.toml")) => Some((folder, file)),
            _ => None,
        })
}

fn entries(text: &str) -> impl Iterator<Item = ManifestEntry<'_>> {
    let mut table = "";
    text.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_end_matches(']').trim_start_matches('[');
            // `[dependencies.name]` is a dependency without any line of its own.
            let (parent, key) = table.rsplit_once('.')?;
            let value = "";
            return is_dependency(parent).then_some(ManifestEntry {
                table: parent,
                key,
                value,
                line: index + 1,
            });
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        Some(ManifestEntry {
            table,
            key: key.trim(),
            value: value.trim(),
            line: index + 1,
        })
    })
}

/// The name of a dependency: `hob-http` in `hob-http.workspace = true`.
fn dependency<'a>(entry: &ManifestEntry<'a>) -> &'a str {
    entry
        .key
        .split('.')
        .next()
        .unwrap_or(entry.key)
        .trim_matches('"')
}

fn is_dependency(table: &str) -> bool {
    table == "dependencies"
        || table == "dev-dependencies"
        || table == "build-dependencies"
        || table.ends_with(".dependencies")
        || table.ends_with(".dev-dependencies")
        || table.ends_with(".build-dependencies")
}

/// The folder of a package of ours.
fn our_crate(package: &str) -> Option<&str> {
    let folder = package.strip_prefix("hob-").unwrap_or(package);
    let is_ours = ARROWS.iter().any(|(name, _)| *name == folder);
    let is_plain = matches!(package, "hob" | "libhob" | "xtask");
    (is_plain || (is_ours && folder != package)).then_some(folder)
}

/// The first backticked word of each row of the table of dependencies, with its line.
fn dependency_rows(file: &TextFile) -> Vec<(&str, usize)> {
    let section = file
        .lines()
        .skip_while(|(_, line)| *line != "## Dependencies")
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "));
    let rows = section.filter_map(|(number, line)| {
        let name = line.strip_prefix("| `")?.split('`').next()?;
        Some((name, number))
    });
    rows.collect()
}
