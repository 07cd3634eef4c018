//! A program that a command runs to its end, with the command's own rights: for pages that are run
//! from a terminal. Programs of a server are started in `process`.
//!
//! ```text
//!  descriptor 0  a pipe that the program may open for writing by its name: values that it sets
//!             1  what it prints
//!             2  the command's own
//! ```

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pipe::{PipeFlags, pipe_with};

/// What is run.
pub struct CalledProgram<'a> {
    /// Its file.
    pub file: &'a Path,
    /// What stands behind its name.
    pub arguments: &'a [&'a OsStr],
    /// Variables beside those of the command.
    pub variables: &'a [(&'a OsStr, &'a OsStr)],
    /// Most bytes that it may print, and as many of values; one with more is ended.
    pub bytes_max: u64,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub struct CalledOutput {
    /// What it printed.
    pub printed: Vec<u8>,
    /// What it wrote into the pipe.
    pub values: Vec<u8>,
    /// Its exit code; with a signal as shells have it.
    pub code: i32,
}

/// Runs it, and waits until it has ended and nobody writes into its pipes any more.
///
/// # Errors
/// It cannot be started, or prints too much.
pub fn run(asked: &CalledProgram<'_>) -> io::Result<CalledOutput> {
    let (values, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut child = Command::new(asked.file)
        .args(asked.arguments)
        .envs(asked.variables.iter().copied())
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::piped())
        .spawn()?;
    let bytes_max = asked.bytes_max;
    // Both are read at once: whichever is full would hold the program.
    let values = std::thread::spawn(move || read_all(File::from(values), bytes_max));
    let printed = match child.stdout.take() {
        Some(stdout) => read_all(stdout, bytes_max),
        None => Ok(Vec::new()),
    };
    if printed.is_err() {
        // One that has ended already needs no kill.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let lost = |_| io::Error::other("its values are lost");
    let values = values.join().map_err(lost)??;
    Ok(CalledOutput {
        printed: printed?,
        values,
        code: match (status.code(), status.signal()) {
            (Some(code), _) => code,
            (None, signal) => 128 + signal.unwrap_or_default(),
        },
    })
}

fn read_all(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut all)?;
    match all.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!(
            "it prints more than {bytes_max} bytes"
        ))),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, bytes_max: u64) -> io::Result<CalledOutput> {
        run(&CalledProgram {
            file: Path::new("/bin/sh"),
            arguments: &["-c", script, "sh", "a b"].map(OsStr::new),
            variables: &[(OsStr::new("DTW_x"), OsStr::new("7"))],
            bytes_max,
        })
    }

    #[test]
    fn program_is_told_and_tells() {
        let ran = shell("echo \"$1 $DTW_x\"; echo y=8 >/proc/self/fd/0; exit 3", 100).unwrap();
        let (printed, values) = (b"a b 7\n".to_vec(), b"y=8\n".to_vec());
        let code = 3;
        assert_eq!(
            ran,
            CalledOutput {
                printed,
                values,
                code
            }
        );
        assert_eq!(shell("kill -9 $$", 1).unwrap().code, 137);
    }

    #[test]
    fn program_that_prints_too_much_is_ended() {
        let ran = shell("while :; do echo aaaaaaaaaa; done", 100);
        assert!(ran.unwrap_err().to_string().contains("more than 100 bytes"));
        let ran = shell("while :; do echo aaaaaaaaaa; done >/proc/self/fd/0", 100);
        assert!(ran.is_err());
    }
}
