//! Clients that leave, workers that die, hang or never start.

use std::time::Instant;

use rustix::process::Signal;

use crate::harness::client::Connection;
use crate::harness::{DEADLINE, send_signal, wait_for_end};
use crate::place::serve;
use crate::site::Programs;

const ONE: &str = "workers = { max = 1 }";

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
    // It has to tell in that time what it does, on a busy machine too.
    let site = serve("workers = { max = 1 }, grace = \"3s\"");
    let worker = site.worker();
    site.begin("/app/sleeper_for_ever/one", "one").leave();
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
    let site = serve("workers = { max = 1 }, timeout = { first_byte = \"200ms\" }, grace = \"1s\"");
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
            "path = \"/app/*\"\nresident = { psgi = \"cgi/app.psgi\", grace = \"1s\", \
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
fn cause_of_a_failed_start_is_logged_once_in_one_line() {
    let site = Programs::new()
        .with_mode(
            "app.py",
            "import sys\nprint('begins', file=sys.stderr)\n",
            0o644,
        )
        .serve_route(
            "path = \"/app/*\"\nresident = { wsgi = \"ap:application\", dir = \"cgi\" }\n",
        );
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    while site.place.counter("worker_crashes") < 3 {
        assert_eq!(site.get("/app/x").answer.status, 502);
        assert!(std::time::Instant::now() < until);
    }
    let (_, detail) = site.reason("/app/x");
    assert!(detail.contains("No module named 'ap'"), "{detail}");
    let is_of_ours = detail.contains("hob.host") || detail.contains("importlib");
    assert!(!is_of_ours, "frames of the host: {detail}");
    let printed = site.stop_and_print();
    let told = printed
        .lines()
        .filter(|line| line.contains("No module named 'ap'"));
    let told: Vec<_> = told.filter(|line| !line.contains(" DEBUG ")).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(
        told[0].contains(": a worker did not start: ModuleNotFoundError"),
        "{told:?}"
    );
    assert!(told[0].contains("`hob history`"), "{told:?}");
}

#[test]
fn what_a_worker_printed_cannot_look_like_a_line_of_the_log() {
    let site = Programs::new()
        .with_mode(
            "app.py",
            "import os\n\
             def application(environ, start):\n    \
             os.write(2, b'well\\n2026-01-01T00:00:00Z ERROR forged\\n')\n    os._exit(3)\n",
            0o644,
        )
        .serve_route(
            "path = \"/app/*\"\n\
             resident = { wsgi = \"app:application\", dir = \"cgi\", workers = { max = 1 } }\n",
        );
    assert_eq!(site.get("/app/x").answer.status, 502);
    site.hob().wait_for("a worker ended: exit code 3");
    let printed = site.stop_and_print();
    let forged: Vec<_> = printed
        .lines()
        .filter(|line| line.contains("forged"))
        .collect();
    assert_eq!(forged.len(), 1, "{forged:#?}");
    assert!(forged[0].contains("WARN stderr: 2026-01-01"), "{forged:?}");
}

