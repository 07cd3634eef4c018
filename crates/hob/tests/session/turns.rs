//! Requests of one visitor at a time.

use std::thread;

use crate::harness::client::Connection;
use crate::place::serve;

#[test]
fn requests_of_one_visitor_wait_their_turn_and_no_more_than_may() {
    let shop = serve("");
    let handle = shop.begin();
    thread::scope(|scope| {
        let held = scope.spawn(|| shop.said(&handle, "hold/first"));
        shop.wait_for_file("first.begun");
        let second = scope.spawn(|| shop.said(&handle, "add/x"));
        let third = scope.spawn(|| shop.said(&handle, "add/x"));
        shop.place.wait_for_counter("worker_waits", 3);
        let refused = shop.ask(&handle, "add/x");
        assert_eq!(refused.answer.status, 429);
        shop.let_go("first");
        assert_eq!(held.join().unwrap(), "first");
        let mut two = [second.join().unwrap(), third.join().unwrap()];
        two.sort();
        assert_eq!(two, ["first,x", "first,x,x"]);
    });
    shop.counts("limit_session_queue", 1);
    // Another visitor has not waited for any of it.
    assert_eq!(shop.said(&handle, "add/y"), "first,x,x,y");
}

#[test]
fn request_that_waited_behind_the_last_answer_is_not_answered_by_the_program() {
    let shop = serve("");
    let handle = shop.begin();
    thread::scope(|scope| {
        let last = scope.spawn(|| shop.said(&handle, "leave_held/last"));
        shop.wait_for_file("last.begun");
        let late = scope.spawn(|| shop.status_of(&handle, "order/late"));
        shop.place.wait_for_counter("worker_waits", 2);
        shop.let_go("last");
        assert_eq!(last.join().unwrap(), "bye");
        assert_eq!(late.join().unwrap(), 410);
    });
    assert!(!shop.path("shop.db").exists());
}

#[test]
fn program_finishes_what_a_client_left_and_the_visit_stays() {
    let shop = serve("");
    let handle = shop.begin();
    let mut connection = Connection::open(shop.port()).unwrap();
    connection
        .send_get(&format!("/shop/{handle}/hold/left"))
        .unwrap();
    shop.wait_for_file("left.begun");
    connection.leave();
    shop.place.wait_for_counter("client_left", 1);
    shop.let_go("left");
    assert_eq!(shop.said(&handle, "add/back"), "left,back");
    shop.counts("worker_terms", 0);
}

#[test]
fn visit_of_a_client_that_left_before_its_first_answer_is_over() {
    let shop = serve("");
    let mut connection = Connection::open(shop.port()).unwrap();
    connection.send_get("/shop/hold/left").unwrap();
    shop.wait_for_file("left.begun");
    let pid = shop.visits()[0]["visits"][0]["pid"].as_u64().unwrap();
    connection.leave();
    shop.place.wait_for_counter("client_left", 1);
    shop.let_go("left");
    shop.gone(pid.try_into().unwrap());
    assert_eq!(shop.visits()[0]["count"], 0);
}
