//! The shared cases of `lang/probe`, sent to every language in every way it can be run: behind the
//! real server, by a client that sees every byte. What came out is the page
//! `docs/src/reference/matrix.md`, which `UPDATE_GOLDEN=1 cargo test -p hob --test probe` writes.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "probe/asking.rs"]
mod asking;
#[path = "upstream/authority.rs"]
mod authority;
#[path = "probe/cases.rs"]
mod cases;
#[path = "probe/page.rs"]
mod page;
#[path = "probe/site.rs"]
mod site;
#[path = "probe/tools.rs"]
mod tools;
#[path = "probe/ways.rs"]
mod ways;

use site::{Outcome, run};

#[test]
fn every_case_in_c() {
    assert_passed("C");
}

#[test]
fn every_case_in_python() {
    assert_passed("Python");
}

#[test]
fn every_case_in_perl() {
    assert_passed("Perl");
}

#[test]
fn every_case_in_the_shell() {
    assert_passed("Shell");
}

#[test]
fn the_page_shows_what_a_run_gives() {
    page::compare(run());
}

/// No case failed in any way of running this language.
fn assert_passed(language: &str) {
    let mut failures = Vec::new();
    for tried in run().iter().filter(|tried| tried.way.language == language) {
        let name = tried.way.to_string();
        if let Some(reason) = &tried.missing {
            println!("skipped: {name}: {reason}");
        }
        for (case, outcome) in &tried.outcomes {
            if let Outcome::Failed(why) = outcome {
                failures.push(format!("{name}: {case}: {why}"));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