#[test]
fn module_that_calls_exit_when_it_is_imported_is_named() {
    let site = Programs::new()
        .with_mode("leaves.py", "import sys\nsys.exit(3)\n", 0o644)
        .serve_route(
            "path = \"/app/*\"\nresident = { wsgi = \"leaves:application\", dir = \"cgi\" }\n",
        );
    assert_eq!(site.get("/app/x").answer.status, 502);
    let (_, detail) = site.reason("/app/x");
    let says = "hob: 'leaves' calls sys.exit(3) when it is imported";
    assert!(detail.contains(says), "{detail}");
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

#[test]
fn end_of_a_worker_is_not_explained_by_an_earlier_request() {
    let site = Programs::new()
        .with_mode(
            "app.py",
            "import os, sys\n\
             def application(environ, start):\n    \
             if environ['PATH_INFO'].endswith('end'):\n        \
             os.write(2, b'the one that ends\\n')\n        os._exit(3)\n    \
             os.write(2, b'RuntimeError: an earlier one\\n')\n    \
             start('200 OK', [])\n    return [b'done']\n",
            0o644,
        )
        .serve_route(
            "path = \"/app/*\"\n\
             resident = { wsgi = \"app:application\", dir = \"cgi\", workers = { max = 1 } }\n",
        );
    assert_eq!(site.text("/app/x"), "done");
    site.hob().wait_for("an earlier one");
    assert_eq!(site.get("/app/end").answer.status, 502);
    let (_, detail) = site.reason("/app/end");
    assert!(detail.contains("the one that ends"), "{detail}");
    assert!(!detail.contains("an earlier one"), "{detail}");
    site.stop();
}

#[test]
fn traceback_of_one_of_many_requests_is_logged_with_its_request() {
    const RAISES: &str = "import asyncio, threading\n\
        both = threading.Barrier(2)\n\
        def wsgi(environ, start):\n    \
        both.wait()\n    raise ValueError(environ['QUERY_STRING'])\n\
        waiting = []\n\
        async def asgi(scope, receive, send):\n    \
        assert scope['type'] == 'http'\n    \
        waiting.append(asyncio.get_running_loop().create_future())\n    \
        if len(waiting) == 2: [one.set_result(None) for one in waiting]\n    \
        await waiting[-1]\n    raise ValueError(scope['query_string'].decode())\n";
    for kind in ["wsgi", "asgi"] {
        let site = Programs::new()
            .with_mode("app.py", RAISES, 0o644)
            .serve_route(&format!(
                "path = \"/app\"\nresident = {{ {kind} = \"app:{kind}\", dir = \"cgi\", \
                 workers = {{ max = 1, concurrency = 4 }} }}\n"
            ));
        let paths = ["/app?one", "/app?two"];
        let mut clients = paths.map(|path| {
            let mut client = Connection::open(site.port()).unwrap();
            client.send_ask("GET", path, "");
            client
        });
        for client in &mut clients {
            assert_eq!(client.read_reply().answer.status, 500, "{kind}");
        }
        for path in paths {
            let (_, query) = path.split_once('?').unwrap();
            let line = site.hob().wait_for(&format!("stderr: ValueError: {query}"));
            let record = site.record(path);
            let number = |name: &str| record[name].as_u64().unwrap();
            let id = format!("-{:x}-{:x} ", number("connection"), number("request"));
            let (_, request) = line.split_once("request=").unwrap_or_default();
            assert!(request.contains(&id), "{kind}: {id}: {line}");
        }
        site.stop();
    }
}

#[test]
fn ends_of_many_workers_are_logged_at_a_rate_and_what_is_left_out_is_told() {
    const WORKERS: usize = 26;
    // Ends that are logged at once; then there is one a second.
    const AT_ONCE: u64 = 20;
    let site = serve(&format!(
        "workers = {{ min = {WORKERS}, max = {WORKERS} }}, timeout = {{ start = \"5m\" }}"
    ));
    let began = Instant::now();
    while !site
        .hob()
        .printed()
        .contains("more workers ended, not logged")
    {
        assert!(began.elapsed() < DEADLINE, "nothing is left out");
        let pool = site.wait_for_pool("ready", |pool| {
            let workers = pool["workers"].as_array().unwrap();
            let idle = workers.iter().filter(|one| one["state"] == "idle").count();
            idle == WORKERS
        });
        for worker in pool["workers"].as_array().unwrap() {
            send_signal(worker["pid"].as_u64().unwrap() as u32, Signal::KILL);
        }
        let ended = pool["crashed"].as_u64().unwrap() + WORKERS as u64;
        site.wait_for_pool("ended", |pool| pool["crashed"].as_u64() >= Some(ended));
    }
    let lines = site.hob().printed().matches("a worker ended: ").count() as u64;
    assert!(lines <= AT_ONCE + began.elapsed().as_secs() + 1, "{lines}");
    assert!(site.place.counter("worker_crashes") > lines);
    site.stop();
}
