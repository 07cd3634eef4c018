//! Answers of every kind, whole.

use std::io::Write;
use std::sync::atomic::Ordering;

use hob_trace::{Fault, Outcome};

use super::dummy::pattern;
use super::serve;
use crate::limits::HttpLimits;

#[test]
fn a_ready_answer_leaves_and_the_connection_stays() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    for _ in 0..3 {
        let answer = client.ask("/ready");
        assert_eq!(answer.head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(answer.text(), "ready");
        let finished = server.finished();
        assert_eq!((finished.target.as_str(), finished.status), ("/ready", 200));
        assert_eq!(finished.outcome, Outcome::Complete);
        assert_eq!(finished.body_bytes_out, 5);
        assert_eq!(
            finished.bytes_in,
            "GET /ready HTTP/1.1\r\nHost: h\r\n\r\n".len() as u64
        );
    }
    assert_eq!(server.counters[0].connections_accepted.value(), 1);
}

#[test]
fn the_facts_of_a_connection_are_known() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    let own = client.stream.local_addr().unwrap();
    assert_eq!(client.ask("/facts").text(), format!("{own} 7 true"));
    assert_eq!(client.ask("/len").text(), "Some(0)");
    client.post("/len", 3);
    client.send("abc");
    assert_eq!(client.answer().text(), "Some(3)");
    client.post_chunked("/len");
    client.send("0\r\n\r\n");
    assert_eq!(client.answer().text(), "None");
}

#[test]
fn requests_sent_at_once_are_answered_in_order() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    let one = "GET /ready HTTP/1.1\r\nHost: h\r\n\r\n";
    let later = "GET /later HTTP/1.1\r\nHost: h\r\n\r\n";
    let count = "POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    client.send(&format!("{}{later}{count}{one}", one.repeat(100)));
    for _ in 0..100 {
        assert_eq!(client.answer().text(), "ready");
    }
    assert_eq!(server.note(), "waiting");
    server.gate().open();
    assert_eq!(client.answer().text(), "later");
    assert_eq!(client.answer().text(), "3");
    assert_eq!(client.answer().text(), "ready");
}

#[test]
fn a_request_in_pieces_is_answered() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    for _ in 0..2 {
        for byte in b"\r\nGET /ready HTTP/1.1\r\nHost: h\r\n\r\n" {
            client.stream.write_all(&[*byte]).unwrap();
        }
        assert_eq!(client.answer().text(), "ready");
    }
    // An idle connection holds no buffer.
    server.ask_until(|thread| {
        thread.seats.iter().all(|conn| {
            conn.is_idle() && conn.carry.capacity() == 0 && conn.out.pieces.capacity() == 0
        })
    });
}

#[test]
fn a_later_answer_leaves_when_another_thread_wakes_it() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/later");
    assert_eq!(server.note(), "waiting");
    // Others are answered meanwhile.
    assert_eq!(server.connect().ask("/ready").text(), "ready");
    server.gate().open();
    assert_eq!(client.answer().text(), "later");
    assert_eq!(client.ask("/ready").text(), "ready");
}

//= rfc9110#15.2
#[test]
fn interim_answers_leave_at_once() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/interim");
    assert_eq!(
        client.head(),
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    );
    server.gate().open();
    assert_eq!(
        client.head(),
        "HTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n"
    );
    assert_eq!(client.answer().text(), "final");
    client.get("/early");
    let early = client.head();
    assert_eq!(early, "HTTP/1.1 103 Early Hints\r\nLink: </early>\r\n\r\n");
    assert_eq!(client.answer().text(), "early");
    assert_eq!(server.counters[0].responses_1xx.value(), 3);
    client.send("GET /early HTTP/1.0\r\n\r\n");
    assert_eq!(client.answer().text(), "early", "HTTP/1.0 knows none");
}

#[test]
fn trailers_come_in_and_go_out() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    let answer = client.ask("/trailers");
    assert_eq!(answer.text(), "traced");
    assert_eq!(answer.trailers, "Digest: d\n");
    client.post_chunked("/echo");
    client.send("3\r\nabc\r\n0\r\nA: b\r\nC: d\r\n\r\n");
    assert_eq!(client.answer().text(), "abc\nA=b\nC=d");
}

