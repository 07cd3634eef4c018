//! Protocols in which an answer ends with its connection: SCGI and that of uWSGI.

use std::io::{Read, Write};

use crate::harness::Place;
use crate::harness::client::{call, exchange};
use crate::harness::over::Protocol;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, sends};
use crate::site::serve_members;
use crate::wire::{KEY, variables};

fn serve(acts: Vec<Act>, keys: &str) -> (Site, Peer) {
    let place = Place::new();
    let peer = Peer::start(&place, acts);
    (serve_members(place, &["peer.sock"], keys), peer)
}

#[test]
fn answer_is_whole_however_it_comes() {
    let heads = [
        "Content-Type: text/plain\r\n\r\n",
        "Status: 200 Well\nContent-Type: text/plain\n\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n",
        "HTTP/1.0 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n",
    ];
    let mut acts = Vec::new();
    for head in heads {
        let body = match head.contains("chunked") {
            true => "4\r\nbody\r\n0\r\n\r\n",
            false => "body",
        };
        for step in [1, 3, 1000] {
            let bytes = format!("{head}{body}").into_bytes();
            let act: Act = Box::new(move |stream| {
                for piece in bytes.chunks(step) {
                    stream.write_all(piece).unwrap();
                }
            });
            acts.push(act);
        }
    }
    let count = acts.len();
    let (site, peer) = serve(acts, "");
    for at in 0..count {
        let told = site.get(&format!("/app/{at}"));
        let told_type = told.answer.header("content-type");
        assert_eq!(
            (told.answer.status, told_type, told.answer.text().as_str()),
            (200, Some("text/plain"), "body"),
            "{at}"
        );
        assert_eq!(site.record(&format!("/app/{at}"))["fault"], "none");
    }
    peer.join();
    site.stop();
}

#[test]
fn status_is_that_of_the_first_line_or_of_its_field() {
    let acts = [
        "HTTP/1.1 404 Not Found\r\n\r\nnone",
        "Status: 404\r\n\r\nnone",
        "HTTP/1.1 200 OK\r\nStatus: 404 Not Found\r\n\r\nnone",
    ];
    let acts: Vec<_> = acts.map(|text| sends(text.into())).into();
    let count = acts.len();
    let (site, peer) = serve(acts, "");
    for _ in 0..count {
        let told = site.get("/app/").answer;
        assert_eq!((told.status, told.text().as_str()), (404, "none"));
    }
    peer.join();
    site.stop();
}

#[test]
fn long_answer_without_a_length_streams_and_ends_with_the_connection() {
    let body = "0123456789".repeat(300_000);
    let text = format!("Content-Type: text/plain\r\n\r\n{body}");
    let (site, peer) = serve(vec![sends(text.into())], "");
    let told = site.get("/app/");
    assert!(told.is_whole && told.is_chunked);
    assert!(told.answer.text() == body);
    peer.join();
    site.stop();
}

/// Answers with what came of the body, of which so much was announced.
fn echoes() -> Act {
    Box::new(|stream| {
        let mut body = [0; 11];
        stream.read_exact(&mut body).unwrap();
        stream
            .write_all(b"Content-Type: text/plain\r\n\r\n")
            .unwrap();
        stream.write_all(&body).unwrap();
    })
}

#[test]
fn length_of_a_body_is_told_also_where_it_comes_in_chunks() {
    let (site, peer) = serve(
        vec![echoes(), echoes(), sends(b"Status: 200\n\n".to_vec())],
        "",
    );
    let told = call(site.port(), "POST", "/app/", "", b"hello world");
    assert_eq!(told.answer.text(), "hello world");
    let chunks = b"POST /app/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                   Connection: close\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    assert_eq!(exchange(site.port(), chunks).answer.text(), "hello world");
    assert_eq!(site.get("/app/").answer.status, 200);
    let asked = peer.join();
    let lengths = asked.iter().map(|one| {
        let all = variables(one);
        let length = all.iter().find(|(name, _)| name == "CONTENT_LENGTH");
        length.map(|(_, length)| length.clone())
    });
    let lengths: Vec<_> = lengths.map(Option::unwrap_or_default).collect();
    assert_eq!(lengths[..2], ["11", "11"]);
    // Without a body, who needs a length is told that it is 0.
    assert_eq!(lengths[2], if KEY == "scgi" { "0" } else { "" });
    site.stop();
}

