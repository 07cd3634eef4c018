//! Workers that are replaced, that go when idle, and that see the end of their input.

use std::collections::HashSet;

use rustix::process::Signal;

use crate::harness::wait_for_end;
use crate::pool::{wait_for_file, workers};
use crate::program::{serve, serve_one};

#[test]
fn workers_are_replaced_without_a_failed_request() {
    let site = serve("workers = { min = 1, max = 1, max_requests = 5 }");
    let mut seen = HashSet::new();
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    while seen.len() < 4 {
        assert!(std::time::Instant::now() < until, "no new worker");
        seen.insert(site.worker());
    }
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn worker_that_was_never_asked_is_known_by_its_process() {
    let site = serve_one();
    let pool = site.wait_for_pool("started", |pool| {
        let worker = &pool["workers"][0];
        worker["pid"].is_u64() && worker["state"] == "idle"
    });
    let worker = &pool["workers"][0];
    assert_eq!(worker["served"], 0);
    assert_eq!(u64::from(site.worker()), worker["pid"].as_u64().unwrap());
    site.stop();
}

#[test]
fn idle_worker_sees_the_end_of_its_input_and_goes() {
    let site = serve("workers = { min = 0, idle_timeout = \"100ms\" }");
    assert_eq!(workers(&site.pool()), 0);
    let worker = site.worker();
    site.wait_for_workers(0);
    wait_for_end(worker);
    wait_for_file(&site.path("input-has-ended"));
    assert_eq!(site.place.counter("worker_crashes"), 0);
    assert_eq!(site.place.counter("worker_terms"), 0);
    site.stop();
}

#[test]
fn request_under_way_is_answered_when_the_server_stops() {
    let site = serve_one();
    let mut client = site.begin("/app/hold/one", "one");
    site.hob().signal(Signal::TERM);
    site.hob().wait_for("stopping");
    site.go("one");
    let reply = client.read_reply();
    assert_eq!(reply.answer.status, 200);
    wait_for_end(reply.answer.text().parse().unwrap());
    wait_for_end(site.hob().pid());
}

#[test]
fn more_workers_are_started_while_they_help_and_each_has_one_request() {
    let site = serve("workers = { min = 3, max = 3 }");
    site.wait_for_workers(3);
    let names = ["one", "two", "three"];
    let mut clients = names.map(|name| site.begin(&format!("/app/hold/{name}"), name));
    for name in names {
        site.go(name);
    }
    let seen: HashSet<String> = clients
        .iter_mut()
        .map(|client| client.read_reply().answer.text())
        .collect();
    assert_eq!(seen.len(), 3);
    site.stop();
}
