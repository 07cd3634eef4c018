//! Two processes that share a region: the test is the server, a second run of the test binary the
//! worker. Its standard input is the socket.
// Every test program uses its own part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hob_ipc::message::{LAST, MessageHead, MessageKind};
use hob_ipc::shm::region::Sizes;
use hob_ipc::shm::worker::{How, Room};
use hob_ipc::shm::{Gifts, ServerEnd, WorkerEnd, WorkerPayload};
use rustix::event::{PollFd, PollFlags, Timespec};

const ROLE: &str = "HOB_IPC_TEST_WORKER";

/// Nothing waits longer than this for the other process.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// The server's half.
pub struct Pair {
    pub end: ServerEnd,
    pub socket: UnixStream,
    pub child: Child,
}

impl Pair {
    /// Starts a worker that behaves so.
    pub fn start(role: &str) -> Pair {
        Pair::start_with(role, |command| command.spawn().unwrap())
    }

    pub fn start_with(role: &str, spawn: impl FnOnce(&mut Command) -> Child) -> Pair {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (end, gifts) = ServerEnd::create(Sizes::default()).unwrap();
        gifts.send(ours.as_fd(), b"h").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "worker_process",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, role)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null());
        let child = spawn(&mut command);
        Pair {
            end,
            socket: ours,
            child,
        }
    }

    /// Waits until the worker has written something.
    pub fn wait(&mut self) {
        while !self.end.has_news() {
            assert!(self.wait_or_end(), "the worker has ended");
        }
    }

    /// Waits for news of the worker; false when it has ended without any.
    pub fn wait_or_end(&mut self) -> bool {
        if self.end.fall_asleep() {
            return true;
        }
        let bell = self.end.bell();
        let mut fds = [
            PollFd::new(&bell, PollFlags::IN),
            PollFd::new(&self.socket, PollFlags::IN),
        ];
        let ready = rustix::event::poll(&mut fds, Some(&PATIENCE)).unwrap();
        assert!(ready > 0, "nothing came for a minute: a wake-up was lost");
        let has_ended = !fds[1].revents().is_empty();
        if !fds[0].revents().is_empty() {
            // The server proper watches it edge-triggered instead; this worker can be trusted.
            let mut count = [0; 8];
            rustix::io::read(bell, &mut count).unwrap();
        }
        self.end.wake_up();
        self.end.has_news() || !has_ended
    }

    /// The next message, with a copy of its payload.
    pub fn next(&mut self) -> (MessageHead, Vec<u8>) {
        self.wait();
        let incoming = self.end.pop().unwrap().expect("news");
        let payload = match incoming.payload {
            WorkerPayload::Bytes(bytes) => bytes.to_vec(),
            WorkerPayload::Chunk(chunk) => {
                let mut copy = Vec::new();
                chunk.copy_to(&mut copy);
                copy
            }
        };
        (incoming.head, payload)
    }

    /// Sends drain; the worker ends well.
    pub fn finish(mut self) {
        self.end
            .push(MessageHead::new(MessageKind::Drain, 0), &[])
            .unwrap();
        self.end.flush();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Appends data to `into`; true when the answer is over.
pub fn collect(head: &MessageHead, payload: &[u8], into: &mut Vec<u8>) -> bool {
    if head.kind == MessageKind::Data {
        into.extend_from_slice(payload);
    }
    head.is_last()
}

/// In the second process: behaves as the role says, then exits.
pub fn run_if_worker() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let stdin = std::io::stdin();
    let mut byte = [0; 1];
    let (count, gifts) = Gifts::receive(stdin.as_fd(), &mut byte).unwrap();
    assert_eq!(count, 1);
    let mut worker = Worker {
        end: WorkerEnd::open(gifts.expect("three descriptors")).unwrap(),
        payload: Vec::new(),
    };
    match role.as_str() {
        "echo" => worker.echo(),
        "chunks" => worker.chunks(),
        "step" => worker.step(),
        other => panic!("no role {other}"),
    }
    std::io::stdout().flush().unwrap();
    std::process::exit(0);
}

