//! What `hob status` tells of the machine, of requests by kind, and of what should be looked at;
//! and names of clients, from a real name server.
#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

#[path = "bench/schema.rs"]
mod schema;

#[path = "status/answers.rs"]
mod answers;
#[path = "status/certificates.rs"]
mod certificates;
#[path = "status/names.rs"]
mod names;
#[path = "status/resources.rs"]
mod resources;

use harness::client::{Answer, Connection, ask, call, get};
use harness::{DEADLINE, Hob, Place, text_of};
use serde_json::Value;

/// Asks the control socket.
fn control(place: &Place, method: &str, target: &str) -> Answer {
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    connection.send_ask(method, target, "");
    connection.read_last(method)
}

fn told(place: &Place, target: &str) -> Value {
    let answer = control(place, "GET", target);
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

/// Waits until something is told that this finds.
fn wait_for<T>(place: &Place, target: &str, find: impl Fn(&Value) -> Option<T>) -> T {
    let until = std::time::Instant::now() + DEADLINE;
    loop {
        let told = told(place, target);
        match find(&told) {
            Some(found) => return found,
            None => assert!(std::time::Instant::now() < until, "{target}: {told}"),
        }
    }
}

/// `hob status` with these flags, as people see it.
fn shown(place: &Place, flags: &[&str]) -> String {
    let output = place.run(&[&["status"], flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn some_requests(place: &Place, hob: &Hob) {
    for _ in 0..3 {
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    }
    assert_eq!(ask(hob.port(), "GET", "/missing", "").status, 404);
    assert_eq!(ask(hob.port(), "HEAD", "/hello.txt", "").status, 200);
    assert_eq!(
        call(hob.port(), "BREW", "/hello.txt", "", b"")
            .answer
            .status,
        501
    );
    place.wait_for_counter("requests", 6);
}

#[test]
fn statistics_tell_requests_apart_and_count_from_zero_when_asked() {
    let place = Place::new();
    let hob = place.serve_config("threads = 2");
    some_requests(&place, &hob);
    let all = told(&place, "/v1/statistics");
    for span in ["start", "today", "zero"] {
        let span = &all[span];
        assert_eq!(span["requests"], 6, "{span}");
        assert_eq!(span["methods"]["GET"], 4, "{span}");
        assert_eq!(span["methods"]["HEAD"], 1, "{span}");
        assert_eq!(span["methods"]["other"], 1, "{span}");
        assert_eq!(span["handlers"]["files"], 6, "{span}");
        assert_eq!(span["status_classes"]["2xx"], 4, "{span}");
        assert_eq!(span["statuses"]["404"], 1, "{span}");
        assert_eq!(span["statuses"]["501"], 1, "{span}");
        assert_eq!(span["outcomes"]["complete"], 6, "{span}");
        assert!(span["bytes"]["out"].as_u64().unwrap() > 0, "{span}");
        let cached =
            ["hit", "miss", "none", "revalidated"].map(|word| span["cache"][word].as_u64());
        assert_eq!(
            cached.iter().map(|count| count.unwrap()).sum::<u64>(),
            6,
            "{span}"
        );
    }
    let answer = control(&place, "POST", "/v1/statistics/zero");
    assert_eq!(answer.status, 200);
    get(hob.port(), "/hello.txt").unwrap();
    place.wait_for_counter("requests", 7);
    let all = told(&place, "/v1/statistics");
    assert_eq!(all["zero"]["requests"], 1);
    assert_eq!(all["zero"]["statuses"], serde_json::json!({ "200": 1 }));
    assert_eq!(all["start"]["requests"], 7);
    assert!(all["zero"]["since_unix_ms"].as_u64() > all["start"]["since_unix_ms"].as_u64());
    hob.stop();
}

#[test]
fn statistics_are_a_table_for_people_and_json_for_machines() {
    let place = Place::new();
    let hob = place.serve_config("");
    some_requests(&place, &hob);
    let table = shown(&place, &["--statistics"]);
    let row = |name: &str| {
        let mut lines = table.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{table}"));
        line.split_whitespace()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("requests"), ["6", "6", "6"]);
    assert_eq!(row("GET"), ["4", "4", "4"]);
    assert_eq!(row("404"), ["1", "1", "1"]);
    assert!(!table.contains("PUT"), "{table}");
    let json: Value = serde_json::from_str(&shown(&place, &["--statistics", "--json"])).unwrap();
    assert_eq!(json["start"]["requests"], 6);
    let zeroed = shown(&place, &["--statistics", "--zero"]);
    assert!(zeroed.contains("requests"), "{zeroed}");
    assert_eq!(told(&place, "/v1/statistics")["zero"]["requests"], 0);
    hob.stop();
}

#[test]
fn environment_tells_build_machine_limits_and_what_programs_are_held_to() {
    let place = Place::new();
    place.folder("cgi");
    place.write("cgi/a.sh", "#!/bin/sh\necho\n");
    let route = "[[site.route]]\npath = \"/cgi-bin/*\"\n\
                 cgi = { dir = \"cgi\", sandbox = { read = [\"/\"] }, cgroup = { pids = 64 } }\n";
    let hob = place.serve_config_with("threads = 2", route);
    let all = told(&place, "/v1/environment");
    assert_eq!(all["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        all["build"]["rustc"]
            .as_str()
            .unwrap()
            .starts_with("rustc 1."),
        "{all}"
    );
    assert!(
        all["build"]["target"].as_str().unwrap().contains("linux"),
        "{all}"
    );
    assert_eq!(all["kernel"]["name"], "Linux");
    assert!(
        all["machine"]["memory_bytes"].as_u64().unwrap() > 1 << 20,
        "{all}"
    );
    assert!(all["machine"]["cpus_usable"].as_u64() <= all["machine"]["cpus"].as_u64());
    assert_eq!(all["server"]["process"]["pid"], hob.server());
    assert_eq!(all["server"]["threads"], 2);
    assert!(all["limits"]["open_files"]["soft"].is_u64(), "{all}");
    assert_eq!(all["listeners"].as_array().unwrap().len(), 1);
    let program = &all["programs"][0];
    assert_eq!(program["route"], "/cgi-bin/*");
    assert_eq!(program["cgroup"]["pids"], 64);
    let files = program["files"].as_str().unwrap();
    assert!(files.contains("Landlock"), "{files}");
    let folders = all["file_systems"].as_array().unwrap();
    let site = folders
        .iter()
        .find(|one| one["folder"] == place.path("site").to_str().unwrap());
    let site = site.unwrap_or_else(|| panic!("{all}"));
    assert!(site["kind"].is_string(), "{site}");
    assert_eq!(site["local"], true);
    let interfaces = all["interfaces"].as_array().unwrap();
    let loopback = interfaces.iter().find(|one| one["name"] == "lo");
    let loopback = loopback.unwrap_or_else(|| panic!("{all}"));
    assert!(loopback["mtu"].as_u64() > Some(1000), "{loopback}");

    let table = shown(&place, &["--environment"]);
    for text in [
        "version  ",
        "rustc 1.",
        "open_files",
        "file systems",
        "network interfaces",
        "  lo  ",
        site["kind"].as_str().unwrap(),
        "program of /cgi-bin/* on *",
    ] {
        assert!(table.contains(text), "{text:?} in\n{table}");
    }
    let json: Value = serde_json::from_str(&shown(&place, &["--environment", "--json"])).unwrap();
    assert_eq!(json["hostname"], all["hostname"]);
    hob.stop();
}
