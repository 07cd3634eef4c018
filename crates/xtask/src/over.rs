//! `cargo xtask over tls|h2|h3 [NAME]...`: tests that were written over HTTP/1.1, again over
//! another protocol. `crates/hob/tests/harness/over.rs` tells how.
//!
//! These are the tests of features: what a client gets must not depend on what it speaks. Tests
//! with `h1_only` in their names are about HTTP/1 itself; they and those in `NOT_SPOKEN` are
//! filtered out, not counted.

use std::path::Path;
use std::process::Command;

use crate::run;

/// The files of tests in `crates/hob/tests`.
const FEATURES: &[&str] = &[
    "after_steps",
    "bodies",
    "cache",
    "cgi",
    "codings",
    "files",
    "hosts",
    "lines",
    "redirect",
    "resident",
    "respond",
    "rewrite",
    "running",
    "warm",
    "watch",
];

/// Parts of the names of tests, or of modules of them, that take long and would see nothing of the
/// protocol.
const NOT_SPOKEN: &[&str] = &[
    // What is kept in memory, and how soon a change on the disk is seen.
    "_crawl",
    "hot_file_is_kept",
    "new_index_and_new_compressed_copy",
    "pinned_",
    "root_that_leads_elsewhere",
    "two_changes_within_one_tick",
    // How programs that stay are started, counted, renewed and ended.
    "lifetime::",
    "pool::",
    "renewal::",
    "scaling::",
    // The lives of warm hosts, and what a script may do in one; how much of an answer that breaks
    // off arrives, which they compare, is up to QUIC.
    "_compiled_",
    "hosts::daemon_survives",
    "end_of_a_script",
    "file_that_is_not_python",
    "hosts::host",
    "lives::",
    "module_that_cannot_be_loaded",
    "objects_that_a_script_leaves",
    "offered::",
    "requests_get_random_numbers",
    "perl::script_sees",
    "script_ends_as",
    "script_kept_compiled",
    "script_may_do_with_processes",
    "script_that_changes",
];

/// Runs the tests whose names hold one of those given, or all. They end with cargo's counts.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let Some((protocol, names)) = arguments.split_first() else {
        return Err("usage: cargo xtask over tls|h2|h3 [NAME]...".to_string());
    };
    if !["tls", "h2", "h3"].contains(&protocol.as_str()) {
        return Err(format!("over {protocol:?}? It is tls, h2 or h3"));
    }
    run::build(root)?;
    let mut test = run::cargo();
    test.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    for file in FEATURES {
        test.args(["--test", file]);
    }
    test.args(["--", "--show-output"]);
    test.args(names).args(["--skip", "h1_only"]);
    // Whoever names a test wants it.
    for name in NOT_SPOKEN.iter().filter(|_| names.is_empty()) {
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
