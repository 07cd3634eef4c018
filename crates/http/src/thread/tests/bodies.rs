//! Bodies both ways: large ones, slow ones, and those that come out of memory, files and pipes.

use std::io::Write;
use std::sync::atomic::Ordering;

use hob_trace::{Fault, Outcome};

use super::client::Client;
use super::dummy::{pattern, pattern_byte};
use super::{Running, serve};
use crate::deadline::Deadline;
use crate::limits::{BODY_WINDOW_BYTES, HttpLimits, OUT_WINDOW_BYTES};

const HUGE: usize = 100 * 1024 * 1024;

fn any_body() -> HttpLimits {
    HttpLimits {
        body_bytes: u64::MAX,
        ..HttpLimits::default()
    }
}

/// Sends `len` bytes of pattern from a thread of its own.
fn send_pattern(client: &Client, len: usize) -> std::thread::JoinHandle<()> {
    let mut writer = client.stream.try_clone().unwrap();
    std::thread::spawn(move || {
        let block = pattern(251 * 1024);
        let mut left = len;
        while left > 0 {
            let here = left.min(block.len());
            writer.write_all(&block[..here]).unwrap();
            left -= here;
        }
    })
}

#[test]
fn a_huge_request_body_is_read_within_a_window() {
    let server = serve(any_body());
    let mut client = server.connect();
    client.post("/count", HUGE);
    let sender = send_pattern(&client, HUGE);
    assert_eq!(client.answer().text(), HUGE.to_string());
    sender.join().unwrap();
    assert_eq!(client.ask("/ready").text(), "ready");
    let held = server.probe.held_max.load(Ordering::Relaxed);
    assert!(held <= BODY_WINDOW_BYTES + 4096, "{held}");
}

#[test]
fn a_handler_that_pauses_holds_the_client_back() {
    let server = serve(any_body());
    let mut client = server.connect();
    client.post("/slow-count", HUGE);
    let sender = send_pattern(&client, HUGE);
    assert_eq!(server.note(), "waiting");
    server.ask_until(|thread| {
        let conn = thread.seats.iter().next().unwrap();
        let request = conn.request.as_ref().unwrap();
        let held = request.exchange.body.borrow().held_bytes;
        assert!(held < BODY_WINDOW_BYTES + 4096, "{held}");
        assert!(conn.carry.len() <= BODY_WINDOW_BYTES);
        let is_full = held >= BODY_WINDOW_BYTES;
        if is_full {
            assert_eq!(
                conn.core.deadline().1,
                Deadline::None,
                "the client is not late"
            );
        }
        is_full
    });
    server.gate().open();
    assert_eq!(client.answer().text(), HUGE.to_string());
    sender.join().unwrap();
}

#[test]
fn bodies_arrive_whole_however_they_are_framed_and_cut() {
    let server = serve(any_body());
    let mut client = server.connect();
    client.post_chunked("/echo");
    for size in [1usize, 10, 4096, 65_536, 65_537, 100_000, 3] {
        client.send(&format!("{size:x};x=y\r\n"));
        client.stream.write_all(&pattern(size as u64)).unwrap();
        client.send("\r\n");
    }
    client.send("0\r\n\r\n");
    let sizes = [1u64, 10, 4096, 65_536, 65_537, 100_000, 3];
    let expected: Vec<u8> = sizes.iter().flat_map(|size| pattern(*size)).collect();
    assert!(client.answer().body == expected);
    // Sizes around the window, where the end comes without a byte.
    for len in [65_535, 65_536, 65_537, 131_072, 131_073, 69_632] {
        client.post("/echo", len);
        client.stream.write_all(&pattern(len as u64)).unwrap();
        assert!(client.answer().body == pattern(len as u64), "{len}");
    }
}

#[test]
fn a_body_flows_in_while_the_answer_flows_out() {
    let server = serve(any_body());
    let mut client = server.connect();
    client.post("/echo-stream", 5_000_000);
    let sender = send_pattern(&client, 5_000_000);
    let answer = client.answer();
    assert_eq!(answer.body.len(), 5_000_000);
    assert!(
        (0..)
            .zip(&answer.body)
            .all(|(at, byte)| *byte == pattern_byte(at))
    );
    sender.join().unwrap();
}

