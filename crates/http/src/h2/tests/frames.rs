//! Frames that break the rules, and those that do not.

use super::super::frame::{self, PREFACE};
use super::{
    Server, data, date, fields, frame as raw, get, post, request, reset, seen_and_sent, settings,
    window,
};
use crate::head::Fields;
use crate::limits::HttpLimits;

/// What ends the connection, and with which code.
fn failure(input: &[u8]) -> String {
    let (seen, sent) = seen_and_sent(input);
    let reason = seen.lines().last().unwrap_or_default().to_owned();
    let last = sent.lines().last().unwrap_or_default();
    let code = last
        .strip_prefix("GOAWAY ")
        .map(|rest| rest.split(' ').nth(1).unwrap());
    format!("{} {reason}", code.unwrap_or("none"))
}

#[test]
fn greeting_is_settings_both_ways() {
    let mut server = Server::new(HttpLimits::default());
    assert_eq!(server.sent(), "SETTINGS 3\n0 WINDOW 983041\n");
    server.feed(&PREFACE[..10]);
    server.feed(&PREFACE[10..]);
    server.feed(&settings(&[(3, 100)]));
    assert_eq!(
        (server.seen().as_str(), server.sent().as_str()),
        ("", "SETTINGS ACK\n")
    );
}

//= rfc9113#3.4
#[test]
fn connection_that_begins_otherwise_is_over() {
    for input in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        [&PREFACE[..], &get(1, "/")].concat(),
    ] {
        let mut server = Server::new(HttpLimits::default());
        server.feed(&input);
        assert!(server.seen().starts_with("over: "));
        assert!(server.sent().ends_with("GOAWAY 0 1\n"));
    }
}

#[test]
fn requests_and_their_bodies() {
    let (seen, sent) = seen_and_sent(
        &[
            get(1, "/a?b"),
            post(3, &[("content-length", "5")]),
            data(3, b"hel", false),
            get(5, "/c"),
            data(3, b"lo", true),
            post(7, &[]),
            raw(frame::DATA, frame::PADDED, 7, b"\x03abcxyz"),
            raw(
                frame::DATA,
                frame::PADDED | frame::END_STREAM,
                7,
                b"\x02\0\0",
            ),
            post(9, &[]),
            request(9, &[("check", "sum")], true),
            request(11, &fields("PUT", "/", &[("content-length", "0")]), false),
            data(11, b"", true),
            raw(0x42, 0xff, 0, b"unknown"),
            raw(frame::GOAWAY, 0, 0, &[0; 8]),
        ]
        .concat(),
    );
    assert_eq!(
        seen,
        "1 GET /a?b host=h\n3 POST / host=h 5 bytes\n5 GET /c host=h\n3 body hello\n\
         7 POST / host=h body\n7 body abc\n9 POST / host=h body\n9 body \n9 trailer check: sum\n\
         11 PUT / host=h\n11 body \n"
    );
    assert_eq!(sent, "");
}

#[test]
fn heads_in_several_frames_are_one() {
    let whole = super::block(&fields("GET", "/long", &[("x", "y")]));
    let (first, rest) = whole.split_at(10);
    let (second, third) = rest.split_at(1);
    let (seen, _) = seen_and_sent(
        &[
            raw(frame::HEADERS, frame::END_STREAM, 1, first),
            raw(frame::CONTINUATION, 0, 1, second),
            raw(frame::CONTINUATION, 0, 1, b""),
            raw(frame::CONTINUATION, frame::END_HEADERS, 1, third),
            // Priority and padding stand before and behind the block.
            raw(
                frame::HEADERS,
                frame::END_STREAM | frame::END_HEADERS | frame::PADDED | frame::WITH_PRIORITY,
                3,
                &[&[2, 0, 0, 0, 0, 16][..], &whole, &[0, 0]].concat(),
            ),
        ]
        .concat(),
    );
    assert_eq!(seen, "1 GET /long host=h\n3 GET /long host=h\n");
}

