//! Every limit of a route with programs: reaching it is an answer, a reason and a count.

use crate::harness::client::{Connection, call};
use crate::site::Programs;

/// Waits at a fifo until someone writes to it, after it has created a file that says so.
/// Who finds the gate open as the one before left it gets no line, and waits on.
const WAITS: &str = "printf 'Content-Type: text/plain\\n\\n'\n: > \"$RUN/started-$$\"\n\
                     until read line < \"$RUN/gate\"; do :; done\necho \"$line\"\n";

fn waiting(keys: &str) -> Programs {
    let programs = Programs::new().with_sh("waits.cgi", WAITS);
    let gate = programs.place.path("run/gate");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &gate,
        rustix::fs::Mode::from_raw_mode(0o666),
    )
    .unwrap();
    let run = programs.place.path("run").display().to_string();
    programs.serve(&format!("env = {{ RUN = \"{run}\" }}, {keys}"))
}

fn begin(programs: &Programs, path: &str) -> Connection {
    let mut connection = Connection::open(programs.port()).unwrap();
    connection.send_get(path).unwrap();
    connection
}

/// Waits until so many programs have begun to wait.
fn wait_for_started(programs: &Programs, count: usize) {
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    loop {
        let names = std::fs::read_dir(programs.place.path("run")).unwrap();
        let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
        if names.filter(|name| name.starts_with("started-")).count() >= count {
            return;
        }
        assert!(
            std::time::Instant::now() < until,
            "{count} programs did not start"
        );
        std::thread::yield_now();
    }
}

fn release(programs: &Programs) {
    std::fs::write(programs.place.path("run/gate"), "released\n").unwrap();
}

#[test]
fn requests_wait_for_a_place_and_the_queue_has_an_end() {
    let programs = waiting("concurrent = 1, queue = 1");
    let mut first = begin(&programs, "/cgi/waits.cgi?first");
    wait_for_started(&programs, 1);
    let mut second = begin(&programs, "/cgi/waits.cgi?second");
    programs
        .place
        .wait_for_counter("limit_program_concurrent", 1);
    let third = programs.get("/cgi/waits.cgi?third").answer;
    assert_eq!(
        (third.status, third.header("retry-after")),
        (503, Some("1"))
    );
    let record = programs.record("/cgi/waits.cgi?third");
    assert_eq!(
        record["reason"],
        "limits: queue: too many requests wait for the program"
    );
    assert_eq!(record["fault"], "server");
    assert_eq!(programs.place.counter("limit_program_queue"), 1);
    release(&programs);
    assert_eq!(first.read_reply().answer.text(), "released\n");
    wait_for_started(&programs, 2);
    release(&programs);
    assert_eq!(second.read_reply().answer.text(), "released\n");
    assert!(
        programs.record("/cgi/waits.cgi?second")["queue_us"]
            .as_u64()
            .unwrap()
            > 0
    );
    assert_eq!(programs.record("/cgi/waits.cgi?first")["queue_us"], 0);
    programs.stop();
}

#[test]
fn request_waits_no_longer_than_it_may() {
    let programs = waiting("concurrent = 1, queue_time = \"100ms\"");
    let mut first = begin(&programs, "/cgi/waits.cgi?first");
    wait_for_started(&programs, 1);
    let second = programs.get("/cgi/waits.cgi?second").answer;
    assert_eq!(
        (second.status, second.header("retry-after")),
        (503, Some("1"))
    );
    let record = programs.record("/cgi/waits.cgi?second");
    assert_eq!(
        record["reason"],
        "limits: queue_time: no process became free in time"
    );
    assert_eq!(programs.place.counter("limit_program_queue_time"), 1);
    release(&programs);
    assert_eq!(first.read_reply().answer.text(), "released\n");
    programs.stop();
}

#[test]
fn client_that_leaves_the_queue_takes_no_place() {
    let programs = waiting("concurrent = 1");
    let mut first = begin(&programs, "/cgi/waits.cgi?first");
    wait_for_started(&programs, 1);
    let second = begin(&programs, "/cgi/waits.cgi?second");
    programs
        .place
        .wait_for_counter("limit_program_concurrent", 1);
    second.leave();
    programs.place.wait_for_counter("client_left", 1);
    release(&programs);
    assert_eq!(first.read_reply().answer.text(), "released\n");
    let mut third = begin(&programs, "/cgi/waits.cgi?third");
    wait_for_started(&programs, 2);
    release(&programs);
    assert_eq!(third.read_reply().answer.text(), "released\n");
    programs.stop();
}

