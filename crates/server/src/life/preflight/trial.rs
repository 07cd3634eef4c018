//! Applications, each started once as the server will start it: by a spawner, as its account and in
//! its sandbox. One that greets is there; it is let go at once and has no request.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hob_ipc::message::{self, Carrier, Head, Kind, Side};
use hob_ipc::stream::{self, Decoder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::pipe::PipeFlags;

use super::look::Accounts;
use super::told::Told;
use crate::config::{Built, CarrierChoice, Host, Program, Resident, ResidentRuns, Spot};
use crate::handle::resident::ending::{ended_in_words, unstarted};
use crate::handle::resident::start::{Recipe, Streams};
use crate::handle::resident::worker::hello;
use crate::handle::script::build::resolve;
use crate::handle::script::stderr::cause;
use crate::life::channel::End as Channel;
use crate::life::parcel::{self, NotReceived};
use crate::life::privileges::Identity;
use crate::process::message::{TO_SERVER_BYTES_MAX, ToServer};
use crate::process::orders::{Order, Said};
use crate::process::packet::{self, Received, Sent};
use crate::process::policy::{Policy, Rules};
use crate::process::{Exit, ProgramRef, Strings, end_for_thread, ended, packed};

/// How long a spawner may take to be there.
const SPAWNER_LIMIT: Duration = Duration::from_secs(10);
/// The longest wait for one application, whatever its `timeout.start`.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long one that has greeted may take to end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// What is kept of what one prints: the end of it.
const PRINTED_BYTES_MAX: usize = 64 * 1024;
/// Generation of the policy: there is no other.
const GENERATION: u64 = 1;

/// An application and where it is named.
struct Application<'a> {
    resident: &'a Resident,
    program: &'a Program,
    identity: Option<Identity>,
    spot: Spot,
}

