//! What is refused, and with which status. Every sample is also fed byte by byte.

use super::{seen, seen_within};
use crate::limits::HttpLimits;

/// The status that a request gets when it is refused at its head or in its body.
#[track_caller]
fn status_of(input: &[u8]) -> u16 {
    let seen = seen(input);
    let last = seen.lines().last().unwrap_or_default();
    last.split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("not refused: {}\n{seen}", input.escape_ascii()))
}

#[track_caller]
fn assert_refused(status: u16, samples: &[&str]) {
    for sample in samples {
        assert_eq!(status_of(sample.as_bytes()), status, "{sample:?}");
    }
}

//= rfc9112#2.2
#[test]
fn a_line_that_ends_with_lf_alone_is_400_anywhere() {
    assert_refused(
        400,
        &[
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\nb: c\r\n\r\n",
            "GET /\nfoo HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;x\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\n\r\n",
        ],
    );
}

//= rfc9112#2.2
#[test]
fn a_cr_alone_is_400_anywhere() {
    assert_refused(
        400,
        &[
            "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX\r: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \rb\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r;a\r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;\ra\r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: \rb\r\n\r\n",
        ],
    );
}

//= rfc9112#5
//= rfc9110#5.5
#[test]
fn malformed_fields_are_400() {
    assert_refused(
        400,
        &[
            // A field that goes on in the next line (obs-fold).
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n",
            "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
            // White space before the colon, or within a name.
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\t: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n",
            // No name, no colon, bytes that are no token.
            "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX\u{e9}: b\r\n\r\n",
            // NUL and other control characters.
            "GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\x7fb\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA b: c\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA : c\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: \0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n",
        ],
    );
}

//= rfc9112#3
#[test]
fn malformed_request_lines_are_400() {
    assert_refused(
        400,
        &[
            "GET\r\nHost: a\r\n\r\n",
            "GET /\r\nHost: a\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
            "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n",
            " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / http/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/11\r\nHost: a\r\n\r\n",
            "GET / HTTP/+1.1\r\nHost: a\r\n\r\n",
            "GET / HTTPS/1.1\r\nHost: a\r\n\r\n",
        ],
    );
}

