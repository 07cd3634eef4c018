//! HTTP/2: what every kind of answer and every kind of request body comes to.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::dummy::{pattern, pattern_byte};
use super::framed::Framed;
use super::{Running, serve};
use crate::limits::{BODY_WINDOW_BYTES, H2_TINY_DATA_BYTES, H2_TINY_DATA_OUT, HttpLimits};

fn any_body() -> HttpLimits {
    HttpLimits {
        body_bytes: u64::MAX,
        ..HttpLimits::default()
    }
}

fn framed(server: &Running) -> Framed {
    Framed::connect(server.address)
}

#[test]
fn answers_of_every_kind_come_whole() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    assert_eq!(client.ask("/ready").text(), "ready");
    for kind in [
        "/bytes",
        "/region",
        "/file",
        "/cold-file",
        "/pipe",
        "/sized-pipe",
        "/in-chunks/file",
        "/plain-chunks/pipe",
    ] {
        for len in [0u64, 1, 8192, 16_384, 16_385, 65_535, 65_536, 300_000] {
            let got = client.ask(&format!("{kind}?{len}"));
            assert_eq!(got.status(), 200, "{kind} {len}");
            assert!(got.body == pattern(len), "{kind} {len}: {}", got.body.len());
            assert_eq!(got.reset, None, "{kind} {len}");
        }
    }
    assert!(client.ask("/stream?200000").body == pattern(200_000));
    let got = client.ask("/regions?40");
    let expected: Vec<u8> = (0..40)
        .flat_map(|at| pattern(if at % 2 == 1 { 50_000 } else { 500 }))
        .collect();
    assert!(got.body == expected);
    assert_eq!(client.ask("/nothing-here").status(), 404);
    assert_eq!(server.counters[0].h2_connections.value(), 1);
}

#[test]
fn records_tell_what_was_sent() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    client.ask("/bytes?100000");
    let finished = server.finished();
    assert_eq!(
        (finished.target.as_str(), finished.status),
        ("/bytes?100000", 200)
    );
    assert_eq!(finished.body_bytes_out, 100_000);
    assert!(
        finished.bytes_in > 9 && finished.bytes_in < 200,
        "{}",
        finished.bytes_in
    );
    assert!(finished.first_byte_us > 0 && finished.first_byte_us <= finished.total_us);
}

#[test]
fn a_hundred_streams_are_answered_side_by_side() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    // All of them in one write, some of them waiting for the gate.
    let mut bytes = Vec::new();
    let mut ids = Vec::new();
    for number in 0..100 {
        let target = match number % 4 {
            0 => "/later".to_owned(),
            1 => format!("/bytes?{}", number * 1000),
            2 => format!("/file?{}", number * 1000),
            _ => "/ready".to_owned(),
        };
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", target.as_str()),
            (":authority", "h"),
            ("priority", ["u=1", "u=3, i", "i", "u=6"][number % 3]),
        ];
        let (id, head) = client.head(true, &fields);
        bytes.extend_from_slice(&head);
        ids.push(id);
    }
    client.write(&bytes);
    for (number, id) in ids.iter().enumerate().filter(|(number, _)| number % 4 != 0) {
        let got = client.answer(*id);
        let expected = match number % 4 {
            3 => b"ready".to_vec(),
            _ => pattern(number as u64 * 1000),
        };
        assert!(got.body == expected, "{number}");
    }
    server.gate().open();
    for id in ids.iter().step_by(4) {
        assert_eq!(client.answer(*id).text(), "later");
    }
}

#[test]
fn ten_bytes_at_a_time_do_not_become_a_flood_of_tiny_frames() {
    const BYTES: u64 = 50_000;
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    let begin = Instant::now();
    let got = client.ask(&format!("/drops?{BYTES}"));
    let took_ms = begin.elapsed().as_millis() as usize;
    assert!(got.body == pattern(BYTES));
    let tiny = got
        .pieces
        .iter()
        .filter(|piece| **piece < H2_TINY_DATA_BYTES);
    // A busy machine has time for some.
    let most = 2 * H2_TINY_DATA_OUT.most as usize + took_ms / 2;
    assert!(tiny.count() <= most, "{:?}", got.pieces);
    assert!(server.counters[0].h2_tiny_data_held.value() > 0);
}

