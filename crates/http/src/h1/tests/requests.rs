//! What is read, and what comes after it.

use super::{Server, seen};
use crate::h1::{Eof, Http1Connection, Http1Event};
use crate::head::{Known, RequestHead};
use crate::limits::HttpLimits;

#[track_caller]
fn assert_seen(input: &str, expected: &str) {
    assert_eq!(seen(input.as_bytes()), expected, "{input:?}");
}

#[test]
fn a_head_keeps_what_was_sent() {
    let input =
        b"PoSt /a%20b?c=d&e HTTP/1.1\r\nhOST:\t a:80 \r\nX-Y:z\r\nx-y: \r\nCookie: a=b; c\r\n\r\n";
    let mut core = Http1Connection::new(HttpLimits::default().into(), 0);
    let mut head = RequestHead::empty();
    let (used, event) = core.read(input, &mut head, 0);
    assert_eq!(used, input.len());
    assert!(matches!(event, Http1Event::Request(_)));
    assert_eq!(head.method(), b"PoSt");
    assert_eq!(head.target(), b"/a%20b?c=d&e");
    assert_eq!(head.path(), b"/a%20b");
    assert_eq!(head.query(), Some(&b"c=d&e"[..]));
    assert_eq!(head.host(), b"a:80");
    assert_eq!(head.value(Known::Cookie), Some(&b"a=b; c"[..]));
    let values: Vec<&[u8]> = head.values(b"X-y").collect();
    assert_eq!(values, [&b"z"[..], b""]);
    assert_eq!(head.fields().count(), 4);
    assert_eq!(head.byte_count(), input.len());
}

//= rfc9112#3.2
#[test]
fn the_four_forms_of_a_target() {
    assert_seen(
        "GET /a/b?c?d HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET path=/a/b query=c?d host=h keep\n",
    );
    assert_seen(
        "GET //a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET path=//a host=h keep\n",
    );
    assert_seen(
        "GET /? HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET path=/ query= host=h keep\n",
    );
    assert_seen(
        "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
        "OPTIONS path=* host=h keep\n",
    );
    assert_seen(
        "CONNECT h:443 HTTP/1.1\r\nHost: H\r\n\r\n",
        "CONNECT path= host=h:443 last\nClose\n",
    );
    assert_seen(
        "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]\r\n\r\n",
        "CONNECT path= host=[::1]:443 last\nClose\n",
    );
}

//= rfc9112#3.2.2
#[test]
fn an_absolute_target_names_the_host_of_the_field() {
    assert_seen(
        "GET http://t:8080/a?b HTTP/1.1\r\nHost: T:8080\r\n\r\n",
        "GET path=/a query=b host=t:8080 keep\n",
    );
    assert_seen(
        "GET HTTPS://t HTTP/1.1\r\nHost: t:443\r\n\r\n",
        "GET path=/ host=t keep\n",
    );
    assert_seen(
        "GET http://t:80?a HTTP/1.1\r\nHost: t\r\n\r\n",
        "GET path=/ query=a host=t:80 keep\n",
    );
    assert_seen(
        "GET http://t/ HTTP/1.0\r\n\r\n",
        "GET path=/ host=t last\nClose\n",
    );
}

//= rfc9110#2.5
#[test]
fn later_minor_versions_are_read_as_the_latest() {
    for minor in 2..10 {
        assert_seen(
            &format!("GET / HTTP/1.{minor}\r\nHost: a\r\n\r\n"),
            "GET path=/ host=a keep\n",
        );
    }
}

#[test]
fn hosts_of_every_kind_are_taken() {
    for host in [
        "a",
        "a.b-c_d:80",
        "a:",
        "1.2.3.4:5",
        "[::1]",
        "[2001:db8::1]:443",
        "",
    ] {
        assert_seen(
            &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            &format!("GET path=/ host={host} keep\n"),
        );
    }
    assert_seen("GET / HTTP/1.0\r\n\r\n", "GET path=/ host= last\nClose\n");
}

//= rfc9112#9.3
#[test]
fn a_connection_lasts_as_the_client_says() {
    for (version, fields, keeps) in [
        ("1.1", "", true),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: upgrade, CLOSE\r\n", false),
        (
            "1.1",
            "Connection: keep-alive\r\nConnection: close\r\n",
            false,
        ),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let end = if keeps { "keep\n" } else { "last\nClose\n" };
        assert_seen(
            &format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n"),
            &format!("GET path=/ host=h {end}"),
        );
    }
}

