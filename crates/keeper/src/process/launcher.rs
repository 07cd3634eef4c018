//! A server thread's link to the spawner: starts go out, exits come back.
//!
//! ```text
//!  start()  ->  waiting (no link, or a full socket)  ->  sent  ->  Exit
//!                 | too many, or too long                   |
//!                 v                                         v link lost
//!               Busy                                      SpawnerGone
//! ```
//!
//! Nothing here waits: what the socket does not take is kept, up to a limit, and goes out when it
//! can. When the spawner dies, what it ran is over, and what was not sent yet waits for the next
//! one, which the keeper starts at once.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hob_http::{Reactor, Watched};
use hob_trace::metric::ThreadCounters;

use super::awaited::Awaited;
use super::message::{
    MalformedPacket, PACKET_BYTES_MAX, START_HEAD_BYTES, STRINGS_BYTES_MAX, STRINGS_COUNT_MAX,
    StartHead, Step, TO_SERVER_BYTES_MAX, ToServer, ToSpawner,
};
use super::packet::{self, PacketSendOutcome, Received};
use super::strings::Strings;
use crate::{memory, parcel};

pub use super::message::{EndSignal, ProgramProcess, Usage};

/// Most starts of one thread that wait for the spawner; more are refused (`limit_starts`).
pub const STARTS_WAITING_MAX: usize = 1024;
/// How long a start waits for a spawner when there is none (`limit_starts`).
pub const SPAWNER_WAIT_MAX: Duration = Duration::from_secs(2);

/// What runs: a program of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramRef {
    /// Generation of the config.
    pub generation: u64,
    /// Index in `Config::programs`.
    pub index: u16,
}

/// A program to start.
#[derive(Debug)]
pub struct Start {
    /// The rules it runs under.
    pub program: ProgramRef,
    /// What is executed: absolute, below a root of the program or named by it.
    pub path: Vec<u8>,
    /// Where it works: a root, or below one.
    pub dir: Vec<u8>,
    /// Arguments, its name first: as the config has them, but for the file and words of a request.
    pub arguments: Strings,
    /// What the request adds to the variables of the config.
    pub environment: Strings,
    /// Standard input: a pipe, or a file; `None` for one that is empty, or a host's source.
    pub stdin: Option<OwnedFd>,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
    /// A socket or pipe to talk over, its descriptor 3.
    pub channel: Option<OwnedFd>,
    /// It goes on when the spawner dies.
    pub outlives: bool,
    /// What it started ends with it, unless it ends with exit code 0.
    pub takes_along: bool,
}

/// How a start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It ran and ended.
    Ended {
        /// Exit code, if it ended by itself.
        code: Option<i32>,
        /// Signal, if one ended it.
        signal: Option<i32>,
        /// It left a core file.
        core: bool,
        /// What it used.
        usage: Usage,
        /// Its process.
        process: ProgramProcess,
    },
    /// It did not run.
    NotStarted {
        /// What could not be done: "cannot ...".
        step: &'static str,
        /// Why.
        errno: i32,
    },
    /// The spawner died and took it along.
    SpawnerGone,
    /// The interpreter it was forked from died.
    HostGone,
    /// Too many starts wait, or this one waited too long.
    Busy,
}

/// True where processes, descriptors, memory or room are used up: later it may go well.
pub fn is_lack(errno: i32) -> bool {
    matches!(
        errno,
        libc::EAGAIN
            | libc::ENOMEM
            | libc::EMFILE
            | libc::ENFILE
            | libc::ENOBUFS
            | libc::ENOSPC
            | libc::EDQUOT
    )
}

