//! Bodies of every size, both ways, byte by byte; what comes around them; clients that are slow or
//! leave.

use crate::harness::client::{Connection, ask, begin_download, call, exchange, raw};
use crate::harness::status_line;
use crate::place::{program, route, serve};
use crate::pool::until;

/// Around a page, around a chunk of shared memory, more than a window, more than all of it.
const SIZES: [usize; 12] = [
    0,
    1,
    4095,
    4096,
    4097,
    65_535,
    65_536,
    65_537,
    150_001,
    1 << 20,
    (1 << 20) + 1,
    20 << 20,
];

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[test]
fn answers_of_every_size_arrive_byte_by_byte() {
    answers_arrive("workers = { max = 1 }");
}

#[test]
fn answers_of_every_size_arrive_through_few_and_small_chunks() {
    for shared in [
        "chunks = 4, chunk = \"4KiB\"",
        "chunk = \"12KiB\"",
        "chunks = 5",
    ] {
        answers_arrive(&format!("workers = {{ max = 1 }}, shared = {{ {shared} }}"));
    }
}

fn answers_arrive(keys: &str) {
    let site = serve(keys);
    assert_eq!(site.text("/app/carrier"), "shm");
    let worker = site.worker();
    for bytes in SIZES {
        let right = pattern(bytes);
        for action in ["blocks", "direct", "sized", "pieces"] {
            if action == "pieces" && bytes > 2 << 20 {
                continue;
            }
            let reply = site.get(&format!("/app/{action}?{bytes}"));
            assert_eq!(reply.answer.status, 200, "{action} of {bytes}");
            assert!(reply.is_whole, "{action} of {bytes}");
            assert!(reply.answer.body == right, "{action} of {bytes}");
        }
    }
    assert_eq!(site.worker(), worker);
    site.stop();
}

/// Nobody passes a request's body on once its answer has all it will have.
#[test]
fn worker_whose_answer_has_no_body_does_not_wait_for_the_rest_of_the_request() {
    let site = serve("workers = { max = 1 }, queue = { wait = \"60s\" }");
    let worker = site.worker();
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("HEAD", "/app/late", "Content-Length: 9\r\n");
    assert_eq!(client.read_head().unwrap().0, 200);
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn bodies_of_every_size_come_back() {
    let site = serve("workers = { max = 1 }");
    let sizes = SIZES.iter().filter(|bytes| **bytes <= 2 << 20);
    for bytes in sizes.chain(&[5 << 20]) {
        let body = pattern(*bytes);
        let reply = call(site.port(), "POST", "/app/echo", "", &body);
        assert_eq!(reply.answer.status, 200, "{bytes} bytes");
        assert!(reply.is_whole && reply.answer.body == body, "{bytes} bytes");
    }
    site.stop();
}

#[test]
fn body_in_chunks_arrives() {
    let site = serve("");
    let request = "POST /app/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                   Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(
        exchange(site.port(), request.as_bytes()).answer.text(),
        "abcde"
    );
    let mut long = b"POST /app/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                     Transfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    let body = pattern(300_000);
    for piece in body.chunks(777) {
        long.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        long.extend_from_slice(piece);
        long.extend_from_slice(b"\r\n");
    }
    long.extend_from_slice(b"0\r\n\r\n");
    let reply = exchange(site.port(), &long);
    assert!(reply.is_whole && reply.answer.body == body);
    site.stop();
}

/// One byte to a chunk, thousands of chunks to a packet, while the program takes none of them.
#[test]
fn body_in_many_small_chunks_waits_where_it_is_and_arrives() {
    let site = serve("workers = { max = 1 }");
    let mut held = site.hold("one");
    let mut request = b"POST /app/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                        Transfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    let body = pattern(20_000);
    for byte in &body {
        request.extend_from_slice(b"1\r\n");
        request.push(*byte);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    let port = site.port();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| exchange(port, &request));
        site.wait_for_pool("waiting", |pool| pool["waiting"] == 1);
        site.go("one");
        assert_eq!(held.read_reply().answer.status, 200);
        assert!(call.join().unwrap().answer.body == body);
    });
    site.stop();
}

/// A worker that waits for its client is not the one that is too slow, though there is a little
/// room left: its next piece does not fit.
#[test]
fn slow_client_is_not_taken_for_a_silent_program() {
    let mut site = program();
    site.serve_whole(&format!(
        "[limits]\nwrite_progress = \"2s\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n\
         root = \"site\"\n[[site.route]]\n{}",
        route("timeout = { progress = \"200ms\" }")
    ));
    let (_client, _) = begin_download(site.port(), "/app/pieces?100000000");
    site.place.wait_for_counter("limit_write_progress", 1);
    assert_eq!(site.place.counter("limit_resident_progress"), 0);
    site.stop();
}

