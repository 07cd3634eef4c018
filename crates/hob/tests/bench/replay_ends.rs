//! How a replay ends, and what it tells then: logs shorter than the time asked for, logs that say
//! nothing more, logs that break off, and logs of which nothing was due.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use flate2::write::GzEncoder;
use rustix::process::Signal;
use serde_json::Value;

use super::harness::{Place, send_signal, text_of};
use super::replay::{exact, line, replay};
use super::server::{Reply, Server, answer};
use super::{bench, command, number};

fn server() -> Server {
    Server::start(|_| Reply::Bytes(answer("200 OK", "x")))
}

/// A run whose log is a pipe that stays open.
fn begin(server: &Server, place: &Place, more: &[&str]) -> (Child, File) {
    let fifo = place.path("log");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let arguments = [&server.url(), "--replay", fifo.to_str().unwrap(), "--json"];
    let child = command(&[&arguments, more].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = File::options().write(true).open(&fifo).unwrap();
    (child, log)
}

fn ended(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn notes(result: &Value) -> String {
    result["notes"].to_string()
}

#[test]
fn rates_are_of_the_time_the_log_lasts_and_not_of_the_time_it_might() {
    let place = Place::new();
    let log: String = (0..=50).map(|index| exact(index * 10, "/")).collect();
    place.write("log", &log);
    let server = server();
    // Within an hour they would be far less than one a second.
    let more = ["--for", "1h", "--fail-if", "rate<0.1"];
    let result = replay(&server.url(), &place, &more);
    assert_eq!(number(&result, "requests.good"), 51);
    let elapsed = result["elapsed_s"].as_f64().unwrap();
    assert!((0.5..510.0).contains(&elapsed), "{elapsed}");
    let offered = result["rate"]["offered_per_s"].as_f64().unwrap();
    assert!((offered - 102.0).abs() < 0.01, "{offered}");
}

#[test]
fn silent_log_does_not_keep_a_run_beyond_its_time() {
    let place = Place::new();
    let server = server();
    let (child, mut log) = begin(&server, &place, &["--for", "2s"]);
    log.write_all(exact(0, "/").repeat(10).as_bytes()).unwrap();
    let result = ended(child);
    drop(log);
    assert_eq!(number(&result, "replay.lines"), 10, "{result:#}");
    assert_eq!(number(&result, "replay.requests"), 10);
    // It has lasted as long as it should have, though the log did not end.
    assert!(result["elapsed_s"].as_f64().unwrap() >= 2.0);
    assert_eq!(number(&result, "requests.good"), 10);
}

#[test]
fn line_of_a_log_that_is_being_written_is_sent_before_the_next_one_comes() {
    let place = Place::new();
    let server = server();
    let (child, mut log) = begin(&server, &place, &["-t", "2", "-c", "2"]);
    for index in 0..5 {
        log.write_all(exact(index, "/").as_bytes()).unwrap();
        server.wait_for_requests(index as usize + 1);
    }
    send_signal(child.id(), Signal::INT);
    let result = ended(child);
    drop(log);
    // What was read is told, though the log had not ended.
    assert_eq!(number(&result, "replay.lines"), 5, "{result:#}");
    assert_eq!(result["replay"]["span_s"], 0.004);
    assert!(notes(&result).contains("the log was not read to its end: "));
}

#[test]
fn log_that_breaks_off_is_a_doubt_unless_the_run_was_over_before() {
    let place = Place::new();
    let mut packed = GzEncoder::new(Vec::new(), Default::default());
    let log: String = (0..200).map(|index| exact(index, "/")).collect();
    packed.write_all(log.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    // All of its text is there, its checksum is not.
    std::fs::write(place.path("log"), &packed[..packed.len() - 4]).unwrap();
    let server = server();
    for more in [&[][..], &["--for", "1h"]] {
        let result = replay(&server.url(), &place, more);
        assert_eq!(number(&result, "requests.good"), 200);
        assert_eq!(result["doubtful"], true, "{result:#}");
        assert!(notes(&result).contains("the log breaks off: after 200 lines: "));
    }
    let result = replay(&server.url(), &place, &["-n", "100"]);
    assert!(!notes(&result).contains("breaks off"), "{result:#}");
}

#[test]
fn requests_that_were_not_due_in_the_measured_time_are_told_apart_from_none() {
    let place = Place::new();
    place.write("log", &[exact(0, "/"), exact(1, "/")].concat());
    let server = server();
    let log = place.path("log");
    let run = [&server.url(), "--replay", log.to_str().unwrap()];
    let output = bench(&[&run[..], &["--warm-up", "300ms"]].concat());
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("none of its 2 requests was due in the measured time"),
        "{text}"
    );
}

#[test]
fn time_that_leaps_forward_is_not_waited_for() {
    let place = Place::new();
    let years_later = exact(0, "/b").replace("2026-", "2096-");
    let log = [exact(0, "/a"), years_later, exact(5, "/c")].concat();
    place.write("log", &log);
    let server = server();
    let result = replay(&server.url(), &place, &[]);
    assert_eq!(number(&result, "requests.good"), 3);
    // There and back again.
    assert_eq!(number(&result, "replay.jumps"), 2, "{result:#}");
}

#[test]
fn long_body_follows_every_head_of_a_replay() {
    let place = Place::new();
    let body: Vec<u8> = (0..300_000_u32).map(|index| (index % 251) as u8).collect();
    std::fs::write(place.path("body"), &body).unwrap();
    let log: String = (0..6)
        .map(|index| line(0, &format!("POST /{index} HTTP/1.1"), 200))
        .collect();
    place.write("log", &log);
    let server = server();
    let file = place.path("body");
    let more = ["--replay-methods", "POST", "--body", file.to_str().unwrap()];
    let result = replay(&server.url(), &place, &[&more[..], &["-c", "2"]].concat());
    assert_eq!(number(&result, "requests.good"), 6, "{result:#}");
    server.seen(|seen| {
        assert_eq!(seen.requests.len(), 6);
        assert!(seen.requests.iter().all(|(_, heard)| *heard == body));
    });
}
