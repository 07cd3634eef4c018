//! Long bodies of requests that go on inside the kernel: all of their bytes and nothing behind
//! them, their ends, and what is copied.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, mpsc};
use std::time::Instant;

use crate::harness::client::{Connection, call};
use crate::harness::{DEADLINE, Place};
use crate::peer::{Act, Peer, answer, answers, sends, serve, stays_after};

const LONG: usize = 4_000_000;
/// Pipes that a thread has in use at most.
const PIPES_MAX: usize = 64;
/// More than sockets hold on both sides.
const LARGE: usize = 64 << 20;

/// Made once: that takes a while.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let letters = (0..8_000_000).map(|at| b'a' + ((at / 7 + at % 251) % 26) as u8);
    String::from_utf8(letters.collect()).unwrap()
});

fn text(len: usize) -> &'static str {
    &TEXT[..len]
}

/// Sends so much of it again and again, until nobody takes more.
fn send_large(client: &mut Connection) -> bool {
    let piece = text(1 << 20).as_bytes();
    (0..LARGE / piece.len()).all(|_| client.send(piece).is_ok())
}

fn head(method: &str, target: &str, len: usize) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\n\r\n")
}

/// The same connection, to send while its answer is read.
fn other_hand(client: &Connection) -> Connection {
    Connection::of(client.as_fd().try_clone_to_owned().unwrap())
}

/// Answers each request of its connections with its body's length.
fn answering() -> u16 {
    Peer::for_each(|taken| {
        while let Some(asked) = taken.next() {
            let (_, body) = asked.split_once("\r\n\r\n").unwrap();
            taken.write(&answer(&body.len().to_string()));
        }
    })
}

#[test]
fn body_is_passed_on_whole_and_what_stands_behind_it_is_the_next_request() {
    let lens = [LONG, 65_536, 10, LONG];
    let (tell, told) = mpsc::channel();
    let act: Act = Box::new(move |taken| {
        for at in 0..lens.len() {
            taken.write(&answer(&at.to_string()));
            if at + 1 < lens.len() {
                tell.send(taken.read()).unwrap();
            }
        }
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "keep = 4");
    let all: Vec<_> = lens.iter().enumerate().collect();
    let asks = all.iter().map(|(at, len)| {
        let target = format!("/app/{at}");
        head("POST", &target, **len) + text(**len)
    });
    let asks: String = asks.collect();
    let mut client = Connection::open(site.port()).unwrap();
    let mut sending = other_hand(&client);
    let sent = std::thread::spawn(move || {
        sending.send(asks.as_bytes()).unwrap();
    });
    for at in 0..lens.len() {
        assert_eq!(client.read().unwrap().text(), at.to_string());
    }
    sent.join().unwrap();
    let came: Vec<_> = peer.join().into_iter().chain(told).collect();
    for ((at, len), came) in all.into_iter().zip(came) {
        let (_, body) = came.split_once("\r\n\r\n").unwrap();
        assert!(body == text(*len), "{at}: {} bytes", body.len());
        let target = format!("/app/{at}");
        let record = site.record(&target);
        assert_eq!(record["outcome"], "complete", "{record}");
        assert_eq!(record["bytes_in"], head("POST", &target, *len).len() + len);
    }
    assert_eq!(site.place.counter("spliced_requests"), 2);
    assert_eq!(site.place.counter("limit_splice_pipes"), 0);
    assert_eq!(site.place.counter("upstream_connects"), 1);
    site.stop();
}

#[test]
fn client_that_waits_for_it_is_told_to_go_on() {
    let peer = Peer::start(vec![answers(1)]);
    let site = serve(&[&peer], "");
    let mut client = Connection::open(site.port()).unwrap();
    let fields = format!("Content-Length: {LONG}\r\nExpect: 100-continue\r\n");
    client.send_ask("PUT", "/app/", &fields);
    assert_eq!(client.read_head().unwrap().0, 100);
    client.send(text(LONG).as_bytes()).unwrap();
    assert_eq!(client.read().unwrap().text(), "0");
    let asked = peer.join().remove(0);
    assert!(asked.ends_with(text(LONG)));
    assert_eq!(site.place.counter("spliced_requests"), 1);
    site.stop();
}

#[test]
fn body_that_is_waited_for_or_comes_in_chunks_is_copied() {
    let buffer = "buffer = { request = \"10MiB\" }";
    let sized = format!("Content-Length: {LONG}\r\n");
    for (keys, fields, frame) in [
        (buffer, sized.as_str(), ["", ""]),
        (
            "",
            "Transfer-Encoding: chunked\r\n",
            ["3d0900\r\n", "\r\n0\r\n\r\n"],
        ),
    ] {
        let peer = Peer::start(vec![answers(1)]);
        let site = serve(&[&peer], keys);
        let mut client = Connection::open(site.port()).unwrap();
        client.send_ask("POST", "/app/", fields);
        let body = [frame[0], text(LONG), frame[1]].concat();
        client.send(body.as_bytes()).unwrap();
        assert_eq!(client.read().unwrap().text(), "0");
        peer.join();
        assert_eq!(site.place.counter("spliced_requests"), 0);
        site.stop();
    }
}

/// A site where bodies may be as large as they like, answered by this port.
fn serve_large(port: u16, threads: &str, keys: &str) -> (Place, crate::harness::Hob) {
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "{threads}[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\npath = \"/app/*\"\n\
         body = \"1GiB\"\nproxy = {{ to = \"http://127.0.0.1:{port}\", {keys} }}\n"
    ));
    (place, hob)
}

