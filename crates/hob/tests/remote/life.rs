//! Machines that go and come back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;

use crate::authority::Authority;
use crate::harness::client::{Connection, get};
use crate::harness::send_signal;
use crate::pair::{Owner, front_place, pair, place_with_program, serve_front};

#[test]
fn another_machine_answers_where_one_is_down() {
    let authority = Authority::new("hobs");
    let serve = || Owner::serve(place_with_program(), &authority, "resident", "\"front\"");
    let (first, second) = (serve(), serve());
    let to = format!("{}, {}", first.to(), second.to());
    let keys = ", balance = \"round_robin\"";
    let front = serve_front(front_place(&authority), &to, keys, "");
    for _ in 0..4 {
        assert_eq!(front.get("/app/slow").answer.status, 200);
    }
    first.stop();
    for _ in 0..4 {
        assert_eq!(front.get("/app/slow").answer.text(), "slow\n");
    }
    second.stop();
    let answer = front.get("/app/slow?last").answer;
    assert!(matches!(answer.status, 502 | 503), "{answer:?}");
    assert_eq!(front.record("/app/slow?last")["fault"], "upstream");
    front.stop();
}

#[test]
fn answer_of_a_machine_that_dies_breaks_off() {
    let (owner, front) = pair("resident");
    let mut connection = Connection::open(front.port()).unwrap();
    connection.send_ask("GET", "/app/endless", "");
    assert_eq!(connection.read_head().unwrap().0, 200);
    connection.skip(1 << 20).unwrap();
    send_signal(owner.hob.server(), Signal::KILL);
    let rest = connection.read_to_end();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "it ends as if it were whole");
    front.stop();
    owner.stop();
}

#[test]
fn program_hears_of_a_client_that_leaves() {
    for kind in crate::pair::HANDLERS {
        let (owner, front) = pair(kind);
        let mut connection = Connection::open(front.port()).unwrap();
        connection.send_ask("GET", "/app/endless", "");
        assert_eq!(connection.read_head().unwrap().0, 200);
        connection.skip(1 << 20).unwrap();
        connection.leave();
        // Its record is there when it has ended.
        let record = crate::harness::site::record(&owner.place, "/app/endless");
        assert_eq!(record["status"], 200, "{kind}");
        front.stop();
        owner.stop();
    }
}

#[test]
fn reloads_on_both_sides_lose_no_request() {
    let (owner, front) = pair("resident");
    let (port, is_over, done) = (front.port(), AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = get(port, "/app/slow").unwrap();
                    assert_eq!((answer.status, answer.text().as_str()), (200, "slow\n"));
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 1..=3 {
            let begun = done.load(Ordering::Relaxed);
            for place in [&owner.place, &front.place] {
                let text = std::fs::read_to_string(place.path("hob.toml")).unwrap();
                place.write("hob.toml", &format!("{text}# {round}\n"));
                let reloaded = place.run(&["reload"]);
                let text = crate::harness::text_of(&reloaded);
                assert!(reloaded.status.success(), "{text}");
            }
            while done.load(Ordering::Relaxed) < begun + 20 {
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    front.stop();
    owner.stop();
}

#[test]
fn offer_that_a_reload_takes_back_is_refused_at_once() {
    let (owner, front) = pair("cgi");
    assert_eq!(front.get("/app/tell").answer.status, 200);
    let taken = Owner::config(&owner.place, "cgi", "\"nobody\"", "");
    owner.place.write("hob.toml", &taken);
    assert!(owner.place.run(&["reload"]).status.success());
    // The connection is the one from before.
    assert_eq!(front.get("/app/tell").answer.status, 502);
    assert_eq!(owner.place.counter("offer_refused"), 1);
    front.stop();
    owner.stop();
}
