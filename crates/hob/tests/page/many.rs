//! A thousand visitors of a page that lasts: what their visits hold, and that all of it is given
//! back.

use std::time::Instant;

use crate::harness::DEADLINE;
use crate::harness::site::Site;
use crate::harness::usage::{memory_bytes, open_files, private_bytes};
use crate::server::PostgresServer;
use crate::visit_place::{serve, serve_over};

const COUNT: usize = 1000;
/// Of them, those that write and do not commit. The database takes twenty connections.
const WRITER_COUNT: usize = 8;
/// Of those, the ones that order in the end.
const ORDER_COUNT: usize = 3;
/// What the server may have more for each visit of the shop.
const EACH_BYTES_MAX: u64 = 16 << 10;
/// What it may have more than before when all are over.
const LEFT_BYTES_MAX: u64 = 8 << 20;
const SESSION: &str = "{ wait = \"10m\", visits = { max = 1000, per_client = 0, rate = 0 } }";

/// Waits until a number of the server is no more than this.
fn wait_for_at_most(what: &str, most: u64, look: impl Fn() -> u64) {
    let until = Instant::now() + DEADLINE;
    while look() > most {
        assert!(Instant::now() < until, "{what}: {} of {most}", look());
        std::thread::yield_now();
    }
}

/// Opens them, has some of them write, and ends all. `see_open` sees that so many transactions are
/// open in the database.
fn assert_thousand(site: &Site, writer_count: usize, see_open: impl Fn(usize)) {
    let server = site.hob.server();
    // What the first visit alone takes.
    let first = site.begin();
    site.add(&first, "nut");
    site.said(&first, "done");
    let (files, bytes) = (open_files(server), private_bytes(server));
    let (shared, order_count) = (memory_bytes(server, "Pss"), site.line_count());
    let handles: Vec<String> = (0..COUNT).map(|_| site.begin()).collect();
    let held = memory_bytes(server, "Pss").saturating_sub(shared);
    println!("{} bytes for each visit", held / COUNT as u64);
    assert!(held / (COUNT as u64) < EACH_BYTES_MAX, "{held}");
    assert_eq!(site.visits()["count"], COUNT);
    assert!(open_files(server) <= files + 10, "who reads holds nothing");
    see_open(0);
    for (at, handle) in handles.iter().enumerate().take(writer_count) {
        let added = site.add(handle, &format!("bolt{at}")).answer;
        assert_eq!(added.status, 200, "{}", added.text());
    }
    for (at, handle) in handles.iter().enumerate().step_by(100) {
        let name = format!("name?who=visitor{at}");
        assert_eq!(site.said(handle, &name), format!("Hello visitor{at}"));
    }
    for (at, handle) in handles.iter().enumerate().step_by(100) {
        assert_eq!(site.said(handle, "hello"), format!("Still visitor{at}"));
    }
    see_open(writer_count);
    // Some order, some leave the way a page has it, all others do not come back.
    let ordered = ORDER_COUNT.min(writer_count);
    let (orders, rest) = handles.split_at(ordered);
    for handle in orders.iter().chain(&rest[COUNT / 2..]) {
        site.said(handle, "done");
    }
    assert_eq!(site.visits()["count"], COUNT / 2);
    // Their section is no more: so are they.
    let config = site.place.path("hob.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("10m", "11m")).unwrap();
    assert!(site.place.run(&["reload"]).status.success());
    assert_eq!(site.ask(&handles[COUNT / 2], "cart").status, 410);
    see_open(0);
    wait_for_at_most("descriptors", files as u64 + 10, || {
        open_files(server) as u64
    });
    wait_for_at_most("bytes", bytes + LEFT_BYTES_MAX, || private_bytes(server));
    let before: usize = order_count.parse().unwrap();
    assert_eq!(site.line_count(), (before + ordered).to_string());
    assert_eq!(site.visits()["count"], 0);
}

#[test]
fn thousand_visits_hold_little_and_leave_nothing() {
    let site = serve(SESSION);
    // Who has written keeps all others from writing, in SQLite, which counts nothing.
    assert_thousand(&site, 1, |_| {});
    let again = site.begin();
    assert_eq!(site.add(&again, "bolt").answer.status, 200);
    site.stop();
}

#[test]
fn thousand_visits_give_back_their_connections_to_postgresql() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let url = server.url("hob");
    let database = format!("[[database]]\nname = \"stock\"\nurl = \"{url}\"\nconnections = 4\n");
    let site = serve_over(SESSION, &database);
    assert_thousand(&site, WRITER_COUNT, |count| {
        let until = Instant::now() + DEADLINE;
        while site.open_count() != count.to_string() {
            assert!(Instant::now() < until, "not {count} are open");
            std::thread::yield_now();
        }
    });
    site.stop();
}
