//! The history as the control socket tells it: what is kept of a request, how it is found again,
//! and what outlives reloads, restarts, a killed server and a full disk.
#![allow(clippy::unwrap_used)]

mod harness;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use harness::client::{Connection, ask, get};
use harness::{DEADLINE, Hob, Place, config, send_signal, wait_for_end};
use rustix::process::Signal;
use serde_json::{Value, json};
use socket2::{SockFilter, SockRef};

/// What the control socket answers: status and JSON.
fn control(place: &Place, target: &str) -> (u16, Value) {
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    connection.send_ask("GET", target, "");
    let answer = connection.read_last("GET");
    let value = serde_json::from_slice(&answer.body);
    (answer.status, value.unwrap_or(Value::Null))
}

fn history(place: &Place, query: &str) -> Value {
    let (status, value) = control(place, &format!("/v1/history?{query}"));
    assert_eq!(status, 200, "{query}: {value}");
    value
}

/// Targets of the requests found.
fn targets(found: &Value) -> Vec<String> {
    let requests = found["requests"].as_array().unwrap().iter();
    requests
        .map(|request| request["target"].as_str().unwrap().to_owned())
        .collect()
}

/// Asks until the history has so many requests for this target.
fn wait_for(place: &Place, query: &str, count: usize) -> Value {
    let until = Instant::now() + DEADLINE;
    loop {
        let found = history(place, query);
        if found["requests"].as_array().unwrap().len() == count {
            return found;
        }
        assert!(Instant::now() < until, "{query}: {found}");
    }
}

const FILE: &str = "[history]\nfile = \"kept/history\"\n";

/// A server that keeps its history in a file.
fn serve_with_file(place: &Place) -> Hob {
    place.folder("kept");
    place.serve_config(FILE)
}

/// Waits until the file has this text.
fn wait_for_file(place: &Place, text: &str) {
    let until = Instant::now() + DEADLINE;
    let has_it = || {
        let bytes = std::fs::read(place.path("kept/history")).unwrap_or_default();
        let text = text.as_bytes();
        bytes.windows(text.len()).any(|piece| piece == text)
    };
    while !has_it() {
        assert!(Instant::now() < until, "{text} is not in the file");
    }
}

#[test]
fn what_is_known_of_a_request_is_told() {
    let place = Place::new();
    // What two threads answered in one millisecond has no order.
    let hob = place.serve_config("threads = 1");
    let fields = "User-Agent: Teapot/1\r\nReferer: http://elsewhere.example/\r\n";
    assert_eq!(ask(hob.port(), "GET", "/hello.txt?a=b", fields).status, 200);
    assert_eq!(ask(hob.port(), "GET", "/missing", "").status, 404);
    let found = history(&place, "");
    assert_eq!(targets(&found), ["/missing", "/hello.txt?a=b"]);
    assert_eq!((&found["kept"], &found["more"]), (&2.into(), &false.into()));
    let request = &found["requests"][1];
    for (key, value) in [
        ("method", "GET"),
        ("user_agent", "Teapot/1"),
        ("referer", "http://elsewhere.example/"),
        ("client", "127.0.0.1"),
        ("site", "*"),
        ("route", "/*"),
        ("handler", "files"),
        ("outcome", "complete"),
    ] {
        assert_eq!(request[key], value, "{key}: {request}");
    }
    assert_eq!(request["status"], 200);
    assert_eq!(request["body_bytes_out"], 6);
    assert!(request["total_us"].as_u64() >= request["first_byte_us"].as_u64());
    let id = request["id"].as_str().unwrap();
    assert!(id.starts_with("1."), "{id}");
    let (status, again) = control(&place, &format!("/v1/history/{id}"));
    assert_eq!((status, &again), (200, request));
    assert_eq!(control(&place, "/v1/history/1.999999.0").0, 404);
    assert_eq!(control(&place, "/v1/history/nothing").0, 400);
    // Who looks is not looked at.
    assert_eq!(history(&place, "")["kept"], 2);
    hob.stop();
}