//= rfc9113#5.4.1
#[test]
fn frames_that_end_the_connection() {
    let ended = |then: Vec<u8>| [get(1, "/"), then].concat();
    for (input, code) in [
        (raw(frame::DATA, 0, 0, b"a"), '1'),
        (data(1, b"a", false), '1'),
        (raw(frame::DATA, frame::PADDED, 1, b""), '1'),
        (ended(raw(frame::DATA, frame::PADDED, 1, b"\x05abc")), '1'),
        (request(2, &fields("GET", "/", &[]), true), '1'),
        (request(0, &fields("GET", "/", &[]), true), '1'),
        ([get(5, "/"), get(3, "/")].concat(), '1'),
        (
            raw(
                frame::HEADERS,
                frame::PADDED | frame::END_HEADERS,
                1,
                b"\x05\x82",
            ),
            '1',
        ),
        (raw(frame::HEADERS, frame::END_HEADERS, 1, b"\x80"), '9'),
        (raw(frame::HEADERS, frame::WITH_PRIORITY, 1, b"\0\0"), '6'),
        (raw(frame::PRIORITY, 0, 0, &[0, 0, 0, 1, 0]), '1'),
        (raw(frame::PRIORITY, 0, 1, &[0; 4]), '6'),
        (raw(frame::RST_STREAM, 0, 0, &[0; 4]), '1'),
        (reset(1), '1'),
        (ended(raw(frame::RST_STREAM, 0, 1, &[0; 3])), '6'),
        (raw(frame::SETTINGS, 0, 1, b""), '1'),
        (raw(frame::SETTINGS, 0, 0, &[0; 5]), '6'),
        (raw(frame::SETTINGS, frame::ACK, 0, &[0; 6]), '6'),
        (settings(&[(2, 2)]), '1'),
        (settings(&[(4, 1 << 31)]), '3'),
        (settings(&[(5, 16_383)]), '1'),
        (settings(&[(5, 1 << 24)]), '1'),
        (settings(&[(8, 2)]), '1'),
        (raw(frame::PUSH_PROMISE, 0, 1, &[0; 4]), '1'),
        (raw(frame::PING, 0, 1, &[0; 8]), '1'),
        (raw(frame::PING, 0, 0, &[0; 7]), '6'),
        (raw(frame::GOAWAY, 0, 1, &[0; 8]), '1'),
        (raw(frame::GOAWAY, 0, 0, &[0; 7]), '6'),
        (window(0, 0), '1'),
        (window(0, i32::MAX as u32), '3'),
        (window(1, 1), '1'),
        (ended(raw(frame::WINDOW_UPDATE, 0, 1, &[0; 5])), '6'),
        (raw(frame::CONTINUATION, frame::END_HEADERS, 1, b""), '1'),
        (
            [raw(frame::HEADERS, 0, 1, b""), settings(&[])].concat(),
            '1',
        ),
        (
            [
                raw(frame::HEADERS, 0, 1, b""),
                raw(frame::CONTINUATION, 4, 3, b""),
            ]
            .concat(),
            '1',
        ),
        (raw(frame::PING, 0, 0, &[0; 16_385]), '6'),
        (raw(frame::PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1]), '1'),
        (raw(frame::PRIORITY_UPDATE, 0, 0, &[0, 0, 0]), '6'),
        (raw(frame::PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 2]), '1'),
    ] {
        let shown = input[..input.len().min(30)].escape_ascii();
        let failure = failure(&input);
        assert_eq!(failure.chars().next(), Some(code), "{shown}: {failure}");
    }
}

//= rfc9113#5.4.2
#[test]
fn frames_that_end_their_stream_alone() {
    for (input, code, reason) in [
        (data(1, b"a", false), 5, "DATA after the end of the request"),
        (get(1, "/"), 5, "HEADERS after the end of the request"),
        (window(1, 0), 1, "WINDOW_UPDATE of nothing"),
        (
            window(1, i32::MAX as u32),
            3,
            "a window would become too large",
        ),
        (
            raw(frame::PRIORITY, 0, 1, &[0, 0, 0, 1, 0]),
            1,
            "a stream is to depend on itself",
        ),
        (
            raw(frame::PRIORITY, 0, 1, &[0; 4]),
            6,
            "PRIORITY has not five bytes",
        ),
    ] {
        let (seen, sent) = seen_and_sent(&[get(1, "/"), input, get(3, "/")].concat());
        let expected = format!("1 GET / host=h\n1 broken: {reason}\n3 GET / host=h\n");
        assert_eq!(seen, expected);
        assert_eq!(sent, format!("1 RST {code}\n"));
    }
}

//= rfc9113#8.1.1
#[test]
fn body_of_another_size_than_announced_breaks_its_request() {
    let sized = |ends: Vec<u8>| [post(1, &[("content-length", "3")]), ends].concat();
    for input in [
        sized(data(1, b"ab", true)),
        sized(data(1, b"abcd", false)),
        sized(data(1, b"abcd", true)),
        sized(request(1, &[("a", "b")], true)),
    ] {
        let (seen, sent) = seen_and_sent(&input);
        assert!(seen.ends_with("broken: the body has not the size that was announced\n"));
        assert_eq!(sent, "1 RST 1\n");
    }
    let (seen, sent) = seen_and_sent(&request(
        1,
        &fields("GET", "/", &[("content-length", "3")]),
        true,
    ));
    assert_eq!(
        (seen.as_str(), sent.as_str()),
        ("malformed: the announced body does not come\n", "1 RST 1\n")
    );
}

