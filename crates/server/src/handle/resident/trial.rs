//! Applications, each started once as the server will start it: by a spawner, as its account and in
//! its sandbox. One that greets is there; it is let go at once and has no request.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use hob_ipc::message::{self, Carrier, MessageHead, MessageKind, MessageSender};
use hob_ipc::stream::{self, MessageDecoder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::pipe::PipeFlags;

use crate::handle::config::program::resolve;
use crate::handle::config::{
    ApplicationKind, Built, CarrierChoice, ProgramConfig, Resident, ResidentRuns, Spot,
};
use crate::handle::resident::ending::{ended_in_words, unstarted};
use crate::handle::resident::start::{Recipe, WorkerDescriptors};
use crate::handle::resident::worker::hello;
use crate::handle::script::stderr::cause;
use crate::handle::{HandlerSettings, HandlerSpots};
use hob_keeper::preflight::{Accounts, PreflightReport};
use hob_keeper::privileges::UserIdentity;
use hob_keeper::process::message::{TO_SERVER_BYTES_MAX, ToServer};
use hob_keeper::process::packet::{self, PacketSendOutcome, Received};
use hob_keeper::process::trial::{TrialSpawner, wait};
use hob_keeper::process::{Exit, Strings, ended, packed};

/// The longest wait for one application, whatever its `timeout.start`.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long one that has greeted may take to end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// What is kept of what one prints: the end of it.
const PRINTED_BYTES_MAX: usize = 64 * 1024;

/// An application and where it is named.
struct Application<'a> {
    resident: &'a Resident,
    program: &'a ProgramConfig,
    identity: Option<UserIdentity>,
    spot: Spot,
}

pub(crate) fn look(built: &Built, accounts: &Accounts, told: &mut PreflightReport<'_, '_>) {
    let applications = applications(built, accounts, told);
    if applications.is_empty() {
        return;
    }
    let programs = applications.iter();
    let programs = programs.map(|one| (one.program, one.identity.clone()));
    let spawner = match TrialSpawner::start(programs) {
        Ok(spawner) => spawner,
        Err(error) => {
            let message = format!("applications were not started to try them: {error}");
            return told.warn(applications[0].spot, &message, "");
        }
    };
    for (index, application) in (0..).zip(&applications) {
        let outcome = spawner.link().and_then(|link| {
            Trial::begin(application, index, link).map(|trial| trial.outcome(application.limit()))
        });
        let spot = application.spot;
        match outcome {
            Ok(TrialOutcome::Ready) => {}
            Ok(TrialOutcome::Failed(why)) => {
                told.error(spot, &unstarted(&why), &application.rest());
            }
            Ok(TrialOutcome::Lacks(why)) => told.warn(spot, &unstarted(&why), ""),
            Err(error) => {
                told.warn(
                    spot,
                    &format!("the application was not started to try it: {error}"),
                    "",
                );
            }
        }
    }
    spawner.end();
}

fn applications<'a>(
    built: &'a Built,
    accounts: &Accounts,
    told: &PreflightReport<'_, '_>,
) -> Vec<Application<'a>> {
    let Built { config, spots } = built;
    let mut applications: Vec<Application<'a>> = Vec::new();
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        for (route, spots) in site.routes.iter().zip(&spots.routes) {
            let (HandlerSettings::Resident(resident), HandlerSpots::Resident(spots)) =
                (&route.handler, &spots.handler)
            else {
                continue;
            };
            let account = accounts.programs.get(resident.program);
            let (Some(Ok(identity)), Some(program)) =
                (account, config.programs.get(resident.program))
            else {
                continue;
            };
            let is_tried = says_when_ready(resident) && is_there(resident, program);
            if is_tried && !told.has(spots.what) {
                applications.push(Application {
                    resident,
                    program,
                    identity: identity.clone(),
                    spot: spots.what,
                });
            }
        }
    }
    applications
}

/// A program that gets lines says nothing before its first request.
fn says_when_ready(resident: &Resident) -> bool {
    resident.carrier != CarrierChoice::Lines
}