#[test]
fn a_huge_stream_is_made_as_fast_as_it_is_taken() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get(&format!("/stream?{HUGE}"));
    assert!(client.head().contains("chunked"));
    server.ask_until(|thread| {
        let conn = thread.seats.iter().next().unwrap();
        let held = conn.out.held_bytes;
        assert!(
            held <= OUT_WINDOW_BYTES + OUT_WINDOW_BYTES / 4 + 64,
            "{held}"
        );
        // The client takes nothing: sooner or later the kernel is full, and nothing more is made.
        conn.core.deadline().1 == Deadline::Write
    });
    assert!(server.probe.produced.load(Ordering::Relaxed) < HUGE as u64 / 2);
    let mut sum = 0;
    loop {
        let line = client.take_line();
        let size = usize::from_str_radix(&line, 16).unwrap();
        let bytes = client.take(size + 2);
        if size == 0 {
            break;
        }
        assert_eq!(bytes[0], pattern_byte(sum as u64));
        sum += size;
    }
    assert_eq!(sum, HUGE);
    assert_eq!(client.ask("/ready").text(), "ready");
    let finished = server.finished();
    assert_eq!(finished.body_bytes_out, HUGE as u64);
    assert!(finished.first_byte_us < finished.total_us, "{finished:?}");
}

#[test]
fn regions_are_given_back_once_their_bytes_are_out() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    for len in [1, 8192, 8193, 3_000_000] {
        assert!(
            client.ask(&format!("/region?{len}")).body == pattern(len),
            "{len}"
        );
        assert_eq!(server.note(), "region back");
    }
    let answer = client.ask("/regions?40");
    let expected: Vec<u8> = (0..40)
        .flat_map(|at| pattern(if at % 2 == 1 { 50_000 } else { 500 }))
        .collect();
    assert!(answer.body == expected);
    for _ in 0..40 {
        assert_eq!(server.note(), "region back");
    }
}

#[test]
fn the_last_bytes_of_a_region_are_not_held_back() {
    const LEN: u64 = 40_000;
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    // The first answers of a connection are sent without delay in any case.
    for _ in 0..4 {
        client.get(&format!("/region?{LEN}"));
        // The kernel has all of it, and on this machine whatever it sends has arrived at once.
        assert_eq!(server.note(), "region back");
        assert!(client.waiting_bytes() > LEN);
        assert!(client.answer().body == pattern(LEN));
    }
}

#[test]
fn a_region_is_given_back_when_the_client_leaves() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/region?30000000");
    client.take(100_000);
    assert_eq!(server.probe.regions.load(Ordering::Relaxed), 1);
    client.reset();
    assert_eq!(server.note(), "region back");
    assert_eq!(server.finished().outcome, Outcome::ClientLeft);
}

#[test]
fn pipes_are_sent_to_their_end_or_their_size() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    for len in [0u64, 1, 65_536, 1_000_000] {
        let answer = client.ask(&format!("/pipe?{len}"));
        assert!(answer.head.contains("chunked"));
        assert!(answer.body == pattern(len), "{len}");
        let answer = client.ask(&format!("/sized-pipe?{len}"));
        assert!(answer.head.contains(&format!("Content-Length: {len}\r\n")));
        assert!(answer.body == pattern(len), "{len}");
    }
    // More than announced is left in the pipe.
    assert!(client.ask("/long-pipe?1000").body == pattern(1000));
    assert_eq!(client.ask("/ready").text(), "ready");
    client.get("/short-pipe?1000");
    assert!(client.head().contains("Content-Length: 2000\r\n"));
    assert!(client.rest() == pattern(1000));
}

/// What the dummy's last exchange came to, after those that were whole.
fn broken(server: &Running) -> super::Finished {
    loop {
        let finished = server.finished();
        if finished.outcome != Outcome::Complete {
            return finished;
        }
    }
}

#[test]
fn files_in_memory_and_on_a_disk_are_sent_alike() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    for path in ["/file", "/cold-file"] {
        for len in [0u64, 1, 300_000, 2_000_000] {
            let answer = client.ask(&format!("{path}?{len}"));
            assert!(answer.head.contains(&format!("Content-Length: {len}\r\n")));
            assert!(answer.body == pattern(len), "{path} {len}");
        }
    }
}