#[test]
fn trailers_end_a_request_and_are_fields() {
    for (trailers, ends) in [
        (&[("a", "b")][..], false),
        (&[(":path", "/")][..], true),
        (&[("connection", "b")][..], true),
    ] {
        let (seen, sent) = seen_and_sent(&[post(1, &[]), request(1, trailers, ends)].concat());
        assert!(seen.contains("1 broken: "), "{seen}");
        assert_eq!(sent, "1 RST 1\n");
    }
}

//= rfc9113#5.1.2
#[test]
fn tunnel_that_both_sides_have_ended_takes_no_place() {
    let limits = HttpLimits {
        h2_connect_protocol: true,
        ..HttpLimits::default()
    };
    let mut server = Server::greeted_within(limits);
    for id in [1, 3] {
        let list = fields("CONNECT", "/chat", &[(":protocol", "echo")]);
        server.feed(&request(id, &list, false));
        server
            .core
            .push_tunnel_head(id, 200, &Fields::new(), &date(), &mut server.out);
    }
    // One is ended by us first, the other by its client.
    server.core.push_half_close(1, &mut server.out);
    server.feed(&data(3, b"", true));
    assert_eq!(server.core.streams.len(), 2);
    server.feed(&data(1, b"", true));
    server.core.push_half_close(3, &mut server.out);
    assert_eq!(server.core.streams.len(), 0);
    assert!(!server.core.is_idle(), "their programs are at work");
    server.sent();
    server.core.end_half_closed(1, &mut server.out);
    let code = super::Http2ErrorCode::Internal;
    server.core.break_off(3, code, &mut server.out);
    assert_eq!(server.sent(), "", "nothing is said on closed streams");
    assert!(server.core.is_idle());
}

//= rfc9113#5.1
#[test]
fn frames_on_streams_that_are_over() {
    let mut server = Server::greeted();
    server.feed(&[get(1, "/"), post(3, &[]), post(5, &[])].concat());
    server.answer(1, 0);
    server.feed(&reset(3));
    let mut out = Vec::new();
    server
        .core
        .reset(5, super::Http2ErrorCode::Cancel, &mut out);
    server.seen();
    server.sent();
    // What was on its way when a stream was reset is passed over, by its tables too.
    server.feed(
        &[
            data(5, b"late", false),
            post(5, &[]),
            reset(5),
            window(5, 1),
        ]
        .concat(),
    );
    assert_eq!(
        (server.seen(), server.sent()),
        (String::new(), String::new())
    );
    // Those that nobody could have sent yet are told so.
    server.feed(&[data(1, b"a", false), data(3, b"a", false)].concat());
    assert_eq!(server.sent(), "1 RST 5\n3 RST 5\n");
    server.feed(&[window(1, 1), reset(1)].concat());
    assert_eq!(
        (server.seen(), server.sent()),
        (String::new(), String::new())
    );
    let mut other = Server::greeted();
    other.feed(&get(1, "/"));
    other.answer(1, 0);
    other.feed(&get(1, "/"));
    assert!(other.sent().ends_with("GOAWAY 1 5\n"));
}

#[test]
fn pings_are_answered_and_answers_are_not() {
    let (_, sent) = seen_and_sent(
        &[
            raw(frame::PING, 0, 0, b"abcdefgh"),
            raw(frame::PING, frame::ACK, 0, b"abcdefgh"),
        ]
        .concat(),
    );
    assert_eq!(sent, "PING 1 abcdefgh\n");
}

//= rfc9113#6.8
#[test]
fn leaving_answers_what_was_on_its_way() {
    let mut server = Server::greeted();
    server.feed(&get(1, "/"));
    server.core.announce_leaving(&mut server.out);
    server.core.announce_leaving(&mut server.out);
    assert_eq!(server.sent(), "GOAWAY 2147483647 0\n");
    server.feed(&get(3, "/"));
    server.core.leave(&mut server.out);
    server.core.leave(&mut server.out);
    assert_eq!(server.sent(), "GOAWAY 3 0\n");
    server.feed(&[post(5, &[]), data(5, b"abc", true), get(7, "/")].concat());
    assert_eq!(server.seen(), "1 GET / host=h\n3 GET / host=h\n");
    server.answer(1, 0);
    server.answer(3, 0);
    assert_eq!(
        server.sent(),
        "1 HEADERS :status=200 content-length=0 END\n3 HEADERS :status=200 content-length=0 END\n"
    );
    assert!(server.core.is_idle());
}