/// What is not there is told already.
fn is_there(resident: &Resident, program: &ProgramConfig) -> bool {
    let is_there = match &resident.runs {
        ResidentRuns::Command(_) => resolve(resident.runs.program(), program.path()).is_ok(),
        ResidentRuns::Hosted { host, what, .. } => match host {
            ApplicationKind::Wsgi | ApplicationKind::Asgi => true,
            ApplicationKind::Scripts => Path::new(what).is_dir(),
            ApplicationKind::Psgi | ApplicationKind::Python | ApplicationKind::Perl => {
                Path::new(what).is_file()
            }
        },
    };
    is_there && resident.dir.is_dir()
}

impl Application<'_> {
    /// Until it is ready.
    fn limit(&self) -> Duration {
        match self.resident.timeout.start {
            Duration::ZERO => START_LIMIT,
            limit => limit.min(START_LIMIT),
        }
    }

    /// How to see all that it prints.
    fn rest(&self) -> String {
        let command = match &self.resident.runs {
            ResidentRuns::Command(words) => words.join(" "),
            ResidentRuns::Hosted {
                host,
                what,
                interpreter,
            } => match host {
                ApplicationKind::Wsgi | ApplicationKind::Asgi => {
                    let module = what.split(':').next().unwrap_or_default();
                    format!("{interpreter} -c 'import {module}'")
                }
                ApplicationKind::Psgi | ApplicationKind::Python | ApplicationKind::Perl => {
                    format!("{interpreter} {what}")
                }
                ApplicationKind::Scripts => format!("{interpreter} -c SCRIPT"),
            },
        };
        let dir = self.resident.dir.display();
        format!("mend that; `cd {dir} && {command}` tells the rest (`--no-start` starts nothing)")
    }
}

/// How it went.
enum TrialOutcome {
    Ready,
    Failed(String),
    /// Something is used up: later it may go well.
    Lacks(String),
}

/// One application under way.
struct Trial {
    link: OwnedFd,
    channel: Option<OwnedFd>,
    printed_by: Vec<OwnedFd>,
    decoder: MessageDecoder,
    printed: VecDeque<u8>,
    exit: Option<Exit>,
}

