//! Limits of size, time and number; each is reached.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use hob_trace::metric::ThreadCounters;
use hob_trace::{Fault, Outcome};

use super::client::Client;
use super::dummy::pattern;
use super::{Running, serve};
use crate::h2::PREFACE;
use crate::limits::{ASIDE_CONNECTIONS_MAX, HttpLimits};
use crate::thread::Listening;

const SHORT: Duration = Duration::from_millis(50);

fn counter(server: &Running, of: impl Fn(&ThreadCounters) -> u64) -> u64 {
    server.counters.iter().map(|counters| of(counters)).sum()
}

//= rfc9110#15.5.9
#[test]
fn a_head_that_does_not_come_in_time_is_408() {
    let server = serve(HttpLimits {
        head_time: SHORT,
        ..HttpLimits::default()
    });
    let mut client = server.connect();
    client.send("GET /slow HTTP/1.1\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 408);
    assert!(answer.closes());
    client.assert_end();
    let finished = server.finished();
    assert_eq!(finished.target, "/slow");
    assert_eq!((finished.status, finished.fault), (408, Fault::Client));
    assert_eq!(counter(&server, |c| c.limit_head_time.value()), 1);
    // Without a byte there is no one to answer.
    server.connect().assert_end();
    assert_eq!(counter(&server, |c| c.limit_idle.value()), 1);
}

#[test]
fn an_idle_connection_is_closed() {
    let server = serve(HttpLimits {
        idle: SHORT,
        ..HttpLimits::default()
    });
    let mut client = server.connect();
    assert_eq!(client.ask("/ready").text(), "ready");
    client.assert_end();
    assert_eq!(counter(&server, |c| c.limit_idle.value()), 1);
}

#[test]
fn a_body_that_does_not_come_in_time_is_408() {
    let server = serve(HttpLimits {
        body_progress: SHORT,
        ..HttpLimits::default()
    });
    let mut client = server.connect();
    client.post("/count", 10);
    client.send("hel");
    let answer = client.answer();
    assert_eq!(answer.status, 408);
    assert!(answer.closes());
    client.assert_end();
    let finished = server.finished();
    assert_eq!((finished.status, finished.fault), (408, Fault::Client));
    assert_eq!(finished.outcome, Outcome::Timeout);
    assert_eq!(counter(&server, |c| c.limit_body_progress.value()), 1);
    // Also one that nobody reads: the answer has left, the connection ends.
    let mut client = server.connect();
    client.post("/ready", 10);
    assert_eq!(client.answer().text(), "ready");
    client.assert_end();
}

#[test]
fn a_handler_that_does_not_read_is_not_the_client_s_delay() {
    let server = serve(HttpLimits {
        body_progress: Duration::from_millis(1),
        ..HttpLimits::default()
    });
    let mut client = server.connect();
    client.post("/later", 10);
    assert_eq!(server.note(), "waiting");
    // Time passes: another client's does.
    let mut other = server.connect();
    other.post("/count", 10);
    assert_eq!(other.answer().status, 408);
    server.gate().open();
    client.send("0123456789");
    assert_eq!(client.answer().text(), "later");
}

#[test]
fn a_client_that_takes_nothing_is_reset() {
    let server = serve(HttpLimits {
        write_progress: SHORT,
        ..HttpLimits::default()
    });
    for target in [
        "/endless",
        "/endless-file",
        "/bytes?50000000",
        "/pipe?50000000",
    ] {
        let mut client = server.connect();
        client.get(target);
        let finished = server.finished();
        assert_eq!(finished.outcome, Outcome::Timeout, "{target}");
        assert_eq!(finished.fault, Fault::Client);
        let reason = "limits.write_progress: the client took no bytes";
        assert_eq!(finished.reason, Some(reason));
        client.assert_reset();
    }
    assert_eq!(counter(&server, |c| c.limit_write_progress.value()), 4);
}

#[test]
fn sending_is_no_substitute_for_taking() {
    let server = serve(HttpLimits {
        write_progress: Duration::from_millis(200),
        ..HttpLimits::default()
    });
    let mut client = server.connect();
    client.get("/bytes?50000000");
    // Every byte is an event for the connection, and none of them winds its clock up.
    let mut writer = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || while writer.write_all(b"\r\n").is_ok() {});
    assert_eq!(server.finished().outcome, Outcome::Timeout);
    sender.join().unwrap();
}

