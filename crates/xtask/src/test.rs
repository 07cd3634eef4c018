//! `cargo xtask test`: the tests of the workspace, several programs at once.
//!
//! Cargo runs one test program after the other, and the slowest tests of each, which wait for
//! servers and clocks, keep all others waiting while the CPUs rest. Here as many programs run at
//! once as there are CPUs; what one printed is shown when it has ended.

use std::collections::VecDeque;
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use crate::run;

/// How many tests of a program run at once, as Rust's test programs read it.
const THREADS: &str = "RUST_TEST_THREADS";

/// Builds the test programs of the workspace, runs them, and has cargo test the examples of the
/// docs. All that fails is shown, not only the first.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask test".to_string());
    }
    let programs = programs(root, &[])?;
    let have_passed = run_all(programs, &["--show-output"], &[])?;
    let mut examples = run::cargo();
    examples.args(["test", "--workspace", "--locked", "--no-fail-fast", "--doc"]);
    let status = examples.current_dir(root).status();
    let status = status.map_err(|error| format!("starting cargo: {error}"))?;
    Ok(have_passed && status.success())
}

/// A test program, and what cargo would run it with.
pub(crate) struct TestProgram {
    /// The file it was built of, from its package.
    source: String,
    executable: PathBuf,
    /// The folder of its package.
    folder: PathBuf,
}

/// Builds the test programs that cargo's `selection` names; all of the workspace without one.
pub(crate) fn programs(root: &Path, selection: &[&str]) -> Result<Vec<TestProgram>, String> {
    let mut build = run::cargo();
    build
        .args(["test", "--workspace", "--locked", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .args(selection)
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = build.output();
    let output = output.map_err(|error| format!("starting cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build; cargo says why".to_string());
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let programs: Vec<TestProgram> = messages.lines().filter_map(test_program).collect();
    match programs.is_empty() {
        true => Err("cargo built no test program".to_string()),
        false => Ok(programs),
    }
}

/// The test program that a message of cargo's is about.
fn test_program(message: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(message).ok()?;
    if !message["profile"]["test"].as_bool()? {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let source = Path::new(message["target"]["src_path"].as_str()?);
    Some(TestProgram {
        source: source.strip_prefix(folder).ok()?.display().to_string(),
        executable: PathBuf::from(message["executable"].as_str()?),
        folder: folder.to_owned(),
    })
}

/// Runs the programs with these arguments and variables; true when all tests of all passed.
pub(crate) fn run_all(
    programs: Vec<TestProgram>,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<bool, String> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let queue = Mutex::new(VecDeque::from(programs));
    let next = || {
        queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    let worker = || -> Result<bool, String> {
        let mut have_passed = true;
        while let Some(program) = next() {
            let mut test = Command::new(&program.executable);
            test.args(arguments)
                .envs(variables.iter().copied())
                .env("CARGO_MANIFEST_DIR", &program.folder)
                .current_dir(&program.folder);
            if std::env::var_os(THREADS).is_none() {
                test.env(THREADS, (cpus + 1).to_string());
            }
            have_passed &= show(&program, &mut test)?;
        }
        Ok(have_passed)
    };
    let passed = thread::scope(|scope| {
        let workers: Vec<_> = (0..cpus).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(|worker| worker.join());
        ended.collect::<Vec<_>>()
    });
    let mut have_passed = true;
    for worker in passed {
        have_passed &= worker.map_err(|_| "a thread that runs tests panicked")??;
    }
    Ok(have_passed)
}

/// Runs a program, then shows all it printed in one piece.
fn show(program: &TestProgram, test: &mut Command) -> Result<bool, String> {
    let TestProgram {
        source, executable, ..
    } = program;
    let failed = |error| format!("{}: {error}", executable.display());
    // Of one that hangs this is all that is shown.
    println!("     Starting {source}");
    let output = test.stdin(Stdio::null()).output().map_err(failed)?;
    let mut shown = format!("     Running {source} ({})\n", executable.display()).into_bytes();
    shown.extend(&output.stdout);
    shown.extend(&output.stderr);
    if !output.status.success() {
        let line = format!("{source} ended with {}\n", output.status);
        shown.extend(line.as_bytes());
    }
    let mut screen = std::io::stdout().lock();
    screen.write_all(&shown).map_err(failed)?;
    Ok(output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_messages() {
        let message = |is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/h/crates/x/Cargo.toml",
                "target":{{"src_path":"/h/crates/x/tests/a.rs"}},"profile":{{"test":{is_test}}},
                "executable":{executable}}}"#
            )
        };
        let found = test_program(&message(true, r#""/t/a-1""#)).unwrap();
        assert_eq!(found.source, "tests/a.rs");
        assert_eq!(found.executable, Path::new("/t/a-1"));
        assert_eq!(found.folder, Path::new("/h/crates/x"));
        for other in [
            message(false, r#""/t/a-1""#),
            message(true, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "no JSON".to_owned(),
        ] {
            assert!(test_program(&other).is_none(), "{other}");
        }
    }
}
