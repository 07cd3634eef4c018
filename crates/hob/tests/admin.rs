//! The control socket as any HTTP client sees it: what it tells, what it does, whom it obeys.
#![allow(clippy::unwrap_used)]

mod harness;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use harness::client::{Answer, Connection, ask, get};
use harness::{Place, config, is_root, text_of};
use serde_json::Value;

fn control(place: &Place, method: &str, target: &str) -> Answer {
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    connection.send_ask(method, target, "");
    connection.read_last(method)
}

fn json(answer: &Answer) -> Value {
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn status_tells_of_processes_sites_cache_and_every_counter() {
    let place = Place::new();
    let hob = place.serve_config("threads = 2");
    for _ in 0..3 {
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    }
    assert_eq!(ask(hob.port(), "GET", "/missing", "").status, 404);
    place.wait_for_counter("requests", 4);
    let answer = control(&place, "GET", "/v1/status");
    assert_eq!(answer.status, 200);
    let status = json(&answer);
    assert_eq!(status["generation"], 1);
    assert_eq!(status["keeper"]["pid"], hob.pid());
    assert_eq!(status["keeper"]["servers_started"], 1);
    assert_eq!(status["server"]["pid"], hob.server());
    assert_eq!(status["server"]["threads"], 2);
    let threads = status["server"]["connections_by_thread"].as_array();
    assert_eq!(threads.unwrap().len(), 2);
    assert_eq!(status["sites"], serde_json::json!(["*"]));
    let listening = status["listening"][0].as_str().unwrap();
    assert!(listening.ends_with(&hob.port().to_string()), "{listening}");
    let counters = &status["counters"];
    for (name, value) in [
        ("requests", 4),
        ("responses_2xx", 3),
        ("responses_4xx", 1),
        ("cache_hits", 2),
        ("limit_idle", 0),
        ("bad_request", 0),
    ] {
        assert_eq!(counters[name], value, "{name}");
    }
    // Requests here are not the site's.
    assert_eq!(control(&place, "HEAD", "/v1/status").status, 200);
    assert_eq!(place.counter("requests"), 4);
    hob.stop();
}

#[test]
fn socket_and_its_folder_are_for_their_user_alone() {
    let place = Place::new();
    let hob = place.serve_config("");
    for (name, mode) in [("run/hob", 0o700), ("run/hob/control.sock", 0o600)] {
        let found = place.path(name).metadata().unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}");
    }
    hob.stop();
}

#[test]
fn reload_says_what_came_of_it() {
    let place = Place::new();
    let hob = place.serve_config("");
    let answer = control(&place, "POST", "/v1/reload");
    assert_eq!(answer.status, 200);
    assert_eq!(json(&answer)["text"], "reloaded, generation 2");

    place.write("hob.toml", &config("drian = \"10s\"", "site"));
    let answer = control(&place, "POST", "/v1/reload");
    assert_eq!(answer.status, 409);
    let text = json(&answer)["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains("hob.toml:1:1") && text.contains("drian"),
        "{text}"
    );
    assert_eq!(place.status()["generation"], 2);
    hob.stop();
}

#[test]
fn upgrade_and_stop_are_answered_before_they_happen() {
    let place = Place::new();
    let mut hob = place.serve_config("");
    let before = hob.server();
    let answer = control(&place, "POST", "/v1/upgrade");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(json(&answer)["text"].is_string());
    hob.wait_for_count("server ready", 2);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert_ne!(place.status()["server"]["pid"], before);

    let answer = control(&place, "POST", "/v1/stop");
    assert_eq!(answer.status, 200);
    assert!(json(&answer)["text"].is_string());
    assert_eq!(hob.exit_code(), Some(0));
}

#[test]
fn wrong_method_gets_405_and_anything_else_404() {
    let place = Place::new();
    let hob = place.serve_config("");
    for (method, target, status, allowed) in [
        ("POST", "/v1/status", 405, Some("GET, HEAD")),
        ("GET", "/v1/reload", 405, Some("POST")),
        ("DELETE", "/v1/stop", 405, Some("POST")),
        ("GET", "/v1/upgrade", 405, Some("POST")),
        ("GET", "/", 404, None),
        ("GET", "/v1", 404, None),
        ("GET", "/v1/status/", 404, None),
        ("GET", "/hello.txt", 404, None),
    ] {
        let answer = control(&place, method, target);
        assert_eq!(answer.status, status, "{method} {target}");
        assert_eq!(answer.header("allow"), allowed, "{method} {target}");
        assert!(json(&answer)["text"].is_string());
    }
    // And the site knows nothing of it.
    assert_eq!(ask(hob.port(), "GET", "/v1/status", "").status, 404);
    assert_eq!(hob.servers().len(), 1);
    hob.stop();
}

#[test]
fn other_users_are_not_obeyed_even_when_they_can_connect() {
    if !is_root() {
        println!("skipped: needs root, to be another user");
        return;
    }
    let place = Place::new();
    let hob = place.serve_config("");
    let mode = |name: &str, mode| {
        std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    let socket = place.path("run/hob/control.sock").display().to_string();
    let run_as_daemon = |program: &Path, arguments: &[&str]| {
        let mut command = place.command_of(program);
        command.uid(1).gid(1).args(arguments).output().unwrap()
    };
    let hob_program = place.path("hob");
    let stop = || run_as_daemon(&hob_program, &["stop", "--control", &socket]);
    assert_eq!(stop().status.code(), Some(3));
    mode("run/hob", 0o755);
    mode("run/hob/control.sock", 0o666);
    // Neither speaks with the other: not the command, and not the server with who does not ask.
    let output = stop();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("belongs to user 65534: nothing was asked"),
        "{text}"
    );
    for asked in ["GET /v1/status", "POST /v1/reload", "POST /v1/stop"] {
        let ask = format!(
            "import socket\n\
             client = socket.socket(socket.AF_UNIX)\n\
             client.connect({socket:?})\n\
             client.sendall(b'{asked} HTTP/1.1\\r\\nHost: hob\\r\\nConnection: close\\r\\n'\n\
             \x20              b'Content-Length: 0\\r\\n\\r\\n')\n\
             print(client.makefile().read())\n"
        );
        let output = run_as_daemon(Path::new("python3"), &["-c", &ask]);
        let text = text_of(&output);
        assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
        assert!(text.contains("may not steer this server"), "{text}");
    }
    assert_eq!(place.status()["generation"], 1);
    hob.stop();
}
