//! Workers of programs that stay get SIGKILL again and again while clients ask: over shared memory
//! (C) and over a socket (Python).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::client::Connection;
use crate::harness::{Hob, is_root, library};
use crate::kills::{Asked, Outcome, kill, outcome, programs_of};
use crate::pool::until;
use crate::site::Programs;
use crate::watch::{OnDrop, Rest, family, long, memory_kib, take_turn};

/// How long the kills go on in CI, and how many there are at least.
const SHORT: Duration = Duration::from_secs(5);
const KILLS: usize = 20;
/// What the server's memory may grow by, in KiB: buffers it keeps, and pages of its allocator.
const GROWTH_KIB: u64 = 24 * 1024;
/// Nothing ends by time, and nobody stays without a request.
const KEYS: &str = "workers = { min = 0, max = 6, idle_timeout = \"500ms\" }, grace = \"60s\", \
                    queue = { wait = \"10m\" }, \
                    timeout = { first_byte = \"0s\", progress = \"0s\", total = \"0s\" }";

#[test]
fn killed_workers_over_shared_memory_lose_what_they_had_started_and_no_more() {
    let programs = Programs::new();
    library::compile("crates/hob/tests/shared/program.c", &programs.path(""));
    besiege(programs, "run = [\"./cgi/program\"], carrier = \"shm\"");
}

#[test]
fn killed_workers_over_a_socket_lose_what_they_had_started_and_no_more() {
    let programs = Programs::new().with_mode("app.py", include_str!("app.py"), 0o644);
    besiege(programs, "wsgi = \"app:application\", carrier = \"stream\"");
}

fn besiege(programs: Programs, runs: &str) {
    let _turn = take_turn();
    let programs = programs.serve_route(&format!(
        "path = \"/app/*\"\nresident = {{ {runs}, dir = \"cgi\", {KEYS} }}\n"
    ));
    let (hob, asked) = (programs.hob(), asked());
    let right = |path: &str| {
        for one in asked.iter().filter(|one| one.whole.is_some()) {
            assert_eq!(outcome(hob.port(), one).unwrap(), Outcome::Whole, "{path}");
        }
    };
    right("before");
    until("nobody stays without a request", || family(hob).len() == 2);
    let (rest, memory_before) = (Rest::of(&programs), memory_kib(hob.server()));
    let (kills, outcomes) = kill_amid_requests(&programs, &asked);
    let told = |one: Outcome| -> usize {
        let those = outcomes.iter().filter(|all| all.0.1 == one);
        those.map(|all| all.1).sum()
    };
    let lost = told(Outcome::Told(502)) + told(Outcome::CutOff);
    rest.wait_for(hob);
    right("after");
    let memory = memory_kib(hob.server());
    println!(
        "{kills} workers killed, {lost} requests lost; answers: {outcomes:?}; server: \
         {memory_before} KiB before, {memory} after"
    );
    // Each had one request at a time, so a kill ends one at most.
    assert!(lost <= kills, "{outcomes:?}");
    assert_eq!(told(Outcome::Told(503)), 0, "{outcomes:?}");
    for (path, outcome) in [
        ("/app/lines?1", Outcome::Whole),
        ("/app/begun", Outcome::CutOff),
        ("/app/silent", Outcome::Told(502)),
    ] {
        assert!(outcomes.contains_key(&(path, outcome)), "{outcomes:?}");
    }
    assert!(memory < memory_before + GROWTH_KIB);
    look_for_regions(hob);
    programs.stop();
}

/// Memory that was shared with workers goes with them; one of those that answered last may still be
/// there.
fn look_for_regions(hob: &Hob) {
    if !is_root() {
        return println!("skipped: only root sees what the server has mapped");
    }
    until("the server shares memory with nobody", || {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", hob.server()));
        !maps.unwrap().contains("hob-region")
    });
}

fn asked() -> [Asked; 4] {
    let lines = |count| (0..count).map(|line| format!("{line:0999}\n")).collect();
    let ask = |path, whole| Asked { path, whole };
    [
        ask("/app/lines?1", Some(lines(1))),
        ask("/app/lines?200", Some(lines(200))),
        ask("/app/begun", None),
        ask("/app/silent", None),
    ]
}

/// How many were killed, and what became of the requests meanwhile.
fn kill_amid_requests(
    programs: &Programs,
    asked: &[Asked; 4],
) -> (usize, BTreeMap<(&'static str, Outcome), usize>) {
    let (is_over, whole) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (hob, port) = (programs.hob(), programs.port());
    std::thread::scope(|scope| {
        let clients: Vec<_> = [0, 0, 0, 1, 1, 2, 3]
            .map(|which| {
                let (one, is_over, whole) = (&asked[which], &is_over, &whole);
                scope.spawn(move || {
                    let mut outcomes = Vec::new();
                    while !is_over.load(Ordering::SeqCst) {
                        let outcome = outcome(port, one).unwrap();
                        whole.fetch_add((outcome == Outcome::Whole).into(), Ordering::SeqCst);
                        outcomes.push((one.path, outcome));
                    }
                    outcomes
                })
            })
            .into();
        let leaver = scope.spawn(|| leave_again_and_again(&is_over, port));
        let over = OnDrop(&is_over);
        let mut kills = kill_again_and_again(hob, &whole);
        drop(over);
        // Two of them wait for answers that only a kill ends. No worker is killed at its start now:
        // many such in a row would mean that there is something wrong with the program.
        until("the clients have their last answers", || {
            kills += kill_busy(programs);
            clients.iter().all(|client| client.is_finished()) && leaver.is_finished()
        });
        let mut outcomes = BTreeMap::new();
        for one in clients.into_iter().flat_map(|one| one.join().unwrap()) {
            *outcomes.entry(one).or_insert(0) += 1;
        }
        (kills, outcomes)
    })
}

/// Begins answers that never end, and leaves.
fn leave_again_and_again(is_over: &AtomicBool, port: u16) {
    while !is_over.load(Ordering::SeqCst) {
        let mut connection = Connection::open(port).unwrap();
        connection.send_get("/app/endless").unwrap();
        // It may be the one that is lost.
        let _ = connection.skip(1 << 20);
    }
}

fn kill_again_and_again(hob: &Hob, whole: &AtomicUsize) -> usize {
    let (began, lasts) = (Instant::now(), long().unwrap_or(SHORT));
    let mut kills = 0;
    while kills < KILLS || began.elapsed() < lasts {
        let before = whole.load(Ordering::SeqCst);
        until("there is a worker to kill", || kill_one(hob, kills) == 1);
        kills += 1;
        // Whatever was killed, others answer.
        until("a request is answered", || {
            whole.load(Ordering::SeqCst) > before
        });
    }
    kills
}

/// Kills a worker, another place in the list each time, so that none is spared; starting ones
/// included. How many were.
fn kill_one(hob: &Hob, turn: usize) -> usize {
    let pids = programs_of(hob);
    let pid = pids.get(turn % pids.len().max(1));
    pid.is_some_and(|pid| kill(*pid).is_ok()).into()
}

/// Kills the workers that have a request. How many were.
fn kill_busy(programs: &Programs) -> usize {
    let status = programs.place.status();
    let workers = status["programs"]["pools"][0]["workers"].as_array();
    let busy = workers.unwrap().iter().filter(|one| one["state"] == "busy");
    let pids = busy.filter_map(|one| one["pid"].as_u64());
    pids.filter(|pid| kill(*pid as u32).is_ok()).count()
}
