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
    wait_behind(&site, "/app/hold/never", 1).leave();
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

#[test]
fn retry_after_tells_how_long_those_before_will_take() {
    let site = serve("workers = { max = 1 }, queue = { wait = \"1s\" }");
    site.wait_for_pool("ready", |pool| pool["workers"][0]["state"] == "idle");
    let mut first = site.begin("/app/hold/one", "one");
    let seconds = std::thread::scope(|scope| {
        let ask = || site.get("/app/pid").answer;
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        let answers = clients.into_iter().map(|one| one.join().unwrap());
        let seconds = answers.map(|one| one.header("retry-after").unwrap().parse().unwrap());
        seconds.max()
    });
    // None of the eight was answered within the second that the first waited.
    assert!(seconds >= Some(5u64), "{seconds:?}");
    site.go("one");
    assert_eq!(first.read_reply().answer.status, 200);
    site.stop();
}

#[test]
fn places_that_streams_of_events_have_are_told_to_whoever_asks_why() {
    const EVENTS: &str = "async def application(scope, receive, send):\n    \
        assert scope['type'] == 'http'\n    \
        is_stream = scope['query_string'] == b'events'\n    \
        of = b'text/event-stream' if is_stream else b'text/plain'\n    \
        head = {'status': 200, 'headers': [(b'content-type', of)]}\n    \
        await send({'type': 'http.response.start', **head})\n    \
        body = {'body': b'data: 0\\n\\n', 'more_body': is_stream}\n    \
        await send({'type': 'http.response.body', **body})\n    \
        while is_stream and (await receive())['type'] != 'http.disconnect': pass\n";
    let site = Programs::new()
        .with_mode("app.py", EVENTS, 0o644)
        .serve_route(
            "path = \"/app\"\nresident = { asgi = \"app:application\", dir = \"cgi\", \
             workers = { max = 1, concurrency = 2 }, queue = { max = 1, wait = \"60s\" } }\n",
        );
    let listen = || {
        let mut client = Connection::open(site.port()).unwrap();
        client.send_ask("GET", "/app?events", "");
        client.read_until("data: 0\n\n");
        client
    };
    let (first, _second) = (listen(), listen());
    let mut third = wait_behind(&site, "/app?third", 1);
    let told = "WebSockets and streams of events have 2 of their 2 places";
    site.wait_for_pool("told", |pool| {
        pool["growth"].as_str().unwrap().contains(told)
    });
    assert_eq!(site.get("/app?fourth").answer.status, 503);
    let (_, detail) = site.reason("/app?fourth");
    assert!(detail.contains(told), "{detail}");
    first.leave();
    assert_eq!(third.read_reply().answer.text(), "data: 0\n\n");
    site.stop();
}

#[test]
fn status_names_the_key_that_holds_a_program_back() {
    let site = serve("workers = { max = 1 }, queue = { wait = \"60s\" }");
    let mut first = site.begin("/app/hold/one", "one");
    let mut second = wait_behind(&site, "/app/pid", 1);
    assert_eq!(site.pool()["growth"], "`workers.max` is 1");
    let text = crate::harness::text_of(&site.place.run(&["status", "--programs"]));
    assert!(text.contains("  grows: `workers.max` is 1\n"), "{text}");
    site.go("one");
    assert_eq!(first.read_reply().answer.status, 200);
    assert_eq!(second.read_reply().answer.status, 200);
    site.stop();
}
