//! Another carrier, and workers that come and go under load.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::harness::client::call;
use crate::harness::{DEADLINE, wait_for_end};
use crate::place::{program, route, serve};

#[test]
fn carrier_is_shared_memory_unless_one_side_wants_the_stream() {
    let keys = [
        ("", "shm"),
        ("carrier = \"shm\"", "shm"),
        ("carrier = \"stream\"", "stream"),
        ("env = { HOB_CARRIER = \"stream\" }", "stream"),
    ];
    for (keys, carrier) in keys {
        let site = serve(keys);
        assert_eq!(site.text("/app/carrier"), carrier, "{keys}");
        let body: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
        assert!(
            site.get("/app/blocks?1048576").answer.body == body,
            "{keys}"
        );
        let reply = call(site.port(), "POST", "/app/echo", "", &body);
        assert!(reply.answer.body == body, "{keys}");
        let wakes = site.place.counter("worker_wakes") > 0;
        assert_eq!(wakes, carrier == "shm", "{keys}");
        site.stop();
    }
}

#[test]
fn workers_are_replaced_under_load_without_a_failed_request() {
    let site = serve("workers = { min = 2, max = 2, max_requests = 50 }");
    let seen = Mutex::new(HashSet::new());
    let until = std::time::Instant::now() + DEADLINE;
    site.under_load(6, || {
        while seen.lock().unwrap().len() < 12 {
            assert!(std::time::Instant::now() < until, "no new worker");
            seen.lock().unwrap().insert(site.worker());
        }
    });
    assert_eq!(site.place.counter("worker_crashes"), 0);
    assert!(site.place.counter("limit_resident_requests") >= 10);
    site.stop();
}

#[test]
fn reload_changes_the_workers_under_load_without_a_failed_request() {
    let site = program();
    let config = |keys: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n[[site.route]]\n{}",
            route(keys)
        )
    };
    let mut site = site;
    site.serve_whole(&config(""));
    let mut workers = vec![site.worker()];
    site.under_load(6, || {
        for round in 1..=4 {
            site.reload(&config(&format!("grace = \"{round}s\"")));
            let worker = site.worker();
            assert!(!workers.contains(&worker), "{worker} in {workers:?}");
            workers.push(worker);
        }
    });
    workers.pop();
    workers.into_iter().for_each(wait_for_end);
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn requests_under_way_are_answered_when_the_server_stops() {
    let site = serve("env = { THREADS = \"2\" }, workers = { max = 1, concurrency = 2 }");
    let mut held = ["one", "two"].map(|name| site.hold(name));
    site.hob().signal(rustix::process::Signal::TERM);
    site.hob().wait_for("stopping");
    site.go("one");
    site.go("two");
    let workers: HashSet<u32> = held
        .iter_mut()
        .map(|client| client.read_reply().answer.text().parse().unwrap())
        .collect();
    workers.into_iter().for_each(wait_for_end);
    wait_for_end(site.hob().pid());
}
