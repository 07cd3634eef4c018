//! What every handler of programs makes of its settings.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use hob_http::HalfClose;

use crate::config::{self, candidates};

/// What it means that a client has sent everything.
pub(crate) fn half_close(route: &config::Route) -> HalfClose {
    match route.half_close {
        config::HalfClose::Cancel => HalfClose::Cancel,
        config::HalfClose::Serve => HalfClose::Serve,
    }
}

/// The file a name of a program means.
pub(crate) fn resolve(name: &str, path: &str) -> Result<PathBuf, String> {
    let is_executable = |file: &PathBuf| {
        let found = std::fs::metadata(file);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = candidates(name, path).into_iter().find(is_executable);
    found.ok_or_else(|| match name.contains('/') {
        true => format!("{name} is no program: it is not there, or not executable"),
        false => format!("there is no program {name:?} in {path}; install it, or write its path"),
    })
}
