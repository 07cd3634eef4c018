//! `cargo xtask over tls|h2|h3|proxy|proxy-h2 [NAME]...`: tests that were written over HTTP/1.1,
//! again over another protocol. `crates/hob/tests/harness/over.rs` tells how.
//!
//! These are the tests of features: what a client gets must not depend on what it speaks. Tests
//! with `h1_only` in their names are about HTTP/1 itself; they and those in `NOT_SPOKEN` are
//! filtered out, not counted.

use std::path::Path;

use crate::{run, test};

/// The files of tests in `crates/hob/tests`.
const FEATURES: &[&str] = &[
    "access",
    "after_steps",
    "auth",
    "ban",
    "bandwidth",
    "bodies",
    "cache",
    "cgi",
    "codings",
    "concurrency",
    "cors",
    "country",
    "fastcgi",
    "files",
    "forward_auth",
    "hosting",
    "hosts",
    "jwt",
    "lines",
    "page",
    "pam",
    "proxy",
    "rate",
    "redirect",
    "resident",
    "respond",
    "rewrite",
    "running",
    "scgi",
    "try",
    "uwsgi",
    "warm",
    "watch",
    "when",
];

/// Files of these whose tests look at their own connection to the server, or where it comes from.
const OF_CONNECTIONS: &[&str] = &[
    "access",
    "auth",
    "ban",
    "bandwidth",
    "concurrency",
    "country",
    "jwt",
    "rate",
    "running",
    "watch",
    "when",
];

/// Parts of the names of tests that see that another server stands before theirs: it has a `Server`
/// field, compression and methods of its own, tells who asks, and sends paths without dot segments.
const PASSED_ON: &[&str] = &[
    "as_many_ask_at_a_time",
    "encoded_slash_comes_to_a_program",
    "fallback_that_is_a_program_runs_with_all",
    "fields_of_a_route_are_set_and_removed",
    "fixed_answer_has_its_status",
    "fixed_answer_is_compressed",
    "header_rules_hold",
    "methods_that_do_not_read",
    "slashes_behind_a_program_stay",
    "status_fields_and_bodies_are_the_scripts_own",
    "variables_are_those_of_the_rfc",
    "variables_of_one_request",
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
        return Err("usage: cargo xtask over tls|h2|h3|proxy|proxy-h2 [NAME]...".to_string());
    };
    if !["tls", "h2", "h3", "proxy", "proxy-h2"].contains(&protocol.as_str()) {
        return Err(format!(
            "over {protocol:?}? It is tls, h2, h3, proxy or proxy-h2"
        ));
    }
    run::build(root)?;
    let is_proxy = protocol.starts_with("proxy");
    let files = FEATURES
        .iter()
        .filter(|file| !(is_proxy && OF_CONNECTIONS.contains(file)));
    let selection: Vec<&str> = files.flat_map(|file| ["--test", file]).collect();
    let programs = test::programs(root, &selection)?;
    // Whoever names a test wants it.
    let not_spoken = NOT_SPOKEN.iter().filter(|_| names.is_empty());
    let passed_on = PASSED_ON.iter().filter(|_| is_proxy);
    let skipped = ["h1_only"].iter().chain(not_spoken).chain(passed_on);
    let mut tests = vec!["--show-output"];
    tests.extend(names.iter().map(String::as_str));
    tests.extend(skipped.flat_map(|name| ["--skip", name]));
    test::run_all(programs, &tests, &[("HOB_TEST_OVER", protocol)])
}
