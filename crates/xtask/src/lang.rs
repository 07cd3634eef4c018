//! `cargo xtask lang [LANGUAGE]...`: builds and tests the folders of `lang/`, each by its own
//! `check`, with the program and the library of this workspace.
//!
//! A `check` prints what it does, then one line that counts: `N passed, M failed, K skipped`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::native;
use crate::run;

/// Runs the checks of these languages, or of all.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let known = languages(root)?;
    if let Some(unknown) = arguments.iter().find(|name| !known.contains(name)) {
        return Err(format!("lang/{unknown}/check is not there: {known:?} are"));
    }
    let wanted = if arguments.is_empty() {
        &known[..]
    } else {
        arguments
    };
    run::build(root)?;
    let target = native::target_folder()?.join("debug");
    native::name_library(root, &target)?;
    let mut is_good = true;
    for language in wanted {
        if arguments.len() != 1 {
            println!("-- {language}");
        }
        let check = root.join("lang").join(language).join("check");
        let status = with_surroundings(Command::new(&check), root, &target).status();
        let status = status.map_err(|error| format!("starting {}: {error}", check.display()))?;
        is_good &= status.success();
    }
    Ok(is_good)
}

/// The folders that have a check.
fn languages(root: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root.join("lang")).map_err(|error| format!("lang: {error}"))?;
    let entries = entries.filter_map(Result::ok);
    let with_check = entries.filter(|entry| entry.path().join("check").is_file());
    let mut names: Vec<String> = with_check
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Says where the program, the library and its header are, which Python is meant, and which ruff:
/// the one that `make setup` took.
fn with_surroundings(mut check: Command, root: &Path, target: &Path) -> Command {
    let include = root.join("crates/libhob/include");
    check
        .stdin(Stdio::null())
        .env("HOB", target.join("hob"))
        .env("HOB_LIBRARY", target.join("libhob.so.1"))
        .env("HOB_INCLUDE", &include)
        .env("MYPY_CACHE_DIR", target.join("mypy"))
        .env("RUFF", root.join("target/ruff/bin/ruff"))
        .env("CFLAGS", format!("-I{}", include.display()))
        .env(
            "LIBS",
            format!("-L{0} -lhob -Wl,-rpath,{0}", target.display()),
        );
    // The one that hob finds, which accounts without rights can run.
    let python = PathBuf::from("/usr/bin/python3");
    if python.exists() && std::env::var_os("PYTHON").is_none() {
        check.env("PYTHON", python);
    }
    check
}
