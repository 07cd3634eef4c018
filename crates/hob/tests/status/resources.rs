//! Alerts as an operator meets them, and the minutes.

use std::path::Path;

use serde_json::Value;

use super::{told, wait_for};
use crate::harness::client::{Connection, call};
use crate::harness::{Hob, Place};

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
    let place = Place::new();
    place.write_config("", "site");
    let mut command = place.command_of(Path::new("/bin/sh"));
    let script = "ulimit -n 64 && exec ./hob serve --config hob.toml";
    command.args(["-c", script]);
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    let mut held = Vec::new();
    for _ in 0..25 {
        let mut connection = Connection::open(hob.own_port()).unwrap();
        // Begun, so that it is accepted, and never ended.
        connection.send(b"GET / HTTP/1.1\r\n").unwrap();
        held.push(connection);
    }
    let alert = alert(&place, "descriptors: ");
    assert!(
        alert["text"].as_str().unwrap().contains(" of 64"),
        "{alert}"
    );
    assert_eq!(told(&place, RESOURCES)["descriptors_max"], 64);
    drop(held);
    wait_for(&place, RESOURCES, |told| {
        let mut alerts = told["alerts"].as_array().unwrap().iter();
        let is_it = |one: &Value| one["text"].as_str().unwrap().contains("descriptors: ");
        (!alerts.any(is_it)).then_some(())
    });
    hob.stop();
}

#[test]
fn program_that_does_not_start_is_told_of_with_what_it_said() {
    let place = Place::new();
    place.folder("cgi");
    let route = "[[site.route]]\npath = \"/app/*\"\n\
                 resident = { wsgi = \"missing:app\", dir = \"cgi\", workers = { min = 1 } }\n";
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
