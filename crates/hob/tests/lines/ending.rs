//! Clients that leave; workers that die, hang, close their output or say too much.

use std::time::Instant;

use rustix::process::Signal;

use crate::harness::client::Connection;
use crate::harness::{DEADLINE, send_signal, status_line, wait_for_end};
use crate::program::{serve, serve_one};
use crate::site::Programs;

#[test]
fn worker_whose_client_left_finishes_and_lives_on() {
    let site = serve("workers = { max = 1 }, grace = \"60s\"");
    let worker = site.worker();
    let client = site.begin("/app/hold/one", "one");
    client.leave();
    site.place.wait_for_counter("client_left", 1);
    site.go("one");
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn worker_that_goes_on_after_its_client_left_is_ended_after_the_grace() {
    let site = serve("workers = { max = 1 }, grace = \"100ms\"");
    let worker = site.worker();
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get("/app/endless").unwrap();
    client.read_until("xxxx");
    drop(client);
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    assert_eq!(site.place.counter("worker_terms"), 1);
    site.stop();
}

#[test]
fn worker_that_dies_before_a_head_gives_502() {
    let site = serve_one();
    let worker = site.worker();
    assert_eq!(site.get("/app/kill").answer.status, 502);
    let (reason, detail) = site.reason("/app/kill");
    assert_eq!(reason, "the worker ended while it had the request");
    assert!(detail.contains("signal 9"), "{detail}");
    assert_ne!(site.worker(), worker);
    assert_eq!(site.place.counter("worker_crashes"), 1);
    site.stop();
}

#[test]
fn answer_breaks_off_visibly_when_its_worker_dies_or_leaves() {
    let site = serve_one();
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("GET", "/app/kill_midway/one", "");
    client.read_until("the first half\n");
    site.go("one");
    let rest = client.read_to_end();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    for target in ["/app/kill_midway/one?again", "/app/leave_midway"] {
        assert!(site.get(target).is_broken(), "{target}");
        let (reason, _) = site.reason(target);
        assert_eq!(reason, "the worker ended while it had the request");
    }
    site.worker();
    site.stop();
}

#[test]
fn request_that_a_dying_worker_had_not_read_goes_to_another() {
    let site = serve("workers = { min = 1, max = 1 }");
    for _ in 0..3 {
        let worker = site.worker();
        send_signal(worker, Signal::STOP);
        // Before, it may still take what comes.
        let until = Instant::now() + DEADLINE;
        while !status_line(worker, "State").starts_with('T') {
            assert!(Instant::now() < until, "it goes on");
        }
        let mut client = Connection::open(site.port()).unwrap();
        client.send_ask("GET", "/app/pid", "");
        site.wait_for_pool("a request", |pool| {
            pool["workers"][0]["requests"][0]["request"] == "GET /app/pid"
        });
        send_signal(worker, Signal::KILL);
        let reply = client.read_reply();
        assert_eq!(reply.answer.status, 200, "{reply:?}");
        assert_ne!(reply.answer.text(), worker.to_string());
    }
    site.stop();
}

#[test]
fn program_that_answers_and_ends_has_answered() {
    let site = serve_one();
    let worker = site.worker().to_string();
    assert_eq!(site.text("/app/answer_and_leave"), worker);
    assert_ne!(site.worker().to_string(), worker);
    site.stop();
}

#[test]
fn sleeper_is_answered_with_504_and_ended() {
    let site = serve("workers = { max = 1 }, timeout = { first_byte = \"2s\" }, grace = \"100ms\"");
    let worker = site.worker();
    assert_eq!(site.get("/app/sleeper/one").answer.status, 504);
    let (reason, _) = site.reason("/app/sleeper/one");
    assert_eq!(
        reason,
        "limits: resident.timeout.first_byte: no head of an answer in time"
    );
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    assert_eq!(site.place.counter("limit_resident_first_byte"), 1);
    site.stop();
}

#[test]
fn answer_that_falls_silent_breaks_off() {
    let site = serve("timeout = { progress = \"200ms\" }, grace = \"100ms\"");
    assert!(!site.get("/app/fall_silent").is_whole);
    let (reason, _) = site.reason("/app/fall_silent");
    assert_eq!(
        reason,
        "limits: resident.timeout.progress: the answer fell silent"
    );
    site.stop();
}

#[test]
fn worker_that_closes_its_output_is_replaced() {
    let site = serve("workers = { max = 1 }, grace = \"100ms\"");
    let worker = site.worker();
    assert_eq!(site.get("/app/close_output").answer.status, 502);
    let (reason, detail) = site.reason("/app/close_output");
    assert_eq!(reason, "the worker ended while it had the request");
    assert!(detail.contains("its channel has ended"), "{detail}");
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    site.stop();
}

/// In the next answer it would reach somebody else.
#[test]
fn worker_that_writes_on_after_an_answer_is_ended() {
    let site = serve("workers = { max = 1 }, grace = \"100ms\"");
    let worker = site.worker();
    assert_eq!(site.text("/app/stray"), worker.to_string());
    wait_for_end(worker);
    let worker = site.worker();
    site.hob().wait_for("wrote on after the end of an answer");
    assert_eq!(site.text("/app/stray_later/one"), worker.to_string());
    site.go("one");
    wait_for_end(worker);
    site.hob()
        .wait_for("it wrote to standard output when it had no request: and more");
    assert_ne!(site.worker(), worker);
    site.stop();
}

#[test]
fn program_that_ends_at_its_start_is_told_of_and_does_not_spin() {
    let site = Programs::new()
        .with_sh("broken.sh", "echo no database here >&2\nexit 3\n")
        .serve_route(
            "path = \"/app/*\"\n\
             resident = { run = [\"cgi/broken.sh\"], carrier = \"lines\" }\n",
        );
    for _ in 0..30 {
        assert_eq!(site.get("/app/x").answer.status, 502);
    }
    let (reason, detail) = site.reason("/app/x");
    assert_eq!(reason, "the program ends before it is ready");
    assert!(detail.contains("exit code 3"), "{detail}");
    assert!(detail.contains("no database here"), "{detail}");
    let started = site.place.counter("worker_starts");
    assert!(started < 30, "{started} starts");
    site.stop();
}
