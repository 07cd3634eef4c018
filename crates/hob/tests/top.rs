//! `hob top`: once as text, as JSON, and on a real terminal of 80 columns and 24 lines.
#![allow(clippy::unwrap_used)]

mod harness;

use std::path::Path;

use harness::client::{Connection, get};
use harness::terminal::{ENTER, LEAVE, on_terminal, picture};
use harness::{Hob, Place, text_of};
use serde_json::Value;

/// A name of a browser that would clear the screen, turn writing round, and change the colour.
const HOSTILE_AGENT: &str = "evil\u{9b}2J\u{202e}agent";

/// A place whose `/hold/` takes until a file is there.
fn holding() -> (Place, Hob) {
    let place = Place::new();
    place.folder("cgi");
    let script = place.path("cgi/hold");
    let text = "#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done\n\
                printf 'Content-Type: text/plain\\n\\nheld\\n'\n";
    std::fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n",
    );
    (place, hob)
}

/// What is shown on a terminal with these steps.
fn shown(place: &Place, arguments: &[&str], steps: &str) -> String {
    let hob = place.path("hob");
    let mut program = vec![hob.to_str().unwrap(), "top"];
    program.extend(arguments);
    on_terminal(place.command_of(Path::new("python3")), steps, &program)
}

/// Waits until a running request is told of.
fn wait_until_running(place: &Place) -> Value {
    loop {
        let output = place.run(&["top", "--once", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        if let Some(request) = told["running"].get(0) {
            return request.clone();
        }
    }
}

#[test]
fn once_prints_a_screenful_without_a_terminal() {
    let place = Place::new();
    let hob = place.serve_config("");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    // Its route is told of once it has come to its end.
    place.wait_for_counter("requests", 1);
    let output = place.run(&["top", "--once"]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 24, "{text}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text:?}");
    assert!(
        lines[0].starts_with(concat!("hob ", env!("CARGO_PKG_VERSION"), " on ")),
        "{text}"
    );
    assert!(lines[0].ends_with(" UTC"), "{text}");
    for wanted in [
        "1 overview",
        "requests",
        "median",
        "workers",
        "CPU",
        "cache",
        "99 % within",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    // The route that answered.
    let routes = text_of(&place.run(&["top", "--once", "--view", "routes"]));
    let row = routes.lines().nth(3).unwrap_or_default();
    assert!(
        row.starts_with("/*  ") && row.contains("  files  "),
        "{routes}"
    );
    let filtered = place.run(&[
        "top",
        "--once",
        "--view",
        "routes",
        "--filter",
        "nothing like it",
    ]);
    assert!(text_of(&filtered).contains("nothing has that text"));
    hob.stop();
}

#[test]
fn json_has_overview_programs_running_and_routes() {
    let (place, hob) = holding();
    let mut client = Connection::open(hob.port()).unwrap();
    client.send_get("/cgi/hold?a=b").unwrap();
    let request = wait_until_running(&place);
    assert_eq!(request["target"], "/cgi/hold?a=b");
    assert_eq!(request["method"], "GET");
    place.write("cgi/go", "");
    assert_eq!(client.read_reply().answer.text(), "held\n");
    let output = place.run(&["top", "--once", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["overview"]["generation"], 1);
    assert!(told["routes"].is_array());
    hob.stop();
}

#[test]
fn views_help_and_filter_are_a_key_away_and_the_terminal_is_given_back() {
    let place = Place::new();
    let hob = place.serve_config("");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    let steps = r#"[
        ["see", "median"], ["type", "2"], ["see", "PROGRAM"], ["type", "3"], ["see", "CLIENT"],
        ["type", "4"], ["see", "ROUTE"], ["type", "/xyz\r"], ["see", "nothing has that text"],
        ["type", "?"], ["see", "any key goes back"], ["type", " "], ["see", "q quit"],
        ["picture"], ["type", "q"]
    ]"#;
    let text = shown(&place, &[], steps);
    assert!(text.ends_with("\nEXIT 0 ECHO True\n"), "{text}");
    assert!(text.contains(ENTER) && text.contains(LEAVE), "{text:?}");
    let last = picture(&text);
    assert!(
        last[1].contains("4 routes") && last[1].contains("/xyz, by 99 %"),
        "{last:?}"
    );
    assert!(last[23].starts_with("1-4 views"), "{last:?}");
    hob.stop();
}

#[test]
fn request_is_shown_in_full_and_nothing_of_it_steers_the_terminal() {
    let (place, hob) = holding();
    let mut client = Connection::open(hob.port()).unwrap();
    let head = format!(
        "GET /cgi/hold?%1b[2J HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {HOSTILE_AGENT}\r\n\
         Connection: close\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    wait_until_running(&place);
    let steps = r#"[
        ["see", "/cgi/hold"], ["type", "\r"], ["see", "browser"], ["picture"], ["type", "\r"],
        ["see", "q quit"], ["type", "\u0003"]
    ]"#;
    let text = shown(&place, &["--view", "running"], steps);
    assert!(text.ends_with("\nEXIT 0 ECHO True\n"), "{text}");
    assert!(text.contains("evil\\u{9b}2J\\u{202e}agent"), "{text:?}");
    assert!(!text.contains(['\u{9b}', '\u{202e}']), "{text:?}");
    place.write("cgi/go", "");
    assert_eq!(client.read_reply().answer.text(), "held\n");
    hob.stop();
}

#[test]
fn server_that_hangs_is_said_and_one_that_dies_is_followed_by_the_next() {
    let place = Place::new();
    let hob = place.serve_config("");
    let server = hob.server();
    let stop = format!(r#"["signal", {server}, "STOP"]"#);
    let go_on = format!(r#"["signal", {server}, "CONT"]"#);
    let kill = format!(r#"["signal", {server}, "KILL"]"#);
    let steps = format!(
        r#"[["see", "median"], {stop}, ["see", "no answer since"], {go_on}, ["see", " UTC"],
            {kill}, ["draws", 4], ["see", " UTC"], ["picture"], ["type", "q"]]"#
    );
    let text = shown(&place, &["-d", "200ms"], &steps);
    assert!(text.ends_with("\nEXIT 0 ECHO True\n"), "{text}");
    hob.wait_for_count("server ready", 2);
    assert_ne!(hob.server(), server);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    hob.stop();
}

#[test]
fn no_hob_no_terminal_and_wrong_arguments_are_refused() {
    let place = Place::new();
    for arguments in [&["top"][..], &["top", "--once"], &["top", "--json"]] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(3), "{}", text_of(&output));
    }
    let hob = place.serve_config("");
    let output = place.run(&["top"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output).contains("--once"), "{}", text_of(&output));
    for arguments in [&["top", "-d", "1ms"][..], &["top", "--view", "none"]] {
        assert_eq!(place.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
    hob.stop();
}