#[test]
fn a_lingering_connection_is_closed_in_time() {
    let server = serve(HttpLimits {
        linger: SHORT,
        ..HttpLimits::default()
    });
    let mut client = server.connect();
    assert!(client.ask("/close").closes());
    client.assert_end();
    server.wait_for_open(0);
    assert_eq!(counter(&server, |c| c.limit_linger.value()), 1);
}

//= rfc9110#15.5.14
#[test]
fn a_body_over_the_limit_is_413() {
    let server = serve(HttpLimits::default());
    // Announced: at once, without a byte of it.
    let mut client = server.connect();
    client.post("/limit?10", 1_000_000);
    let answer = client.answer();
    assert_eq!(answer.status, 413);
    assert!(answer.closes());
    // In chunks: as soon as it is too much, and the client may still be sending.
    let mut client = server.connect();
    client.post_chunked("/limit?10");
    client.send("a\r\n0123456789\r\n");
    client.send("f4240\r\n");
    client.stream.write_all(&pattern(1_000_000)).unwrap();
    let answer = client.answer();
    assert_eq!(answer.status, 413);
    assert!(answer.closes());
    client.assert_end();
    assert_eq!(counter(&server, |c| c.limit_body.value()), 2);
    // What fits is read.
    let mut client = server.connect();
    client.post("/limit?10", 10);
    client.send("0123456789");
    assert_eq!(client.answer().text(), "10");
}

#[test]
fn without_a_word_of_the_handler_the_general_limit_counts() {
    let server = serve(HttpLimits {
        body_bytes: 100,
        ..HttpLimits::default()
    });
    let mut client = server.connect();
    let head =
        "POST /count HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n";
    client.send(head);
    // Refused rather than asked for.
    assert_eq!(client.answer().status, 413);
    assert_eq!(server.note(), "the request body is larger than its limit");
    client.assert_end();
    assert_eq!(counter(&server, |c| c.limit_body.value()), 1);
}

#[test]
fn a_malformed_body_is_told_to_the_handler() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.post_chunked("/count");
    client.send("3\r\nabcd\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 400);
    assert!(answer.closes());
    client.assert_end();
    assert_eq!(
        server.note(),
        "the request body is malformed: a chunk is longer than it says"
    );
    let finished = server.finished();
    assert_eq!(finished.reason, Some("a chunk is longer than it says"));
}

#[test]
fn refusals_are_counted_by_their_limit() {
    let server = serve(HttpLimits::default());
    let status_of = |request: &str| {
        let mut client = server.connect();
        client.send(request);
        let answer = client.answer();
        assert!(answer.closes());
        answer.status
    };
    let long = "a".repeat(9000);
    assert_eq!(status_of(&format!("GET /{long} HTTP/1.1\r\n\r\n")), 414);
    let long = "a".repeat(66_000);
    assert_eq!(
        status_of(&format!("GET / HTTP/1.1\r\nX: {long}\r\n\r\n")),
        431
    );
    let many = "X: y\r\n".repeat(101);
    assert_eq!(status_of(&format!("GET / HTTP/1.1\r\n{many}\r\n")), 431);
    assert_eq!(status_of("GET / HTTP/2.0\r\n\r\n"), 505);
    assert_eq!(status_of("POST / HTTP/1.0\r\n\r\n"), 411);
    let head = |field: &str| format!("GET / HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n");
    assert_eq!(status_of(&head("Expect: miracles")), 417);
    assert_eq!(status_of(&head("Transfer-Encoding: gzip, chunked")), 501);
    assert_eq!(status_of(&head("Host: other")), 400);
    assert_eq!(counter(&server, |c| c.limit_target.value()), 1);
    assert_eq!(counter(&server, |c| c.limit_head.value()), 1);
    assert_eq!(counter(&server, |c| c.limit_headers.value()), 1);
    assert_eq!(counter(&server, |c| c.bad_request.value()), 1);
    assert_eq!(counter(&server, |c| c.unsupported.value()), 4);
}

