//! Long answers that go on inside the kernel: all of their bytes, their ends, and what is copied.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use crate::harness::DEADLINE;
use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::peer::{Peer, Taken, answers, serve, serve_to};

const LONG: usize = 4_000_000;
/// More than sockets take in on their way, also where the kernel remembers a fast one (`ip
/// tcp_metrics`).
const ENDLESS: usize = 20_000_000;
/// Pipes that a thread has in use at most.
const PIPES_MAX: usize = 64;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 + at % 251) as u8).collect()
}

fn head(len: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").into_bytes()
}

#[test]
fn long_bodies_are_passed_on_whole_and_their_connection_serves_others() {
    let peer = Peer::start(vec![Box::new(|taken| {
        for len in [LONG, 65_537, 65_536, 10] {
            taken.write(&[head(len), pattern(len)].concat());
            if len > 10 {
                taken.read();
            }
        }
    })]);
    let site = serve(&[&peer], "keep = 4");
    for (at, len) in [LONG, 65_537, 65_536, 10].into_iter().enumerate() {
        let target = format!("/app/{at}");
        let answer = site.get(&target).answer;
        assert!(answer.body == pattern(len), "{len}: {}", answer.body.len());
        let record = site.record(&target);
        assert_eq!(
            (&record["outcome"], &record["status"]),
            (&"complete".into(), &200.into())
        );
        assert_eq!(record["bytes"], len);
    }
    assert_eq!(site.place.counter("spliced_answers"), 2);
    assert_eq!(site.place.counter("upstream_connects"), 1);
    peer.join();
    site.stop();
}

#[test]
fn body_that_ends_short_breaks_at_the_client() {
    let short = [head(LONG), pattern(LONG / 2)].concat();
    let peer = Peer::start(vec![crate::peer::sends(short)]);
    let site = serve(&[&peer], "");
    let reply = site.get("/app/short");
    assert!(reply.is_broken());
    let record = site.record("/app/short");
    assert_eq!(record["fault"], "upstream", "{record}");
    assert_eq!(site.place.counter("spliced_answers"), 1);
    peer.join();
    site.stop();
}

#[test]
fn bytes_behind_a_body_are_nobodys() {
    let more = [head(LONG), pattern(LONG), head(3), b"bad".to_vec()].concat();
    let peer = Peer::start(vec![crate::peer::stays_after(more), answers(1)]);
    let site = serve(&[&peer], "keep = 4");
    assert!(site.get("/app/").answer.body == pattern(LONG));
    assert_eq!(site.get("/app/").answer.text(), "0");
    assert_eq!(site.place.counter("spliced_answers"), 1);
    peer.join();
    site.stop();
}

#[test]
fn silence_within_a_body_ends_it() {
    let begun = [head(LONG), pattern(200_000)].concat();
    let peer = Peer::start(vec![crate::peer::stays_after(begun)]);
    let site = serve(&[&peer], "timeout = { progress = \"100ms\" }");
    assert!(site.get("/app/silent").is_broken());
    assert_eq!(site.place.counter("limit_upstream_progress"), 1);
    peer.join();
    site.stop();
}

#[test]
fn who_finds_no_pipe_is_answered_by_copying() {
    let expected = pattern(ENDLESS);
    let whole = [head(ENDLESS), expected.clone()].concat();
    let port = Peer::for_each(move |taken| {
        taken.next().unwrap();
        taken.write(&whole);
    });
    let site = serve_by_one_thread(port);
    let held = || {
        let socket = TcpStream::connect(("127.0.0.1", site.port())).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 16 * 1024).unwrap();
        let mut client = Connection::of(socket.into());
        client.send_get("/app/").unwrap();
        client.read_head().unwrap();
        client
    };
    // They read no further, so that their pipes stay in use.
    let all: Vec<_> = (0..PIPES_MAX).map(|_| held()).collect();
    assert_eq!(site.place.counter("spliced_answers"), PIPES_MAX as u64);
    assert!(site.get("/app/").answer.body == expected);
    assert_eq!(site.place.counter("limit_splice_pipes"), 1);
    drop(all);
    let until = Instant::now() + DEADLINE;
    while site.place.counter("spliced_answers") == PIPES_MAX as u64 {
        assert!(site.get("/app/").answer.body == expected);
        assert!(Instant::now() < until, "no pipe comes back");
    }
    site.stop();
}

/// A server of one thread.
fn serve_by_one_thread(port: u16) -> Site {
    let handler = format!("proxy = \"http://127.0.0.1:{port}\"");
    let place = crate::harness::Place::new();
    Site::serve(place, "threads = 1\n", &handler, "")
}

#[test]
fn client_that_leaves_ends_the_other_side_and_leaves_no_bytes_to_others() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let tell = tell.clone();
            std::thread::spawn(move || {
                let mut taken = Taken::new(stream.unwrap());
                taken.next().unwrap();
                tell.send(taken.try_write(&[head(20_000_000), pattern(20_000_000)].concat()))
            });
        }
    });
    let site = serve_to(&format!("\"http://127.0.0.1:{port}\""), "");
    for _ in 0..3 {
        let mut client = Connection::open(site.port()).unwrap();
        client.send_get("/app/").unwrap();
        client.skip(1_000_000).unwrap();
        client.leave();
        assert!(!told.recv().unwrap(), "it is told");
    }
    let mut stream = TcpStream::connect(("127.0.0.1", site.port())).unwrap();
    let request = b"GET /app/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, request).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert!(all.ends_with(&pattern(20_000_000)));
    site.stop();
}
