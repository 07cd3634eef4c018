//! What `hob bench` makes of its results: pages, logs of histograms, one result of several shards,
//! comparisons; what ends a run early; what a terminal shows.
#![allow(clippy::unwrap_used)]

#[path = "bench/schema.rs"]
mod schema;
#[path = "bench_report/several.rs"]
mod several;
// Parts of it are for other tests.
#[allow(dead_code)]
#[path = "bench/server.rs"]
mod server;
#[path = "bench_report/terminal.rs"]
mod terminal;

mod harness;

use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use harness::{Place, text_of};
use serde_json::{Value, json};
use server::{Reply, Server, answer};

/// SHA-256 of `hello\n`.
const HELLO_HASH: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hob"));
    command.arg("bench").args(arguments).stdin(Stdio::null());
    command
}

fn bench(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// What a run prints that ends with this code.
fn said(code: i32, arguments: &[&str]) -> String {
    let output = bench(arguments);
    assert_eq!(output.status.code(), Some(code), "{}", text_of(&output));
    text_of(&output)
}

/// The result of a run that ends with this code.
fn result(code: i32, arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", text_of(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn hello() -> Server {
    Server::start(|_| Reply::Bytes(answer("200 OK", "hello\n")))
}

#[test]
fn page_says_what_came_of_it_and_takes_no_markup_from_outside() {
    let server = Server::start(|number| match number % 2 {
        0 => Reply::Bytes(answer("200 OK", "hello\n")),
        _ => Reply::Bytes(answer("404 No", "")),
    });
    let place = Place::new();
    let path = place.path("report.html");
    let url = format!("{}?<script>alert(1)</script>", server.url());
    let flags = ["-n", "40", "--rate", "1000", "--fail-if", "errors>10%"];
    let file = [
        "--html",
        path.to_str().unwrap(),
        "--expect",
        "header=x:<script>",
    ];
    let text = said(4, &[&[url.as_str()], &flags[..], &file].concat());
    assert!(text.contains("FAILED: errors>10% is 100.000 %"), "{text}");
    let page = std::fs::read_to_string(&path).unwrap();
    for wanted in [
        "Load test of http://127.0.0.1:",
        "Failed: errors&gt;10% is 100.000 %.",
        "40 of 40 requests failed (100.00 %)",
        "Times by percentile",
        "response, from when it was due",
        "Failures by kind",
        "header=x:&lt;script&gt;",
        "<summary>The run, the machine and its limits</summary>",
        "hob 0.",
        "--fail-if &#39;errors&gt;10%&#39;",
    ] {
        assert!(page.contains(wanted), "no {wanted:?} in {page}");
    }
    assert!(!page.contains("<script"), "{page}");
    let wrong = said(2, &[&server.url(), "--html", "/nonexistent/a.html"]);
    assert!(
        wrong.contains("--html /nonexistent/a.html: this is no place for a file"),
        "{wrong}"
    );
}

/// Reads a log of histograms with nothing but Python's own library: counts by tag, and the
/// highest value of each tag in nanoseconds.
const READER: &str = r#"
import base64, json, struct, sys, zlib
def varints(data):
    at = 0
    while at < len(data):
        value = shift = 0
        for index in range(9):
            byte = data[at]; at += 1
            value |= (byte if index == 8 else byte & 127) << shift
            shift += 7
            if index == 8 or byte < 128: break
        yield (value >> 1) ^ -(value & 1)
tags = {}
for line in open(sys.argv[1]):
    if not line.startswith("Tag="): continue
    tag, start, length, most, text = line.strip()[4:].split(",")
    cookie, size = struct.unpack(">II", base64.b64decode(text)[:8])
    data = zlib.decompress(base64.b64decode(text)[8:8 + size])
    inner, size, offset, digits, low, high, ratio = struct.unpack(">IIIIQQd", data[:40])
    assert (cookie, inner, offset, ratio) == (0x1c849314, 0x1c849313, 0, 1.0)
    assert size == len(data) - 40
    half = 1 << ((2 * 10 ** digits - 1).bit_length() - 1)
    unit, index, count, highest = low.bit_length() - 1, 0, 0, 0
    for number in varints(data[40:]):
        if number < 0: index -= number; continue
        row = index // half
        sub, shift = (index, 0) if row == 0 else (index % half + half, row - 1)
        if number: highest = ((sub + 1) << (shift + unit)) - 1
        count += number; index += 1
    entry = tags.setdefault(tag, [0, 0])
    entry[0] += count; entry[1] = max(entry[1], highest)
print(json.dumps(tags))
"#;

#[test]
fn hdr_log_holds_all_times_for_who_reads_its_format() {
    let server = hello();
    let place = Place::new();
    let log = place.path("times.hlog");
    let log = log.to_str().unwrap();
    let run = result(
        0,
        &[&server.url(), "-n", "300", "--rate", "1000", "--hdr", log],
    );
    let read = Command::new("python3")
        .args(["-c", READER, log])
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", text_of(&read));
    let tags: Value = serde_json::from_slice(&read.stdout).unwrap();
    for tag in ["response", "interval", "service"] {
        assert_eq!(tags[tag][0], 300, "{tags}");
    }
    let most = run["latency"]["response"]["max_us"].as_f64().unwrap() * 1e3;
    let found = tags["response"][1].as_f64().unwrap();
    assert!((found / most - 1.0).abs() < 0.001, "{found} {most}");
    let text = place.path("times.hgrm");
    said(
        0,
        &[&server.url(), "-n", "300", "--hdr", text.to_str().unwrap()],
    );
    let text = std::fs::read_to_string(text).unwrap();
    assert!(text.contains(" 1.000000000000        300\n"), "{text}");
    assert!(text.contains("Total count    =          300]"), "{text}");
}

#[test]
fn body_is_checked_by_its_hash_however_it_comes() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n4;x\r\nllo\n\r\n0\r\n\r\n";
    let until_end = b"HTTP/1.0 200 OK\r\n\r\nhello\n";
    let server = Server::start(move |number| match number % 3 {
        0 => Reply::Bytes(answer("200 OK", "hello\n")),
        1 => Reply::Bytes(chunked.to_vec()),
        _ => Reply::Last(until_end.to_vec()),
    });
    let hash = format!("sha256={HELLO_HASH}");
    let run = result(0, &[&server.url(), "-n", "9", "-c", "1", "--check", &hash]);
    assert_eq!(run["requests"]["good"], 9, "{run:#}");
    assert_eq!(run["plan"]["expectations"], json!([hash]));
    let wrong = format!("sha256={}", HELLO_HASH.replace("58", "59"));
    let run = result(
        0,
        &[&server.url(), "-n", "9", "-c", "1", "--expect", &wrong],
    );
    let failure = &run["failures"][0];
    assert_eq!(
        (&failure["kind"], &failure["count"]),
        (&json!("hash"), &json!(9))
    );
    assert_eq!(failure["first"], hash.as_str());
    // Longer than what is skipped in the kernel where nobody asks for a hash.
    let place = Place::new();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n",
    );
    let url = format!("https://127.0.0.1:{}/big.bin", hob.tls_port());
    let sum = Command::new("sha256sum")
        .arg(place.path("site/big.bin"))
        .output()
        .unwrap();
    let hash = format!("sha256={}", text_of(&sum).split(' ').next().unwrap());
    for protocol in ["1", "2", "3"] {
        let http = ["--http", protocol, "-n", "2", "-c", "1"];
        let run = result(0, &[&[url.as_str(), "--expect", &hash], &http[..]].concat());
        assert_eq!(run["requests"]["good"], 2, "{run:#}");
        let run = result(
            0,
            &[&[url.as_str(), "--expect", &wrong], &http[..]].concat(),
        );
        assert_eq!(run["failures"][0]["kind"], "hash", "{run:#}");
    }
    hob.stop();
}

