//! How many workers a program gets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use crate::harness::client::call;
use crate::place::serve;
use crate::pool::workers;
use crate::site::Programs;

/// Has so many clients ask for a target while something is done.
fn under_load(site: &Programs, target: &str, clients: usize, work: impl FnOnce()) {
    let is_over = &AtomicBool::new(false);
    let port = site.port();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(call(port, "GET", target, "", b"").answer.status, 200);
                }
            });
        }
        /// Ends the clients whatever happens.
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(is_over);
        work();
    });
}

#[test]
fn programs_that_compute_settle_near_the_number_of_cores() {
    let cores = available_parallelism().unwrap().get();
    let site = serve(&format!("workers = {{ max = {} }}", cores * 8));
    under_load(&site, "/app/burn", cores * 8, || {
        let pool = site.wait_for_pool("grown to the cores", |pool| {
            let growth = pool["growth"].as_str().unwrap();
            workers(pool) >= cores && growth.contains("more would not help")
        });
        // What others compute beside it hides some of what the workers want.
        assert!(workers(&pool) <= cores * 3, "{pool}");
    });
    site.stop();
}

#[test]
fn programs_that_wait_grow_to_the_most_there_may_be() {
    let site = serve("workers = { max = 6 }");
    under_load(&site, "/app/nap", 12, || site.wait_for_workers(6));
    site.stop();
}

#[test]
fn idle_workers_go_until_the_least_is_left() {
    let site = serve("workers = { min = 1, max = 3, idle_timeout = \"100ms\" }");
    under_load(&site, "/app/nap", 6, || site.wait_for_workers(3));
    site.wait_for_workers(1);
    let worker = site.worker();
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn program_without_a_least_is_started_on_demand_and_goes_again() {
    let site = serve("workers = { min = 0, idle_timeout = \"100ms\" }");
    assert_eq!(workers(&site.pool()), 0);
    for _ in 0..2 {
        site.worker();
        site.wait_for_workers(0);
    }
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn program_that_waits_answers_fifty_clients_with_defaults() {
    let site = Programs::new()
        .with_mode(
            "app.py",
            "import time\n\
             def application(environ, start):\n    \
             time.sleep(3)\n    start('200 OK', [])\n    return [b'done']\n",
            0o644,
        )
        .serve_route(
            "path = \"/app/*\"\nresident = { wsgi = \"app:application\", dir = \"cgi\" }\n",
        );
    let port = site.port();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = || call(port, "GET", "/app/x", "", b"").answer.status;
        let clients: Vec<_> = (0..50).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses, vec![200; 50], "{}", site.pool()["growth"]);
    site.stop();
}
