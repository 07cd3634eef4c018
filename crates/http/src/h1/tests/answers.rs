//! How answers are framed.

use super::date;
use crate::h1::{AfterAnswer, Http1Connection, Http1Event, ResponseFraming};
use crate::head::{Fields, RequestHead};
use crate::limits::HttpLimits;
use crate::response::{PreparedHead, ResponseHead};

const DATE: &str = "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";

/// A connection that has read this request; its body, if any, is still to be read.
fn after(request: &str) -> Http1Connection {
    let mut core = Http1Connection::new(HttpLimits::default().into(), 0);
    let (used, event) = core.read(request.as_bytes(), &mut RequestHead::empty(), 0);
    assert!(matches!(event, Http1Event::Request(_)), "{event:?}");
    assert_eq!(used, request.len());
    core
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
const GET_10: &str = "GET / HTTP/1.0\r\n\r\n";
const GET_10_KEEP: &str = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";

fn plain(status: u16) -> ResponseHead {
    let mut fields = Fields::new();
    assert!(fields.add(b"A", b"b"));
    ResponseHead::Fields(status, fields)
}

/// The head without its date, and how the body leaves.
fn head_of(
    core: &mut Http1Connection,
    head: &ResponseHead,
    len: Option<u64>,
    close: bool,
) -> (String, ResponseFraming) {
    let mut out = Vec::new();
    let sending = core.push_head(head, len, close, &date(), &mut out);
    let text = String::from_utf8(out).unwrap();
    let lines = text.strip_suffix(DATE).expect("a head ends with its date");
    (lines.to_owned(), sending)
}

#[track_caller]
fn assert_head(
    request: &str,
    status: u16,
    len: Option<u64>,
    expected: (&str, ResponseFraming, AfterAnswer),
) {
    let mut core = after(request);
    let (lines, sending) = head_of(&mut core, &plain(status), len, false);
    assert_eq!((lines.as_str(), sending), (expected.0, expected.1));
    let mut out = Vec::new();
    if let ResponseFraming::Length(len) = sending {
        assert!(core.push_data_prefix(len, &mut out).is_some());
    }
    assert!(core.push_end(None, &mut out));
    assert_eq!(core.finish(), expected.2);
}

//= rfc9112#6.2
#[test]
fn a_body_of_known_size_is_announced() {
    assert_head(
        GET,
        200,
        Some(5),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n",
            ResponseFraming::Length(5),
            AfterAnswer::Request,
        ),
    );
    assert_head(
        GET,
        404,
        Some(0),
        (
            "HTTP/1.1 404 Not Found\r\nA: b\r\nContent-Length: 0\r\n",
            ResponseFraming::Nothing,
            AfterAnswer::Request,
        ),
    );
    assert_head(
        GET_10,
        200,
        Some(5),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\nConnection: close\r\n",
            ResponseFraming::Length(5),
            AfterAnswer::Close,
        ),
    );
    assert_head(
        GET_10_KEEP,
        200,
        Some(5),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\nConnection: keep-alive\r\n",
            ResponseFraming::Length(5),
            AfterAnswer::Request,
        ),
    );
}

//= rfc9112#7
#[test]
fn a_body_of_unknown_size_is_chunked_or_ends_with_the_connection() {
    assert_head(
        GET,
        200,
        None,
        (
            "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n",
            ResponseFraming::Chunked,
            AfterAnswer::Request,
        ),
    );
    for request in [GET_10, GET_10_KEEP] {
        let next = if request == GET_10 {
            AfterAnswer::Close
        } else {
            AfterAnswer::Linger
        };
        assert_head(
            request,
            200,
            None,
            (
                "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n",
                ResponseFraming::UntilClose,
                next,
            ),
        );
    }
}

//= rfc9110#9.3.2
#[test]
fn an_answer_to_head_announces_a_body_and_has_none() {
    assert_head(
        HEAD,
        200,
        Some(5),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n",
            ResponseFraming::Nothing,
            AfterAnswer::Request,
        ),
    );
    assert_head(
        HEAD,
        200,
        None,
        (
            "HTTP/1.1 200 OK\r\nA: b\r\n",
            ResponseFraming::Nothing,
            AfterAnswer::Request,
        ),
    );
}

