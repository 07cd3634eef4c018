//! Bodies out of pipes: what programs write, how they end, and clients that are slow or leave.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

use hob_trace::{Fault, Outcome};
use rustix::io::Errno;

use super::client::Client;
use super::dummy::{pattern, pattern_byte};
use super::{Running, serve};
use crate::body::BodyError;
use crate::deadline::Deadline;
use crate::limits::{HttpLimits, LARGE_PIPE_BYTES, LARGE_PIPES_MAX};

const LARGE: u64 = 50_000_000;

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

/// Reads chunks of so many bytes of the pattern in all.
fn assert_chunks(client: &mut Client, len: u64) {
    let mut at = 0;
    while at < len {
        let size = usize::from_str_radix(&client.take_line(), 16).unwrap();
        let bytes = client.take(size);
        assert_eq!(client.take_line(), "");
        assert_pattern(&bytes, at);
        at += size as u64;
    }
    assert_eq!(at, len);
}

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[test]
fn a_long_body_arrives_whole_at_a_slow_reader() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get(&format!("/pipe?{LARGE}"));
    assert!(client.head().contains("chunked"));
    assert_chunks(&mut client, LARGE);
    assert_eq!(client.take(5), LAST_CHUNK);
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
fn long_bodies_have_larger_pipes_as_long_as_they_are_few() {
    let server = serve(HttpLimits::default());
    thread_local! {
        static OTHERS: RefCell<Vec<Rc<()>>> = RefCell::default();
    }
    let size_of = |is_among_few: bool| {
        server.ask(move |thread| {
            let others = if is_among_few {
                LARGE_PIPES_MAX - 1
            } else {
                LARGE_PIPES_MAX
            };
            OTHERS.set(vec![Rc::clone(&thread.large_pipes); others]);
        });
        let (mut client, mut writer) = ask_held(&server, "/held");
        let twin = writer.try_clone().unwrap();
        let sender = std::thread::spawn(move || {
            writer.write_all(&pattern(2_000_000)).unwrap();
        });
        client.head();
        assert_chunks(&mut client, 2_000_000);
        sender.join().unwrap();
        let size = rustix::pipe::fcntl_getpipe_size(&twin).unwrap();
        drop(twin);
        assert_eq!(client.take(5), LAST_CHUNK);
        size
    };
    assert_eq!(size_of(true), LARGE_PIPE_BYTES);
    assert_eq!(size_of(false), 65_536);
    server.ask(|thread| {
        OTHERS.take();
        assert_eq!(
            Rc::strong_count(&thread.large_pipes),
            1,
            "all are given back"
        );
    });
}

#[test]
fn pieces_of_every_size_are_framed() {
    let server = serve(HttpLimits::default());
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
    assert_eq!(client.take(5), LAST_CHUNK);
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
    let server = serve(HttpLimits::default());
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
    let server = serve(HttpLimits::default());
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
    let server = serve(HttpLimits::default());
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
        server.probe.pipes.forget();
    }
}

#[test]
fn a_program_that_is_killed_breaks_its_answer() {
    let server = serve(HttpLimits::default());
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
    server.probe.pipes.forget();
    let mut client = server.connect();
    get_http10(&mut client, "/told");
    assert_eq!(server.note(), "end dropped");
    assert_eq!(server.note(), "pipe");
    server.probe.pipes.end(Err(DEAD));
    client.assert_reset();
}

#[test]
fn an_error_of_the_end_breaks_off_a_silent_pipe() {
    let server = serve(HttpLimits::default());
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
    let server = serve(HttpLimits::default());
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
    let server = serve(HttpLimits::default());
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
    let server = serve(HttpLimits::default());
    let (client, writer) = ask_held(&server, "/told");
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut written = 0;
    let block = pattern(65_536);
    loop {
        match rustix::io::write(&writer, &block) {
            Ok(count) => written += count,
            Err(Errno::AGAIN) => {
                let is_stuck = server.ask(|thread| {
                    let conn = thread.seats.iter().next().unwrap();
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
    let server = serve(HttpLimits {
        write_progress: Duration::from_millis(1),
        idle: Duration::from_millis(1),
        ..HttpLimits::default()
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
    let server = serve(HttpLimits {
        body_bytes: u64::MAX,
        ..HttpLimits::default()
    });
    let mut client = server.connect();
    client.post("/cat", LARGE as usize / 2);
    let mut writer = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&pattern(LARGE / 2)).unwrap());
    assert!(client.head().contains("chunked"));
    assert_chunks(&mut client, LARGE / 2);
    assert_eq!(client.take(5), LAST_CHUNK);
    sender.join().unwrap();
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn answers_out_of_pipes_keep_their_order() {
    let server = serve(HttpLimits::default());
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
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/no-pipe");
    client.head();
    client.assert_end();
    assert_finished(&server, Outcome::Broken, Some("the pipe is none"));
}