pub(super) fn look(built: &Built, accounts: &Accounts, told: &mut Told<'_, '_>) {
    let applications = applications(built, accounts, told);
    if applications.is_empty() {
        return;
    }
    let spawner = match Spawner::start(&applications) {
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
            Ok(Outcome::Ready) => {}
            Ok(Outcome::Failed(why)) => {
                told.error(spot, &unstarted(&why), &application.rest());
            }
            Ok(Outcome::Lacks(why)) => told.warn(spot, &unstarted(&why), ""),
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
    told: &Told<'_, '_>,
) -> Vec<Application<'a>> {
    let Built { config, spots } = built;
    let mut applications: Vec<Application<'a>> = Vec::new();
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        for (route, spots) in site.routes.iter().zip(&spots.routes) {
            let (Some(resident), Some(spots)) = (route.handler.resident(), &spots.handler.resident)
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
fn is_there(resident: &Resident, program: &Program) -> bool {
    let is_there = match &resident.runs {
        ResidentRuns::Command(_) => resolve(resident.runs.program(), program.path()).is_ok(),
        ResidentRuns::Hosted { host, what, .. } => match host {
            Host::Wsgi | Host::Asgi => true,
            Host::Scripts => Path::new(what).is_dir(),
            Host::Psgi | Host::Python | Host::Perl => Path::new(what).is_file(),
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
                Host::Wsgi | Host::Asgi => {
                    let module = what.split(':').next().unwrap_or_default();
                    format!("{interpreter} -c 'import {module}'")
                }
                Host::Psgi | Host::Python | Host::Perl => format!("{interpreter} {what}"),
                Host::Scripts => format!("{interpreter} -c SCRIPT"),
            },
        };
        let dir = self.resident.dir.display();
        format!("mend that; `cd {dir} && {command}` tells the rest (`--no-start` starts nothing)")
    }
}

/// A spawner of our own, with a policy for these applications.
struct Spawner {
    process: std::process::Child,
    keeper: Channel,
    server: Option<OwnedFd>,
}

impl Spawner {
    fn start(applications: &[Application<'_>]) -> io::Result<Spawner> {
        let (ours, theirs) = parcel::pair()?;
        let process = Command::new("/proc/self/exe")
            .arg0("hob")
            .arg("spawner")
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut spawner = Spawner {
            process,
            keeper: Channel::of_keeper(ours),
            server: None,
        };
        spawner.wait_until_ready()?;
        let rules = |one: &Application<'_>| Rules::of(one.program, one.identity.clone());
        let policy = Policy {
            generation: GENERATION,
            programs: applications.iter().map(rules).collect(),
        };
        let (server, theirs) = parcel::pair()?;
        for order in [Order::Policy(policy.to_memory()?), Order::Server(theirs)] {
            let sent = spawner.keeper.send(order.encode());
            sent.map_err(|reason| io::Error::other(format!("{reason:?}")))?;
        }
        spawner.server = Some(server);
        Ok(spawner)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let until = Instant::now() + SPAWNER_LIMIT;
        loop {
            match self.keeper.receive() {
                Ok(parcel) if Said::decode(&parcel) == Ok(Said::Ready) => return Ok(()),
                Ok(_) => {}
                Err(NotReceived::Nothing) => {
                    if !wait(&[(self.keeper.socket(), PollFlags::IN)], until)? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(reason) => return Err(io::Error::other(format!("{reason:?}"))),
            }
        }
    }

    fn link(&self) -> io::Result<OwnedFd> {
        let server = self.server.as_ref();
        end_for_thread(server.ok_or(io::ErrorKind::NotConnected)?)
    }

    /// Without keeper and server it ends, with all that it started.
    fn end(self) {
        let Spawner {
            mut process,
            keeper,
            server,
        } = self;
        drop((keeper, server));
        let _ = process.wait();
    }
}

/// How it went.
enum Outcome {
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
    decoder: Decoder,
    printed: VecDeque<u8>,
    exit: Option<Exit>,
}

impl Trial {
    fn begin(application: &Application<'_>, index: u16, link: OwnedFd) -> io::Result<Trial> {
        let reference = ProgramRef {
            generation: GENERATION,
            index,
        };
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
        let streams = Streams {
            stdin: None,
            stdout: program_stdout,
            stderr: program_stderr,
            channel: theirs,
        };
        let mut trial = Trial {
            link,
            channel: Some(ours),
            printed_by: vec![stdout, stderr],
            decoder: Decoder::new(Side::Worker),
            printed: VecDeque::new(),
            exit: None,
        };
        match packed(1, recipe.start_with(Strings::new(), streams)) {
            Err(exit) => trial.exit = Some(exit),
            Ok((packet, descriptors)) => {
                let sent = packet::send(trial.link.as_fd(), &packet, &descriptors);
                if sent != Sent::Yes {
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
        let head = Head::new(Kind::Hello, 0).small(message::VERSION);
        stream::append(
            &mut out,
            head,
            &[&hello(resident, Carrier::Stream).encode()],
        );
        // It is far smaller than the socket's buffer.
        send(channel, &out, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn outcome(mut self, limit: Duration) -> Outcome {
        let until = Instant::now() + limit;
        let mut is_ready = false;
        while !is_ready && self.exit.is_none() {
            match self.turn(until) {
                Ok(true) => is_ready = self.has_greeted(),
                Ok(false) => {
                    let seconds = limit.as_secs_f32();
                    return Outcome::Failed(
                        self.why(&format!("it is not ready after {seconds} s")),
                    );
                }
                Err(error) => return Outcome::Lacks(error.to_string()),
            }
        }
        // Its end of the channel tells it to go; what it says by then explains an early end.
        self.channel = None;
        let until = Instant::now() + END_LIMIT;
        while (self.exit.is_none() || !self.printed_by.is_empty())
            && matches!(self.turn(until), Ok(true))
        {}
        match self.exit {
            _ if is_ready => Outcome::Ready,
            Some(exit) if exit.is_lack() => Outcome::Lacks(self.why(&told(exit))),
            Some(exit) => Outcome::Failed(self.why(&told(exit))),
            None => Outcome::Failed(self.why("its channel has ended")),
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
        matches!(message, Ok(Some(message)) if message.head.kind == Kind::WorkerHello)
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

/// Waits for one of these; false when the time is up.
fn wait(ends: &[(BorrowedFd<'_>, PollFlags)], until: Instant) -> io::Result<bool> {
    let mut polled: Vec<_> = ends
        .iter()
        .map(|(end, flags)| PollFd::from_borrowed_fd(*end, *flags))
        .collect();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut polled, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
