//! Live tracing by the control socket: what is told of a request, to whom, and what is hidden.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "cgi/site.rs"]
mod site;
#[path = "watch/watcher.rs"]
mod watcher;

use harness::client::{Connection, call, get};
use harness::over::Protocol;
use harness::{DEADLINE, Place};
use site::Programs;
use watcher::{Watcher, control, object, of, stages};

#[test]
fn every_stage_of_a_program_is_told_and_what_it_prints() {
    let programs = Programs::new()
        .with_sh(
            "a.cgi",
            "echo 'first words' >&2\nread body\n\
             printf 'Content-Type: text/plain\\n\\ngot %s' \"$body\"\n",
        )
        .serve("");
    let mut watcher = Watcher::begin(&programs.place, "head=1&body=1");
    let reply = call(
        programs.port(),
        "POST",
        "/cgi/a.cgi?x=1",
        "X-Own: yes\r\n",
        b"some\n",
    );
    assert_eq!(reply.answer.text(), "got some");
    let events = watcher.until("done");
    let found = stages(&events);
    for stage in [
        "connection",
        "request",
        "request-head",
        "route",
        "request-body",
        "start",
        "stderr",
        "program",
        "answer",
        "answer-body",
        "done",
    ] {
        assert!(found.contains(&stage), "{stage} in {found:?}");
    }
    assert_eq!(found[0], "connection");
    let id = events[0]["id"].as_str().unwrap();
    assert!(events.iter().all(|event| event["id"] == id));
    let request = of(&events, "request");
    assert_eq!(request["method"], "POST");
    assert_eq!(request["target"], "/cgi/a.cgi?x=1");
    assert_eq!(request["site"], "*");
    assert_eq!(request["route"], "/cgi/*");
    assert_eq!(request["handler"], "cgi");
    let route = of(&events, "route")["text"].as_str().unwrap();
    assert!(
        route.starts_with("no site has the host's name; route 1 of "),
        "{route}"
    );
    assert_eq!(of(&events, "stderr")["text"], "first words");
    assert!(
        of(&events, "start")["text"]
            .as_str()
            .unwrap()
            .ends_with("a.cgi")
    );
    let body = of(&events, "request-body");
    assert_eq!(
        (&body["text"], &body["hex"]),
        (&"some\n".into(), &"736f6d650a".into())
    );
    assert_eq!(of(&events, "answer-body")["text"], "got some");
    let head = of(&events, "request-head")["text"].as_str().unwrap();
    assert!(head.to_lowercase().contains("x-own: yes"), "{head}");
    let answer = of(&events, "answer");
    assert_eq!(answer["status"], 200);
    assert!(
        answer["text"]
            .as_str()
            .unwrap()
            .contains("Content-Type: text/plain")
    );
    let done = of(&events, "done");
    assert_eq!(
        (&done["status"], &done["outcome"]),
        (&200.into(), &"complete".into())
    );
    assert!(done["program_us"].as_u64().unwrap() > 0 && done["cpu_us"].as_u64().unwrap() > 0);
    programs.stop();
}

#[test]
fn what_a_program_prints_after_the_end_is_told_to_those_whom_the_end_matches() {
    let programs = Programs::new().with_sh(
        "late.cgi",
        "printf 'Content-Type: text/plain\\nContent-Length: 1\\n\\nx'\n\
         cat fifo\necho 'last words' >&2\n",
    );
    let fifo = programs.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&fifo, open).unwrap();
    let programs = programs.serve("");
    let mut all = Watcher::begin(&programs.place, "");
    let mut good = Watcher::begin(&programs.place, "status=2xx");
    let mut bad = Watcher::begin(&programs.place, "status=4xx");
    assert_eq!(programs.get("/cgi/late.cgi").answer.text(), "x");
    for watcher in [&mut all, &mut good] {
        watcher.until("done");
    }
    std::fs::write(&fifo, "").unwrap();
    for watcher in [&mut all, &mut good] {
        let events = watcher.until("stderr");
        assert_eq!(of(&events, "stderr")["text"], "last words");
    }
    call(programs.port(), "GET", "/missing", "", b"");
    let events = bad.until("done");
    assert!(!stages(&events).contains(&"stderr"), "{events:#?}");
    programs.stop();
}

