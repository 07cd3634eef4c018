//! How many visits there may be.

use std::thread;
use std::time::{Duration, Instant};

use crate::place::{route, serve, shop};

#[test]
fn client_has_so_many_visits_at_once() {
    let shop = serve("visits = { per_client = 2 }");
    let one = shop.begin();
    shop.begin();
    assert_eq!(shop.get("/shop/pid").answer.status, 429);
    shop.counts("limit_session_client", 1);
    shop.said(&one, "leave");
    shop.begin();
}

#[test]
fn visit_that_waited_longest_goes_for_a_new_one() {
    let shop = serve("visits = { max = 2, per_client = 0 }");
    let (one, other) = (shop.begin(), shop.begin());
    let pid = shop.pid_of(&one);
    let evicted = shop.pid_of(&other);
    // It is the last to have answered, also where the threads' clocks differ.
    let until = Instant::now() + Duration::from_millis(50);
    while Instant::now() < until {
        assert_eq!(shop.pid_of(&one), pid);
    }
    let third = shop.begin();
    shop.gone(evicted);
    assert_eq!(shop.status_of(&other, "pid"), 410);
    assert_eq!(shop.pid_of(&one), pid);
    shop.counts("limit_session_max", 1);
    // Those that are busy stay, and nothing more begins.
    thread::scope(|scope| {
        let first = scope.spawn(|| shop.said(&one, "hold/first"));
        let second = scope.spawn(|| shop.said(&third, "hold/second"));
        shop.wait_for_file("first.begun");
        shop.wait_for_file("second.begun");
        let refused = shop.get("/shop/pid");
        assert_eq!(refused.answer.status, 503);
        assert!(refused.answer.header("retry-after").is_some());
        shop.let_go("first");
        shop.let_go("second");
        assert_eq!(first.join().unwrap(), "first");
        assert_eq!(second.join().unwrap(), "second");
    });
    shop.counts("limit_session_full", 1);
}

#[test]
fn visits_begin_at_a_rate() {
    let shop = serve("visits = { rate = 1, burst = 2, per_client = 0 }");
    let begun = (0..5).map(|_| shop.get("/shop/pid").answer.status);
    let begun: Vec<u16> = begun.collect();
    assert!(begun.contains(&503), "{begun:?}");
    assert!(
        begun.iter().filter(|status| **status == 200).count() >= 2,
        "{begun:?}"
    );
    assert!(shop.place.counter("limit_session_rate") >= 1);
}

#[test]
fn without_a_number_there_are_as_many_as_there_is_memory_and_half_of_the_workers_for() {
    let config = format!("{}[limits]\nworkers = 6\n", route("/shop/*", ""));
    let shop = shop().serve_route(&config);
    let handles: Vec<String> = (0..4).map(|_| shop.begin()).collect();
    assert_eq!(shop.visits()[0]["max"], 3);
    assert_eq!(shop.visits()[0]["count"], 3);
    assert_eq!(shop.status_of(&handles[0], "pid"), 410);
    shop.counts("limit_session_max", 1);
    let explained = shop.place.run(&["explain", "/shop/pid"]);
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    let said = "at most 3 visits at once: `visits.max` is not set";
    assert!(text.contains(said), "{text}");
}
