//! Heads of requests: what is in them, and what makes them malformed; heads of answers.

use super::super::conn::Http2Event;
use super::{Server, date, fields, post, request, seen_and_sent};
use crate::head::{Fields, Known};
use crate::limits::HttpLimits;
use crate::response::{PreparedHead, ResponseHead};

#[test]
fn head_is_filled_as_the_one_of_http_1() {
    let mut server = Server::greeted();
    let bytes = request(
        1,
        &fields(
            "GET",
            "/a%20b?c=d?e",
            &[
                ("user-agent", "test"),
                ("cookie", "a=1"),
                ("cookie", "b=2"),
                ("accept", "*/*"),
                ("cookie", "c=3"),
                ("cookie", "d=4"),
                ("x-empty", ""),
                ("te", "trailers"),
            ],
        ),
        true,
    );
    let mut out = Vec::new();
    let (used, event) = server.core.read(&bytes, &mut server.head, &mut out, 0);
    assert_eq!(used, bytes.len());
    assert!(matches!(event, Http2Event::Request(_)));
    let head = &server.head;
    assert_eq!(head.protocol().word(), "HTTP/2.0");
    assert_eq!(
        (head.path(), head.query()),
        (&b"/a%20b"[..], Some(&b"c=d?e"[..]))
    );
    assert_eq!(head.value(Known::Host), Some(&b"h"[..]));
    assert_eq!(head.value(Known::Cookie), Some(&b"a=1; b=2; c=3; d=4"[..]));
    assert!(!head.is_repeated(Known::Cookie));
    let names: Vec<_> = head
        .fields()
        .map(|(name, _)| name.escape_ascii().to_string())
        .collect();
    assert_eq!(
        names,
        ["user-agent", "cookie", "accept", "x-empty", "te", "host"]
    );
    assert_eq!(head.connect_protocol(), None);
}

//= rfc9113#8.1.1
#[test]
fn malformed_requests_are_reset() {
    let without = |name: &str| {
        let mut fields = fields("GET", "/", &[]);
        fields.retain(|(other, _)| *other != name);
        fields
    };
    let with = |more: &[(&'static str, &'static str)]| fields("GET", "/", more);
    let mut late = fields("GET", "/", &[]);
    late.insert(0, ("a", "b"));
    for list in [
        without(":method"),
        without(":scheme"),
        without(":path"),
        late,
        with(&[(":method", "GET")]),
        with(&[(":status", "200")]),
        with(&[(":unknown", "a")]),
        with(&[("connection", "close")]),
        with(&[("keep-alive", "1")]),
        with(&[("proxy-connection", "1")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("upgrade", "h2c")]),
        with(&[("te", "gzip")]),
        with(&[("a b", "c")]),
        with(&[("", "c")]),
        with(&[("a", " b")]),
        with(&[("a", "b\t")]),
        with(&[("a", "b\r\nc: d")]),
        with(&[("a", "\0")]),
        with(&[("host", "other")]),
        with(&[("host", "h"), ("host", "h")]),
        with(&[("content-length", "x")]),
        with(&[("content-length", "0"), ("content-length", "0")]),
        with(&[(":protocol", "websocket")]),
        fields("GET", "", &[]),
        fields("GET", "a", &[]),
        fields("GET", "*", &[]),
        fields("GET", "/a b", &[]),
        fields("GET", "/a#b", &[]),
        fields("G T", "/", &[]),
        fields("CONNECT", "/", &[]),
        vec![
            (":method", "GET"),
            (":scheme", "ftp"),
            (":path", "/"),
            (":authority", "h"),
        ],
        vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a@h"),
        ],
    ] {
        let (seen, sent) = seen_and_sent(&request(1, &list, true));
        assert!(seen.starts_with("malformed: "), "{list:?}: {seen}");
        assert_eq!(sent, "1 RST 1\n", "{list:?}");
    }
    // The encoder of these tests writes names in lower case.
    let mut upper = super::block(&fields("GET", "/", &[]));
    upper.extend_from_slice(b"\0\x03AbC\x01d");
    let (seen, _) = seen_and_sent(&super::frame(1, 5, 1, &upper));
    assert!(seen.starts_with("malformed: "), "{seen}");
}

#[test]
fn refused_requests_have_a_status() {
    let long = "x".repeat(120);
    let many: Vec<(&str, &str)> = (0..101).map(|_| ("a", "b")).collect();
    let limits = HttpLimits {
        target_bytes: 100,
        head_bytes: 10_000,
        ..HttpLimits::default()
    };
    let path = format!("/{}", &long[..110]);
    let big: Vec<(&str, &str)> = (0..70).map(|_| ("a", long.as_str())).collect();
    for (list, status) in [
        (fields("GET", &path, &[]), 414),
        (fields("GET", "/", &many), 431),
        (fields("GET", "/", &big), 431),
        (fields("GET", "/", &[("expect", "wonders")]), 417),
        (
            vec![(":method", "GET"), (":scheme", "http"), (":path", "/")],
            400,
        ),
    ] {
        let mut server = Server::greeted_within(limits.clone());
        server.feed(&request(1, &list, true));
        assert!(
            server.seen().starts_with(&format!("1 {status} ")),
            "{status}"
        );
        // The tables are as they were: the next request is read.
        server.feed(&super::get(3, "/"));
        assert_eq!(server.seen(), "3 GET / host=h\n");
    }
}

