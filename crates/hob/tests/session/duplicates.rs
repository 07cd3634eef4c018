//! The same request again, while the first is under way.

use std::thread;

use crate::harness::client::{Connection, call};
use crate::place::serve;
use crate::site::Programs;

impl Programs {
    /// Asks for it in a visit, and leaves once it is under way.
    fn ask_and_leave(&self, handle: &str, name: &str) {
        let mut connection = Connection::open(self.port()).unwrap();
        let target = format!("/shop/{handle}/hold/{name}");
        connection.send_get(&target).unwrap();
        self.wait_for_file(&format!("{name}.begun"));
        connection.leave();
        self.place.wait_for_counter("client_left", 1);
    }
}

#[test]
fn same_request_again_gets_the_answer_of_the_first_and_is_not_run() {
    let shop = serve("duplicate = \"repeat\"");
    let handle = shop.begin();
    thread::scope(|scope| {
        let first = scope.spawn(|| shop.said(&handle, "hold/first?a=b"));
        shop.wait_for_file("first.begun");
        let again = scope.spawn(|| shop.said(&handle, "hold/first?a=b"));
        shop.place.wait_for_counter("session_repeats", 1);
        // Another query is another request.
        let other = scope.spawn(|| shop.said(&handle, "hold/first?a=c"));
        shop.place.wait_for_counter("worker_waits", 2);
        shop.let_go("first");
        assert_eq!(first.join().unwrap(), "first");
        assert_eq!(again.join().unwrap(), "first");
        assert_eq!(other.join().unwrap(), "first,first");
    });
    // The first is over: this is a new one.
    assert_eq!(shop.said(&handle, "hold/first?a=b"), "first,first,first");
    shop.counts("session_repeats", 1);
    shop.counts("limit_session_repeat", 0);
}

#[test]
fn who_clicks_twice_leaves_the_first_and_gets_its_answer() {
    let shop = serve("duplicate = \"repeat\"");
    let handle = shop.begin();
    shop.ask_and_leave(&handle, "left");
    thread::scope(|scope| {
        let again = scope.spawn(|| shop.said(&handle, "hold/left"));
        shop.place.wait_for_counter("session_repeats", 1);
        shop.let_go("left");
        assert_eq!(again.join().unwrap(), "left");
    });
    assert_eq!(shop.said(&handle, "add/x"), "left,x");
}

#[test]
fn last_answer_of_a_visit_is_given_again() {
    let shop = serve("duplicate = \"repeat\"");
    let handle = shop.begin();
    thread::scope(|scope| {
        let first = scope.spawn(|| shop.said(&handle, "leave_held/last"));
        shop.wait_for_file("last.begun");
        let again = scope.spawn(|| shop.said(&handle, "leave_held/last"));
        shop.place.wait_for_counter("session_repeats", 1);
        shop.let_go("last");
        assert_eq!(first.join().unwrap(), "bye");
        assert_eq!(again.join().unwrap(), "bye");
    });
    assert_eq!(shop.status_of(&handle, "leave_held/last"), 410);
}

#[test]
fn forms_are_alike_that_say_the_same_and_who_asks_is_the_same() {
    let shop = serve("duplicate = \"repeat\"");
    let handle = shop.begin();
    let target = format!("/shop/{handle}/hold/form");
    let post = |fields: &str, body: &[u8]| {
        let reply = call(shop.port(), "POST", &target, fields, body);
        reply.answer.text()
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| post("", b"item=tea"));
        shop.wait_for_file("form.begun");
        let again = scope.spawn(|| post("", b"item=tea"));
        shop.place.wait_for_counter("session_repeats", 1);
        let waits = [("", &b"item=cup"[..]), ("Cookie: a=b\r\n", b"item=tea")];
        let waits = waits.map(|(fields, body)| scope.spawn(move || post(fields, body)));
        shop.place.wait_for_counter("worker_waits", 3);
        shop.let_go("form");
        assert_eq!(first.join().unwrap(), "form");
        assert_eq!(again.join().unwrap(), "form");
        let mut own = waits.map(|one| one.join().unwrap());
        own.sort();
        assert_eq!(own, ["form,form", "form,form,form"]);
    });
    shop.counts("session_repeats", 1);
}

