//! Rules about what may be done in one place only.

use std::collections::BTreeSet;

use super::report::TidyReport;
use super::source::RustSource;
use super::tree::{TextFile, Tree};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Some words of code, and the only folders or files that may hold them.
struct RestrictedWords<'a> {
    words: &'a [&'a str],
    only_in: &'a [&'a str],
    message: &'a str,
}

impl RestrictedWords<'_> {
    /// Reports the words wherever else they stand in the product.
    fn check(&self, tree: &Tree, report: &mut TidyReport) {
        for (file, source) in tree.product() {
            if !self
                .only_in
                .iter()
                .any(|place| file.path.starts_with(place))
            {
                self.look_at(file, source, report);
            }
        }
    }

    fn look_at(&self, file: &TextFile, source: &RustSource, report: &mut TidyReport) {
        let mut reported = BTreeSet::new();
        for word in self.words {
            for at in source
                .find(word)
                .into_iter()
                .filter(|at| !source.in_test(*at))
            {
                let line = source.line(at);
                if reported.insert(line) {
                    let message = format!("`{}`: {}", word.trim_end_matches('('), self.message);
                    report.add(&file.path, line, message);
                }
            }
        }
    }
}

pub(super) fn environment(tree: &Tree, report: &mut TidyReport) {
    RestrictedWords {
        words: &[
            "std::env",
            "env::var",
            "env::var_os",
            "env::vars",
            "env::args",
            "getenv",
        ],
        // A C library is told where its server is by the environment alone.
        only_in: &["crates/hob/src/args.rs", "crates/libhob/src/environment.rs"],
        message: "arguments and environment are read in crates/hob/src/args.rs and passed on",
    }
    .check(tree, report);
}

pub(super) fn listening(tree: &Tree, report: &mut TidyReport) {
    RestrictedWords {
        words: &[
            "TcpListener::bind",
            "UnixListener::bind",
            "UnixListener::bind_addr",
            "net::listen(",
            "libc::listen(",
            "sockopt::set_reuseport",
        ],
        // A relay between client and server counts what goes between them; the servers' machine of
        // a comparison hears its client.
        only_in: &[
            "crates/http/src/listen/",
            "crates/cost/src/relay.rs",
            "crates/compare/src/distant/port.rs",
        ],
        message: "listening sockets are opened in crates/http/src/listen/",
    }
    .check(tree, report);
}

pub(super) fn children(tree: &Tree, report: &mut TidyReport) {
    RestrictedWords {
        words: &[
            "process::Command",
            "libc::fork(",
            "libc::vfork(",
            "libc::execve(",
            "libc::execv(",
            "libc::fexecve(",
            "libc::posix_spawn(",
            "libc::clone(",
            "libc::setuid(",
            "libc::setresuid(",
        ],
        // A comparison starts other servers, and nothing of what the server runs; what starting
        // costs is measured by starting in every way there is; who builds native parts is root.
        only_in: &[
            "crates/keeper/src/",
            "crates/compare/src/",
            "crates/cost/src/kernel/start.rs",
            "crates/hob/src/native.rs",
        ],
        message: "processes are started and privileges dropped in keeper and compare",
    }
    .check(tree, report);
}

pub(super) fn config_reader(tree: &Tree, report: &mut TidyReport) {
    RestrictedWords {
        words: &["toml_edit"],
        only_in: &["crates/config/src/"],
        message: "TOML is read in crates/config/src/",
    }
    .check(tree, report);
}

pub(super) fn protocol_pure(tree: &Tree, report: &mut TidyReport) {
    let place = RestrictedWords {
        words: &[
            "Instant::now",
            "SystemTime::now",
            "clock_gettime",
            "TcpStream",
            "UnixStream",
            "rustix::net",
            "tokio",
            "quinn_udp",
        ],
        only_in: &["crates/http/src/h3/quic/socket.rs"],
        message: "protocol code takes bytes and time as arguments and opens nothing",
    };
    for (file, source) in tree.product() {
        let inside = file
            .path
            .strip_prefix("crates/http/src/")
            .unwrap_or_default();
        let is_protocol = ["fields_coding/", "h1/", "h2/", "h3/"]
            .iter()
            .any(|folder| inside.starts_with(folder));
        if is_protocol && !place.only_in.contains(&file.path.as_str()) {
            place.look_at(file, source, report);
        }
    }
}

pub(super) fn unsafe_code(tree: &Tree, report: &mut TidyReport) {
    let named = named_files(tree);
    for (file, source) in tree.rust() {
        let first = source.find("unsafe").first().copied();
        if let Some(at) = first
            && !named.iter().any(|(path, _)| holds(path, &file.path))
        {
            let message = format!("`unsafe` in a file that {ARCHITECTURE} does not name");
            report.add(&file.path, source.line(at), message);
        }
    }
    for (path, line) in named {
        let has_unsafe = |(file, source): (&TextFile, &RustSource)| {
            holds(&path, &file.path) && !source.find("unsafe").is_empty()
        };
        if !tree.rust().any(has_unsafe) {
            report.add(
                ARCHITECTURE,
                line,
                format!("{path} has no `unsafe`; take it off the list"),
            );
        }
    }
}

pub(super) fn unsafe_forbidden(tree: &Tree, report: &mut TidyReport) {
    let named = named_files(tree);
    for (file, source) in tree.rust() {
        let Some((name, "src/lib.rs" | "src/main.rs")) = file.crate_and_rest() else {
            continue;
        };
        let sources = format!("crates/{name}/src/");
        let may = named
            .iter()
            .any(|(path, _)| holds(&sources, path) || holds(path, &sources));
        if !may && !source.code.contains("#![forbid(unsafe_code)]") {
            let message = format!(
                "add `#![forbid(unsafe_code)]`: {ARCHITECTURE} names no file of crate {name}"
            );
            report.add(&file.path, 1, message);
        }
    }
}

/// Is `path` this file, or below this folder (written with a `/` at its end)?
fn holds(place: &str, path: &str) -> bool {
    place == path || (place.ends_with('/') && path.starts_with(place))
}

/// The files under `## Files with unsafe code`: `- `path`: why`, with their lines.
fn named_files(tree: &Tree) -> Vec<(String, usize)> {
    let Some(file) = tree.file(ARCHITECTURE) else {
        return Vec::new();
    };
    let section = file
        .lines()
        .skip_while(|(_, line)| *line != "## Files with unsafe code")
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "));
    let paths = section.filter_map(|(number, line)| {
        let path = line
            .strip_prefix("- `")
            .or_else(|| line.strip_prefix("| `"))?;
        Some((path.split('`').next()?.to_string(), number))
    });
    paths.collect()
}
