//! What ends visits of pages, and what outlives what.

use std::time::Instant;

use crate::harness::DEADLINE;
use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::harness::usage::{open_files, private_bytes};
use crate::place::{database, serve_at};
use crate::program_place::{self, Routes};
use crate::visit_place::{serve, serve_postgres};

const MANY: &str = "{ visits = { per_client = 0, rate = 0 } }";
/// What a server that has had visits may have more than before.
const LEFT_BYTES_MAX: u64 = 8 << 20;

fn reload(site: &Site, change: impl FnOnce(String) -> String) {
    let config = site.place.path("hob.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, change(text)).unwrap();
    let reloaded = site.place.run(&["reload"]);
    assert!(reloaded.status.success(), "{reloaded:?}");
}

#[test]
fn reload_keeps_visits_and_a_changed_page_is_for_new_ones() {
    let session = "{ visits = { rate = 0 } }";
    let site = serve(session);
    let handle = site.begin();
    site.said(&handle, "name?who=Ann");
    site.add(&handle, "bolt");
    reload(&site, |text| {
        format!("{text}\n[[site.route]]\npath = \"/new\"\nrespond = {{ status = 204 }}\n")
    });
    assert_eq!(site.get("/new").answer.status, 204);
    assert_eq!(site.said(&handle, "hello"), "Still Ann");
    let file = site.place.path("macros/shop.d2w");
    let text = std::fs::read_to_string(&file).unwrap();
    site.place
        .write("macros/shop.d2w", &text.replace("Thanks", "Cheers"));
    let until = Instant::now() + DEADLINE;
    let new = || site.get("/app/shop.d2w/done").answer.text();
    while new().trim() != "Cheers for 0 lines." {
        assert!(Instant::now() < until, "it is seen within a second");
    }
    assert_eq!(site.said(&handle, "hello"), "Still Ann");
    assert_eq!(site.said(&handle, "done"), "Thanks for 1 lines.");
    assert_eq!(site.line_count(), "1");
    // A section that is another ends its visits.
    let handle = site.begin();
    site.add(&handle, "nut");
    reload(&site, |text| text.replace(session, "{ wait = \"4m\" }"));
    assert_eq!(site.ask(&handle, "hello").status, 410);
    assert_eq!(site.line_count(), "1");
    site.stop();
}

fn assert_order_goes_on_over_upgrades(site: &Site) {
    let (one, other) = (site.begin(), site.begin());
    site.said(&one, "name?who=Ann");
    site.add(&one, "bolt");
    for _ in 0..2 {
        let upgraded = site.place.run(&["upgrade"]);
        assert!(upgraded.status.success(), "{upgraded:?}");
    }
    assert_eq!(site.said(&one, "hello"), "Still Ann");
    assert_eq!(site.said(&other, "done"), "Thanks for 0 lines.");
    assert_eq!(site.line_count(), "0");
    assert_eq!(site.said(&one, "done"), "Thanks for 1 lines.");
    assert_eq!(site.line_count(), "1");
    for handle in [&one, &other] {
        assert_eq!(site.ask(handle, "hello").status, 410);
    }
}

#[test]
fn order_goes_on_over_upgrades() {
    let site = serve("true");
    assert_order_goes_on_over_upgrades(&site);
    site.stop();
}

#[test]
fn order_goes_on_over_upgrades_in_postgresql() {
    let Some((_server, site)) = serve_postgres("true") else {
        return;
    };
    assert_order_goes_on_over_upgrades(&site);
    site.stop();
}

#[test]
fn operator_ends_a_visit() {
    let site = serve("true");
    let handle = site.begin();
    site.add(&handle, "bolt");
    let number = site.visits()["visits"][0]["number"].to_string();
    let ended = site.place.run(&["visit", "end", &number]);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(site.ask(&handle, "done").status, 410);
    assert!(!site.place.run(&["visit", "end", &number]).status.success());
    assert_eq!(site.line_count(), "0");
    site.stop();
}

#[test]
fn visits_are_so_many_and_the_one_that_waited_longest_goes() {
    let site = serve("{ visits = { max = 2, per_client = 2 } }");
    let one = site.begin();
    let other = site.begin();
    let refused = site.get("/app/shop.d2w/start").answer;
    assert_eq!(refused.status, 429);
    assert_eq!(site.place.counter("limit_session_client"), 1);
    site.said(&other, "done");
    site.begin();
    assert_eq!(site.said(&one, "hello"), "Still");
    site.stop();
    let site = serve("{ visits = { max = 2, per_client = 0 } }");
    let (one, other) = (site.begin(), site.begin());
    site.add(&one, "bolt");
    site.said(&other, "hello");
    let third = site.begin();
    assert_eq!(site.ask(&one, "done").status, 410);
    assert_eq!(site.said(&other, "hello"), "Still");
    assert_eq!(site.said(&third, "hello"), "Still");
    assert_eq!(site.place.counter("limit_session_max"), 1);
    assert_eq!(site.line_count(), "0");
    site.stop();
}

#[test]
fn visit_is_over_at_its_age() {
    let site = serve("{ life = \"1s\" }");
    let handle = site.begin();
    site.add(&handle, "bolt");
    site.place.wait_for_counter("limit_session_life", 1);
    assert_eq!(site.ask(&handle, "done").status, 410);
    assert_eq!(site.line_count(), "0");
    site.stop();
}

#[test]
fn server_that_ends_undoes_what_was_not_committed() {
    let site = serve("true");
    let handle = site.begin();
    site.add(&handle, "bolt");
    let place = site.place;
    site.hob.stop();
    let site = serve_at(place, "database = \"stock\", session = true", &database(""));
    assert_eq!(site.line_count(), "0");
    assert_eq!(site.ask(&handle, "done").status, 410);
    site.stop();
}

/// Visits begin, each asks for this, which holds so many transactions open, and all leave: the
/// server is as it was before.
fn assert_leave_nothing(site: &Site, count: u64, what: &str, open_count: Option<&str>) {
    let server = site.hob.server();
    site.line_count();
    let (files, bytes) = (open_files(server), private_bytes(server));
    let handles: Vec<String> = (0..count).map(|_| site.begin()).collect();
    for handle in &handles {
        site.said(handle, what);
    }
    assert_eq!(site.visits()["count"], count);
    if let Some(open_count) = open_count {
        assert_eq!(site.open_count(), open_count);
    }
    for handle in &handles {
        site.said(handle, "leave");
    }
    site.place.wait_for_counter("limit_session_wait", count);
    let until = Instant::now() + DEADLINE;
    let left = || private_bytes(server).saturating_sub(bytes);
    while open_files(server) > files + 4
        || left() > LEFT_BYTES_MAX
        || open_count.is_some() && site.open_count() != "0"
    {
        assert!(
            Instant::now() < until,
            "{} of {files} files, {} bytes",
            open_files(server),
            left()
        );
        std::thread::yield_now();
    }
    assert_eq!(site.ask(&handles[0], "cart").status, 410);
    assert_eq!(site.visits()["count"], 0);
    assert_eq!(site.line_count(), "0");
}

#[test]
fn hundred_visits_that_are_left_leave_nothing() {
    let site = serve(MANY);
    assert_leave_nothing(&site, 100, "cart", None);
    site.stop();
}

#[test]
fn visits_that_only_read_hold_no_connection() {
    // The server takes 20.
    let Some((_server, site)) = serve_postgres(MANY) else {
        return;
    };
    assert_leave_nothing(&site, 60, "cart", Some("0"));
    site.stop();
}

#[test]
fn visits_that_wrote_hold_connections_and_leave_none() {
    let Some((_server, site)) = serve_postgres(MANY) else {
        return;
    };
    assert_leave_nothing(&site, 8, "add?item=bolt&qty=1", Some("8"));
    site.stop();
}

#[test]
fn client_that_leaves_leaves_the_run_to_finish() {
    let page = "@DTW_STATIC() %DEFINE { h = \"\" n = \"0\" v = \"\" %} @DTW_RTVHANDLE(h)\n\
                %FUNCTION(DTW_SYSTEM) f(OUT v) { %EXEC { f %} %}\n\
                %HTML(start) {@DTW_ACCEPT(h)$(h)%}\n\
                %HTML(slow) {@DTW_ACCEPT(h)@f(v)@DTW_ADD(n, \"1\", n)%}\n\
                %HTML(count) {@DTW_ACCEPT(h)$(n)%}";
    let waits = "#!/bin/sh\necho $$ > ../data/waits\n\
                 while [ ! -e ../data/go ]; do sleep 0.05; done\n";
    let routes = Routes::default().keys("session = true").cgi("f", waits);
    let site = program_place::serve(page, &routes);
    let handle = site.get("/app/p.page/start").answer.text();
    let target = |block: &str| format!("/app/{}/p.page/{block}", handle.trim());
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get(&target("slow")).unwrap();
    program_place::number(&site, "waits");
    client.leave();
    // The server has seen it.
    let shown = format!("/app/{}.../p.page/slow", &handle.trim()[1..5]);
    site.record(&shown);
    site.place.write("data/go", "");
    assert_eq!(site.get(&target("count")).answer.text().trim(), "1");
    site.stop();
}