//= rfc9110#2.5
#[test]
fn other_versions_are_505() {
    assert_refused(
        505,
        &[
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "GET / HTTP/0.9\r\nHost: a\r\n\r\n",
            "GET / HTTP/3.0\r\nHost: a\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ],
    );
}

//= rfc9112#3.2
#[test]
fn a_host_that_is_missing_doubled_or_malformed_is_400() {
    assert_refused(
        400,
        &[
            "GET / HTTP/1.1\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [g::1]\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: []\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [4712::abcd::]\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [1:2:3]\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: :80\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a?b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a#b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: \u{e4}\r\n\r\n",
        ],
    );
}

//= rfc9112#3.2.2
#[test]
fn two_hosts_in_one_request_are_400() {
    assert_refused(
        400,
        &[
            "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
            "GET https://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
            "GET http://a/ HTTP/1.0\r\nHost: b\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n",
            "GET http://a:8080/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET https://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: a:443\r\n\r\n",
            "CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n",
            "CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        ],
    );
}

//= rfc9112#3.2
#[test]
fn targets_of_no_known_form_are_400() {
    assert_refused(
        400,
        &[
            "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a/#b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a:b/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT [::1] HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT u@a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n",
        ],
    );
}

//= rfc9112#6.3
#[test]
fn a_content_length_that_can_be_read_twice_is_400() {
    assert_refused(
        400,
        &[
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5,\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\nhello",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
        ],
    );
}

//= rfc9112#6.1
#[test]
fn a_transfer_encoding_that_can_be_read_twice_is_400() {
    assert_refused(
        400,
        &[
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;a=b\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n",
            "CONNECT a:80 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
            "CONNECT a:80 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ],
    );
}

//= rfc9112#6.1
#[test]
fn other_codings_before_chunked_are_501() {
    assert_refused(
        501,
        &[
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip,deflate ,\tchunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip ;a=b, chunked\r\n\r\n",
        ],
    );
}

//= rfc9112#7.1
#[test]
fn malformed_chunks_are_400() {
    for body in [
        "\r\n",
        "x\r\n",
        "-1\r\n",
        "+1\r\n",
        "0x1\r\n",
        " 1\r\na\r\n0\r\n\r\n",
        "1 \r\na\r\n0\r\n\r\n",
        "1 a\r\na\r\n0\r\n\r\n",
        // 16 digits that do not fit, and 17.
        "ffffffffffffffff\r\n",
        "8000000000000000\r\n",
        "10000000000000000\r\n",
        "00000000000000001\r\na\r\n0\r\n\r\n",
        // Longer and shorter than it says.
        "1\r\nab\r\n0\r\n\r\n",
        "3\r\na\r\n0\r\n\r\n",
        "1\r\na0\r\n\r\n",
        "1;a\0b\r\na\r\n0\r\n\r\n",
        "1;a\x7f\r\na\r\n0\r\n\r\n",
        // Extensions that are none.
        "1;\r\na\r\n0\r\n\r\n",
        "1;bad[=x\r\na\r\n0\r\n\r\n",
        "1;a=\r\na\r\n0\r\n\r\n",
        "1;a=\"b\r\na\r\n0\r\n\r\n",
        "1;a=\"b\"c\r\na\r\n0\r\n\r\n",
        "1;a \r\na\r\n0\r\n\r\n",
    ] {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let input = format!("{head}{body}");
        assert_eq!(status_of(input.as_bytes()), 400, "{body:?}");
    }
}

#[test]
fn chunk_extensions_have_limits() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = |extension: usize, chunk_count: usize| {
        let mark = if extension > 0 { ";" } else { "" };
        let chunk = format!("1{mark}{}\r\na\r\n", "x".repeat(extension));
        format!("{head}{}0\r\n\r\n", chunk.repeat(chunk_count))
    };
    assert!(seen(body(1000, 10).as_bytes()).contains("body aaaaaaaaaa\n"));
    assert_eq!(status_of(body(5000, 1).as_bytes()), 400);
    assert_eq!(status_of(body(1000, 100).as_bytes()), 400);
    // Short size lines are no attack, however many.
    assert!(seen(body(0, 20_000).as_bytes()).contains("keep"));
}

//= rfc9110#10.1.1
#[test]
fn an_unknown_expectation_is_417() {
    assert_refused(
        417,
        &[
            "GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue, x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\nExpect: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect:\r\n\r\n",
        ],
    );
}

#[test]
fn a_body_without_a_length_is_411_in_http_1_0() {
    assert_refused(
        411,
        &[
            "POST / HTTP/1.0\r\n\r\n",
            "PUT / HTTP/1.0\r\nHost: a\r\n\r\n",
            "PATCH / HTTP/1.0\r\nHost: a\r\n\r\n",
        ],
    );
}

//= rfc9112#3
#[test]
fn a_target_longer_than_its_limit_is_414_before_its_line_is_complete() {
    let fits = "a".repeat(8191);
    let good = format!("GET /{fits} HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(seen(good.as_bytes()).contains("keep"));
    let bad = format!("GET /{fits}b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status_of(bad.as_bytes()), 414);
    let endless = format!("GET /{}", "a".repeat(8300));
    assert_eq!(status_of(endless.as_bytes()), 414);
    let method = "A".repeat(9000);
    assert_eq!(status_of(method.as_bytes()), 501);
    // A method that is a little too long is at the target's cost, however the bytes come.
    let method = "A".repeat(60);
    let both = format!("{method} /{fits} HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status_of(both.as_bytes()), 414);
}

//= rfc6585#5
#[test]
fn a_head_longer_than_its_limit_is_431() {
    let head_of = |len: usize| {
        let frame = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
        let value = "x".repeat(len - frame);
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: {value}\r\n\r\n")
    };
    assert!(seen(head_of(64 * 1024).as_bytes()).contains("keep"));
    assert_eq!(status_of(head_of(64 * 1024 + 1).as_bytes()), 431);
    // Also when it does not end, and whatever stands behind the limit.
    assert_eq!(status_of(&head_of(70_000).as_bytes()[..65_536]), 431);
    assert_eq!(status_of((head_of(70_000) + "\n").as_bytes()), 431);
    let trailer = "x".repeat(66_000);
    let input = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nX: {trailer}\r\n\r\n"
    );
    assert_eq!(status_of(input.as_bytes()), 431);
}

//= rfc6585#5
#[test]
fn more_fields_than_the_limit_are_431() {
    let head_of = |count: usize| {
        let fields = "X: y\r\n".repeat(count - 1);
        format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
    };
    assert!(seen(head_of(100).as_bytes()).contains("keep"));
    assert_eq!(status_of(head_of(101).as_bytes()), 431);
    let fields = "X: y\r\n".repeat(101);
    let input = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{fields}\r\n"
    );
    assert_eq!(status_of(input.as_bytes()), 431);
}

#[test]
fn framing_fields_count_however_late_they_come() {
    let limits = HttpLimits {
        header_count: 1000,
        ..HttpLimits::default()
    };
    let head = |late: &str| {
        let fields = "X: y\r\n".repeat(600);
        format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}{late}\r\n")
    };
    let seen = |late: &str, body: &str| {
        seen_within((head(late) + body).as_bytes(), limits.clone())
            .lines()
            .last()
            .map(str::to_owned)
    };
    assert_eq!(
        seen("Content-Length: 5\r\n", "hello").as_deref(),
        Some("body hello")
    );
    let twice = seen("Content-Length: 5\r\nContent-Length: 5\r\n", "");
    assert_eq!(
        twice.as_deref(),
        Some("400 more than one Content-Length field")
    );
    let hosts = seen("Host: b\r\n", "");
    assert_eq!(
        hosts.as_deref(),
        Some("400 there is more than one Host field")
    );
}

#[test]
fn bytes_of_another_protocol_are_refused_at_the_first() {
    let tls_hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    assert_eq!(
        seen(&tls_hello[..1]),
        "400 the request does not begin with a method\n"
    );
    assert_eq!(status_of(tls_hello), 400);
    assert_eq!(status_of(b"\x00"), 400);
    assert_eq!(status_of(b"\xff\xd8"), 400);
}

//= rfc9110#15.5.14
#[test]
fn a_body_larger_than_its_limit_is_413() {
    let limits = HttpLimits {
        body_bytes: 10,
        ..HttpLimits::default()
    };
    let seen = |input: &str| seen_within(input.as_bytes(), limits.clone());
    let fits = seen("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789");
    assert_eq!(fits, "POST path=/ host=a sized keep\nbody 0123456789\n");
    // What is announced is refused before a byte of it came.
    let announced = seen("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
    assert_eq!(
        announced,
        "POST path=/ host=a sized keep\n413 limits.body: the request body is larger than its limit\n"
    );
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n";
    assert!(!seen(&format!("{chunked}5\r\n56789\r\n0\r\n\r\n")).contains("413"));
    assert!(seen(&format!("{chunked}5\r\n56789\r\n1\r\na\r\n0\r\n\r\n")).contains("413"));
}

#[test]
fn a_refused_request_ends_the_connection_after_its_answer() {
    // What follows is not read as a request.
    let smuggled = "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(
        seen(smuggled.as_bytes()),
        "400 there is more than one Host field\n"
    );
}
