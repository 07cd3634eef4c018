//! Activity, the overview and the routes' numbers as the control socket tells them, over restarts
//! too.
#![allow(clippy::unwrap_used)]

mod harness;

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use harness::client::{Connection, get};
use harness::{DEADLINE, Place, send_signal, wait_for_end};
use rustix::process::Signal;
use serde_json::{Value, json};

fn control(place: &Place, target: &str) -> Value {
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    connection.send_ask("GET", target, "");
    let answer = connection.read_last("GET");
    assert_eq!(answer.status, 200, "{target}: {answer:?}");
    serde_json::from_slice(&answer.body).unwrap()
}

/// The sum of a column; holes are nothing.
fn sum(activity: &Value, column: &str) -> u64 {
    let columns = activity["columns"].as_array().unwrap();
    let index = columns.iter().position(|name| name == column).unwrap();
    let rows = activity["rows"].as_array().unwrap().iter();
    rows.filter_map(|row| row[index].as_u64()).sum()
}

/// Asks until the requests of the rows are so many.
fn wait_for_requests(place: &Place, target: &str, count: u64) -> Value {
    let until = Instant::now() + DEADLINE;
    loop {
        let activity = control(place, target);
        if sum(&activity, "requests") == count {
            return activity;
        }
        assert!(Instant::now() < until, "{activity}");
    }
}

#[test]
fn requests_are_in_the_rows_of_seconds_and_minutes() {
    let place = Place::new();
    let hob = place.serve_config("threads = 2");
    for _ in 0..20 {
        get(hob.port(), "/hello.txt").unwrap();
    }
    let seconds = wait_for_requests(&place, "/v1/activity", 20);
    assert_eq!(seconds["step_s"], 1);
    assert_eq!(seconds["columns"].as_array().unwrap().len(), 16);
    assert!(sum(&seconds, "bytes_out") >= 20 * 6);
    assert!(sum(&seconds, "max_us") > 0 && sum(&seconds, "p99_us") > 0);
    assert!(sum(&seconds, "server_memory_bytes") > 1_000_000);
    assert_eq!(sum(&seconds, "errors"), 0);
    // There was no server before: a hole.
    assert_eq!(seconds["rows"][0], Value::Null);
    let minutes = wait_for_requests(&place, "/v1/activity?from=0&step=60", 20);
    assert_eq!(minutes["step_s"].as_u64().unwrap() % 60, 0);
    assert!(minutes["rows"].as_array().unwrap().len() <= 2000);
    hob.stop();
}

#[test]
fn overview_tells_how_the_server_is_doing() {
    let place = Place::new();
    let hob = place.serve_config("threads = 2");
    for _ in 0..10 {
        get(hob.port(), "/hello.txt").unwrap();
    }
    wait_for_requests(&place, "/v1/activity", 10);
    let until = Instant::now() + DEADLINE;
    let overview = loop {
        let overview = control(&place, "/v1/overview");
        if overview["latency"]["count"] == 10 {
            break overview;
        }
        assert!(Instant::now() < until, "{overview}");
    };
    assert_eq!(overview["generation"], 1);
    assert_eq!(overview["version"], env!("CARGO_PKG_VERSION"));
    assert!(overview["hostname"].is_string());
    assert_eq!(overview["running"], 0);
    assert_eq!(overview["cache"]["entries"], 1);
    assert_eq!(overview["alerts"], json!([]));
    assert!(overview["memory"]["server_bytes"].as_u64().unwrap() > 1_000_000);
    assert!(overview["cpu"]["machine_cores"].as_u64().unwrap() >= 1);
    assert!(overview["rate"]["requests_s"].as_f64().unwrap() > 0.0);
    assert_eq!(overview["workers"]["busy"], 0);
    assert_eq!(overview["seconds"]["rows"].as_array().unwrap().len(), 120);
    hob.stop();
}

#[test]
fn activity_that_is_off_keeps_no_rows_and_no_routes_and_the_overview_says_so() {
    let place = Place::new();
    let hob = place.serve_config("threads = 1\nactivity = \"off\"\nstate = \"run\"");
    for _ in 0..3 {
        get(hob.port(), "/hello.txt").unwrap();
    }
    place.wait_for_counter("requests", 3);
    let until = Instant::now() + DEADLINE;
    let overview = loop {
        let overview = control(&place, "/v1/overview");
        let alerts = overview["alerts"].as_array().unwrap();
        let text = |alert: &Value| alert["text"].as_str().unwrap().to_owned();
        if alerts
            .iter()
            .map(text)
            .any(|text| text.contains("`activity` is off"))
            && overview["memory"]["server_bytes"] != 0
        {
            break overview;
        }
        assert!(Instant::now() < until, "{overview}");
    };
    assert_eq!(overview["latency"]["count"], 0);
    let memory = &overview["memory"];
    assert!(
        memory["server_bytes"].as_u64().unwrap() > 100_000,
        "{memory}"
    );
    assert_eq!(control(&place, "/v1/routes")["routes"], json!([]));
    assert_eq!(sum(&control(&place, "/v1/activity"), "requests"), 0);
    assert!(!place.path("run/activity").exists());
    // The history is another thing.
    assert_eq!(control(&place, "/v1/history")["kept"], 3);
    hob.stop();
}