//= rfc9110#7.8
#[test]
fn a_tunnel_carries_bytes_both_ways_until_both_have_ended() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    // Bytes right behind the request belong to the tunnel.
    client.send("GET /tunnel HTTP/1.1\r\nHost: h\r\nUpgrade: echo\r\n\r\nfirst");
    assert_eq!(
        client.head(),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n"
    );
    assert_eq!(client.take(5), b"first");
    let data = pattern(1_000_000);
    let mut writer = client.stream.try_clone().unwrap();
    let sent = data.clone();
    let thread = std::thread::spawn(move || writer.write_all(&sent).unwrap());
    assert_eq!(client.take(data.len()), data);
    thread.join().unwrap();
    client.send("last");
    client.half_close();
    assert_eq!(client.rest(), b"last");
    let finished = server.finished();
    assert_eq!(finished.status, 101);
    assert_eq!(finished.outcome, Outcome::Complete);
}

#[test]
fn a_tunnel_before_the_end_of_the_request_body_is_a_500() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.post("/tunnel", 5);
    client.send("hello");
    assert_eq!(client.answer().status, 500);
    assert_eq!(server.finished().fault, Fault::Server);
}

#[test]
fn an_answer_of_unknown_size_is_chunked_or_ends_with_the_connection() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    let answer = client.ask("/stream?300000");
    assert_eq!(
        answer.head,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    assert_eq!(answer.body, pattern(300_000));
    server.probe.produced.store(0, Ordering::Relaxed);
    client.send("GET /stream?300000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.head, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    assert_eq!(answer.body, pattern(300_000));
}

#[test]
fn an_answer_to_head_has_no_body_whatever_it_is_made_of() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    for target in [
        "/ready",
        "/bytes?100000",
        "/region?100000",
        "/file?100000",
        "/stream?9",
        "/pipe?9",
    ] {
        client.send(&format!("HEAD {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        client.head();
        assert_eq!(server.finished().body_bytes_out, 0);
    }
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn an_answer_that_breaks_is_seen_to_break() {
    let server = serve(HttpLimits::default());
    // Chunks: what there is comes, the last chunk does not.
    let mut client = server.connect();
    client.get("/broken");
    client.head();
    assert_eq!(client.rest(), b"4\r\nhalf\r\n");
    let finished = server.finished();
    assert_eq!(finished.outcome, Outcome::Broken);
    assert_eq!(finished.fault, Fault::Script);
    assert_eq!(finished.reason, Some("the script broke"));
    // Without framing only a reset can tell.
    let mut client = server.connect();
    client.send("GET /broken HTTP/1.0\r\n\r\n");
    client.assert_reset();
}

#[test]
fn a_body_that_is_not_as_announced_never_spoils_the_next_answer() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/short");
    client.head();
    assert_eq!(client.rest(), b"short");
    let finished = server.finished();
    assert_eq!(finished.outcome, Outcome::Broken);
    assert_eq!(
        finished.reason,
        Some("the body is shorter than its announced size")
    );
    for target in ["/long", "/long-stream"] {
        let mut client = server.connect();
        client.get(target);
        client.head();
        assert_eq!(client.rest(), b"", "the piece that is too long is left out");
        let finished = server.finished();
        assert_eq!(finished.outcome, Outcome::Broken);
        assert_eq!(
            finished.reason,
            Some("the body is longer than its announced size")
        );
    }
}

#[test]
fn the_server_may_end_the_connection_and_hears_the_client_out() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    let answer = client.ask("/close");
    assert!(answer.closes());
    // What is still sent is no reason to reset: the end is orderly.
    client.send("GET /ready HTTP/1.1\r\nHost: h\r\n\r\n");
    client.assert_end();
}

//= rfc9112#9.6
#[test]
fn a_refusal_reaches_a_client_that_goes_on_sending() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    let junk = "x".repeat(1_000_000);
    client.send(&junk);
    let answer = client.answer();
    assert_eq!(answer.status, 400);
    assert!(answer.closes());
    client.send(&junk);
    client.assert_end();
    let finished = server.finished();
    assert_eq!(finished.reason, Some("there is more than one Host field"));
    assert_eq!((finished.status, finished.fault), (400, Fault::Client));
    assert_eq!(server.counters[0].bad_request.value(), 1);
}

#[test]
fn a_head_broken_off_by_fin_is_400() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.send("GET /abc HTT");
    client.half_close();
    assert_eq!(client.answer().status, 400);
    client.assert_end();
    assert_eq!(server.finished().target, "/abc");
}
