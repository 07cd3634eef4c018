//! What clients do besides asking in good order: answers broken off, HEAD among GET.

use std::process::Command;

use serde_json::Value;

use super::harness::{Place, text_of};
use super::schema::conforms;
use super::server::{Reply, Server};
use super::{bench, number, result};

/// A clear listener and one with TLS.
const BOTH: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[listen]]\naddress = \
                    \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n";
/// A file that comes in several pieces.
const PART_BYTES: usize = 256 * 1024;
const PART_SHA256: &str = "44dda7ebc893243eceaeaea5f612685217b6cce475cc21aa73b78ab22a92a592";
/// The most that a read takes with `--vary`.
const PIECE_BYTES: usize = 16 * 1024;
/// Every way that a request travels.
const WAYS: &[(&str, &str)] = &[
    ("http", "1.1"),
    ("https", "1.1"),
    ("http", "2"),
    ("https", "2"),
    ("https", "3"),
];

/// Runs over every protocol: the result of a plan for a file, and the protocol.
fn over_all(file: &str, plan: &[&str], look: impl Fn(&Value, &str)) {
    over(WAYS, file, plan, look);
}

fn over(ways: &[(&str, &str)], file: &str, plan: &[&str], look: impl Fn(&Value, &str)) {
    let place = Place::new();
    place.write(
        "site/part.bin",
        &"0123456789abcde\n".repeat(PART_BYTES / 16),
    );
    let hob = place.serve_text(BOTH);
    for (scheme, version) in ways {
        let port = match *scheme {
            "http" => hob.clear_port(),
            _ => hob.tls_port(),
        };
        let url = format!("{scheme}://127.0.0.1:{port}/{file}");
        let found = result(&[&[url.as_str(), "--http", version], plan].concat());
        look(&found, &format!("{scheme}, {version}: {found:#}"));
    }
    hob.stop();
}

/// The shortest time from when a request was sent to the end of its answer, in microseconds.
fn fastest_us(found: &Value) -> f64 {
    found["latency"]["service"]["min_us"].as_f64().unwrap()
}

/// The same over the protocols whose sockets are read.
fn over_tcp(file: &str, plan: &[&str], look: impl Fn(&Value, &str)) {
    over(&WAYS[..4], file, plan, look);
}

