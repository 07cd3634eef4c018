//! A C program linked with the library, and the server's end of it, over either carrier.
// Every test program uses its own part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use hob_ipc::hello::Hello;
use hob_ipc::message::{Carrier, FAILED, LAST, MessageHead, MessageKind, MessageSender, TUNNEL};
use hob_ipc::request::BlockBuilder;
use hob_ipc::shm::region::Sizes;
use hob_ipc::shm::{ServerEnd, SlotRef, WorkerPayload};
use hob_ipc::stream::{self, MessageDecoder};
use rustix::event::{PollFd, PollFlags, Timespec};

/// Nothing waits longer than this for the program.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};
const DATA_WINDOW: u32 = 200_000;
const BODY_WINDOW: u32 = 65_536;

/// The folder that has the library as programs find it, made once.
pub fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let built = test.parent().unwrap().join("libhob.so");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libhob");
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["libhob.so", "libhob.so.1"] {
            // Another test program may be doing the same.
            let own = folder.join(format!("{name}.{}", std::process::id()));
            let _ = std::fs::remove_file(&own);
            std::os::unix::fs::symlink(&built, &own).unwrap();
            std::fs::rename(&own, folder.join(name)).unwrap();
        }
        folder
    })
}

/// A program made of one C file of the repository.
pub fn compiled(source: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let name = source.replace(['/', '.'], "-");
    let program = library().join(format!("{name}-{}", std::process::id()));
    if program.exists() {
        return program;
    }
    let made = program.with_extension(format!("{:?}", std::thread::current().id()));
    let mut compiler = Command::new("cc");
    compiler
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-O1",
        ])
        .arg("-I")
        .arg(root.join("crates/libhob/include"))
        .arg(root.join(source))
        .arg("-o")
        .arg(&made)
        .arg(format!("-L{}", library().display()))
        .arg(format!("-Wl,-rpath,{}", library().display()))
        .args(["-lhob", "-pthread"]);
    assert!(compiler.status().unwrap().success(), "{source} compiles");
    std::fs::rename(&made, &program).unwrap();
    program
}

/// A request to send.
pub struct Asked<'a> {
    pub method: &'a str,
    pub content_type: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    pub body: &'a [u8],
}

pub fn get(path: &str) -> Asked<'_> {
    Asked {
        method: "GET",
        content_type: "",
        path,
        query: "",
        body: b"",
    }
}

/// What came back.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub fields: String,
    pub body: Vec<u8>,
    pub end: String,
    pub is_failed: bool,
    pub infos: Vec<(u16, String)>,
    pub callouts: Vec<String>,
}

struct Open {
    answer: Answer,
    slot: Option<SlotRef>,
    body: Vec<u8>,
    body_at: usize,
    is_body_over: bool,
    body_credit: usize,
    data_outstanding: u32,
}

/// The server of one worker.
pub struct Server {
    pub child: Child,
    socket: UnixStream,
    decoder: MessageDecoder,
    end: Option<ServerEnd>,
    open: HashMap<u32, Open>,
    next: u32,
    pub library: String,
}

impl Server {
    /// Starts a program with such a carrier.
    pub fn start(program: &Path, carrier: Carrier, environment: &[(&str, &str)]) -> Server {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        // The shell puts the socket where hob does.
        let child = Command::new("sh")
            .args(["-c", "exec 3<&0 </dev/null; exec \"$0\""])
            .arg(program)
            .envs(environment.iter().copied())
            .env("HOB_FD", "3")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let hello = Hello {
            concurrency: 64,
            data_window_bytes: DATA_WINDOW,
            body_window_bytes: BODY_WINDOW,
            carrier,
            takes_files: false,
            takes_half_close: true,
        };
        let mut bytes = Vec::new();
        let head = MessageHead::new(MessageKind::Hello, 0).small(1);
        stream::append(&mut bytes, head, &[&hello.encode()]);
        let end = if carrier == Carrier::Shm {
            let (end, gifts) = ServerEnd::create(Sizes::default()).unwrap();
            assert_eq!(gifts.send(ours.as_fd(), &bytes).unwrap(), bytes.len());
            Some(end)
        } else {
            ours.write_all(&bytes).unwrap();
            None
        };
        let mut decoder = MessageDecoder::new(MessageSender::Worker);
        let (chosen, library) = loop {
            if let Some(message) = decoder.next_message().unwrap() {
                assert_eq!(message.head.kind, MessageKind::WorkerHello);
                let library = String::from_utf8_lossy(message.payload).into_owned();
                break (message.head.large, library);
            }
            let count = ours.read(decoder.space()).unwrap();
            assert!(count > 0, "the program says hello");
            decoder.filled(count);
        };
        Server {
            child,
            socket: ours,
            decoder,
            end: end.filter(|_| chosen == 2),
            open: HashMap::new(),
            next: 1,
            library,
        }
    }

