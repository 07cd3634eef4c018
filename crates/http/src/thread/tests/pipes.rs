//! Bodies out of pipes: what programs write, how they end, and clients that are slow or leave.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hob_trace::{Fault, Outcome};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use super::client::Client;
use super::dummy::{Probe, pattern, pattern_byte};
use super::{Running, serve};
use crate::body::{Body, BodyError, PipeEnd};
use crate::h1::conn::Deadline;
use crate::head::Fields;
use crate::limits::Limits;
use crate::request::{HalfClose, Request};
use crate::response::{Answered, Response};

const LARGE: u64 = 50_000_000;

/// What tests have in hand of the pipes and their ends.
#[derive(Default)]
pub(super) struct Pipes {
    writers: Mutex<Vec<OwnedFd>>,
    end: Mutex<End>,
}

#[derive(Default)]
struct End {
    answer: Option<Result<(), BodyError>>,
    wakers: Vec<Waker>,
    was_asked_at_eof: bool,
}

impl Pipes {
    /// The end of the pipe last made.
    fn writer(&self) -> File {
        self.writers.lock().unwrap().pop().unwrap().into()
    }

    fn end(&self, answer: Result<(), BodyError>) {
        let mut end = self.end.lock().unwrap();
        end.answer = Some(answer);
        end.wakers.drain(..).for_each(Waker::wake);
    }
}

/// The end of a pipe's body as a test says it.
struct Told(Arc<Probe>);

impl PipeEnd for Told {
    fn poll_end(&self, cx: &mut Context<'_>, at_eof: bool) -> Poll<Result<(), BodyError>> {
        let mut end = self.0.pipes.end.lock().unwrap();
        if let Some(answer) = end.answer {
            return Poll::Ready(answer);
        }
        if at_eof && !std::mem::replace(&mut end.was_asked_at_eof, true) {
            self.0.note("asked at eof");
        }
        end.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.0.note("end dropped");
    }
}

/// Answers out of pipes whose other end the test holds: `/held`, and `/told` with an end that the
/// test tells; a query is the announced size. `/cat` sends the request's body through a program.
pub(super) fn answer(request: &Request, path: &str, probe: Arc<Probe>) -> Answered {
    if path == "/cat" {
        return Answered::Ready(cat(request));
    }
    if path == "/no-pipe" {
        let file: OwnedFd = File::open("/proc/self/exe").unwrap().into();
        return Answered::Ready(Response::new(200, Fields::new(), body(file, None)));
    }
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    probe.pipes.writers.lock().unwrap().push(writer);
    let query = request.head().query().map(String::from_utf8_lossy);
    let body = Body::Pipe {
        first: match path {
            "/first" => Bytes::from_static(b"first "),
            _ => Bytes::new(),
        },
        fd: reader,
        len: query.and_then(|query| query.parse().ok()),
        end: match path {
            "/held" => None,
            _ => Some(Rc::new(Told(Arc::clone(&probe)))),
        },
    };
    if path == "/cancel" {
        request.set_half_close(HalfClose::Cancel);
    }
    probe.note("pipe");
    Answered::Ready(Response::new(200, Fields::new(), body))
}

/// What the client sends goes into a program, what the program makes of it to the client.
fn cat(request: &Request) -> Response {
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let fd = child.stdout.take().unwrap().into();
    let stdin = child.stdin.take().unwrap().into();
    let reactor = request.reactor().clone();
    let request = request.clone();
    request.clone().reactor().spawn(async move {
        let stdin = reactor.watch(stdin).unwrap();
        while let Some(Ok(mut bytes)) = request.next_body().await {
            while !bytes.is_empty() {
                let write = |cx: &mut Context<'_>| stdin.poll_write(cx, &bytes);
                let count = std::future::poll_fn(write).await.unwrap();
                bytes::Buf::advance(&mut bytes, count);
            }
        }
        drop(stdin);
        // It ends when all it wrote has been taken, by this thread.
        std::thread::spawn(move || child.wait());
    });
    Response::new(200, Fields::new(), body(fd, None))
}

