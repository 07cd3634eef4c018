//! Renewal: when the authority says so, when time is up, and what is served when it fails.

use std::time::Instant;

use crate::authority::Authority;
use crate::harness::client::Connection;
use crate::harness::{DEADLINE, Place};
use crate::{
    Failed, config, fail_an_order, reload, renew, serve, shown, wait_for_state,
    wait_until_shown_differs, wait_until_trusted,
};

const HOST: &str = "one.example.test";

#[test]
fn certificate_is_renewed_when_the_authority_says_so_without_a_new_server() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let hob = serve(&place, &authority, &config(&authority, ""));
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    let (server, before) = (hob.server(), shown(&hob, HOST));
    renew(&place, &hob, &authority, HOST, &before);
    wait_until_trusted(&hob, &authority, HOST);
    assert_eq!(hob.server(), server);
    hob.stop();
}

#[test]
fn certificate_that_is_soon_over_is_renewed_by_itself() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let hob = serve(
        &place,
        &authority,
        &config(&authority, "profile = \"short\"\n"),
    );
    hob.wait_for_count("a certificate was got", 2);
    wait_until_trusted(&hob, &authority, HOST);
    hob.stop();
}

#[test]
fn working_certificate_stays_when_its_renewal_fails() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let hob = serve(&place, &authority, &config(&authority, ""));
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    let leads_to = hob.port();
    let want = |before: &str| authority.want_renewal_of(before);
    let Failed { line, before, got } = fail_an_order(&place, &hob, &authority, HOST, want);
    assert!(
        line.contains("no certificate: the authority did not find the proof"),
        "{line}"
    );
    assert!(line.contains(HOST), "{line}");
    assert!(line.contains("port 80 of that name"), "{line}");
    assert_eq!(shown(&hob, HOST), before);
    wait_until_trusted(&hob, &authority, HOST);
    let state = wait_for_state(&place, |state| state["state"] == "failed");
    assert!(state["until_unix"].as_i64().is_some(), "{state}");
    assert!(state["next_try_unix"].as_i64().is_some(), "{state}");
    let failed =
        |times: u8| format!("hob_certificate_order_failed{{certificate=\"{HOST}\"}} {times}\n");
    assert!(told(&place, "/metrics").contains(&failed(1)));
    let words = format!("no certificate for {HOST}: ");
    wait_until_told(&place, "/v1/resources", |told| told.contains(&words));
    authority.http.lead_to(leads_to);
    reload(&place);
    hob.wait_for_count("a certificate was got", got + 1);
    wait_until_shown_differs(&hob, HOST, &before);
    wait_for_state(&place, |state| state["state"] == "served");
    assert!(told(&place, "/metrics").contains(&failed(0)));
    wait_until_told(&place, "/v1/resources", |told| !told.contains(&words));
    hob.stop();
}

/// What the control socket says.
fn told(place: &Place, target: &str) -> String {
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    connection.send_ask("GET", target, "");
    connection.read_last("GET").text()
}

/// Asks until it is so.
fn wait_until_told(place: &Place, target: &str, is_so: impl Fn(&str) -> bool) {
    let until = Instant::now() + DEADLINE;
    loop {
        let text = told(place, target);
        if is_so(&text) {
            return;
        }
        assert!(Instant::now() < until, "{text}");
    }
}