impl Exit {
    /// It did not run for want of something, and is not to blame for it.
    pub fn is_lack(&self) -> bool {
        match self {
            Exit::NotStarted { errno, .. } => is_lack(*errno),
            Exit::SpawnerGone | Exit::Busy => true,
            Exit::Ended { .. } | Exit::HostGone => false,
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Ended {
                code: Some(code),
                usage,
                ..
            } => {
                let cpu_us = usage.user_us + usage.system_us;
                write!(f, "ended with exit code {code}, {cpu_us} us of CPU time")
            }
            Exit::Ended { signal, .. } => {
                write!(f, "ended by signal {}", signal.unwrap_or_default())
            }
            Exit::NotStarted { step, errno } => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "not started: {step}: {error}")
            }
            Exit::SpawnerGone => f.write_str("the spawner died"),
            Exit::HostGone => f.write_str("the interpreter it was forked from died"),
            Exit::Busy => f.write_str("not started: too many wait"),
        }
    }
}

/// One thread's link to the spawner. A cheap handle.
#[derive(Clone)]
pub struct Launcher(Rc<SpawnerLink>);

struct SpawnerLink {
    reactor: Reactor,
    counters: Arc<ThreadCounters>,
    core: RefCell<SpawnerLinkState>,
}

/// A program that was asked for. Dropping it lets the program go on by itself.
pub struct Child {
    launcher: Launcher,
    id: u64,
    entry: Awaited,
}

#[derive(Default)]
struct SpawnerLinkState {
    link: Option<Rc<Watched>>,
    /// Counts links, so that the task of an old one knows that it is not meant.
    link_number: u64,
    waiting: VecDeque<PendingPacket>,
    sent: HashMap<u64, Awaited>,
    last_id: u64,
    /// The task that sends what waits.
    sender: Option<Waker>,
    is_patience_running: bool,
    packet: Vec<u8>,
}

/// A packet on its way.
struct PendingPacket {
    /// The start it is; a kill has none.
    start: Option<(u64, Awaited)>,
    packet: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    since_ms: u64,
}

impl Launcher {
    /// A launcher without a link: starts wait for one.
    pub fn new(reactor: &Reactor, counters: Arc<ThreadCounters>) -> Launcher {
        Launcher(Rc::new(SpawnerLink {
            reactor: reactor.clone(),
            counters,
            core: RefCell::default(),
        }))
    }

    /// Takes a new link in place of the one there was.
    ///
    /// # Errors
    /// What the kernel says when the link cannot be watched.
    pub fn attach(&self, end: OwnedFd) -> io::Result<()> {
        let link = Rc::new(self.0.reactor.watch(end)?);
        self.lose_link();
        let mut core = self.0.core.borrow_mut();
        core.link = Some(Rc::clone(&link));
        core.link_number += 1;
        let number = core.link_number;
        drop(core);
        let launcher = self.clone();
        self.0.reactor.spawn_standing(async move {
            poll_fn(|cx| launcher.poll_link(cx, &link, number)).await;
        });
        self.send_waiting();
        Ok(())
    }

    /// Has a program started. Never waits, and tells every outcome through the child.
    pub fn start(&self, start: Start) -> Child {
        let entry = Awaited::default();
        let mut core = self.0.core.borrow_mut();
        core.last_id += 1;
        let id = core.last_id;
        let waiting = core.waiting.len();
        drop(core);
        if waiting >= STARTS_WAITING_MAX {
            self.0.counters.limit_starts.add(1);
            entry.finish(Exit::Busy);
        } else {
            match packed(id, start) {
                Err(exit) => entry.finish(exit),
                Ok((packet, descriptors)) => {
                    self.enqueue(PendingPacket {
                        start: Some((id, entry.clone())),
                        packet,
                        descriptors,
                        since_ms: self.0.reactor.now_ms(),
                    });
                }
            }
        }
        Child {
            launcher: self.clone(),
            id,
            entry,
        }
    }

    fn enqueue(&self, waiting: PendingPacket) {
        let has_link = {
            let mut core = self.0.core.borrow_mut();
            core.waiting.push_back(waiting);
            core.link.is_some()
        };
        if has_link {
            self.send_waiting();
        } else {
            self.run_patience();
        }
    }

