//! Starting a worker's process.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use hob_http::{Reactor, Watched};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::PipeFlags;

use crate::config::{Host, SharedSizes};
use crate::handle::resident::host;
use crate::handle::resident::lines::{self, Lines};
use crate::handle::resident::wire::{Messages, Offer, Wire};
use crate::process::{Child, Launcher, ProgramRef, Start, Strings};

/// How the processes of a pool are started.
#[derive(Clone)]
pub(crate) struct Recipe {
    /// The rules they run under, in the config that is in force.
    pub(super) program: ProgramRef,
    /// What is executed.
    pub(super) path: Vec<u8>,
    pub(super) arguments: Strings,
    pub(super) dir: Vec<u8>,
    /// Without what is particular to one of them.
    pub(super) environment: Strings,
    /// What lies in the memory that is shared with it, where some is.
    pub(super) shared: SharedSizes,
    /// Its standard input is the source of this host.
    pub(super) host: Option<Host>,
    /// Where the host finds native parts.
    pub(super) native: Option<PathBuf>,
}

/// A process that was asked for, and our ends.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) wire: Wire,
    pub(super) stdout: Option<Watched>,
    pub(super) stderr: Watched,
}

impl Recipe {
    /// What it is started with, its name first.
    pub(crate) fn arguments(&self) -> &Strings {
        &self.arguments
    }

    /// Where it works.
    pub(crate) fn dir(&self) -> &[u8] {
        &self.dir
    }

    /// Has a process started.
    ///
    /// # Errors
    /// No descriptors, or no memory for the host's source.
    pub(super) fn start(
        &self,
        reactor: &Reactor,
        launcher: &Launcher,
        offer: Offer,
    ) -> io::Result<Started> {
        match offer {
            Offer::Lines => self.start_lines(reactor, launcher),
            _ => self.start_messages(reactor, launcher, offer),
        }
    }

    fn start_messages(
        &self,
        reactor: &Reactor,
        launcher: &Launcher,
        offer: Offer,
    ) -> io::Result<Started> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let stdin = match self.host {
            Some(host) => Some(host::source(host, self.native.as_deref())?),
            None => None,
        };
        let (stdout, program_stdout) = pipe_from_program(reactor)?;
        let (stderr, program_stderr) = pipe_from_program(reactor)?;
        let wire = Messages::new(reactor, ours, offer, self.shared)?;
        let mut environment = self.environment.clone();
        set(&mut environment, "HOB_FD", "3");
        let streams = Streams {
            stdin,
            stdout: program_stdout,
            stderr: program_stderr,
            channel: theirs,
        };
        Ok(Started {
            child: self.launch(launcher, environment, streams),
            wire: Wire::Messages(wire),
            stdout: Some(stdout),
            stderr,
        })
    }

    /// Standard input and output carry the protocol, and so does a pipe beside them.
    fn start_lines(&self, reactor: &Reactor, launcher: &Launcher) -> io::Result<Started> {
        let (stderr, program_stderr) = pipe_from_program(reactor)?;
        let (lines, theirs) = Lines::new(reactor)?;
        let mut environment = self.environment.clone();
        for (name, value) in theirs.sentinels.environment() {
            set(&mut environment, name, value);
        }
        set(&mut environment, "CGIPLUSIN", lines::INPUT);
        let streams = Streams {
            stdin: Some(theirs.stdin),
            stdout: theirs.stdout,
            stderr: program_stderr,
            channel: theirs.input,
        };
        Ok(Started {
            child: self.launch(launcher, environment, streams),
            wire: Wire::Lines(lines),
            stdout: None,
            stderr,
        })
    }

    fn launch(&self, launcher: &Launcher, environment: Strings, streams: Streams) -> Child {
        launcher.start(Start {
            program: self.program,
            path: self.path.clone(),
            dir: self.dir.clone(),
            arguments: self.arguments.clone(),
            environment,
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
            channel: Some(streams.channel),
            outlives: true,
            takes_along: false,
        })
    }
}

/// What a process is started with.
struct Streams {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
    channel: OwnedFd,
}

/// A pipe for what a program prints: our end, which nobody has written to yet, and the program's.
pub(super) fn pipe_from_program(reactor: &Reactor) -> io::Result<(Watched, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let ours = reactor.watch(ours)?;
    ours.clear_readable();
    Ok((ours, theirs))
}

fn set(environment: &mut Strings, name: &str, value: &str) {
    let pushed = environment.push_pair(name.as_bytes(), value.as_bytes());
    debug_assert!(pushed.is_ok(), "there is no NUL in it");
}
