//! Several members: who is asked after one that fails, and what is never done twice.

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::harness::client::call;
use crate::harness::{DEADLINE, Place};
use crate::peer::{Act, Peer, sends};
use crate::site::serve_members;
use crate::wire::{KEY, end, output, read_variables};

fn well() -> Vec<u8> {
    let answer = output("Content-Type: text/plain\r\n\r\nwell");
    [answer, end()].concat()
}

fn answers(count: usize) -> Vec<Act> {
    (0..count).map(|_| sends(well())).collect()
}

#[test]
fn request_of_which_nothing_was_sent_goes_to_another_member_whatever_it_is() {
    let place = Place::new();
    let peer = Peer::start(&place, answers(12));
    let keys = "balance = \"round_robin\", fail = { pause = \"1m\" }";
    let site = serve_members(place, &["none.sock", "peer.sock"], keys);
    for _ in 0..12 {
        let reply = call(site.port(), "POST", "/app/", "", b"once");
        assert_eq!(reply.answer.status, 200);
    }
    // After three failures nobody asks there.
    assert_eq!(site.place.counter("upstream_retries"), 3);
    assert_eq!(site.place.counter("upstream_out"), 1);
    let told = &site.place.status()["programs"]["upstreams"][0];
    assert_eq!(told["name"], format!("/app/* {KEY}"));
    let is = |member: usize, key: &str| told["members"][member][key].clone();
    assert_eq!(
        (is(0, "state"), is(1, "state")),
        ("out".into(), "in".into())
    );
    assert_eq!((is(0, "failures"), is(1, "answers")), (3.into(), 12.into()));
    peer.join();
    site.stop();
}

#[test]
fn member_that_gave_no_answer_is_followed_by_another_where_that_does_no_harm() {
    for cut in [Vec::new(), output("Content-Ty")] {
        for (method, status, retries) in [("GET", 200, 1), ("PUT", 200, 1), ("POST", 502, 0)] {
            let place = Place::new();
            let a = Peer::start_at(&place, "run/a.sock", vec![sends(cut.clone())]);
            let b = Peer::start_at(&place, "run/b.sock", answers(1));
            let site = serve_members(place, &["a.sock", "b.sock"], "balance = \"round_robin\"");
            let reply = call(site.port(), method, "/app/", "", b"body").answer;
            assert_eq!(reply.status, status, "{method}");
            assert_eq!(site.place.counter("upstream_retries"), retries, "{method}");
            if status == 502 {
                assert_eq!(site.get("/app/").answer.status, 200);
            }
            a.join();
            b.join();
            site.stop();
        }
    }
}

#[test]
fn all_out_is_a_503_at_once() {
    let keys = "fail = { count = 1, pause = \"1m\" }";
    let site = serve_members(Place::new(), &["a.sock", "b.sock"], keys);
    assert_eq!(site.get("/app/first").answer.status, 502);
    let second = site.get("/app/second").answer;
    assert_eq!(
        (second.status, second.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(
        site.record("/app/second")["reason"],
        "all members are left out"
    );
    site.stop();
}

/// A member that answers every request with its name, and those for `/health` with a status.
fn named(place: &Place, socket: &str, health: &Arc<AtomicUsize>) {
    let (listener, name) = (listen(place, socket), socket.to_owned());
    let health = Arc::clone(health);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let variables = read_variables(&mut stream);
            let is_check = variables.windows(8).any(|bytes| bytes == b"/health?");
            let status = match is_check {
                true => health.load(Ordering::SeqCst),
                false => 200,
            };
            let head = format!("Status: {status}\r\nContent-Type: text/plain\r\n\r\n");
            let _ = stream.write_all(&[output(&(head + &name)), end()].concat());
        }
    });
}

#[test]
fn member_whose_check_fails_is_left_out_until_it_is_well() {
    let (well, ill) = (
        Arc::new(AtomicUsize::new(200)),
        Arc::new(AtomicUsize::new(503)),
    );
    let place = Place::new();
    named(&place, "run/a.sock", &ill);
    named(&place, "run/b.sock", &well);
    let keys =
        "balance = \"round_robin\", health = { path = \"/health?deep=1\", every = \"20ms\" }";
    let site = serve_members(place, &["a.sock", "b.sock"], keys);
    let wait_for = |state: &str| {
        let until = Instant::now() + DEADLINE;
        loop {
            let told = &site.place.status()["programs"]["upstreams"][0]["members"][0];
            if told["state"] == state {
                return;
            }
            assert!(Instant::now() < until, "{told}");
        }
    };
    wait_for("out");
    for _ in 0..4 {
        assert_eq!(site.get("/app/").answer.text(), "run/b.sock");
    }
    ill.store(204, Ordering::SeqCst);
    wait_for("in");
    let mut told = [site.get("/app/"), site.get("/app/")].map(|reply| reply.answer.text());
    told.sort();
    assert_eq!(told, ["run/a.sock", "run/b.sock"]);
    site.stop();
}

fn listen(place: &Place, socket: &str) -> UnixListener {
    let path = place.path(socket);
    let listener = UnixListener::bind(&path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(path, mode).unwrap();
    listener
}

/// A member that writes down each request before it does anything else, and closes some of its
/// connections without an answer, some before and some after a part of one.
fn unreliable(
    place: &Place,
    socket: &str,
    done: &Arc<Mutex<HashMap<Vec<u8>, usize>>>,
    closed: &Arc<AtomicUsize>,
) {
    let listener = listen(place, socket);
    let (done, closed) = (Arc::clone(done), Arc::clone(closed));
    std::thread::spawn(move || {
        for (at, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let variables = read_variables(&mut stream);
            let begin = variables.windows(5).position(|bytes| bytes == b"/app/");
            let id = &variables[begin.unwrap()..][..11];
            *done.lock().unwrap().entry(id.to_vec()).or_default() += 1;
            let answer = match at % 3 {
                0 => well(),
                1 => Vec::new(),
                _ => output("Content-Ty"),
            };
            if at % 3 > 0 {
                closed.fetch_add(1, Ordering::Relaxed);
            }
            let _ = stream.write_all(&answer);
        }
    });
}

#[test]
fn no_request_that_may_not_be_done_twice_is_done_twice() {
    const REQUESTS: usize = 400;
    let (done, closed) = (Arc::default(), Arc::default());
    let place = Place::new();
    for socket in ["run/a.sock", "run/b.sock"] {
        unreliable(&place, socket, &done, &closed);
    }
    let keys = "fail = { count = 0 }, retry = { times = 5, budget = \"100%\" }";
    let site = serve_members(place, &["a.sock", "b.sock"], keys);
    let lost = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (port, lost) = (site.port(), &lost);
            scope.spawn(move || {
                for at in 0..REQUESTS / 4 {
                    let target = format!("/app/{worker}-{at:04}");
                    // A body of no bytes: nothing but its method says that it must not be repeated.
                    match call(port, "POST", &target, "", b"").answer.status {
                        200 => {}
                        502 => drop(lost.fetch_add(1, Ordering::Relaxed)),
                        status => panic!("{status}"),
                    }
                }
            });
        }
    });
    let done = done.lock().unwrap();
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let closed = closed.load(Ordering::Relaxed);
    assert!(closed >= 200, "{closed}");
    // Each that was not answered was begun: none was given up before.
    assert_eq!((done.len(), lost.into_inner()), (REQUESTS, closed));
    site.stop();
}
