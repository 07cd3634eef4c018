//! What pages may not use up, and whom they may not keep waiting.

use crate::harness::client::{Connection, call};
use crate::harness::site::Site;
use crate::place::{database, place, post, serve_at, serve_stock};

/// A statement that does not end by itself in the time of a test, and one with a long result.
const SLOW: &str = r#"
%FUNCTION(DTW_SQL) endless() {
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n
%}
%FUNCTION(DTW_SQL) long() {
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT i FROM n
  %REPORT { %ROW {$(V_i) is the number of this row, and no other has it.
%} %}
%}
%HTML(endless) { @endless() %}
%HTML(long) {@long()%}
%HTML(turns) {%WHILE ("1" == "1") {%}%}
"#;

fn serve_slow(keys: &str, database_keys: &str) -> Site {
    let place = place();
    place.write("macros/slow.page", SLOW);
    let keys = format!("database = \"stock\", {keys}");
    let site = serve_at(place, &keys, &database(database_keys));
    assert_eq!(site.get("/app/make.page/tables").answer.status, 200);
    site
}

/// Waits until a page runs that was not asked for by us alone.
fn begin_endless(site: &Site) -> Connection {
    let before = site.place.counter("page_waiting");
    let mut slow = Connection::open(site.port()).unwrap();
    slow.send_get("/app/slow.page/endless").unwrap();
    site.place.wait_for_counter("page_waiting", before + 1);
    slow
}

#[test]
fn page_that_takes_too_long_is_ended() {
    // What the test itself needs may take its time.
    let late = "connections = 1\n[[site.route]]\npath = \"/late/*\"\n\
                page = { dir = \"macros\", database = \"stock\", time = \"2s\" }";
    let site = serve_slow("time = \"1h\"", late);
    let late = site.get("/late/slow.page/endless").answer;
    assert_eq!(late.status, 504);
    let record = site.record("/late/slow.page/endless");
    assert_eq!(
        record["reason"],
        "limits: page.time: the page took too long"
    );
    assert_eq!(site.place.counter("limit_page_time"), 1);
    // Its thread and connection are free again.
    assert_eq!(
        site.get("/late/parts.d2w/count").answer.text().trim(),
        "30 parts"
    );
    site.stop();
}

#[test]
fn slow_statement_stands_in_the_record() {
    let site = serve_slow("time = \"20s\"", "slow = \"1ms\"\nplan = true");
    site.get("/app/slow.page/long");
    let record = site.record("/app/slow.page/long");
    assert_eq!(record["note"], "a statement of the page was slow");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.starts_with("stock: "), "{detail}");
    assert!(detail.contains(" 200000 rows: "), "{detail}");
    assert!(detail.contains("SELECT i FROM n; plan: "), "{detail}");
    assert!(detail.contains("; SCAN n"), "{detail}");
    // A page that is slow by itself has no such statement.
    site.get("/app/slow.page/turns");
    assert_eq!(site.record("/app/slow.page/turns")["note"], "");
    site.stop();
}

#[test]
fn requests_beyond_the_queue_are_refused() {
    let site = serve_slow("queue = 0", "connections = 1");
    let slow = begin_endless(&site);
    let refused = site.get("/app/parts.d2w/count").answer;
    assert_eq!(refused.status, 503);
    assert_eq!(site.place.counter("limit_page_queue"), 1);
    slow.leave();
    site.stop();
}

#[test]
fn time_is_counted_while_a_request_waits() {
    let site = serve_slow("time = \"500ms\"", "connections = 1");
    let slow = begin_endless(&site);
    let behind = [begin_endless(&site), begin_endless(&site)];
    for mut one in [slow].into_iter().chain(behind) {
        let status = one.read().unwrap().status;
        // Late (504), or never begun (503).
        assert!([503, 504].contains(&status), "{status}");
    }
    assert_eq!(site.place.counter("limit_page_time"), 3);
    site.stop();
}

#[test]
fn client_that_leaves_ends_its_statement() {
    let site = serve_slow("time = \"1h\"", "connections = 1");
    begin_endless(&site).leave();
    let next = site.get("/app/parts.d2w/count").answer;
    assert_eq!((next.status, next.text().trim()), (200, "30 parts"));
    site.stop();
}

#[test]
fn client_that_closes_its_connection_ends_its_statement() {
    let site = serve_slow("time = \"1h\"", "connections = 1");
    let before = site.place.counter("page_waiting");
    let mut slow = Connection::open(site.port()).unwrap();
    // Nothing says that this is the last request, so the end of what the client sends is its own.
    slow.send(b"GET /app/slow.page/endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    site.place.wait_for_counter("page_waiting", before + 1);
    drop(slow);
    let next = site.get("/app/parts.d2w/count").answer;
    assert_eq!((next.status, next.text().trim()), (200, "30 parts"));
    site.stop();
}

#[test]
fn slow_client_keeps_no_connection_to_a_database() {
    let site = serve_slow("", "connections = 1");
    let mut slow = Connection::open(site.port()).unwrap();
    slow.send_get("/app/slow.page/long").unwrap();
    let (status, headers) = slow.read_head().unwrap();
    assert_eq!(status, 200);
    for _ in 0..100 {
        let answer = post(&site, "/app/parts.d2w/insert", "title=a&kind=b&cents=1");
        assert_eq!(answer.answer.status, 200);
    }
    let body = slow.read_body(&headers).unwrap();
    let text = String::from_utf8(body).unwrap();
    let lines: Vec<_> = text.trim().lines().collect();
    assert_eq!(lines.len(), 200_000);
    for (at, line) in lines.iter().enumerate() {
        let wanted = format!("{} is the number of this row, and no other has it.", at + 1);
        assert_eq!(*line, wanted);
    }
    site.stop();
}

#[test]
fn page_that_uses_too_much_is_ended() {
    let site = serve_slow("", "");
    let answer = site.get("/app/slow.page/turns").answer;
    assert_eq!(answer.status, 500);
    let record = site.record("/app/slow.page/turns");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("turns_max"), "{detail}");
    assert_eq!(site.place.counter("limit_page_use"), 1);
    site.stop();
}

#[test]
fn form_that_is_too_long_is_refused() {
    let site = serve_stock("", "");
    let fits = format!("title={}&kind=a&cents=1", "x".repeat((1 << 20) - 21));
    assert_eq!(
        post(&site, "/app/parts.d2w/insert", &fits).answer.status,
        200
    );
    let refused = post(&site, "/app/parts.d2w/insert", &(fits + "x")).answer;
    assert_eq!(refused.status, 413);
    assert_eq!(site.place.counter("limit_page_form"), 1);
    let many = "a&".repeat(10_001);
    assert_eq!(
        post(&site, "/app/parts.d2w/insert", &many).answer.status,
        413
    );
    let other = "Content-Type: application/json\r\n";
    let answer = call(site.port(), "POST", "/app/parts.d2w/count", other, b"{}").answer;
    assert_eq!(answer.text().trim(), "31 parts");
    site.stop();
}

#[test]
fn sixty_five_requests_at_once_are_all_answered() {
    let site = serve_stock("", "connections = 3");
    let mut all: Vec<_> = (0..65)
        .map(|_| Connection::open(site.port()).unwrap())
        .collect();
    for one in &mut all {
        one.send_get("/app/parts.d2w/count").unwrap();
    }
    for one in &mut all {
        assert_eq!(one.read().unwrap().text().trim(), "30 parts");
    }
    site.stop();
}