#[test]
fn answer_longer_than_is_held_is_not_given_again() {
    let shop = serve("duplicate = \"repeat\", repeat = \"1KiB\"");
    let handle = shop.begin();
    let long = "x".repeat(1024);
    shop.said(&handle, &format!("add/{long}"));
    thread::scope(|scope| {
        let first = scope.spawn(|| shop.said(&handle, "hold/first"));
        shop.wait_for_file("first.begun");
        let again = scope.spawn(|| shop.said(&handle, "hold/first"));
        shop.place.wait_for_counter("session_repeats", 1);
        shop.let_go("first");
        assert_eq!(first.join().unwrap(), format!("{long},first"));
        assert_eq!(again.join().unwrap(), format!("{long},first,first"));
    });
    shop.counts("limit_session_repeat", 1);
}

#[test]
fn no_more_wait_for_an_answer_than_may_wait() {
    let shop = serve("duplicate = \"repeat\", queue = { max = 1 }");
    let handle = shop.begin();
    thread::scope(|scope| {
        let first = scope.spawn(|| shop.said(&handle, "hold/first"));
        shop.wait_for_file("first.begun");
        let again = scope.spawn(|| shop.said(&handle, "hold/first"));
        shop.place.wait_for_counter("session_repeats", 1);
        assert_eq!(shop.status_of(&handle, "hold/first"), 429);
        shop.let_go("first");
        assert_eq!(first.join().unwrap(), "first");
        assert_eq!(again.join().unwrap(), "first");
    });
    shop.counts("limit_session_queue", 1);
}

#[test]
fn program_that_dies_is_told_to_both() {
    let shop = serve("duplicate = \"repeat\"");
    let handle = shop.begin();
    let pid = shop.pid_of(&handle);
    thread::scope(|scope| {
        let first = scope.spawn(|| shop.status_of(&handle, "hold/first"));
        shop.wait_for_file("first.begun");
        let again = scope.spawn(|| shop.status_of(&handle, "hold/first"));
        shop.place.wait_for_counter("session_repeats", 1);
        crate::harness::send_signal(pid, rustix::process::Signal::KILL);
        assert_eq!(first.join().unwrap(), 502);
        assert_eq!(again.join().unwrap(), 502);
    });
    assert_eq!(shop.status_of(&handle, "pid"), 410);
}

#[test]
fn same_request_again_is_refused_where_it_is_to_be() {
    let shop = serve("duplicate = \"refuse\"");
    let handle = shop.begin();
    thread::scope(|scope| {
        let held = scope.spawn(|| shop.said(&handle, "hold/first"));
        shop.wait_for_file("first.begun");
        assert_eq!(shop.status_of(&handle, "hold/first"), 409);
        let other = scope.spawn(|| shop.said(&handle, "add/x"));
        shop.place.wait_for_counter("worker_waits", 2);
        assert_eq!(shop.status_of(&handle, "add/x"), 409);
        shop.let_go("first");
        assert_eq!(held.join().unwrap(), "first");
        assert_eq!(other.join().unwrap(), "first,x");
    });
    shop.counts("session_duplicates", 2);
    assert_eq!(
        shop.said(&handle, "add/x"),
        "first,x,x",
        "the first is over"
    );
}

#[test]
fn first_whose_client_has_left_is_under_way_yet() {
    let shop = serve("duplicate = \"refuse\"");
    let handle = shop.begin();
    shop.ask_and_leave(&handle, "left");
    assert_eq!(shop.status_of(&handle, "hold/left"), 409);
    shop.let_go("left");
    assert_eq!(shop.said(&handle, "add/x"), "left,x");
}