    /// Sends what waits, as far as the link takes it; the rest is the link's task's.
    fn send_waiting(&self) {
        let mut failed = Vec::new();
        let mut core = self.0.core.borrow_mut();
        let core = &mut *core;
        let Some(link) = &core.link else {
            return;
        };
        while let Some(next) = core.waiting.front() {
            match packet::send(link.fd(), &next.packet, &next.descriptors) {
                PacketSendOutcome::Yes => {}
                // A link that is gone shows when it is read.
                PacketSendOutcome::Full | PacketSendOutcome::Gone => {
                    link.clear_writable();
                    if let Some(sender) = core.sender.take() {
                        sender.wake();
                    }
                    break;
                }
                PacketSendOutcome::Refused(errno) => {
                    if let Some(PendingPacket { start, .. }) = core.waiting.pop_front()
                        && let Some((_, entry)) = start
                    {
                        failed.push((entry, not_started(Step::Message, errno.raw_os_error())));
                    }
                    continue;
                }
            }
            if let Some(PendingPacket { start, .. }) = core.waiting.pop_front()
                && let Some((id, entry)) = start
            {
                core.sent.insert(id, entry);
            }
        }
        for (entry, exit) in failed {
            entry.finish(exit);
        }
    }

    /// The link's task: ready when the link is over.
    fn poll_link(&self, cx: &mut Context<'_>, link: &Rc<Watched>, number: u64) -> Poll<()> {
        let is_current =
            |core: &SpawnerLinkState| core.link_number == number && core.link.is_some();
        let mut buffer = [0; TO_SERVER_BYTES_MAX];
        while link.poll_readable(cx).is_ready() {
            if !is_current(&self.0.core.borrow()) {
                return Poll::Ready(());
            }
            match packet::receive(link.fd(), &mut buffer) {
                Received::Nothing => link.clear_readable(),
                Received::Packet(len, _) => {
                    if let Err(malformed) = self.handle_packet(&buffer[..len]) {
                        tracing::error!(%malformed, "the spawner makes no sense");
                        self.lose_link();
                        return Poll::Ready(());
                    }
                }
                Received::Gone | Received::Bare(_) => {
                    self.lose_link();
                    return Poll::Ready(());
                }
            }
        }
        if !is_current(&self.0.core.borrow()) {
            return Poll::Ready(());
        }
        while !self.0.core.borrow().waiting.is_empty() && link.poll_writable(cx).is_ready() {
            self.send_waiting();
        }
        self.0.core.borrow_mut().sender = Some(cx.waker().clone());
        Poll::Pending
    }

    fn handle_packet(&self, mut packet: &[u8]) -> Result<(), MalformedPacket> {
        while !packet.is_empty() {
            let (message, rest) = ToServer::decode(packet)?;
            self.handle(message);
            packet = rest;
        }
        Ok(())
    }

    fn handle(&self, message: ToServer) {
        if let ToServer::Started { id, pid } = message
            && let Some(entry) = self.0.core.borrow().sent.get(&id)
        {
            entry.set_pid(pid);
        }
        let Some((id, exit)) = ended(message) else {
            return;
        };
        let entry = self.0.core.borrow_mut().sent.remove(&id);
        if let Some(entry) = entry {
            match exit {
                Exit::Ended { .. } => self.0.counters.programs_ended.add(1),
                _ => self.0.counters.programs_not_started.add(1),
            }
            entry.finish(exit);
        }
    }

    /// The link is over: what ran over it is gone, what waits waits for the next.
    ///
    /// What was sent is not sent again, though the dead spawner may never have read it: nothing
    /// proves that, and a program that had begun would run twice for one request. The spawner says
    /// nothing between a start and its end, and of a socket that dies with packets in it the kernel
    /// tells only that there were some, and that only as long as no answer lies before it. A number
    /// in shared memory, written before each clone, would be a proof. It would not be enough: the
    /// descriptors went with the packet, and what was fed of a request's body is lost in its pipe.
    fn lose_link(&self) {
        let (link, sent) = {
            let mut core = self.0.core.borrow_mut();
            // A kill is for what just went.
            core.waiting.retain(|waiting| waiting.start.is_some());
            (core.link.take(), std::mem::take(&mut core.sent))
        };
        drop(link);
        self.0.counters.programs_lost.add(sent.len() as u64);
        for entry in sent.values() {
            entry.finish(Exit::SpawnerGone);
        }
        self.run_patience();
    }