#[test]
fn silent_program_is_ended_and_answered_for() {
    let programs = Programs::new()
        .with_sh(
            "sleeps.cgi",
            "echo 'about to sleep' >&2\nsleep 1000 & wait\n",
        )
        .serve("first_byte = \"2s\"");
    let reply = programs.get("/cgi/sleeps.cgi");
    assert_eq!(reply.answer.status, 504);
    let record = programs.record("/cgi/sleeps.cgi");
    assert_eq!(
        record["reason"],
        "limits: first_byte: no head of an answer in time"
    );
    assert!(
        record["detail"]
            .as_str()
            .unwrap()
            .ends_with("stderr: about to sleep"),
        "{record}"
    );
    assert_eq!(record["fault"], "script");
    assert_eq!(programs.place.counter("limit_program_first_byte"), 1);
    programs.stop();
}

#[test]
fn program_that_runs_for_too_long_is_ended_with_all_it_started() {
    let programs = Programs::new()
        .with_sh(
            "endless.cgi",
            "printf 'Content-Type: text/plain\\n\\nbegun\\n'\n\
             (trap '' TERM; echo $BASHPID > pid-deaf; sleep 1000) &\n\
             sleep 1000 & echo $! > pid-child\nwait\n",
        )
        .with_sh("headless.cgi", "sleep 1000\n");
    let programs = programs.serve("total = \"2s\", grace = \"100ms\"");
    let late = programs.get("/cgi/headless.cgi");
    assert_eq!(late.answer.status, 504);
    let reason = "limits: total: the program ran for too long";
    assert_eq!(programs.record("/cgi/headless.cgi")["reason"], reason);
    let reply = programs.get("/cgi/endless.cgi");
    assert_eq!(
        (reply.answer.status, reply.is_whole),
        (200, false),
        "{reply:?}"
    );
    assert_eq!(reply.answer.text(), "begun\n");
    let record = programs.record("/cgi/endless.cgi");
    assert_eq!(
        (&record["reason"], &record["outcome"]),
        (&reason.into(), &"broken".into())
    );
    let pid = std::fs::read_to_string(programs.path("pid-child")).unwrap();
    crate::harness::wait_for_end(pid.trim().parse().unwrap());
    assert_eq!(programs.place.counter("limit_program_total"), 2);
    programs.stop();
}

#[test]
fn head_longer_than_its_limit_is_refused() {
    let programs = Programs::new()
        .with_sh(
            "long.cgi",
            "printf 'X-A: '\nhead -c 2000 /dev/zero | tr '\\0' x\nprintf '\\n\\n'\n",
        )
        .with_sh("endless.cgi", "yes 'X-A: 1'\n")
        .serve("head = \"1KiB\"");
    for path in ["/cgi/long.cgi", "/cgi/endless.cgi"] {
        assert_eq!(programs.get(path).answer.status, 502, "{path}");
        let reason = "limits: the head of the program's output is longer than `head`";
        assert_eq!(programs.record(path)["reason"], reason);
    }
    assert_eq!(programs.place.counter("limit_program_head"), 2);
    programs.stop();
}

#[test]
fn script_may_ask_for_more_time() {
    let programs = Programs::new()
        .with_sh(
            "asks.cgi",
            "printf 'Content-Type: text/plain\\nScript-Control: timeout=200ms\\n\\nbegun\\n'\n\
             sleep 1000 & wait\n",
        )
        .serve("total = \"1h\", grace = \"100ms\"");
    let reply = programs.get("/cgi/asks.cgi");
    assert_eq!((reply.answer.status, reply.is_whole), (200, false));
    assert_eq!(reply.answer.header("script-control"), None);
    programs.stop();
}

#[test]
fn body_over_the_routes_limit_starts_nothing() {
    let programs = Programs::new()
        .with_sh("ran.cgi", "touch ran\nprintf 'Content-Type: a/b\\n\\n'\n")
        .serve_route("path = \"/cgi/*\"\nbody = \"10B\"\ncgi = \"cgi\"\n");
    let reply = call(programs.port(), "POST", "/cgi/ran.cgi", "", b"eleven byte");
    assert_eq!(reply.answer.status, 413);
    assert!(!programs.path("ran").exists());
    programs.stop();
}
