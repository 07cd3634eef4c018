//! `cargo xtask fuzz [SECONDS]`: every fuzz target for a while.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::run;
use crate::tally::TestTally;

const SECONDS: u64 = 60;

/// Building with sanitizers takes its time, the first time.
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// Runs the targets one after the other.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let seconds = match arguments {
        [] => SECONDS,
        [seconds] => seconds
            .parse()
            .map_err(|_| format!("{seconds:?} is not a number of seconds"))?,
        _ => return Err("usage: cargo xtask fuzz [SECONDS]".to_string()),
    };
    let targets = targets(root)?;
    find_tools()?;
    let mut sum = TestTally::default();
    for target in targets {
        println!("fuzz: {target} for {seconds} seconds");
        let log = root.join("target/ci").join(format!("fuzz-{target}.log"));
        // `cargo` by name: rustup's own understands `+nightly`, the one that runs us does not.
        let mut command = Command::new("cargo");
        command
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("RUSTFLAGS")
            .current_dir(root);
        command.args(["+nightly", "fuzz", "run", &target, "--"]);
        command.arg(format!("-max_total_time={seconds}"));
        let limit = BUILD_LIMIT + Duration::from_secs(seconds);
        sum += TestTally::of_check(run::shown(&mut command, &log, limit)?.is_success);
    }
    println!("{sum}");
    Ok(sum.is_good())
}

fn targets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/targets");
    let entries =
        fs::read_dir(&folder).map_err(|_| "there is no folder fuzz/targets".to_string())?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut targets: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_string))
        .collect();
    targets.sort();
    Ok(targets)
}

fn find_tools() -> Result<(), String> {
    let version = |arguments: &[&str]| {
        run::succeeds(
            Command::new("cargo")
                .env_remove("RUSTUP_TOOLCHAIN")
                .args(arguments),
        )
    };
    let mut missing = Vec::new();
    if !version(&["+nightly", "--version"]) {
        missing.push("a nightly toolchain (`rustup toolchain install nightly --profile minimal`)");
    }
    if !version(&["fuzz", "--version"]) {
        missing.push("cargo-fuzz (`cargo install cargo-fuzz`)");
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "fuzzing needs {}; neither is installed by `make setup`",
        missing.join(" and ")
    ))
}
