//! Clients hold more connections than there are descriptors, come and go; others are answered.

use std::time::Instant;

use rustix::net::{AddressFamily, SocketType};

use crate::harness::client::Connection;
use crate::harness::{Hob, Place};
use crate::watch::{besieged, take_turn};

/// A request after which the connection stays, and whose answer needs no open file.
const KEPT: &[u8] = b"GET /kept HTTP/1.1\r\nHost: a\r\n\r\n";
/// Connections beyond those that there are descriptors for.
const BEYOND: usize = 60;
/// Tries of a thread to accept, in a second, while there are no descriptors.
const TRIES_PER_SECOND: u128 = 10;
/// Seconds between two lines of a thread that connections could not be accepted.
const QUIET_SECONDS: u128 = 10;

#[test]
fn out_of_descriptors_again_and_again_others_are_answered_and_nothing_spins() {
    let _turn = take_turn();
    let place = Place::new();
    let (hob, room) = place.serve_with_few_left();
    let more = 2 * room as usize + BEYOND;
    let (began, goes_on) = (Instant::now(), besieged());
    let (mut rounds, mut left) = (0, 0);
    while rounds < 4 || goes_on() {
        let open = hold_more_than_there_are(&hob, more);
        if rounds == 0 {
            hob.wait_for("could not be accepted");
        }
        left += open.len() as u128;
        leave(open, rounds % 2 == 0);
        // Another client, which comes last: everybody before it has left.
        for target in ["/kept", "/hello.txt"] {
            let answer = ask_from("127.0.0.2", hob.clear_port(), target);
            assert_eq!(answer, "hello\n", "round {rounds}");
        }
        rounds += 1;
    }
    // Each that leaves may have a thread try.
    let threads = std::thread::available_parallelism().unwrap().get() as u128;
    let tries = u128::from(place.counter("accept_errors"));
    let lasted = began.elapsed();
    let tenths = lasted.as_millis() * TRIES_PER_SECOND / 1000;
    let lines = hob.printed().matches("could not be accepted").count() as u128;
    println!("{rounds} rounds, {left} connections, {tries} tries in vain, {lines} lines");
    assert!(tries <= left + threads * (tenths + 3), "{tries}");
    assert!(
        lines <= threads * (1 + u128::from(lasted.as_secs()) / QUIET_SECONDS),
        "{lines}"
    );
    let printed = hob.stop_and_print();
    let warnings = printed.lines().filter(|line| line.contains(" WARN "));
    assert!(warnings.count() as u128 <= lines + 2, "{printed}");
}

fn hold_more_than_there_are(hob: &Hob, count: usize) -> Vec<Connection> {
    let connect = |_| {
        let mut connection = Connection::open(hob.clear_port()).unwrap();
        connection.send(KEPT).unwrap();
        connection
    };
    (0..count).map(connect).collect()
}

/// Each that leaves makes room for one that waits: they are answered one after the other, or leave
/// without a look at what came.
fn leave(open: Vec<Connection>, waits: bool) {
    for mut connection in open {
        match waits {
            true => assert_eq!(connection.read().unwrap().text(), "hello\n"),
            false => connection.leave(),
        }
    }
}

/// The body of an answer to a client of this address. While those who have left are not closed
/// yet, the server may be full.
fn ask_from(address: &str, port: u16, target: &str) -> String {
    loop {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let from: std::net::SocketAddr = format!("{address}:0").parse().unwrap();
        let to: std::net::SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
        rustix::net::bind(&socket, &from).unwrap();
        rustix::net::connect(&socket, &to).unwrap();
        let mut connection = Connection::of(socket);
        connection.send_get(target).unwrap();
        let answer = connection.read().unwrap();
        match answer.status {
            503 => assert!(answer.header("retry-after").is_some(), "{answer:?}"),
            status => {
                assert_eq!(status, 200, "{target}: {answer:?}");
                return answer.text();
            }
        }
    }
}