#[test]
fn run_ends_early_when_the_server_falls_behind() {
    let server = Server::start(|number| match number {
        0 => Reply::Bytes(answer("200 OK", "")),
        _ => Reply::Never,
    });
    let url = server.url();
    let flags = [
        "--rate",
        "1000",
        "-c",
        "1",
        "--for",
        "1h",
        "--timeout",
        "1h",
    ];
    let stop = ["--warm-up", "0s", "--stop-if", "backlog>50"];
    let arguments = [&[url.as_str()], &flags[..], &stop].concat();
    let run = result(5, &arguments);
    let stopped = run["stopped"].as_str().unwrap();
    assert!(stopped.starts_with("backlog>50: "), "{stopped}");
    assert!(
        stopped.ends_with("requests were due and waited for a connection"),
        "{stopped}"
    );
    assert_eq!(run["interrupted"], false);
    let text = said(5, &arguments);
    assert!(text.contains(", then ended early\n"), "{text}");
    assert!(
        text.contains("note: the run was ended early: backlog>50: "),
        "{text}"
    );
    let failing = Server::start(|_| Reply::Bytes(answer("503 No", "")));
    let run = result(
        5,
        &[&failing.url(), "--for", "1h", "--stop-if", "errors>20"],
    );
    assert!(run["requests"]["failed"].as_u64().unwrap() > 20);
    let wrong = said(2, &[&url, "--stop-if", "p99>5"]);
    assert!(
        wrong.contains("ends no run; write backlog>COUNT"),
        "{wrong}"
    );
}

