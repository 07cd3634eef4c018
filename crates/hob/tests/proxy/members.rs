//! Several members: who is asked, who is left out, and what is asked for again.

use std::collections::HashMap;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::net::{AddressFamily, SocketType, bind, socket};

use crate::harness::client::call;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, Taken, answer, answers, sends, serve, serve_to};

/// A port where nobody listens: it is taken, so that nobody else gets it, to the end of all tests.
fn nowhere() -> u16 {
    let taken = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&taken, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = TcpListener::from(taken);
    let port = taken.local_addr().unwrap().port();
    std::mem::forget(taken);
    port
}

fn says(body: &'static str, count: usize) -> Act {
    Box::new(move |taken| {
        for at in 0..count {
            if at > 0 {
                taken.read();
            }
            taken.write(&answer(body));
        }
    })
}

fn get(site: &Site) -> (u16, String) {
    let answer = site.get("/app/").answer;
    (answer.status, answer.text())
}

#[test]
fn each_member_has_its_turn_over_connections_that_stay() {
    let (a, b) = (
        Peer::start(vec![says("a", 3)]),
        Peer::start(vec![says("b", 3)]),
    );
    let site = serve(&[&a, &b], "balance = \"round_robin\"");
    let told: String = (0..6).map(|_| get(&site).1).collect();
    assert_eq!(told, "ababab");
    assert_eq!(site.place.counter("upstream_connects"), 2);
    assert_eq!(site.place.counter("upstream_reuses"), 4);
    site.stop();
    for peer in [a, b] {
        peer.join();
    }
}

#[test]
fn request_of_which_nothing_was_sent_goes_to_another_whatever_it_is() {
    let peer = Peer::start(vec![answers(12)]);
    let to = format!(
        "\"http://127.0.0.1:{}\", \"http://127.0.0.1:{}\"",
        nowhere(),
        peer.port
    );
    let site = serve_to(&to, "balance = \"round_robin\", fail = { pause = \"1m\" }");
    for _ in 0..12 {
        let reply = call(site.port(), "POST", "/app/", "", b"once");
        assert_eq!(reply.answer.status, 200);
    }
    // After three failures nobody asks there.
    assert_eq!(site.place.counter("upstream_retries"), 3);
    assert_eq!(site.place.counter("upstream_out"), 1);
    let told = &site.place.status()["programs"]["upstreams"][0];
    assert_eq!(told["name"], "/app/* proxy");
    let is = |member: usize, key: &str| told["members"][member][key].clone();
    assert_eq!(
        (is(0, "state"), is(1, "state")),
        ("out".into(), "in".into())
    );
    assert_eq!((is(0, "failures"), is(1, "answers")), (3.into(), 12.into()));
    assert_eq!((is(0, "requests"), is(1, "requests")), (0.into(), 0.into()));
    assert!(
        is(1, "latency_ms").is_number() && is(0, "latency_ms").is_null(),
        "{told}"
    );
    site.stop();
    peer.join();
}

#[test]
fn reload_keeps_what_is_known_of_members_and_their_connections() {
    let peer = Peer::start(vec![says("a", 3)]);
    let to = format!(
        "\"http://127.0.0.1:{}\", \"http://127.0.0.1:{}\"",
        nowhere(),
        peer.port
    );
    let site = serve_to(
        &to,
        "fail = { count = 1, pause = \"1m\" }, balance = \"requests\"",
    );
    for _ in 0..3 {
        assert_eq!(get(&site), (200, "a".to_owned()));
        let reloaded = site.place.run(&["reload"]);
        assert!(reloaded.status.success(), "{reloaded:?}");
    }
    assert_eq!(site.place.counter("upstream_out"), 1);
    assert_eq!(site.place.counter("upstream_connects"), 1);
    site.stop();
    peer.join();
}

#[test]
fn all_out_is_a_503_at_once_with_its_reason() {
    let to = format!(
        "\"http://127.0.0.1:{}\", \"http://127.0.0.1:{}\"",
        nowhere(),
        nowhere()
    );
    let site = serve_to(&to, "fail = { count = 1, pause = \"1m\" }");
    let first = site.get("/app/first").answer;
    assert_eq!(first.status, 502);
    let second = site.get("/app/second").answer;
    assert_eq!(
        (second.status, second.header("retry-after")),
        (503, Some("1"))
    );
    let record = site.record("/app/second");
    assert_eq!(record["reason"], "all members are left out");
    assert_eq!(record["fault"], "upstream");
    site.stop();
}

