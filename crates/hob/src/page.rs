//! `hob page`: macro pages checked, run, laid out and made, without a server.
//!
//! `check` says what is wrong, `run` runs a block and `statements` a page of SQL, `format` lays
//! pages out, and `new` makes one for a table, which `schema` reads. `grammar` is for editors.
//! `folder` finds included files, `database` opens what statements go to, `programs` starts those
//! that are named, `host` is the rest of what a run asks for, and `told` says on standard error
//! what happens in it.

mod check;
mod database;
mod folder;
mod format;
mod grammar;
mod host;
mod new;
mod programs;
mod run;
mod schema;
mod statements;
mod told;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hob_page::ini::Ini;
use hob_page::limits::FILE_BYTES_MAX;

use crate::CommandFailure;
use crate::args::{PageCommand, Surroundings};

/// The process that has a driver of ODBC in it. It tells whoever started it what is wrong.
pub(crate) fn run_odbc() -> Result<(), CommandFailure> {
    let place = hob_keeper::beside::take_place(c"hob-odbc");
    let stream = place.map_err(|refusal| failure(refusal.exit_code(), refusal.to_string()))?;
    hob_odbc::process::run(stream).map_err(|error| failure(1, error.to_string()))
}

/// How it is started.
fn start_odbc(
    memory_bytes: u64,
) -> io::Result<(std::process::Child, std::os::unix::net::UnixStream)> {
    hob_keeper::beside::start("odbc", memory_bytes)
}

/// Does what was asked for.
pub(crate) fn run(
    command: &PageCommand,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    match command {
        PageCommand::Check(options) => check::run(options),
        PageCommand::Run(options) => run::run(options, surroundings),
        PageCommand::Fmt(options) => format::run(options),
        PageCommand::New(options) => new::run(options, surroundings),
    }
}

/// The initialization file, and where its relative paths begin.
struct PageIni {
    ini: Ini,
    folder: PathBuf,
}

impl PageIni {
    /// Reads the file, if one was named.
    fn read(path: Option<&Path>) -> Result<PageIni, CommandFailure> {
        let Some(path) = path else {
            return Ok(PageIni {
                ini: Ini::default(),
                folder: PathBuf::new(),
            });
        };
        let text = read(path).map_err(|text| failure(1, text))?;
        let ini = Ini::parse(&path.to_string_lossy(), &text);
        Ok(PageIni {
            ini: ini.map_err(|fault| failure(1, fault.to_string()))?,
            folder: path.parent().unwrap_or(Path::new("")).to_path_buf(),
        })
    }

    /// Folders of INCLUDE_PATH.
    fn include_folders(&self) -> Vec<PathBuf> {
        let paths = self.ini.paths("INCLUDE_PATH").into_iter();
        paths.map(|path| self.folder.join(path)).collect()
    }
}

/// A file's content, or why there is none.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let content = File::open(path).and_then(content);
    content.map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// All of a file, one byte more than a page may have at most: whoever reads it says so.
fn content(file: File) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        let reason = "it is no file with content";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut content)?;
    Ok(content)
}

fn failure(code: u8, text: impl Into<String>) -> CommandFailure {
    CommandFailure {
        code,
        text: text.into(),
    }
}