    /// Has starts that wait for a spawner refused when their time is over.
    fn run_patience(&self) {
        {
            let mut core = self.0.core.borrow_mut();
            if core.is_patience_running || core.waiting.is_empty() || core.link.is_some() {
                return;
            }
            core.is_patience_running = true;
        }
        let launcher = self.clone();
        self.0.reactor.spawn_standing(async move {
            let timer = launcher.0.reactor.timer();
            while let Some(left) = launcher.refuse_late() {
                timer.set(left);
                timer.elapsed().await;
            }
            launcher.0.core.borrow_mut().is_patience_running = false;
        });
    }

    /// Refuses starts that waited too long for a spawner; returns how long the next one still has.
    fn refuse_late(&self) -> Option<Duration> {
        let limit_ms = SPAWNER_WAIT_MAX.as_millis() as u64;
        let now_ms = self.0.reactor.now_ms();
        let mut late = Vec::new();
        let left = {
            let mut core = self.0.core.borrow_mut();
            if core.link.is_some() {
                return None;
            }
            loop {
                let Some(first) = core.waiting.front() else {
                    break None;
                };
                let waited_ms = now_ms.saturating_sub(first.since_ms);
                if waited_ms < limit_ms {
                    break Some(Duration::from_millis(limit_ms - waited_ms));
                }
                late.extend(core.waiting.pop_front().and_then(|waiting| waiting.start));
            }
        };
        self.0.counters.limit_starts.add(late.len() as u64);
        for (_, entry) in late {
            entry.finish(Exit::Busy);
        }
        left
    }

    fn end(&self, id: u64, how: EndSignal, part: Option<u64>) {
        let mut withdrawn = None;
        let packet = {
            let mut core = self.0.core.borrow_mut();
            let is_it = |waiting: &PendingPacket| {
                waiting
                    .start
                    .as_ref()
                    .is_some_and(|(waiting, _)| *waiting == id)
            };
            if let Some(index) = core.waiting.iter().position(is_it) {
                withdrawn = core.waiting.remove(index);
            }
            if !core.sent.contains_key(&id) {
                None
            } else {
                ToSpawner::Kill { id, how, part }.encode(&mut core.packet);
                Some(core.packet.clone())
            }
        };
        if let Some((_, entry)) = withdrawn.and_then(|waiting| waiting.start) {
            entry.finish(Exit::NotStarted {
                step: "start it: it was ended before",
                errno: libc::ECANCELED,
            });
        }
        if let Some(packet) = packet {
            self.enqueue(PendingPacket {
                start: None,
                packet,
                descriptors: Vec::new(),
                since_ms: self.0.reactor.now_ms(),
            });
        }
    }
}

impl Child {
    /// Its number on this thread.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Number of its process, once that is known; only one with a channel has it told.
    pub fn pid(&self) -> Option<u32> {
        self.entry.pid()
    }

    /// How it ended, once it has. One task may wait.
    pub fn poll_exit(&self, cx: &mut Context<'_>) -> Poll<Exit> {
        self.entry.poll_exit(cx)
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.entry.exit()
    }

    /// Waits for its end.
    pub async fn wait(&self) -> Exit {
        poll_fn(|cx| self.poll_exit(cx)).await
    }

    /// Ends it with everything it started. A start that still waits is withdrawn. The exit comes as
    /// ever.
    pub fn end(&self, how: EndSignal) {
        if self.entry.exit().is_none() {
            self.launcher.end(self.id, how, None);
        }
    }

