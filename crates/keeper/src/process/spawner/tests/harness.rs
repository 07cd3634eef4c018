//! A spawner process and a link to it, and programs made for a test.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::SPAWNER;
use crate::channel::ChannelEnd;
use crate::parcel::{self, NotReceived};
use crate::privileges::UserIdentity;
use crate::process::Strings;
use crate::process::message::{
    EndSignal, PACKET_BYTES_MAX, START_HEAD_BYTES, StartHead, Step, TO_SERVER_BYTES_MAX, ToServer,
    ToSpawner, Usage,
};
use crate::process::orders::{SpawnerOrder, SpawnerReport};
use crate::process::packet::{self, PacketSendOutcome, Received};
use crate::process::policy::{Policy, Rules};
use hob_config::{Argument, CommandLine, ProgramConfig};

/// Who programs run as when root runs the tests.
pub(super) const UID: u32 = 4321;
/// A program that ends when it is asked, with a child in another session that does not.
pub(super) const DEAF: &str =
    "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1029' & exec sleep 1028";
/// Reached only when something is wrong, however busy the machine.
const DEADLINE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

pub(super) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: needs root");
    }
    is_root
}

/// A spawner.
pub(super) struct Spawner {
    process: std::process::Child,
    pub keeper: ChannelEnd,
    pub(super) server: Option<OwnedFd>,
    generation: u64,
}

impl Spawner {
    /// A spawner with one server and this policy as generation 1.
    pub(super) fn with(programs: Vec<Rules>) -> Spawner {
        let (ours, theirs) = parcel::pair().unwrap();
        let name = "process::spawner::tests::spawner_process";
        // A test runs in a thread of its own, and the other one would swallow the signal.
        let process = Command::new("env")
            .arg("--block-signal=CHLD")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(SPAWNER, "1")
            .stdin(theirs)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut spawner = Spawner {
            process,
            keeper: ChannelEnd::of_keeper(ours),
            server: None,
            generation: 0,
        };
        assert_eq!(spawner.said(), SpawnerReport::Ready);
        spawner.set_policy(programs);
        spawner.add_server();
        spawner
    }

    pub(super) fn set_policy(&mut self, programs: Vec<Rules>) {
        self.generation += 1;
        let policy = Policy {
            generation: self.generation,
            programs,
        };
        let order = SpawnerOrder::Policy(policy.to_memory().unwrap());
        self.keeper.send(order.encode()).unwrap();
    }

    pub(super) fn add_server(&mut self) {
        let (ours, theirs) = parcel::pair().unwrap();
        self.keeper
            .send(SpawnerOrder::Server(theirs).encode())
            .unwrap();
        self.server = Some(ours);
    }

    pub(super) fn said(&mut self) -> SpawnerReport {
        loop {
            match self.keeper.receive() {
                Ok(parcel) => return SpawnerReport::decode(&parcel).unwrap(),
                Err(NotReceived::Nothing) => wait_readable(&self.keeper.socket()),
                Err(reason) => panic!("{reason:?}"),
            }
        }
    }

    /// What it has said and nobody asked for yet.
    pub(super) fn said_already(&mut self) -> Option<SpawnerReport> {
        match self.keeper.receive() {
            Ok(parcel) => Some(SpawnerReport::decode(&parcel).unwrap()),
            Err(_) => None,
        }
    }

    /// Leaves it without keeper and server, so that it ends.
    pub(super) fn dismiss(&mut self) {
        let (_, unused) = parcel::pair().unwrap();
        self.keeper = ChannelEnd::of_keeper(unused);
        self.server = None;
    }

    /// Everything below it with this name.
    pub(super) fn descendants_named(&self, name: &str) -> Vec<i32> {
        let all = processes();
        let mut below = vec![self.pid()];
        let mut next = 0;
        while let Some(parent) = below.get(next).copied() {
            below.extend(
                all.iter()
                    .filter(|(_, of)| *of == parent)
                    .map(|(pid, _)| *pid),
            );
            next += 1;
        }
        let is_named = |pid: &i32| {
            let found = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            found.trim() == name && is_alive(*pid)
        };
        below.into_iter().filter(is_named).collect()
    }

    pub(super) fn link(&self) -> Link {
        let link = crate::process::end_for_thread(self.server.as_ref().unwrap()).unwrap();
        Link {
            socket: link,
            generation: self.generation,
            last_id: 0,
            others: RefCell::default(),
        }
    }

    pub(super) fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits for it to end by itself.
    pub(super) fn wait(&mut self) {
        assert!(self.process.wait().unwrap().success());
    }