    pub fn carrier(&self) -> Carrier {
        match self.end {
            Some(_) => Carrier::Shm,
            None => Carrier::Stream,
        }
    }

    /// Hands a request over.
    pub fn send(&mut self, asked: &Asked<'_>) -> u32 {
        let id = self.next;
        self.next += 1;
        let mut block = BlockBuilder::new(Some(asked.body.len() as u64));
        for (name, value) in [
            ("REQUEST_METHOD", asked.method),
            ("CONTENT_TYPE", asked.content_type),
            ("PATH_INFO", asked.path),
            ("QUERY_STRING", asked.query),
        ] {
            block.push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        let goes_on = ["/tunnel", "/half", "/until-cancelled", "/together"].contains(&asked.path);
        let is_body_over = asked.body.is_empty() && !goes_on;
        let flags = if is_body_over { LAST } else { 0 };
        let block = block.finish().unwrap();
        // Bodies of others may fill the ring.
        while self
            .end
            .as_mut()
            .is_some_and(|end| !end.has_room(block.len()))
        {
            self.turn();
        }
        let slot = match &mut self.end {
            Some(end) => Some(end.hand(id, flags, &block).unwrap()),
            None => {
                let mut bytes = Vec::new();
                stream::append(
                    &mut bytes,
                    MessageHead::new(MessageKind::Request, id).flags(flags),
                    &[&block],
                );
                self.socket.write_all(&bytes).unwrap();
                None
            }
        };
        let open = Open {
            answer: Answer::default(),
            slot,
            body: asked.body.to_vec(),
            body_at: 0,
            is_body_over,
            body_credit: BODY_WINDOW as usize,
            data_outstanding: 0,
        };
        self.open.insert(id, open);
        self.send_bodies();
        id
    }

    /// Sends a message.
    pub fn push(&mut self, head: MessageHead, payload: &[u8]) {
        match &mut self.end {
            Some(end) => {
                end.push(head, &[payload]).unwrap();
                end.flush();
            }
            None => {
                let mut bytes = Vec::new();
                stream::append(&mut bytes, head, &[payload]);
                write(&self.socket, &mut self.decoder, &bytes);
            }
        }
    }

    /// Sends as much of the bodies as windows and the ring allow.
    fn send_bodies(&mut self) {
        for (id, open) in &mut self.open {
            while !open.is_body_over && open.body_credit > 0 && !open.body.is_empty() {
                let left = &open.body[open.body_at..];
                let count = left.len().min(10_000).min(open.body_credit);
                let is_last = count == left.len();
                let head =
                    MessageHead::new(MessageKind::Body, *id).flags(if is_last { LAST } else { 0 });
                if let Some(end) = &mut self.end {
                    if end.push(head, &[&left[..count]]).is_err() {
                        // The worker will be heard of when it has read.
                        break;
                    }
                } else {
                    let mut bytes = Vec::new();
                    stream::append(&mut bytes, head, &[&left[..count]]);
                    write(&self.socket, &mut self.decoder, &bytes);
                }
                open.body_at += count;
                open.body_credit -= count;
                open.is_body_over = is_last;
            }
        }
        if let Some(end) = &mut self.end {
            end.flush();
        }
    }

    /// Waits for that request's answer.
    pub fn answer(&mut self, id: u32) -> Answer {
        while !self.is_over(id) {
            self.turn();
        }
        let open = self.open.remove(&id).unwrap();
        if let (Some(slot), Some(end)) = (open.slot, &mut self.end) {
            end.release(slot);
        }
        open.answer
    }

    fn is_over(&self, id: u32) -> bool {
        self.open[&id].answer.end == "over" || self.open[&id].answer.end.starts_with("over ")
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, asked: &Asked<'_>) -> Answer {
        let id = self.send(asked);
        self.answer(id)
    }

    /// Takes one message in.
    pub fn turn(&mut self) -> MessageHead {
        let (head, payload) = loop {
            if let Some(message) = self.next_message() {
                break message;
            }
            // Woken because there is room.
            self.send_bodies();
        };
        self.take(head, &payload);
        self.send_bodies();
        head
    }

    fn next_message(&mut self) -> Option<(MessageHead, Vec<u8>)> {
        let Some(end) = &mut self.end else {
            loop {
                if let Some(message) = self.decoder.next_message().unwrap() {
                    return Some((message.head, message.payload.to_vec()));
                }
                let count = self.socket.read(self.decoder.space()).unwrap();
                assert!(count > 0, "the program has not ended");
                self.decoder.filled(count);
            }
        };
        loop {
            if let Some(incoming) = end.pop().unwrap() {
                let payload = match incoming.payload {
                    WorkerPayload::Bytes(bytes) => bytes.to_vec(),
                    WorkerPayload::Chunk(chunk) => {
                        let mut copy = Vec::new();
                        chunk.copy_to(&mut copy);
                        copy
                    }
                };
                return Some((incoming.head, payload));
            }
            if end.fall_asleep() {
                continue;
            }
            let bell = end.bell();
            let mut fds = [
                PollFd::new(&bell, PollFlags::IN),
                PollFd::new(&self.socket, PollFlags::IN),
            ];
            let ready = rustix::event::poll(&mut fds, Some(&PATIENCE)).unwrap();
            assert!(ready > 0, "nothing came for a minute: a wake-up was lost");
            if !fds[0].revents().is_empty() {
                let mut count = [0; 8];
                rustix::io::read(bell, &mut count).unwrap();
            }
            let has_ended = !fds[1].revents().is_empty();
            end.wake_up();
            assert!(end.has_news() || !has_ended, "the program has not ended");
            return None;
        }
    }

    fn take(&mut self, head: MessageHead, payload: &[u8]) {
        let text = || String::from_utf8_lossy(payload).into_owned();
        if head.kind == MessageKind::Callout && head.flags == 0 {
            let reply = match text().strip_prefix("MAP-PATH: ") {
                Some(path) => format!("200 /srv{path}"),
                None => "400 unknown callout".to_string(),
            };
            let answer = MessageHead::new(MessageKind::Reply, head.request).small(head.small);
            self.push(answer, reply.as_bytes());
        }
        let id = if head.request == 0 {
            *self.open.keys().next().unwrap()
        } else {
            head.request
        };
        let open = self.open.get_mut(&id).expect("an answer to what was asked");
        let answer = &mut open.answer;
        assert!(
            answer.end.is_empty(),
            "nothing comes after the end: {head:?}"
        );
        let mut window = 0;
        match head.kind {
            MessageKind::Head => {
                answer.status = head.small;
                answer.fields = text();
            }
            MessageKind::Data => {
                answer.body.extend_from_slice(payload);
                open.data_outstanding += payload.len() as u32;
                assert!(open.data_outstanding <= DATA_WINDOW, "the window holds");
                if open.data_outstanding > DATA_WINDOW / 2 {
                    window = std::mem::take(&mut open.data_outstanding);
                }
            }
            MessageKind::Info => answer.infos.push((head.small, text())),
            MessageKind::Callout => answer.callouts.push(text()),
            MessageKind::WorkerWindow => open.body_credit += head.large as usize,
            MessageKind::End => {
                answer.is_failed = head.has(FAILED);
                answer.end = format!("over {}", text()).trim_end().to_string();
            }
            kind => panic!("{kind:?}"),
        }
        if head.is_last() && !head.has(TUNNEL) && answer.end.is_empty() {
            answer.end = "over".to_string();
        }
        if window > 0 {
            self.push(MessageHead::new(MessageKind::Window, id).large(window), &[]);
        }
    }

    /// How often the worker was woken, and how often it woke this end.
    pub fn wakes(&self) -> (u64, u64) {
        let counters = self
            .end
            .as_ref()
            .map(ServerEnd::counters)
            .unwrap_or_default();
        (counters.wakes_sent, counters.wakes_received)
    }

    /// Sends drain; the program ends well.
    pub fn finish(mut self) {
        self.push(MessageHead::new(MessageKind::Drain, 0), &[]);
        assert!(self.child.wait().unwrap().success());
    }

    /// Goes away without a word; says how the program ended.
    pub fn vanish(mut self) -> std::process::ExitStatus {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.child.wait().unwrap()
    }
}

/// Writes to the program, reading what it writes meanwhile: a server never makes a program wait for
/// itself.
fn write(socket: &UnixStream, decoder: &mut MessageDecoder, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let mut fds = [PollFd::new(socket, PollFlags::IN | PollFlags::OUT)];
        rustix::event::poll(&mut fds, Some(&PATIENCE)).unwrap();
        if fds[0].revents().contains(PollFlags::IN) {
            let flags = rustix::net::RecvFlags::DONTWAIT;
            let (_, count) = rustix::net::recv(socket, decoder.space(), flags).unwrap();
            assert!(count > 0, "the program has not ended");
            decoder.filled(count);
        }
        let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
        match rustix::net::send(socket, bytes, flags) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::AGAIN) => {}
            Err(errno) => panic!("the program cannot be written to: {errno}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