#[test]
fn a_file_that_becomes_shorter_ends_the_connection() {
    let server = serve(HttpLimits::default());
    for path in ["/shorter-file", "/shorter-cold-file"] {
        let mut client = server.connect();
        client.get(&format!("{path}?300000"));
        assert!(client.head().contains("Content-Length: 600000\r\n"));
        assert!(client.rest() == pattern(300_000));
        let finished = broken(&server);
        assert_eq!(finished.outcome, Outcome::Broken);
        assert_eq!(finished.fault, Fault::Server);
        assert_eq!(
            finished.reason,
            Some("the file became shorter while it was sent")
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_ends_the_connection() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/unreadable-file?1000");
    client.head();
    assert_eq!(client.rest(), b"");
    assert_eq!(broken(&server).reason, Some("the file could not be read"));
}

#[test]
fn a_disk_that_hangs_keeps_nobody_else_waiting() {
    let server = serve(HttpLimits {
        idle: std::time::Duration::from_millis(1),
        write_progress: std::time::Duration::from_millis(1),
        ..HttpLimits::default()
    });
    let mut stuck: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    for client in &mut stuck {
        client.get("/stuck-file?10000");
        assert!(client.head().contains("Content-Length: 10000\r\n"));
        assert_eq!(server.note(), "fetching");
    }
    // Others are answered. One that comes and goes idle is timed out; those that wait for the disk
    // are not.
    for _ in 0..10 {
        assert_eq!(server.connect().ask("/ready").text(), "ready");
    }
    server.wait_for_open(20);
    server.gate().open();
    for client in &mut stuck {
        assert!(client.take(10_000) == pattern(10_000));
    }
}

//= rfc9110#10.1.1
#[test]
fn continue_is_sent_when_the_handler_asks_for_the_body() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    let expect = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    client.send(&expect("/count"));
    assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello");
    assert_eq!(client.answer().text(), "5");
    // The body comes unasked: no need to ask for it.
    client.send(&(expect("/count") + "hello"));
    assert_eq!(client.answer().text(), "5");
    // In the midst of an answer there is no asking either.
    let mut other = server.connect();
    other.send(&expect("/echo-stream"));
    assert!(other.head().contains("chunked"));
    other.send("hello");
    assert!(other.rest().starts_with(b"5\r\nhello\r\n0\r\n"));
    // Nobody asks.
    client.send(&expect("/ready"));
    let answer = client.answer();
    assert_eq!(answer.text(), "ready");
    assert!(answer.closes());
    client.assert_end();
}

#[test]
fn a_body_nobody_reads_is_dropped_and_the_connection_stays() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    for len in [1, 1000, 256 * 1024] {
        client.post("/ready", len);
        client.stream.write_all(&pattern(len as u64)).unwrap();
        let answer = client.answer();
        assert_eq!(answer.text(), "ready");
        assert!(!answer.closes());
    }
    client.post_chunked("/ready");
    client.send("3\r\nabc\r\n");
    assert_eq!(client.answer().text(), "ready");
    client.send("2\r\nde\r\n0\r\n\r\n");
    assert_eq!(client.ask("/ready").text(), "ready");
    // The answer need not wait for the body, nor the body for the answer.
    client.post("/bytes?5000000", 200_000);
    client.stream.write_all(&pattern(200_000)).unwrap();
    assert_eq!(client.answer().body.len(), 5_000_000);
    assert_eq!(client.ask("/ready").text(), "ready");
}

//= rfc9112#9.6
#[test]
fn a_large_body_nobody_reads_ends_the_connection_after_the_answer() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.post("/ready", HUGE);
    let answer = client.answer();
    assert_eq!(answer.text(), "ready");
    assert!(answer.closes());
    client.stream.write_all(&pattern(5_000_000)).unwrap();
    client.assert_end();
    // Too much in chunks is noticed only when it has come.
    let mut client = server.connect();
    client.post_chunked("/ready");
    client.send("7fffffff\r\n");
    assert_eq!(client.answer().text(), "ready");
    client.stream.write_all(&pattern(5_000_000)).unwrap();
    client.assert_end();
}