//= rfc9112#9.3.2
#[test]
fn requests_in_one_piece_are_read_one_after_another() {
    assert_seen(
        "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
         POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n0\r\n\r\n\
         GET /4 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /5 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET path=/1 host=h keep\nPOST path=/2 host=h sized keep\nbody abc\n\
         POST path=/3 host=h chunked keep\nbody def\nGET path=/4 host=h last\nClose\n",
    );
}

//= rfc9112#2.2
#[test]
fn empty_lines_before_a_request_are_skipped_however_many() {
    assert_seen(
        "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET path=/ host=h keep\nGET path=/2 host=h keep\n",
    );
    let mut server = Server::new(HttpLimits::default());
    server.feed("\r\n".repeat(100_000).as_bytes());
    server.feed(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(server.seen, "GET path=/ host=h keep\n");
}

//= rfc9112#6.2
#[test]
fn a_sized_body_is_read_to_its_size() {
    assert_seen(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe\r\nlGET /2 HTTP/1.0\r\n\r\n",
        "POST path=/ host=h sized keep\nbody he\\r\\nl\nGET path=/2 host= last\nClose\n",
    );
    assert_seen(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        "POST path=/ host=h keep\n",
    );
    assert_seen(
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 005\r\n\r\nhello",
        "GET path=/ host=h sized keep\nbody hello\n",
    );
    assert_seen(
        "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello",
        "POST path=/ host= sized last\nbody hello\nClose\n",
    );
}

//= rfc9112#7.1
#[test]
fn a_chunked_body_is_read_with_its_trailers() {
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n";
    let saw = "POST path=/ host=h chunked keep\n";
    assert_seen(
        &format!("{head}5\r\nhello\r\n00B;x=\"y\"\r\n, good day\n\r\n0\r\n\r\n"),
        &format!("{saw}body hello, good day\\n\n"),
    );
    assert_seen(
        &format!("{head}1 ; a ;b\r\na\r\n1\t;c\r\nb\r\n000;d\r\nDigest: x\r\nX-Y:  z \r\n\r\n"),
        &format!("{saw}body ab\ntrailer Digest: x\ntrailer X-Y: z\n"),
    );
    assert_seen(&format!("{head}0\r\n\r\n"), saw);
    // The largest size that is read at all; its bytes never come.
    assert_seen(&format!("{head}7fffffffffffffff\r\na"), saw);
}

//= rfc9110#10.1.1
#[test]
fn an_expectation_counts_only_with_a_body_in_http_1_1() {
    let post = "Host: h\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\na";
    assert_seen(
        &format!("POST / HTTP/1.1\r\n{post}"),
        // The body came unasked, so the connection can be read on.
        "POST path=/ host=h sized continue keep\nbody a\n",
    );
    assert_seen(
        &format!("POST / HTTP/1.0\r\n{post}"),
        "POST path=/ host=h sized last\nbody a\nClose\n",
    );
    assert_seen(
        "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
        "GET path=/ host=h keep\n",
    );
}

#[test]
fn what_the_end_of_input_means_depends_on_what_was_read() {
    let eof_after = |input: &[u8]| {
        let mut core = Http1Connection::new(HttpLimits::default().into(), 0);
        let (used, _) = core.read(input, &mut RequestHead::empty(), 0);
        core.handle_eof(input.len() - used)
    };
    assert_eq!(eof_after(b""), Eof::Close);
    assert_eq!(eof_after(b"\r\n"), Eof::Close);
    let Eof::Refuse(refusal) = eof_after(b"GET / HT") else {
        panic!("a broken head is refused");
    };
    assert_eq!(refusal.status, 400);
    assert_eq!(eof_after(b"GET / HTTP/1.0\r\n\r\n"), Eof::HalfClosed);
    let broken = b"POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(eof_after(broken), Eof::BodyBroken);
}

#[test]
fn any_split_into_two_pieces_is_read_the_same() {
    let input = b"\r\nPOST /a?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
        4;x=y\r\nabcd\r\n0\r\nT: u\r\n\r\nGET http://t HTTP/1.1\r\nHost: t\r\n\r\n\
        PUT /c HTTP/1.1\r\nContent-Length: 3\r\nHost: h\r\n\r\nxyzGET /d HTTP/1.0\r\n\r\n";
    let whole = seen(input);
    assert_eq!(whole.lines().count(), 8, "{whole}");
    for at in 0..=input.len() {
        let mut server = Server::new(HttpLimits::default());
        server.feed(&input[..at]);
        server.feed(&input[at..]);
        assert_eq!(server.seen, whole, "split at {at}");
    }
}
