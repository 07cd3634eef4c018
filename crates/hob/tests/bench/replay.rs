//! Access logs that are replayed: what a server hears is what the log says, at its times, over
//! every protocol; what cannot be sent is counted.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::harness::{Place, send_signal, text_of};
use super::server::{Reply, Server, answer};
use super::{bench, command, number, result};

/// A line of the Common Log Format.
pub(super) fn line(second: u32, request: &str, status: u16) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!(
        "192.0.2.1 - ann [10/Oct/2000:13:{minute:02}:{second:02} -0700] \"{request}\" {status} 5\n"
    )
}

/// A line of hob's JSON, at a millisecond of a second.
pub(super) fn exact(ms: u32, target: &str) -> String {
    let line = json!({
        "time": format!("2026-11-21T21:13:07.{ms:03}Z"),
        "method": "GET",
        "target": target,
        "status": 200,
    });
    format!("{line}\n")
}

pub(super) fn replay(url: &str, place: &Place, more: &[&str]) -> Value {
    let log = place.path("log");
    result(&[&[url, "--replay", log.to_str().unwrap()], more].concat())
}

#[test]
fn server_hears_what_the_log_says_over_every_protocol() {
    let place = Place::new();
    place.write("site/a b", "with a blank");
    let heard = place.path("heard.log");
    let config = "default_log = \"main\"\n\n[[log]]\nname = \"main\"\nfile = \"heard.log\"\n\n\
                  [[listen]]\naddress = \"127.0.0.1:0\"\n\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
                  tls = true\n\n[[site]]\nroot = \"site\"\n";
    let hob = place.serve_text(config);
    let secure = format!("https://127.0.0.1:{}", hob.tls_port());
    let clear = format!("http://127.0.0.1:{}", hob.port());
    let asked = [
        ("GET /hello.txt HTTP/1.1", 200),
        ("GET /a%20b?c=%2F&d HTTP/1.1", 200),
        ("HEAD /hello.txt HTTP/2.0", 200),
        ("GET /hello.txt?%zz HTTP/1.0", 200),
        ("GET /missing HTTP/1.1", 404),
    ];
    let log: String = (0..60)
        .map(|index| {
            let (request, status) = asked[index % asked.len()];
            line(index as u32 / 20, request, status)
        })
        .collect();
    place.write("log", &log);
    let runs = [
        (&clear, &[][..]),
        (&clear, &["--http", "2", "-m", "4"]),
        (&secure, &["-t", "2"]),
        (&secure, &["--http", "2", "--close"]),
        (&secure, &["--http", "3", "-m", "4"]),
    ];
    for (url, arguments) in runs {
        let more = [&["-c", "3", "--speed-up", "50"], arguments].concat();
        let result = replay(url, &place, &more);
        assert_eq!(
            number(&result, "requests.good"),
            60,
            "{arguments:?}: {result:#}"
        );
        assert_eq!(number(&result, "replay.requests"), 60);
        let rows = result["urls"].as_array().unwrap().iter();
        let rows: Vec<Value> = rows
            .map(|row| json!([row["name"], row["answered"]]))
            .collect();
        assert_eq!(rows, [json!(["GET", 48]), json!(["HEAD", 12])]);
    }
    hob.stop();
    let heard = std::fs::read_to_string(heard).unwrap();
    let mut found: Vec<String> = heard
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(['"', ' ']).collect();
            let at = words
                .iter()
                .position(|word| *word == "GET" || *word == "HEAD")
                .unwrap();
            format!("{} {} {}", words[at], words[at + 1], words[at + 4])
        })
        .collect();
    let all = asked.iter().cycle().take(60 * runs.len());
    let mut wanted: Vec<String> = all
        .map(|(request, status)| {
            let (request, _) = request.rsplit_once(' ').unwrap();
            format!("{request} {status}")
        })
        .collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    // What hob has written of that is a log that can be replayed as well.
    let hob = place.serve_text(config);
    std::fs::rename(place.path("heard.log"), place.path("log")).unwrap();
    let url = format!("http://127.0.0.1:{}", hob.port());
    let again = replay(&url, &place, &["--speed-up", "1000"]);
    assert_eq!(number(&again, "requests.good"), 300, "{again:#}");
    hob.stop();
}

