//! `hob maintenance`: sites that are down for a while, and what outlives that.
#![allow(clippy::unwrap_used)]

mod harness;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use harness::client::{ask, get};
use harness::{Hob, Place, send_signal, text_of, wait_for_end};
use rustix::process::Signal;

const TOP: &str = "state = \"run/state\"\n\
    [[listen]]\naddress = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\n";
const SITES: &str = "[[site]]\nnames = [\"a.test\", \"www.a.test\"]\nroot = \"site\"\n\
    error_pages = { 503 = \"down.html\" }\nmaintenance_allow = [\"10.0.0.0/8\"]\n\
    [[site]]\nroot = \"site\"\n";

fn serve(place: &Place) -> Hob {
    place.write("down.html", "back soon");
    place.serve_text(&format!("{TOP}{SITES}"))
}

fn maintenance(place: &Place, arguments: &[&str]) -> (Option<i32>, String) {
    let output = place.run(&[&["maintenance"], arguments].concat());
    (output.status.code(), text_of(&output).trim().to_owned())
}

/// The status that a host answers with, to a client from this address.
fn status(hob: &Hob, host: &str, client: &str) -> u16 {
    let mut connection = harness::client::Connection::open(hob.port()).unwrap();
    let head =
        format!("GET /hello.txt HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: {client}\r\n\r\n");
    connection.send(head.as_bytes()).unwrap();
    connection.read().unwrap().status
}

#[test]
fn site_that_is_down_says_so_until_it_is_told_to_answer() {
    let place = Place::new();
    let hob = serve(&place);
    let all = |hob: &Hob| {
        ["a.test", "www.a.test", "other.test"].map(|host| status(hob, host, "192.0.2.1"))
    };
    assert_eq!(all(&hob), [200, 200, 200]);
    let down = "down for maintenance: the site a.test; clients come again in 90 s";
    let on = ["on", "--site", "a.test", "--retry-after", "90s"];
    assert_eq!(maintenance(&place, &on), (Some(0), down.to_owned()));
    assert_eq!(all(&hob), [503, 503, 200]);
    let answer = ask(hob.port(), "GET", "/nothing", "");
    assert_eq!(answer.status, 404);
    assert_eq!(status(&hob, "a.test", "10.1.2.3"), 200);
    let mut connection = harness::client::Connection::open(hob.port()).unwrap();
    connection
        .send(b"GET /nothing HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .unwrap();
    let answer = connection.read().unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (503, "back soon"));
    assert_eq!(answer.header("retry-after"), Some("90"));
    let told = text_of(&place.run(&["status"]));
    assert!(
        told.contains("the site a.test is down for maintenance"),
        "{told}"
    );
    assert_eq!(place.counter("maintenance"), 3);
    assert_eq!(maintenance(&place, &["on"]).0, Some(0));
    assert_eq!(all(&hob), [503, 503, 503]);
    let up = (Some(0), "answering again: all sites".to_owned());
    assert_eq!(maintenance(&place, &["off"]), up);
    assert_eq!(all(&hob), [200, 200, 200]);
    let not = (Some(0), "not down: the site a.test".to_owned());
    assert_eq!(maintenance(&place, &["off", "--site", "a.test"]), not);
    let (code, text) = maintenance(&place, &["on", "--site", "b.test"]);
    assert!(
        code == Some(1) && text.contains("there is no site b.test; those are a.test, *"),
        "{text}"
    );
    hob.stop();
}

#[test]
fn what_is_down_stays_down_over_reload_crash_upgrade_and_restart() {
    let place = Place::new();
    let hob = serve(&place);
    let is_down = |hob: &Hob| status(hob, "a.test", "192.0.2.1") == 503;
    assert_eq!(maintenance(&place, &["on", "--site", "a.test"]).0, Some(0));
    assert!(is_down(&hob));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation 2");
    assert!(is_down(&hob));
    let server = hob.server();
    send_signal(server, Signal::KILL);
    wait_for_end(server);
    hob.wait_for_count("server ready", 2);
    assert!(is_down(&hob));
    let upgrade = place.run(&["upgrade"]);
    assert!(upgrade.status.success(), "{}", text_of(&upgrade));
    assert!(is_down(&hob));
    hob.stop();
    let hob = serve(&place);
    assert!(is_down(&hob));
    assert_eq!(maintenance(&place, &["off", "--site", "a.test"]).0, Some(0));
    hob.stop();
    let hob = serve(&place);
    assert!(!is_down(&hob));
    hob.stop();
}

#[test]
fn no_request_is_lost_when_sites_go_down_and_come_back_under_load() {
    let place = Place::new();
    let hob = serve(&place);
    let port = hob.port();
    let is_over = AtomicBool::new(false);
    let (good, down) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let answer = get(port, "/hello.txt").unwrap();
                    match answer.status {
                        200 if answer.text() == "hello\n" => &good,
                        503 if answer.header("retry-after") == Some("300") => &down,
                        _ => panic!("{answer:?}"),
                    }
                    .fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let more_of = |count: &AtomicUsize| {
            let target = count.load(Ordering::SeqCst) + 50;
            while count.load(Ordering::SeqCst) < target {
                std::thread::yield_now();
            }
        };
        for _ in 0..3 {
            more_of(&good);
            assert_eq!(maintenance(&place, &["on"]).0, Some(0));
            more_of(&down);
            assert_eq!(maintenance(&place, &["off"]).0, Some(0));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let answered = good.load(Ordering::SeqCst) + down.load(Ordering::SeqCst);
    assert_eq!(
        place.counter("maintenance"),
        down.load(Ordering::SeqCst) as u64
    );
    assert!(answered >= 300, "{answered}");
    hob.stop();
}
