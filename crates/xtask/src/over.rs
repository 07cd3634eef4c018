//! `cargo xtask over tls|h2|h3 [NAME]...`: tests that were written over HTTP/1.1, again over another
//! protocol. `crates/hob/tests/harness/over.rs` tells how.
//!
//! These are the tests of features: what a client gets must not depend on what it speaks. Tests
//! with `h1_only` in their names are about HTTP/1 itself, and those in `ABOUT_PROCESSES` take long
//! and look at what a request does not reach. Both are filtered out, not counted.

use std::path::Path;
use std::process::Command;

use crate::run;

/// The files of tests in `crates/hob/tests`.
const FEATURES: &[&str] = &[
    "after_steps",
    "cache",
    "cgi",
    "codings",
    "files",
    "hosts",
    "limits",
    "lines",
    "redirect",
    "resident",
    "respond",
    "rewrite",
    "warm",
];

/// Tests, or modules of them, about how programs live and die; parts of their names.
const ABOUT_PROCESSES: &[&str] = &[];

/// Runs the tests whose names hold one of those given, or all. They end with cargo's counts.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let Some((protocol, names)) = arguments.split_first() else {
        return Err("usage: cargo xtask over tls|h2|h3 [NAME]...".to_string());
    };
    if !["tls", "h2", "h3"].contains(&protocol.as_str()) {
        return Err(format!("over {protocol:?}? It is tls, h2 or h3"));
    }
    // The whole workspace, so that cargo builds nothing with other features than `cargo test` does.
    let mut build = run::cargo();
    build.args(["build", "--workspace", "--locked", "--example", "over"]);
    if !has_worked(build.current_dir(root))? {
        return Ok(false);
    }
    let mut test = run::cargo();
    test.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    for file in FEATURES {
        test.args(["--test", file]);
    }
    test.arg("--").args(names).args(["--skip", "h1_only"]);
    // Whoever names a test wants it.
    for name in ABOUT_PROCESSES.iter().filter(|_| names.is_empty()) {
        test.args(["--skip", name]);
    }
    has_worked(test.current_dir(root).env("HOB_TEST_OVER", protocol))
}

/// Runs a command that shows itself what it does.
fn has_worked(command: &mut Command) -> Result<bool, String> {
    let status = command.status();
    let status = status.map_err(|error| format!("starting cargo: {error}"))?;
    Ok(status.success())
}