/// The arguments are refused, with this in the message.
fn refused(arguments: &[&str], why: &str) {
    let output = bench(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    assert!(text_of(&output).contains(why), "{}", text_of(&output));
}

#[test]
fn broken_off_requests_are_counted_apart_over_every_protocol() {
    // Short ones too: the client has not looked at the end of an answer that it breaks off.
    for file in ["hello.txt", "part.bin"] {
        over_all(
            file,
            &["--break", "30", "-c", "3", "-n", "100"],
            |found, way| {
                let [broken, good] =
                    ["broken_off", "good"].map(|name| number(found, &format!("requests.{name}")));
                assert!((10..=55).contains(&broken), "{way}");
                assert_eq!(broken + good, 100, "{way}");
                assert_eq!(number(found, "requests.failed"), 0, "{way}");
                assert_eq!(number(found, "latency.response.count"), good, "{way}");
                assert_eq!(found["plan"]["break_percent"], 30.0, "{way}");
            },
        );
    }
}

#[test]
fn all_requests_may_be_broken_off() {
    over_all("part.bin", &["--break", "100", "-n", "20"], |found, way| {
        assert_eq!(number(found, "requests.broken_off"), 20, "{way}");
        assert_eq!(number(found, "requests.answered"), 0, "{way}");
        assert!(found["latency"]["response"].is_null(), "{way}");
    });
}

#[test]
fn same_seed_breaks_the_same_requests_off() {
    let place = Place::new();
    let hob = place.serve_config("");
    let url = format!("http://127.0.0.1:{}/hello.txt", hob.port());
    let broken = |seed: &str| {
        let plan = ["--break", "50", "-c", "1", "-n", "200", "--seed", seed];
        number(
            &result(&[&[url.as_str()], &plan[..]].concat()),
            "requests.broken_off",
        )
    };
    let found = broken("7");
    assert_eq!(broken("7"), found);
    // All of so many seeds at the same count would be no draw.
    assert!(
        ["8", "9", "10", "11", "12"]
            .iter()
            .any(|seed| broken(seed) != found)
    );
    hob.stop();
}

#[test]
fn connection_that_was_broken_off_is_followed_by_another() {
    let server = Server::start(|_| Reply::Bytes(super::answer("200 OK", "hello\n")));
    let found = result(&[&server.url(), "--break", "100", "-c", "1", "-n", "10"]);
    assert_eq!(number(&found, "requests.broken_off"), 10);
    assert_eq!(number(&found, "connections.opened"), 10);
}

#[test]
fn head_is_mixed_in_over_every_protocol() {
    let plan = ["--head", "40", "-c", "3", "-n", "200", "--expect", "size=6"];
    over_all("hello.txt", &plan, |found, way| {
        assert_eq!(number(found, "requests.good"), 200, "{way}");
        let rows = found["urls"].as_array().unwrap();
        let of = |method: &str| {
            let row = rows.iter().find(|row| row["method"] == method).unwrap();
            number(row, "answered")
        };
        assert!((45..=115).contains(&of("HEAD")), "{way}");
        assert_eq!(of("GET") + of("HEAD"), 200, "{way}");
        assert_eq!(number(found, "bytes.bodies"), 6 * of("GET"), "{way}");
        assert_eq!(found["plan"]["head_percent"], 40.0, "{way}");
    });
    over_all("hello.txt", &["--head", "100", "-n", "20"], |found, way| {
        assert_eq!(number(found, "bytes.bodies"), 0, "{way}");
        assert_eq!(number(found, "requests.good"), 20, "{way}");
    });
}

#[test]
fn answer_to_head_with_a_body_is_malformed() {
    let server = Server::start(|_| Reply::Bytes(super::answer("200 OK", "hello\n")));
    let output = bench(&[&server.url(), "--head", "100", "-c", "1", "-n", "3"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    assert!(text_of(&output).contains("malformed: the answer to HEAD has a body"));
}

#[test]
fn answers_are_read_no_faster_than_asked_for_over_every_protocol_of_tcp() {
    // What is read last is waited for no more.
    let (rate, last) = (1_000_000, 1_000_000 / 20);
    let least_us = ((PART_BYTES as u64 - last) * 1_000_000 / rate) as f64;
    let plan = ["--read-rate", "1M", "-c", "3", "-n", "6"];
    over_tcp("part.bin", &plan, |found, way| {
        assert_eq!(number(found, "requests.good"), 6, "{way}");
        let fastest = fastest_us(found);
        assert!(fastest >= least_us, "{way}");
        assert_eq!(found["plan"]["read_rate"], rate, "{way}");
    });
}

#[test]
fn server_that_ends_the_connection_is_read_slowly_to_the_end() {
    let body = "0123456789abcdef".repeat(2048);
    let answer = format!("HTTP/1.0 200 OK\r\n\r\n{body}");
    let server = Server::start(move |_| Reply::Last(answer.clone().into_bytes()));
    let plan = [
        "--read-rate",
        "200k",
        "-c",
        "1",
        "-n",
        "2",
        "--expect",
        "size=32768",
    ];
    let found = result(&[&[server.url().as_str()], &plan[..]].concat());
    assert_eq!(number(&found, "requests.good"), 2, "{found:#}");
    let fastest = fastest_us(&found);
    assert!(fastest >= f64::from((32_768 - 10_000) * 5), "{found:#}");
}

#[test]
fn answers_read_in_pieces_of_random_sizes_are_whole() {
    let sha256 = format!("sha256={PART_SHA256}");
    let plan = ["--vary", "-c", "3", "-n", "30", "--expect", &sha256];
    over_tcp("part.bin", &plan, |found, way| {
        assert_eq!(number(found, "requests.good"), 30, "{way}");
        assert_eq!(found["plan"]["vary"], true, "{way}");
    });
}

#[test]
fn no_read_takes_more_than_a_piece() {
    const COUNT: usize = 5;
    let place = Place::new();
    place.write("site/part.bin", &"x".repeat(PART_BYTES));
    let hob = place.serve_config("");
    let url = format!("http://127.0.0.1:{}/part.bin", hob.port());
    let calls = place.path("calls");
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-e", "trace=recvfrom", "-o"])
        .arg(&calls);
    traced.args([
        env!("CARGO_BIN_EXE_hob"),
        "bench",
        &url,
        "--vary",
        "-c",
        "1",
    ]);
    let output = traced.args(["-n", &COUNT.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    let calls = std::fs::read_to_string(calls).unwrap();
    let results = calls.lines().filter_map(|line| line.rsplit_once(" = "));
    let read: Vec<usize> = results
        .filter_map(|(_, count)| count.parse().ok())
        .collect();
    assert!(read.iter().all(|count| *count <= PIECE_BYTES), "{calls}");
    assert!(read.len() >= COUNT * PART_BYTES / PIECE_BYTES, "{calls}");
    hob.stop();
}

#[test]
fn what_clients_cannot_do_is_refused() {
    let url = "http://127.0.0.1:1/";
    for flag in ["--break", "--head"] {
        refused(&[url, flag, "101"], "a percentage from 0 to 100");
        refused(&[url, flag, "few"], "a percentage from 0 to 100");
        refused(
            &[url, flag, "5", "--page"],
            "pages are loaded as browsers do it",
        );
    }
    refused(&[url, "--head", "5", "--method", "POST"], "none with GET");
    for rate in ["0", "fast", "64K"] {
        refused(&[url, "--read-rate", rate], "no number of bytes per second");
    }
    let quic = ["https://127.0.0.1:1/", "--http", "3"];
    for flags in [&["--read-rate", "64k"][..], &["--vary"]] {
        refused(&[&quic, flags].concat(), "sockets of TCP");
    }
    let place = Place::new();
    place.write("access.log", "");
    let log = place.path("access.log");
    let log = log.to_str().unwrap();
    refused(&[url, "--head", "5", "--replay", log], "leave --head out");
}

#[test]
fn result_of_acts_conforms_to_the_schema() {
    let place = Place::new();
    let hob = place.serve_config("");
    let url = format!("http://127.0.0.1:{}/hello.txt", hob.port());
    let schema = bench(&["--schema"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let found = result(&[&url, "--break", "10", "--head", "10", "-n", "50"]);
    conforms(&found, &schema, &schema, "result");
    let output = bench(&[&url, "--break", "100", "-n", "5"]);
    assert!(
        text_of(&output).contains("0 failed, 5 broken off"),
        "{}",
        text_of(&output)
    );
    hob.stop();
}
