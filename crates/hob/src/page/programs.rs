//! Programs that a run from a terminal starts: those that `--program` names, as whoever runs the
//! command, without a shell. They are told what a server tells them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hob_keeper::called::{self, CalledProgram};
use hob_page::fault::{FunctionFault, code};
use hob_page::host::{PagePrograms, ProgramAnswer, ProgramCall};
use hob_page::program::{check_argument, program_of, set_values, variables};

use crate::CommandFailure;

use super::failure;

/// What a program may print for a call, in bytes; a server's default.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// Those that may be started.
pub(super) struct TerminalPrograms {
    /// What pages call them: the names of their files.
    names: Vec<String>,
    files: Vec<PathBuf>,
}

impl TerminalPrograms {
    /// Those of the command line.
    ///
    /// # Errors
    /// One is not there.
    pub(super) fn of(programs: &[PathBuf]) -> Result<TerminalPrograms, CommandFailure> {
        let mut all = TerminalPrograms {
            names: Vec::new(),
            files: Vec::new(),
        };
        for file in programs {
            // What has no slash would be looked for among the system's.
            let whole = std::fs::canonicalize(file);
            let whole = whole
                .map_err(|error| failure(2, format!("--program: {}: {error}", file.display())))?;
            let name = file.file_name().unwrap_or_default();
            all.names.push(name.to_string_lossy().into_owned());
            all.files.push(whole);
        }
        Ok(all)
    }

    fn find(&self, word: &str) -> Result<&Path, FunctionFault> {
        let found = program_of(&self.names, word);
        match found.filter(|(_, rest)| rest.is_empty()) {
            Some((at, _)) => Ok(&self.files[at]),
            None => Err(FunctionFault::new(
                -1,
                format!(
                    "`hob page run` starts no program that it is not given: `--program FILE` gives \
                     it {word:?}, which a server runs with the rights of its route"
                ),
            )),
        }
    }
}

impl PagePrograms for TerminalPrograms {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, FunctionFault> {
        let Some((word, arguments)) = call.arguments.split_first() else {
            return Err(FunctionFault::new(code::NO_FILE, "%EXEC names no program"));
        };
        let word = word.to_str();
        let file = self.find(&word)?;
        for argument in arguments {
            check_argument(argument.bytes())?;
        }
        let arguments: Vec<&OsStr> = arguments
            .iter()
            .map(|argument| OsStr::from_bytes(argument.bytes()))
            .collect();
        let told = variables(call)?;
        let mut told: Vec<(String, Vec<u8>)> = told
            .into_iter()
            .map(|(name, value)| (format!("DTW_{name}"), value))
            .collect();
        told.push(("DTWPIPE".to_owned(), b"/proc/self/fd/0".to_vec()));
        let told: Vec<(&OsStr, &OsStr)> = told
            .iter()
            .map(|(name, value)| (OsStr::new(name), OsStr::from_bytes(value)))
            .collect();
        let ran = called::run(&CalledProgram {
            file,
            arguments: &arguments,
            variables: &told,
            bytes_max: OUTPUT_BYTES_MAX,
        });
        let ran = ran.map_err(|error| {
            FunctionFault::new(code::NOT_RUN, format!("{}: {error}", file.display()))
        })?;
        Ok(ProgramAnswer {
            output: ran.printed,
            outs: set_values(&ran.values),
            code: ran.code.into(),
        })
    }
}
