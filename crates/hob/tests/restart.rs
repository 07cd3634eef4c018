//! Who dies, and what happens then.

mod harness;

use std::time::{Duration, Instant};

use harness::client::{begin_download, get};
use harness::{BIG_BYTES, Place, send_signal, wait_for_end};
use rustix::process::Signal;

#[test]
fn killed_server_is_replaced_within_a_second() {
    let place = Place::new();
    let hob = place.serve_config("");
    let port = hob.port();
    // The best of three: another process may have held the machine.
    let fastest = (1..=3).map(|round| {
        let server = hob.server();
        send_signal(server, Signal::KILL);
        wait_for_end(server);
        let killed = Instant::now();
        assert_eq!(get(port, "/hello.txt").unwrap().text(), "hello\n");
        let took = killed.elapsed();
        hob.wait_for_count("server ready", round + 1);
        assert_ne!(hob.server(), server);
        took
    });
    assert!(fastest.min().unwrap() < Duration::from_secs(1));
    hob.wait_for("signal 9 (SIGKILL)");
    hob.stop();
}

#[test]
fn server_ends_when_its_keeper_is_killed() {
    let place = Place::new();
    let mut hob = place.serve_config("");
    let server = hob.server();
    hob.signal(Signal::KILL);
    assert_eq!(hob.exit_code(), None);
    wait_for_end(server);
}

#[test]
fn crash_loop_slows_down_and_never_gives_up() {
    let place = Place::new();
    let hob = place.serve_config("");
    for round in 1..=4 {
        hob.wait_for_count("server ready", round);
        send_signal(hob.server(), Signal::KILL);
        hob.wait_for_count("server ended", round);
    }
    let waits: Vec<String> = ["wait_ms=100", "wait_ms=200", "wait_ms=400"]
        .iter()
        .map(|wait| hob.wait_for(wait))
        .collect();
    assert_eq!(waits.len(), 3);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    hob.stop();
}

#[test]
fn server_told_to_end_is_replaced_while_it_finishes() {
    let place = Place::new();
    let hob = place.serve_config("");
    let port = hob.port();
    let (mut download, headers) = begin_download(port, "/big.bin");
    let old = hob.server();
    send_signal(old, Signal::TERM);
    hob.wait_for_count("server ready", 2);
    assert_eq!(get(port, "/hello.txt").unwrap().text(), "hello\n");
    assert_eq!(hob.servers().len(), 2, "the old one still sends");
    assert_eq!(download.read_body(&headers).unwrap().len(), BIG_BYTES);
    drop(download);
    wait_for_end(old);
    hob.stop();
}