#[test]
fn requests_leave_when_the_log_says_and_not_before() {
    let place = Place::new();
    let log: String = [0, 150, 150, 400]
        .map(|ms| exact(ms, &format!("/{ms}")))
        .concat();
    place.write("log", &log);
    for (speed_up, wanted_ms) in [("1", [0, 150, 150, 400]), ("4", [0, 37, 37, 100])] {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let of_server = heard.clone();
        let server = Server::start(move |_| {
            of_server.lock().unwrap().push(Instant::now());
            Reply::Bytes(answer("200 OK", "x"))
        });
        let begun = Instant::now();
        let result = replay(&server.url(), &place, &["--speed-up", speed_up]);
        assert_eq!(number(&result, "requests.good"), 4, "{result:#}");
        let heard = heard.lock().unwrap();
        for (at, ms) in heard.iter().zip(wanted_ms) {
            assert!(
                at.duration_since(begun) >= Duration::from_millis(ms),
                "{speed_up}: {ms}"
            );
        }
        assert_eq!(result["replay"]["span_s"], 0.4);
        assert_eq!(
            result["plan"]["replay"]["speed_up"].as_f64(),
            speed_up.parse().ok()
        );
    }
}

#[test]
fn response_times_are_measured_from_when_the_log_has_a_request() {
    let place = Place::new();
    let log: String = (0..10).map(|index| exact(index * 10, "/")).collect();
    place.write("log", &log);
    // The first answer takes as long as all requests take to come.
    let server = Server::start(|number| match number {
        0 => Reply::After(Duration::from_millis(100), answer("200 OK", "x")),
        _ => Reply::Bytes(answer("200 OK", "x")),
    });
    let result = replay(&server.url(), &place, &["-c", "1"]);
    // They wait 90, 80, ... 10 ms, and longer on a busy machine.
    let p50 = result["latency"]["response"]["p50_us"].as_f64().unwrap();
    assert!(p50 >= 49_000.0, "{p50}");
    let delayed = number(&result, "requests.waited") + number(&result, "requests.late");
    assert!(delayed >= 9, "{result:#}");
}

#[test]
fn lines_that_are_not_sent_are_counted_and_told() {
    let place = Place::new();
    let log = [
        line(5, "GET /a HTTP/1.1", 200),
        line(5, "POST /form HTTP/1.1", 200),
        line(4, "GET /b HTTP/1.1", 404),
        "no line of a log\n".to_owned(),
        line(6, "-", 408),
        line(6, "GET /\\xc3\\xa9 HTTP/1.1", 200),
        line(6, "GET /gone HTTP/1.1", 200),
        line(6, "DELETE /d HTTP/1.1", 204),
    ]
    .concat();
    place.write("log", &log);
    // As the log has it, but for what has gone since.
    let serve = || {
        Server::start(|number| {
            Reply::Bytes(match number {
                1 => answer("404 Not Found", ""),
                2 => answer("410 Gone", ""),
                _ => answer("200 OK", "x"),
            })
        })
    };
    let server = serve();
    let result = replay(&server.url(), &place, &["-c", "1", "--speed-up", "100"]);
    let replay_of = |result: &Value| {
        let counts = [
            "lines",
            "requests",
            "other_methods",
            "unreadable",
            "unsendable",
            "back",
        ];
        counts.map(|name| number(result, &format!("replay.{name}")))
    };
    assert_eq!(replay_of(&result), [8, 3, 2, 2, 1, 1]);
    assert_eq!(number(&result, "requests.good"), 2, "{result:#}");
    assert_eq!(
        result["failures"],
        json!([{ "kind": "status", "count": 1, "first": "410" }])
    );
    let first = result["replay"]["first"].as_str().unwrap();
    assert!(
        first.starts_with("line 4: it has no [day/Mon/year"),
        "{first}"
    );
    // Who says which status is good means that.
    let server = serve();
    let more = ["-c", "1", "--speed-up", "100", "--expect", "status=200"];
    assert_eq!(
        number(&replay(&server.url(), &place, &more), "requests.good"),
        1
    );
    // Other methods where they are asked for, with the body that no log tells.
    let server = serve();
    place.write("body", "a=b");
    let body = place.path("body");
    let more = [
        "--replay-methods",
        "POST,DELETE",
        "--body",
        body.to_str().unwrap(),
    ];
    let result = replay(&server.url(), &place, &[&more[..], &["-c", "1"]].concat());
    assert_eq!(replay_of(&result)[1..3], [2, 3]);
    server.seen(|seen| {
        let heard = seen
            .requests
            .iter()
            .map(|(head, body)| (head.lines().next(), body.len()));
        let wanted = [
            (Some("POST /form HTTP/1.1"), 3),
            (Some("DELETE /d HTTP/1.1"), 3),
        ];
        assert_eq!(heard.collect::<Vec<_>>(), wanted);
    });
}

