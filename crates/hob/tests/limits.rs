//! Each limit of heads and connections set small: what its refusal looks like, and that its counter
//! moves. Those of bodies are in `bodies`.
#![allow(clippy::unwrap_used)]

mod harness;

use std::time::Instant;

use harness::client::{Connection, ask, get, raw};
use harness::{Hob, Place, text_of};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Signal;

/// Serves with these limits.
fn serve(place: &Place, limits: &str) -> Hob {
    place.serve_config(&format!("[limits]\n{limits}\n"))
}

/// The answer to raw bytes must be this refusal, with the connection closed after it.
fn assert_refused(port: u16, bytes: &[u8], status: &str) {
    let answer = raw(port, bytes);
    let begin = format!("HTTP/1.1 {status}\r\n");
    assert!(answer.starts_with(&begin), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

#[test]
fn target_longer_than_its_limit_gets_414() {
    let place = Place::new();
    let hob = serve(&place, "target = \"64B\"");
    let target = |length: usize| format!("/hello.txt?{}", "x".repeat(length - 11));
    assert_eq!(get(hob.port(), &target(64)).unwrap().status, 200);
    let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", target(65));
    assert_refused(hob.port(), request.as_bytes(), "414 URI Too Long");
    assert_eq!(place.counter("limit_target"), 1);
    hob.stop();
}

#[test]
fn head_longer_than_its_limit_gets_431() {
    let place = Place::new();
    let hob = serve(&place, "head = \"1KiB\"\ntarget = \"64B\"");
    let request = |length: usize| {
        let (begin, end) = ("GET /hello.txt HTTP/1.1\r\nHost: a\r\nX: ", "\r\n\r\n");
        format!(
            "{begin}{}{end}",
            "x".repeat(length - begin.len() - end.len())
        )
    };
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send(request(1024).as_bytes()).unwrap();
    assert_eq!(connection.read().unwrap().status, 200);
    let status = "431 Request Header Fields Too Large";
    assert_refused(hob.port(), request(1025).as_bytes(), status);
    // Also when its end never comes.
    assert_refused(hob.port(), &request(9000).as_bytes()[..8000], status);
    assert_eq!(place.counter("limit_head"), 2);
    hob.stop();
}

#[test]
fn more_header_fields_than_the_limit_get_431() {
    let place = Place::new();
    let hob = serve(&place, "headers = 5");
    let fields = "X: y\r\n".repeat(3);
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", &fields).status, 200);
    let fields = "X: y\r\n".repeat(5);
    let request = format!("GET /hello.txt HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let status = "431 Request Header Fields Too Large";
    assert_refused(hob.port(), request.as_bytes(), status);
    assert_eq!(place.counter("limit_headers"), 1);
    hob.stop();
}

#[test]
fn head_that_does_not_come_in_time_gets_408() {
    let place = Place::new();
    let hob = serve(&place, "head_time = \"500ms\"");
    assert_refused(
        hob.port(),
        b"GET /hello.txt HTTP/1.1\r\nHos",
        "408 Request Timeout",
    );
    assert_eq!(place.counter("limit_head_time"), 1);
    // Later heads of a connection have no more time than the first.
    let request = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /";
    let answers = raw(hob.port(), request);
    assert!(answers.starts_with("HTTP/1.1 200 OK\r\n"), "{answers}");
    assert!(answers.contains("hello\nHTTP/1.1 408 "), "{answers}");
    assert_eq!(place.counter("limit_head_time"), 2);
    hob.stop();
}

#[test]
fn new_connection_that_says_nothing_is_closed_without_an_answer() {
    let place = Place::new();
    let hob = serve(&place, "head_time = \"500ms\"");
    assert_eq!(raw(hob.port(), b""), "");
    assert_eq!(place.counter("limit_idle"), 1);
    hob.stop();
}

#[test]
fn announced_body_that_is_too_much_to_be_read_past_ends_the_connection() {
    let place = Place::new();
    let hob = serve(&place, "body = \"1KiB\"");
    let request = b"POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999\r\n\r\n";
    assert_refused(hob.port(), request, "413 Content Too Large");
    assert_eq!(place.counter("limit_body"), 1);
    hob.stop();
}

#[test]
fn client_that_waits_to_be_asked_for_its_body_is_answered_at_once() {
    let place = Place::new();
    let hob = serve(&place, "body = \"1KiB\"");
    for (length, status) in [(10, "405"), (2000, "413")] {
        let request = format!(
            "POST /hello.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        let answer = raw(hob.port(), request.as_bytes());
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
    hob.stop();
}

#[test]
fn body_of_unknown_size_that_nobody_reads_ends_the_connection() {
    let place = Place::new();
    let hob = serve(&place, "linger = \"200ms\"");
    let mut connection = Connection::open(hob.port()).unwrap();
    let head = "POST /hello.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.send(head.as_bytes()).unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
    // It never ends, but what is read past does; then sending fails.
    while connection.send(chunk.as_bytes()).is_ok() {}
    assert_eq!(place.counter("limit_linger"), 1);
    hob.stop();
}

#[test]
fn body_that_stops_coming_ends_the_connection() {
    let place = Place::new();
    let hob = serve(&place, "body_progress = \"200ms\"");
    let request = b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhal";
    let answer = raw(hob.port(), request);
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert_eq!(place.counter("limit_body_progress"), 1);
    hob.stop();
}

#[test]
fn idle_connection_is_closed() {
    let place = Place::new();
    let hob = serve(&place, "idle = \"200ms\"");
    let mut connection = Connection::open(hob.port()).unwrap();
    let request = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    connection.send(request).unwrap();
    assert_eq!(connection.read().unwrap().text(), "hello\n");
    assert_eq!(connection.read_to_end(), b"");
    assert_eq!(place.counter("limit_idle"), 1);
    hob.stop();
}

#[test]
fn lingering_close_has_an_end() {
    let place = Place::new();
    let hob = serve(&place, "linger = \"200ms\"");
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send(b"nonsense\r\n\r\n").unwrap();
    assert!(connection.read().is_ok());
    // Our side stays open: only the limit ends the connection.
    place.wait_for_counter("limit_linger", 1);
    hob.stop();
}

#[test]
fn connections_above_the_limit_get_503_and_the_time_to_come_back() {
    let place = Place::new();
    let hob = serve(&place, "connections = 2");
    let mut held: Vec<Connection> = (0..2)
        .map(|_| Connection::open(hob.port()).unwrap())
        .collect();
    for connection in &mut held {
        let request = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
        connection.send(request).unwrap();
        assert_eq!(connection.read().unwrap().status, 200);
    }
    let answer = get(hob.port(), "/hello.txt").unwrap();
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(answer.header("connection"), Some("close"));
    held.pop();
    // The place is free when the server has seen the FIN.
    while get(hob.port(), "/hello.txt").unwrap().status == 503 {}
    held.clear();
    hob.stop();
}

/// A connection from another address of the loopback network.
fn open_from(address: &str, port: u16) -> Connection {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let from: std::net::SocketAddr = format!("{address}:0").parse().unwrap();
    let to: std::net::SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    rustix::net::bind(&socket, &from).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    Connection::of(socket)
}

#[test]
fn connections_of_one_client_above_its_limit_get_503_and_others_go_on() {
    let place = Place::new();
    let hob = serve(&place, "connections_per_client = 1");
    let mut held = Connection::open(hob.port()).unwrap();
    let request = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    held.send(request).unwrap();
    assert_eq!(held.read().unwrap().status, 200);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 503);
    assert_eq!(place.counter("limit_connections_per_client"), 1);
    let mut other = open_from("127.0.0.2", hob.port());
    other.send_get("/hello.txt").unwrap();
    assert_eq!(other.read().unwrap().status, 200);
    drop(held);
    while get(hob.port(), "/hello.txt").unwrap().status == 503 {}
    hob.stop();
}

#[test]
fn a_full_server_still_answers_its_operator() {
    let place = Place::new();
    let hob = serve(&place, "connections = 1");
    let mut held = Connection::open(hob.port()).unwrap();
    let request = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    held.send(request).unwrap();
    assert_eq!(held.read().unwrap().status, 200);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 503);
    assert_eq!(place.run(&["status"]).status.code(), Some(0));
    assert_eq!(place.counter("limit_connections"), 1);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 503);
    drop(held);
    hob.stop();
}

/// A request after which the connection stays, and whose answer needs no open file.
const KEPT: &[u8] = b"GET /kept HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn h1_only_connections_are_as_many_as_open_files_allow_and_the_rest_is_told() {
    let place = Place::new();
    let hob = place.serve_with_open_files(200);
    hob.wait_for("limits.connections: 100 connections may be open, not 10000");
    let warned = text_of(&place.run(&["status"]));
    assert!(warned.contains("100 connections may be open"), "{warned}");
    let mut open: Vec<_> = (0..100)
        .map(|_| Connection::open(hob.port()).unwrap())
        .collect();
    for connection in &mut open {
        connection.send(KEPT).unwrap();
        assert_eq!(connection.read().unwrap().text(), "hello\n");
    }
    let answer = raw(hob.port(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(place.counter("accept_errors"), 0);
    drop(open);
    hob.stop();
}

#[test]
fn h1_only_out_of_descriptors_connections_wait_and_nothing_spins() {
    let place = Place::new();
    let (hob, room) = place.serve_with_few_left();
    let began = Instant::now();
    let mut open = Vec::new();
    for _ in 0..room + 20 {
        let mut connection = Connection::open(hob.port()).unwrap();
        connection.send(KEPT).unwrap();
        open.push(connection);
    }
    hob.wait_for("could not be accepted");
    // Something else that takes a while.
    for _ in 0..3 {
        let checked = place.run(&["check", "--no-machine", "--config", "hob.toml"]);
        assert!(checked.status.success());
    }
    // Each that leaves makes room for one that waits, and may have a thread try.
    let left = open.len() as u128;
    for mut connection in open {
        assert_eq!(connection.read().unwrap().text(), "hello\n");
    }
    // Each thread tried ten times a second, and the log was told once in ten.
    let threads = std::thread::available_parallelism().unwrap().get() as u128;
    let tries = u128::from(place.counter("accept_errors"));
    let lasted = began.elapsed();
    assert!(
        tries <= left + threads * (lasted.as_millis() / 100 + 3),
        "{tries} in {lasted:?}"
    );
    let told = hob.printed().matches("could not be accepted").count() as u128;
    assert!(
        told <= threads * (1 + u128::from(lasted.as_secs()) / 10),
        "{told}"
    );
    hob.stop();
}

#[test]
fn h1_only_out_of_descriptors_a_reload_waits_and_the_server_goes_on() {
    let place = Place::new();
    let (hob, room) = place.serve_with_few_left();
    let server = hob.server();
    let mut open = Vec::new();
    for _ in 0..room + 20 {
        let mut connection = Connection::open(hob.port()).unwrap();
        connection.send(KEPT).unwrap();
        open.push(connection);
    }
    hob.wait_for("could not be accepted");
    // The config comes with descriptors.
    hob.signal(Signal::HUP);
    hob.wait_for("out of descriptors, a message of the keeper waits");
    for mut connection in open {
        assert_eq!(connection.read().unwrap().text(), "hello\n");
    }
    hob.wait_for("reloaded, generation 2");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
    assert_eq!(hob.server(), server);
    hob.stop();
}