fn body(fd: OwnedFd, end: Option<Rc<dyn PipeEnd>>) -> Body {
    Body::Pipe {
        first: Bytes::new(),
        fd,
        len: None,
        end,
    }
}

fn get_http10(client: &mut Client, target: &str) {
    client.send(&format!("GET {target} HTTP/1.0\r\n\r\n"));
}

/// The exchange that ends next, which has this outcome.
fn assert_finished(server: &Running, outcome: Outcome, reason: Option<&'static str>) {
    let finished = server.finished();
    assert_eq!(
        (finished.outcome, finished.reason),
        (outcome, reason),
        "{finished:?}"
    );
}

/// Checks every byte of a piece of the pattern that begins at `at`.
fn assert_pattern(bytes: &[u8], mut at: u64) {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    let block = BLOCK.get_or_init(|| pattern(251 * 1024));
    for piece in bytes.chunks(251 * 1023) {
        let from = (at % 251) as usize;
        assert!(*piece == block[from..from + piece.len()], "behind {at}");
        at += piece.len() as u64;
    }
}

/// Reads a chunked body to its end, and checks every byte.
fn assert_chunked_pattern(client: &mut Client, len: u64) {
    let mut at = 0;
    loop {
        let size = usize::from_str_radix(&client.take_line(), 16).unwrap();
        let bytes = client.take(size + 2);
        assert!(bytes.ends_with(b"\r\n"));
        if size == 0 {
            break;
        }
        assert_pattern(&bytes[..size], at);
        at += size as u64;
    }
    assert_eq!(at, len);
}

#[test]
fn a_long_body_arrives_whole_at_a_slow_reader() {
    let server = serve(Limits::default());
    let mut client = server.connect();
    client.get(&format!("/pipe?{LARGE}"));
    assert!(client.head().contains("chunked"));
    assert_chunked_pattern(&mut client, LARGE);
    let finished = server.finished();
    assert_eq!(finished.outcome, Outcome::Complete);
    assert_eq!(finished.body_bytes_out, LARGE);
    assert!(finished.first_byte_us < finished.total_us, "{finished:?}");
    let answer = client.ask(&format!("/sized-pipe?{LARGE}"));
    assert_eq!(answer.body.len() as u64, LARGE);
    assert_pattern(&answer.body, 0);
    get_http10(&mut client, &format!("/pipe?{LARGE}"));
    let head = client.head();
    assert!(
        head.contains("Connection: close\r\n") && !head.contains("Transfer"),
        "{head}"
    );
    let body = client.rest();
    assert_eq!(body.len() as u64, LARGE);
    assert_pattern(&body, 0);
}

#[test]
fn pieces_of_every_size_are_framed() {
    let server = serve(Limits::default());
    let mut client = server.connect();
    client.get("/held");
    assert_eq!(server.note(), "pipe");
    let mut writer = server.probe.pipes.writer();
    client.head();
    let sizes = [
        1, 10, 8191, 8192, 8193, 3, 16_384, 65_536, 65_537, 1, 200_000, 7,
    ];
    let mut at = 0;
    for size in sizes {
        let block: Vec<u8> = (at..at + size).map(pattern_byte).collect();
        let (mut twin, sent) = (writer.try_clone().unwrap(), block.clone());
        let sender = std::thread::spawn(move || twin.write_all(&sent).unwrap());
        let mut got = Vec::new();
        while got.len() < block.len() {
            let len = usize::from_str_radix(&client.take_line(), 16).unwrap();
            got.extend_from_slice(&client.take(len));
            // The end of a chunk is not kept back when nothing more comes.
            assert_eq!(client.take_line(), "");
        }
        assert!(got == block, "{size}");
        sender.join().unwrap();
        at += size;
    }
    writer.flush().unwrap();
    drop(writer);
    assert_eq!(client.take(5), b"0\r\n\r\n");
    assert_eq!(client.ask("/ready").text(), "ready");
}

/// Asks for a target whose pipe the test holds.
fn ask_held(server: &Running, target: &str) -> (Client, File) {
    let mut client = server.connect();
    client.get(target);
    assert_eq!(server.note(), "pipe");
    (client, server.probe.pipes.writer())
}

const DEAD: BodyError = BodyError::Source(Fault::Script, "the script was killed");