#[test]
fn segments_that_were_sent_again_are_told() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut client = TcpStream::connect(("127.0.0.1", hob.port())).unwrap();
    let port = client.local_addr().unwrap().port();
    let head = b"GET /big.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    client.write_all(head).unwrap();
    client.read_exact(&mut [0; 1000]).unwrap();
    // Its kernel drops what comes: `BPF_RET | BPF_K`, no bytes.
    let nothing = SockFilter::new(0x06, 0, 0, 0);
    SockRef::from(&client).attach_filter(&[nothing]).unwrap();
    // What came before makes room: the server sends more, which is lost.
    client.set_nonblocking(true).unwrap();
    while client.read(&mut vec![0; 1 << 20]).is_ok() {}
    let until = Instant::now() + DEADLINE;
    let seen = loop {
        let (_, told) = control(&place, "/v1/connections");
        let mut open = told["connections"].as_array().unwrap().iter();
        let own = open.find(|one| one["client_port"] == port).unwrap();
        let count = own["retransmits"].as_u64().unwrap();
        // Each try waits twice as long as the one before it: more than a second by now, which is
        // more than a busy machine makes the server take.
        if count >= 4 {
            break count;
        }
        assert!(Instant::now() < until, "{own:#}");
    };
    SockRef::from(&client).detach_filter().unwrap();
    client.set_nonblocking(false).unwrap();
    std::io::copy(&mut client, &mut std::io::sink()).unwrap();
    let found = wait_for(&place, "path=/big.bin", 1);
    let request = &found["requests"][0];
    assert_eq!(request["outcome"], "complete", "{request:#}");
    assert!(
        request["retransmits"].as_u64().unwrap() >= seen,
        "{request:#}"
    );
    let verdict = request["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("network: "), "{request:#}");
    hob.stop();
}

#[test]
fn what_a_program_did_wrong_is_told() {
    let place = Place::new();
    place.folder("cgi");
    for (name, text) in [
        ("good", "printf 'Content-Type: text/plain\\n\\nhi\\n'"),
        ("bad", "echo 'no head: something broke' >&2; exit 3"),
    ] {
        place.script(&format!("cgi/{name}"), &format!("#!/bin/sh\n{text}\n"));
    }
    let route = "\n[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n";
    let hob = place.serve_config_with("", route);
    assert_eq!(get(hob.port(), "/cgi/good?1").unwrap().status, 200);
    assert_eq!(get(hob.port(), "/cgi/bad?2").unwrap().status, 502);
    // A program's request has come to its end when the program has.
    let good = &wait_for(&place, "handler=cgi&status=2xx", 1)["requests"][0];
    assert_eq!(good["target"], "/cgi/good?1");
    assert!(good["program_us"].as_u64().unwrap() > 0, "{good}");
    assert_eq!(good["route"], "/cgi/*");
    assert!(
        good["program"].as_str().unwrap().ends_with("/cgi"),
        "{good}"
    );
    let bad = &wait_for(&place, "fault=script&status=5xx", 1)["requests"][0];
    assert_eq!(
        (&bad["target"], &bad["status"]),
        (&"/cgi/bad?2".into(), &502.into())
    );
    assert!(!bad["reason"].as_str().unwrap().is_empty(), "{bad}");
    hob.stop();
}

#[test]
fn pages_and_filters_find_what_they_should() {
    let place = Place::new();
    let hob = place.serve_config("threads = 2");
    for number in 0..30 {
        let path = match number % 3 {
            0 => format!("/missing/{number}"),
            _ => format!("/hello.txt?{number}"),
        };
        get(hob.port(), &path).unwrap();
    }
    let all = targets(&wait_for(&place, "limit=1000", 30));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 30, "{all:?}");
    for by_id in [true, false] {
        let mut pages = Vec::new();
        let mut before = String::new();
        loop {
            let page = history(&place, &format!("limit=7&before={before}"));
            pages.extend(targets(&page));
            if page["more"] == false {
                break;
            }
            before = match by_id {
                true => page["requests"][6]["id"].as_str().unwrap().to_owned(),
                false => page["next"].as_str().unwrap().to_owned(),
            };
        }
        assert_eq!(pages, all);
    }
    for (query, count) in [
        ("status=404", 10),
        ("status=2xx", 20),
        ("status=5xx", 0),
        ("q=HELLO.txt%3F1", 8),
        ("path=/missing/*", 10),
        ("path=/hello.txt", 20),
        ("route=/*", 30),
        ("site=*&method=get&handler=files", 30),
        ("handler=cgi", 0),
        ("client=127.0.0.1", 30),
        ("client=10.", 0),
        ("slower=1h", 0),
        ("since=0&until=1", 0),
        ("sort=slowest&limit=3", 3),
    ] {
        let found = history(
            &place,
            &format!("{query}&limit=1000").replace("limit=3&", "limit=3&x="),
        );
        let told = found["requests"].as_array().unwrap().len();
        assert_eq!(told, count, "{query}");
    }
    for query in [
        "status=abc",
        "handler=nobody",
        "fault=me",
        "slower=soon",
        "since=yesterday",
        "sort=best",
        "before=here",
        "within=always",
        "after=here",
        "after=now&sort=slowest",
        "after=now&before=1.2.3",
        "before=@1-2-3&sort=slowest",
        "before=@1-2-3-4",
    ] {
        assert_eq!(
            control(&place, &format!("/v1/history?{query}")).0,
            400,
            "{query}"
        );
    }
    assert_eq!(control(&place, "/v1/history?before=1.99999.0").0, 410);
    hob.stop();
}