//= rfc9112#6.3
#[test]
fn statuses_without_a_body_have_no_framing() {
    for (status, line) in [(204, "204 No Content"), (304, "304 Not Modified")] {
        for len in [None, Some(0), Some(5)] {
            assert_head(
                GET,
                status,
                len,
                (
                    &format!("HTTP/1.1 {line}\r\nA: b\r\n"),
                    ResponseFraming::Nothing,
                    AfterAnswer::Request,
                ),
            );
        }
    }
}

#[test]
fn a_prepared_head_says_how_long_its_body_is() {
    let prepared = || ResponseHead::Prepared(PreparedHead::new(200, Fields::new(), 5).into());
    // Whatever the body says of itself.
    for len in [Some(5), Some(0), Some(9), None] {
        let mut core = after(GET);
        let (lines, sending) = head_of(&mut core, &prepared(), len, false);
        assert_eq!(lines, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n");
        assert_eq!(sending, ResponseFraming::Length(5));
    }
    let (_, sending) = head_of(&mut after(HEAD), &prepared(), Some(0), false);
    assert_eq!(sending, ResponseFraming::Nothing);
}

#[test]
fn the_server_may_end_the_connection() {
    let mut core = after(GET);
    let (lines, _) = head_of(&mut core, &plain(200), Some(0), true);
    assert!(lines.ends_with("Connection: close\r\n"), "{lines}");
    core.push_end(None, &mut Vec::new());
    // The client does not know yet, so it is heard out.
    assert_eq!(core.finish(), AfterAnswer::Linger);
}

#[test]
fn a_body_is_held_to_its_announced_size() {
    let begin = || {
        let mut core = after(GET);
        head_of(&mut core, &plain(200), Some(5), false);
        core
    };
    let mut out = Vec::new();
    let mut core = begin();
    assert!(core.push_data_prefix(3, &mut out).is_some());
    assert!(core.push_data_prefix(2, &mut out).is_some());
    assert!(core.push_data_prefix(1, &mut out).is_none());
    assert!(core.push_end(None, &mut out), "whole all the same");
    let mut core = begin();
    assert!(core.push_data_prefix(4, &mut out).is_some());
    assert!(!core.push_end(None, &mut out), "a byte is missing");
    assert_eq!(out, b"", "a sized body has no framing of its own");
}

//= rfc9112#7.1
//= rfc9112#7.1.2
#[test]
fn chunks_are_framed_and_end_with_trailers() {
    let mut core = after(GET);
    head_of(&mut core, &plain(200), None, false);
    let mut out = Vec::new();
    for data in ["hello, good day!", "x"] {
        core.push_data_prefix(data.len() as u64, &mut out);
        out.extend_from_slice(data.as_bytes());
        core.push_data_suffix(&mut out);
    }
    let mut trailers = Fields::new();
    trailers.add(b"Digest", b"y");
    assert!(core.push_end(Some(&trailers), &mut out));
    assert_eq!(
        out.escape_ascii().to_string(),
        r"10\r\nhello, good day!\r\n1\r\nx\r\n0\r\nDigest: y\r\n\r\n"
    );
    assert_eq!(core.finish(), AfterAnswer::Request);
}

//= rfc9110#15.2
#[test]
fn interim_answers_come_before_the_final_one_and_not_in_http_1_0() {
    let mut fields = Fields::new();
    fields.add(b"Link", b"</a>");
    let mut out = Vec::new();
    let mut core = after(GET);
    core.push_interim(103, &fields, &mut out);
    assert_eq!(out, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    out.clear();
    head_of(&mut core, &plain(200), None, false);
    core.push_interim(103, &fields, &mut out);
    after(GET_10).push_interim(103, &fields, &mut out);
    assert_eq!(out, b"");
}

//= rfc9110#10.1.1
#[test]
fn continue_is_sent_once_when_asked_for_and_only_before_the_answer() {
    let request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    let mut out = Vec::new();
    let mut core = after(request);
    core.continue_now(&mut out);
    core.continue_now(&mut out);
    assert_eq!(out, b"HTTP/1.1 100 Continue\r\n\r\n");
    // Without it, the client may send its body or not: the connection cannot be read on.
    out.clear();
    let mut core = after(request);
    let (lines, _) = head_of(&mut core, &plain(200), Some(0), false);
    assert!(lines.ends_with("Connection: close\r\n"), "{lines}");
    core.continue_now(&mut out);
    assert_eq!(out, b"", "the final answer has begun");
    core.push_end(None, &mut out);
    assert_eq!(core.finish(), AfterAnswer::Linger);
    // Nor is it needed once the body comes by itself.
    let mut core = after(request);
    let (_, event) = core.read(b"a", &mut RequestHead::empty(), 0);
    assert_eq!(event, Http1Event::Data(1));
    core.continue_now(&mut out);
    after(GET).continue_now(&mut out);
    assert_eq!(out, b"");
}

#[test]
fn the_rest_of_a_body_is_dropped_when_it_is_small() {
    let next_after = |request: &str| {
        let mut core = after(request);
        head_of(&mut core, &plain(200), Some(0), false);
        core.push_end(None, &mut Vec::new());
        (core.finish(), core)
    };
    let sized = |len: usize| format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\n\r\n");
    assert_eq!(next_after(&sized(262_144)).0, AfterAnswer::Discard);
    assert_eq!(next_after(&sized(262_145)).0, AfterAnswer::Linger);
    let last = sized(5).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    assert_eq!(next_after(&last).0, AfterAnswer::Linger);

    let chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (next, mut core) = next_after(chunked);
    assert_eq!(next, AfterAnswer::Discard);
    let mut head = RequestHead::empty();
    let (used, event) = core.read(b"3\r\nabc\r\n0\r\n\r\nGET", &mut head, 0);
    assert_eq!((used, event), (6, Http1Event::Data(3)));
    let (used, event) = core.read(b"\r\n0\r\n\r\nGET", &mut head, 0);
    assert_eq!((used, event), (7, Http1Event::BodyEnd(Vec::new())));
    assert_eq!(core.finish(), AfterAnswer::Request);
    // What comes in chunks has no size to tell by, so it is dropped up to the same one.
    let (_, mut core) = next_after(chunked);
    let (_, event) = core.read(b"40001\r\n", &mut head, 0);
    assert_eq!(event, Http1Event::NeedMore);
    let (_, event) = core.read(&[b'a'; 0x40001], &mut head, 0);
    assert!(matches!(event, Http1Event::Refused(_)));
    assert_eq!(core.finish(), AfterAnswer::Linger);
}

//= rfc9110#7.8
#[test]
fn a_tunnel_carries_raw_bytes_both_ways() {
    let mut core = after(GET);
    let mut fields = Fields::new();
    fields.add(b"Upgrade", b"x");
    let mut out = Vec::new();
    let sending = core.push_tunnel_head(101, &fields, &date(), &mut out);
    assert_eq!(sending, ResponseFraming::Tunnel);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n{DATE}")
    );
    let mut head = RequestHead::empty();
    assert_eq!(
        core.read(b"GET\n\0", &mut head, 0),
        (5, Http1Event::Data(5))
    );
    assert_eq!(core.read(b"", &mut head, 0), (0, Http1Event::NeedMore));
    let mut out = Vec::new();
    core.push_data_prefix(3, &mut out);
    core.push_data_suffix(&mut out);
    assert!(core.push_end(None, &mut out));
    assert_eq!(out, b"");
    assert_eq!(core.finish(), AfterAnswer::Linger);

    let mut core = after("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut out = Vec::new();
    core.push_tunnel_head(200, &Fields::new(), &date(), &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        format!("HTTP/1.1 200 OK\r\n{DATE}")
    );
}

#[test]
fn a_refusal_does_not_follow_the_request_before_it() {
    let mut core = after(HEAD);
    head_of(&mut core, &plain(200), Some(5), false);
    core.push_end(None, &mut Vec::new());
    assert_eq!(core.finish(), AfterAnswer::Request);
    let (_, event) = core.read(b"\0", &mut RequestHead::empty(), 0);
    assert!(matches!(event, Http1Event::Refused(_)));
    let (lines, sending) = head_of(&mut core, &plain(400), Some(5), true);
    assert_eq!(
        sending,
        ResponseFraming::Length(5),
        "no longer an answer to HEAD"
    );
    assert!(lines.ends_with("Connection: close\r\n"));
    core.push_data_prefix(5, &mut Vec::new());
    assert!(core.push_end(None, &mut Vec::new()));
    assert_eq!(core.finish(), AfterAnswer::Linger);
}
