//! `cargo xtask pages`: the admin pages' own checks: types, lint, format and unit tests, then every
//! page and action in a real browser before the program of this workspace.
//!
//! `make pages` installs what they need. Without that, or without a browser, they are skipped, in
//! words.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::native;
use crate::run::{self, Finished};
use crate::tally::TestTally;

const BROWSER: &str = "/usr/bin/chromium";
/// How long one of npm's scripts may take; the browser's take two minutes on an idle machine.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Runs the checks; the last line counts them.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask pages".to_string());
    }
    let ui = root.join("ui");
    if !ui.join("dist/index.html").is_file() || !ui.join("node_modules").is_dir() {
        println!("the pages are not built: `make pages` says why");
        println!("{}", TestTally::SKIPPED);
        return Ok(true);
    }
    let mut sum = TestTally::default();
    for script in ["typecheck", "lint", "layout"] {
        sum += TestTally::of_check(npm(&ui, &["run", script])?.0);
    }
    sum += vitest(npm(&ui, &["run", "unit"])?);
    if Path::new(BROWSER).exists() {
        run::build(root)?;
        sum += vitest(npm(&ui, &["run", "browser"])?);
    } else {
        println!("there is no {BROWSER} to try the pages with");
        sum += TestTally::SKIPPED;
    }
    println!("{sum}");
    Ok(sum.is_good())
}

/// Whether it went well, and what it printed, which is shown.
fn npm(ui: &Path, arguments: &[&str]) -> Result<(bool, String), String> {
    let hob = native::target_folder()?.join("debug/hob");
    // What `make pages` took where the system has no Node.js, or an old one.
    let own = ui.with_file_name("target/node/bin");
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(own).chain(std::env::split_paths(&usual));
    let path = std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?;
    let mut npm = Command::new("npm");
    npm.env("PATH", path);
    npm.args(["--silent"]).args(arguments).current_dir(ui);
    npm.env("HOB", hob).env("NO_COLOR", "1");
    let log = native::target_folder()?.join("ci/npm");
    let Finished { is_success, text } = run::shown(&mut npm, &log, LIMIT)?;
    Ok((is_success, text))
}

/// The count of vitest's line `Tests  1 failed | 66 passed (67)`; one failure where there is none.
fn vitest((is_success, text): (bool, String)) -> TestTally {
    let mut tally = TestTally::default();
    let line = text
        .lines()
        .map(str::trim)
        .find_map(|line| line.strip_prefix("Tests "));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    for pair in words.windows(2) {
        let Ok(count) = pair[0].parse::<u64>() else {
            continue;
        };
        match pair[1] {
            "passed" => tally.passed += count,
            "failed" => tally.failed += count,
            "skipped" | "todo" => tally.skipped += count,
            _ => {}
        }
    }
    if tally == TestTally::default() || !is_success && tally.failed == 0 {
        tally += TestTally::FAILED;
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(is_success: bool, text: &str) -> [u64; 3] {
        let tally = vitest((is_success, text.to_string()));
        [tally.passed, tally.failed, tally.skipped]
    }

    #[test]
    fn counts_of_vitest_are_read() {
        let text = " Test Files  1 failed | 7 passed (8)\n      Tests  1 failed | 66 passed (67)\n";
        assert_eq!(counted(false, text), [66, 1, 0]);
        assert_eq!(counted(true, "      Tests  95 passed (95)\n"), [95, 0, 0]);
        assert_eq!(counted(false, "      Tests  95 passed (95)\n"), [95, 1, 0]);
        assert_eq!(counted(true, "nothing was run"), [0, 1, 0]);
    }
}
