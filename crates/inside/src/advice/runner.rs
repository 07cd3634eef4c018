//! Who runs a script: an interpreter, by the config or by the script's first line, or nobody.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hob_config::program::resolve;
use hob_config::{self as config, Language};
use hob_keeper::process::bare;
use hob_keeper::shebang::{Interpreter, LINE_BYTES_MAX, Shebang, shebang};
use hob_server::handle::cgi::find::interpreter_of;
use hob_server::handle::cgi::{Cgi, Runs};

/// Who runs a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// This interpreter, started for each request.
    Interpreter(PathBuf),
    /// This interpreter, which is kept: it is forked for each request.
    Forked(PathBuf),
    /// This interpreter, with options that the script's first line gives it: it is not forked.
    WithOptions(PathBuf),
    /// It is a program of its own.
    Itself,
}

impl Runner {
    /// What is started to see what a start costs.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Runner::Interpreter(path) | Runner::Forked(path) | Runner::WithOptions(path) => path,
            Runner::Itself => Path::new(std::str::from_utf8(bare::NOTHING).unwrap_or("/bin/true")),
        }
    }

    /// Its language, if scripts in it can be forked.
    pub(crate) fn language(&self) -> Option<Language> {
        match self {
            Runner::Interpreter(path) | Runner::Forked(path) => {
                Language::of_interpreter(path.to_str()?)
            }
            Runner::WithOptions(_) | Runner::Itself => None,
        }
    }

    /// What people call it.
    pub(crate) fn name(&self) -> String {
        let file = match self {
            Runner::Interpreter(path) | Runner::Forked(path) | Runner::WithOptions(path) => {
                path.file_name().unwrap_or_default()
            }
            Runner::Itself => return "a program".to_owned(),
        };
        file.to_string_lossy().into_owned()
    }
}

/// Finds out who runs a file of a handler. May wait for a disk.
///
/// # Errors
/// Why that cannot be told, in words.
pub(crate) fn runner_of(cgi: &Cgi, file: &[u8]) -> Result<Runner, String> {
    let search = search_path(cgi);
    if let Some(warm) = &cgi.settings.warm {
        let kept = resolve(&warm.interpreter, &search)?;
        let own = started_instead(&path_of(file), &kept, &search);
        return Ok(own.unwrap_or(Runner::Forked(kept)));
    }
    let configured = match &cgi.runs {
        Runs::Folder(folder) => {
            let index = interpreter_of(&folder.interpreters, file);
            index.map(|index| &folder.interpreters[index])
        }
        Runs::Script(script) => script.interpreter.as_ref(),
        Runs::Command(_) => None,
        Runs::Captured(_) => {
            let text = "programs in folders of many accounts are not looked at";
            return Err(text.to_owned());
        }
    };
    if let Some(word) = configured.and_then(|one| one.words.first()) {
        return Ok(Runner::Interpreter(path_of(word)));
    }
    let path = path_of(file);
    let begin = begin_of(&path).map_err(|error| format!("{} {error}", path.display()))?;
    let Some(said) = shebang(&begin) else {
        // An interpreter that a config names with its script as an argument, perhaps.
        return Ok(match is_known_interpreter(file) {
            true => Runner::Interpreter(path),
            false => Runner::Itself,
        });
    };
    by_first_line(&said, &search)
}

fn by_first_line(said: &Shebang<'_>, search: &str) -> Result<Runner, String> {
    let found = match said.interpreter {
        Interpreter::Path(path) => path_of(path),
        Interpreter::Name(name) => resolve(&String::from_utf8_lossy(name), search)?,
    };
    Ok(match said.has_options {
        true => Runner::WithOptions(found),
        false => Runner::Interpreter(found),
    })
}

/// Who runs a file of a warm route that is not forked: one that the system would start with
/// something else than the kept interpreter, or with options. The hosts decide in nearly the same
/// way; what they start by themselves for other reasons is told as forked.
fn started_instead(file: &Path, kept: &Path, search: &str) -> Option<Runner> {
    let is_executable = |found: Metadata| found.permissions().mode() & 0o111 != 0;
    if !std::fs::metadata(file).is_ok_and(is_executable) {
        return None;
    }
    let begin = begin_of(file).ok()?;
    if begin.starts_with(b"\x7fELF") {
        return Some(Runner::Itself);
    }
    let own = by_first_line(&shebang(&begin)?, search).ok()?;
    let whole = |path: &Path| std::fs::canonicalize(path).ok();
    let is_kept = matches!(&own, Runner::Interpreter(path) if whole(path) == whole(kept));
    (!is_kept).then_some(own)
}

/// It is an interpreter whose bare start can be measured.
fn is_known_interpreter(file: &[u8]) -> bool {
    bare::name(file) != b"true" && bare::arguments(file).is_some()
}

/// The beginning of a file.
fn begin_of(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => "is not there".to_owned(),
        _ => format!("cannot be read by the server: {error}"),
    };
    // A pipe in its place would be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits() as i32);
    let file = options.open(path).map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err("is no file".to_owned());
    }
    let mut begin = Vec::with_capacity(LINE_BYTES_MAX);
    let mut limited = file.take(LINE_BYTES_MAX as u64);
    limited.read_to_end(&mut begin).map_err(cannot)?;
    Ok(begin)
}

/// Where a handler's programs look for others.
fn search_path(cgi: &Cgi) -> String {
    let mut variables = cgi.environment.iter();
    let path = variables.find_map(|variable| variable.strip_prefix(b"PATH="));
    path.map_or_else(
        || config::PATH.to_owned(),
        |path| String::from_utf8_lossy(path).into_owned(),
    )
}

fn path_of(bytes: &[u8]) -> PathBuf {
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_looked_at_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(begin_of(&fifo), Err("is no file".to_owned()));
        let missing = folder.path().join("missing");
        assert_eq!(begin_of(&missing), Err("is not there".to_owned()));
        assert_eq!(Runner::Itself.path(), Path::new("/bin/true"));
    }

    #[test]
    fn a_warm_route_does_not_fork_what_the_system_starts_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Path::new("/bin/sh");
        let runner = |text: &[u8], mode: u32| {
            let file = folder.path().join("x");
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            started_instead(&file, kept, config::PATH)
        };
        assert_eq!(runner(b"#!/bin/sh\n", 0o755), None);
        assert_eq!(runner(b"#!/usr/bin/env sh\n", 0o755), None);
        assert_eq!(runner(b"echo x\n", 0o755), None);
        assert_eq!(runner(b"#!/usr/bin/env\n", 0o644), None);
        let awk = Runner::Interpreter("/usr/bin/awk".into());
        assert_eq!(runner(b"#!/usr/bin/awk\n", 0o755), Some(awk));
        let with_options = Runner::WithOptions("/bin/sh".into());
        assert_eq!(runner(b"#!/bin/sh -e\n", 0o755), Some(with_options));
        assert_eq!(runner(b"\x7fELF\x02", 0o755), Some(Runner::Itself));
    }
}