#[test]
fn secrets_are_hidden_unless_they_are_asked_for() {
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "[watch]\nhidden_query = [\"token\"]\nhidden_fields = [\"X-Api-Key\"]\n{}",
        harness::config("", "site")
    ));
    let mut watcher = Watcher::begin(&place, "head=1");
    let mut operator = Watcher::begin(&place, "head=1&secrets=1");
    let fields = "Authorization: Basic c2VjcmV0\r\nCookie: id=secret\r\nX-Api-Key: secret\r\n\
                  Referer: http://h/?token=secret\r\n";
    call(
        hob.port(),
        "GET",
        "/hello.txt?access_token=secret&a=b",
        fields,
        b"",
    );
    let events = watcher.until("done");
    let all = serde_json::to_string(&events).unwrap();
    assert!(
        !all.contains("secret") && !all.contains("c2VjcmV0"),
        "{all}"
    );
    assert!(all.contains("access_token=(hidden)&a=b"), "{all}");
    let all = serde_json::to_string(&operator.until("done")).unwrap();
    for shown in [
        "c2VjcmV0",
        "id=secret",
        "token=secret&a=b",
        "http://h/?token=secret",
    ] {
        assert!(all.contains(shown), "{shown} in {all}");
    }
    hob.stop();
}

#[test]
fn filters_leave_out_what_is_not_meant() {
    let programs = Programs::new()
        .with_sh("a.cgi", "printf 'Status: 503\\n\\n'\n")
        .with_sh(
            "slow.cgi",
            "sleep 3\nprintf 'Content-Type: text/plain\\n\\nx'\n",
        )
        .serve("");
    let queries = [
        ("path=/cgi/*", "/cgi/a.cgi"),
        ("path=~slow", "/cgi/slow.cgi"),
        ("status=4xx", "/missing"),
        ("status=5xx", "/cgi/a.cgi"),
        // So slow is no other one, however busy the machine.
        ("slower=2500ms&client=127.0.0.0/8", "/cgi/slow.cgi"),
        ("handler=files", "/hello.txt"),
        ("header=x-mark:^y.s$", "/hello.txt"),
        ("q=path%3D%2Fhello*%20site%3D%2A", "/hello.txt"),
    ];
    let watchers = queries.map(|(query, _)| Watcher::begin(&programs.place, query));
    let port = programs.port();
    call(port, "GET", "/hello.txt", "X-Mark: yes\r\n", b"");
    for (before, path) in (1..).zip(["/missing", "/cgi/a.cgi", "/cgi/slow.cgi"]) {
        // What is told of the end of one comes before the next one begins.
        programs.place.wait_for_counter("requests", before);
        programs.get(path);
    }
    // What all are told last, so that nothing more can come before it.
    for (mut watcher, (query, path)) in watchers.into_iter().zip(queries) {
        let events = watcher.until("done");
        assert_eq!(of(&events, "request")["target"], path, "{query}");
        assert!(stages(&events).contains(&"route"), "{query}: {events:#?}");
        if query.contains("slower") {
            let verdict = of(&events, "done")["verdict"].as_str().unwrap().to_owned();
            assert!(verdict.starts_with("program: "), "{verdict}");
            assert!(stages(&events).contains(&"start"), "{events:#?}");
        }
    }
    programs.stop();
}

#[test]
fn trigger_starts_with_the_events_before_it() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut watcher = Watcher::begin(&place, "trigger=*second*&keep=2");
    let mut client = Connection::open(hob.port()).unwrap();
    for path in ["/hello.txt?first", "/hello.txt?second", "/hello.txt?third"] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        client.send(head.as_bytes()).unwrap();
        assert_eq!(client.read().unwrap().status, 200);
    }
    // The end of the first one came just before.
    let events = watcher.until("request");
    assert_eq!(stages(&events), ["cache", "done", "request"]);
    assert_eq!(events[2]["target"], "/hello.txt?second");
    assert_eq!(
        (&events[0]["text"], &events[1]["cache"]),
        (&"miss".into(), &"miss".into())
    );
    let events = watcher.until("done");
    assert_eq!(of(&events, "done")["status"], 200);
    let events = watcher.until("done");
    assert_eq!(of(&events, "request")["target"], "/hello.txt?third");
    // The cache had it and nothing else to do.
    assert!(!stages(&events).contains(&"cache"), "{events:#?}");
    assert_eq!(of(&events, "done")["cache"], "hit");
    hob.stop();
}

