//! Requests under way and open connections, and what a slow request's time went to.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "cgi/site.rs"]
mod site;
#[path = "watch/watcher.rs"]
mod watcher;

use std::time::Instant;

use harness::client::{Connection, begin_download, call};
use harness::over::Protocol;
use harness::{BIG_BYTES, DEADLINE, Place};
use serde_json::Value;
use site::Programs;
use watcher::{Watcher, history_of, object, object_when, of};

/// Waits until a running request is as it should be.
fn running(place: &Place, is_it: impl Fn(&Value) -> bool) -> Value {
    let requests = |told: &Value| told["requests"].as_array().unwrap().clone();
    let told = object_when(place, "/v1/running", |told| {
        requests(told).iter().any(&is_it)
    });
    requests(&told).into_iter().find(is_it).unwrap()
}

/// Much older than what else its time goes to on a busy machine.
fn is_old(request: &Value) -> bool {
    request["age_us"].as_u64().unwrap() > 1_000_000
}

/// A script `wait.cgi` that answers when its fifo was written to.
fn waiting() -> Programs {
    let programs = Programs::new().with_sh(
        "wait.cgi",
        "cat fifo\nprintf 'Content-Type: text/plain\\n\\nx'\n",
    );
    let fifo = programs.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&fifo, mode).unwrap();
    programs
}

