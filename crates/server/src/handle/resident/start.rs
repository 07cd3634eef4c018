//! Starting a worker's process.

use std::io;
use std::path::PathBuf;

use hob_http::{Reactor, Watched};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::PipeFlags;

use crate::config::Host;
use crate::handle::resident::host;
use crate::handle::resident::wire::{Offer, Wire};
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
        let (stdout, program_stdout) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, program_stderr) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let stdout = reactor.watch(stdout)?;
        let stderr = reactor.watch(stderr)?;
        stdout.clear_readable();
        stderr.clear_readable();
        let wire = Wire::new(reactor, ours, offer)?;
        let mut environment = self.environment.clone();
        let pushed = environment.push_pair(b"HOB_FD", b"3");
        debug_assert!(pushed.is_ok(), "there is no NUL in it");
        let child = launcher.start(Start {
            program: self.program,
            path: self.path.clone(),
            dir: self.dir.clone(),
            arguments: self.arguments.clone(),
            environment,
            stdin,
            stdout: program_stdout,
            stderr: program_stderr,
            channel: Some(theirs),
            outlives: true,
            takes_along: false,
        });
        Ok(Started {
            child,
            wire,
            stdout: Some(stdout),
            stderr,
        })
    }
}