#[test]
fn log_is_read_while_it_is_replayed() {
    const BATCH: usize = 64;
    let place = Place::new();
    let fifo = place.path("log");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let server = Server::start(|_| Reply::Bytes(answer("200 OK", "x")));
    let arguments = [&server.url(), "--replay", fifo.to_str().unwrap(), "--json"];
    let child = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut log = std::fs::File::options().write(true).open(&fifo).unwrap();
    for batch in 1..=3 {
        log.write_all(exact(0, "/").repeat(BATCH).as_bytes())
            .unwrap();
        // They are sent while the rest of the log is not even written.
        server.wait_for_requests(batch * BATCH);
    }
    drop(log);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(number(&result, "requests.good"), 3 * BATCH as u64);
}

#[test]
fn run_may_end_before_the_log_does() {
    let place = Place::new();
    let log: String = (0..3000).map(|index| exact(index / 30, "/")).collect();
    place.write("log", &log);
    let server = Server::start(|_| Reply::Bytes(answer("200 OK", "x")));
    let result = replay(&server.url(), &place, &["-n", "100", "-t", "2"]);
    assert_eq!(number(&result, "requests.good"), 100);
    // Shards of it together send all of it, each the other half.
    let shard = |shard| {
        replay(
            &server.url(),
            &place,
            &["--shard", shard, "--speed-up", "10"],
        )
    };
    let (one, other) = (shard("1/2"), shard("2/2"));
    assert_eq!(number(&one, "requests.good"), 1500);
    assert_eq!(number(&other, "requests.good"), 1500);
    // One that does not answer ends when it is told to, though the log goes on.
    let (_keep, clock): (Sender<()>, Receiver<()>) = channel();
    let clock = Mutex::new(clock);
    let slow = Server::start(move |_| {
        let _ = clock
            .lock()
            .unwrap()
            .recv_timeout(Duration::from_millis(20));
        Reply::Never
    });
    let log = place.path("log");
    let run = [&slow.url(), "--replay", log.to_str().unwrap(), "-c", "2"];
    let output = bench(&[&run[..], &["--stop-if", "backlog>100"]].concat());
    assert_eq!(output.status.code(), Some(5), "{}", text_of(&output));
}

#[test]
fn replay_that_makes_no_sense_is_exit_code_2() {
    let place = Place::new();
    place.write("log", "nothing\n");
    place.write("posts", &line(0, "POST / HTTP/1.1", 200));
    let server = Server::start(|_| Reply::Bytes(answer("200 OK", "x")));
    let url = server.url();
    let (log, posts) = (place.path("log"), place.path("posts"));
    let (log, posts) = (log.to_str().unwrap(), posts.to_str().unwrap());
    let path = format!("{url}path");
    for (arguments, says) in [
        (
            &[&url, "--replay", "/nonexistent"][..],
            "--replay /nonexistent: cannot read it",
        ),
        (&[&url, "--replay", "/"], "cannot read it: it is a folder"),
        (
            &[&url, "--replay", log],
            "none of its 1 lines is a request to send; line 1: it has no [",
        ),
        (
            &[&url, "--replay", posts],
            "1 have other methods than GET, HEAD (--replay-methods)",
        ),
        (&[&path, "--replay", log], "paths are those of the log"),
        (
            &[&url, &url, "--replay", log],
            "one URL on the command line",
        ),
        (
            &[&url, "--replay", log, "--rate", "5"],
            "cannot be used with",
        ),
        (
            &[&url, "--replay", log, "--speed-up", "0"],
            "sped up 0.001 to",
        ),
        (
            &[&url, "--replay", log, "--replay-methods", "A B"],
            "is no method",
        ),
        (
            &[&url, "--replay", log, "-X", "PUT"],
            "methods are those of the log",
        ),
        (
            &[&url, "--replay", posts, "--body", posts],
            "--body: none of the methods GET, HEAD has a body (--replay-methods)",
        ),
        (&[&url, "--speed-up", "2"], "--replay <FILE>"),
    ] {
        let output = bench(arguments);
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
}

#[test]
fn run_ends_when_it_is_told_to_though_nothing_comes_of_its_log() {
    let place = Place::new();
    let fifo = place.path("log");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let server = Server::start(|_| Reply::Bytes(answer("200 OK", "x")));
    let arguments = [&server.url(), "--replay", fifo.to_str().unwrap()];
    let child = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut log = std::fs::File::options().write(true).open(&fifo).unwrap();
    log.write_all(exact(0, "/").repeat(64).as_bytes()).unwrap();
    server.wait_for_requests(64);
    send_signal(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    drop(log);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let text = text_of(&output);
    assert!(text.contains("the log was not read to its end: "), "{text}");
}
