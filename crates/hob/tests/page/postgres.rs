//! Pages over a real PostgreSQL.

use std::time::Instant;

use crate::harness::DEADLINE;
use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::place::{assert_unkept, place, post, serve_at};
use crate::server::PostgresServer;

/// Makes the tables of the place in PostgreSQL.
pub(crate) const MAKE: &str = "%FUNCTION(DTW_SQL) parts() { CREATE TABLE part (id serial PRIMARY KEY, title TEXT, \
    kind TEXT, cents INTEGER) %}\n\
    %FUNCTION(DTW_SQL) fill() { INSERT INTO part (title, kind, cents) \
    SELECT 'part ' || i, CASE i % 2 WHEN 0 THEN 'nut' ELSE 'bolt' END, i * 700 \
    FROM generate_series(1, 30) i %}\n\
    %FUNCTION(DTW_SQL) lines() { CREATE TABLE line (part INTEGER REFERENCES part (id) \
    DEFERRABLE INITIALLY DEFERRED) %}\n\
    %FUNCTION(DTW_SQL) nap() { SELECT pg_sleep(3600) %}\n\
    %HTML(tables) { @parts() @fill() @lines() made %}\n%HTML(nap) { @nap() %}";

/// The pages of the place, and some that only PostgreSQL knows, over a server of their own; nothing
/// where none is installed.
fn serve(keys: &str, more: &str) -> Option<(PostgresServer, Site)> {
    let server = PostgresServer::start()?;
    let place = place();
    place.write("macros/pg.page", MAKE);
    let sql = "-- hob: page\nSELECT id, title FROM part WHERE id = :id;\n";
    place.write("macros/one.sql", sql);
    let delete = "-- hob: page\nDELETE FROM part WHERE id = :id;\n";
    place.write("macros/delete.sql", delete);
    let url = server.url("hob");
    let database = format!("[[database]]\nname = \"stock\"\nurl = \"{url}\"\n{more}\n");
    let site = serve_at(place, &format!("database = \"stock\", {keys}"), &database);
    let made = site.get("/app/pg.page/tables").answer;
    assert_eq!((made.status, made.text().trim()), (200, "made"));
    Some((server, site))
}

#[test]
fn pages_find_write_and_keep_their_data() {
    let Some((_server, site)) = serve("", "") else {
        return;
    };
    let found = site
        .get("/app/parts.d2w/list?kind=bolt&q=1&RPT_MAX_ROWS=2")
        .answer;
    assert_eq!(found.text().matches("<li>").count(), 2, "{}", found.text());
    let attack = site
        .get("/app/parts.d2w/list?kind=x%27+OR+%271%27=%271")
        .answer;
    assert!(
        attack.text().contains("nothing matched"),
        "{}",
        attack.text()
    );
    let added = post(&site, "/app/parts.d2w/insert", "title=a&kind=b&cents=5").answer;
    assert_eq!(added.text().trim(), "31 parts");
    assert_unkept(&site);
    site.stop();
}

#[test]
fn what_is_asked_for_by_get_cannot_write() {
    let Some((_server, site)) = serve("", "") else {
        return;
    };
    let one = site.get("/app/one.sql?id=7").answer;
    assert!(
        one.text().contains("<tr><td>7<td>part 7\n"),
        "{}",
        one.text()
    );
    assert_eq!(site.get("/app/delete.sql?id=7").answer.status, 405);
    assert_eq!(
        site.get("/app/parts.d2w/count").answer.text().trim(),
        "30 parts"
    );
    let deleted = post(&site, "/app/delete.sql", "id=7").answer;
    assert!(
        deleted.text().contains("<p>1 rows changed.</p>"),
        "{}",
        deleted.text()
    );
    assert_eq!(
        site.get("/app/parts.d2w/count").answer.text().trim(),
        "29 parts"
    );
    site.stop();
}

#[test]
fn server_that_is_killed_and_started_again_is_used_again() {
    let Some((mut server, site)) = serve("", "") else {
        return;
    };
    server.kill();
    let without = site.get("/app/parts.d2w/count").answer;
    assert!(!without.text().contains("parts"), "{}", without.text());
    server.go_on();
    let until = Instant::now() + DEADLINE;
    while site.get("/app/parts.d2w/count").answer.text().trim() != "30 parts" {
        assert!(Instant::now() < until);
    }
    site.stop();
}

#[test]
fn client_that_leaves_ends_its_statement_on_the_server() {
    let Some((_server, site)) = serve("time = \"1h\"", "connections = 1") else {
        return;
    };
    let before = site.place.counter("page_waiting");
    let mut slow = Connection::open(site.port()).unwrap();
    slow.send_get("/app/pg.page/nap").unwrap();
    site.place.wait_for_counter("page_waiting", before + 1);
    slow.leave();
    let next = site.get("/app/parts.d2w/count").answer;
    assert_eq!((next.status, next.text().trim()), (200, "30 parts"));
    site.stop();
}
