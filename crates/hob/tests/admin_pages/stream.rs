//! Server-sent events.

use serde_json::{Value, json};

use crate::harness::client::Connection;
use crate::harness::{Hob, Place};
use crate::place::{Pages, Visitor, serve};

/// A stream of events that goes on.
pub(crate) fn begin(visitor: &Visitor<'_>, target: &str) -> Connection {
    let mut connection = Connection::open(visitor.pages.port).unwrap();
    let fields = format!(
        "{}Cookie: {}\r\n",
        visitor.pages.own_fields(),
        visitor.cookie
    );
    let head = format!("GET {target} HTTP/1.1\r\n{fields}\r\n");
    connection.send(head.as_bytes()).unwrap();
    connection.read_until("text/event-stream");
    connection
}

fn readers(hob: &Hob, place: &Place) -> u64 {
    let _ = hob;
    place.status()["admin"]["readers"].as_u64().unwrap()
}

#[test]
fn the_overview_is_pushed_each_second_until_its_reader_leaves() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let mut stream = begin(&visitor, "/v1/live?page=overview");
    for _ in 0..3 {
        stream.read_until("event: overview\ndata: {");
    }
    assert_eq!(readers(&hob, &place), 1);
    for page in ["programs", "running", "connections"] {
        let mut stream = begin(&visitor, &format!("/v1/live?page={page}"));
        stream.read_until(&format!("event: {page}\ndata: {{"));
    }
    drop(stream);
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    while readers(&hob, &place) > 0 {
        assert!(
            std::time::Instant::now() < until,
            "the reader is not given up"
        );
    }
    for (query, status) in [
        ("page=nothing", 404),
        ("page=overview&page=overview", 400),
        ("page=history%3Fstatus=many", 400),
    ] {
        let answer = visitor.get(&format!("/v1/live?{query}"));
        assert_eq!(answer.status, status, "{query}");
    }
    hob.stop();
}

#[test]
fn several_pages_come_over_one_stream_with_queries_of_their_own() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let get = |path: &str| crate::harness::client::get(hob.port(), path).unwrap();
    for path in ["/one", "/two", "/three"] {
        assert_eq!(get(path).status, 404);
    }
    place.wait_for_counter("requests", 3);
    let target = "/v1/live?page=routes%3Flimit%3D1&page=activity%3Fstep%3D60&page=statistics\
                  &page=history%3Fsort%3Dslowest%26limit%3D2%26within%3D1h";
    let mut stream = begin(&visitor, target);
    let mut last = |name: &str| -> Value {
        stream.read_until(&format!("event: {name}\ndata: "));
        let text = stream.read_through("\n\n");
        serde_json::from_str(text.trim()).unwrap()
    };
    assert_eq!(last("routes")["routes"].as_array().unwrap().len(), 1);
    let activity = last("activity");
    assert_eq!(activity["step_s"], 60);
    assert!((4..=5).contains(&activity["rows"].as_array().unwrap().len()));
    assert!(last("statistics")["start"].is_object());
    let slowest = last("history");
    assert_eq!(
        (
            slowest["requests"].as_array().unwrap().len(),
            &slowest["more"]
        ),
        (2, &json!(true))
    );
    hob.stop();
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    // Nothing runs; the overview, which changes each second, tells how much time has gone by.
    let mut stream = begin(&visitor, "/v1/live?page=running&page=overview");
    let mut text = String::new();
    for _ in 0..4 {
        text.push_str(&stream.read_through("event: overview\ndata: {"));
    }
    assert_eq!(text.matches("event: running\n").count(), 1, "{text}");
    hob.stop();
}

#[test]
fn readers_are_limited() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let socket = place.path("run/hob/control.sock");
    // As many over the control socket as there may be; the listener's own connections stay free.
    let streams: Vec<Connection> = (0..60)
        .map(|_| {
            let mut connection = Connection::open_unix(&socket).unwrap();
            let head = "GET /v1/live HTTP/1.1\r\nHost: hob\r\n\r\n";
            connection.send(head.as_bytes()).unwrap();
            connection.read_until("text/event-stream");
            connection
        })
        .collect();
    let more: Vec<Connection> = (0..4).map(|_| begin(&visitor, "/v1/live")).collect();
    let answer = visitor.get("/v1/live");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(place.status()["counters"]["limit_admin_readers"], 1);
    drop((streams, more));
    hob.stop();
}

#[test]
fn a_log_is_told_line_by_line_with_nothing_a_terminal_obeys() {
    let place = Place::new();
    let log = "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"run/access.log\"\n";
    let hob = serve(&place, log, "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let get = |path: &str| crate::harness::client::get(hob.port(), path).unwrap();
    get("/first");
    place.wait_for_counter("requests", 1);
    let logs = visitor.look("/v1/logs");
    let id = logs["logs"][0]["id"].as_u64().unwrap();
    assert!(
        logs["logs"][0]["path"]
            .as_str()
            .unwrap()
            .ends_with("run/access.log")
    );
    let mut stream = begin(&visitor, &format!("/v1/logs/{id}/tail"));
    stream.read_until("event: ready");
    get("/second");
    stream.read_until("event: line\ndata: \"127.0.0.1");
    stream.read_until("/second");
    // Whatever stands in the file comes as JSON.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(place.path("run/access.log"))
        .unwrap();
    std::io::Write::write_all(&mut file, b"\x1b[31mred\n").unwrap();
    stream.read_until("\\u001b[31mred");
    let lines: Value = visitor.look(&format!("/v1/logs/{id}?lines=2"));
    let lines = lines["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].as_str().unwrap().contains("/second"));
    assert_eq!(lines[1], json!("\u{1b}[31mred"));
    assert_eq!(visitor.get("/v1/logs/7").status, 404);
    assert_eq!(visitor.get("/v1/logs/x").status, 404);
    hob.stop();
}
