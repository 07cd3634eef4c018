//! One process makes the orders, whatever happens around it.

use std::time::Instant;

use rustix::process::Signal;

use crate::authority::Authority;
use crate::harness::{DEADLINE, Hob, Place, children_of, send_signal, text_of, wait_for_end};
use crate::{config, reload, renew, serve, shown, wait_until_trusted};

const HOST: &str = "one.example.test";

/// The processes that make orders.
fn orders_of(hob: &Hob) -> Vec<u32> {
    let is_it = |child: &u32| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"acme")
    };
    children_of(hob.pid()).into_iter().filter(is_it).collect()
}

/// The one process that makes orders, once it has become that.
pub(crate) fn the_one_that_orders(hob: &Hob) -> u32 {
    let until = Instant::now() + DEADLINE;
    loop {
        let all = orders_of(hob);
        assert!(all.len() < 2, "{all:?}");
        if let Some(one) = all.first() {
            return *one;
        }
        assert!(Instant::now() < until, "{}", hob.printed());
    }
}

#[test]
fn reload_and_upgrade_leave_one_process_that_orders() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let hob = serve(&place, &authority, &config(&authority, ""));
    hob.wait_for("a certificate was got");
    let first = the_one_that_orders(&hob);
    reload(&place);
    assert_eq!(orders_of(&hob), [first]);
    let upgraded = place.run(&["upgrade"]);
    assert!(upgraded.status.success(), "{}", text_of(&upgraded));
    wait_for_end(first);
    hob.wait_for_count("process for certificates started", 2);
    let second = the_one_that_orders(&hob);
    wait_until_trusted(&hob, &authority, HOST);
    let before = shown(&hob, HOST);
    renew(&place, &hob, &authority, HOST, &before);
    hob.stop();
    wait_for_end(second);
}

#[test]
fn process_that_dies_is_started_again_and_the_server_stays() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let hob = serve(&place, &authority, &config(&authority, ""));
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    let (server, orders) = (hob.server(), the_one_that_orders(&hob));
    let before = shown(&hob, HOST);
    send_signal(orders, Signal::KILL);
    hob.wait_for_count("process for certificates started", 2);
    renew(&place, &hob, &authority, HOST, &before);
    assert_eq!(hob.server(), server);
    hob.stop();
}

#[test]
fn server_that_dies_within_an_order_is_told_of_the_proofs_again() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    // Nobody who looks for a proof reaches the first server.
    let held = authority.http.hold();
    let hob = place.serve_text(&config(&authority, ""));
    held.recv().unwrap();
    send_signal(hob.server(), Signal::KILL);
    hob.wait_for_count("server ready", 2);
    authority.http.lead_to(hob.port());
    hob.wait_for("a certificate was got");
    authority.tls.lead_to(hob.tls_port());
    wait_until_trusted(&hob, &authority, HOST);
    hob.stop();
}

#[test]
fn record_is_removed_when_its_order_ends_with_an_upgrade_or_a_stop() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    authority.write_hook(&place, "records", "echo \"$@\" >> run/calls");
    let keys = "challenge = \"dns-01\"\ndns = { run = \"records\", wait = \"1h\" }\n";
    let hob = serve(&place, &authority, &config(&authority, keys));
    let wait_for_calls = |word: &str, count: usize| {
        let begin = format!("{word} _acme-challenge.{HOST} ");
        let until = Instant::now() + DEADLINE;
        loop {
            let calls = std::fs::read_to_string(place.path("run/calls")).unwrap_or_default();
            if calls
                .lines()
                .filter(|call| call.starts_with(&begin))
                .count()
                == count
            {
                return;
            }
            assert!(Instant::now() < until, "no {count} {word} in:\n{calls}");
        }
    };
    wait_for_calls("add", 1);
    let upgraded = place.run(&["upgrade"]);
    assert!(upgraded.status.success(), "{}", text_of(&upgraded));
    wait_for_calls("remove", 1);
    wait_for_calls("add", 2);
    hob.stop();
    wait_for_calls("remove", 2);
}

#[test]
fn config_without_certificates_needs_no_process() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    let orders = the_one_that_orders(&hob);
    place.write("hob.toml", &text.replace("\"auto\"", "\"self-signed\""));
    reload(&place);
    wait_for_end(orders);
    assert!(orders_of(&hob).is_empty());
    assert_eq!(
        place.status()["certificates"],
        serde_json::Value::Array(vec![])
    );
    hob.stop();
}