    /// Processes whose parent it is, zombies included.
    pub(super) fn children(&self) -> Vec<i32> {
        processes()
            .into_iter()
            .filter(|(_, parent)| *parent == self.pid())
            .map(|(pid, _)| pid)
            .collect()
    }

    /// Waits until it has no child left, not even a dead one.
    pub(super) fn wait_until_childless(&self) {
        until("no child is left", || self.children().is_empty());
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Process and parent of everything that runs.
pub(super) fn processes() -> Vec<(i32, i32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        if let Some(Ok(parent)) = rest.split_whitespace().nth(1).map(str::parse) {
            found.push((pid, parent));
        }
    }
    found
}

/// Waits for something that no descriptor tells.
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(
            std::time::Instant::now() < deadline,
            "not so in a minute: {what}"
        );
        std::thread::yield_now();
    }
}

fn wait_readable(fd: &impl AsFd) {
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    assert_eq!(
        poll(&mut polled, Some(&DEADLINE)).unwrap(),
        1,
        "nothing comes"
    );
}

/// What a test has started.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) program: u16,
    pub(super) path: String,
    pub(super) folder: String,
    pub arguments: Vec<Vec<u8>>,
    pub(super) variables: Vec<Vec<u8>>,
    pub(super) outlives: bool,
    pub(super) takes_along: bool,
}

/// A shell command under the first program of the policy.
pub(super) fn shell(command: &str) -> Ask {
    run(&["/bin/sh", "-c", command])
}

pub(super) fn run(arguments: &[&str]) -> Ask {
    Ask {
        program: 0,
        path: arguments[0].to_owned(),
        folder: "/".to_owned(),
        arguments: arguments
            .iter()
            .map(|argument| argument.as_bytes().to_vec())
            .collect(),
        variables: match arguments[0] {
            "/bin/sh" => Vec::new(),
            file => vec![format!("SCRIPT_FILENAME={file}").into_bytes()],
        },
        outlives: false,
        takes_along: false,
    }
}

/// A server thread's end.
pub(super) struct Link {
    pub(super) socket: OwnedFd,
    generation: u64,
    last_id: u64,
    /// Messages that came with one that was taken.
    others: RefCell<VecDeque<ToServer>>,
}

/// A program under way.
pub(super) struct Run {
    pub(super) id: u64,
    output: File,
}

/// How one went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Code(i32),
    Signal(i32),
    Failed(Step, i32),
}