#[test]
fn first_bytes_go_ahead_and_count() {
    let server = serve(Limits::default());
    server.probe.pipes.end(Ok(()));
    for (target, framing) in [
        ("/first", "Transfer-Encoding: chunked\r\n"),
        ("/first?6", "Content-Length: 6\r\n"),
    ] {
        let (mut client, _writer) = ask_held(&server, target);
        let answer = client.answer();
        assert_eq!(answer.text(), "first ");
        assert!(answer.head.contains(framing), "{}", answer.head);
        assert_eq!(server.note(), "end dropped");
    }
}

#[test]
fn a_body_ends_when_its_end_says_so_though_the_pipe_is_held_open() {
    let server = serve(Limits::default());
    let (mut client, mut daemon) = ask_held(&server, "/told");
    client.head();
    daemon.write_all(b"before").unwrap();
    assert_eq!(client.take(11), b"6\r\nbefore\r\n");
    // What stands in the pipe when the end is told belongs to the body.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let busy = crate::thread::Handle::new(&server.crew, 0);
    busy.run::<super::Dummy>(move |_| receiver.recv().unwrap_or_default());
    daemon.write_all(b"at last").unwrap();
    server.probe.pipes.end(Ok(()));
    sender.send(()).unwrap();
    assert_eq!(client.take(17), b"7\r\nat last\r\n0\r\n\r\n");
    assert_eq!(server.note(), "end dropped");
    assert_eq!(
        daemon.write(b"x").unwrap_err().kind(),
        std::io::ErrorKind::BrokenPipe
    );
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn the_end_of_the_pipe_waits_for_the_word_of_its_end() {
    let server = serve(Limits::default());
    for (answer, outcome, rest) in [
        (Ok(()), Outcome::Complete, "0\r\n\r\n"),
        (Err(DEAD), Outcome::Broken, ""),
    ] {
        let (mut client, mut writer) = ask_held(&server, "/told");
        writer.write_all(b"all").unwrap();
        drop(writer);
        assert_eq!(server.note(), "asked at eof");
        server.probe.pipes.end(answer);
        client.head();
        assert_eq!(client.take(8), b"3\r\nall\r\n");
        let reason = answer.is_err().then_some("the script was killed");
        assert_finished(&server, outcome, reason);
        match answer {
            Ok(()) => assert_eq!(client.take(rest.len()), rest.as_bytes()),
            Err(_) => client.assert_end(),
        }
        assert_eq!(server.note(), "end dropped");
        *server.probe.pipes.end.lock().unwrap() = End::default();
    }
}

#[test]
fn a_program_that_is_killed_breaks_its_answer() {
    let server = serve(Limits::default());
    let (mut client, writer) = ask_held(&server, "/told");
    client.head();
    let mut child = Command::new("sh")
        .args(["-c", "printf half; kill -9 $$"])
        .stdout(writer)
        .spawn()
        .unwrap();
    assert_eq!(client.take(9), b"4\r\nhalf\r\n");
    assert_eq!(server.note(), "asked at eof");
    assert!(!child.wait().unwrap().success());
    server.probe.pipes.end(Err(DEAD));
    client.assert_end();
    assert_finished(&server, Outcome::Broken, Some("the script was killed"));
    // Without framing only a reset can tell.
    *server.probe.pipes.end.lock().unwrap() = End::default();
    let mut client = server.connect();
    get_http10(&mut client, "/told");
    assert_eq!(server.note(), "end dropped");
    assert_eq!(server.note(), "pipe");
    server.probe.pipes.end(Err(DEAD));
    client.assert_reset();
}

#[test]
fn an_error_of_the_end_breaks_off_a_silent_pipe() {
    let server = serve(Limits::default());
    let (mut client, _writer) = ask_held(&server, "/told");
    client.head();
    server
        .probe
        .pipes
        .end(Err(BodyError::Source(Fault::Script, "too late")));
    client.assert_end();
    assert_finished(&server, Outcome::Broken, Some("too late"));
}

//= rfc9110#9.3.2
#[test]
fn head_takes_nothing_from_the_pipe() {
    let server = serve(Limits::default());
    let mut client = server.connect();
    for (target, framing) in [("/told", ""), ("/told?9", "Content-Length: 9\r\n")] {
        client.send(&format!("HEAD {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(server.note(), "pipe");
        assert_eq!(server.note(), "end dropped");
        assert_eq!(client.head(), format!("HTTP/1.1 200 OK\r\n{framing}\r\n"));
        let written = server.probe.pipes.writer().write(b"x");
        assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    }
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn a_client_that_leaves_a_silent_pipe_is_noticed() {
    let server = serve(Limits::default());
    let (mut client, writer) = ask_held(&server, "/told");
    client.head();
    client.reset();
    assert_eq!(server.note(), "end dropped");
    assert_finished(&server, Outcome::ClientLeft, None);
    drop(writer);
    // FIN tells only where the answer says so.
    let (mut client, _writer) = ask_held(&server, "/cancel");
    client.head();
    client.half_close();
    assert_eq!(server.note(), "end dropped");
    assert_finished(&server, Outcome::ClientLeft, None);
    client.assert_end();
    let (mut client, mut writer) = ask_held(&server, "/held?4");
    client.half_close();
    client.head();
    writer.write_all(b"late").unwrap();
    assert_eq!(client.rest(), b"late");
    assert_finished(&server, Outcome::Complete, None);
}

#[test]
fn a_client_that_takes_nothing_holds_the_program_back() {
    let server = serve(Limits::default());
    let (client, writer) = ask_held(&server, "/told");
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut written = 0;
    let block = pattern(65_536);
    loop {
        match rustix::io::write(&writer, &block) {
            Ok(count) => written += count,
            Err(Errno::AGAIN) => {
                let is_stuck = server.ask(|thread| {
                    let conn = thread.slots[0].conn.as_ref().unwrap();
                    assert_eq!(conn.out.held_bytes, 0, "nothing is read into memory");
                    conn.core.deadline().1 == Deadline::Write
                });
                if is_stuck {
                    break;
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert!(written < 200_000_000, "the program is held back");
    }
    client.reset();
    assert_eq!(server.note(), "end dropped");
}

#[test]
fn a_silent_program_is_not_the_client_s_delay() {
    let server = serve(Limits {
        write_progress: Duration::from_millis(1),
        idle: Duration::from_millis(1),
        ..Limits::default()
    });
    let (mut client, mut writer) = ask_held(&server, "/held");
    writer.write_all(b"a").unwrap();
    client.head();
    assert_eq!(client.take(6), b"1\r\na\r\n");
    // Time passes: other connections go idle and are closed.
    for _ in 0..3 {
        let mut other = server.connect();
        assert_eq!(other.ask("/ready").text(), "ready");
        other.assert_end();
    }
    writer.write_all(b"b").unwrap();
    drop(writer);
    assert_eq!(client.take(11), b"1\r\nb\r\n0\r\n\r\n");
}

#[test]
fn a_body_flows_through_a_program() {
    let server = serve(Limits {
        body_bytes: u64::MAX,
        ..Limits::default()
    });
    let mut client = server.connect();
    client.post("/cat", LARGE as usize / 2);
    let mut writer = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&pattern(LARGE / 2)).unwrap());
    assert!(client.head().contains("chunked"));
    assert_chunked_pattern(&mut client, LARGE / 2);
    sender.join().unwrap();
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn answers_out_of_pipes_keep_their_order() {
    let server = serve(Limits::default());
    let mut client = server.connect();
    let one = "GET /pipe?100000 HTTP/1.1\r\nHost: h\r\n\r\nGET /ready HTTP/1.1\r\nHost: h\r\n\r\n";
    client.send(&one.repeat(20));
    for _ in 0..20 {
        assert!(client.answer().body == pattern(100_000));
        assert_eq!(client.answer().text(), "ready");
    }
}

#[test]
fn what_is_no_pipe_breaks_the_answer() {
    let server = serve(Limits::default());
    let mut client = server.connect();
    client.get("/no-pipe");
    client.head();
    client.assert_end();
    assert_finished(&server, Outcome::Broken, Some("the pipe is none"));
}