#[test]
fn a_reload_keeps_it_and_the_names_of_routes_that_are_gone() {
    let place = Place::new();
    let route = "\n[[site.route]]\npath = \"/old/*\"\nrespond = { body = \"x\" }\n";
    let hob = place.serve_config_with("", route);
    get(hob.port(), "/old/1").unwrap();
    place.write("hob.toml", &config("", "site"));
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation 2");
    get(hob.port(), "/old/2").unwrap();
    let found = wait_for(&place, "", 2);
    assert_eq!(targets(&found), ["/old/2", "/old/1"]);
    assert_eq!(found["requests"][0]["route"], "/*");
    assert_eq!(found["requests"][1]["route"], "/old/*");
    assert_eq!(targets(&history(&place, "route=/old/*")), ["/old/1"]);
    hob.stop();
}

#[test]
fn a_config_without_history_keeps_none() {
    let place = Place::new();
    let hob = place.serve_config("[history]\nbytes = 0\n");
    get(hob.port(), "/hello.txt").unwrap();
    let found = history(&place, "");
    assert_eq!((targets(&found), &found["kept"]), (vec![], &0.into()));
    // Counting goes on.
    place.wait_for_counter("requests", 1);
    let (status, told) = control(&place, "/v1/history?after=now");
    assert_eq!(status, 409);
    let text = told["text"].as_str().unwrap();
    assert!(text.starts_with("the history is off"), "{text}");
    hob.stop();
}

