//! `cargo xtask teapot`: shows that a new handler is a folder, and a line in the list.
//!
//! A copy of the sources gets a handler `teapot`, from `crates/xtask/teapot`: its folder, its
//! module and its line. The server must compile with it as it stands: nothing else has to know it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::run::{self, Scratch};
use crate::tally::TestTally;

/// Of a machine that has nothing of it yet.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// The file with the list, and a line of it behind which the new one stands.
const LIST: &str = "crates/trace/src/record.rs";
const LAST: &str = "            metrics Metrics = 7;\n";
const LINE: &str = "            /// A teapot.\n            teapot Teapot = 16;\n";

/// The file with the modules, and one of them.
const MODULES: &str = "crates/server/src/handle/mod.rs";
const SCRIPT: &str = "pub mod script;\n";
const MODULE: &str = "pub mod teapot;\n";

/// Checks the copy. What was compiled of other people's packages is used again.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask teapot".to_string());
    }
    let copy = Scratch::new("teapot")?;
    copy_tree(root, &copy.0).map_err(|error| format!("copying the sources: {error}"))?;
    let from = root.join("crates/xtask/teapot");
    let to = copy.0.join("crates/server/src/handle/teapot");
    copy_folder(&from, &to).map_err(|error| format!("copying {}: {error}", from.display()))?;
    insert(&copy.0.join(LIST), LAST, LINE)?;
    insert(&copy.0.join(MODULES), SCRIPT, MODULE)?;
    let mut check = run::cargo();
    // All of the workspace: with the features of one crate alone, everything below it would be
    // compiled anew.
    check
        .args([
            "check",
            "--workspace",
            "--locked",
            "--lib",
            "--example",
            "over",
        ])
        .env("CARGO_TARGET_DIR", root.join("target"))
        .current_dir(&copy.0);
    let log = root.join("target/ci/teapot.log");
    let sum = TestTally::of_check(run::shown(&mut check, &log, LIMIT)?.is_success);
    // Cargo would take what it has just compiled for what stands here.
    for name in [LIST, MODULES] {
        let file = fs::File::options().append(true).open(root.join(name));
        let touched = file.and_then(|file| file.set_modified(SystemTime::now()));
        touched.map_err(|error| format!("{name}: {error}"))?;
    }
    println!("{sum}");
    Ok(sum.is_good())
}

/// The crates as a copy, all else at the top as links to what is there.
fn copy_tree(root: &Path, copy: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let (name, to) = (entry.file_name(), copy.join(entry.file_name()));
        match name.to_str() {
            Some("target" | ".git") => {}
            Some("crates") => copy_folder(&entry.path(), &to)?,
            _ => symlink(entry.path(), to)?,
        }
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Puts a line behind another one of a file.
fn insert(path: &Path, behind: &str, line: &str) -> Result<(), String> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("reading {name}: {error}"))?;
    let new = text.replacen(behind, &format!("{behind}{line}"), 1);
    if new == text {
        return Err(format!("{name} has no line {:?}", behind.trim()));
    }
    fs::write(path, new).map_err(|error| format!("writing {name}: {error}"))
}