#[test]
fn what_is_said_in_answer_to_a_client_that_goes_on_leaves_at_once() {
    let server = serve(any_body());
    let mut client = framed(&server);
    let id = client.post("/echo-stream");
    for count in 1..200 {
        client.send(id, b"ping", false);
        client.wait_for_body(id, 4 * count);
    }
    client.send(id, b"", true);
    assert_eq!(client.answer(id).pieces[..199], [4; 199]);
    assert_eq!(server.counters[0].h2_tiny_data_held.value(), 0);
}

#[test]
fn head_requests_get_heads() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    for path in ["/bytes?1000", "/file?1000", "/stream?1000"] {
        let id = client.open("HEAD", path, true, &[]);
        let got = client.answer(id);
        assert_eq!((got.status(), got.body.len()), (200, 0));
    }
}

#[test]
fn a_huge_request_body_is_read_within_a_window() {
    const HUGE: usize = 20 * 1024 * 1024;
    let server = serve(any_body());
    let mut client = framed(&server);
    let id = client.post("/count");
    client.send(id, &pattern(HUGE as u64), true);
    assert_eq!(client.answer(id).text(), HUGE.to_string());
    let held = server.probe.held_max.load(Ordering::Relaxed);
    assert!(held <= BODY_WINDOW_BYTES, "{held}");
    assert_eq!(client.ask("/ready").text(), "ready");
}

#[test]
fn a_handler_that_pauses_holds_its_stream_back_and_no_other() {
    let server = serve(any_body());
    let mut client = framed(&server);
    let slow = client.post("/slow-count");
    client.send(slow, &pattern(1000), false);
    assert_eq!(server.note(), "waiting");
    // As much as the server has room for, and then others.
    client.send(slow, &pattern(64_535), false);
    client.ping();
    let other = client.post("/count");
    client.send(other, &pattern(1_000_000), true);
    assert_eq!(client.answer(other).text(), "1000000");
    let held = server.ask(|thread| {
        let conn = thread.seats.iter().next().unwrap();
        let session = conn.h2.as_ref().unwrap();
        let held = session.streams[0].request.exchange.body.borrow().held_bytes;
        assert!(conn.carry.is_empty(), "nothing stands before others");
        held
    });
    assert!(held <= BODY_WINDOW_BYTES && held > 60_000, "{held}");
    server.gate().open();
    client.send(slow, &pattern(1_000_000), true);
    assert_eq!(client.answer(slow).text(), "1065535");
}

#[test]
fn bodies_come_with_their_trailers_and_however_they_are_cut() {
    let server = serve(any_body());
    let mut client = framed(&server);
    let id = client.post("/echo");
    for len in [1u64, 10, 4096, 16_384, 3] {
        client.send(id, &pattern(len), false);
    }
    let mut block = Vec::new();
    let stored = crate::fields_coding::hpack::Stored::AsText;
    crate::fields_coding::hpack::encode_field(b"check", b"sum", stored, &mut block);
    client.frame(1, 5, id, &block);
    let mut expected: Vec<u8> = [1u64, 10, 4096, 16_384, 3]
        .iter()
        .flat_map(|len| pattern(*len))
        .collect();
    expected.extend_from_slice(b"\ncheck=sum");
    assert!(client.answer(id).body == expected);
    assert_eq!(client.ask("/trailers").heads[1], "digest=d");
    let got = client.ask("/len");
    assert_eq!(got.text(), "Some(0)");
    let id = client.post("/len");
    client.send(id, b"", true);
    assert_eq!(client.answer(id).text(), "None");
}

#[test]
fn a_body_flows_in_while_the_answer_flows_out() {
    let server = serve(any_body());
    let mut client = framed(&server);
    let id = client.post("/echo-stream");
    client.send(id, &pattern(3_000_000), true);
    let got = client.answer(id);
    assert_eq!(got.body.len(), 3_000_000);
    let is_whole = (0..)
        .zip(&got.body)
        .all(|(at, byte)| *byte == pattern_byte(at));
    assert!(is_whole);
}