#[test]
fn sleeping_script_is_listed_with_what_it_is_at() {
    let programs = waiting().serve("");
    let port = programs.port();
    let client = std::thread::spawn(move || call(port, "GET", "/cgi/wait.cgi", "", b""));
    let request = running(&programs.place, |request| request["state"] == "program");
    assert_eq!(request["target"], "/cgi/wait.cgi");
    assert_eq!(
        (&request["site"], &request["route"]),
        (&"*".into(), &"/cgi/*".into())
    );
    assert_eq!(request["handler"], "cgi");
    assert_eq!(request["protocol"], Protocol::tested().version());
    assert_eq!(request["status"], Value::Null);
    let connections = object(&programs.place, "/v1/connections");
    let connections = connections["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 1, "{connections:?}");
    let connection = &connections[0];
    assert_eq!(
        (&connection["state"], &connection["requests"]),
        (&"active".into(), &1.into())
    );
    assert_eq!(connection["client"], "127.0.0.1");
    let environment = object(&programs.place, "/v1/environment");
    let listeners = environment["listeners"].as_array().unwrap();
    assert!(listeners.contains(&connection["listener"]), "{connection}");
    assert!(connection["rtt_us"].as_u64().unwrap() > 0);
    assert!(connection["bytes_in"].as_u64().unwrap() > 0);
    assert_eq!(
        connection["tls_version"].is_string(),
        Protocol::tested() != Protocol::H1
    );
    std::fs::write(programs.path("fifo"), "").unwrap();
    assert_eq!(client.join().unwrap().answer.text(), "x");
    let until = Instant::now() + DEADLINE;
    // Over HTTP/3 it is over once all of it has arrived.
    while object(&programs.place, "/v1/running")["requests"] != serde_json::json!([]) {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
    programs.stop();
}

#[test]
fn client_that_does_not_read_is_the_network() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut watcher = Watcher::begin(&place, "slower=100ms");
    let (mut client, _) = begin_download(hob.port(), "/big.bin");
    // Much longer than it takes to send it, so that this is what most of its time went to.
    let request = running(&place, |request| {
        request["age_us"].as_u64().unwrap() > 2_000_000 && request["state"] == "sending"
    });
    assert_eq!(request["target"], "/big.bin");
    client.skip(BIG_BYTES as u64).unwrap();
    drop(client);
    let events = watcher.until("done");
    let done = of(&events, "done");
    assert!(
        done["verdict"].as_str().unwrap().starts_with("network: "),
        "{done:#}"
    );
    assert!(done["client_take_us"].as_u64().unwrap() > 100_000);
    assert!(done["rtt_us"].as_u64().unwrap() > 0);
    assert!(done["window_bytes"].as_u64().unwrap() > 0);
    hob.stop();
}

#[test]
fn client_that_sends_its_body_slowly_is_the_client_s_body() {
    let programs = Programs::new()
        .with_sh(
            "read.cgi",
            "read a\nread b\nprintf 'Content-Type: text/plain\\n\\n%s' $a$b\n",
        )
        .serve("");
    let mut watcher = Watcher::begin(&programs.place, "slower=100ms");
    let mut client = Connection::open(programs.port()).unwrap();
    client
        .send(b"POST /cgi/read.cgi HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\na\n")
        .unwrap();
    // Much longer than a program takes on a busy machine.
    running(&programs.place, |request| {
        request["age_us"].as_u64().unwrap() > 3_000_000 && request["state"] == "reading-body"
    });
    client.send(b"b\n").unwrap();
    assert_eq!(client.read_reply().answer.text(), "ab");
    let events = watcher.until("done");
    let done = of(&events, "done");
    assert!(
        done["verdict"]
            .as_str()
            .unwrap()
            .starts_with("client's body: "),
        "{done:#}"
    );
    programs.stop();
}

#[test]
fn slow_program_is_the_program_before_its_head_and_after() {
    let programs = Programs::new()
        .with_sh(
            "before.cgi",
            "sleep 2\nprintf 'Content-Type: text/plain\\n\\nx'\n",
        )
        .with_sh(
            "after.cgi",
            "printf 'Content-Type: text/plain\\n\\nx'\nsleep 2\necho y\n",
        )
        .serve("");
    let mut watcher = Watcher::begin(&programs.place, "slower=100ms");
    for path in ["/cgi/before.cgi", "/cgi/after.cgi"] {
        programs.get(path);
        let events = watcher.until("done");
        let done = of(&events, "done");
        assert!(
            done["verdict"].as_str().unwrap().starts_with("program: "),
            "{path}: {done:#}"
        );
        assert!(done["cpu_us"].as_u64().unwrap() > 0, "{path}: {done:#}");
    }
    programs.stop();
}

#[test]
fn who_waits_for_a_place_is_queued_and_the_verdict_says_so() {
    let programs = waiting().with_sh("quick.cgi", "printf 'Content-Type: text/plain\\n\\nx'\n");
    let programs = programs.serve("concurrent = 1");
    let mut watcher = Watcher::begin(&programs.place, "path=*quick.cgi&slower=100ms");
    let port = programs.port();
    let first = std::thread::spawn(move || call(port, "GET", "/cgi/wait.cgi", "", b""));
    running(&programs.place, |request| request["state"] == "program");
    let second = std::thread::spawn(move || call(port, "GET", "/cgi/quick.cgi", "", b""));
    let is_waiting = |request: &Value| is_old(request) && request["state"] == "queued";
    let request = running(&programs.place, is_waiting);
    assert_eq!(request["target"], "/cgi/quick.cgi");
    std::fs::write(programs.path("fifo"), "").unwrap();
    first.join().unwrap();
    second.join().unwrap();
    let events = watcher.until("done");
    let done = of(&events, "done");
    assert!(
        done["verdict"].as_str().unwrap().starts_with("queue: "),
        "{done:#}"
    );
    let queued = events.iter().filter(|event| event["stage"] == "queue");
    assert_eq!(queued.count(), 2, "{events:#?}");
    programs.stop();
}

#[test]
fn server_timing_is_told_where_the_config_wants_it() {
    let place = Place::new();
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/timed/*\"\nserver_timing = true\nfiles = \"site\"\n",
    );
    place.write("site/a.txt", "a");
    let field = |path: &str| {
        let reply = call(hob.port(), "GET", path, "", b"");
        assert_eq!(reply.answer.status, 200, "{path}");
        reply.answer.header("server-timing").map(str::to_owned)
    };
    for _ in 0..2 {
        let told = field("/timed/a.txt").unwrap();
        let total = told.rsplit_once("total;dur=").unwrap().1;
        total.parse::<f64>().unwrap();
    }
    assert_eq!(field("/a.txt"), None);
    hob.stop();
}

#[test]
fn texts_of_a_running_request_are_cut_as_those_of_the_history_are() {
    let programs = waiting().serve("");
    let port = programs.port();
    let long = |count: usize| "x".repeat(count);
    let target = format!("/cgi/wait.cgi?{}", long(2000));
    let fields = format!("Referer: {}\r\nUser-Agent: {}\r\n", long(2000), long(2000));
    let asked = target.clone();
    let client = std::thread::spawn(move || call(port, "GET", &asked, &fields, b""));
    let request = running(&programs.place, |request| request["state"] == "program");
    std::fs::write(programs.path("fifo"), "").unwrap();
    client.join().unwrap();
    assert_eq!(request["target"], target[..1024]);
    assert_eq!(request["referer"], long(512));
    assert_eq!(request["user_agent"], long(255));
    let history = history_of(&programs.place, "", 1);
    for text in ["target", "referer", "user_agent"] {
        assert_eq!(history["requests"][0][text], request[text], "{text}");
    }
}
