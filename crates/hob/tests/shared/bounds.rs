//! Limits of a program that stays, each reached, answered and counted; and what a program may ask
//! the server for.

use std::thread::available_parallelism;

use crate::harness::client::{ask, call, raw};
use crate::harness::wait_for_end;
use crate::place::{program, route, serve};
use crate::pool::until;
use crate::site::Programs;

#[test]
fn worker_that_is_old_is_replaced_without_a_failed_request() {
    let site = serve("workers = { min = 1, max = 1, max_age = \"200ms\" }");
    let first = site.worker();
    // With nothing to do, and with much.
    until("an idle one goes", || !is_there(first));
    site.under_load(4, || {
        let before = site.place.counter("limit_resident_age");
        until("two more go", || {
            site.place.counter("limit_resident_age") >= before + 2
        });
    });
    assert_eq!(site.place.counter("worker_crashes"), 0);
    assert!(site.pool()["replaced"].as_u64() >= Some(2));
    site.stop();
}

fn is_there(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn worker_that_is_large_is_replaced() {
    let site = serve("workers = { min = 1, max = 1, max_memory = \"40MiB\" }");
    let worker = site.worker();
    assert_eq!(site.worker(), worker);
    assert_eq!(site.place.counter("limit_resident_memory"), 0);
    assert_eq!(site.text("/app/grow?67108864"), worker.to_string());
    until("another answers", || site.worker() != worker);
    wait_for_end(worker);
    assert_eq!(site.place.counter("limit_resident_memory"), 1);
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

/// Two programs that share two workers.
fn serve_two() -> Programs {
    let keys = "workers = { min = 0, max = 2 }";
    let config = format!(
        "[limits]\nworkers = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         [[site.route]]\n{}[[site.route]]\n{}",
        route(keys),
        route(keys).replace("/app/*", "/other/*")
    );
    let mut site = program();
    site.serve_whole(&config);
    site
}

/// Keeps both workers busy, and then does not.
fn hold_both(site: &Programs, while_busy: impl FnOnce()) {
    let mut held = ["one", "two"].map(|name| site.hold(name));
    while_busy();
    for (client, name) in held.iter_mut().zip(["one", "two"]) {
        site.go(name);
        assert_eq!(client.read_reply().answer.status, 200);
    }
}

#[test]
fn idle_workers_of_another_program_make_room() {
    let site = serve_two();
    hold_both(&site, || {});
    let programs = site.place.status()["programs"].clone();
    assert_eq!(
        (&programs["workers"], &programs["workers_max"]),
        (&2.into(), &2.into())
    );
    let other: u32 = site.text("/other/pid").parse().unwrap();
    assert_ne!(other, site.worker());
    assert_eq!(site.place.counter("limit_workers"), 0);
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn request_for_which_there_is_no_worker_left_gets_503() {
    let site = serve_two();
    hold_both(&site, || {
        let answer = site.get("/other/pid").answer;
        assert_eq!(answer.status, 503);
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        assert_eq!(site.place.counter("limit_workers"), 1);
    });
    site.text("/other/pid");
    site.stop();
}

/// Where no further one may be, the old one goes first.
#[test]
fn worker_is_replaced_where_every_worker_is_in_use() {
    let mut site = program();
    site.serve_whole(&format!(
        "[limits]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         [[site.route]]\n{}",
        route("workers = { min = 1, max = 1, max_requests = 10 }")
    ));
    let first = site.worker();
    site.under_load(4, || until("another answers", || site.worker() != first));
    assert_eq!(site.place.counter("limit_workers"), 0);
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn program_that_never_greets_is_ended() {
    let site = program().serve_route(
        "path = \"/app/*\"\nresident = { run = [\"/bin/sleep\", \"1000\"], grace = \"100ms\", \
         timeout = { start = \"200ms\" } }\n",
    );
    assert_eq!(site.get("/app/x").answer.status, 502);
    let (reason, detail) = site.reason("/app/x");
    assert_eq!(reason, "the program ends before it is ready");
    assert!(detail.contains("resident.timeout.start"), "{detail}");
    assert!(site.place.counter("limit_resident_start") > 0);
    site.stop();
}

/// It is given nothing more, but what others wait for comes to its end.
#[test]
fn worker_with_a_request_that_nobody_waits_for_goes_once_the_others_are_answered() {
    let site = serve(
        "env = { THREADS = \"2\" }, workers = { max = 1, concurrency = 2 }, grace = \"100ms\"",
    );
    let left = site.hold("left");
    let mut stays = site.hold("stays");
    left.leave();
    site.wait_for_pool("to leave", |pool| pool["workers"][0]["state"] == "leaving");
    assert_eq!(site.place.counter("worker_terms"), 0);
    site.go("left");
    site.go("stays");
    let worker: u32 = stays.read_reply().answer.text().parse().unwrap();
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    site.wait_for_workers(1);
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn variables_that_are_too_long_get_431() {
    let mut site = program();
    site.serve_whole(&format!(
        "[limits]\nhead = \"512KiB\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n\
         root = \"site\"\n[[site.route]]\n{}",
        route("")
    ));
    let with = |bytes: usize| {
        let field = format!("X-Long: {}\r\n", "x".repeat(bytes));
        call(site.port(), "GET", "/app/pid", &field, b"")
            .answer
            .status
    };
    assert_eq!(with(100 * 1024), 200);
    assert_eq!(with(140 * 1024), 431);
    assert_eq!(site.place.counter("limit_resident_variables"), 1);
    site.stop();
}

#[test]
fn interim_answers_beyond_their_limit_are_left_out() {
    let site = serve("");
    let all = |count: usize| {
        let request = format!(
            "GET /app/early?{count} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        );
        let answer = raw(site.port(), request.as_bytes());
        // Its body may come in chunks.
        assert!(answer.contains("\r\nlate"), "{answer}");
        answer.matches("HTTP/1.1 103 ").count()
    };
    assert_eq!(all(100), 100);
    let (bytes, most) = (
        "Link: </a-stylesheet-with-quite-a-long-name-that-fills-a-line.css>\n",
        65_536,
    );
    assert_eq!(all(2_000), most / (bytes.len() + 64));
    assert!(site.place.counter("limit_resident_interims") > 1_000);
    site.stop();
}

/// Greets, then asks and asks, and never reads.
const FLOOD: &str = "import os, socket, struct\n\
    server = socket.socket(fileno=int(os.environ['HOB_FD']))\n\
    server.recv(16)\n\
    server.sendall(struct.pack('<IBBHII', 0, 33, 0, 1, 0, 1))\n\
    callout = struct.pack('<IBBHII', 5, 39, 0, 0, 0, 0) + b'NOOP:'\n\
    while True:\n    server.sendall(callout * 1000)\n";

#[test]
fn worker_that_asks_and_never_reads_is_ended() {
    let site = program().with_mode("flood.py", FLOOD, 0o644).serve_route(
        "path = \"/app/*\"\nresident = { run = [\"/usr/bin/env\", \"python3\", \"flood.py\"], \
             dir = \"cgi\", carrier = \"stream\", grace = \"100ms\" }\n",
    );
    until("it is ended", || {
        site.place.counter("limit_resident_unread") > 0
    });
    let pool = site.wait_for_pool("told why", |pool| pool["crashed"] != 0);
    let failure = pool["last_failure"].as_str().unwrap();
    assert!(failure.contains("does not read the replies"), "{failure}");
    site.stop();
}

#[test]
fn programs_ask_the_server() {
    let site = serve("workers = { max = 1 }");
    let asked = |text: &str| site.text(&format!("/app/ask?{text}"));
    assert_eq!(asked("NOOP:"), "ok");
    assert_eq!(asked("noop"), "ok");
    assert_eq!(asked("JUMP:+high"), "refused");
    let root = site.place.path("site").canonicalize().unwrap();
    let mapped = |path: &str| asked(&format!("MAP-PATH:+{path}"));
    assert_eq!(mapped("/a/b.html"), format!("{}/a/b.html", root.display()));
    assert_eq!(mapped("/a/../b"), format!("{}/b", root.display()));
    assert_eq!(mapped("a"), "refused");
    assert_eq!(mapped("/../b"), "refused");
    assert_eq!(mapped("/a%2fb"), "refused");
    assert_eq!(asked("LOG:+warning+the+kettle+is+on"), "ok");
    site.hob().wait_for("the kettle is on");
    assert_eq!(asked("TRACE:+steam"), "ok");
    site.hob().wait_for("steam");
    for wrong in ["TIMEOUT:+soon", "LIFETIME:+long"] {
        assert_eq!(asked(wrong), "refused", "{wrong}");
    }
    site.stop();
}

#[test]
fn program_sets_how_long_its_request_may_take() {
    let site = serve("workers = { max = 1 }, grace = \"100ms\"");
    let target = "/app/ask-and-hang?TIMEOUT:+200ms";
    assert_eq!(site.get(target).answer.status, 504);
    let (reason, _) = site.reason(target);
    assert_eq!(
        reason,
        "limits: resident.timeout.total: the answer took too long"
    );
    assert_eq!(site.place.counter("limit_resident_total"), 1);
    site.worker();
    assert_eq!(site.place.counter("limit_resident_grace"), 1);
    site.stop();
}

#[test]
fn program_sets_how_long_it_stays_without_a_request() {
    let short = "workers = { min = 0, max = 1, idle_timeout = \"100ms\" }";
    let long = "workers = { min = 0, max = 1, idle_timeout = \"1h\" }";
    let site = program().serve_route(&format!(
        "{}[[site.route]]\n{}",
        route(short),
        route(long).replace("/app/*", "/other/*")
    ));
    let stays: u32 = {
        assert_eq!(site.text("/app/ask?LIFETIME:+-1"), "ok");
        site.worker()
    };
    let goes: u32 = site.text("/other/pid").parse().unwrap();
    assert_eq!(site.text("/other/ask?LIFETIME:+200ms"), "ok");
    wait_for_end(goes);
    assert_eq!(site.place.counter("limit_resident_idle"), 1);
    assert_eq!(site.worker(), stays);
    site.stop();
}

#[test]
fn programs_that_compute_in_other_threads_settle_near_the_number_of_cores() {
    let cores = available_parallelism().unwrap().get();
    let site = serve(&format!("workers = {{ max = {} }}", cores * 8));
    let port = site.port();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = crate::place::End(&is_over);
        for _ in 0..cores * 8 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(ask(port, "HEAD", "/app/burn", "").status, 200);
                }
            });
        }
        let pool = site.wait_for_pool("grown to the cores", |pool| {
            let growth = pool["growth"].as_str().unwrap();
            pool["workers"].as_array().unwrap().len() >= cores
                && growth.contains("more would not help")
        });
        // It ends by itself. What others compute beside it hides some of what the workers want, so
        // that it ends later then.
        let workers = pool["workers"].as_array().unwrap().len();
        assert!(workers < cores * 8, "{pool}");
        drop(over);
    });
    site.stop();
}