#[test]
fn who_never_reads_loses_events_and_slows_nobody() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut silent = Watcher::ask(&place, "head=1");
    // Each request makes more than a kilobyte of events: more than queue and socket hold.
    let fields = format!("X-Long: {}\r\n", "x".repeat(4000));
    for _ in 0..400 {
        let reply = call(hob.port(), "GET", "/hello.txt", &fields, b"");
        assert_eq!(reply.answer.status, 200);
    }
    let until = std::time::Instant::now() + DEADLINE;
    let dropped = loop {
        let (kind, value) = silent.next_of_any_kind();
        if kind == "dropped" {
            break value["count"].as_u64().unwrap();
        }
        assert!(std::time::Instant::now() < until);
    };
    assert!(dropped > 100, "{dropped}");
    // From here on it hears everything again.
    let mut is_seen = false;
    get(hob.port(), "/hello.txt?last").unwrap();
    while !is_seen {
        let (_, value) = silent.next_of_any_kind();
        is_seen = value["target"] == "/hello.txt?last";
    }
    hob.stop();
}

#[test]
fn watchers_beyond_the_limit_are_refused_and_their_places_come_free() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut watchers: Vec<Watcher> = (0..32).map(|_| Watcher::begin(&place, "path=/x")).collect();
    assert_eq!(control(&place, "/v1/watch").status, 503);
    drop(watchers.pop());
    let until = std::time::Instant::now() + DEADLINE;
    loop {
        let socket = place.path("run/hob/control.sock");
        let mut connection = Connection::open_unix(&socket).unwrap();
        connection
            .send(b"GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let (status, _) = connection.read_head().unwrap();
        if status == 200 {
            break;
        }
        assert!(std::time::Instant::now() < until, "{status}");
    }
    hob.stop();
}

#[test]
fn filter_that_cannot_be_understood_is_400() {
    let place = Place::new();
    let hob = place.serve_config("");
    for query in ["x=1", "status=nine", "path=~(", "keep=99999", "q=path"] {
        let answer = control(&place, &format!("/v1/watch?{query}"));
        assert_eq!(answer.status, 400, "{query}");
        let text: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(text["text"].is_string());
    }
    hob.stop();
}

#[test]
fn refused_heads_are_told_too() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut watcher = Watcher::begin(&place, "status=4xx");
    let reply = call(
        hob.port(),
        "GET",
        &format!("/{}", "x".repeat(9000)),
        "",
        b"",
    );
    assert_eq!(reply.answer.status, 414);
    let events = watcher.until("done");
    let done = of(&events, "done");
    assert_eq!(
        (&done["status"], &done["fault"]),
        (&414.into(), &"client".into())
    );
    hob.stop();
}

#[test]
fn protocol_and_handshake_are_told() {
    let protocol = Protocol::tested();
    let place = Place::new();
    let hob = place.serve_config("");
    let mut watcher = Watcher::begin(&place, "");
    get(hob.port(), "/hello.txt").unwrap();
    let events = watcher.until("done");
    let request = of(&events, "request")["text"].as_str().unwrap();
    assert!(request.ends_with(protocol.version()), "{request}");
    let has_tls = stages(&events).contains(&"tls");
    assert_eq!(has_tls, protocol != Protocol::H1, "{events:#?}");
    // The API's own requests are not among those that are watched.
    object(&place, "/v1/running");
    get(hob.port(), "/hello.txt?2").unwrap();
    let events = watcher.until("done");
    assert_eq!(of(&events, "request")["target"], "/hello.txt?2");
    hob.stop();
}
