//! Counts of tests, read from what test runners print: `cargo xtask tally FILE...`.
//!
//! Two kinds of line count: cargo's `test result: ok. 3 passed; 0 failed; 1 ignored; ...`, and
//! closing lines such as `3 passed, 0 failed, 1 skipped`, as our scripts and pytest print them.
//! A test of cargo's that prints `skipped: REASON` and passes could not run, or not all of it: with
//! `--show-output` it counts as skipped.

use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::Path;

/// How many tests passed, failed, or could not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestTally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// Prints the sum of all logs; false when something failed or nothing ran.
pub(crate) fn command(_root: &Path, arguments: &[String]) -> Result<bool, String> {
    if arguments.is_empty() {
        return Err("usage: cargo xtask tally FILE...".to_string());
    }
    let mut sum = TestTally::default();
    for path in arguments {
        let text = fs::read(path).map_err(|error| format!("reading {path}: {error}"))?;
        sum += TestTally::of_text(&String::from_utf8_lossy(&text));
    }
    println!("{sum}");
    Ok(sum.is_good())
}

impl TestTally {
    pub(crate) const PASSED: TestTally = TestTally {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    pub(crate) const FAILED: TestTally = TestTally {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
    pub(crate) const SKIPPED: TestTally = TestTally {
        passed: 0,
        failed: 0,
        skipped: 1,
    };

    /// One check that went well or not.
    pub(crate) fn of_check(went_well: bool) -> TestTally {
        if went_well {
            TestTally::PASSED
        } else {
            TestTally::FAILED
        }
    }

    /// The sum of all result lines of a log.
    pub(crate) fn of_text(text: &str) -> TestTally {
        let mut sum = TestTally::default();
        for line in outside_outputs(text) {
            sum += TestTally::of_line(line).unwrap_or_default();
        }
        let skipped = skipped(text).len() as u64;
        sum.passed = sum.passed.saturating_sub(skipped);
        sum.skipped += skipped;
        sum
    }

    /// Something ran and nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    fn of_line(line: &str) -> Option<TestTally> {
        let line = line.trim().trim_matches('=').trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            let (_, counts) = result.split_once(". ")?;
            return TestTally::of_items(counts.split("; "));
        }
        TestTally::of_items(line.split(", "))
    }

    /// Adds up `3 passed`, `1 failed`, ...; nothing when the first item is not such a count.
    fn of_items<'a>(items: impl Iterator<Item = &'a str>) -> Option<TestTally> {
        let mut sum = TestTally::default();
        for (index, item) in items.enumerate() {
            let mut words = item.split_whitespace();
            let count = words.next().and_then(|word| word.parse::<u64>().ok());
            match (count, words.next()) {
                (Some(count), Some("passed")) => sum.passed += count,
                (Some(count), Some("failed" | "error" | "errors")) => sum.failed += count,
                (Some(count), Some("skipped" | "ignored")) => sum.skipped += count,
                _ if index == 0 => return None,
                _ => {}
            }
        }
        Some(sum)
    }
}

/// Why tests could not run: those of cargo's, and those that other runners tell of themselves.
pub(crate) fn reasons(text: &str) -> Vec<String> {
    let told = outside_outputs(text).filter_map(|line| line.strip_prefix("skipped: "));
    let told = told.map(str::to_string);
    skipped(text).into_iter().chain(told).collect()
}

/// The tests of cargo's that could not run, with the reason: `NAME: REASON`.
fn skipped(text: &str) -> Vec<String> {
    let mut names = vec![];
    let mut lines = vec![];
    for (place, line) in placed(text) {
        let (Some(OutputOwner::OfPassed(name)), Some(reason)) =
            (place, line.strip_prefix("skipped: "))
        else {
            continue;
        };
        if names.last() != Some(&name) {
            names.push(name);
            lines.push(format!("{name}: {}", reason.trim_end()));
        }
    }
    lines
}

/// What the tests of cargo's that failed said at their end, each under its name; of another runner,
/// or of none, the end of all it said.
pub(crate) fn failures(text: &str) -> Vec<String> {
    let mut names: Vec<&str> = vec![];
    let mut said: Vec<Vec<&str>> = vec![];
    for (place, line) in placed(text) {
        let Some(OutputOwner::OfFailed(name)) = place else {
            continue;
        };
        if names.last() != Some(&name) {
            names.push(name);
            said.push(vec![]);
        }
        said.last_mut().expect("a name was pushed").push(line);
    }
    if said.is_empty() {
        said.push(text.lines().collect());
    }
    said.into_iter().map(|lines| end_of(&lines)).collect()
}

/// A failure in one line, of what `failures` told of it: the test, and what the assertion said.
pub(crate) fn in_a_line(failure: &str) -> String {
    const CHARACTERS: usize = 400;
    let mut lines = failure.lines();
    let name = lines.next().unwrap_or_default();
    let panic = lines
        .skip_while(|line| !is_panic(line))
        .take_while(|line| !line.starts_with("stack backtrace:") && !line.starts_with("note: "));
    let said = panic.collect::<Vec<_>>().join(" ");
    let line = format!("{} {said}", name.trim_matches(['-', ' ']));
    line.chars().take(CHARACTERS).collect()
}

/// Whether a line is what Rust says first of a panic.
fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// The first line that is not empty, which is the name; what the assertion said, as a server's log
/// may come after it; and the last lines.
fn end_of(lines: &[&str]) -> String {
    const LINES: usize = 20;
    const OF_PANIC: usize = 8;
    let mut kept: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| !line.is_empty())
        .collect();
    if kept.len() > LINES {
        let last = kept.len() - LINES + 1;
        let panic = kept
            .iter()
            .position(|line| is_panic(line))
            .unwrap_or(last)
            .clamp(1, last);
        let after = (panic + OF_PANIC).min(last);
        kept.drain(after..last);
        kept.drain(1..panic);
    }
    kept.join("\n")
}

