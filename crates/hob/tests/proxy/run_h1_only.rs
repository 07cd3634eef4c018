//! A server that hob starts itself, which takes connections from its standard input.

use std::time::Instant;

use rustix::process::Signal;

use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place, send_signal, wait_for_end};

/// The server of the welcome example.
const TABLE: &str = include_str!("../../../../examples/welcome/table/serve.py");

/// A server that tells its number, and what it was asked for.
const PROGRAM: &str = "#!/usr/bin/python3
import os, socket
listener = socket.socket(fileno=0)
while True:
    connection, _ = listener.accept()
    asked = connection.makefile('rb')
    head = b''
    while (line := asked.readline()) not in (b'\\r\\n', b''):
        head += line
    if head:
        body = b'%d %s %s' % (os.getpid(), os.environb[b'OWN'], head)
        fields = b'Connection: close\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body)
        connection.sendall(b'HTTP/1.1 200 OK\\r\\n' + fields + body)
    asked.close()
    connection.close()
";

fn serve(keys: &str) -> Site {
    let place = Place::new();
    place.script("bin/app", PROGRAM);
    let handler = format!("proxy = {{ run = \"bin/app\", env = {{ OWN = \"yes\" }}{keys} }}");
    Site::serve(place, "", &handler, "")
}

/// The process that answers.
fn pid(site: &Site) -> u32 {
    let answer = site.get("/app/x?y").answer;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let (pid, rest) = text.split_once(' ').unwrap();
    assert!(
        rest.starts_with("yes GET /app/x?y HTTP/1.1\r\nHost: "),
        "{rest}"
    );
    pid.parse().unwrap()
}

#[test]
fn server_is_started_and_started_again() {
    let site = serve("");
    let first = pid(&site);
    assert_eq!(pid(&site), first);
    let status = site.place.status();
    let run = &status["programs"]["upstreams"][0]["members"][0]["run"];
    assert_eq!(run["pids"], serde_json::json!([first]), "{run}");
    send_signal(first, Signal::KILL);
    wait_for_end(first);
    assert_ne!(pid(&site), first);
    site.stop();
}

#[test]
fn each_of_several_takes_connections() {
    let site = serve(", children = 2");
    let until = Instant::now() + DEADLINE;
    let first = pid(&site);
    while pid(&site) == first {
        assert!(Instant::now() < until, "one takes them all");
    }
    site.stop();
}

#[test]
fn server_that_does_not_start_is_a_502_with_what_it_said() {
    let place = Place::new();
    place.script("bin/app", "#!/bin/sh\necho no cups >&2\nexit 3\n");
    let site = Site::serve(place, "", "proxy = { run = \"bin/app\" }", "");
    assert_eq!(site.get("/app/x").answer.status, 502);
    let record = site.record("/app/x");
    assert_eq!(record["reason"], "the program does not start");
    assert_eq!(record["fault"], "script");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("no cups"), "{detail}");
    site.stop();
}

#[test]
fn websockets_go_through_to_it() {
    let place = Place::new();
    place.script("table/serve.py", TABLE);
    place.write("table/table.html", "the page\n");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\n\
                path = \"/table/*\"\nproxy = { run = \"table/serve.py\" }\n";
    let hob = place.serve_text(text);
    let sit_down = |others: usize| {
        let mut guest = Connection::open(hob.port()).unwrap();
        let head = "GET /table/talk HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n\
                    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        guest.send(head.as_bytes()).unwrap();
        assert_eq!(guest.read_head().unwrap().0, 101);
        guest.read_until(&format!("Others here: {others}."));
        guest
    };
    let (mut first, mut second) = (sit_down(0), sit_down(1));
    // A text of three letters, under a mask of zeros; both have it.
    first.send(b"\x81\x83\0\0\0\0tea").unwrap();
    for guest in [&mut first, &mut second] {
        guest.read_until("\u{3}tea");
    }
    for guest in [first, second] {
        guest.leave();
    }
    hob.stop();
}
