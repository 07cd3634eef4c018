//! Counts of tests, read from what test runners print: `cargo xtask tally FILE...`.
//!
//! Two kinds of line count: cargo's `test result: ok. 3 passed; 0 failed; 1 ignored; ...`, and
//! closing lines such as `3 passed, 0 failed, 1 skipped`, as our scripts and pytest print them.

use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::Path;

/// How many tests passed, failed, or could not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// Prints the sum of all logs; false when something failed or nothing ran.
pub(crate) fn command(_root: &Path, arguments: &[String]) -> Result<bool, String> {
    if arguments.is_empty() {
        return Err("usage: cargo xtask tally FILE...".to_string());
    }
    let mut sum = Tally::default();
    for path in arguments {
        let text = fs::read(path).map_err(|error| format!("reading {path}: {error}"))?;
        sum += Tally::of_text(&String::from_utf8_lossy(&text));
    }
    println!("{sum}");
    Ok(sum.is_good())
}

impl Tally {
    pub(crate) const PASSED: Tally = Tally {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    pub(crate) const FAILED: Tally = Tally {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
    pub(crate) const SKIPPED: Tally = Tally {
        passed: 0,
        failed: 0,
        skipped: 1,
    };

    /// One check that went well or not.
    pub(crate) fn of_check(went_well: bool) -> Tally {
        if went_well {
            Tally::PASSED
        } else {
            Tally::FAILED
        }
    }

    /// The sum of all result lines of a log.
    pub(crate) fn of_text(text: &str) -> Tally {
        let mut sum = Tally::default();
        for line in text.lines() {
            sum += Tally::of_line(line).unwrap_or_default();
        }
        sum
    }

    /// Something ran and nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    fn of_line(line: &str) -> Option<Tally> {
        let line = line.trim().trim_matches('=').trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            let (_, counts) = result.split_once(". ")?;
            return Tally::of_items(counts.split("; "));
        }
        Tally::of_items(line.split(", "))
    }

    /// Adds up `3 passed`, `1 failed`, ...; nothing when the first item is not such a count.
    fn of_items<'a>(items: impl Iterator<Item = &'a str>) -> Option<Tally> {
        let mut sum = Tally::default();
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

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
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

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally {
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
        assert_eq!(Tally::of_text(log), tally(8, 2, 1));
    }

    #[test]
    fn closing_lines_of_other_runners_count() {
        let log = "\
redbot: https://example.org 12 notes
6 passed, 0 failed, 1 skipped
==== 2 failed, 5 passed, 1 skipped in 0.31s ====
";
        assert_eq!(Tally::of_text(log), tally(11, 2, 2));
    }

    #[test]
    fn prose_with_numbers_does_not_count() {
        let log = "in 2026, 3 passed by\ntest a::2 passed ... ok\n12 files, 3 passed\n";
        assert_eq!(Tally::of_text(log), tally(0, 0, 0));
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
        assert_eq!(Tally::of_text(&sum.to_string()), sum);
    }
}