#[test]
fn program_is_told_where_it_stands_and_nothing_twice() {
    let (site, peer) = serve(
        vec![sends(b"Status: 200\n\n".to_vec())],
        "env = { SERVER_NAME = \"fixed\", APP_ENV = \"test\" }, pass_authorization = true",
    );
    let fields = "X-Own: own\r\nAuthorization: Basic c2VjcmV0\r\nProxy: x\r\n";
    let told = call(site.port(), "GET", "/app/a%20b/c?d=e", fields, b"");
    assert_eq!(told.answer.status, 200);
    let all = variables(&peer.join()[0]);
    let is = |name: &str| {
        let values: Vec<_> = all.iter().filter(|(known, _)| known == name).collect();
        assert!(values.len() <= 1, "{values:?}");
        values.first().map_or("-", |(_, value)| value)
    };
    for (name, value) in [
        ("SCRIPT_NAME", "/app"),
        ("PATH_INFO", "/a b/c"),
        ("QUERY_STRING", "d=e"),
        ("REQUEST_URI", "/app/a%20b/c?d=e"),
        ("REQUEST_METHOD", "GET"),
        ("SERVER_NAME", "fixed"),
        ("APP_ENV", "test"),
        ("HTTP_X_OWN", "own"),
        ("HTTP_AUTHORIZATION", "Basic c2VjcmV0"),
        ("HTTP_PROXY", "-"),
        ("SCGI", if KEY == "scgi" { "1" } else { "-" }),
    ] {
        assert_eq!(is(name), value, "{name}");
    }
    if KEY == "scgi" {
        let first: Vec<_> = all.iter().take(2).map(|(name, _)| name.as_str()).collect();
        assert_eq!(first, ["CONTENT_LENGTH", "SCGI"]);
    }
    site.stop();
}

#[test]
fn method_that_no_program_is_asked_for_is_refused() {
    let site = serve_members(Place::new(), &["none.sock"], "");
    let told = call(site.port(), "TRACE", "/app/", "", b"").answer;
    assert_eq!(told.status, 405);
    let told = site
        .place
        .run(&["explain", "--config", "hob.toml", "GET", "/app/x"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains(KEY) && told.contains("none.sock"), "{told}");
    site.stop();
}

#[test]
fn who_is_not_there_is_a_502_that_says_so() {
    let site = serve_members(Place::new(), &["none.sock"], "");
    assert_eq!(site.get("/app/x").answer.status, 502);
    let record = site.record("/app/x");
    assert_eq!(
        (&record["handler"], &record["reason"]),
        (&KEY.into(), &"the program cannot be reached".into())
    );
    site.stop();
}

#[test]
fn long_body_goes_by_a_pipe_where_it_comes_in_clear_text_over_http1() {
    let body: Vec<u8> = (0..3_000_000).map(|at| (at / 7 + at % 251) as u8).collect();
    let (len, (tell, told)) = (body.len(), std::sync::mpsc::channel());
    let act: Act = Box::new(move |stream| {
        let mut came = vec![0; len];
        stream.read_exact(&mut came).unwrap();
        tell.send(came).unwrap();
        stream
            .write_all(b"Content-Type: text/plain\r\n\r\ntaken")
            .unwrap();
    });
    let (site, peer) = serve(vec![act], "");
    let reply = call(site.port(), "POST", "/app/", "", &body);
    assert_eq!(reply.answer.text(), "taken");
    assert!(told.recv().unwrap() == body);
    let is_clear = matches!(Protocol::tested(), Protocol::H1 | Protocol::Proxy);
    assert_eq!(site.place.counter("spliced_requests"), u64::from(is_clear));
    peer.join();
    site.stop();
}
