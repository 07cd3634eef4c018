//! Members are shielded from slow clients: requests are waited for, answers read ahead.

use std::sync::mpsc::channel;
use std::time::Instant;

use crate::harness::DEADLINE;
use crate::harness::client::{Connection, call};
use crate::peer::{Act, Peer, answer, answers, sends, serve};

/// More than sockets hold.
const LARGE_BYTES: usize = 32 << 20;

fn large() -> Vec<u8> {
    (0..LARGE_BYTES).map(|at| (at % 251) as u8).collect()
}

fn head(len: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").into_bytes()
}

#[test]
fn member_is_free_before_a_slow_client_has_its_answer() {
    let (written, is_written) = channel();
    let act: Act = Box::new(move |taken| {
        taken.write(&head(LARGE_BYTES));
        taken.write(&large());
        written.send(()).unwrap();
        // Its connection serves the next one.
        taken.read();
        taken.write(&answer("next"));
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "buffer = { response = \"64MiB\" }");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get("/app/slow").unwrap();
    // Nothing has been read there.
    is_written.recv().unwrap();
    let until = Instant::now() + DEADLINE;
    let resting =
        || site.place.status()["programs"]["upstreams"][0]["members"][0]["resting"].clone();
    while resting() != 1 {
        assert!(Instant::now() < until, "it is not free");
    }
    assert_eq!(site.get("/app/next").answer.text(), "next");
    assert_eq!(site.place.counter("upstream_reuses"), 1);
    let slow = client.read().unwrap();
    assert!(slow.body == large(), "{} bytes", slow.body.len());
    assert_eq!(site.place.counter("limit_upstream_buffer"), 0);
    site.stop();
    peer.join();
}

#[test]
fn answer_is_read_no_further_ahead_than_said() {
    // In memory alone, and through a file many times.
    for ahead in ["1B", "64KiB", "1MiB"] {
        let act: Act = Box::new(move |taken| {
            taken.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for piece in large().chunks(100_000) {
                taken.write(format!("{:x}\r\n", piece.len()).as_bytes());
                taken.write(piece);
                taken.write(b"\r\n");
            }
            taken.write(b"0\r\nX-End: yes\r\n\r\n");
        });
        let peer = Peer::start(vec![act]);
        let site = serve(&[&peer], &format!("buffer = {{ response = \"{ahead}\" }}"));
        let mut client = Connection::open(site.port()).unwrap();
        client.send_get("/app/").unwrap();
        site.place.wait_for_counter("limit_upstream_buffer", 1);
        let told = client.read().unwrap();
        assert!(told.body == large(), "{ahead}: {} bytes", told.body.len());
        site.stop();
        peer.join();
    }
}

#[test]
fn answer_that_is_read_ahead_breaks_where_it_breaks() {
    let mut bytes = head(LARGE_BYTES);
    bytes.extend_from_slice(&large()[..1 << 20]);
    let peer = Peer::start(vec![sends(bytes)]);
    let site = serve(&[&peer], "buffer = { response = \"64MiB\" }");
    let reply = site.get("/app/x");
    assert!(reply.is_broken());
    assert_eq!(
        site.record("/app/x")["reason"],
        "the other server closed the connection before its answer ended"
    );
    site.stop();
    peer.join();
}

#[test]
fn client_that_leaves_has_the_reading_given_up() {
    let act: Act = Box::new(|taken| {
        taken.write(b"HTTP/1.1 200 OK\r\n\r\nbegun");
        // Until the other side closes.
        while taken.try_write(&[b'x'; 4096]) {}
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "buffer = { response = \"1MiB\" }");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get("/app/x").unwrap();
    client.read_until("begun");
    client.leave();
    peer.join();
    assert_eq!(site.record("/app/x")["outcome"], "client-left");
    site.stop();
}

const BODY_BYTES: usize = 3_000_000;

#[test]
fn request_is_waited_for_before_anybody_is_asked() {
    let peer = Peer::start(vec![answers(1)]);
    let site = serve(&[&peer], "buffer = { request = \"10MiB\" }");
    let mut client = Connection::open(site.port()).unwrap();
    let body = vec![b'x'; BODY_BYTES];
    let length = format!("Content-Length: {BODY_BYTES}\r\n");
    client.send_ask("POST", "/app/", &length);
    client.send(&body[1..]).unwrap();
    assert_eq!(site.place.counter("upstream_connects"), 0);
    client.send(&body[..1]).unwrap();
    assert_eq!(client.read().unwrap().text(), "0");
    let asked = peer.join().remove(0);
    assert!(asked.to_lowercase().contains(&length.to_lowercase()));
    assert!(asked.ends_with("xxx"));
    site.stop();
}

#[test]
fn request_that_is_all_there_goes_to_another_member_if_it_may_be_twice() {
    for (method, status, retries) in [("PUT", 200, 1), ("POST", 502, 0)] {
        let (a, b) = (Peer::start(vec![sends("")]), Peer::start(vec![answers(1)]));
        let keys = "balance = \"round_robin\", buffer = { request = \"10MiB\" }";
        let site = serve(&[&a, &b], keys);
        let body = vec![b'x'; BODY_BYTES];
        let told = call(site.port(), method, "/app/", "", &body).answer;
        assert_eq!(told.status, status, "{method}");
        assert_eq!(site.place.counter("upstream_retries"), retries);
        if status == 502 {
            assert_eq!(site.get("/app/").answer.status, 200);
        }
        for (peer, times) in [(a, 1), (b, retries)] {
            let asked = peer.join().remove(0);
            let is_whole = asked.ends_with(&"x".repeat(BODY_BYTES));
            assert!(is_whole || times == 0, "{method}");
        }
        site.stop();
    }
}

/// The head of a request that does not say how long its body is.
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";

/// A piece of such a body.
fn chunk(piece: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()
}

#[test]
fn request_that_does_not_say_its_length_is_waited_for_and_told_with_it() {
    // Held in memory, and in a file.
    for bytes in [5_000, BODY_BYTES] {
        let peer = Peer::start(vec![answers(1)]);
        let site = serve(&[&peer], "buffer = { request = \"10MiB\" }");
        let mut client = Connection::open(site.port()).unwrap();
        client.send_ask("POST", "/app/", CHUNKED);
        for piece in vec![b'x'; bytes].chunks(100_000) {
            client.send(&chunk(piece)).unwrap();
        }
        assert_eq!(site.place.counter("upstream_connects"), 0);
        client.send(b"0\r\n\r\n").unwrap();
        assert_eq!(client.read().unwrap().text(), "0");
        let asked = peer.join().remove(0);
        let (head, body) = asked.split_once("\r\n\r\n").unwrap();
        let head = head.to_lowercase();
        assert!(head.contains(&format!("content-length: {bytes}")), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
        assert!(body == "x".repeat(bytes), "{} bytes", body.len());
        site.stop();
    }
}

#[test]
fn request_that_is_longer_than_what_is_waited_for_is_passed_on_as_it_comes() {
    for limit in ["1KiB", "200KiB"] {
        let peer = Peer::start(vec![answers(1)]);
        let site = serve(&[&peer], &format!("buffer = {{ request = \"{limit}\" }}"));
        let mut client = Connection::open(site.port()).unwrap();
        client.send_ask("POST", "/app/", CHUNKED);
        let body: Vec<u8> = (0..300_000).map(|at| b'a' + (at % 23) as u8).collect();
        client.send(&chunk(&body)).unwrap();
        // The end has not come, and the member is asked.
        site.place.wait_for_counter("upstream_connects", 1);
        client.send(&chunk(b"and more")).unwrap();
        client.send(b"0\r\n\r\n").unwrap();
        assert_eq!(client.read().unwrap().text(), "0");
        let asked = peer.join().remove(0);
        let (head, mut rest) = asked.split_once("\r\n\r\n").unwrap();
        assert!(head.to_lowercase().contains("transfer-encoding: chunked"));
        let mut came = String::new();
        while let Some((size, after)) = rest.split_once("\r\n") {
            let (piece, after) = after.split_at(usize::from_str_radix(size, 16).unwrap());
            came.push_str(piece);
            rest = after.strip_prefix("\r\n").unwrap();
        }
        let all = String::from_utf8(body).unwrap() + "and more";
        assert!(came == all, "{limit}: {} bytes", came.len());
        site.stop();
    }
}

#[test]
fn request_that_may_be_one_half_of_a_conversation_is_passed_on_at_once() {
    let grpc = format!("{CHUNKED}Content-Type: application/grpc+proto\r\n");
    for (keys, fields) in [("", CHUNKED), ("buffer = { request = \"1MiB\" }", &grpc)] {
        let act: Act = Box::new(|taken| {
            assert!(taken.some() > 0);
            taken.write(&answer("at once"));
            taken.stay();
        });
        let peer = Peer::start_after_heads(vec![act]);
        let site = serve(&[&peer], keys);
        let mut client = Connection::open(site.port()).unwrap();
        client.send_ask("POST", "/app/", fields);
        client.send(&chunk(b"first")).unwrap();
        assert_eq!(client.read_head().unwrap().0, 200);
        client.read_until("at once");
        client.leave();
        site.stop();
        peer.join();
    }
}

#[test]
fn request_that_breaks_off_while_it_is_waited_for_asks_nobody_h1_only() {
    let peer = Peer::start(vec![answers(1)]);
    let site = serve(&[&peer], "buffer = { request = \"1MiB\" }");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("POST", "/app/cut", CHUNKED);
    client.send(&chunk(&[b'x'; 100_000])).unwrap();
    client.leave();
    assert_eq!(site.record("/app/cut")["outcome"], "client-left");
    assert_eq!(site.place.counter("upstream_connects"), 0);
    assert_eq!(site.get("/app/").answer.text(), "0");
    site.stop();
    peer.join();
}
