//! Starting a worker's process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use hob_http::{Reactor, Watched};
use hob_ipc::shm::region::Sizes;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::PipeFlags;

use crate::handle::config::program::resolve;
use crate::handle::config::{self, ProgramConfig};
use crate::handle::resident::limits::AHEAD_MAX;
use crate::handle::resident::lines::Lines;
use crate::handle::resident::wire::{Messages, Offer, WorkerWire};
use hob_keeper::process::{Child, Launcher, ProgramRef, Start, Strings};

/// How the processes of a pool are started.
#[derive(Clone)]
pub(crate) struct Recipe {
    /// The rules they run under, in the config that is in force.
    pub(super) program: ProgramRef,
    /// What is executed.
    pub(super) path: Vec<u8>,
    pub(super) arguments: Strings,
    pub(super) dir: Vec<u8>,
    /// What lies in the memory that is shared with it, where some is.
    pub(super) shared: Sizes,
}

/// A process that was asked for, and our ends.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) wire: WorkerWire,
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

    /// How processes of a program are started. May wait for a disk.
    ///
    /// # Errors
    /// What is not there, or not as it should be.
    pub(crate) fn of(
        settings: &config::Resident,
        program: &ProgramConfig,
        reference: ProgramRef,
    ) -> Result<Recipe, String> {
        let path = resolve(settings.runs.program(), program.path())?;
        let path = path.into_os_string().into_vec();
        let mut arguments = Strings::new();
        let mut push = |word: &[u8]| {
            let pushed = arguments.push(word);
            pushed.map_err(|error| format!("an argument: {error}"))
        };
        push(&path)?;
        for word in settings.runs.words() {
            push(word.as_bytes())?;
        }
        Ok(Recipe {
            program: reference,
            path,
            arguments,
            dir: settings.dir.as_os_str().as_bytes().to_vec(),
            shared: sizes(settings),
        })
    }

    /// Has a process started.
    ///
    /// # Errors
    /// No descriptors.
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
        let (stdout, program_stdout) = pipe_from_program(reactor)?;
        let (stderr, program_stderr) = pipe_from_program(reactor)?;
        let wire = Messages::new(reactor, ours, offer, self.shared)?;
        let streams = WorkerDescriptors {
            stdin: None,
            stdout: program_stdout,
            stderr: program_stderr,
            channel: theirs,
        };
        Ok(Started {
            child: self.launch(launcher, Strings::new(), streams),
            wire: WorkerWire::Messages(wire),
            stdout: Some(stdout),
            stderr,
        })
    }

    /// Standard input and output carry the protocol, and so does a pipe beside them.
    fn start_lines(&self, reactor: &Reactor, launcher: &Launcher) -> io::Result<Started> {
        let (stderr, program_stderr) = pipe_from_program(reactor)?;
        let (lines, theirs) = Lines::new(reactor)?;
        let mut environment = Strings::new();
        for (name, value) in theirs.sentinels.environment() {
            let pushed = environment.push_pair(name.as_bytes(), value.as_bytes());
            debug_assert!(pushed.is_ok(), "there is no NUL in it");
        }
        let streams = WorkerDescriptors {
            stdin: Some(theirs.stdin),
            stdout: theirs.stdout,
            stderr: program_stderr,
            channel: theirs.input,
        };
        Ok(Started {
            child: self.launch(launcher, environment, streams),
            wire: WorkerWire::Lines(lines),
            stdout: None,
            stderr,
        })
    }

    fn launch(
        &self,
        launcher: &Launcher,
        environment: Strings,
        streams: WorkerDescriptors,
    ) -> Child {
        launcher.start(self.start_with(environment, streams))
    }

    /// A process with these ends.
    pub(crate) fn start_with(&self, environment: Strings, streams: WorkerDescriptors) -> Start {
        Start {
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
        }
    }
}

/// What a process is started with.
pub(crate) struct WorkerDescriptors {
    /// `None` where a host's source is put there by the spawner.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) channel: OwnedFd,
}

/// What a worker and the server share: slots for all that a worker may have at a time.
fn sizes(settings: &config::Resident) -> Sizes {
    let sizes = Sizes {
        chunk_count: settings.shared.chunk_count,
        chunk_bytes: settings.shared.chunk_bytes,
        ..Sizes::default()
    };
    let requests = usize::from(settings.workers.concurrency) + AHEAD_MAX;
    sizes.with_slots_for(requests)
}

/// A pipe for what a program prints: our end, which nobody has written to yet, and the program's.
pub(super) fn pipe_from_program(reactor: &Reactor) -> io::Result<(Watched, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let ours = reactor.watch(ours)?;
    ours.clear_readable();
    Ok((ours, theirs))
}
