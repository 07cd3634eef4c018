//! Many connections on one thread and on several; how threads end.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hob_trace::{Fault, Outcome};

use super::client::Client;
use super::{PATIENCE, serve, serve_on};
use crate::limits::HttpLimits;
use crate::thread::Listening;

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn small_requests_are_answered_while_bulk_answers_run() {
    const READERS: usize = 12;
    let server = serve(HttpLimits::default());
    let stop = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..READERS)
        .map(|at| {
            let targets = ["/endless", "/endless-file", "/pipe?2000000000"];
            let mut client = server.connect();
            client.get(targets[at % targets.len()]);
            client.head();
            let (stop, served) = (Arc::clone(&stop), Arc::clone(&served));
            std::thread::spawn(move || {
                let mut buffer = vec![0; 256 * 1024];
                let mut sum = 0;
                while !stop.load(Ordering::Relaxed) {
                    let before = sum;
                    sum += client.stream.read(&mut buffer).unwrap();
                    if before < 1_000_000 && sum >= 1_000_000 {
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                }
                client.reset();
            })
        })
        .collect();
    let mut client = server.connect();
    let begin = Instant::now();
    let mut count = 0;
    // No bulk answer stands still meanwhile.
    while count < 100 || served.load(Ordering::Relaxed) < READERS {
        assert_eq!(client.ask("/ready").text(), "ready");
        count += 1;
        assert!(
            begin.elapsed() < PATIENCE,
            "{served:?} after {count} requests"
        );
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
}

#[test]
fn a_client_that_sends_without_end_keeps_nobody_else_waiting() {
    let server = serve(HttpLimits::default());
    let mut noisy = server.connect();
    let request = "GET /ready HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000);
    let mut writer = noisy.stream.try_clone().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let sender = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            std::io::Write::write_all(&mut writer, request.as_bytes()).unwrap();
        }
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let (first, is_answered) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        while noisy.stream.read(&mut [0; 65_536]).unwrap() > 0 {
            let _ = first.send(());
        }
    });
    is_answered.recv().unwrap();
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.ask("/ready").text(), "ready");
    }
    stop.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    reader.join().unwrap();
}

#[test]
fn connections_are_spread_over_the_threads() {
    let server = serve_on(4, HttpLimits::default());
    let mut clients: Vec<Client> = (0..10).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("/ready").text(), "ready");
    }
    let counts = server.crew.connections_by_thread();
    assert_eq!(counts.iter().sum::<usize>(), 10);
    assert!(counts.iter().all(|count| *count <= 4), "{counts:?}");
    // They stay where they are, and go on.
    for client in &mut clients {
        assert_eq!(client.ask("/ready").text(), "ready");
    }
    drop(clients);
    server.wait_for_open(0);
}

#[test]
fn draining_finishes_what_is_under_way_and_closes_what_is_idle() {
    let mut server = serve_on(2, HttpLimits::default());
    let mut idle = server.connect();
    assert_eq!(idle.ask("/ready").text(), "ready");
    let mut fresh = server.connect();
    let mut late = server.connect();
    let mut busy = server.connect();
    busy.get("/later");
    assert_eq!(server.note(), "waiting");
    server.wait_for_open(4);
    server.drain(LONG, Duration::ZERO);
    // Who has connected and not asked yet could not know.
    let answer = late.ask("/ready");
    assert_eq!(answer.text(), "ready");
    assert!(answer.closes());
    late.assert_end();
    idle.assert_end();
    fresh.assert_end();
    server.gate().open();
    let answer = busy.answer();
    assert_eq!(answer.text(), "later");
    assert!(answer.closes());
    busy.assert_end();
    drop(busy);
    server.join();
}

#[test]
fn within_the_grace_an_idle_connection_still_gets_its_answer() {
    let mut server = serve(HttpLimits::default());
    let mut client = server.connect();
    assert_eq!(client.ask("/ready").text(), "ready");
    server.drain(LONG, LONG);
    let answer = client.ask("/ready");
    assert_eq!(answer.text(), "ready");
    assert!(answer.closes());
    client.assert_end();
    drop(client);
    server.join();
}