impl Link {
    /// Starts a program with an empty standard input and its output in one pipe.
    pub(super) fn start(&mut self, ask: &Ask) -> Run {
        let (output, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let errors = theirs.try_clone().unwrap();
        let id = self.send(ask, vec![theirs, errors]);
        Run {
            id,
            output: output.into(),
        }
    }

    /// The next start takes the number of the last one again.
    pub(super) fn forget_last_number(&mut self) {
        self.last_id -= 1;
    }

    /// Sends a start with these descriptors; without the first of three, standard input is empty.
    pub(super) fn send(&mut self, ask: &Ask, mut descriptors: Vec<OwnedFd>) -> u64 {
        self.last_id += 1;
        let mut strings = Strings::new();
        for string in [ask.path.as_bytes(), ask.folder.as_bytes()] {
            strings.push(string).unwrap();
        }
        for string in ask.arguments.iter().chain(&ask.variables) {
            strings.push(string).unwrap();
        }
        let in_memory = START_HEAD_BYTES + strings.block().len() > PACKET_BYTES_MAX;
        let head = StartHead {
            id: self.last_id,
            generation: self.generation,
            program: ask.program,
            outlives: ask.outlives,
            no_input: descriptors.len() == 2,
            in_memory,
            has_channel: descriptors.len() > 3,
            takes_along: ask.takes_along,
            argument_count: ask.arguments.len() as u32,
            variable_count: ask.variables.len() as u32,
            string_bytes: strings.block().len() as u32,
        };
        let mut block = strings.block();
        if in_memory {
            descriptors.push(crate::memory::sealed("test", block).unwrap());
            block = b"";
        }
        self.send_raw(ToSpawner::Start(head, block), &descriptors);
        self.last_id
    }

    pub(super) fn send_raw(&self, message: ToSpawner<'_>, descriptors: &[OwnedFd]) {
        let mut packet = vec![];
        message.encode(&mut packet);
        while packet::send(self.socket.as_fd(), &packet, descriptors) == PacketSendOutcome::Full {
            let mut polled = [PollFd::new(&self.socket, PollFlags::OUT)];
            poll(&mut polled, Some(&DEADLINE)).unwrap();
        }
    }

    pub(super) fn kill(&self, run: &Run, how: EndSignal) {
        let (id, part) = (run.id, None);
        self.send_raw(ToSpawner::Kill { id, how, part }, &[]);
    }

    /// Ends the part of what a program started that is marked so.
    pub(super) fn kill_part(&self, run: &Run, part: u64, how: EndSignal) {
        let (id, part) = (run.id, Some(part));
        self.send_raw(ToSpawner::Kill { id, how, part }, &[]);
    }

    pub(super) fn next(&self) -> ToServer {
        self.try_next().expect("the spawner is gone")
    }

    /// The next message; none when the spawner closed the link.
    pub(super) fn try_next(&self) -> Option<ToServer> {
        let mut buffer = [0; TO_SERVER_BYTES_MAX];
        loop {
            if let Some(message) = self.others.borrow_mut().pop_front() {
                return Some(message);
            }
            match packet::receive(self.socket.as_fd(), &mut buffer) {
                Received::Packet(len, _) => {
                    let mut packet = &buffer[..len];
                    while !packet.is_empty() {
                        let (message, rest) = ToServer::decode(packet).unwrap();
                        self.others.borrow_mut().push_back(message);
                        packet = rest;
                    }
                }
                Received::Nothing => wait_readable(&self.socket),
                Received::Gone | Received::Bare(_) => return None,
            }
        }
    }

    /// How this program went, with its number checked.
    pub(super) fn outcome(&self, run: &Run) -> (Outcome, Usage) {
        match self.next() {
            ToServer::Started { .. } => panic!("told of a program without a channel"),
            ToServer::Failed { id, step, errno } => {
                assert_eq!(id, run.id);
                (Outcome::Failed(step, errno), Usage::default())
            }
            ToServer::Exited {
                id,
                code,
                signal,
                usage,
                ..
            } => {
                assert_eq!(id, run.id);
                let outcome = match (code, signal) {
                    (Some(code), None) => Outcome::Code(code),
                    (None, Some(signal)) => Outcome::Signal(signal),
                    both => panic!("{both:?}"),
                };
                (outcome, usage)
            }
        }
    }

    /// Runs a program to its end: how it went, and what it printed.
    pub(super) fn run(&mut self, ask: &Ask) -> (Outcome, String) {
        let run = self.start(ask);
        let (outcome, _) = self.outcome(&run);
        (outcome, run.rest())
    }

    /// What a shell command prints; it must succeed.
    pub(super) fn print(&mut self, command: &str) -> String {
        let (outcome, text) = self.run(&shell(command));
        assert_eq!(outcome, Outcome::Code(0), "{text}");
        text
    }
}

impl Run {
    /// All it prints until everybody who has its output is gone.
    pub(super) fn rest(mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        text
    }

    /// The next line it prints.
    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        let mut byte = [0];
        while self.output.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(char::from(byte[0]));
        }
        line
    }
}

/// Rules that let every program be started, and shell commands with up to two words, as nobody in
/// particular when root runs the tests.
pub(super) fn rules() -> Rules {
    let identity = rustix::process::geteuid().is_root().then(|| identity(UID));
    Rules {
        identity,
        ..rules_without_user()
    }
}

/// The same for who runs the tests.
pub(super) fn rules_without_user() -> Rules {
    let program = ProgramConfig {
        roots: vec![PathBuf::from("/")],
        command_lines: (0..3).map(shell_line).collect(),
        nice: 1,
        ..ProgramConfig::default()
    };
    Rules::of(&program, None)
}

/// `sh -c COMMAND` and so many words.
fn shell_line(word_count: usize) -> CommandLine {
    let any = || Argument::Query("any".to_owned());
    let mut arguments = vec![Argument::Text("-c".to_owned()), any()];
    arguments.extend((0..word_count).map(|_| any()));
    CommandLine {
        name: "sh".to_owned(),
        executables: vec!["/bin/sh".into()],
        arguments,
        file_ending: None,
        host: None,
    }
}

pub(super) fn identity(uid: u32) -> UserIdentity {
    UserIdentity {
        name: "test".to_owned(),
        uid,
        gid: uid + 1,
        groups: vec![uid + 1, uid + 2],
    }
}

pub(super) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

pub(super) fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

pub(super) fn exists(path: &str) -> bool {
    Path::new(path).exists()
}
