//! Heads as CGI has them, and the end string wherever it stands.

use crate::harness::client::{Reply, ask, call};
use crate::program::serve_one;
use crate::site::Programs;

fn raw(site: &Programs, what: &str) -> Reply {
    site.get(&format!("/app/raw/{what}"))
}

#[test]
fn heads_are_those_of_cgi() {
    let site = serve_one();
    let worker = site.worker();
    let tea = raw(&site, "status").answer;
    assert_eq!((tea.status, tea.text().as_str()), (418, "tea"));
    assert_eq!(tea.header("x-tea"), Some("green"));
    let missing = raw(&site, "nph").answer;
    assert_eq!((missing.status, missing.text().as_str()), (404, "not here"));
    assert_eq!(raw(&site, "interim").answer.text(), "at last");
    assert_eq!(raw(&site, "inside").answer.text(), "hello\n");
    let away = raw(&site, "away").answer;
    assert_eq!(away.status, 302);
    assert_eq!(away.header("location"), Some("http://localhost/else"));
    let empty = raw(&site, "no-body").answer;
    assert_eq!((empty.status, empty.body.len()), (204, 0));
    let announced = raw(&site, "announced").answer;
    assert_eq!(announced.header("content-length"), Some("3"));
    assert_eq!(announced.text(), "tea");
    let head = ask(site.port(), "HEAD", "/app/raw/announced", "");
    assert_eq!(head.header("content-length"), Some("3"));
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn what_is_no_head_gives_502_and_the_worker_goes_on() {
    let site = serve_one();
    let worker = site.worker();
    for (what, expected) in [
        (
            "no-head",
            "the program's output ended before the empty line that ends a head",
        ),
        ("no-field", "a line of the head is no field (`Name: value`)"),
        ("nothing", "the answer ended without a head"),
        ("long-head", "the head of the answer is longer than 64 KiB"),
        ("short", "the answer is shorter than its Content-Length"),
    ] {
        let reply = raw(&site, what);
        assert!(reply.is_broken(), "{what}: {reply:?}");
        let (reason, _) = site.reason(&format!("/app/raw/{what}"));
        assert_eq!(reason, expected, "{what}");
        assert_eq!(site.worker(), worker, "{what}");
    }
    site.stop();
}

#[test]
fn end_string_is_found_however_it_is_cut() {
    let site = serve_one();
    let worker = site.worker();
    // Twenty-six bytes of head, nine of body, then the end string and its newline.
    for at in 33..=64 {
        assert_eq!(site.text(&format!("/app/cut/{at}")), "the body$", "{at}");
    }
    let dripped = site.text("/app/drip");
    assert!(
        dripped.starts_with("$F-") && dripped.ends_with('.'),
        "{dripped}"
    );
    assert_eq!(dripped.len(), 27 + 1 + 9 + 1);
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn newline_after_the_end_may_be_missing_late_or_more_than_one() {
    let site = serve_one();
    let worker = site.worker().to_string();
    for what in ["without_newline", "late_newline", "blank_after"] {
        for _ in 0..2 {
            assert_eq!(site.text(&format!("/app/{what}")), worker, "{what}");
        }
        assert_eq!(site.text("/app/pid"), worker, "{what}");
    }
    site.stop();
}

#[test]
fn one_newline_and_no_more_is_eaten_and_bodies_are_as_they_are() {
    let site = serve_one();
    for bytes in [0, 1, 4096, 16_384, 65_536, 1_000_003] {
        let reply = call(site.port(), "GET", &format!("/app/give/{bytes}"), "", b"");
        assert!(reply.is_whole);
        let expected: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
        assert!(reply.answer.body == expected, "{bytes}");
    }
    site.stop();
}