    /// Ends the part of what it started that has this number as its soft limit RLIMIT_LOCKS.
    pub fn end_part(&self, part: u64, how: EndSignal) {
        if self.entry.exit().is_none() {
            self.launcher.end(self.id, how, Some(part));
        }
    }
}

/// An end for one more thread of this server, whose other end the spawner gets over the server's
/// own.
///
/// # Errors
/// When the spawner takes nothing, or is gone.
pub fn end_for_thread(server: &OwnedFd) -> io::Result<OwnedFd> {
    let (ours, theirs) = parcel::pair()?;
    let mut thread = Vec::new();
    ToSpawner::Thread.encode(&mut thread);
    match packet::send(server.as_fd(), &thread, &[theirs]) {
        PacketSendOutcome::Yes => Ok(ours),
        reason => Err(io::Error::other(format!(
            "the spawner takes no thread: {reason:?}"
        ))),
    }
}

/// Which start a message says is over, and how.
pub fn ended(message: ToServer) -> Option<(u64, Exit)> {
    match message {
        ToServer::Started { .. } => None,
        ToServer::Exited {
            id,
            code,
            signal,
            core,
            usage,
            process,
        } => {
            let exit = Exit::Ended {
                code,
                signal,
                core,
                usage,
                process,
            };
            Some((id, exit))
        }
        ToServer::Failed { id, step, errno } => Some((id, not_started(step, errno))),
    }
}

fn not_started(step: Step, errno: i32) -> Exit {
    let step = match errno {
        libc::EPERM => step.text_unpermitted(),
        _ => step.text(),
    };
    Exit::NotStarted { step, errno }
}

/// The packet of a start, and what goes with it.
pub fn packed(id: u64, start: Start) -> Result<(Vec<u8>, Vec<OwnedFd>), Exit> {
    let Start {
        program,
        path,
        dir,
        arguments,
        environment,
        stdin,
        stdout,
        stderr,
        channel,
        outlives,
        takes_along,
    } = start;
    let parts = [
        &path[..],
        b"\0",
        &dir,
        b"\0",
        arguments.block(),
        environment.block(),
    ];
    let string_bytes: usize = parts.iter().map(|part| part.len()).sum();
    let has_nul = |string: &[u8]| memchr::memchr(0, string).is_some();
    if has_nul(&path) || has_nul(&dir) {
        return Err(not_started(Step::Message, libc::EINVAL));
    }
    if arguments.count() == 0 {
        return Err(not_started(Step::Message, libc::EINVAL));
    }
    let string_count = arguments.count() as usize + environment.count() as usize;
    if string_bytes > STRINGS_BYTES_MAX || string_count > STRINGS_COUNT_MAX {
        return Err(not_started(Step::Exec, libc::E2BIG));
    }
    let in_memory = START_HEAD_BYTES + string_bytes > PACKET_BYTES_MAX;
    let head = StartHead {
        id,
        generation: program.generation,
        program: program.index,
        outlives,
        no_input: stdin.is_none(),
        in_memory,
        has_channel: channel.is_some(),
        takes_along,
        argument_count: arguments.count(),
        variable_count: environment.count(),
        string_bytes: string_bytes as u32,
    };
    let mut descriptors = Vec::from_iter(stdin.into_iter().chain([stdout, stderr]));
    descriptors.extend(channel);
    let mut packet =
        Vec::with_capacity(START_HEAD_BYTES + if in_memory { 0 } else { string_bytes });
    head.encode(&mut packet);
    if in_memory {
        let strings = parts.concat();
        let memory = memory::sealed("hob-strings", &strings).map_err(|error| {
            not_started(Step::Message, error.raw_os_error().unwrap_or(libc::ENOMEM))
        })?;
        descriptors.push(memory);
    } else {
        for part in parts {
            packet.extend_from_slice(part);
        }
    }
    Ok((packet, descriptors))
}

#[cfg(test)]
mod tests;