/// Only the end of the connection ends such an answer.
#[test]
fn at_the_deadline_an_answer_without_a_length_does_not_look_whole() {
    let mut server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.send("GET /stream-and-wait?1000 HTTP/1.0\r\n\r\n");
    client.head();
    client.take(1000);
    server.drain(Duration::from_millis(10), Duration::ZERO);
    client.assert_reset();
    server.join();
}

#[test]
fn at_the_deadline_what_still_runs_is_broken_off() {
    let mut server = serve(HttpLimits::default());
    let mut stuck = server.connect();
    stuck.get("/stuck");
    assert_eq!(server.note(), "waiting");
    let mut bulk = server.connect();
    bulk.get("/endless");
    bulk.head();
    server.drain(Duration::from_millis(10), Duration::ZERO);
    server.join();
    assert_eq!(server.note(), "dropped, left: true");
    for _ in 0..2 {
        let finished = server.finished();
        assert_eq!(finished.outcome, Outcome::Broken);
        assert_eq!(finished.fault, Fault::Server);
    }
    stuck.assert_end();
}

#[test]
fn a_thread_that_has_ended_is_given_nothing_more() {
    let mut server = serve_on(2, HttpLimits::default());
    // The second thread ends, at its deadline, as the first goes on, and does so for both.
    crate::thread::Handle::new(&server.crew, 1).run::<super::Dummy>(|thread| {
        thread.drain(crate::thread::Drain {
            deadline: Duration::from_millis(10),
            grace: Duration::ZERO,
        });
    });
    let second = server.threads.pop().unwrap();
    second.join().unwrap();
    let mut clients: Vec<Client> = (0..6).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("/ready").text(), "ready");
    }
    assert_eq!(server.crew.connections_by_thread(), [6, 0]);
    let handle = crate::thread::Handle::new(&server.crew, 1);
    assert!(!handle.run::<super::Dummy>(|_| ()), "it is said so");
}

#[test]
fn a_thread_that_panics_is_given_nothing_more() {
    let mut server = serve_on(2, HttpLimits::default());
    let handle = crate::thread::Handle::new(&server.crew, 1);
    handle.run::<super::Dummy>(|_| std::panic::resume_unwind(Box::new("a test")));
    let second = server.threads.pop().unwrap();
    assert!(second.join().is_err());
    for _ in 0..6 {
        assert_eq!(server.connect().ask("/ready").text(), "ready");
    }
}

#[test]
fn listening_sockets_are_exchanged_by_number_and_socket() {
    let server = serve(HttpLimits::default());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = server.connect();
    server.ask(move |thread| {
        thread
            .set_listeners(vec![Listening::new(7, Arc::new(listener.into()))])
            .unwrap()
    });
    assert_eq!(Client::connect(address).ask("/ready").text(), "ready");
    assert_eq!(client.ask("/ready").text(), "ready", "connections stay");
}

#[test]
fn a_unix_socket_serves_too() {
    let server = serve(HttpLimits::default());
    let dir = std::env::temp_dir().join(format!("hob-http-{}", std::process::id()));
    let _ = std::fs::remove_file(&dir);
    let listener = std::os::unix::net::UnixListener::bind(&dir).unwrap();
    listener.set_nonblocking(true).unwrap();
    server.ask(move |thread| {
        thread
            .set_listeners(vec![Listening::new(9, Arc::new(listener.into()))])
            .unwrap()
    });
    let mut stream = std::os::unix::net::UnixStream::connect(&dir).unwrap();
    std::fs::remove_file(&dir).unwrap();
    let request = "GET /facts HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("\r\n\r\nnone 9 true"), "{text}");
}

#[test]
fn an_idle_connection_is_small() {
    let conn = size_of::<crate::thread::conn::SocketConnection>();
    let facts = size_of::<crate::request::ConnectionFacts>();
    assert!(conn + facts <= 640, "{conn} + {facts} bytes");
}
