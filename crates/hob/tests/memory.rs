//! Memory of the server while clients take much, or nothing: it stays what it was.
//!
//! `bench/memory` does the same with ten gigabytes and a thousand readers.
#![allow(clippy::unwrap_used)]

mod harness;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use harness::client::get;
use harness::{Hob, Place, status_line, text_of};

const DOWNLOAD_BYTES: u64 = 200_000_000;
/// What aioquic takes in two seconds.
const DOWNLOAD_H3_BYTES: u64 = 20_000_000;
/// How often the server's memory is looked at in between.
const LOOK_BYTES: u64 = 4_000_000;
const READER_COUNT: usize = 100;
/// Above what all connections, threads and caches hold anyway.
const DOWNLOAD_GROWTH_BYTES_MAX: u64 = 12 << 20;
/// Held for a reader at most, by a server without optimisation and with its room to spare.
const READER_BYTES_MAX: u64 = 160 << 10;
/// Of 900 connections, each of which has some 23 KiB while it lasts and for a moment after.
const ENDED_GROWTH_BYTES_MAX: u64 = 8 << 20;

const CONFIG: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[listen]]\naddress = \
    \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n";

fn serve(place: &Place) -> Hob {
    for (name, bytes) in [("long.bin", DOWNLOAD_BYTES), ("h3.bin", DOWNLOAD_H3_BYTES)] {
        place.write(&format!("site/{name}"), "");
        let file = std::fs::File::options();
        let file = file
            .clone()
            .write(true)
            .open(place.path(&format!("site/{name}")));
        file.unwrap().set_len(bytes).unwrap();
    }
    let hob = place.serve_text(CONFIG);
    hob.wait_for("listening on https://");
    hob
}

/// What is the server's own: no files, no program.
fn memory_of(hob: &Hob) -> u64 {
    let line = status_line(hob.server(), "RssAnon");
    let kib = line.strip_suffix(" kB").unwrap().parse::<u64>().unwrap();
    kib << 10
}

fn curl(hob: &Hob, protocol: &str, path: &str) -> Command {
    let address = match protocol {
        "h1" => format!("http://127.0.0.1:{}{path}", hob.port()),
        _ => format!("https://127.0.0.1:{}{path}", hob.tls_port()),
    };
    let mut command = Command::new("curl");
    command.args(["-q", "-sSk", "--noproxy", "*"]);
    command.arg(match protocol {
        "h2" => "--http2",
        _ => "--http1.1",
    });
    command.arg(address);
    command
}

/// The most memory the server has while a command prints what it fetches, which must be so much.
fn peak_while(hob: &Hob, mut command: Command, bytes: u64) -> u64 {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let (mut piece, mut count, mut next_look) = (vec![0; 1 << 20], 0, 0);
    let mut peak = 0;
    loop {
        if count >= next_look {
            peak = peak.max(memory_of(hob));
            next_look += LOOK_BYTES;
        }
        match output.read(&mut piece).unwrap() as u64 {
            0 => break,
            len => count += len,
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(count, bytes);
    peak.max(memory_of(hob))
}

/// False, with a line that says why, where the client for HTTP/3 cannot be had.
fn has_aioquic() -> bool {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3/client.py");
    let install = Command::new("python3")
        .args([client, "install"])
        .output()
        .unwrap();
    if !install.status.success() {
        println!(
            "skipped over HTTP/3: aioquic cannot be installed: {}",
            text_of(&install)
        );
    }
    install.status.success()
}

fn aioquic(script: &str) -> Command {
    let python = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/aioquic/bin/python"
    );
    let mut command = Command::new(python);
    command.arg(format!("{}/tests/{script}", env!("CARGO_MANIFEST_DIR")));
    command
}

#[test]
fn long_downloads_need_no_more_memory_than_short_ones() {
    let place = Place::new();
    let hob = serve(&place);
    for protocol in ["h1", "tls", "h2"] {
        peak_while(&hob, curl(&hob, protocol, "/hello.txt"), 6);
        let before = memory_of(&hob);
        let peak = peak_while(&hob, curl(&hob, protocol, "/long.bin"), DOWNLOAD_BYTES);
        let grown = peak.saturating_sub(before);
        assert!(grown < DOWNLOAD_GROWTH_BYTES_MAX, "{protocol}: {grown}");
    }
    if has_aioquic() {
        let take = |path: &str| {
            let mut command = aioquic("h3/client.py");
            command.args([&hob.tls_port().to_string(), "whole", path]);
            command
        };
        peak_while(&hob, take("/hello.txt"), 6);
        let before = memory_of(&hob);
        let peak = peak_while(&hob, take("/h3.bin"), DOWNLOAD_H3_BYTES);
        let grown = peak.saturating_sub(before);
        assert!(grown < DOWNLOAD_GROWTH_BYTES_MAX, "h3: {grown}");
    }
    hob.stop();
}

#[test]
fn connections_over_http3_leave_nothing_when_they_have_ended() {
    let place = Place::new();
    let hob = serve(&place);
    let url = format!("https://127.0.0.1:{}/hello.txt", hob.tls_port());
    let grown_after = |count: &str| {
        let before = memory_of(&hob);
        let arguments = ["--http", "3", "--close", "-c", "1", "-n", count];
        let mut bench = Command::new(env!("CARGO_BIN_EXE_hob"));
        bench
            .args(["bench", &url])
            .args(arguments)
            .stdout(Stdio::null());
        assert!(bench.status().unwrap().success());
        memory_of(&hob).saturating_sub(before)
    };
    // What is kept for later ones comes with the first.
    grown_after("100");
    let grown = grown_after("900");
    assert!(grown < ENDED_GROWTH_BYTES_MAX, "{grown}");
    hob.stop();
}

/// Clients that have asked and take no more.
struct Readers(Child);

impl Readers {
    fn begin(hob: &Hob, protocol: &str) -> Readers {
        let port = match protocol {
            "h1" => hob.port(),
            _ => hob.tls_port(),
        };
        let mut command = aioquic("memory/readers.py");
        if protocol != "h3" {
            command = Command::new("python3");
            command.arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/memory/readers.py"
            ));
        }
        command.args([
            protocol,
            &port.to_string(),
            &READER_COUNT.to_string(),
            "/long.bin",
        ]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut readers = Readers(child.unwrap());
        let mut line = String::new();
        let output = readers.0.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n", "{protocol}");
        readers
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        // They say goodbye, or the server would wait for them when it stops.
        drop(self.0.stdin.take());
        if !std::thread::panicking() && self.0.wait().is_ok() {
            return;
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn readers_that_take_nothing_hold_little_and_no_one_else_up() {
    let place = Place::new();
    let hob = serve(&place);
    let protocols = match has_aioquic() {
        true => &["h1", "tls", "h2", "h3"][..],
        false => &["h1", "tls", "h2"],
    };
    for protocol in protocols {
        let before = memory_of(&hob);
        let readers = Readers::begin(&hob, protocol);
        for _ in 0..200 {
            assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
        }
        let each = memory_of(&hob).saturating_sub(before) / READER_COUNT as u64;
        assert!(each < READER_BYTES_MAX, "{protocol}: {each} bytes each");
        drop(readers);
    }
    hob.stop();
}