#[test]
fn authority_and_host_and_the_asterisk() {
    let mut with_host = fields("GET", "/", &[("host", "H")]);
    assert_eq!(
        seen_and_sent(&request(1, &with_host, true)).0,
        "1 GET / host=h\n"
    );
    with_host.retain(|(name, _)| *name != ":authority");
    assert_eq!(
        seen_and_sent(&request(1, &with_host, true)).0,
        "1 GET / host=H\n"
    );
    let options = fields("OPTIONS", "*", &[]);
    assert_eq!(
        seen_and_sent(&request(1, &options, true)).0,
        "1 OPTIONS * host=h\n"
    );
    let connect = [(":method", "CONNECT"), (":authority", "h:1")];
    assert_eq!(
        seen_and_sent(&request(1, &connect, false)).0,
        "1 CONNECT h:1 host=h:1 body\n"
    );
}

//= rfc8441#4
#[test]
fn extended_connect_is_spoken_where_it_is_offered() {
    let limits = HttpLimits {
        h2_connect_protocol: true,
        ..HttpLimits::default()
    };
    let mut server = Server::greeted_within(limits);
    let list = fields("CONNECT", "/chat", &[(":protocol", "websocket")]);
    let bytes = request(1, &list, false);
    let (_, event) = server
        .core
        .read(&bytes, &mut server.head, &mut server.out, 0);
    assert!(matches!(event, Http2Event::Request(_)));
    assert_eq!(server.head.connect_protocol(), Some(&b"websocket"[..]));
    assert_eq!(server.head.path(), b"/chat");
    assert!(server.core.is_tunnel(1));
    server
        .core
        .push_tunnel_head(1, 101, &Fields::new(), &date(), &mut server.out);
    assert_eq!(server.sent(), "1 HEADERS :status=200\n");
    let other = fields("GET", "/", &[(":protocol", "websocket")]);
    server.head.clear();
    server.feed(&request(3, &other, true));
    assert!(server.seen().starts_with("malformed: "));
}

#[test]
fn heads_of_answers_say_what_follows() {
    let mut server = Server::greeted();
    let mut list = Fields::new();
    list.add(b"Content-Type", b"text/plain");
    list.add(b"Connection", b"close");
    list.add(b"ETag", b"v1");
    let prepared = ResponseHead::Prepared(PreparedHead::new(200, list.clone(), 5).into());
    let listed = ResponseHead::Fields(404, list);
    let bare = |status| ResponseHead::Fields(status, Fields::new());
    let cases = [
        (
            "GET",
            &prepared,
            None,
            ":status=200 content-type=text/plain etag=v1 content-length=5",
        ),
        (
            "HEAD",
            &prepared,
            None,
            ":status=200 content-type=text/plain etag=v1 content-length=5 END",
        ),
        (
            "GET",
            &listed,
            Some(3),
            ":status=404 content-type=text/plain etag=v1 content-length=3",
        ),
        (
            "GET",
            &listed,
            None,
            ":status=404 content-type=text/plain etag=v1",
        ),
        ("GET", &bare(204), None, ":status=204 END"),
        ("GET", &bare(304), Some(9), ":status=304 END"),
        (
            "GET",
            &bare(200),
            Some(0),
            ":status=200 content-length=0 END",
        ),
        (
            "HEAD",
            &bare(200),
            Some(7),
            ":status=200 content-length=7 END",
        ),
    ];
    for ((method, head, len, text), id) in cases.into_iter().zip((1..).step_by(2)) {
        server.feed(&request(id, &fields(method, "/", &[]), true));
        server
            .core
            .push_head(id, head, len, &date(), &mut server.out);
        assert_eq!(server.sent(), format!("{id} HEADERS {text}\n"));
    }
}

#[test]
fn interim_answers_come_before_the_head_and_not_after() {
    let mut server = Server::greeted();
    server.feed(&post(
        1,
        &[("expect", "100-continue"), ("content-length", "3")],
    ));
    server.core.continue_now(1, &mut server.out);
    server.core.continue_now(1, &mut server.out);
    let mut link = Fields::new();
    link.add(b"Link", b"</a>");
    server.core.push_interim(1, 103, &link, &mut server.out);
    assert_eq!(
        server.sent(),
        "1 HEADERS :status=100\n1 HEADERS :status=103 link=</a>\n"
    );
    server.answer(1, 2);
    server.core.push_interim(1, 103, &link, &mut server.out);
    assert_eq!(server.sent(), "1 HEADERS :status=200 content-length=2\n");
    // Who was not asked for the body does not send it: nobody waits for it.
    server.feed(&post(
        3,
        &[("expect", "100-continue"), ("content-length", "3")],
    ));
    server.answer(3, 0);
    assert_eq!(
        server.sent(),
        "3 HEADERS :status=200 content-length=0 END\n3 RST 0\n"
    );
}

#[test]
fn head_too_long_for_a_frame_goes_on_in_the_next() {
    let mut server = Server::greeted();
    server.feed(&super::get(1, "/"));
    let mut list = Fields::new();
    for number in 0..40 {
        list.add(format!("x-{number}").as_bytes(), &[b'^'; 1000]);
    }
    let head = ResponseHead::Fields(200, list);
    server
        .core
        .push_head(1, &head, Some(0), &date(), &mut server.out);
    let mut bytes = &server.out[..];
    let mut block = Vec::new();
    let mut kinds = Vec::new();
    while let Some(header) = super::Header::read(bytes) {
        assert!(header.len <= 16_384);
        kinds.push((header.kind, header.flags));
        block.extend_from_slice(&bytes[9..9 + header.len]);
        bytes = &bytes[9 + header.len..];
    }
    assert_eq!(kinds, [(1, 1), (9, 0), (9, 4)]);
    let mut count = 0;
    server
        .client
        .decode(&block, &mut Vec::new(), |_, _| count += 1)
        .unwrap();
    assert_eq!(count, 43);
}