/// The worker's half.
pub struct Worker {
    pub end: WorkerEnd,
    pub payload: Vec<u8>,
}

impl Worker {
    fn rest(&mut self, rooms: &[Room]) {
        if self.end.fall_asleep(How::OnWord, rooms) {
            let sleeper = self.end.sleeper();
            sleeper.wait(rooms, Duration::from_secs(30));
            sleeper.wake_up();
        }
    }

    fn next(&mut self) -> MessageHead {
        loop {
            if let Some(head) = self.end.pop(&mut self.payload).unwrap() {
                return head;
            }
            self.rest(&[]);
        }
    }

    fn push(&mut self, head: MessageHead, payload: &[u8]) {
        while self.end.push(head, &[payload]).is_err() {
            self.rest(&[Room {
                payload_bytes: payload.len(),
                chunk: false,
            }]);
        }
    }

    /// Answers each request with its block, or if a body follows with that, piece by piece.
    fn echo(&mut self) {
        loop {
            let head = self.next();
            match head.kind {
                MessageKind::Drain => return,
                MessageKind::Request if !self.end.start(&head) => continue,
                MessageKind::Request => {
                    let answer = MessageHead::new(MessageKind::Head, head.request).small(200);
                    self.push(answer, b"Content-Type: text/plain\n");
                    if head.is_last() {
                        let block = std::mem::take(&mut self.payload);
                        self.push(
                            MessageHead::new(MessageKind::Data, head.request).flags(LAST),
                            &block,
                        );
                        self.end.flush();
                    }
                }
                MessageKind::Body => {
                    let body = std::mem::take(&mut self.payload);
                    let data = MessageHead::new(MessageKind::Data, head.request);
                    self.push(data.flags(head.flags & LAST), &body);
                    self.end.flush();
                }
                _ => {}
            }
        }
    }

    /// Says that it is ready, then answers each request with its block and a chunk.
    fn step(&mut self) {
        self.push(MessageHead::new(MessageKind::Callout, 0).flags(4), b"NOOP:");
        self.end.flush();
        loop {
            let head = self.next();
            if head.kind == MessageKind::Drain {
                return;
            }
            if !self.end.start(&head) {
                continue;
            }
            self.push(
                MessageHead::new(MessageKind::Head, head.request).small(200),
                b"Content-Type: text/plain\n",
            );
            let mut chunk = self.end.take_chunk().expect("there are enough");
            chunk.fill(0, &[b'c'; 600]);
            let pushed = self.end.push_chunk(head.request, 0, chunk, 600);
            assert!(pushed.is_ok());
            let block = std::mem::take(&mut self.payload);
            self.push(
                MessageHead::new(MessageKind::Data, head.request).flags(LAST),
                &block,
            );
            self.end.flush();
        }
    }

    /// Answers each request with a hundred full chunks, the last message is empty.
    fn chunks(&mut self) {
        loop {
            let head = self.next();
            if head.kind == MessageKind::Drain {
                return;
            }
            assert!(self.end.start(&head));
            for number in 0..100u8 {
                let room = Room {
                    payload_bytes: 8,
                    chunk: true,
                };
                let mut chunk = loop {
                    if let Some(chunk) = self.end.take_chunk() {
                        break chunk;
                    }
                    self.rest(&[room]);
                };
                chunk.fill(0, &[number; 65_536]);
                let mut sending = Some(chunk);
                while let Some(chunk) = sending.take() {
                    if let Err((_, chunk)) = self.end.push_chunk(head.request, 0, chunk, 65_536) {
                        sending = Some(chunk);
                        self.rest(&[room]);
                    }
                }
                self.end.flush();
            }
            self.push(
                MessageHead::new(MessageKind::Data, head.request).flags(LAST),
                &[],
            );
            self.end.flush();
        }
    }
}
