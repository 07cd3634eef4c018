//! `cargo xtask conformance`: other people's suites, run against the welcome example.
//!
//! A suite is a folder of conformance/ with a `run` that takes the server's address and ends with
//! one count. A suite that is not installed and cannot be says so and counts as skipped.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::examples::folders_of;
use crate::run;
use crate::served::Served;
use crate::tally::Tally;

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Runs the suites named, or all.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let all = folders_of(&root.join("conformance"))?;
    if let Some(unknown) = arguments.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no suite {unknown:?}; there are {all:?}"));
    }
    let mut sum = Tally::default();
    for name in all
        .iter()
        .filter(|name| arguments.is_empty() || arguments.contains(name))
    {
        println!("conformance/{name}");
        sum += match suite(root, name) {
            Ok(tally) => tally,
            Err(message) => {
                println!("{name}: {message}");
                Tally::FAILED
            }
        };
    }
    println!(
        "conformance: {} ran well, {} did not, {} were left out",
        sum.passed, sum.failed, sum.skipped
    );
    Ok(sum.failed == 0)
}

fn suite(root: &Path, name: &str) -> Result<Tally, String> {
    let served = Served::start(root, "welcome")?;
    let log = root
        .join("target/ci")
        .join(format!("conformance-{name}.log"));
    let mut command = Command::new(root.join("conformance").join(name).join("run"));
    let finished = run::shown(command.arg(&served.url).current_dir(root), &log, LIMIT)?;
    let mut tally = Tally::of_text(&finished.text);
    if !finished.is_success && tally.failed == 0 {
        println!("{name}: `run` did not succeed, yet it counts no failure");
        tally += Tally::FAILED;
    }
    served
        .stop()
        .map_err(|message| format!("afterwards {message}"))?;
    Ok(tally)
}