#[test]
fn control_group_is_put_beside_the_result() {
    let place = Place::new();
    std::fs::create_dir(place.path("group")).unwrap();
    place.write("group/cpu.stat", "usage_usec 1000\n");
    place.write("group/memory.current", "4096\n");
    let file = place.path("group/cpu.stat");
    // The group uses 40 ms in the time of the run, however long that is.
    let server = Server::start(move |number| {
        if number == 5 {
            std::fs::write(&file, "usage_usec 41000\n").unwrap();
        }
        Reply::Bytes(answer("200 OK", ""))
    });
    let group = place.path("group");
    let url = server.url();
    let arguments = [
        &url,
        "-n",
        "20",
        "-c",
        "1",
        "--cgroup",
        group.to_str().unwrap(),
    ];
    let run = result(0, &[&arguments[..], &["--fail-if", "cpu>1s"]].concat());
    assert_eq!(run["server"]["cgroup_cpu_us_per_request"], 2000.0);
    assert_eq!(run["server"]["cgroup_memory_bytes"], 4096);
    assert_eq!(run["thresholds"][0]["value"], 2e6);
    let wrong = said(2, &[&url, "--cgroup", "nobody.slice"]);
    assert!(
        wrong.contains("nobody.slice: no control group with CPU accounting"),
        "{wrong}"
    );
}

#[test]
fn plain_view_is_a_line_a_second() {
    let answered = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        answered.fetch_add(1, Ordering::Relaxed);
        Reply::Bytes(answer("200 OK", ""))
    });
    let flags = [
        "--plain",
        "--for",
        "1500ms",
        "--warm-up",
        "0s",
        "--think",
        "20ms",
    ];
    let output = bench(&[&[server.url().as_str()], &flags[..]].concat());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains(" of 2 s, ") && text.contains(" answered, 0 failed"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text:?}");
}

/// Answers at once, but for one second in which it does nothing.
fn stalling() -> Server {
    let stalled = Mutex::new(false);
    let begun = Instant::now();
    Server::start(move |_| {
        let mut stalled = stalled.lock().unwrap();
        if !*stalled && begun.elapsed() > Duration::from_millis(1200) {
            *stalled = true;
            // Others wait for the lock meanwhile.
            let (_keep, clock) = channel::<()>();
            let _ = clock.recv_timeout(Duration::from_secs(1));
        }
        Reply::Bytes(answer("200 OK", ""))
    })
}

#[test]
fn server_that_stalls_for_a_second_is_told_of_and_requests_due_meanwhile_waited_for_it() {
    for pace in [&["--rate", "200"][..], &["--think", "5ms"]] {
        let server = stalling();
        let flags = [
            "-c",
            "4",
            "--for",
            "4s",
            "--warm-up",
            "0s",
            "--plain",
            "--json",
        ];
        let output = bench(&[&[server.url().as_str()], &flags[..], pace].concat());
        let lines = String::from_utf8(output.stderr).unwrap();
        assert!(lines.contains(", no answer for "), "{lines}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        if pace[0] == "--rate" {
            // About 200 were due meanwhile; a request that waited is not counted as late as well.
            let waited = result["requests"]["waited"].as_u64().unwrap();
            assert!(waited > 100, "{result:#}");
        }
    }
}
