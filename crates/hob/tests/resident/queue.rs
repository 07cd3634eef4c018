//! Requests that wait for a worker.

use crate::harness::client::Connection;
use crate::place::serve;
use crate::site::Programs;

/// Sends a request and waits until so many wait.
fn wait_behind(site: &Programs, target: &str, count: u64) -> Connection {
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("GET", target, "");
    site.wait_for_pool("waiting", |pool| pool["waiting"] == count);
    client
}

#[test]
fn full_queue_is_answered_with_503_at_once() {
    let site = serve("workers = { max = 1 }, queue = { max = 1, wait = \"60s\" }");
    let mut first = site.begin("/app/hold/one", "one");
    let mut second = wait_behind(&site, "/app/pid", 1);
    let third = site.get("/app/pid?third").answer;
    assert_eq!(third.status, 503);
    assert!(third.header("retry-after").is_some(), "{third:?}");
    let (reason, detail) = site.reason("/app/pid?third");
    assert_eq!(
        reason,
        "limits: resident.queue.max: too many requests wait for the program"
    );
    assert!(
        detail.contains("1 workers, the most there may be"),
        "{detail}"
    );
    site.go("one");
    assert_eq!(first.read_reply().answer.status, 200);
    assert_eq!(second.read_reply().answer.status, 200);
    assert_eq!(site.place.counter("limit_resident_queue"), 1);
    site.stop();
}

#[test]
fn request_that_waits_for_too_long_is_answered_with_503() {
    let site = serve("workers = { max = 1 }, queue = { wait = \"100ms\" }");
    site.wait_for_pool("ready", |pool| pool["workers"][0]["state"] == "idle");
    let mut first = site.begin("/app/hold/one", "one");
    let second = site.get("/app/pid").answer;
    assert_eq!(second.status, 503);
    assert!(second.header("retry-after").is_some(), "{second:?}");
    let (reason, _) = site.reason("/app/pid");
    assert_eq!(
        reason,
        "limits: resident.queue.wait: no worker became free in time"
    );
    assert_eq!(site.place.counter("limit_resident_wait"), 1);
    site.go("one");
    assert_eq!(first.read_reply().answer.status, 200);
    site.stop();
}

#[test]
fn client_that_leaves_frees_its_place_in_the_queue() {
    let site = serve("workers = { max = 1 }, queue = { max = 1, wait = \"60s\" }");
    let mut first = site.begin("/app/hold/one", "one");
    drop(wait_behind(&site, "/app/hold/never", 1));
    site.wait_for_pool("nobody waits", |pool| pool["waiting"] == 0);
    let mut third = wait_behind(&site, "/app/pid", 1);
    site.go("one");
    assert_eq!(first.read_reply().answer.status, 200);
    assert_eq!(third.read_reply().answer.status, 200);
    assert!(!site.path("never.begun").exists());
    site.stop();
}

#[test]
fn status_tells_what_a_worker_does() {
    let site = serve("workers = { max = 1 }");
    let mut client = site.begin("/app/hold/one", "one");
    let worker = &site.pool()["workers"][0];
    assert_eq!(worker["state"], "busy");
    assert_eq!(worker["requests"][0]["request"], "GET /app/hold/one");
    assert!(worker["memory_bytes"].as_u64().unwrap() > 1_000_000);
    let output = site.place.run(&["status", "--programs"]);
    let text = crate::harness::text_of(&output);
    assert!(text.contains("  GET /app/hold/one for "), "{text}");
    assert!(!text.contains("keeper"), "{text}");
    site.go("one");
    assert_eq!(client.read_reply().answer.status, 200);
    site.wait_for_pool("idle", |pool| pool["workers"][0]["state"] == "idle");
    site.stop();
}