#[test]
fn client_is_held_back_by_who_does_not_read() {
    static IS_SENT: AtomicBool = AtomicBool::new(false);
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let act: Act = Box::new(move |taken| {
        may_go_on.recv().unwrap();
        let mut left = LARGE;
        while left > 0 {
            left -= taken.some();
        }
        taken.write(&answer("all of it"));
    });
    let peer = Peer::start_after_heads(vec![act]);
    let (place, hob) = serve_large(peer.port, "", "");
    let mut client = Connection::open(hob.port()).unwrap();
    client
        .send(head("POST", "/app/", LARGE).as_bytes())
        .unwrap();
    let mut sending = other_hand(&client);
    let sent = std::thread::spawn(move || {
        assert!(send_large(&mut sending));
        IS_SENT.store(true, Ordering::SeqCst);
    });
    place.wait_for_counter("spliced_requests", 1);
    for _ in 0..20 {
        place.status();
        assert!(!IS_SENT.load(Ordering::SeqCst), "nobody has read it");
    }
    go_on.send(()).unwrap();
    assert_eq!(client.read().unwrap().text(), "all of it");
    sent.join().unwrap();
    peer.join();
    hob.stop();
}

#[test]
fn who_takes_nothing_of_it_is_given_up() {
    let peer = Peer::start_after_heads(vec![stays_after("")]);
    let (place, hob) = serve_large(peer.port, "", "timeout = { first_byte = \"300ms\" }");
    let mut client = Connection::open(hob.port()).unwrap();
    client.send(head("PUT", "/app/", LARGE).as_bytes()).unwrap();
    let mut sending = other_hand(&client);
    let sent = std::thread::spawn(move || {
        // What is left nobody takes.
        send_large(&mut sending);
    });
    assert_eq!(client.read().unwrap().status, 504);
    assert_eq!(place.counter("limit_upstream_first_byte"), 1);
    assert_eq!(place.counter("spliced_requests"), 1);
    client.leave();
    sent.join().unwrap();
    peer.join();
    hob.stop();
}

#[test]
fn answer_while_it_still_comes_ends_it() {
    let act: Act = Box::new(|taken| {
        let mut came = 0;
        while came < 1_000_000 {
            came += taken.some();
        }
        taken.write(&answer("enough"));
        taken.stay();
    });
    let peer = Peer::start_after_heads(vec![act]);
    let site = serve(&[&peer], "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("POST", "/app/", "Content-Length: 8000000\r\n");
    client.send(text(2_000_000).as_bytes()).unwrap();
    assert_eq!(client.read().unwrap().text(), "enough");
    // The connection has a part of a request on it: it is closed.
    peer.join();
    assert_eq!(site.place.counter("spliced_requests"), 1);
    let record = site.record("/app/");
    assert_eq!(
        (&record["status"], &record["fault"]),
        (&200.into(), &"none".into())
    );
    site.stop();
}

#[test]
fn client_that_leaves_ends_the_other_side_and_leaves_no_bytes_to_others() {
    let (begin, has_begun) = mpsc::channel();
    let broken = || -> Act {
        let begin = begin.clone();
        Box::new(move |taken| {
            let mut came = 0;
            while came < 1_000_000 {
                came += taken.some();
            }
            begin.send(()).unwrap();
            assert!(!taken.ends_in_order(), "it could take the body for whole");
        })
    };
    for leaves in [true, false] {
        let (whole, is_whole) = mpsc::channel();
        let last: Act = Box::new(move |taken| {
            let mut body = Vec::new();
            taken.take(LONG, &mut body);
            whole.send(body).unwrap();
            taken.write(&answer("all of it"));
        });
        let peer = Peer::start_after_heads(vec![broken(), broken(), last]);
        let site = serve(&[&peer], "");
        for at in 0..2 {
            let mut client = Connection::open(site.port()).unwrap();
            client
                .send(head("POST", &format!("/app/{at}"), LONG).as_bytes())
                .unwrap();
            client.send(text(2_000_000).as_bytes()).unwrap();
            has_begun.recv().unwrap();
            match leaves {
                true => client.leave(),
                false => {
                    client.end_sending();
                    client.read_to_end();
                }
            }
            let record = site.record(&format!("/app/{at}"));
            assert_eq!(record["fault"], "client", "{record}");
        }
        let reply = call(site.port(), "POST", "/app/", "", text(LONG).as_bytes());
        assert_eq!(reply.answer.text(), "all of it");
        assert!(is_whole.recv().unwrap() == text(LONG).as_bytes());
        let told = site.place.status()["programs"]["upstreams"][0]["members"][0].clone();
        assert_eq!(told["failures"], 0, "{told}");
        assert_eq!(site.place.counter("spliced_requests"), 3);
        peer.join();
        site.stop();
    }
}

#[test]
fn client_that_stops_in_the_middle_is_told_so() {
    let peer = Peer::start_after_heads(vec![stays_after("")]);
    let handler = format!("proxy = \"http://127.0.0.1:{}\"", peer.port);
    let own = "[limits]\nbody_progress = \"200ms\"\n";
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "{own}[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\npath = \"/app/*\"\n\
         body = \"10MiB\"\n{handler}\n"
    ));
    let mut client = Connection::open(hob.port()).unwrap();
    client.send(head("POST", "/app/", LONG).as_bytes()).unwrap();
    client.send(text(2_000_000).as_bytes()).unwrap();
    assert_eq!(client.read().unwrap().status, 408);
    assert_eq!(place.counter("limit_body_progress"), 1);
    assert_eq!(place.counter("spliced_requests"), 1);
    peer.join();
    hob.stop();
}

