//! Clients that leave, workers that die, hang or never start.

use rustix::process::Signal;

use crate::harness::client::Connection;
use crate::harness::{send_signal, wait_for_end};
use crate::place::serve;
use crate::site::Programs;

const ONE: &str = "workers = { max = 1 }";

#[test]
fn worker_whose_client_left_finishes_and_lives_on() {
    let site = serve("workers = { max = 1 }, grace = \"60s\"");
    let worker = site.worker();
    let client = site.begin("/app/hold/one", "one");
    drop(client);
    site.place.wait_for_counter("client_left", 1);
    site.go("one");
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn worker_that_goes_on_after_its_client_left_is_ended_after_the_grace() {
    let site = serve("workers = { max = 1 }, grace = \"100ms\"");
    let worker = site.worker();
    drop(site.begin("/app/sleeper_for_ever/one", "one"));
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    site.hob().wait_for("sleeper_for_ever");
    site.stop();
}

#[test]
fn worker_that_dies_before_a_head_gives_502() {
    let site = serve(ONE);
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
fn answer_breaks_off_visibly_when_its_worker_dies() {
    let site = serve(ONE);
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("GET", "/app/kill_midway/one", "");
    client.read_until("the first half\n");
    site.go("one");
    let rest = client.read_to_end();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    let (reason, _) = site.reason("/app/kill_midway/one");
    assert_eq!(reason, "the worker ended while it had the request");
    site.worker();
    site.stop();
}

#[test]
fn idle_worker_that_is_killed_is_replaced_without_a_failed_request() {
    let site = serve("workers = { min = 1, max = 1 }");
    for _ in 0..3 {
        let worker = site.worker();
        send_signal(worker, Signal::KILL);
        assert_ne!(site.worker(), worker);
    }
    site.stop();
}

#[test]
fn sleeper_is_answered_with_504_and_its_stack_is_logged() {
    let site =
        serve("workers = { max = 1 }, timeout = { first_byte = \"200ms\" }, grace = \"100ms\"");
    let worker = site.worker();
    assert_eq!(site.get("/app/sleeper_for_ever/one").answer.status, 504);
    let (reason, detail) = site.reason("/app/sleeper_for_ever/one");
    assert_eq!(
        reason,
        "limits: resident.timeout.first_byte: no head of an answer in time"
    );
    assert!(detail.contains("app:application"), "{detail}");
    site.hob().wait_for("in sleeper_for_ever");
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    assert_eq!(site.place.counter("limit_resident_first_byte"), 1);
    site.stop();
}

#[test]
fn perl_sleeper_says_where_it_was() {
    let site = Programs::new()
        .with_mode(
            "app.psgi",
            "sub sleeper_for_ever { sleep 3600 while 1 }\nsub { sleeper_for_ever() };\n",
            0o644,
        )
        .serve_route(
            "path = \"/app/*\"\nresident = { psgi = \"cgi/app.psgi\", grace = \"100ms\", \
             timeout = { first_byte = \"200ms\" } }\n",
        );
    assert_eq!(site.get("/app/x").answer.status, 504);
    site.hob().wait_for("sleeper_for_ever");
    site.stop();
}

#[test]
fn answer_that_falls_silent_breaks_off() {
    let site = serve("timeout = { progress = \"200ms\" }, grace = \"100ms\"");
    let reply = site.get("/app/fall_silent");
    assert!(!reply.is_whole);
    let (reason, _) = site.reason("/app/fall_silent");
    assert_eq!(
        reason,
        "limits: resident.timeout.progress: the answer fell silent"
    );
    assert_eq!(site.place.counter("limit_resident_progress"), 1);
    site.stop();
}

#[test]
fn program_that_ends_at_its_start_is_told_of_and_does_not_spin() {
    let site = Programs::new()
        .with_mode(
            "broken.py",
            "raise RuntimeError('no database here')\n",
            0o644,
        )
        .serve_route(
            "path = \"/app/*\"\nresident = { wsgi = \"broken:application\", dir = \"cgi\" }\n",
        );
    for _ in 0..30 {
        assert_eq!(site.get("/app/x").answer.status, 502);
    }
    let (reason, detail) = site.reason("/app/x");
    assert_eq!(reason, "the program ends before it is ready");
    assert!(
        detail.contains("RuntimeError: no database here"),
        "{detail}"
    );
    let started = site.place.counter("worker_starts");
    assert!(started < 30, "{started} starts");
    let failure = site.pool()["last_failure"].as_str().unwrap().to_owned();
    assert!(failure.contains("no database here"), "{failure}");
    site.stop();
}

#[test]
fn program_that_is_mended_is_started_again() {
    let site = Programs::new()
        .with_mode("app.py", "import missing_module\n", 0o644)
        .serve_route(
            "path = \"/app/*\"\nresident = { wsgi = \"app:application\", dir = \"cgi\" }\n",
        );
    assert_eq!(site.get("/app/pid").answer.status, 502);
    std::fs::write(site.path("app.py"), include_str!("app.py")).unwrap();
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    while site.get("/app/pid").answer.status != 200 {
        assert!(std::time::Instant::now() < until);
    }
    site.stop();
}
