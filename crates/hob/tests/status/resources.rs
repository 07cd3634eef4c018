//! Alerts as an operator meets them, and the minutes.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use super::{told, wait_for};
use crate::harness::client::{Connection, call};
use crate::harness::{Place, is_root};

const RESOURCES: &str = "/v1/resources";

/// The alert with these words, once there is one.
fn alert(place: &Place, words: &str) -> Value {
    wait_for(place, RESOURCES, |told| {
        let mut alerts = told["alerts"].as_array().unwrap().iter();
        let has_words = |alert: &&Value| alert["text"].as_str().unwrap().contains(words);
        alerts.find(has_words).cloned()
    })
}

#[test]
fn refused_requests_are_told_in_words() {
    let place = Place::new();
    let hob = place.serve_config("limits = { body = 10 }");
    assert_eq!(told(&place, RESOURCES)["alerts"], serde_json::json!([]));
    for _ in 0..2 {
        let reply = call(hob.port(), "POST", "/hello.txt", "", b"eleven bytes");
        assert_eq!(reply.answer.status, 413);
    }
    let alert = alert(&place, "(limit_body)");
    assert_eq!(alert["level"], "notice");
    let text = alert["text"].as_str().unwrap();
    assert!(
        text.starts_with("Requests refused: body larger than its limit (413): "),
        "{text}"
    );
    hob.stop();
}

#[test]
fn clients_turned_away_are_worse() {
    let place = Place::new();
    let hob = place.serve_config("limits = { connections = 2 }");
    let mut held = Vec::new();
    for _ in 0..4 {
        held.extend(Connection::open(hob.own_port()));
    }
    let alert = alert(&place, "(limit_connections)");
    assert_eq!(alert["level"], "bad");
    assert_eq!(alert["page"], "connections");
    drop(held);
    hob.stop();
}

#[test]
fn few_descriptors_left_are_told_of_and_no_longer_when_there_are_more() {
    if !is_root() {
        println!("skipped: needs root, to change a limit of a running server");
        return;
    }
    let place = Place::new();
    let hob = place.serve_config("");
    let pid = Pid::from_raw(hob.server().cast_signed());
    let used = std::fs::read_dir(format!("/proc/{}/fd", hob.server()))
        .unwrap()
        .count() as u64;
    let limit = |most: u64| Rlimit {
        current: Some(most),
        maximum: Some(100_000),
    };
    let before = prlimit(pid, Resource::Nofile, limit(used + 8)).unwrap();
    let words = format!("of {}", used + 8);
    let alert = alert(&place, &words);
    assert!(
        alert["text"].as_str().unwrap().starts_with("descriptors: "),
        "{alert}"
    );
    assert_eq!(told(&place, RESOURCES)["descriptors_max"], used + 8);
    prlimit(
        pid,
        Resource::Nofile,
        Rlimit {
            maximum: Some(100_000),
            ..before
        },
    )
    .unwrap();
    wait_for(&place, RESOURCES, |told| {
        told["alerts"].as_array().unwrap().is_empty().then_some(())
    });
    hob.stop();
}

#[test]
fn program_that_does_not_start_is_told_of_with_what_it_said() {
    let place = Place::new();
    place.folder("cgi");
    let route = "[[site.route]]\npath = \"/app/*\"\n\
                 resident = { wsgi = \"missing:application\", dir = \"cgi\", workers = { min = 1 } }\n";
    let hob = place.serve_config_with("", route);
    let alert = alert(&place, "its workers do not start");
    assert_eq!(
        (&alert["level"], &alert["page"]),
        (&"bad".into(), &"programs".into())
    );
    assert!(
        alert["text"].as_str().unwrap().starts_with("/app/*"),
        "{alert}"
    );
    hob.stop();
}

#[test]
fn minutes_have_their_columns_and_the_machines_own_interfaces() {
    let place = Place::new();
    let hob = place.serve_config("");
    let all = told(&place, "/v1/resources?from=0&step=300");
    assert_eq!(all["step_s"], 300);
    let columns = all["columns"].as_array().unwrap();
    for name in [
        "descriptors",
        "softirq_permille",
        "listen_overflows",
        "server major_faults",
    ] {
        assert!(columns.iter().any(|column| column == name), "{all}");
    }
    hob.stop();
}