#[test]
fn lone_member_is_always_asked() {
    let to = format!("\"http://127.0.0.1:{}\"", nowhere());
    let site = serve_to(&to, "");
    for _ in 0..10 {
        assert_eq!(get(&site).0, 502);
    }
    assert_eq!(site.place.counter("upstream_out"), 0);
    site.stop();
}

#[test]
fn member_that_gave_no_answer_is_followed_by_another_where_that_does_no_harm() {
    let closes = || sends("");
    for (method, status, retries) in [
        ("GET", 200, 1),
        ("PUT", 200, 1),
        ("POST", 502, 0),
        ("PATCH", 502, 0),
    ] {
        let (a, b) = (Peer::start(vec![closes()]), Peer::start(vec![answers(1)]));
        let site = serve(&[&a, &b], "balance = \"round_robin\"");
        let reply = call(site.port(), method, "/app/", "", b"body").answer;
        assert_eq!(reply.status, status, "{method}");
        assert_eq!(site.place.counter("upstream_retries"), retries, "{method}");
        if status == 502 {
            assert_eq!(
                call(site.port(), "GET", "/app/", "", b"").answer.status,
                200
            );
        }
        site.stop();
        for peer in [a, b] {
            peer.join();
        }
    }
}

#[test]
fn status_that_the_config_names_is_asked_for_elsewhere_and_passed_on_by_the_last() {
    let busy = || sends("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
    // Its answer has ended with the head.
    let empty = sends("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    let (a, b) = (
        Peer::start(vec![empty, busy()]),
        Peer::start(vec![answers(1), busy()]),
    );
    let keys =
        "balance = \"round_robin\", retry = { on = [\"503\"] }, fail = { count = 0 }, keep = 0";
    let site = serve(&[&a, &b], keys);
    assert_eq!(get(&site), (200, "0".to_owned()));
    // It begins with the other one now, and nobody is left after the first.
    assert_eq!(get(&site), (503, "busy".to_owned()));
    assert_eq!(site.place.counter("upstream_retries"), 2);
    site.stop();
    for peer in [a, b] {
        peer.join();
    }
}

#[test]
fn retries_end_with_their_number_and_with_their_budget() {
    let to: Vec<_> = (0..4)
        .map(|_| format!("\"http://127.0.0.1:{}\"", nowhere()))
        .collect();
    let site = serve_to(
        &to.join(", "),
        "fail = { count = 0 }, retry = { times = 1, budget = \"0%\" }",
    );
    for _ in 0..12 {
        assert_eq!(get(&site).0, 502);
    }
    // Ten beyond the share of requests, which is none.
    assert_eq!(site.place.counter("upstream_retries"), 10);
    site.stop();
}

#[test]
fn connection_that_was_closed_while_it_rested_is_nobodys_error() {
    let (closed, is_closed) = std::sync::mpsc::channel::<()>();
    let first: Act = Box::new(move |taken| {
        taken.write(&answer("first"));
        taken.close();
        closed.send(()).unwrap();
    });
    let peer = Peer::start(vec![first, says("second", 1)]);
    let site = serve(&[&peer], "");
    assert_eq!(get(&site).1, "first");
    is_closed.recv().unwrap();
    let reply = call(site.port(), "POST", "/app/", "", b"once").answer;
    assert_eq!(reply.text(), "second");
    site.stop();
    peer.join();
}

#[test]
fn connection_that_ends_as_it_is_used_again_is_no_error_for_who_may_ask_twice() {
    let reads_and_closes = || -> Act {
        Box::new(|taken| {
            taken.write(&answer("first"));
            taken.read();
        })
    };
    let peer = Peer::start(vec![reads_and_closes(), says("second", 1)]);
    let site = serve(&[&peer], "");
    assert_eq!(get(&site).1, "first");
    assert_eq!(get(&site).1, "second");
    assert_eq!(site.place.counter("upstream_retries"), 1);
    peer.join();
    site.stop();

    let peer = Peer::start(vec![reads_and_closes()]);
    let site = serve(&[&peer], "");
    assert_eq!(get(&site).1, "first");
    let posted = call(site.port(), "POST", "/app/", "", b"once").answer;
    assert_eq!(posted.status, 502);
    assert_eq!(site.place.counter("upstream_retries"), 0);
    peer.join();
    site.stop();
}

/// A member that writes down each request before it does anything else, and closes half of its
/// connections without an answer, some before and some after that.
fn unreliable(done: Arc<Mutex<HashMap<String, usize>>>, closed: Arc<AtomicUsize>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (seed, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let (done, closed) = (Arc::clone(&done), Arc::clone(&closed));
            std::thread::spawn(move || {
                let mut held = Vec::new();
                for at in 0.. {
                    while !held.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                        let mut room = [0; 4096];
                        match stream.read(&mut room) {
                            Ok(0) | Err(_) => return,
                            Ok(bytes) => held.extend_from_slice(&room[..bytes]),
                        }
                    }
                    let text = String::from_utf8(std::mem::take(&mut held)).unwrap();
                    let id = text.split(' ').nth(1).unwrap().to_owned();
                    *done.lock().unwrap().entry(id).or_default() += 1;
                    if (seed + at) % 3 == 2 {
                        closed.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    std::io::Write::write_all(&mut stream, &answer("done")).unwrap();
                }
            });
        }
    });
    port
}