#[test]
fn routes_are_told_apart_with_their_times() {
    let place = Place::new();
    place.script(
        "echo.sh",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhi\\n'\n",
    );
    let routes = "\n[[site.route]]\npath = \"/fixed\"\nrespond = { status = 503, body = \"x\" }\n\
                  \n[[site.route]]\npath = \"/echo\"\ncgi = { script = \"echo.sh\" }\n";
    let hob = place.serve_config_with("", routes);
    for path in ["/hello.txt", "/hello.txt", "/fixed", "/echo"] {
        get(hob.port(), path).unwrap();
    }
    place.wait_for_counter("requests", 4);
    let told = control(&place, "/v1/routes");
    let route = |pattern: &str| {
        let routes = told["routes"].as_array().unwrap().iter();
        let mut found = routes.filter(|route| route["route"] == pattern);
        found
            .next()
            .unwrap_or_else(|| panic!("{pattern}: {told}"))
            .clone()
    };
    let files = route("/*");
    assert_eq!(
        (&files["requests"], &files["handler"]),
        (&2.into(), &"files".into())
    );
    assert_eq!((&files["site"], &files["errors"]), (&"*".into(), &0.into()));
    assert_eq!(
        (&files["total"]["count"], &files["queue"]["p50_us"]),
        (&2.into(), &Value::Null)
    );
    assert_eq!(route("/fixed")["errors"], 1);
    let echo = route("/echo");
    assert_eq!(
        (&echo["handler"], &echo["class"]),
        (&"cgi".into(), &"cgi".into())
    );
    assert_eq!(echo["queue"]["count"], 1);
    assert_eq!(echo["start"]["count"], 1);
    assert!(echo["program"].as_str().unwrap().ends_with("echo.sh"));
    // All of a site, and of each class, together.
    let by = |label: &str| control(&place, &format!("/v1/routes?by={label}"))["routes"].clone();
    let sites = by("site");
    assert_eq!(sites.as_array().unwrap().len(), 1);
    assert_eq!(
        (&sites[0]["site"], &sites[0]["requests"]),
        (&"*".into(), &4.into())
    );
    assert_eq!(
        (&sites[0]["route"], &sites[0]["total"]["count"]),
        (&Value::Null, &4.into())
    );
    let classes = by("class");
    let classes = classes.as_array().unwrap().iter();
    let classes: Vec<&str> = classes.map(|row| row["class"].as_str().unwrap()).collect();
    assert_eq!(classes, ["cgi", "short", "static"]);
    let parts = ["server_us", "program_us", "client_us"].map(|part| echo[part].as_u64().unwrap());
    assert_eq!(
        parts.iter().sum::<u64>(),
        echo["total"]["max_us"].as_u64().unwrap()
    );
    hob.stop();
}

#[test]
fn rows_outlive_the_server_where_there_is_a_folder_for_them() {
    let place = Place::new();
    place.folder("state");
    let hob = place.serve_config("state = \"state\"");
    for _ in 0..5 {
        get(hob.port(), "/hello.txt").unwrap();
    }
    wait_for_requests(&place, "/v1/activity", 5);
    let server = hob.server();
    send_signal(server, Signal::KILL);
    wait_for_end(server);
    hob.wait_for_count("server ready", 2);
    wait_for_requests(&place, "/v1/activity", 5);
    get(hob.port(), "/hello.txt").unwrap();
    hob.stop();
    let mode = place
        .path("state/activity")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let hob = place.serve_config("state = \"state\"");
    // The one before the stop is there as well.
    wait_for_requests(&place, "/v1/activity?step=60", 6);
    hob.stop();
}

#[test]
fn a_file_that_is_something_else_is_left_alone() {
    let place = Place::new();
    place.folder("state");
    let hob = place.serve_config("[activity]\nfile = \"off\"\n");
    get(hob.port(), "/hello.txt").unwrap();
    hob.stop();
    assert!(!place.path("state/activity").exists());

    place.write("state/mine", "something that is dear to somebody");
    std::fs::set_permissions(place.path("state/mine"), PermissionsExt::from_mode(0o666)).unwrap();
    let hob = place.serve_config("[activity]\nfile = \"state/mine\"\n");
    hob.wait_for("the activity file is not used");
    get(hob.port(), "/hello.txt").unwrap();
    wait_for_requests(&place, "/v1/activity", 1);
    hob.stop();
    let text = std::fs::read_to_string(place.path("state/mine")).unwrap();
    assert_eq!(text, "something that is dear to somebody");
}
