//! Every limit of time: reaching it is an answer, a reason and a count.

use crate::peer::{Peer, serve, stays_after};

/// A peer that stays silent after these bytes, and the counter and reason of the limit it meets.
/// True where the answer had begun.
fn silent(bytes: &str, timeout: &str, counter: &str, reason: &str) -> bool {
    let peer = Peer::start(vec![stays_after(bytes)]);
    let site = serve(&[&peer], &format!("timeout = {{ {timeout} }}"));
    let reply = site.get("/app/x");
    let is_broken = !reply.is_whole;
    if !is_broken {
        assert_eq!(reply.answer.status, 504);
    }
    let record = site.record("/app/x");
    assert_eq!(record["reason"], reason);
    assert_eq!(record["fault"], "upstream");
    assert_eq!(site.place.counter(counter), 1);
    // It is told: the connection is closed.
    peer.join();
    site.stop();
    is_broken
}

#[test]
fn other_server_that_says_nothing_is_given_up() {
    let reason = "limits: proxy.timeout.first_byte: no head of an answer in time";
    let counter = "limit_upstream_first_byte";
    let first_byte = "first_byte = \"100ms\"";
    assert!(!silent("", first_byte, counter, reason));
    assert!(!silent("HTTP/1.1 200 O", first_byte, counter, reason));
    assert!(!silent(
        "HTTP/1.1 103 Early Hints\r\n\r\n",
        first_byte,
        counter,
        reason
    ));
}

#[test]
fn answer_that_falls_silent_or_takes_too_long_breaks_off() {
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun";
    let reason = "limits: proxy.timeout.progress: the answer fell silent";
    let progress = "progress = \"100ms\"";
    assert!(silent(begun, progress, "limit_upstream_progress", reason));
    let reason = "limits: proxy.timeout.total: the answer took too long";
    // The head must come within it, on a busy machine too.
    assert!(silent(
        begun,
        "total = \"2s\"",
        "limit_upstream_total",
        reason
    ));
    assert!(!silent(
        "",
        "total = \"100ms\"",
        "limit_upstream_total",
        reason
    ));
    let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n";
    let reason = "limits: proxy.timeout.events: the stream of events fell silent";
    let timeout = "events = \"3s\", total = \"2s\", progress = \"2s\"";
    assert!(silent(events, timeout, "limit_upstream_events", reason));
}
