//! `cargo xtask over tls|h2|h3 [NAME]...`: tests that were written over HTTP/1.1, again over
//! another protocol. `crates/hob/tests/harness/over.rs` tells how.
//!
//! These are the tests of features: what a client gets must not depend on what it speaks. Tests
//! with `h1_only` in their names are about HTTP/1 itself; they and those in `NOT_SPOKEN` are
//! filtered out, not counted.

use std::path::Path;

use crate::{run, test};

/// The files of tests in `crates/hob/tests`.
const FEATURES: &[&str] = &[
    "after_steps",
    "bodies",
    "cache",
    "cgi",
    "codings",
    "fastcgi",
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

/// Runs the tests whose names hold one of those given, or all. They end with counts.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let Some((protocol, names)) = arguments.split_first() else {
        return Err("usage: cargo xtask over tls|h2|h3 [NAME]...".to_string());
    };
    if !["tls", "h2", "h3"].contains(&protocol.as_str()) {
        return Err(format!("over {protocol:?}? It is tls, h2 or h3"));
    }
    run::build(root)?;
    let selection: Vec<&str> = FEATURES.iter().flat_map(|file| ["--test", file]).collect();
    let programs = test::programs(root, &selection)?;
    // Whoever names a test wants it.
    let not_spoken = NOT_SPOKEN.iter().filter(|_| names.is_empty());
    let skipped = ["h1_only"].iter().chain(not_spoken);
    let mut tests = vec!["--show-output"];
    tests.extend(names.iter().map(String::as_str));
    tests.extend(skipped.flat_map(|name| ["--skip", name]));
    test::run_all(programs, &tests, &[("HOB_TEST_OVER", protocol)])
}