impl Trial {
    fn begin(application: &Application<'_>, index: u16, link: OwnedFd) -> io::Result<Trial> {
        let reference = TrialSpawner::program(index);
        let recipe = Recipe::of(application.resident, application.program, reference);
        let recipe = recipe.map_err(io::Error::other)?;
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let (stdout, program_stdout) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, program_stderr) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let streams = WorkerDescriptors {
            stdin: None,
            stdout: program_stdout,
            stderr: program_stderr,
            channel: theirs,
        };
        let mut trial = Trial {
            link,
            channel: Some(ours),
            printed_by: vec![stdout, stderr],
            decoder: MessageDecoder::new(MessageSender::Worker),
            printed: VecDeque::new(),
            exit: None,
        };
        match packed(1, recipe.start_with(Strings::new(), streams)) {
            Err(exit) => trial.exit = Some(exit),
            Ok((packet, descriptors)) => {
                let sent = packet::send(trial.link.as_fd(), &packet, &descriptors);
                if sent != PacketSendOutcome::Yes {
                    return Err(io::Error::other(format!("{sent:?}")));
                }
            }
        }
        trial.greet(application.resident)?;
        Ok(trial)
    }

    fn greet(&self, resident: &Resident) -> io::Result<()> {
        let Some(channel) = &self.channel else {
            return Ok(());
        };
        let mut out = Vec::new();
        let head = MessageHead::new(MessageKind::Hello, 0).small(message::VERSION);
        stream::append(
            &mut out,
            head,
            &[&hello(resident, Carrier::Stream).encode()],
        );
        // It is far smaller than the socket's buffer.
        match send(channel, &out, SendFlags::NOSIGNAL) {
            // It has ended already, and its end says why.
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn outcome(mut self, limit: Duration) -> TrialOutcome {
        let until = Instant::now() + limit;
        let mut is_ready = false;
        while !is_ready && self.exit.is_none() {
            match self.turn(until) {
                Ok(true) => is_ready = self.has_greeted(),
                Ok(false) => {
                    let seconds = limit.as_secs_f32();
                    return TrialOutcome::Failed(
                        self.why(&format!("it is not ready after {seconds} s")),
                    );
                }
                Err(error) => return TrialOutcome::Lacks(error.to_string()),
            }
        }
        // Its end of the channel tells it to go; what it says by then explains an early end.
        self.channel = None;
        let until = Instant::now() + END_LIMIT;
        while (self.exit.is_none() || !self.printed_by.is_empty())
            && matches!(self.turn(until), Ok(true))
        {}
        match self.exit {
            _ if is_ready => TrialOutcome::Ready,
            Some(exit) if exit.is_lack() => TrialOutcome::Lacks(self.why(&told(exit))),
            Some(exit) => TrialOutcome::Failed(self.why(&told(exit))),
            None => TrialOutcome::Failed(self.why("its channel has ended")),
        }
    }

    /// The line that says why, and how it ended.
    fn why(&self, how: &str) -> String {
        let printed: Vec<u8> = self.printed.iter().copied().collect();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        match cause(&printed) {
            "" => how.to_owned(),
            cause => format!("{cause} ({how})"),
        }
    }

    /// Waits for something and takes it; false when there was nothing in time.
    fn turn(&mut self, until: Instant) -> io::Result<bool> {
        let mut ends: Vec<_> = vec![(self.link.as_fd(), PollFlags::IN)];
        ends.extend(
            self.printed_by
                .iter()
                .map(|end| (end.as_fd(), PollFlags::IN)),
        );
        ends.extend(self.channel.iter().map(|end| (end.as_fd(), PollFlags::IN)));
        if !wait(&ends, until)? {
            return Ok(false);
        }
        self.read_link();
        self.read_printed();
        self.read_channel();
        Ok(true)
    }

    fn read_link(&mut self) {
        let mut buffer = [0; TO_SERVER_BYTES_MAX];
        let mut packet = match packet::receive(self.link.as_fd(), &mut buffer) {
            Received::Packet(len, _) => &buffer[..len],
            Received::Nothing => return,
            Received::Gone | Received::Bare(_) => {
                self.exit.get_or_insert(Exit::SpawnerGone);
                return;
            }
        };
        while let Ok((message, rest)) = ToServer::decode(packet) {
            if let Some((_, exit)) = ended(message) {
                self.exit = Some(exit);
            }
            packet = rest;
        }
    }

    fn read_printed(&mut self) {
        let mut buffer = [0; 4096];
        let printed = &mut self.printed;
        self.printed_by.retain(|end| {
            if !is_readable(end.as_fd()) {
                return true;
            }
            let Ok(len @ 1..) = rustix::io::read(end, &mut buffer) else {
                return false;
            };
            printed.extend(&buffer[..len]);
            let over = printed.len().saturating_sub(PRINTED_BYTES_MAX);
            printed.drain(..over);
            true
        });
    }

    fn read_channel(&mut self) {
        let Some(channel) = &self.channel else {
            return;
        };
        let received = recv(channel, self.decoder.space(), RecvFlags::DONTWAIT);
        match received {
            Ok((_, 0)) => self.channel = None,
            Ok((_, len)) => self.decoder.filled(len),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.channel = None,
        }
    }

    fn has_greeted(&mut self) -> bool {
        let message = self.decoder.next_message();
        matches!(message, Ok(Some(message)) if message.head.kind == MessageKind::WorkerHello)
    }
}

/// How a process ended, as the server tells it.
fn told(exit: Exit) -> String {
    ended_in_words(Some(exit))
}

fn is_readable(end: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(end, PollFlags::IN)];
    matches!(poll(&mut polled, Some(&Timespec::default())), Ok(1))
}
