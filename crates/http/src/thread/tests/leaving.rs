//! Clients that leave: by FIN, by RST, early, and while nobody reads.

use std::io::Write;

use hob_trace::{Fault, Outcome};

use super::dummy::pattern;
use super::serve;
use crate::limits::HttpLimits;

const CANCELLED: &str = "dropped, left: true";

#[test]
fn fin_ends_a_request_that_is_to_be_cancelled() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/stuck?cancel");
    assert_eq!(server.note(), "waiting");
    client.half_close();
    assert_eq!(server.note(), CANCELLED);
    client.assert_end();
    let finished = server.finished();
    assert_eq!(finished.outcome, Outcome::ClientLeft);
    assert_eq!(finished.fault, Fault::Client);
    assert_eq!(finished.status, 0);
    assert_eq!(server.counters[0].client_left.value(), 1);
}

#[test]
fn fin_right_behind_the_request_is_noticed_as_well() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/stuck?cancel");
    client.half_close();
    assert_eq!(server.note(), "waiting");
    assert_eq!(server.note(), CANCELLED);
}

#[test]
fn fin_leaves_other_answers_alone() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/later");
    client.get("/ready");
    client.half_close();
    assert_eq!(server.note(), "waiting");
    server.gate().open();
    assert_eq!(client.answer().text(), "later");
    assert_eq!(client.answer().text(), "ready");
    client.assert_end();
    let mut client = server.connect();
    client.get("/bytes?3000000");
    client.half_close();
    assert!(client.answer().body == pattern(3_000_000));
    client.assert_end();
}

#[test]
fn rst_ends_any_request() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/stuck");
    assert_eq!(server.note(), "waiting");
    client.reset();
    assert_eq!(server.note(), CANCELLED);
    assert_eq!(server.finished().outcome, Outcome::ClientLeft);
    server.wait_for_open(0);
}

#[test]
fn leaving_is_noticed_while_the_handler_does_not_read() {
    let server = serve(HttpLimits {
        body_bytes: u64::MAX,
        ..HttpLimits::default()
    });
    // The body stands unread in our buffers and the kernel's.
    let begin = |target: &str| {
        let mut client = server.connect();
        client.post(target, 10_000_000);
        client.stream.write_all(&pattern(100_000)).unwrap();
        assert_eq!(server.note(), "waiting");
        if target.ends_with("read") {
            assert_eq!(server.note(), "read true");
        }
        client
    };
    begin("/stuck").reset();
    assert_eq!(server.note(), CANCELLED);
    begin("/stuck?read").reset();
    assert_eq!(server.note(), CANCELLED);
    begin("/stuck?cancel").half_close();
    assert_eq!(server.note(), CANCELLED);
}

#[test]
fn a_body_broken_off_by_fin_is_told_to_the_handler() {
    let server = serve(HttpLimits::default());
    for is_chunked in [false, true] {
        let mut client = server.connect();
        if is_chunked {
            client.post_chunked("/count");
            client.send("a\r\nhello");
        } else {
            client.post("/count", 10);
            client.send("hello");
        }
        client.half_close();
        assert_eq!(server.note(), "the client left");
        // The handler may still answer.
        assert_eq!(client.answer().status, 400);
        client.assert_end();
    }
}

#[test]
fn a_client_that_leaves_amid_an_answer_ends_it() {
    let server = serve(HttpLimits::default());
    for target in [
        "/endless",
        "/endless-file",
        "/bytes?50000000",
        "/pipe?50000000",
    ] {
        let mut client = server.connect();
        client.get(target);
        client.take(100_000);
        client.reset();
        let finished = server.finished();
        assert_eq!(finished.outcome, Outcome::ClientLeft, "{target}");
        assert_eq!(finished.status, 200);
    }
    server.wait_for_open(0);
}

#[test]
fn a_tunnel_ends_when_its_client_leaves() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/tunnel");
    client.head();
    client.send("x");
    client.take(1);
    client.reset();
    assert_eq!(server.finished().outcome, Outcome::ClientLeft);
}
