//! Bodies both ways: of any size, unread, half read, broken off, and clients that are slow.

use crate::harness::client::{Connection, begin_download, call, exchange};
use crate::harness::{status_line, wait_for_end};
use crate::pool::wait_for_file;
use crate::program::{serve, serve_one};

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % 253) as u8).collect()
}

#[test]
fn bodies_of_any_size_go_up_and_come_down_whole() {
    let site = serve_one();
    let worker = site.worker();
    for bytes in [1, 4095, 4096, 65_535, 65_536, 65_537, 300_000, 5 << 20] {
        let body = pattern(bytes);
        let reply = call(site.port(), "POST", "/app/echo", "", &body);
        assert_eq!(reply.answer.status, 200);
        assert!(reply.is_whole && reply.answer.body == body, "{bytes}");
    }
    let none = call(
        site.port(),
        "POST",
        "/app/echo",
        "Content-Length: 0\r\n",
        b"",
    );
    assert_eq!((none.answer.status, none.answer.body.len()), (200, 0));
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn body_in_chunks_is_collected_and_its_length_told() {
    let site = serve_one();
    for bytes in [0, 5, 65_536, 1_000_000] {
        let body = pattern(bytes);
        let mut request = b"POST /app/digest HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                            Transfer-Encoding: chunked\r\n\r\n"
            .to_vec();
        for chunk in body.chunks(50_000) {
            request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            request.extend_from_slice(chunk);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"0\r\n\r\n");
        let in_chunks = exchange(site.port(), &request).answer.text();
        let whole = call(site.port(), "POST", "/app/digest", "", &body).answer;
        assert_eq!(in_chunks, whole.text());
        assert!(in_chunks.starts_with(&format!("{bytes} ")), "{in_chunks}");
    }
    site.stop();
}

#[test]
fn body_that_nobody_reads_is_not_in_the_next_requests_way() {
    let site = serve_one();
    let worker = site.worker();
    let digest = || {
        call(site.port(), "POST", "/app/digest", "", b"abc")
            .answer
            .text()
    };
    let expected = digest();
    for bytes in [1, 1000, 65_536, 8 << 20] {
        let reply = call(site.port(), "POST", "/app/pid", "", &pattern(bytes));
        assert_eq!(reply.answer.text(), worker.to_string(), "{bytes}");
        assert_eq!(digest(), expected, "{bytes}");
    }
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn worker_that_read_half_of_a_body_gets_no_other_request() {
    let site = serve_one();
    for bytes in [1000, 1 << 20] {
        let worker = site.worker();
        let reply = call(site.port(), "POST", "/app/leave_half", "", &pattern(bytes));
        assert_eq!(reply.answer.text(), worker.to_string());
        let next = call(site.port(), "POST", "/app/digest", "", b"abc").answer;
        assert!(next.text().starts_with("3 ba7816bf"), "{next:?}");
        wait_for_end(worker);
        assert_ne!(site.worker(), worker);
    }
    site.hob()
        .wait_for("left a part of a request's body unread");
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn program_sees_the_end_of_a_body_that_broke_off() {
    let site = serve("workers = { max = 1 }, grace = \"60s\"");
    let worker = site.worker();
    let mut client = Connection::open(site.port()).unwrap();
    client
        .send(
            b"POST /app/wait_for_body/one HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n\
              the beginning",
        )
        .unwrap();
    wait_for_file(&site.path("one.begun"));
    drop(client);
    wait_for_file(&site.path("one.over"));
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    assert_eq!(site.place.counter("worker_terms"), 0);
    site.stop();
}

#[test]
fn program_whose_answer_was_refused_does_not_wait_for_its_body() {
    let site = serve("workers = { max = 1 }, grace = \"60s\"");
    let worker = site.worker();
    let mut client = Connection::open(site.port()).unwrap();
    client
        .send(
            b"POST /app/no_head_but_body/one HTTP/1.1\r\nHost: localhost\r\n\
              Content-Length: 100000\r\n\r\nthe beginning",
        )
        .unwrap();
    let (status, _) = client.read_head().unwrap();
    assert_eq!(status, 502);
    wait_for_file(&site.path("one.over"));
    wait_for_end(worker);
    assert_ne!(site.worker(), worker);
    assert_eq!(site.place.counter("worker_terms"), 0);
    // A stop waits for the rest of its body.
    drop(client);
    site.stop();
}

#[test]
fn slow_client_stops_the_worker_and_costs_no_memory() {
    let site = serve("workers = { min = 2, max = 2 }, grace = \"100ms\"");
    let memory_kib = || -> u64 {
        let line = status_line(site.hob().server(), "VmRSS");
        line.trim_end_matches(" kB").parse().unwrap()
    };
    site.worker();
    let (mut slow, _) = begin_download(site.port(), "/app/endless");
    assert!(slow.skip(1 << 20).unwrap() >= 1 << 20);
    let before = memory_kib();
    // All this while the other worker would fill the memory, if it could.
    for _ in 0..100 {
        site.worker();
    }
    assert!(memory_kib() < before + 8 * 1024, "{} KiB", memory_kib());
    // It goes on where it stopped.
    assert!(slow.skip(16 << 20).unwrap() >= 16 << 20);
    assert!(memory_kib() < before + 8 * 1024, "{} KiB", memory_kib());
    drop(slow);
    site.stop();
}
