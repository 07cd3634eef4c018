//! The same over HTTP/2: fields, windows, streams, and servers that refuse, break and go away.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, FrameServer, GOAWAY, HEADERS, PING, RST_STREAM,
    Reply, WINDOW_UPDATE, frame, ok,
};
use super::harness::{Place, text_of};
use super::{bench, number, result};

/// SETTINGS_MAX_CONCURRENT_STREAMS. //= rfc9113#6.5.2
const ONE_STREAM: [u8; 6] = [0, 3, 0, 0, 0, 1];

#[test]
fn fields_and_their_values_are_found_wherever_the_server_packs_them() {
    let server = FrameServer::start(&[], |number, stream| {
        // First written out and kept, then by its place in the table.
        let more: &[u8] = match number {
            0 => b"\x40\x06x-kind\x03new",
            _ => b"\xbe",
        };
        Reply::Bytes(frame(
            HEADERS,
            END_STREAM | END_HEADERS,
            stream,
            &[&[0x88], more].concat(),
        ))
    });
    let url = server.url();
    let expect = ["--expect", "header=x-kind:new", "--expect", "header=X-Kind"];
    let arguments = [&url, "--http2", "-c", "1", "-n", "20", "-H", "Accept: */*"];
    let result = result(&[&arguments[..], &expect].concat());
    assert_eq!(number(&result, "requests.good"), 20, "{result:#}");
    // Method, scheme, authority, path and Accept: a byte each after the first time.
    server.seen(|seen| {
        assert!(seen.block_bytes[0] > 10);
        assert_eq!(seen.block_bytes[1..], [5; 19]);
        assert_eq!((seen.connections, seen.acknowledged), (1, 1));
    });
}

#[test]
fn server_with_a_smaller_table_gets_fields_written_out() {
    let server = FrameServer::start(&[0, 1, 0, 0, 0, 0], |_, stream| Reply::Bytes(ok(stream)));
    let result = result(&[&server.url(), "--http2", "-c", "1", "-n", "5"]);
    assert_eq!(number(&result, "requests.good"), 5);
    server.seen(|seen| {
        let blocks = &seen.block_bytes;
        assert_eq!(blocks[2..], [blocks[2]; 3]);
        // The table's new size stands once before a block.
        assert_eq!(blocks[1], blocks[2] + 1);
    });
}

#[test]
fn no_more_requests_are_open_than_the_server_allows() {
    let open = Arc::new(Mutex::new((0, Vec::new())));
    // Two at once; both are answered when the second one is there.
    let server = FrameServer::start(&[0, 3, 0, 0, 0, 2], move |_, stream| {
        let mut open = open.lock().unwrap();
        open.1.push(stream);
        open.0 = open.0.max(open.1.len());
        assert!(open.0 <= 2, "{} at once", open.0);
        match open.1.len() {
            2 => Reply::Bytes(open.1.drain(..).flat_map(ok).collect()),
            _ => Reply::Bytes(Vec::new()),
        }
    });
    let result = result(&[&server.url(), "--http2", "-c", "1", "-m", "8", "-n", "40"]);
    assert_eq!(number(&result, "requests.good"), 40, "{result:#}");
}

#[test]
fn request_body_waits_for_the_windows() {
    let place = Place::new();
    place.write("body", "0123456789");
    // 4 bytes for each stream, and none more until the server opens its window.
    let server = FrameServer::start(&[0, 4, 0, 0, 0, 4], |_, stream| Reply::Bytes(ok(stream)));
    let body = place.path("body");
    let arguments = [
        &server.url(),
        "--http2",
        "-c",
        "1",
        "-n",
        "2",
        "--timeout",
        "3s",
    ];
    let result = result(&[&arguments[..], &["--body", body.to_str().unwrap()]].concat());
    // The first one left before the settings came, with the usual window.
    assert_eq!(number(&result, "requests.good"), 1, "{result:#}");
    assert_eq!(result["failures"][0]["kind"], "timeout");
    server.seen(|seen| assert_eq!(seen.body_bytes, 10 + 4));
}

