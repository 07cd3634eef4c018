//! The folder of a test, and commands that run in it as the user the servers run as.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::harness::{self, text_of};

/// The day of every commit: pages show times, and object ids hold them.
pub(crate) const DATE: &str = "2024-05-06T07:08:09+00:00";

/// A temporary folder in which programs find nobody's settings but ours.
pub(crate) struct Place {
    inner: harness::Place,
}

impl Place {
    pub(crate) fn new() -> Place {
        let inner = harness::Place::new();
        fs::remove_file(inner.path("site/big.bin")).unwrap();
        inner.folder("home");
        inner.folder("bin");
        Place { inner }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }

    /// The same as text.
    pub(crate) fn shown(&self, name: &str) -> String {
        shown(&self.path(name))
    }

    pub(crate) fn folder(&self, name: &str) {
        self.inner.folder(name);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.inner.write(name, text);
    }

    /// A program for the servers to run.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        self.inner.script(name, text)
    }

    /// A command in this folder, with settings of its own and the same answers everywhere.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.inner.command_of(Path::new(&program));
        command
            .env("HOME", self.path("home"))
            .env("USER", "tester")
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("NO_PROXY", "127.0.0.1");
        command
    }

    /// Runs a command that must succeed; what it printed.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = self.command(program);
        let output = command.args(arguments).output().unwrap();
        succeeded(program, arguments, &output)
    }
}

/// What a command printed, when it succeeded.
pub(crate) fn succeeded(program: &str, arguments: &[&str], output: &Output) -> String {
    let said = text_of(output);
    let status = output.status;
    assert!(
        status.success(),
        "{program} {arguments:?}: {status}: {said}"
    );
    said
}

/// A path as text.
pub(crate) fn shown(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The first of these files that exists; the reason for leaving a test out when none does.
pub(crate) fn installed(name: &str, files: &[&str]) -> Option<PathBuf> {
    let found = files.iter().map(PathBuf::from).find(|file| file.exists());
    if found.is_none() {
        println!("skipped: {name} is not installed");
    }
    found
}
