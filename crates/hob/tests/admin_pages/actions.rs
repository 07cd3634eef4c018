//! What is done from the pages happens, and is written down.

use serde_json::{Value, json};

use crate::harness::client::{Connection, get};
use crate::harness::{Hob, Place, config, wait_for_end};
use crate::place::{Pages, admin, json_of, serve};

/// A program that stays and speaks lines.
const PROGRAM: &str = "#!/bin/sh
while IFS= read -r beginning; do
  while IFS= read -r line && [ -n \"$line\" ]; do :; done
  printf 'Content-Type: text/plain\\n\\nanswered\\n%s\\n' \"$CGIPLUSEOF\"
done <\"$CGIPLUSIN\"
";

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    while !is_so() {
        assert!(std::time::Instant::now() < until, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn every_action_is_in_the_audit_log() {
    let place = Place::new();
    let hob = serve(&place, "", "audit = \"run/audit.jsonl\"");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    assert_eq!(visitor.post("/v1/cache/purge", &json!({})).status, 400);
    visitor.act("/v1/reload", &json!({}));
    visitor.act("/v1/cache/purge", &json!({ "path": "/a\u{1b}[31m\nb" }));
    pages.log_in(&json!({ "token": "x", "user": "mallory" }));
    let entries = visitor.look("/v1/audit")["entries"].clone();
    let told: Vec<String> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let part = |name: &str| one[name].as_str().unwrap().to_owned();
            assert_eq!(part("from"), "127.0.0.1");
            assert!(one["unix_ms"].as_u64().unwrap() > 1_600_000_000_000);
            format!("{}: {}: {}", part("who"), part("action"), part("outcome"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "mallory: login: this URL was used or is too old; `hob status --admin-url` prints \
             another",
            "operator: cache/purge /a\u{1b}[31m\nb: 0 files left the cache",
            "operator: reload: reloaded, generation 2",
            "operator: cache/purge: give a `path`, a `site`, or `all: true`",
            "operator: login: done",
        ]
    );
    let path = place.path("run/audit.jsonl");
    let read = || std::fs::read_to_string(&path).unwrap();
    wait_until("the file has every line", || read().lines().count() == 5);
    let first: Value = serde_json::from_str(read().lines().next().unwrap()).unwrap();
    assert_eq!(first["action"], "login");
    let printed = hob.stop_and_print();
    assert!(printed.contains("cache/purge"), "{printed}");
    // Neither the file nor the terminal gets a control character.
    assert!(!read().contains('\u{1b}'));
    assert!(!printed.contains("\u{1b}[31m"), "{printed}");
}

#[test]
fn an_audit_log_that_cannot_be_written_refuses_the_config() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let text = format!(
        "{}\n{}",
        config("", "site"),
        admin("audit = \"none/audit.jsonl\"")
    );
    place.write("hob.toml", &text);
    let answer = visitor.post("/v1/reload", &json!({}));
    assert_eq!(answer.status, 409);
    assert!(
        answer.text().contains("admin.audit: cannot write"),
        "{}",
        answer.text()
    );
    visitor.look("/v1/session");
    hob.stop();
}

#[test]
fn files_leave_the_cache_when_they_are_told_to() {
    let place = Place::new();
    place.write("site/other.txt", "other\n");
    let hob = serve(&place, "[cache]\nrecheck = \"1h\"", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    for path in ["/hello.txt", "/other.txt"] {
        assert_eq!(get(hob.port(), path).unwrap().status, 200);
    }
    let paths = |visitor: &crate::place::Visitor<'_>, target: &str| -> Vec<String> {
        let entries = visitor.look(target)["entries"].clone();
        let mut paths: Vec<String> = entries
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["path"].as_str().unwrap().to_owned())
            .collect();
        paths.sort();
        paths
    };
    let hello = place.path("site/hello.txt").display().to_string();
    let other = place.path("site/other.txt").display().to_string();
    assert_eq!(
        paths(&visitor, "/v1/cache"),
        [hello.as_str(), other.as_str()]
    );
    assert_eq!(paths(&visitor, "/v1/cache?q=hello"), [hello.as_str()]);
    // The first request of each brought it in; what came after was at hand.
    for _ in 0..3 {
        assert_eq!(get(hob.port(), "/other.txt").unwrap().status, 200);
    }
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    let by_hits = visitor.look("/v1/cache?sort=hits")["entries"].clone();
    let hits = |index: usize| {
        (
            by_hits[index]["path"].as_str(),
            by_hits[index]["hits"].as_u64(),
        )
    };
    assert_eq!(hits(0), (Some(other.as_str()), Some(3)));
    assert_eq!(hits(1), (Some(hello.as_str()), Some(1)));
    assert_eq!(visitor.get("/v1/cache?sort=colour").status, 400);
    let limited = visitor.look("/v1/cache?limit=1");
    assert_eq!(
        (&limited["more"], &limited["totals"]["entries"]),
        (&json!(true), &json!(2))
    );
    let purged = visitor.act("/v1/cache/purge", &json!({ "path": hello }));
    assert_eq!(purged["purged"], 1);
    assert_eq!(paths(&visitor, "/v1/cache"), [other.as_str()]);
    let folder = format!("{}/*", place.path("site").display());
    assert_eq!(
        visitor.act("/v1/cache/purge", &json!({ "path": folder }))["purged"],
        1
    );
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert_eq!(
        visitor.act("/v1/cache/purge", &json!({ "site": "none" }))["purged"],
        0
    );
    assert_eq!(
        visitor.act("/v1/cache/purge", &json!({ "site": "*" }))["purged"],
        1
    );
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert_eq!(
        visitor.act("/v1/cache/purge", &json!({ "all": true }))["purged"],
        1
    );
    assert_eq!(place.status()["cache"]["entries"], 0);
    hob.stop();
}

/// A server with a program of lines that stays, and its pages.
fn serve_program(place: &Place) -> Hob {
    place.script("answer.sh", PROGRAM);
    let text = format!(
        "{}\n[[site.route]]\npath = \"/app/*\"\n\
         resident = {{ run = [\"./answer.sh\"], carrier = \"lines\", \
         workers = {{ min = 1, max = 1 }} }}\n{}",
        config("", "site"),
        admin("")
    );
    place.serve_text(&text)
}

#[test]
fn workers_are_renewed_ended_and_asked_what_they_do() {
    let place = Place::new();
    let hob = serve_program(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let program = || visitor.look("/v1/programs")["programs"][0].clone();
    let worker = || {
        program()["workers"][0]["pid"]
            .as_u64()
            .map(|pid| pid as u32)
    };
    let name = program()["name"].as_str().unwrap().to_owned();
    let mut last = 0;
    for action in ["recycle", "stop", "stack"] {
        wait_until("there is a worker", || {
            worker().is_some_and(|pid| pid != last) && program()["workers"][0]["state"] == "idle"
        });
        let pid = worker().unwrap();
        assert_eq!(
            (&program()["min"], &program()["max"]),
            (&json!(1), &json!(1))
        );
        let target = format!("/v1/programs/{action}");
        let answer = visitor.act(&target, &json!({ "name": name, "pid": pid }));
        assert_eq!(answer["pids"], json!([pid]), "{action}");
        wait_for_end(pid);
        assert_eq!(
            visitor.last_action()["action"],
            format!("programs/{action} {name} {pid}")
        );
        let wrong = visitor.post(&target, &json!({ "name": name, "pid": 1 }));
        assert_eq!(wrong.status, 409);
        // It would mean all workers of the program.
        for none in [json!(null), json!("7"), json!(-1), json!(1_u64 << 32)] {
            let wrong = visitor.post(&target, &json!({ "name": name, "pid": none }));
            assert_eq!(wrong.status, 400, "{action} {none}");
        }
        assert_eq!(
            visitor.post(&target, &json!({ "name": "none" })).status,
            404
        );
        assert_eq!(visitor.post(&target, &json!({})).status, 400);
        last = pid;
    }
    hob.stop();
}

#[test]
fn a_request_is_explained_and_nothing_is_run() {
    let place = Place::new();
    let hob = serve_program(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let told = visitor.look("/v1/explain?url=/hello.txt");
    assert_eq!(told["handler"]["name"], "files");
    assert!(!told["lines"].as_array().unwrap().is_empty());
    let told = visitor.look("/v1/explain?method=POST&url=http%3A%2F%2Flocalhost%2Fapp%2Fx");
    assert_eq!(
        (&told["method"], &told["handler"]["name"]),
        (&json!("POST"), &json!("resident"))
    );
    assert_eq!(visitor.get("/v1/explain").status, 400);
    assert_eq!(visitor.get("/v1/explain?url=%20%20").status, 400);
    hob.stop();
}

#[test]
fn certificates_say_until_when_they_are_good() {
    let place = Place::new();
    let hob = serve(&place, "", "tls = true");
    let line = hob.wait_for("admin pages on https://127.0.0.1:");
    assert!(line.contains("/#token="), "{line}");
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    connection.send_ask("GET", "/v1/certificates", "");
    let told = json_of(&connection.read_last("GET"));
    let one = &told["certificates"][0];
    assert_eq!(
        (&one["source"], &one["state"]),
        (&json!("self-signed"), &json!("good"))
    );
    assert!(one["days_left"].as_i64().unwrap() > 0);
    let names = one["names"].as_array().unwrap();
    assert!(names.contains(&json!("localhost")), "{one}");
    assert!(one["issuer"].as_str().unwrap().contains("CN="), "{one}");
    assert!(one["listener"].as_str().unwrap().starts_with("127.0.0.1:"));
    hob.stop();
}

#[test]
fn a_stop_from_the_pages_stops_and_does_not_wait_for_who_watches() {
    let place = Place::new();
    let mut hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let mut stream = crate::stream::begin(&visitor, "/v1/live?page=overview");
    stream.read_until("event: overview");
    let begun = std::time::Instant::now();
    visitor.act("/v1/stop", &json!({}));
    assert_eq!(hob.exit_code(), Some(0));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}
