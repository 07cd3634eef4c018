//! Folders without an index: a list for people, a list for programs, or nothing.

use serde_json::Value;

use crate::harness::Place;
use crate::harness::client::ask;
use crate::{place_with, serve, set_modified};

const JSON: &str = "Accept: application/json\r\n";

fn place_with_folder() -> Place {
    let place = place_with(&[
        ("pub/small.txt", "1"),
        ("pub/big one.txt", "12345"),
        ("pub/<b>.txt", "12"),
        ("pub/.hidden", "x"),
        ("pub/folder/a", ""),
    ]);
    set_modified(&place, "site/pub/small.txt");
    place
}

fn names(port: u16, query: &str) -> Vec<String> {
    let answer = ask(port, "GET", &format!("/pub/{query}"), JSON);
    let rows: Value = serde_json::from_slice(&answer.body).unwrap();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn listing_is_off_unless_asked_for() {
    let place = place_with_folder();
    let hob = place.serve_config("");
    let answer = ask(hob.port(), "GET", "/pub/", "");
    assert_eq!(answer.status, 403);
    assert!(!answer.text().contains("small.txt"));
    hob.stop();
}

#[test]
fn listing_as_a_page_links_every_name_and_escapes_it() {
    let place = place_with_folder();
    let hob = serve(&place, "listing = true");
    let answer = ask(hob.port(), "GET", "/pub/", "");
    assert_eq!(answer.status, 200);
    let media_type = answer.header("content-type");
    assert_eq!(media_type, Some("text/html; charset=utf-8"));
    assert_eq!(answer.header("vary"), Some("Accept"));
    assert!(answer.header("content-security-policy").is_some());
    let page = answer.text();
    for link in [
        "href=\"small.txt\"",
        "href=\"big%20one.txt\"",
        "href=\"%3Cb%3E.txt\"",
        "href=\"folder/\"",
        "href=\"../\"",
        "&lt;b&gt;.txt",
    ] {
        assert!(page.contains(link), "{link} in {page}");
    }
    assert!(!page.contains("<b>.txt") && !page.contains(".hidden"));
    for link in ["/pub/big%20one.txt", "/pub/%3Cb%3E.txt"] {
        assert_eq!(ask(hob.port(), "GET", link, "").status, 200);
    }
    assert_eq!(ask(hob.port(), "HEAD", "/pub/", "").status, 200);
    hob.stop();
}

#[test]
fn listing_for_programs_is_json_in_the_order_asked_for() {
    let place = place_with_folder();
    let hob = serve(&place, "listing = true");
    let port = hob.port();
    let answer = ask(port, "GET", "/pub/", JSON);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let rows: Value = serde_json::from_slice(&answer.body).unwrap();
    let small = serde_json::json!({
        "name": "small.txt", "type": "file", "size": 1, "modified": "1994-11-06T08:49:37Z",
    });
    assert!(rows.as_array().unwrap().contains(&small), "{rows}");
    assert_eq!(rows[0]["type"], "folder");
    assert_eq!(rows[0]["size"], Value::Null);
    assert_eq!(
        names(port, ""),
        ["folder", "<b>.txt", "big one.txt", "small.txt"]
    );
    assert_eq!(
        names(port, "?sort=size&order=desc"),
        ["folder", "big one.txt", "<b>.txt", "small.txt"]
    );
    assert_eq!(names(port, "?sort=time&order=asc")[1], "small.txt");
    assert_eq!(
        names(port, "?sort=nonsense&order=%00"),
        names(port, ""),
        "what is not known is ignored"
    );
    hob.stop();
}
