//! HTTP/2: clients that leave, answers that break, limits that are reached, threads that drain.

use std::time::Duration;

use hob_trace::metric::ThreadCounters;
use hob_trace::{Fault, Outcome};

use super::framed::Framed;
use super::{Running, serve};
use crate::limits::HttpLimits;

const SHORT: Duration = Duration::from_millis(50);
const CANCELLED: &str = "dropped, left: true";

fn framed(server: &Running) -> Framed {
    Framed::connect(server.address)
}

fn counter(server: &Running, of: impl Fn(&ThreadCounters) -> u64) -> u64 {
    server.counters.iter().map(|counters| of(counters)).sum()
}

/// The next exchange that did not end well.
fn broken(server: &Running) -> super::Finished {
    loop {
        let finished = server.finished();
        if finished.outcome != Outcome::Complete {
            return finished;
        }
    }
}

#[test]
fn request_taken_back_ends_and_the_connection_goes_on() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    let id = client.get("/stuck");
    assert_eq!(server.note(), "waiting");
    client.reset(id);
    assert_eq!(server.note(), CANCELLED);
    let finished = server.finished();
    assert_eq!(
        (finished.outcome, finished.fault),
        (Outcome::ClientLeft, Fault::Client)
    );
    // In the midst of an answer too.
    client.takes = false;
    let id = client.get("/endless");
    client.wait_for_body(id, 65_535);
    client.reset(id);
    assert_eq!(server.finished().outcome, Outcome::ClientLeft);
    client.frame(8, 0, 0, &[0, 1, 0, 0]);
    assert_eq!(client.ask("/ready").text(), "ready");
    assert_eq!(counter(&server, |c| c.client_left.value()), 2);
}

#[test]
fn client_that_leaves_ends_all_its_requests() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    for _ in 0..3 {
        client.get("/stuck");
        assert_eq!(server.note(), "waiting");
    }
    client.ping();
    rustix::net::sockopt::set_socket_linger(&client.line.stream, Some(Duration::ZERO)).unwrap();
    drop(client);
    for _ in 0..3 {
        assert_eq!(server.note(), CANCELLED);
        assert_eq!(server.finished().outcome, Outcome::ClientLeft);
    }
    server.wait_for_open(0);
}

#[test]
fn fin_ends_what_is_to_be_cancelled_and_lets_others_end() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    client.get("/stuck?cancel");
    assert_eq!(server.note(), "waiting");
    let later = client.get("/later");
    assert_eq!(server.note(), "waiting");
    client
        .line
        .stream
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(server.note(), CANCELLED);
    server.gate().open();
    assert_eq!(client.answer(later).text(), "later");
    client.rest();
}

#[test]
fn answers_that_break_reset_their_stream_alone() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    for (path, len, reason) in [
        ("/broken", 4, "the script broke"),
        ("/short", 5, "the body is shorter than its announced size"),
        ("/long", 0, "the body is longer than its announced size"),
        (
            "/short-pipe?1000",
            1000,
            "the body is shorter than its announced size",
        ),
        (
            "/shorter-file?30000",
            30_000,
            "the file became shorter while it was sent",
        ),
        (
            "/shorter-cold-file?30000",
            30_000,
            "the file became shorter while it was sent",
        ),
        (
            "/written-to-file?10000",
            0,
            "the file was written to while it was sent",
        ),
        ("/unreadable-file?1000", 0, "the file could not be read"),
    ] {
        let got = client.ask(path);
        assert_eq!((got.status(), got.reset), (200, Some(2)), "{path}");
        assert_eq!(got.body.len(), len, "{path}");
        let finished = broken(&server);
        assert_eq!(
            (finished.outcome, finished.reason),
            (Outcome::Broken, Some(reason)),
            "{path}"
        );
    }
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn bodies_that_are_too_large_are_413() {
    let server = serve(HttpLimits {
        body_bytes: 1000,
        ..HttpLimits::default()
    });
    let mut client = framed(&server);
    let id = client.open("POST", "/count", false, &[("content-length", "1001")]);
    let got = client.answer(id);
    assert_eq!(got.status(), 413);
    assert_eq!(server.note(), "the request body is larger than its limit");
    let id = client.post("/count");
    client.send(id, &[7; 1001], false);
    assert_eq!(client.answer(id).status(), 413);
    let id = client.post("/count");
    client.send(id, &[7; 1000], true);
    assert_eq!(client.answer(id).text(), "1000");
    assert_eq!(counter(&server, |c| c.limit_body.value()), 2);
}