#[test]
fn a_restart_and_a_killed_server_leave_it_readable() {
    let place = Place::new();
    let hob = serve_with_file(&place);
    get(hob.port(), "/hello.txt?first").unwrap();
    // The last requests before a stop are kept too.
    hob.stop();
    let hob = place.serve_config(FILE);
    let found = wait_for(&place, "", 1);
    assert_eq!(targets(&found), ["/hello.txt?first"]);
    assert_eq!(found["requests"][0]["route"], "/*");
    // Ids of another start bear its time.
    let id = found["requests"][0]["id"].as_str().unwrap().to_owned();
    assert!(id.contains('-'), "{id}");
    assert_eq!(control(&place, &format!("/v1/history/{id}")).0, 200);

    get(hob.port(), "/hello.txt?second").unwrap();
    wait_for_file(&place, "?second");
    let server = hob.server();
    send_signal(server, Signal::KILL);
    wait_for_end(server);
    hob.wait_for_count("server ready", 2);
    let found = wait_for(&place, "", 2);
    assert_eq!(targets(&found), ["/hello.txt?second", "/hello.txt?first"]);
    get(hob.port(), "/hello.txt?third").unwrap();
    wait_for(&place, "", 3);
    assert_eq!(targets(&history(&place, "limit=1")), ["/hello.txt?third"]);
    assert_eq!(
        history(&place, "limit=1")["requests"][0]["id"]
            .as_str()
            .map(|id| &id[..2]),
        Some("2.")
    );
    hob.stop();
}

#[test]
fn an_upgrade_takes_it_over() {
    let place = Place::new();
    let hob = serve_with_file(&place);
    get(hob.port(), "/hello.txt?before").unwrap();
    wait_for_file(&place, "?before");
    hob.signal(Signal::USR2);
    // What the old server answers until then is in the file, for the next start.
    hob.wait_for("old server ended");
    get(hob.port(), "/hello.txt?after").unwrap();
    let found = wait_for(&place, "q=hello", 2);
    assert_eq!(targets(&found), ["/hello.txt?after", "/hello.txt?before"]);
    hob.stop();
}

#[test]
fn a_damaged_file_is_read_as_far_as_it_can_be() {
    let place = Place::new();
    let hob = serve_with_file(&place);
    get(hob.port(), "/hello.txt?one").unwrap();
    wait_for_file(&place, "?one");
    get(hob.port(), "/hello.txt?two").unwrap();
    hob.stop();
    let path = place.path("kept/history");
    let bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|piece| piece == b"?one").unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"!", at as u64).unwrap();
    let hob = place.serve_config(FILE);
    hob.wait_for("parts of the history file were damaged");
    assert_eq!(targets(&wait_for(&place, "", 1)), ["/hello.txt?two"]);
    hob.stop();
}

#[test]
fn a_full_disk_costs_no_request_and_is_told() {
    let place = Place::new();
    place.folder("kept");
    place.write("hob.toml", &config(FILE, "site"));
    // No file may grow beyond 64 KiB, which a write then meets as it meets a full disk.
    let mut command = place.command_of(std::path::Path::new("/bin/sh"));
    command.args([
        "-c",
        "trap '' XFSZ; ulimit -f 128; exec ./hob serve --config hob.toml",
    ]);
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    let long = "x".repeat(1000);
    for number in 0..200 {
        let answer = get(hob.port(), &format!("/hello.txt?{number}{long}")).unwrap();
        assert_eq!(answer.status, 200);
    }
    hob.wait_for("the file of history cannot be written");
    wait_for(&place, "limit=1000", 200);
    let until = Instant::now() + DEADLINE;
    loop {
        let (_, overview) = control(&place, "/v1/overview");
        let alerts = overview["alerts"].as_array().unwrap().clone();
        let text = |alert: &Value| alert["text"].as_str().unwrap().to_owned();
        if alerts
            .iter()
            .any(|alert| text(alert).contains("could not be written"))
        {
            break;
        }
        assert!(Instant::now() < until, "{overview}");
    }
    hob.stop();
}

#[test]
fn a_file_that_cannot_be_opened_is_told_at_the_start() {
    let place = Place::new();
    place.write(
        "hob.toml",
        &config("[history]\nfile = \"no/such/folder\"\n", "site"),
    );
    let output = place.run(&["serve", "--config", "hob.toml"]);
    let text = harness::text_of(&output);
    assert_ne!(output.status.code(), Some(0));
    assert!(
        text.contains("cannot open the file of the history"),
        "{text}"
    );
    assert!(text.contains("no/such/folder"), "{text}");
}

