//! What clients of HTTP/1.1 ask of members that speak HTTP/2: fields of a connection, and tunnels
//! (RFC 8441).

use std::os::fd::AsFd;

use crate::harness::client::{Connection, call};
use crate::http2::serve;
use crate::http2_member::{Allows, Http2Member};

const ASK: &str = "GET /app/echo HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                   Sec-WebSocket-Version: 13\r\n\r\n";

#[test]
fn requests_are_told_as_they_were_asked() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "");
    let fields = "X-Mine: 1\r\nCookie: a=b; c=d\r\nTE: trailers, deflate\r\nKeep-Alive: 1\r\n\
                  Authorization: Basic x\r\n";
    let reply = call(site.port(), "GET", "/app/told?q=%20", fields, b"");
    let (answer, told) = (&reply.answer, reply.answer.text());
    assert_eq!(
        (answer.status, answer.header("x-member")),
        (200, Some("h2"))
    );
    for part in [
        "http://localhost/app/told?q=%20",
        "\"x-mine\": \"1\"",
        "\"cookie\": \"a=b; c=d\"",
        "\"te\": \"trailers\"",
        "\"authorization\"",
        "\"x-forwarded-for\": \"127.0.0.1\"",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    for part in ["keep-alive", "\"connection\"", "\"host\"", "deflate"] {
        assert!(!told.contains(part), "{part}: {told}");
    }
    assert_eq!(site.get("/app/empty").answer.status, 204);
    let reply = call(site.port(), "HEAD", "/app/told", "", b"");
    assert_eq!((reply.answer.status, reply.answer.body.len()), (200, 0));
    assert_eq!(member.connections(), 1);
    site.stop();
}

#[test]
fn raw_bytes_flow_both_ways() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send(ASK.as_bytes()).unwrap();
    let (status, fields) = client.read_head().unwrap();
    assert_eq!(status, 101);
    let accept = ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let has = |name: &str, value: &str| fields.iter().any(|one| one.0 == name && one.1 == value);
    assert!(has(accept.0, accept.1), "{fields:?}");
    assert!(has("upgrade", "websocket"), "{fields:?}");
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut sending = Connection::of(client.as_fd().try_clone_to_owned().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sending.send(&bytes).unwrap();
            sending.end_sending();
        });
        assert!(client.read_to_end() == bytes);
    });
    assert_eq!(member.requests(), ["CONNECT /app/echo"]);
    site.stop();
}

#[test]
fn member_that_allows_none_is_told_so() {
    let member = Http2Member::start(Allows {
        connect: false,
        ..Allows::default()
    });
    let site = serve(&member, "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send(ASK.as_bytes()).unwrap();
    assert_eq!(client.read_head().unwrap().0, 502);
    let detail = site.record("/app/echo")["detail"].to_string();
    assert!(detail.contains("takes no tunnels"), "{detail}");
    assert!(member.requests().is_empty());
    site.stop();
}

#[test]
fn trailers_pass_but_for_those_that_a_client_may_not_say() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "headers = { X-Set = \"\" }");
    let mut client = Connection::open(site.port()).unwrap();
    let ask = "POST /app/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\
               Connection: close\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\nX-Set: 1\r\n\
               X-Forwarded-For: 192.0.2.1\r\nX_Forwarded_Proto: https\r\nKeep-Alive: 1\r\n\r\n";
    client.send(ask.as_bytes()).unwrap();
    let (status, _) = client.read_head().unwrap();
    let body = String::from_utf8(client.read_to_end()).unwrap();
    assert_eq!(status, 200);
    assert_eq!(body, "5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n");
    site.stop();
}

#[test]
fn trailers_of_a_request_that_is_waited_for_come_behind_it() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "buffer = { request = \"1MiB\" }");
    for bytes in [5, 200_000] {
        let mut client = Connection::open(site.port()).unwrap();
        let head = "POST /app/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\
                    TE: trailers\r\nConnection: close, TE\r\n\r\n";
        client.send(head.as_bytes()).unwrap();
        client.send(format!("{bytes:x}\r\n").as_bytes()).unwrap();
        client.send(&vec![b'y'; bytes]).unwrap();
        client.send(b"\r\n0\r\nX-End: yes\r\n\r\n").unwrap();
        let all = String::from_utf8(client.read_to_end()).unwrap();
        assert!(
            all.to_lowercase().ends_with("0\r\nx-end: yes\r\n\r\n"),
            "{all}"
        );
        assert!(all.matches('y').count() >= bytes, "{bytes}");
    }
    site.stop();
}
