//! Every limit of a program behind an upstream: reaching it is an answer, a reason and a count.

use crate::harness::Place;
use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, sends, stays_after};
use crate::site::serve_members;
use crate::wire::{KEY, end, output};

const BEGUN: &str = "Content-Type: text/plain\r\n\r\nbegun";

fn serve(acts: Vec<Act>, keys: &str) -> (Site, Peer) {
    let place = Place::new();
    let peer = Peer::start(&place, acts);
    (serve_members(place, &["peer.sock"], keys), peer)
}

/// A peer that stays silent after these bytes, and the counter and reason of the limit it meets.
fn silent(bytes: Vec<u8>, timeout: &str, counter: &str, reason: &str) -> bool {
    let reason = format!("limits: {KEY}.timeout.{reason}");
    let (site, peer) = serve(
        vec![stays_after(bytes)],
        &format!("timeout = {{ {timeout} }}"),
    );
    let reply = site.get("/app/x");
    let is_broken = !reply.is_whole;
    if !is_broken {
        assert_eq!(reply.answer.status, 504);
    }
    assert_eq!(site.record("/app/x")["reason"], reason);
    assert_eq!(site.place.counter(counter), 1);
    // It is told: the connection is closed.
    peer.join();
    site.stop();
    is_broken
}

#[test]
fn program_that_says_nothing_is_given_up() {
    let reason = "first_byte: no head of an answer in time";
    let counter = "limit_upstream_first_byte";
    assert!(!silent(
        Vec::new(),
        "first_byte = \"100ms\"",
        counter,
        reason
    ));
    assert!(!silent(
        output("Content-Type: te"),
        "first_byte = \"100ms\"",
        counter,
        reason
    ));
}

#[test]
fn answer_that_falls_silent_or_takes_too_long_breaks_off() {
    let reason = "progress: the answer fell silent";
    let progress = "progress = \"100ms\"";
    assert!(silent(
        output(BEGUN),
        progress,
        "limit_upstream_progress",
        reason
    ));
    let reason = "total: the answer took too long";
    // The head must come within it, on a busy machine too.
    assert!(silent(
        output(BEGUN),
        "total = \"2s\"",
        "limit_upstream_total",
        reason
    ));
    assert!(!silent(
        Vec::new(),
        "total = \"100ms\"",
        "limit_upstream_total",
        reason
    ));
    let events = output("Content-Type: text/event-stream\r\n\r\ndata: x\n\n");
    let reason = "events: the stream of events fell silent";
    let timeout = "events = \"3s\", total = \"2s\", progress = \"2s\"";
    assert!(silent(events, timeout, "limit_upstream_events", reason));
}

#[test]
fn connection_that_is_not_taken_in_time_is_a_504() {
    let place = Place::new();
    let path = place.path("run/full.sock");
    let listener = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&listener, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
    // One may wait, and nobody is taken.
    rustix::net::listen(&listener, 0).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&path, mode).unwrap();
    let _waiting = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let site = serve_members(place, &["full.sock"], "timeout = { connect = \"100ms\" }");
    assert_eq!(site.get("/app/x").answer.status, 504);
    assert_eq!(
        site.record("/app/x")["reason"],
        format!("limits: {KEY}.timeout.connect: the program did not take the connection in time")
    );
    assert_eq!(site.place.counter("limit_upstream_connect"), 1);
    site.stop();
}

#[test]
fn requests_wait_for_a_connection_and_the_queue_has_an_end() {
    let answer = [output("Content-Type: text/plain\r\n\r\nwell"), end()].concat();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let first = answer.clone();
    let waits: Act = Box::new(move |stream| {
        may_go.recv().unwrap();
        std::io::Write::write_all(stream, &first).unwrap();
    });
    let keys = "connections = 1, queue = { max = 1 }";
    let (site, peer) = serve(vec![waits, sends(answer)], keys);
    let begin = |target: &str| {
        let mut connection = Connection::open(site.port()).unwrap();
        connection.send_get(target).unwrap();
        connection
    };
    let mut first = begin("/app/first");
    let mut second = begin("/app/second");
    site.place.wait_for_counter("limit_program_concurrent", 1);
    let third = site.get("/app/third").answer;
    assert_eq!(
        (third.status, third.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(
        site.record("/app/third")["reason"],
        format!("limits: {KEY}.queue.max: too many requests wait for the program")
    );
    go.send(()).unwrap();
    assert_eq!(first.read().unwrap().text(), "well");
    assert_eq!(second.read().unwrap().text(), "well");
    peer.join();
    site.stop();
}

#[test]
fn request_waits_for_a_connection_no_longer_than_it_may() {
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let waits: Act = Box::new(move |stream| {
        may_go.recv().unwrap();
        let answer = [output("Content-Type: text/plain\r\n\r\nwell"), end()].concat();
        std::io::Write::write_all(stream, &answer).unwrap();
    });
    let keys = "connections = 1, queue = { wait = \"100ms\" }";
    let (site, peer) = serve(vec![waits], keys);
    let mut first = Connection::open(site.port()).unwrap();
    first.send_get("/app/first").unwrap();
    // Whichever comes first has the connection; the other waits in vain.
    let mut second = Connection::open(site.port()).unwrap();
    second.send_get("/app/second").unwrap();
    site.place.wait_for_counter("limit_program_queue_time", 1);
    go.send(()).unwrap();
    let mut told = [first.read().unwrap().status, second.read().unwrap().status];
    told.sort();
    assert_eq!(told, [200, 503]);
    peer.join();
    site.stop();
}

#[test]
fn client_that_leaves_has_the_connection_closed() {
    let (site, peer) = serve(vec![stays_after(output(BEGUN))], "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get("/app/x").unwrap();
    client.read_until("begun");
    client.leave();
    // Its read ends.
    peer.join();
    assert_eq!(site.record("/app/x")["outcome"], "client-left");
    site.stop();
}