#[test]
fn slowest_are_paged_by_mark_and_by_id() {
    let place = Place::new();
    let hob = place.serve_config("");
    let asked: Vec<String> = (0..9).map(|number| format!("/none/{number}")).collect();
    for target in &asked {
        assert_eq!(get(hob.port(), target).unwrap().status, 404);
    }
    wait_for(&place, "path=/none/*", 9);
    let order = "path=/none/*&sort=slowest";
    let all = history(&place, order);
    let total_us = |request: &Value| request["total_us"].as_u64().unwrap();
    let totals: Vec<u64> = all["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(total_us)
        .collect();
    assert!(totals.is_sorted_by(|one, next| one >= next), "{totals:?}");
    assert_eq!((&all["more"], &all["cut"]), (&json!(false), &json!(false)));
    let mut found = Vec::new();
    let mut page = history(&place, &format!("{order}&limit=4"));
    loop {
        found.extend(targets(&page));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        assert_eq!(page["more"], true);
        page = history(&place, &format!("{order}&limit=4&before={next}"));
    }
    assert_eq!(found, targets(&all));
    let id = all["requests"][4]["id"].as_str().unwrap();
    let behind = history(&place, &format!("{order}&before={id}"));
    assert_eq!(targets(&behind), found[5..]);
    let within = history(&place, &format!("{order}&within=1h"));
    assert_eq!(targets(&within), found);
    assert_eq!(
        targets(&history(&place, &format!("{order}&within=0s"))),
        [""; 0]
    );
    hob.stop();
}

#[test]
fn who_follows_is_told_of_what_came_in_since_over_servers_too() {
    let place = Place::new();
    let hob = place.serve_config("");
    let get = |target: &str| get(hob.port(), target).unwrap().status;
    assert_eq!(get("/before"), 404);
    wait_for(&place, "", 1);
    let since = history(&place, "after=now");
    assert_eq!((targets(&since), &since["more"]), (vec![], &json!(false)));
    let next = since["next"].as_str().unwrap().to_owned();
    for target in ["/one", "/two", "/three"] {
        assert_eq!(get(target), 404);
    }
    wait_for(&place, "", 4);
    let first = history(&place, &format!("after={next}&limit=2"));
    let second = history(
        &place,
        &format!("after={}", first["next"].as_str().unwrap()),
    );
    assert_eq!((targets(&first).len(), &first["more"]), (2, &json!(true)));
    let mut told = [targets(&first), targets(&second)].concat();
    told.sort();
    assert_eq!(told, ["/one", "/three", "/two"]);
    assert_eq!(
        (&second["more"], &second["gap"]),
        (&json!(false), &json!(false))
    );
    let last = second["next"].as_str().unwrap();
    assert_eq!(targets(&history(&place, &format!("after={last}"))), [""; 0]);
    // The mark of another server: all that this one has answered.
    let all = history(&place, "after=~1-7-5-0");
    assert_eq!(targets(&all).len(), 4);
    hob.stop();
}

#[test]
fn secrets_in_queries_are_not_told() {
    let place = Place::new();
    let hob = place.serve_config("");
    let target = "/hello.txt?token=sesame&page=2";
    let referer = "Referer: http://a.test/?my_password=sesame\r\n";
    assert_eq!(ask(hob.port(), "GET", target, referer).status, 200);
    let found = wait_for(&place, "path=/hello.txt", 1);
    let request = &found["requests"][0];
    assert_eq!(request["target"], "/hello.txt?token=(hidden)&page=2");
    assert_eq!(request["referer"], "http://a.test/?my_password=(hidden)");
    let id = request["id"].as_str().unwrap();
    let (_, one) = control(&place, &format!("/v1/history/{id}"));
    assert_eq!(one["target"], request["target"], "{one}");
    hob.stop();
}