#[test]
fn pings_are_answered() {
    let server = FrameServer::start(&[], |_, stream| {
        Reply::Bytes([frame(PING, 0, 0, b"12345678"), ok(stream)].concat())
    });
    let result = result(&[
        &server.url(),
        "--http2",
        "-c",
        "1",
        "-n",
        "3",
        "--think",
        "10ms",
    ]);
    assert_eq!(number(&result, "requests.good"), 3);
    // The settings, and the pings before the last answer.
    server.seen(|seen| assert!(seen.acknowledged >= 3, "{}", seen.acknowledged));
}

#[test]
fn failures_are_told_by_kind_and_the_run_goes_on() {
    let head =
        |stream: u32, more: &[u8]| frame(HEADERS, END_HEADERS, stream, &[&[0x88], more].concat());
    let huge = |stream: u32| {
        let pieces = vec![frame(CONTINUATION, 0, stream, &[0; 16_000]); 5];
        [frame(HEADERS, 0, stream, &[0x88]), pieces.concat()].concat()
    };
    type Answering = Box<dyn Fn(u32) -> Reply + Send + Sync>;
    let cases: [(&str, &str, Answering); 8] = [
        (
            "reset",
            "INTERNAL_ERROR",
            Box::new(|stream| Reply::Bytes(frame(RST_STREAM, 0, stream, &2u32.to_be_bytes()))),
        ),
        (
            "closed",
            "closed the connection",
            Box::new(|_| Reply::Last(Vec::new())),
        ),
        (
            "closed",
            "closed the connection",
            Box::new(move |stream| Reply::Last(head(stream, &[]))),
        ),
        (
            "malformed",
            "never begun",
            Box::new(|_| Reply::Bytes(ok(99))),
        ),
        (
            "malformed",
            "longer than 64 KiB",
            Box::new(move |stream| Reply::Bytes(huge(stream))),
        ),
        (
            "malformed",
            "longer than allowed",
            Box::new(|_| Reply::Bytes(b"\xff\xff\xff\0\0\0\0\0\x01".to_vec())),
        ),
        (
            "malformed",
            "not as long as",
            Box::new(move |stream| {
                let end = frame(DATA, END_STREAM, stream, b"xx");
                Reply::Bytes([head(stream, b"\x0f\x0d\x013"), end].concat())
            }),
        ),
        (
            "malformed",
            "window",
            Box::new(|_| Reply::Bytes(frame(WINDOW_UPDATE, 0, 0, &[0; 4]))),
        ),
    ];
    for (kind, first, bad) in cases {
        let server = FrameServer::start(&[], move |number, stream| match number {
            0 => bad(stream),
            _ => Reply::Bytes(ok(stream)),
        });
        let result = result(&[&server.url(), "--http2", "-c", "1", "-n", "4"]);
        let failures = result["failures"].as_array().unwrap();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0]["kind"], kind, "{failures:?}");
        let found = failures[0]["first"].as_str().unwrap();
        assert!(found.contains(first), "{found} instead of {first}");
        assert_eq!(
            (
                number(&result, "requests.due"),
                number(&result, "requests.good")
            ),
            (4, 3)
        );
    }
}

#[test]
fn answer_that_does_not_come_leaves_the_connection_to_the_others() {
    let server = FrameServer::start(&[], |number, stream| match number {
        0 => Reply::Bytes(Vec::new()),
        _ => Reply::Bytes(ok(stream)),
    });
    let arguments = [&server.url(), "--http2", "-c", "1", "-m", "2", "-n", "10"];
    let result = result(&[&arguments[..], &["--timeout", "3s"]].concat());
    assert_eq!(number(&result, "requests.good"), 9, "{result:#}");
    assert_eq!(result["failures"][0]["kind"], "timeout");
}

#[test]
fn request_that_the_server_refused_to_begin_is_sent_again() {
    let server = FrameServer::start(&[], |number, stream| match number {
        0 | 3 => Reply::Bytes(frame(RST_STREAM, 0, stream, &7u32.to_be_bytes())),
        _ => Reply::Bytes(ok(stream)),
    });
    let result = result(&[&server.url(), "--http2", "-c", "1", "-m", "2", "-n", "10"]);
    let counts =
        ["good", "failed", "again"].map(|name| number(&result, &format!("requests.{name}")));
    assert_eq!(counts, [10, 0, 2], "{result:#}");
    // One that refuses everything is not asked for ever.
    let server = FrameServer::start(&[], |number, stream| match number {
        0..=11 => Reply::Bytes(frame(RST_STREAM, 0, stream, &7u32.to_be_bytes())),
        _ => Reply::Bytes(ok(stream)),
    });
    let refused = super::result(&[&server.url(), "--http2", "-c", "1", "-n", "2"]);
    assert_eq!(refused["failures"][0]["kind"], "reset", "{refused:#}");
    assert_eq!(number(&refused, "requests.good"), 1);
}

