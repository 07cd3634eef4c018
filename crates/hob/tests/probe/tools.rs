//! The languages that are here: their versions, and their native parts, built in a test's folder.
//!
//! Everything is looked for where hob looks for it, not on the tester's own PATH.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::library::root;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a language is called with its version, as the page says it.
pub(crate) fn version(language: &str) -> String {
    let (program, arguments): (&str, &[&str]) = match language {
        "C" => ("cc", &["-dumpfullversion"]),
        "Python" => (
            "python3",
            &["-c", "import platform; print(platform.python_version())"],
        ),
        "Perl" => ("perl", &["-e", "printf '%vd', $^V"]),
        _ => ("readlink", &["-f", "/bin/sh"]),
    };
    let said = said(program, arguments);
    match language {
        "C" => format!("GCC {said}"),
        "Shell" => format!("{said} as sh"),
        _ => format!("{language} {said}"),
    }
}

/// Builds Python's native part, `_native.abi3.so`; or says why it cannot be built.
pub(crate) fn python_helper(folder: &Path) -> Result<(), String> {
    let made = folder.join("_native.abi3.so");
    build("python3", "lang/python/build_native.py", &made)
}

/// Builds Perl's native part, `Native.so`; or says why it cannot be built.
pub(crate) fn perl_part(folder: &Path) -> Result<(), String> {
    let parts = folder.join("perl");
    std::fs::create_dir_all(&parts).unwrap();
    build("perl", "lang/perl/build_native.pl", &parts)?;
    // With it came the part of warm hosts.
    let is_its = |path: &PathBuf| !path.to_string_lossy().ends_with("-warm.so");
    let made = std::fs::read_dir(&parts).unwrap();
    let mut made = made.map(|entry| entry.unwrap().path()).filter(is_its);
    std::fs::rename(made.next().unwrap(), folder.join("Native.so")).unwrap();
    Ok(())
}

/// Runs what a language builds its own part with.
fn build(interpreter: &str, builder: &str, made: &Path) -> Result<(), String> {
    const CANNOT: i32 = 2;
    let output = Command::new(interpreter)
        .arg(root().join(builder))
        .arg(made)
        .env("PATH", PATH)
        .output()
        .unwrap();
    if output.status.code() == Some(CANNOT) {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    assert!(output.status.success(), "{builder}: {output:?}");
    Ok(())
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", PATH)
        .output()
        .unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