/// More of the worker's memory than may be held waits for clients that read nothing.
#[test]
fn clients_that_take_their_time_do_not_stop_a_worker_with_threads() {
    slow_clients_leave_room("");
}

#[test]
fn clients_that_take_their_time_do_not_stop_a_worker_with_few_chunks() {
    slow_clients_leave_room(", shared = { chunks = 4, chunk = \"16KiB\" }");
}

fn slow_clients_leave_room(keys: &str) {
    let site = serve(&format!(
        "env = {{ THREADS = \"16\" }}, workers = {{ max = 1, concurrency = 16 }}, \
         timeout = {{ progress = \"0s\" }}{keys}"
    ));
    let worker = site.worker();
    let slow: Vec<_> = (0..12)
        .map(|number| begin_download(site.port(), &format!("/app/endless?slow{number}")).0)
        .collect();
    until("chunks are copied", || {
        site.place.counter("worker_copies") > 0
    });
    let right = pattern(5 << 20);
    for _ in 0..3 {
        assert!(site.get("/app/blocks?5242880").answer.body == right);
    }
    drop(slow);
    site.wait_for_pool("idle", |pool| pool["workers"][0]["state"] == "idle");
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn interim_answers_and_trailers_go_around_the_answer() {
    let site = serve("");
    let all = raw(
        site.port(),
        b"GET /app/around HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\n\
          Connection: close, TE\r\n\r\n",
    );
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 201 Created\r\n";
    assert!(all.starts_with(interim), "{all}");
    let end = "\r\n\r\n4\r\nmade\r\n0\r\nChecksum: 1\r\n\r\n";
    assert!(all.ends_with(end), "{all}");
    site.stop();
}

#[test]
fn answers_without_a_body_leave_the_worker_as_it_was() {
    let site = serve("workers = { max = 1 }");
    let worker = site.worker();
    for status in [204, 205, 304] {
        let answer = ask(site.port(), "GET", &format!("/app/status?{status}"), "");
        assert_eq!((answer.status, answer.body.len()), (status, 0));
        assert_eq!(answer.header("etag"), Some("\"a\""));
        //= rfc9110#15.3.6
        let announced = (status == 205).then_some("0");
        assert_eq!(answer.header("content-length"), announced);
    }
    // The program writes its body all the same, however long.
    for (bytes, action) in [(10, "sized"), (20 << 20, "sized"), (5 << 20, "blocks")] {
        let answer = ask(site.port(), "HEAD", &format!("/app/{action}?{bytes}"), "");
        assert_eq!(answer.status, 200);
        let announced = answer.header("content-length");
        if action == "sized" {
            assert_eq!(announced, Some(&*bytes.to_string()));
        }
    }
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn client_that_leaves_amid_an_answer_frees_the_worker() {
    let site = serve("workers = { max = 1 }, grace = \"60s\"");
    let worker = site.worker();
    for round in 0..3 {
        let target = format!("/app/endless?left{round}");
        let (mut client, _) = begin_download(site.port(), &target);
        assert!(client.skip(1 << 20).unwrap() >= 1 << 20);
        drop(client);
        assert_eq!(site.worker(), worker);
    }
    assert_eq!(site.place.counter("worker_terms"), 0);
    site.stop();
}

#[test]
fn slow_client_stops_the_worker_and_costs_no_memory() {
    let site = serve("workers = { min = 2, max = 2 }, timeout = { progress = \"0s\" }");
    let memory_kib = || -> u64 {
        let line = status_line(site.hob().server(), "RssAnon");
        line.trim_end_matches(" kB").parse().unwrap()
    };
    let sent = |name: &str| -> u64 {
        let text = std::fs::read_to_string(site.path(&format!("{name}.sent")));
        text.map_or(0, |text| text.trim().parse().unwrap_or(0))
    };
    site.worker();
    let (mut slow, _) = begin_download(site.port(), "/app/endless?slow");
    let mut taken = slow.skip(1 << 20).unwrap();
    let before = memory_kib();
    for _ in 0..100 {
        site.worker();
    }
    // What the client has taken, what sockets hold of it, and a window.
    let stopped = sent("slow");
    assert!(
        stopped < taken + (24 << 20),
        "{stopped} sent, {taken} taken"
    );
    assert!(memory_kib() < before + 8 * 1024, "{} KiB", memory_kib());
    // It goes on where it stopped.
    taken += slow.skip(64 << 20).unwrap();
    until("the worker goes on", || sent("slow") + (1 << 20) > taken);
    assert!(memory_kib() < before + 8 * 1024, "{} KiB", memory_kib());
    drop(slow);
    site.stop();
}