/// Whose output a line of cargo's is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputOwner<'a> {
    OfPassed(&'a str),
    OfFailed(&'a str),
}

/// The lines that are cargo's own, not those that a test printed.
fn outside_outputs(text: &str) -> impl Iterator<Item = &str> {
    placed(text)
        .filter(|(place, _)| place.is_none())
        .map(|(_, line)| line)
}

/// Each line with the test that printed it. Cargo shows outputs after the last test of a program,
/// those of passed ones between two lines `successes:`, those of failed ones between `failures:`.
fn placed(text: &str) -> impl Iterator<Item = (Option<OutputOwner<'_>>, &str)> {
    let (mut place, mut is_passed) = (None, false);
    text.lines().map(move |line| {
        let name = line.strip_prefix("---- ");
        let name = name.and_then(|rest| rest.strip_suffix(" stdout ----"));
        match (line, name) {
            ("successes:" | "failures:", _) => (place, is_passed) = (None, line == "successes:"),
            (_, Some(name)) if is_passed => place = Some(OutputOwner::OfPassed(name)),
            (_, Some(name)) => place = Some(OutputOwner::OfFailed(name)),
            _ if line.starts_with("test result: ") => place = None,
            _ => {}
        }
        (place, line)
    })
}

impl AddAssign for TestTally {
    fn add_assign(&mut self, other: TestTally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for TestTally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> TestTally {
        TestTally {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn cargo_results_are_added_up() {
        let log = "\
running 3 tests
test a ... ok
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.00s

test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s
";
        assert_eq!(TestTally::of_text(log), tally(8, 2, 1));
    }

    #[test]
    fn closing_lines_of_other_runners_count() {
        let log = "\
redbot: https://example.org 12 notes
6 passed, 0 failed, 1 skipped
==== 2 failed, 5 passed, 1 skipped in 0.31s ====
";
        assert_eq!(TestTally::of_text(log), tally(11, 2, 2));
    }

    #[test]
    fn test_that_says_that_it_is_skipped_is_not_counted_as_passed() {
        let log = "\
running 3 tests
test a ... ok
test b::c ... ok
test d ... FAILED

successes:

---- a stdout ----
9 passed, 0 failed, 0 skipped
---- b::c stdout ----
skipped: needs root
skipped: needs curl


successes:
    a
    b::c

failures:

---- d stdout ----
skipped: needs root

failures:
    d

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s
";
        assert_eq!(TestTally::of_text(log), tally(1, 1, 1));
        assert_eq!(reasons(log), ["b::c: needs root"]);
        assert_eq!(reasons("skipped: one\n1 skipped\n"), ["one"]);
    }

    #[test]
    fn what_failed_is_told_from_its_end() {
        let log = format!(
            "successes:\n\n---- a stdout ----\nfine\n\nfailures:\n\n---- b::c stdout ----\n{}\n\
             thread 'b::c' panicked at x.rs:1:2:\n\n---- d stdout ----\nshort\n\nfailures:\n    b::c\n    d\n",
            (1..=30)
                .map(|line| line.to_string())
                .collect::<Vec<_>>()
                .join("\n")
        );
        let told = failures(&log);
        assert_eq!(told.len(), 2);
        assert!(
            told[0].starts_with("---- b::c stdout ----\n13\n14\n"),
            "{}",
            told[0]
        );
        assert!(told[0].ends_with("\n30\nthread 'b::c' panicked at x.rs:1:2:"));
        assert_eq!(told[1], "---- d stdout ----\nshort");
        let log = format!(
            "failures:\n\n---- b stdout ----\n1\n\nthread 'b' (7) panicked at x.rs:1:2:\n\
             too few\n{}\n",
            (10..=60)
                .map(|line| line.to_string())
                .collect::<Vec<_>>()
                .join("\n")
        );
        let told = failures(&log);
        let head = "---- b stdout ----\nthread 'b' (7) panicked at x.rs:1:2:\ntoo few\n10\n";
        assert!(told[0].starts_with(head), "{}", told[0]);
        assert!(told[0].ends_with("\n59\n60"), "{}", told[0]);
        assert_eq!(told[0].lines().count(), 28);
        let line = "b stdout thread 'b' (7) panicked at x.rs:1:2: too few 10 11";
        assert!(in_a_line(&told[0]).starts_with(line), "{}", told[0]);
        assert_eq!(failures("one\n\ntwo\n"), ["one\ntwo"]);
    }

    #[test]
    fn prose_with_numbers_does_not_count() {
        let log = "in 2026, 3 passed by\ntest a::2 passed ... ok\n12 files, 3 passed\n";
        assert_eq!(TestTally::of_text(log), tally(0, 0, 0));
    }

    #[test]
    fn nothing_that_ran_is_not_good() {
        assert!(!tally(0, 0, 0).is_good());
        assert!(!tally(0, 0, 9).is_good());
        assert!(!tally(9, 1, 0).is_good());
        assert!(tally(1, 0, 3).is_good());
    }

    #[test]
    fn prints_the_line_that_it_reads() {
        let sum = tally(7, 1, 2);
        assert_eq!(sum.to_string(), "7 passed, 1 failed, 2 skipped");
        assert_eq!(TestTally::of_text(&sum.to_string()), sum);
    }
}
