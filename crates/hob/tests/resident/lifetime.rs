//! Workers that are replaced, kept over a reload, and drained at the end.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Instant;

use rustix::process::Signal;

use crate::harness::client::call;
use crate::harness::{DEADLINE, wait_for_end};
use crate::place::{application, route, serve};

#[test]
fn workers_are_replaced_under_load_without_a_failed_request() {
    let site = serve("workers = { min = 2, max = 2, max_requests = 25 }");
    let seen = Mutex::new(HashSet::new());
    let until = Instant::now() + DEADLINE;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while seen.lock().unwrap().len() < 8 {
                    assert!(Instant::now() < until, "no new worker");
                    let reply = call(site.port(), "GET", "/app/pid", "", b"");
                    assert_eq!(reply.answer.status, 200, "{reply:?}");
                    seen.lock().unwrap().insert(reply.answer.text());
                }
            });
        }
    });
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn reload_keeps_workers_whose_section_did_not_change() {
    let site = application();
    let config = |keys: &str, other: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n{other}\n\
             [[site.route]]\n{}",
            route(keys)
        )
    };
    let hob = site.place.serve_text(&config("", ""));
    let worker = || -> u32 {
        let reply = call(hob.port(), "GET", "/app/pid", "", b"");
        assert_eq!(reply.answer.status, 200, "{reply:?}");
        reply.answer.text().parse().unwrap()
    };
    let before = worker();
    site.reload(&config(
        "",
        "[[site.route]]\npath = \"/x\"\nrespond = { body = \"x\" }",
    ));
    assert_eq!(worker(), before);
    site.reload(&config("grace = \"1s\"", ""));
    assert_ne!(worker(), before);
    wait_for_end(before);
    hob.stop();
}

#[test]
fn request_under_way_is_answered_when_the_server_stops() {
    let site = serve("");
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
fn workers_end_with_their_server() {
    let site = serve("workers = { min = 2 }");
    site.wait_for_workers(2);
    let pool = site.wait_for_pool("started", |pool| {
        let workers = pool["workers"].as_array().unwrap();
        workers.iter().all(|worker| worker["state"] == "idle")
    });
    let workers = pool["workers"].as_array().unwrap().clone();
    site.stop();
    for worker in workers {
        wait_for_end(worker["pid"].as_u64().unwrap() as u32);
    }
}
