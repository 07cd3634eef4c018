//! Field sections to heads and back.

use crate::fields_coding::head::Wrong;
use crate::fields_coding::qpack;
use crate::h2::tests::random::{Random, scattered_cookies};
use crate::head::{Fields, Known, RequestHead};
use crate::limits::HttpLimits;
use crate::response::PreparedHead;

const USUAL: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a.example"),
    (":path", "/x?y=z"),
];

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    qpack::push_prefix(&mut out);
    for (name, value) in fields {
        qpack::push_field(name.as_bytes(), value.as_bytes(), &mut out);
    }
    out
}

/// Names and values of a section.
fn fields(section: &[u8]) -> Result<Vec<(String, String)>, &'static str> {
    let mut buffer = Vec::new();
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let decoded = qpack::decode(section, &mut buffer, |buffer, field| {
        let (name, value) = field.texts(buffer);
        fields.push((text(name), text(value)));
    });
    decoded.map(|()| fields).map_err(|malformed| malformed.0)
}

fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    fields.iter().map(pair).collect()
}

#[test]
fn cookie_is_whole_and_held_little_whatever_the_order_of_its_pieces() {
    let limits = HttpLimits::default();
    let mut random = Random(1147);
    for _ in 0..300 {
        let (list, whole) = scattered_cookies(&mut random, limits.head_bytes - 500);
        let list = list
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let section = section(&USUAL.into_iter().chain(list).collect::<Vec<_>>());
        let mut head = RequestHead::empty();
        assert!(qpack::read_request(&section, &mut head, &limits));
        assert_eq!(
            head.value(Known::Cookie).unwrap_or_default(),
            whole.as_bytes()
        );
        assert!(head.bytes.capacity() <= 2 * limits.head_bytes);
    }
}

//= rfc9204#appendix-B.1
#[test]
fn section_of_the_example_is_read() {
    let bytes = [&[0, 0, 0x51, 0x0b][..], b"/index.html"].concat();
    assert_eq!(fields(&bytes), Ok(pairs(&[(":path", "/index.html")])));
}

#[test]
fn fields_come_back_as_they_were_written() {
    let list = [
        ("accept-ranges", "bytes"),
        ("content-type", "text/html; charset=utf-8"),
        ("content-type", "text/html"),
        ("content-length", "0"),
        ("content-length", "1234567"),
        ("set-cookie", "a=b; HttpOnly"),
        ("x-other", "a value nobody has in a table"),
        ("x", ""),
        ("vary", "accept-encoding"),
    ];
    assert_eq!(fields(&section(&list)), Ok(pairs(&list)));
    let mixed = section(&[("Content-Type", "image/png"), ("X-Mixed-Case", "Y")]);
    let lower = pairs(&[("content-type", "image/png"), ("x-mixed-case", "Y")]);
    assert_eq!(fields(&mixed), Ok(lower));
    let long = "n".repeat(100);
    assert_eq!(
        fields(&section(&[(&long, "v")])),
        Ok(pairs(&[(&long, "v")]))
    );
}

//= rfc9114#4.2
#[test]
fn fields_that_speak_of_the_connection_are_not_sent() {
    let list = [("Connection", "close"), ("Keep-Alive", "x"), ("a", "b")];
    assert_eq!(fields(&section(&list)), Ok(pairs(&[("a", "b")])));
}

#[test]
fn entry_with_its_value_costs_one_byte_or_two() {
    assert_eq!(section(&[("accept-ranges", "bytes")]).len(), 3);
    assert_eq!(section(&[("x-frame-options", "sameorigin")]).len(), 4);
    let mut out = Vec::new();
    qpack::push_status(200, &mut out);
    assert_eq!(out, [0xc0 | 25]);
}

#[test]
fn tables_that_were_not_offered_are_errors() {
    for bytes in [
        &[1, 0][..],
        &[0, 0, 0x80],
        &[0, 0, 0x40, 0],
        &[0, 0, 0x10],
        &[0, 0, 0x00, 0],
        &[0, 0, 0xff, 36],
        &[0, 0, 0x5f, 84, 0],
        &[0],
        &[],
        &[0, 0, 0x27],
        &[0, 0, 0x51, 5, b'a'],
    ] {
        assert!(fields(bytes).is_err(), "{bytes:?}");
    }
    assert_eq!(fields(&[0, 0, 0xff, 35]).unwrap()[0].0, "x-frame-options");
}

#[test]
fn head_is_filled_as_by_the_other_versions() {
    let mut list = USUAL.to_vec();
    list.extend([("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2")]);
    list.push(("priority", "u=5"));
    let mut head = RequestHead::empty();
    let sound = qpack::read_head(&section(&list), &mut head, &HttpLimits::default());
    let sound = sound.unwrap().unwrap();
    assert_eq!((sound.length, sound.priority.urgency), (None, 5));
    assert_eq!(head.protocol().word(), "HTTP/3.0");
    assert_eq!((head.method(), head.path()), (&b"GET"[..], &b"/x"[..]));
    assert_eq!(head.query(), Some(&b"y=z"[..]));
    assert_eq!(head.host(), b"a.example");
    assert_eq!(head.value(Known::Host), Some(&b"a.example"[..]));
    assert_eq!(head.value(Known::Cookie), Some(&b"a=1; b=2"[..]));
}

//= rfc9114#4.3
#[test]
fn heads_that_are_malformed_or_too_long_are_told_apart() {
    let read = |more: &[(&str, &str)], limits: &HttpLimits| {
        let list = [&USUAL, more].concat();
        let mut head = RequestHead::empty();
        qpack::read_head(&section(&list), &mut head, limits).unwrap()
    };
    let usual = HttpLimits::default();
    let malformed = read(&[(":path", "/")], &usual);
    assert!(
        matches!(malformed, Err(Wrong::Malformed(_))),
        "{malformed:?}"
    );
    let tight = HttpLimits {
        header_count: 2,
        ..HttpLimits::default()
    };
    let many = read(&[("a", "1"), ("b", "2"), ("c", "3")], &tight);
    assert!(
        matches!(many, Err(Wrong::Refused(refusal)) if refusal.status == 431),
        "{many:?}"
    );
}

#[test]
fn trailers_are_fields_and_nothing_else() {
    let limits = HttpLimits::default();
    let read = |list: &[(&str, &str)]| qpack::read_trailers(&section(list), &limits).unwrap();
    let trailers = read(&[("x-sum", "1")]).unwrap();
    assert_eq!(
        (&trailers[0].0[..], &trailers[0].1[..]),
        (&b"x-sum"[..], &b"1"[..])
    );
    assert!(read(&[(":path", "/")]).is_err());
    assert!(read(&[("te", "trailers")]).is_err());
}

#[test]
fn prepared_head_is_a_section_without_its_date() {
    let mut given = Fields::new();
    given.add(b"ETag", b"\"a\"");
    let prepared = PreparedHead::new(200, given, 1024);
    let wanted = [
        (":status", "200"),
        ("etag", "\"a\""),
        ("content-length", "1024"),
    ];
    assert_eq!(fields(prepared.section().bytes()), Ok(pairs(&wanted)));
    let bodiless = PreparedHead::new(304, Fields::new(), 1024);
    assert_eq!(
        fields(bodiless.section().bytes()),
        Ok(pairs(&[(":status", "304")]))
    );
}
