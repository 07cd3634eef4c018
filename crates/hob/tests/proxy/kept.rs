//! How long a connection is kept: requests, age, and time without one.

use std::sync::mpsc::{Receiver, channel};

use crate::harness::client::call;
use crate::peer::{Act, Peer, answer, answers, serve};

/// Answers once, and tells when the other side has closed, and whether in order.
fn answers_until_closed() -> (Act, Receiver<bool>) {
    let (closed, is_closed) = channel();
    let act: Act = Box::new(move |taken| {
        taken.write(&answer("kept"));
        closed.send(taken.ends_in_order()).unwrap();
    });
    (act, is_closed)
}

/// A connection that is closed by this limit while it rests; the next request has another.
fn closed_while_it_rests(keys: &str, counter: &str) {
    let (act, is_closed) = answers_until_closed();
    let peer = Peer::start(vec![act, answers(1)]);
    let site = serve(&[&peer], keys);
    assert_eq!(site.get("/app/").answer.text(), "kept");
    assert!(is_closed.recv().unwrap(), "in order");
    assert_eq!(site.place.counter(counter), 1);
    // What must not be sent twice, too.
    let posted = call(site.port(), "POST", "/app/", "", b"once").answer;
    assert_eq!(posted.text(), "0");
    assert_eq!(site.place.counter("upstream_connects"), 2);
    assert_eq!(site.place.counter("upstream_reuses"), 0);
    site.stop();
    peer.join();
}

#[test]
fn connection_without_a_request_is_closed_after_its_idle_time() {
    closed_while_it_rests("keep_idle = \"100ms\"", "limit_upstream_keep_idle");
}

#[test]
fn connection_is_closed_when_it_is_as_old_as_it_may_be() {
    closed_while_it_rests("keep_time = \"100ms\"", "limit_upstream_keep_time");
}

#[test]
fn connection_is_closed_after_so_many_requests() {
    let twice = || -> Act {
        Box::new(|taken| {
            taken.write(&answer("first"));
            taken.read();
            taken.write(&answer("second"));
            assert!(taken.ends_in_order());
        })
    };
    let peer = Peer::start(vec![twice(), twice()]);
    let site = serve(&[&peer], "keep_requests = 2");
    let told: Vec<_> = (0..4).map(|_| site.get("/app/").answer.text()).collect();
    assert_eq!(told, ["first", "second", "first", "second"]);
    let counters = ["upstream_connects", "upstream_reuses"].map(|name| site.place.counter(name));
    assert_eq!(counters, [2, 2]);
    assert_eq!(site.place.counter("limit_upstream_keep_requests"), 2);
    // They are closed before the server ends.
    peer.join();
    site.stop();
}
