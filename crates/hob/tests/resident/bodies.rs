//! Bodies of any size, both ways, and clients that are slow.

use rustix::process::Signal;

use crate::harness::client::{begin_download, call};
use crate::harness::{send_signal, status_line};
use crate::place::serve;

#[test]
fn large_bodies_go_up_and_come_down_whole() {
    let site = serve("");
    let mut body = vec![0; 32 * 1024 * 1024];
    for (index, byte) in body.iter_mut().enumerate() {
        *byte = (index % 251) as u8;
    }
    let reply = call(site.port(), "POST", "/app/echo", "", &body);
    assert_eq!(reply.answer.status, 200);
    assert!(reply.is_whole && reply.is_chunked);
    assert!(reply.answer.body == body, "another body came back");
    site.stop();
}

#[test]
fn body_in_chunks_arrives_and_an_empty_one_ends() {
    let site = serve("");
    let request = "POST /app/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                   Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let reply = crate::harness::client::exchange(site.port(), request.as_bytes());
    assert_eq!(reply.answer.text(), "abcde");
    let reply = call(
        site.port(),
        "POST",
        "/app/echo",
        "Content-Length: 0\r\n",
        b"",
    );
    assert_eq!((reply.answer.status, reply.answer.body.len()), (200, 0));
    site.stop();
}

#[test]
fn body_that_nobody_reads_does_not_stop_the_answer() {
    let site = serve("workers = { max = 1 }");
    let body = vec![b'x'; 8 * 1024 * 1024];
    let reply = call(site.port(), "POST", "/app/pid", "", &body);
    assert_eq!(reply.answer.status, 200);
    assert_eq!(site.worker().to_string(), reply.answer.text());
    site.stop();
}

/// More than a socket and the server's own room hold comes while the worker reads nothing.
#[test]
fn bodies_that_found_no_room_go_on_when_the_worker_reads_again() {
    let site = serve(
        "carrier = \"stream\", workers = { max = 1, concurrency = 24 }, \
         timeout = { first_byte = \"0s\" }",
    );
    let worker = site.worker();
    send_signal(worker, Signal::STOP);
    let (port, body) = (site.port(), vec![b'x'; 256 * 1024]);
    std::thread::scope(|scope| {
        let call = || call(port, "POST", "/app/echo", "", &body).answer;
        let calls: Vec<_> = (0..24).map(|_| scope.spawn(call)).collect();
        site.wait_for_pool("24 requests", |pool| {
            let requests = pool["workers"][0]["requests"].as_array();
            requests.is_some_and(|requests| requests.len() == 24)
        });
        send_signal(worker, Signal::CONT);
        for call in calls {
            let answer = call.join().unwrap();
            assert_eq!((answer.status, answer.body.len()), (200, body.len()));
        }
    });
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn slow_client_stops_the_worker_and_costs_no_memory() {
    let site = serve("workers = { min = 2, max = 2 }");
    let memory_kib = || -> u64 {
        let line = status_line(site.hob().server(), "VmRSS");
        line.trim_end_matches(" kB").parse().unwrap()
    };
    site.worker();
    let (mut slow, _) = begin_download(site.port(), "/app/endless");
    assert!(slow.skip(1 << 20).unwrap() >= 1 << 20);
    let before = memory_kib();
    // All this while the other worker would fill the memory, if it could.
    for _ in 0..300 {
        site.worker();
    }
    assert!(memory_kib() < before + 8 * 1024, "{} KiB", memory_kib());
    // It goes on where it stopped.
    assert!(slow.skip(16 << 20).unwrap() >= 16 << 20);
    assert!(memory_kib() < before + 8 * 1024, "{} KiB", memory_kib());
    drop(slow);
    site.stop();
}

#[test]
fn head_request_has_the_fields_and_no_body() {
    let site = serve("workers = { max = 1 }");
    let worker = site.worker();
    let reply = crate::harness::client::ask(site.port(), "HEAD", "/app/pid", "");
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("content-length"),
        Some(&*worker.to_string().len().to_string())
    );
    assert_eq!(site.worker(), worker);
    site.stop();
}
