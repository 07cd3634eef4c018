//! `hob bench`: what it counts is what was served, times are honest, failures have kinds, and exit
//! codes are those of its help. Times are only held against bounds that no busy machine can break.
#![allow(clippy::unwrap_used)]

#[path = "bench/acts.rs"]
mod acts;
#[path = "bench/frames.rs"]
mod frames;
#[path = "bench/h2.rs"]
mod h2;
#[path = "bench/h3.rs"]
mod h3;
#[path = "bench/lists.rs"]
mod lists;
#[path = "bench/mischief.rs"]
mod mischief;
#[path = "bench/others.rs"]
mod others;
#[path = "bench/page.rs"]
mod page;
#[path = "bench/replay.rs"]
mod replay;
#[path = "bench/replay_ends.rs"]
mod replay_ends;
#[path = "bench/schema.rs"]
mod schema;
#[path = "bench/server.rs"]
mod server;
#[path = "bench/sources.rs"]
mod sources;
#[path = "bench/versions.rs"]
mod versions;

mod harness;

use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use harness::{Place, send_signal, text_of};
use rustix::process::Signal;
use schema::conforms;
use serde_json::Value;
use server::{Reply, Server, answer};

/// Runs `hob bench` to its end.
fn bench(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hob"));
    command.arg("bench").args(arguments).stdin(Stdio::null());
    command
}