#[test]
fn connection_that_goes_away_answers_what_it_has_and_another_takes_the_rest() {
    // Each connection takes the requests of three streams and says so with the second one.
    let server = FrameServer::start(&[], |_, stream| match stream {
        1 => Reply::Bytes(ok(1)),
        3 => Reply::Bytes([frame(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]), ok(3)].concat()),
        5 => Reply::Last(ok(5)),
        _ => Reply::Bytes(Vec::new()),
    });
    let result = result(&[&server.url(), "--http2", "-c", "2", "-m", "4", "-n", "60"]);
    assert_eq!(number(&result, "requests.good"), 60, "{result:#}");
    assert_eq!(number(&result, "requests.failed"), 0);
    assert!(server.seen(|seen| seen.connections) >= 20);
}

#[test]
fn server_of_http_1_is_told_of() {
    let old = super::hello();
    let output = bench(&[&old.url(), "--http", "2", "-n", "2", "-c", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let says = "failure was malformed: a frame is longer than allowed: the server may not speak";
    assert!(text_of(&output).contains(says), "{}", text_of(&output));
}

#[test]
fn streams_that_make_no_sense_are_refused() {
    let url = "http://127.0.0.1:1/";
    for (arguments, says) in [
        (&["-m", "2"][..], "carries one request at a time"),
        (&["--http2", "-m", "0"], "streams: from 1"),
        (&["--http2", "-m", "2", "--close"], "one stream on each"),
        (
            &["--http2", "-H", "TE: trailers"],
            "there is no field TE in HTTP/2",
        ),
        (
            &["--http2", "-m", "10000", "-c", "1000"],
            "requests at once",
        ),
        (&["--http", "4"], "invalid value"),
    ] {
        let output = bench(&[&[url], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
        assert!(text_of(&output).contains(says), "{}", text_of(&output));
    }
}

#[test]
fn requests_of_an_open_loop_that_wait_for_a_stream_are_told() {
    const DUE: u64 = 200;
    // One stream at a time, and five times the gap between requests for each answer.
    let server = FrameServer::start(&ONE_STREAM, |_, stream| {
        let (_keep, clock): (Sender<()>, Receiver<()>) = channel();
        let _ = clock.recv_timeout(Duration::from_millis(5));
        Reply::Bytes(ok(stream))
    });
    let url = server.url();
    // More streams than requests: none waits for one of our own.
    let run = [
        &url, "--http", "2", "-c", "1", "-m", "500", "--rate", "1000",
    ];
    let result = result(&[&run[..], &["--for", "200ms", "--warm-up", "0s"]].concat());
    assert_eq!(number(&result, "requests.due"), DUE);
    let (answered, failed) = (
        number(&result, "requests.answered"),
        number(&result, "requests.failed"),
    );
    assert_eq!(answered + failed, DUE, "{result:#}");
    if failed > 0 {
        assert_eq!(result["failures"][0]["kind"], "unsent", "{result:#}");
    }
    // All but the first leave later than they were due, whether it is the server or this machine.
    let (waited, late) = (
        number(&result, "requests.waited"),
        number(&result, "requests.late"),
    );
    assert!(waited + late + 1 >= answered, "{result:#}");
}

#[test]
fn run_ends_early_when_too_many_requests_wait_for_a_stream() {
    let server = FrameServer::start(&ONE_STREAM, |_, _| Reply::Bytes(Vec::new()));
    let url = server.url();
    let run = [
        &url, "--http", "2", "-c", "1", "-m", "500", "--rate", "10000", "-n", "300",
    ];
    let output = bench(&[&run[..], &["--timeout", "1h", "--stop-if", "backlog>200"]].concat());
    assert_eq!(output.status.code(), Some(5), "{}", text_of(&output));
    let wanted = "ended early: backlog>200: ";
    assert!(text_of(&output).contains(wanted), "{}", text_of(&output));
}
