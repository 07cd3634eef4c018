//! Workers that die, lie, fork, and close what they should not: only their own requests suffer.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::process::Signal;

use crate::harness::client::{begin_download, call};
use crate::harness::{DEADLINE, send_signal, wait_for_end};
use crate::place::serve;
use crate::pool::{until, wait_for_file};
use crate::ring::SHORT;

/// Requests that end their workers come amid short ones, until some of those had been handed over
/// behind one: another worker answers them.
#[test]
fn only_the_request_that_was_started_is_lost_with_its_worker() {
    let site = serve("workers = { min = 2, max = 2 }, queue = { wait = \"60s\" }");
    let limit = Instant::now() + DEADLINE;
    let (deaths, answered) = site.under_load_of(SHORT, 24, || {
        let mut deaths = 0;
        while site.place.counter("worker_handbacks") == 0 || deaths < 5 {
            assert!(Instant::now() < limit, "none in {deaths} deaths");
            let reply = site.get("/app/die");
            assert_eq!((reply.answer.status, reply.is_whole), (502, true));
            deaths += 1;
        }
        deaths
    });
    println!("{deaths} deaths amid {answered} short requests");
    assert_eq!(site.place.counter("worker_crashes"), deaths);
    let (reason, detail) = site.reason("/app/die");
    assert_eq!(reason, "the worker ended while it had the request");
    assert!(detail.contains("signal 9"), "{detail}");
    site.stop();
}

/// The same with a kill from outside, whatever the worker is doing: no request is lost that it had
/// not started, and it has one at a time.
#[test]
fn worker_that_is_killed_loses_one_request_at_most() {
    let site = serve("workers = { min = 2, max = 2 }, queue = { wait = \"60s\" }");
    let (port, is_over) = (site.port(), AtomicBool::new(false));
    let seen = Mutex::new(BTreeMap::<u16, u64>::new());
    let kills = std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let reply = call(port, "GET", "/app/pid", "", b"");
                    assert!(reply.is_whole);
                    *seen.lock().unwrap().entry(reply.answer.status).or_default() += 1;
                }
            });
        }
        let kills = 10;
        let mut last = 0;
        for _ in 0..kills {
            until("another worker answers", || {
                let reply = call(port, "GET", "/app/pid", "", b"");
                let Ok(pid) = reply.answer.text().parse() else {
                    return false;
                };
                let is_new = pid != last;
                last = pid;
                is_new
            });
            send_signal(last, Signal::KILL);
            wait_for_end(last);
        }
        is_over.store(true, Ordering::Relaxed);
        kills
    });
    let seen = seen.into_inner().unwrap();
    println!("{kills} kills; answers: {seen:?}");
    let lost: u64 = seen
        .iter()
        .filter(|one| *one.0 != 200)
        .map(|one| one.1)
        .sum();
    assert!(lost <= kills, "{seen:?}");
    assert!(seen.keys().all(|status| [200, 502].contains(status)));
    site.stop();
}

#[test]
fn worker_that_lies_is_replaced_and_nobody_else_suffers() {
    let site = serve(
        "workers = { min = 2, max = 2 }, grace = \"100ms\", \
         timeout = { first_byte = \"3s\" }, queue = { wait = \"60s\" }",
    );
    for (number, lie) in ["position", "far", "kind", "length", "chunk", "noise"]
        .into_iter()
        .enumerate()
    {
        // The other worker has a request all this while.
        let mut other = begin_at_other(&site, lie);
        let target = format!("/app/lie?{lie}");
        let reply = site.get(&target);
        assert_eq!((reply.answer.status, reply.is_whole), (502, true), "{lie}");
        let (reason, detail) = site.reason(&target);
        assert_eq!(reason, "the worker broke the protocol", "{lie}: {detail}");
        site.go(lie);
        assert_eq!(other.read_reply().answer.status, 200, "{lie}");
        site.place
            .wait_for_counter("worker_crashes", number as u64 + 1);
        site.wait_for_pool("both are there", |pool| {
            let workers = pool["workers"].as_array().unwrap();
            workers.len() == 2 && workers.iter().all(|one| one["state"] == "idle")
        });
        site.worker();
    }
    site.stop();
}

fn begin_at_other(site: &crate::site::Programs, name: &str) -> crate::harness::client::Connection {
    site.wait_for_pool("one is there", |pool| {
        let workers = pool["workers"].as_array().unwrap();
        workers.iter().any(|one| one["state"] == "idle")
    });
    site.hold(name)
}

/// With requests at hand on other threads of the same process, which is not to be trusted any more:
/// all of that process's are answered with 502, and none hangs.
#[test]
fn all_requests_of_a_lying_process_end() {
    let site = serve(
        "env = { THREADS = \"3\" }, workers = { max = 1, concurrency = 3 }, grace = \"100ms\", \
         timeout = { first_byte = \"0s\" }",
    );
    let mut held = ["one", "two"].map(|name| site.hold(name));
    assert_eq!(site.get("/app/lie?position").answer.status, 502);
    for client in &mut held {
        assert_eq!(client.read_reply().answer.status, 502);
    }
    site.worker();
    site.stop();
}