//= rfc9110#15.6.4
#[test]
fn a_connection_too_many_gets_503() {
    let server = serve(HttpLimits {
        connection_count: 2,
        ..HttpLimits::default()
    });
    let mut first = server.connect();
    let mut second = server.connect();
    assert_eq!(first.ask("/ready").text(), "ready");
    assert_eq!(second.ask("/ready").text(), "ready");
    let mut third = server.connect();
    let answer = third.ask("/ready");
    assert_eq!(answer.status, 503);
    assert!(answer.head.contains("Retry-After: 5\r\n"));
    assert!(answer.closes());
    third.assert_end();
    assert_eq!(counter(&server, |c| c.limit_connections.value()), 1);
    drop(first);
    server.wait_for_open(1);
    assert_eq!(server.connect().ask("/ready").text(), "ready");
    assert_eq!(second.ask("/ready").text(), "ready");
}

//= rfc9113#6.8
#[test]
fn connection_too_many_is_told_so_in_the_protocol_it_speaks() {
    let server = serve(HttpLimits {
        connection_count: 0,
        ..HttpLimits::default()
    });
    // Its preface may come in pieces.
    let mut line = server.connect();
    line.write(&PREFACE[..5]).unwrap();
    line.write(&PREFACE[5..]).unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let goaway = [0, 0, 48, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
    let reason = b"there is no room for one more connection";
    assert_eq!(line.rest(), [&settings[..], &goaway, reason].concat());
    // One that begins alike and speaks HTTP/1, and one that says nothing at all.
    for said in [
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        "PR",
        "",
    ] {
        let mut client = server.connect();
        client.write(said.as_bytes()).unwrap();
        assert!(client.head().starts_with("HTTP/1.1 503 "), "{said}");
        client.assert_end();
    }
    assert_eq!(counter(&server, |c| c.limit_connections.value()), 4);
}

#[test]
fn many_connections_too_many_hold_nothing_for_long() {
    let server = serve(HttpLimits {
        connection_count: 0,
        ..HttpLimits::default()
    });
    let clients: Vec<_> = (0..200).map(|_| server.connect()).collect();
    for mut client in clients {
        assert!(client.head().starts_with("HTTP/1.1 503 "));
        client.assert_end();
    }
    assert_eq!(counter(&server, |c| c.limit_connections.value()), 200);
}

#[test]
fn a_listener_that_stands_aside_lets_clients_into_a_full_server() {
    let server = serve(HttpLimits {
        connection_count: 1,
        connection_count_per_client: 1,
        ..HttpLimits::default()
    });
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    server.ask(move |thread| {
        let mut listeners = thread.accepting.listeners.clone();
        listeners.push(Listening::aside(9, Arc::new(listener.into())));
        thread.set_listeners(listeners).unwrap();
    });
    let mut held = server.connect();
    assert_eq!(held.ask("/ready").text(), "ready");
    assert_eq!(server.connect().ask("/ready").status, 503);
    let mut aside: Vec<_> = (0..ASIDE_CONNECTIONS_MAX)
        .map(|_| Client::connect(address))
        .collect();
    for client in &mut aside {
        assert_eq!(client.ask("/ready").text(), "ready");
    }
    assert_eq!(server.crew.open_connections(), 1);
    assert_eq!(Client::connect(address).ask("/ready").status, 503);
    assert_eq!(counter(&server, |c| c.limit_connections.value()), 2);
    // They take no room from others either.
    drop(held);
    server.wait_for_open(0);
    assert_eq!(server.connect().ask("/ready").text(), "ready");
}

#[test]
fn one_client_may_have_only_so_many_connections() {
    let server = serve(HttpLimits {
        connection_count_per_client: 2,
        ..HttpLimits::default()
    });
    let mut first = server.connect();
    let mut second = server.connect();
    assert_eq!(first.ask("/ready").text(), "ready");
    assert_eq!(second.ask("/ready").text(), "ready");
    assert_eq!(server.connect().ask("/ready").status, 503);
    assert_eq!(
        counter(&server, |c| c.limit_connections_per_client.value()),
        1
    );
    drop(first);
    drop(second);
    server.wait_for_open(0);
    assert_eq!(server.connect().ask("/ready").text(), "ready");
}