#[test]
fn what_was_sent_once_is_not_sent_again() {
    let act = || -> Act {
        Box::new(|taken| {
            let mut came = 0;
            while came < 1_000_000 {
                came += taken.some();
            }
        })
    };
    for method in ["PUT", "POST"] {
        let (a, b) = (
            Peer::start_after_heads(vec![act()]),
            Peer::start(vec![sends(answer("b"))]),
        );
        let keys = "balance = \"round_robin\", retry = { times = 3 }";
        let site = serve(&[&a, &b], keys);
        let body = text(8_000_000);
        let reply = call(site.port(), method, "/app/long", "", body.as_bytes());
        assert_eq!(reply.answer.status, 502, "{method}");
        assert_eq!(site.place.counter("upstream_retries"), 0);
        assert_eq!(site.place.counter("spliced_requests"), 1);
        assert_eq!(site.record("/app/long")["fault"], "upstream");
        // The other one has not been asked.
        assert_eq!(site.get("/app/").answer.text(), "b");
        a.join();
        assert!(b.join().remove(0).starts_with("GET "));
        site.stop();
    }
}

#[test]
fn who_finds_no_pipe_is_copied() {
    // Nobody reads of these.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&deaf, 16 * 1024).unwrap();
    let deaf_port = deaf.local_addr().unwrap().port();
    let port = answering();
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n\
         [[site.route]]\npath = \"/deaf\"\nbody = \"1GiB\"\nproxy = \"http://127.0.0.1:{deaf_port}\"\n\
         [[site.route]]\npath = \"/app\"\nbody = \"10MiB\"\nproxy = \"http://127.0.0.1:{port}\"\n"
    ));
    let asked = || {
        let reply = call(hob.port(), "POST", "/app", "", text(LONG).as_bytes());
        assert_eq!(reply.answer.text(), LONG.to_string());
        place.counter("limit_splice_pipes")
    };
    assert_eq!(asked(), 0);
    let (until, mut held) = (Instant::now() + DEADLINE, Vec::new());
    // Each has one or two pipes in use: bytes that are not taken.
    while asked() == 0 {
        assert!(Instant::now() < until, "{} have not all pipes", held.len());
        for _ in 0..PIPES_MAX / 4 {
            let mut client = Connection::open(hob.port()).unwrap();
            client
                .send(head("POST", "/deaf", LARGE).as_bytes())
                .unwrap();
            let mut sending = other_hand(&client);
            let thread = std::thread::spawn(move || send_large(&mut sending));
            held.push((client, thread));
        }
    }
    for (client, thread) in held {
        // Who sends has the connection open, too.
        rustix::net::shutdown(&client, rustix::net::Shutdown::Both).unwrap();
        thread.join().unwrap();
        client.leave();
    }
    // They come back.
    let until = Instant::now() + DEADLINE;
    loop {
        let before = place.counter("limit_splice_pipes");
        if asked() == before {
            break;
        }
        assert!(Instant::now() < until, "no pipe comes back");
    }
    hob.stop();
}
