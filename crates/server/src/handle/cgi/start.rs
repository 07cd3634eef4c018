//! Starting a program for a request: arguments, environment, pipes.

use std::io;
use std::os::fd::OwnedFd;

use hob_http::Request;
use rustix::pipe::PipeFlags;

use crate::handle::cgi::find::Interpreter;
use crate::handle::cgi::{Cgi, arguments};
use crate::handle::variables::{self, Asked, Script};
use crate::process::{HasNul, Strings};

/// A program that is to run for a request.
pub(super) struct Job {
    /// What is executed: the program, or its interpreter.
    pub(super) path: Vec<u8>,
    /// The program's file.
    pub(super) file: Vec<u8>,
    /// Where it works.
    pub(super) dir: Vec<u8>,
    pub(super) arguments: Strings,
    pub(super) kind: Kind,
}

/// What runs.
pub(super) enum Kind {
    /// A CGI program, and the parts of the path.
    Program {
        /// What names it.
        name: Vec<u8>,
        /// What follows.
        path_info: Vec<u8>,
    },
    /// A command, and the media type of what it prints.
    Command(String),
}

impl Job {
    /// A CGI program. `interpreter` runs it when it cannot run by itself.
    pub(super) fn program(
        request: &Request,
        file: Vec<u8>,
        interpreter: Option<&Interpreter>,
        name: Vec<u8>,
        path_info: Vec<u8>,
    ) -> Result<Job, HasNul> {
        let mut words = Strings::new();
        let path = match interpreter {
            None => file.clone(),
            Some(interpreter) => {
                for word in &interpreter.words {
                    words.push(word)?;
                }
                interpreter.words[0].clone()
            }
        };
        words.push(&file)?;
        let head = request.head();
        if matches!(head.method(), b"GET" | b"HEAD") {
            for word in arguments::of_query(head.query().unwrap_or_default()) {
                words.push(&word)?;
            }
        }
        Ok(Job {
            path,
            dir: folder_of(&file).to_vec(),
            file,
            arguments: words,
            kind: Kind::Program { name, path_info },
        })
    }

    /// The environment, for a request with a body of so many bytes.
    pub(super) fn environment(
        &self,
        cgi: &Cgi,
        request: &Request,
        body_bytes: u64,
    ) -> Result<Strings, HasNul> {
        let mut environment = cgi.environment.clone();
        let Kind::Program { name, path_info } = &self.kind else {
            return Ok(environment);
        };
        let asked = Asked {
            request,
            body_bytes,
            script: Script {
                name,
                path_info,
                file: &self.file,
                document_root: &cgi.document_root,
            },
            passes_authorization: cgi.settings.pass_authorization,
        };
        let mut outcome = Ok(());
        variables::each(&asked, |name, value| {
            // What the config sets stays: a program finds the first of two.
            if outcome.is_ok() && !cgi.sets(name) {
                outcome = environment.push_pair(name, value);
            }
        });
        outcome.map(|()| environment)
    }
}

/// The ends of pipes that stay with the server, and those that go.
pub(super) struct Pipes {
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) program_stdout: OwnedFd,
    pub(super) program_stderr: OwnedFd,
}

impl Pipes {
    pub(super) fn new() -> io::Result<Pipes> {
        let (stdout, program_stdout) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, program_stderr) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Pipes {
            stdout,
            stderr,
            program_stdout,
            program_stderr,
        })
    }
}

fn folder_of(file: &[u8]) -> &[u8] {
    match memchr::memrchr(b'/', file) {
        None | Some(0) => b"/",
        Some(slash) => &file[..slash],
    }
}
