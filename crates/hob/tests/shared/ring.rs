//! Wakes, full rings, requests that are handed over ahead, and many at a time.

use rustix::process::Signal;

use crate::harness::client::{Connection, call};
use crate::harness::{DEADLINE, send_signal};
use crate::place::serve;
use crate::pool::wait_for_file;

#[test]
fn wakes_of_both_sides_are_counted() {
    let site = serve("workers = { max = 1 }");
    for round in 0..20 {
        let name = format!("round{round}");
        // The server sleeps while the program waits, and the program before it is asked.
        let mut client = site.hold(&name);
        site.go(&name);
        assert_eq!(client.read_reply().answer.status, 200);
    }
    let counters = &site.place.status()["counters"];
    assert!(counters["worker_wakes"].as_u64() > Some(0), "{counters}");
    assert!(counters["worker_bells"].as_u64() > Some(0), "{counters}");
    site.stop();
}

/// Eight windows of bodies are more than the ring to the worker holds.
#[test]
fn bodies_that_find_no_room_in_the_ring_go_on_when_there_is_some() {
    let site = serve(
        "env = { THREADS = \"8\" }, workers = { max = 1, concurrency = 8 }, \
         timeout = { first_byte = \"0s\" }",
    );
    let worker = site.worker();
    send_signal(worker, Signal::STOP);
    let (port, body) = (site.port(), vec![b'x'; 256 * 1024]);
    std::thread::scope(|scope| {
        let call = || call(port, "POST", "/app/echo", "", &body).answer;
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        let until = std::time::Instant::now() + DEADLINE;
        while site.place.counter("worker_full") == 0 {
            assert!(std::time::Instant::now() < until, "the ring never was full");
        }
        send_signal(worker, Signal::CONT);
        for call in calls {
            let answer = call.join().unwrap();
            assert_eq!((answer.status, answer.body.len()), (200, body.len()));
        }
    });
    assert_eq!(site.worker(), worker);
    site.stop();
}

/// Long enough that requests wait for the workers, and short enough that some are handed ahead.
pub(crate) const SHORT: &str = "/app/nap?300";

/// A long request comes amid short ones, again and again, until some of those had been handed over
/// behind it: they are answered before it ends.
#[test]
fn requests_handed_ahead_of_a_long_one_are_taken_back() {
    let site = serve("workers = { min = 2, max = 2 }, queue = { wait = \"60s\" }");
    let until = std::time::Instant::now() + DEADLINE;
    let (rounds, answered) = site.under_load_of(SHORT, 24, || {
        let mut rounds = 0;
        while site.place.counter("worker_takebacks") == 0 {
            assert!(std::time::Instant::now() < until, "none in {rounds} rounds");
            let name = format!("long{rounds}");
            let mut client = site.hold(&name);
            // The other worker answers meanwhile.
            site.worker();
            site.go(&name);
            assert_eq!(client.read_reply().answer.status, 200);
            rounds += 1;
        }
        rounds
    });
    println!("{rounds} long requests amid {answered} short ones");
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn worker_with_threads_has_many_requests_at_a_time() {
    let site = serve("env = { THREADS = \"4\" }, workers = { max = 1, concurrency = 4 }");
    let worker = site.worker();
    let names = ["one", "two", "three", "four"];
    let mut held: Vec<Connection> = names.iter().map(|name| site.hold(name)).collect();
    for name in names.iter().rev() {
        wait_for_file(&site.path(&format!("{name}.begun")));
        site.go(name);
        let mut client = held.pop().unwrap();
        assert_eq!(client.read_reply().answer.text(), worker.to_string());
    }
    let ((), answered) = site.under_load(8, || {
        let body: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
        for _ in 0..5 {
            assert!(site.get("/app/blocks?1048576").answer.body == body);
            let reply = call(site.port(), "POST", "/app/echo", "", &body);
            assert!(reply.answer.body == body);
        }
    });
    assert!(answered > 0);
    assert_eq!(site.worker(), worker);
    site.stop();
}