#[test]
fn no_request_that_may_not_be_done_twice_is_done_twice() {
    const REQUESTS: usize = 1000;
    let done = Arc::new(Mutex::new(HashMap::new()));
    let closed = Arc::new(AtomicUsize::new(0));
    let to: Vec<_> = (0..2)
        .map(|_| unreliable(Arc::clone(&done), Arc::clone(&closed)))
        .map(|port| format!("\"http://127.0.0.1:{port}\""))
        .collect();
    let site = serve_to(
        &to.join(", "),
        "fail = { count = 0 }, retry = { times = 5, budget = \"100%\" }",
    );
    let lost = Mutex::new(0);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (site, lost) = (&site, &lost);
            scope.spawn(move || {
                for at in 0..REQUESTS / 4 {
                    let target = format!("/app/{worker}-{at}");
                    // A body of no bytes: nothing but its method says that it must not be repeated.
                    let reply = call(site.port(), "POST", &target, "", b"");
                    match reply.answer.status {
                        200 => {}
                        502 => *lost.lock().unwrap() += 1,
                        status => panic!("{status}"),
                    }
                }
            });
        }
    });
    let done = done.lock().unwrap();
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert!(closed.load(Ordering::Relaxed) >= 200, "{closed:?}");
    // Each that was not answered was begun: none was given up before.
    assert_eq!(done.len(), REQUESTS);
    assert_eq!(*lost.lock().unwrap(), closed.load(Ordering::Relaxed));
    site.stop();
}

#[test]
fn requests_beyond_the_connections_wait_in_the_queue_or_are_refused() {
    let (begin, began) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let waits: Act = Box::new(move |taken: &mut Taken| {
        begin.send(()).unwrap();
        may_go_on.recv().unwrap();
        taken.write(&answer("first"));
        taken.read();
        taken.write(&answer("second"));
    });
    let peer = Peer::start(vec![waits]);
    let site = serve(&[&peer], "connections = 1, keep = 1, queue = { max = 1 }");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| get(&site));
        began.recv().unwrap();
        let second = scope.spawn(|| get(&site));
        site.place.wait_for_counter("limit_program_concurrent", 1);
        let full = site.get("/app/full").answer;
        assert_eq!(full.status, 503);
        assert_eq!(
            site.record("/app/full")["reason"],
            "limits: proxy.queue.max: too many requests wait for the other server"
        );
        go_on.send(()).unwrap();
        assert_eq!(first.join().unwrap().1, "first");
        assert_eq!(second.join().unwrap().1, "second");
    });
    site.stop();
    peer.join();
}
