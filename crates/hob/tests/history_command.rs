//! `hob history`: what was answered, chosen by filters, and the life of one request.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{ask, get};
use harness::{Hob, Place, send_signal, text_of, wait_for_end};
use rustix::process::Signal;
use serde_json::Value;
use std::time::{Duration, Instant};

/// What would clear the screen, turn writing round and set a title.
const HOSTILE_AGENT: &str = "evil\u{9b}2J\u{202e}agent";

/// A place with a script that fails, saying why.
fn serve() -> (Place, Hob) {
    let place = Place::new();
    place.folder("cgi");
    let script = place.path("cgi/fail");
    let text = "#!/bin/sh\nprintf 'no \\033[2J luck\\n' >&2\nexit 3\n";
    std::fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n",
    );
    (place, hob)
}

fn history(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(&[&["history"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What is found, as JSON.
fn found(place: &Place, arguments: &[&str]) -> Value {
    let text = history(place, &[arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap()
}

/// The targets of what is found, in the order of the alphabet.
fn targets(found: &Value) -> Vec<String> {
    let requests = found["requests"].as_array().unwrap();
    let target = |request: &Value| request["target"].as_str().unwrap().to_owned();
    let mut targets: Vec<String> = requests.iter().map(target).collect();
    targets.sort();
    targets
}

/// Whether a number of what is found never grows from one line to the next by more than that.
fn never_grows(found: &Value, by: u64, number: impl Fn(&Value) -> u64) -> bool {
    let numbers = found["requests"].as_array().unwrap().iter().map(number);
    numbers.is_sorted_by(|one, next| one + by >= *next)
}

/// Waits until so many requests are kept: a thread that is busy hands over its own a little later.
fn wait_for_kept(place: &Place, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while found(place, &[])["kept"] != count {
        assert!(Instant::now() < deadline, "{:#}", found(place, &[]));
    }
}

#[test]
fn requests_are_listed_newest_first_and_chosen_by_filters() {
    let (place, hob) = serve();
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert_eq!(ask(hob.port(), "GET", "/missing?a=b", "").status, 404);
    assert_eq!(ask(hob.port(), "GET", "/cgi/fail", "").status, 502);
    wait_for_kept(&place, 3);
    let all = found(&place, &[]);
    assert_eq!(targets(&all), ["/cgi/fail", "/hello.txt", "/missing?a=b"]);
    let total_us = |request: &Value| request["total_us"].as_u64().unwrap();
    let finished_us =
        |request: &Value| request["started_unix_ms"].as_u64().unwrap() * 1000 + total_us(request);
    assert!(never_grows(&all, 1000, finished_us), "{all:#}");
    for (filters, wanted) in [
        (&["status=5xx"][..], &["/cgi/fail"][..]),
        (&["status=404"], &["/missing?a=b"]),
        (&["path=/cgi/* handler=cgi"], &["/cgi/fail"]),
        (&["path=/cgi/*", "status=200"], &[]),
        (&["missing"], &["/missing?a=b"]),
        (&["slower=1h"], &[]),
        (
            &["since=1h", "client=127.0.0.1", "status=404", "--limit", "1"],
            &["/missing?a=b"],
        ),
        (&["until=2020-01-01T00:00:00Z"], &[]),
    ] {
        assert_eq!(targets(&found(&place, filters)), wanted, "{filters:?}");
    }
    let slowest = found(&place, &["--slowest"]);
    assert_eq!(targets(&slowest), targets(&all));
    assert!(never_grows(&slowest, 0, total_us), "{slowest:#}");
    let text = history(&place, &[]);
    assert!(text.starts_with("TIME "), "{text}");
    assert!(text.contains("GET /missing?a=b\n"), "{text}");
    // Before it stands where its time went, when it took long.
    let is_reason = |line: &str| line.starts_with("          ") && line.contains("script: the pro");
    assert!(text.lines().any(is_reason), "{text}");
    assert!(text.contains("3 shown of 3 that are kept"), "{text}");
    hob.stop();
}

#[test]
fn request_is_shown_in_full_by_its_id() {
    let (place, hob) = serve();
    let fields = format!("User-Agent: {HOSTILE_AGENT}\r\n");
    assert_eq!(ask(hob.port(), "GET", "/cgi/fail?x", &fields).status, 502);
    wait_for_kept(&place, 1);
    let list = found(&place, &[]);
    let id = list["requests"][0]["id"].as_str().unwrap();
    let text = history(&place, &[id]);
    assert!(text.starts_with("GET /cgi/fail?x\n"), "{text}");
    for wanted in [
        "status                502\n",
        "client                127.0.0.1, port ",
        "handler               cgi\n",
        "browser               evil\\u{9b}2J\\u{202e}agent\n",
        "what there is to say  ",
        "runs the program",
        "█",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    assert!(text.contains("no \\x1b[2J luck"), "{text}");
    // The same as JSON, which means what was sent and steers nothing either.
    let json = history(&place, &[id, "--json"]);
    assert!(!json.contains(['\u{9b}', '\u{202e}', '\x1b']), "{json:?}");
    let request: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(request["user_agent"], HOSTILE_AGENT);
    hob.stop();
}

#[test]
fn what_is_not_there_and_what_is_no_filter_is_refused() {
    let (place, hob) = serve();
    let output = place.run(&["history", "1.999.0"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    for wrong in ["stats=5xx", "slower=fast", "since=yesterday", "client="] {
        let output = place.run(&["history", wrong]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong}: {}",
            text_of(&output)
        );
    }
    // What only the server can tell.
    let output = place.run(&["history", "status=many"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    hob.stop();
    assert_eq!(place.run(&["history"]).status.code(), Some(3));
}

/// A `hob history --follow` that follows.
fn follow(place: &Place, arguments: &[&str]) -> Hob {
    let mut command = place.command();
    command.args(["history", "--follow"]).args(arguments);
    let follow = Hob::start(command);
    follow.wait_for("hob: following");
    follow
}

/// Ends it by Ctrl-C and gives all it printed.
fn interrupted(mut follow: Hob) -> String {
    follow.signal(Signal::INT);
    assert_eq!(follow.exit_code(), Some(0), "{}", follow.printed());
    follow.all_printed()
}

#[test]
fn requests_are_followed_as_they_finish_and_chosen_by_filters() {
    let (place, hob) = serve();
    assert_eq!(get(hob.port(), "/earlier").unwrap().status, 404);
    wait_for_kept(&place, 1);
    let lines = follow(&place, &["status=404"]);
    let objects = follow(&place, &["--json"]);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    let fields = format!("User-Agent: {HOSTILE_AGENT}\r\n");
    assert_eq!(ask(hob.port(), "GET", "/missing", &fields).status, 404);
    lines.wait_for("GET /missing");
    objects.wait_for("/missing");
    let text = interrupted(lines);
    // Below a request may stand what there is to say of it.
    let is_row = |line: &&str| !line.starts_with("hob:") && !line.starts_with(' ');
    let table: Vec<&str> = text.lines().filter(is_row).collect();
    assert_eq!(table.len(), 2, "{text}");
    assert!(table[0].starts_with("TIME ") && table[0].ends_with("REQUEST"));
    assert!(table[1].contains(" 404 ") && table[1].ends_with("GET /missing"));
    let text = interrupted(objects);
    let found = text.lines().filter(|line| line.starts_with('{'));
    let mut targets: Vec<String> = found
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|request| request["target"].as_str().unwrap().to_owned())
        .collect();
    targets.sort();
    assert_eq!(targets, ["/hello.txt", "/missing"], "{text}");
    assert!(!text.contains(['\u{9b}', '\u{202e}', '\x1b']), "{text:?}");
    for wrong in [&["--slowest"][..], &["--limit", "3"], &["stats=5xx"]] {
        let output = place.run(&[&["history", "--follow"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    let output = place.run(&["history", "--follow", "status=many"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    hob.stop();
}

#[test]
fn the_next_server_is_followed_too() {
    let (place, hob) = serve();
    let lines = follow(&place, &[]);
    let server = hob.server();
    send_signal(server, Signal::KILL);
    wait_for_end(server);
    hob.wait_for_count("server ready", 2);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    lines.wait_for("GET /hello.txt");
    interrupted(lines);
    hob.stop();
}

#[test]
fn a_history_that_is_off_is_not_followed_and_one_that_is_turned_off_no_longer() {
    let (place, hob) = serve();
    let config = std::fs::read_to_string(place.path("hob.toml")).unwrap();
    let mut lines = follow(&place, &[]);
    let off = format!("history = {{ bytes = 0 }}\n{config}");
    std::fs::write(place.path("hob.toml"), off).unwrap();
    assert_eq!(place.run(&["reload"]).status.code(), Some(0));
    lines.wait_for("the history is off");
    assert_eq!(lines.exit_code(), Some(1), "{}", lines.printed());
    let text = lines.all_printed();
    assert!(!text.contains("has ended"), "{text}");
    let output = place.run(&["history", "--follow"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let text = text_of(&output);
    assert!(text.contains("bytes` in `[history]` more than 0"), "{text}");
    hob.stop();
}