#[test]
fn child_of_a_worker_does_not_keep_its_requests() {
    let site = serve("workers = { max = 1 }");
    let worker = site.worker();
    let child: u32 = site.text("/app/fork").parse().unwrap();
    assert_eq!(site.worker(), worker);
    // What the child would inherit does not hide its parent's end.
    assert_eq!(site.get("/app/die").answer.status, 502);
    assert_ne!(site.worker(), worker);
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_raw(child as i32).unwrap(),
        Signal::KILL,
    );
    wait_for_end(child);
    site.stop();
}

#[test]
fn worker_that_closes_its_socket_is_replaced() {
    let site = serve("workers = { max = 1 }, grace = \"100ms\", queue = { wait = \"60s\" }");
    let worker = site.worker();
    let reply = site.get("/app/close");
    assert_eq!((reply.answer.status, reply.is_whole), (502, true));
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    assert_eq!(site.place.counter("worker_crashes"), 1);
    site.stop();
}

#[test]
fn answer_breaks_off_visibly_when_its_worker_dies() {
    let site = serve("workers = { max = 1 }");
    let worker = site.worker();
    let mut client = crate::harness::client::Connection::open(site.port()).unwrap();
    client.send_ask("GET", "/app/begun", "");
    client.read_until("begun\n");
    send_signal(worker, Signal::KILL);
    let rest = client.read_to_end();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    let (reason, _) = site.reason("/app/begun");
    assert_eq!(reason, "the worker ended while it had the request");
    site.worker();
    site.stop();
}

#[test]
fn last_words_are_kept_up_to_their_limit() {
    let site = serve("workers = { max = 1 }");
    assert_eq!(site.get("/app/shout").answer.status, 502);
    let (_, detail) = site.reason("/app/shout");
    assert!(detail.contains("signal 9"), "{detail}");
    assert!(detail.ends_with("099"), "{detail}");
    assert!(
        !detail.contains("0050\n") && detail.len() < 5_000,
        "{detail}"
    );
    site.stop();
}

const LIAR: &str = include_str!("liar.py");

/// The same over the socket, where a program needs no library to lie.
#[test]
fn worker_that_lies_over_the_socket_is_replaced() {
    let site = crate::place::program()
        .with_mode("liar.py", LIAR, 0o644)
        .serve_route(
            "path = \"/app/*\"\nresident = { run = [\"/usr/bin/env\", \"python3\", \"liar.py\"], \
             dir = \"cgi\", carrier = \"stream\", workers = { max = 1 }, grace = \"100ms\" }\n",
        );
    for (number, (lie, says)) in [
        ("kind", "kind"),
        ("length", "bytes"),
        ("heads", "it sent a second head for one request"),
        ("chunk", ""),
        ("greeting", "it greeted twice"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(site.text("/app/fine"), "fine");
        let target = format!("/app/{lie}");
        assert!(site.get(&target).is_broken(), "{lie}");
        let (reason, detail) = site.reason(&target);
        assert_eq!(reason, "the worker broke the protocol", "{lie}: {detail}");
        assert!(detail.contains(says), "{lie}: {detail}");
        site.place
            .wait_for_counter("worker_liars", number as u64 + 1);
    }
    // Too much shows only when the client does not take it.
    let before = site.place.counter("worker_liars");
    let (mut slow, _) = begin_download(site.port(), "/app/window");
    site.place.wait_for_counter("worker_liars", before + 1);
    slow.read_to_end();
    let (_, detail) = site.reason("/app/window");
    assert!(
        detail.contains("it sent more data than its window allows"),
        "{detail}"
    );
    assert_eq!(site.text("/app/fine"), "fine");
    site.stop();
}

#[test]
fn worker_that_does_not_greet_as_it_should_is_told_of() {
    for (how, says) in [
        ("EARLY", "it spoke before it greeted"),
        ("VERSION", "it speaks version 9"),
        ("CARRIER", "carrier 2, which was not offered"),
    ] {
        let site = crate::place::program()
            .with_mode("liar.py", LIAR, 0o644)
            .serve_route(&format!(
                "path = \"/app/*\"\nresident = {{ run = [\"/usr/bin/env\", \"python3\", \"liar.py\"], \
                 dir = \"cgi\", carrier = \"stream\", grace = \"100ms\", env = {{ {how} = \"1\" }} }}\n",
            ));
        assert_eq!(site.get("/app/fine").answer.status, 502);
        let (reason, detail) = site.reason("/app/fine");
        assert_eq!(
            reason, "the program ends before it is ready",
            "{how}: {detail}"
        );
        assert!(detail.contains(says), "{how}: {detail}");
        let started = site.place.counter("worker_starts");
        assert!(started < 5, "{how}: {started} starts");
        site.stop();
    }
}

#[test]
fn sleeper_is_answered_with_504_and_replaced() {
    let site =
        serve("workers = { max = 1 }, timeout = { first_byte = \"200ms\" }, grace = \"100ms\"");
    let worker = site.worker();
    assert_eq!(site.get("/app/silent").answer.status, 504);
    wait_for_end(worker);
    let mut client = site.hold("after");
    wait_for_file(&site.path("after.begun"));
    site.go("after");
    assert_ne!(client.read_reply().answer.text(), worker.to_string());
    site.stop();
}
