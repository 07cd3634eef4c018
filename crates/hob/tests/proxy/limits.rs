//! Every limit of time: reaching it is an answer, a reason and a count.

use std::time::{Duration, Instant};

use crate::harness::client::Connection;
use crate::peer::{Act, Peer, answer, serve, stays_after};

/// A peer that stays silent after these bytes, and the counter and reason of the limit it meets.
/// True where the answer had begun.
fn silent(bytes: &str, timeout: &str, counter: &str, reason: &str) -> bool {
    let peer = Peer::start(vec![stays_after(bytes)]);
    let site = serve(&[&peer], &format!("timeout = {{ {timeout} }}"));
    let reply = site.get("/app/x");
    let is_broken = !reply.is_whole;
    if !is_broken {
        assert_eq!(reply.answer.status, 504);
    }
    let record = site.record("/app/x");
    assert_eq!(record["reason"], reason);
    assert_eq!(record["fault"], "upstream");
    assert_eq!(site.place.counter(counter), 1);
    // It is told: the connection is closed.
    peer.join();
    site.stop();
    is_broken
}

#[test]
fn other_server_that_says_nothing_is_given_up() {
    let reason = "limits: proxy.timeout.first_byte: no head of an answer in time";
    let counter = "limit_upstream_first_byte";
    let first_byte = "first_byte = \"100ms\"";
    assert!(!silent("", first_byte, counter, reason));
    assert!(!silent("HTTP/1.1 200 O", first_byte, counter, reason));
    assert!(!silent(
        "HTTP/1.1 103 Early Hints\r\n\r\n",
        first_byte,
        counter,
        reason
    ));
}

#[test]
fn answer_may_wait_for_a_body_that_takes_longer_than_it_may() {
    const BODY_BYTES: usize = 1_000_000;
    let (read, was_read) = std::sync::mpsc::channel();
    let act: Act = Box::new(move |taken| {
        let mut bytes = 0;
        while bytes < BODY_BYTES {
            bytes += taken.some();
            // Who has sent all is not told.
            let _ = read.send(bytes);
        }
        taken.write(&answer("all of it"));
    });
    let peer = Peer::start_after_heads(vec![act]);
    let site = serve(&[&peer], "timeout = { first_byte = \"2s\" }");
    let mut client = Connection::open(site.port()).unwrap();
    let length = format!("Content-Length: {BODY_BYTES}\r\n");
    client.send_ask("PUT", "/app/", &length);
    let (begun, mut sent) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(3) {
        client.send(b"x").unwrap();
        sent += 1;
        while was_read.recv().unwrap() < sent {}
        // It takes a while to look, and it goes on meanwhile.
        let told = site.place.status();
        assert_eq!(
            told["programs"]["upstreams"][0]["members"][0]["requests"],
            1
        );
    }
    client.send(&vec![b'x'; BODY_BYTES - sent]).unwrap();
    assert_eq!(client.read().unwrap().text(), "all of it");
    peer.join();
    site.stop();
}

#[test]
fn body_that_grows_too_large_on_its_way_is_the_clients_fault() {
    let peer = Peer::start_after_heads(vec![stays_after("")]);
    let site = serve(&[&peer], "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("POST", "/app/large", "Transfer-Encoding: chunked\r\n");
    let chunk = [&b"100000\r\n"[..], &vec![b'x'; 1 << 20], b"\r\n"].concat();
    // The limit is ten of them; what is sent after the answer may not be taken.
    for _ in 0..11 {
        let _ = client.send(&chunk);
    }
    let (status, _) = client.read_head().unwrap();
    assert_eq!(status, 413);
    assert_eq!(site.record("/app/large")["fault"], "client");
    let told = site.place.status();
    assert_eq!(
        told["programs"]["upstreams"][0]["members"][0]["failures"],
        0
    );
    peer.join();
    site.stop();
}

#[test]
fn answer_that_falls_silent_or_takes_too_long_breaks_off() {
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun";
    let reason = "limits: proxy.timeout.progress: the answer fell silent";
    let progress = "progress = \"100ms\"";
    assert!(silent(begun, progress, "limit_upstream_progress", reason));
    let reason = "limits: proxy.timeout.total: the answer took too long";
    // The head must come within it, on a busy machine too.
    assert!(silent(
        begun,
        "total = \"2s\"",
        "limit_upstream_total",
        reason
    ));
    assert!(!silent(
        "",
        "total = \"100ms\"",
        "limit_upstream_total",
        reason
    ));
    let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n";
    let reason = "limits: proxy.timeout.events: the stream of events fell silent";
    let timeout = "events = \"3s\", total = \"2s\", progress = \"2s\"";
    assert!(silent(events, timeout, "limit_upstream_events", reason));
}