#[test]
fn interim_answers_come_first() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    let got = client.ask("/early");
    assert_eq!(got.heads[0], ":status=103 link=</early>");
    assert_eq!(&got.heads[1][..11], ":status=200");
    let id = client.get("/interim");
    assert_eq!(client.wait_for_head(id, 1), ":status=103 link=</a>");
    server.gate().open();
    let got = client.answer(id);
    assert_eq!(got.heads[1], ":status=103 link=</b>");
    assert_eq!(got.text(), "final");
    assert_eq!(server.counters[0].responses_1xx.value(), 3);
}

//= rfc9110#10.1.1
#[test]
fn continue_is_sent_when_the_handler_asks_for_the_body() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    let expect = [("expect", "100-continue"), ("content-length", "5")];
    let id = client.open("POST", "/count", false, &expect);
    assert_eq!(client.wait_for_head(id, 1), ":status=100");
    client.send(id, b"hello", true);
    assert_eq!(client.answer(id).text(), "5");
    let id = client.open("POST", "/ready", false, &expect);
    let got = client.answer(id);
    assert_eq!((got.status(), got.text()), (200, "ready"));
}

//= rfc8441#5
#[test]
fn tunnels_carry_bytes_both_ways() {
    let server = serve(HttpLimits {
        h2_connect_protocol: true,
        ..HttpLimits::default()
    });
    let mut client = framed(&server);
    let id = client.open("CONNECT", "/tunnel", false, &[(":protocol", "echo")]);
    assert_eq!(client.wait_for_head(id, 1), ":status=200");
    for text in [&b"one"[..], b"two", &[7; 100_000]] {
        client.send(id, text, false);
        let before = text.len();
        client.wait_for_body(id, before);
    }
    client.send(id, b"", true);
    let got = client.answer(id);
    assert_eq!(got.body.len(), 100_006);
    // A request that is no CONNECT gets none.
    assert_eq!(client.ask("/tunnel").status(), 500);
}

#[test]
fn preface_may_come_in_pieces_and_requests_right_behind_it() {
    let server = serve(HttpLimits::default());
    for at in [1, 2, 3, 10, 16, 18, 20, 23, 24, 30] {
        let mut client = framed(&server);
        // What `connect` has sent is a whole greeting; this one is by hand.
        client.ping();
        let mut raw = server.connect();
        let mut bytes = crate::h2::PREFACE.to_vec();
        bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let (_, head) = client.head(
            true,
            &[
                (":method", "GET"),
                (":scheme", "http"),
                (":path", "/ready"),
                (":authority", "h"),
            ],
        );
        bytes.extend_from_slice(&head);
        raw.write(&bytes[..at]).unwrap();
        // Another connection's answer shows that the first piece has been read, or may have been.
        client.ping();
        raw.write(&bytes[at..]).unwrap();
        let greeting = raw.take(9 + 18 + 13);
        assert_eq!(greeting[3], 4, "SETTINGS come first");
        let ack = raw.take(9);
        assert_eq!(ack[3..5], [4, 1]);
        let head = raw.take(9);
        assert_eq!((head[3], head[8]), (1, 1), "then the answer");
    }
}

#[test]
fn what_only_looks_like_a_preface_is_http_1() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.send("PRI * HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    let mut client = server.connect();
    client.send("PROPFIND /ready HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.answer().text(), "ready");
}

#[test]
fn idle_connection_holds_no_buffers() {
    let server = serve(HttpLimits::default());
    let mut client = framed(&server);
    let ids: Vec<u32> = (0..50).map(|_| client.get("/file?100000")).collect();
    for id in ids {
        assert_eq!(client.answer(id).body.len(), 100_000);
    }
    client.ping();
    server.ask(|thread| {
        let conn = thread.seats.iter().next().unwrap();
        let session = conn.h2.as_ref().unwrap();
        assert!(conn.is_idle());
        assert_eq!(conn.carry.capacity() + conn.out.pieces.capacity(), 0);
        assert_eq!(session.streams.capacity(), 0);
    });
}
