//! Where a request ends, and what is refused because two readers could see it differently.
#![allow(clippy::unwrap_used)]

mod harness;

use std::os::unix::fs::PermissionsExt;

use harness::client::{Connection, raw};
use harness::{BIG_BYTES, Place};

#[test]
fn what_could_be_read_in_two_ways_is_refused_and_the_connection_closed() {
    let place = Place::new();
    let hob = place.serve_config("");
    let after = "GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let cases = [
        ("GET /hello.txt HTTP/1.1\nHost: a\n\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: a\n\r\n", 400),
        ("GET  /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /hello.txt\r\nHost: a\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: a\r\n X: y\r\n\r\n", 400),
        (
            "GET /hello.txt HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
            400,
        ),
        ("GET /hello.txt HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1\r\nHost: a\r\n\r\n", 400),
        ("GET /hello.txt HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (
            "GET /hello.txt HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n",
            417,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            501,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
            501,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            501,
        ),
        ("GET / HTTP/1.1\r\nHost: [4712::abcd::]\r\n\r\n", 400),
    ];
    for (request, status) in cases {
        let answer = raw(hob.port(), format!("{request}{after}").as_bytes());
        let begin = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&begin), "{request:?}: {answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{request:?}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{request:?}");
    }
    let malformed = cases.iter().filter(|(_, status)| *status == 400).count() as u64;
    assert_eq!(place.counter("bad_request"), malformed);
    assert_eq!(place.counter("unsupported"), cases.len() as u64 - malformed);
    hob.stop();
}

#[test]
fn fifty_requests_in_one_go_are_answered_in_order() {
    let place = Place::new();
    let names: Vec<String> = (0..50).map(|number| format!("{number}.txt")).collect();
    for name in &names {
        place.write(&format!("site/{name}"), name);
    }
    let hob = place.serve_config("");
    let requests = names
        .iter()
        .map(|name| format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let mut connection = Connection::open(hob.port()).unwrap();
    let requests: String = requests.collect();
    connection.send(requests.as_bytes()).unwrap();
    connection.end_sending();
    for name in &names {
        let answer = connection.read().unwrap();
        assert_eq!((answer.status, &answer.text()), (200, name));
    }
    assert_eq!(connection.read_to_end(), b"");
    place.wait_for_counter("requests", 50);
    hob.stop();
}

#[test]
fn connect_is_refused_and_what_follows_is_not_taken_for_requests() {
    let place = Place::new();
    let hob = place.serve_config("");
    let answer = raw(
        hob.port(),
        b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\nGET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(
        answer.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"),
        "{answer}"
    );
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    hob.stop();
}

#[test]
fn bytes_that_come_one_by_one_make_the_same_request() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut connection = Connection::open(hob.port()).unwrap();
    for byte in b"\r\nGET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n" {
        connection.send(&[*byte]).unwrap();
    }
    assert_eq!(connection.read().unwrap().text(), "hello\n");
    hob.stop();
}

#[test]
fn client_that_ends_its_side_after_a_request_still_gets_all_of_its_answer() {
    let place = Place::new();
    let hob = place.serve_config("");
    for (path, length) in [("/hello.txt", 6), ("/big.bin", BIG_BYTES)] {
        let mut connection = Connection::open(hob.port()).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        connection.send(request.as_bytes()).unwrap();
        connection.end_sending();
        assert_eq!(connection.read_last("GET").body.len(), length);
    }
    place.wait_for_counter("responses_2xx", 2);
    assert_eq!(place.counter("client_left"), 0);
    hob.stop();
}

#[test]
fn client_that_ends_its_side_within_a_head_gets_400() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send(b"GET /hello.txt HTTP/1.1\r\nHost").unwrap();
    connection.end_sending();
    assert_eq!(connection.read_last("GET").status, 400);
    // Between requests it is simply the end.
    let connection = Connection::open(hob.port()).unwrap();
    connection.end_sending();
    let mut connection = connection;
    assert_eq!(connection.read_to_end(), b"");
    hob.stop();
}

#[test]
fn client_that_leaves_within_an_answer_is_counted() {
    let place = Place::new();
    let hob = place.serve_config("");
    let (connection, _) = harness::client::begin_download(hob.port(), "/big.bin");
    drop(connection);
    place.wait_for_counter("client_left", 1);
    hob.stop();
}

#[test]
fn h1_only_method_without_end_is_not_implemented_and_a_later_minor_version_is_read() {
    let place = Place::new();
    let hob = place.serve_config("");
    let answer = raw(hob.port(), "M".repeat(100_000).as_bytes());
    assert!(answer.starts_with("HTTP/1.1 501 "), "{answer}");
    let later = b"GET /hello.txt HTTP/1.2\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = raw(hob.port(), later);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello\n"), "{answer}");
    hob.stop();
}

/// What a server reads past as an extension, the next one may read as something else.
#[test]
fn h1_only_chunk_extensions_are_read_by_their_grammar() {
    let place = Place::new();
    place.folder("cgi");
    place.write(
        "cgi/echo",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nexec cat\n",
    );
    let executable = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/echo"), executable).unwrap();
    let route = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n";
    let hob = place.serve_config_with("", route);
    let head = "POST /cgi/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    for (size, status) in [
        ("5;a", 200),
        ("5 ; a = \"b;c\\\"\" ;d=e", 200),
        ("5;", 400),
        ("5;bad[=x", 400),
        ("5;a=\"b", 400),
        ("5 ", 400),
    ] {
        let request = format!("{head}{size}\r\nhello\r\n0\r\n\r\n");
        let answer = raw(hob.port(), request.as_bytes());
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{size}: {answer}");
    }
    hob.stop();
}