/// The result of a run that must be made.
fn result(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(result: &Value, path: &str) -> u64 {
    let found = result.pointer(&format!("/{}", path.replace('.', "/")));
    found
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no {path} in {result:#}"))
}

fn hello() -> Server {
    Server::start(|_| Reply::Bytes(answer("200 OK", "hello\n")))
}

#[test]
fn counts_are_those_of_the_server() {
    let place = Place::new();
    let hob = place.serve_config("");
    let url = format!("http://127.0.0.1:{}/hello.txt", hob.port());
    for arguments in [
        &["-c", "3"][..],
        &["-c", "4", "-t", "2"],
        &["--close"],
        &["--rate", "100000", "--arrivals", "poisson", "-t", "3"],
    ] {
        let before = place.counter("requests");
        let result = result(&[&[url.as_str(), "--count", "200"], arguments].concat());
        for (path, wanted) in [
            ("requests.due", 200),
            ("requests.answered", 200),
            ("requests.good", 200),
            ("requests.failed", 0),
            ("bytes.bodies", 1200),
            ("latency.response.count", 200),
            ("latency.service.count", 200),
        ] {
            assert_eq!(number(&result, path), wanted, "{path} with {arguments:?}");
        }
        assert_eq!(
            result["status"],
            serde_json::json!([{ "code": 200, "count": 200 }])
        );
        place.wait_for_counter("requests", before + 200);
    }
    hob.stop();
}

#[test]
fn large_bodies_are_counted_to_the_last_byte() {
    let place = Place::new();
    let hob = place.serve_config("");
    let url = format!("http://127.0.0.1:{}/big.bin", hob.port());
    let size = format!("size={}", harness::BIG_BYTES);
    let result = result(&[&url, "--count", "6", "-c", "2", "--expect", &size]);
    assert_eq!(
        number(&result, "bytes.bodies"),
        6 * harness::BIG_BYTES as u64
    );
    assert!(number(&result, "bytes.received") > 6 * harness::BIG_BYTES as u64);
    assert_eq!(number(&result, "requests.good"), 6);
    hob.stop();
}

#[test]
fn open_loop_sends_what_is_due_however_fast_the_server_is() {
    let server = hello();
    let url = server.url();
    let run = |rate: &str| {
        result(&[
            &url,
            "--rate",
            rate,
            "--for",
            "500ms",
            "--warm-up",
            "100ms",
            "-c",
            "300",
        ])
    };
    // More connections than requests: none waits for one.
    assert_eq!(number(&run("400"), "requests.due"), 200);
    let ramp = number(&run("0..400"), "requests.due");
    assert!(ramp.abs_diff(100) <= 1, "{ramp}");
    let steps = run("200,600");
    let answered = |step: usize| number(&steps["steps"][step], "answered");
    assert_eq!(
        (number(&steps, "requests.due"), answered(0), answered(1)),
        (200, 50, 150)
    );
}

#[test]
fn response_times_are_measured_from_when_a_request_was_due() {
    // The first measured request stalls the only connection; all others are due meanwhile.
    let stall = Duration::from_secs(1);
    let server = Server::start(move |number| match number {
        0 => Reply::After(stall, answer("200 OK", "")),
        _ => Reply::Bytes(answer("200 OK", "")),
    });
    let url = server.url();
    let result = result(&[&url, "--rate", "100", "--count", "100", "-c", "1"]);
    // Request k is due at 10 ms * k and waits at least until the stall is over.
    let wait = |percent: u64| 1e6 * (percent as f64 / 100.0) - 10_000.0;
    for percent in [50, 75, 90, 95, 99] {
        let found = result["latency"]["response"][format!("p{percent}_us")]
            .as_f64()
            .unwrap();
        assert!(found >= wait(percent) * 0.999, "p{percent} is {found}");
    }
    assert!(number(&result, "requests.waited") >= 98);
}

#[test]
fn percentiles_are_not_below_what_the_server_kept() {
    // Every fifth request takes 20 ms, the others 5: no answer can be seen sooner than that.
    let server = Server::start(|number| {
        let time = if number % 5 == 0 { 20 } else { 5 };
        Reply::After(Duration::from_millis(time), answer("200 OK", ""))
    });
    let result = result(&[&server.url(), "--count", "100", "-c", "5"]);
    let mut kept = server.seen(|seen| seen.kept.clone());
    kept.sort_unstable();
    assert_eq!(kept.len(), 100);
    for (name, index) in [
        ("min", 0),
        ("p50", 49),
        ("p75", 74),
        ("p90", 89),
        ("p99", 98),
        ("max", 99),
    ] {
        let found = result["latency"]["service"][format!("{name}_us")]
            .as_f64()
            .unwrap();
        // A histogram is right to a thousandth.
        let least = kept[index].as_secs_f64() * 1e6 * 0.999;
        assert!(found >= least, "{name} is {found}, the server kept {least}");
    }
}

#[test]
fn failures_are_told_by_kind_and_do_not_end_the_run() {
    let good = || answer("200 OK", "x");
    let bad: [(&str, &[&str], Reply, &str); 8] = [
        ("status", &[], Reply::Bytes(answer("503 No", "")), "503"),
        (
            "size",
            &["--expect", "size=1"],
            Reply::Bytes(answer("200 OK", "xx")),
            "2 bytes instead of 1",
        ),
        (
            "header",
            &["--expect", "header=etag"],
            Reply::Bytes(answer("200 OK", "x")),
            "etag is missing",
        ),
        (
            "malformed",
            &[],
            Reply::Last(b"SSH-2.0\r\n".to_vec()),
            "status line",
        ),
        (
            "malformed",
            &[],
            Reply::Last(b"HTTP/1.1 200 OK\r\nx\r\n\r\n".to_vec()),
            "header field",
        ),
        ("closed", &[], Reply::Last(Vec::new()), "without an answer"),
        (
            "closed",
            &[],
            Reply::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx".to_vec()),
            "within the answer",
        ),
        ("timeout", &["--timeout", "2s"], Reply::Never, "2000 ms"),
    ];
    for (kind, arguments, reply, first) in bad {
        let bad = Mutex::new(Some(reply));
        let server = Server::start(move |_| match bad.lock().unwrap().take() {
            Some(bad) => bad,
            None => Reply::Bytes(good()),
        });
        let url = server.url();
        let result = result(&[&[url.as_str(), "--count", "3", "-c", "1"], arguments].concat());
        let failures = result["failures"].as_array().unwrap();
        let found = failures.iter().find(|failure| failure["kind"] == kind);
        let found = found.unwrap_or_else(|| panic!("no {kind} in {failures:?}"));
        assert!(found["first"].as_str().unwrap().contains(first), "{found}");
        assert_eq!(number(&result, "requests.due"), 3);
        assert_eq!(server.seen(|seen| seen.requests.len()), 3);
    }
}

#[test]
fn request_is_sent_as_it_was_asked_for() {
    let server = hello();
    let place = Place::new();
    let body = "0123456789".repeat(100_000);
    place.write("body", &body);
    let path = place.path("body");
    let url = format!("{}a?b", server.url());
    let fields = ["-H", "Authorization: x y", "--header", "Host:example.org"];
    let more = [
        "--body",
        path.to_str().unwrap(),
        "-n",
        "2",
        "-c",
        "1",
        "--close",
    ];
    result(&[&[url.as_str()], &fields[..], &more].concat());
    server.seen(|seen| {
        let head = "POST /a?b HTTP/1.1\r\nAuthorization: x y\r\nHost: example.org\r\n\
                    Content-Length: 1000000\r\nConnection: close\r\n\r\n";
        assert_eq!(seen.requests.len(), 2);
        for request in &seen.requests {
            assert_eq!(request.0, head);
            assert!(request.1 == body.as_bytes());
        }
        // One to see whether the server is there, and one for each request.
        assert_eq!(seen.connections, 3);
    });
}

#[test]
fn urls_are_asked_for_in_turn() {
    let server = Server::start(|number| Reply::Bytes(answer("200 OK", &"x".repeat(number % 2))));
    let (a, b) = (format!("{}a", server.url()), format!("{}b", server.url()));
    let result = result(&[&a, &b, "-n", "10", "-c", "1", "-X", "PUT"]);
    server.seen(|seen| {
        for (index, (head, _)) in seen.requests.iter().enumerate() {
            let wanted = if index % 2 == 0 { "PUT /a " } else { "PUT /b " };
            assert!(head.starts_with(wanted), "{head}");
        }
    });
    assert_eq!(number(&result["urls"][1], "answered"), 5);
    assert_eq!(result["urls"][1]["url"], b.as_str());
}

#[test]
fn crossed_threshold_is_exit_code_4() {
    let server = hello();
    let url = server.url();
    let run = |limits: &[&str]| {
        let limits: Vec<&str> = limits
            .iter()
            .flat_map(|limit| ["--fail-if", limit])
            .collect();
        bench(&[&[url.as_str(), "-n", "20"], limits.as_slice()].concat())
    };
    let passed = run(&["p99>1h", "errors>0", "rate<0.001"]);
    assert_eq!(passed.status.code(), Some(0), "{}", text_of(&passed));
    assert!(
        text_of(&passed).contains("passed: errors>0 is 0\n"),
        "{}",
        text_of(&passed)
    );
    let failed = run(&["p99>1h", "p50<1h"]);
    assert_eq!(failed.status.code(), Some(4), "{}", text_of(&failed));
    assert!(
        text_of(&failed).contains("FAILED: p50<1h is "),
        "{}",
        text_of(&failed)
    );
    let unmeasured = run(&["cpu>1s"]);
    assert_eq!(unmeasured.status.code(), Some(4));
    assert!(text_of(&unmeasured).contains("FAILED: cpu>1s is not measured"));
}

#[test]
fn interrupted_run_tells_what_there_is() {
    // One answer, then none: the run cannot end by itself.
    let server = Server::start(|number| match number {
        0 => Reply::Bytes(answer("200 OK", "")),
        _ => Reply::Never,
    });
    let url = server.url();
    let mut child = command(&[
        &url,
        "-c",
        "1",
        "--for",
        "1h",
        "--warm-up",
        "0s",
        "--timeout",
        "1h",
    ]);
    let child = child.stdout(Stdio::piped()).spawn().unwrap();
    server.wait_for_requests(2);
    send_signal(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let text = text_of(&output);
    assert!(
        text.contains("requests   2, 1 answered, 0 failed, 1 unfinished\n"),
        "{text}"
    );
    assert!(text.contains(", then interrupted\n"), "{text}");
}

#[test]
fn server_that_is_not_there_is_exit_code_1() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}/");
    let output = bench(&[&url]);
    assert_eq!(output.status.code(), Some(1));
    let wanted = format!(
        "hob: {url}: no server answers at 127.0.0.1:{port}: Connection refused (os error 111) (is it \
         running?)\n"
    );
    assert_eq!(text_of(&output), wanted);
    let silent = Server::start(|_| Reply::Last(Vec::new()));
    let output = bench(&[&silent.url(), "-n", "3"]);
    assert_eq!(output.status.code(), Some(1));
    let text = text_of(&output);
    assert!(
        text.contains("no request was answered; the first failure was closed: "),
        "{text}"
    );
}

#[test]
fn arguments_that_make_no_sense_are_exit_code_2() {
    let server = hello();
    let url = server.url();
    for (arguments, says) in [
        (&[][..], "<URL>..."),
        (&["127.0.0.1:80"], "no scheme"),
        (
            &["http://127.0.0.1:1/", "http://127.0.0.2:1/"],
            "one run measures one server",
        ),
        (&[&url, "--rate", "many"], "is no rate"),
        (&[&url, "--rate", "1..2", "-n", "3"], "say --for how long"),
        (&[&url, "--for", "10"], "is no duration"),
        (&[&url, "-n", "0"], "measures nothing"),
        (&[&url, "-c", "0"], "connections: from 1"),
        (&[&url, "-c", "2", "-t", "3"], "threads: from 1"),
        (
            &[&url, "--think", "1s", "--rate", "5"],
            "cannot be used with",
        ),
        (&[&url, "-H", "a"], "write NAME:VALUE"),
        (
            &[&url, "-H", "Content-Length: 5"],
            "is set by what is asked for",
        ),
        (&[&url, "-H", "a:b\nc"], "control characters"),
        (&[&url, "-X", "G T"], "is no method"),
        (&[&url, "--body", "/nonexistent"], "cannot read it"),
        (
            &[&url, "--expect", "colour=red"],
            "nothing an answer can be checked for",
        ),
        (&[&url, "--fail-if", "p99"], "is no threshold"),
        (&[&url, "--cpus", "x"], "is no list of CPUs"),
    ] {
        let output = bench(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            text_of(&output)
        );
        assert!(
            text_of(&output).contains(says),
            "{arguments:?}: {}",
            text_of(&output)
        );
    }
    assert_eq!(server.seen(|seen| seen.requests.len()), 0);
}

#[test]
fn unix_socket_is_asked_as_the_host_of_the_url() {
    let place = Place::new();
    let config = harness::config("", "site").replace("127.0.0.1:0", "unix:run/web.sock");
    place.write("hob.toml", &config);
    let hob = place.serve(&["--config", "hob.toml"]);
    let socket = place.path("run/web.sock");
    let result = result(&[
        "http://example.org/hello.txt",
        "--unix",
        socket.to_str().unwrap(),
        "-c",
        "2000",
        "-n",
        "2000",
        "--pid",
        &hob.pid().to_string(),
    ]);
    assert_eq!(number(&result, "requests.good"), 2000);
    assert!(
        result["server"]["cpu_us_per_request"].is_number(),
        "{result:#}"
    );
    hob.stop();
}

#[test]
fn result_is_what_the_schema_says() {
    let schema = bench(&["--schema"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let server = Server::start(|number| {
        Reply::Bytes(answer(
            if number % 2 == 0 { "200 OK" } else { "404 No" },
            "x",
        ))
    });
    let (a, b) = (format!("{}a", server.url()), format!("{}b", server.url()));
    let place = Place::new();
    place.write(
        "log",
        "x\n- - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 1\n",
    );
    let log = place.path("log");
    let open = [
        "--rate",
        "100,200",
        "--for",
        "100ms",
        "--warm-up",
        "0s",
        "--fail-if",
        "errors>1000",
    ];
    let runs = [
        result(&[&[a.as_str()], &open[..]].concat()),
        result(&[&a, &b, "-n", "10", "--think", "1ms"]),
        result(&[&server.url(), "--replay", log.to_str().unwrap()]),
    ];
    for run in &runs {
        conforms(run, &schema, &schema, "");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let output = bench(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let text = text_of(&output);
    assert!(
        text.contains("Examples:\n  hob bench http://127.0.0.1:8080/\n"),
        "{text}"
    );
    assert!(
        text.contains("  4  a threshold of --fail-if was crossed"),
        "{text}"
    );
}

#[test]
fn time_to_think_lies_between_answer_and_next_request() {
    let server = hello();
    let begun = Instant::now();
    result(&[&server.url(), "-n", "6", "-c", "1", "--think", "20ms"]);
    // Five pauses at least, whatever else took time.
    assert!(begun.elapsed() >= Duration::from_millis(100));
}