#[test]
fn refused_and_malformed_requests_have_records_and_counters() {
    let server = serve(HttpLimits {
        target_bytes: 64,
        ..HttpLimits::default()
    });
    let mut client = framed(&server);
    assert_eq!(client.ask(&format!("/{}", "x".repeat(64))).status(), 414);
    assert_eq!(server.finished().status, 414);
    let id = client.open("GET", "/ready", true, &[("connection", "close")]);
    assert_eq!(client.answer(id).reset, Some(1));
    let finished = server.finished();
    assert_eq!((finished.status, finished.fault), (0, Fault::Client));
    assert_eq!(counter(&server, |c| c.limit_target.value()), 1);
    assert_eq!(counter(&server, |c| c.bad_request.value()), 1);
    // A body that is not as it was announced.
    let id = client.open("POST", "/count", false, &[("content-length", "5")]);
    client.send(id, b"too much", true);
    assert_eq!(client.answer(id).reset, Some(1));
    assert_eq!(broken(&server).fault, Fault::Client);
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn rules_broken_and_floods_end_the_connection_and_are_counted() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    client.get("/stuck");
    assert_eq!(server.note(), "waiting");
    client.frame(6, 0, 1, b"12345678");
    client.rest();
    assert_eq!(client.goaways, [(1, 1)]);
    assert_eq!(server.note(), CANCELLED);
    assert_eq!(counter(&server, |c| c.h2_errors.value()), 1);
    let mut client = framed(&server);
    let flood: Vec<u8> = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8].repeat(100);
    client.write(&flood);
    client.rest();
    assert_eq!(client.goaways, [(0, 11)]);
    assert_eq!(counter(&server, |c| c.limit_h2_ping.value()), 1);
    // As many streams as may be, and one.
    let mut client = framed(&server);
    let most = crate::limits::H2_STREAMS_MAX;
    let ids: Vec<u32> = (0..=most).map(|_| client.get("/stuck")).collect();
    assert_eq!(client.answer(ids[most]).reset, Some(7));
    assert_eq!(counter(&server, |c| c.limit_h2_streams.value()), 1);
}

#[test]
fn idle_connection_is_told_and_closed() {
    let server = serve(HttpLimits {
        idle: SHORT,
        ..HttpLimits::default()
    });
    let mut client = framed(&server);
    assert_eq!(client.ask("/ready").text(), "ready");
    client.rest();
    assert_eq!(client.goaways, [(1, 0)]);
    assert_eq!(counter(&server, |c| c.limit_idle.value()), 1);
}

#[test]
fn half_a_frame_ends_the_connection_in_time() {
    let limits = HttpLimits {
        head_time: SHORT,
        ..HttpLimits::default()
    };
    let server = serve(limits);
    let mut client = framed(&server);
    client.ping();
    client.write(&[0, 0, 5, 1, 4]);
    client.rest();
    assert_eq!(client.goaways, [(0, 0)]);
    assert_eq!(counter(&server, |c| c.limit_head_time.value()), 1);
    // Half a preface has no protocol to be told in: it is answered as half a head.
    let mut half = server.connect();
    half.send("PRI * HTTP/2.0\r\n\r\nSM");
    assert_eq!(half.answer().status, 408);
}

#[test]
fn body_that_does_not_come_in_time_is_408() {
    let server = serve(HttpLimits {
        body_progress: SHORT,
        ..HttpLimits::default()
    });
    let mut client = framed(&server);
    let id = client.post("/count");
    client.send(id, b"some", false);
    assert_eq!(client.answer(id).status(), 408);
    assert_eq!(broken(&server).outcome, Outcome::Timeout);
    let id = client.post("/echo-stream");
    assert_eq!(client.answer(id).reset, Some(8));
    assert_eq!(counter(&server, |c| c.limit_body_progress.value()), 2);
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn client_that_makes_no_room_loses_its_stream_or_its_connection() {
    let server = serve(HttpLimits {
        write_progress: SHORT,
        ..HttpLimits::default()
    });
    // No stream may send a byte.
    let mut client = Framed::connect_with(server.address, &[(4, 0)]);
    let id = client.get("/bytes?100");
    assert_eq!(client.answer(id).reset, Some(8));
    assert_eq!(client.ask("/bytes?0").status(), 200);
    // All streams together may not.
    let mut client = framed(&server);
    client.takes = false;
    client.frame(8, 0, 0, &[0, 0, 0, 1]);
    let ids = [client.get("/bytes?60000"), client.get("/bytes?60000")];
    client.wait_for_body(ids[0], 60_000);
    let mut buffer = [0; 100_000];
    let ended = std::iter::repeat_with(|| client.line.read(&mut buffer))
        .find(|read| !matches!(read, Ok(1..)));
    assert!(ended.is_some());
    assert_eq!(counter(&server, |c| c.limit_write_progress.value()), 2);
    assert_eq!(broken(&server).outcome, Outcome::Timeout);
}

#[test]
fn draining_loses_nothing_that_was_asked() {
    let mut server = serve(HttpLimits::default());
    let mut idle = framed(&server);
    idle.ping();
    let mut client = framed(&server);
    let later = client.get("/later");
    assert_eq!(server.note(), "waiting");
    let minute = Duration::from_secs(60);
    server.drain(minute, Duration::from_millis(300));
    // What was sent before the client could know is answered too.
    assert_eq!(client.ask("/ready").text(), "ready");
    assert_eq!(client.goaways[0], (0x7fff_ffff, 0));
    idle.rest();
    assert_eq!(idle.goaways, [(0x7fff_ffff, 0), (0, 0)]);
    server.gate().open();
    assert_eq!(client.answer(later).text(), "later");
    client.rest();
    assert_eq!(client.goaways.last(), Some(&(3, 0)));
    server.join();
}

#[test]
fn answers_in_flight_are_whole_after_a_drain() {
    let mut server = serve(HttpLimits::default());
    let mut client = framed(&server);
    client.takes = false;
    let id = client.get("/bytes?3000000");
    client.wait_for_body(id, 65_535);
    server.drain(Duration::from_secs(60), Duration::ZERO);
    client.takes = true;
    let mut room = Vec::new();
    crate::h2::frame::push_window_update(0, 65_535, &mut room);
    crate::h2::frame::push_window_update(id, 65_535, &mut room);
    client.write(&room);
    assert_eq!(client.answer(id).body.len(), 3_000_000);
    client.rest();
    server.join();
}
