//! A shop in the old style: its pages remember a visitor, and the order is one transaction.

use crate::harness::Place;
use crate::harness::client::{Answer, Reply};
use crate::harness::site::Site;
use crate::place::{database, place, post, serve_at};
use crate::server::PostgresServer;

const SHOP: &str = r#"
%{ shop.d2w: an order over several pages %}
@DTW_STATIC("120")
%DEFINE {
  h = ""
  n = "0"
  who = ""
%}
@DTW_RTVHANDLE(h)
%FUNCTION(DTW_SQL) addLine(IN CHAR(12) item, INTEGER qty) {
  INSERT INTO cart_line (item, qty) VALUES ('$(item)', $(qty))
%}
%FUNCTION(DTW_SQL) lines() {
  SELECT item FROM cart_line ORDER BY item
  %REPORT { %ROW {$(V_item);%} %}
  %MESSAGE { 100 : "none" : continue %}
%}
%FUNCTION(DTW_SQL) pin() { INSERT INTO pin VALUES (700) %}
%FUNCTION(DTW_SQL) long() {
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n
%}
%HTML(start) { @DTW_ACCEPT(h)$(h) %}
%HTML(name)  { @DTW_ACCEPT(h, "60")Hello $(who) %}
%HTML(long)  { @DTW_ACCEPT(h, "3600") long %}
%HTML(hello) { @DTW_ACCEPT(h)Still $(who) %}
%HTML(add)   { @DTW_ACCEPT(h, "120") @addLine(item, qty) @DTW_ADD(n, "1", n)
  $(n) lines. <a href="/app/$(h)/shop.d2w/done">buy</a> %}
%HTML(cart)  { @DTW_ACCEPT(h)$(n) lines: @lines() %}
%HTML(keep)  { @DTW_ACCEPT(h) @DTW_COMMIT() kept %}
%HTML(drop)  { @DTW_ACCEPT(h) @DTW_ROLLBACK() @DTW_ASSIGN(n, "0") dropped %}
%HTML(pin)   { @DTW_ACCEPT(h) @pin() pinned %}
%HTML(leave) { @DTW_ACCEPT(h, "1") left %}
%HTML(turn)  { @DTW_RTVHANDLE(h) @DTW_ACCEPT(h)$(h) %}
%HTML(done)  { @DTW_TERMINATE() Thanks for $(n) lines. %}
%HTML(silent) { nothing is said of the visit %}
%HTML(other) { @DTW_ACCEPT("~9b74c9897bac770ffc029102a200c5de") another %}
%HTML(endless) { @DTW_ACCEPT(h) @long() %}
"#;

const TABLES: &str = r#"
%FUNCTION(DTW_SQL) make() { CREATE TABLE cart_line (item TEXT, qty INTEGER) %}
%FUNCTION(DTW_SQL) parts() { CREATE TABLE part (id INTEGER PRIMARY KEY) %}
%FUNCTION(DTW_SQL) pins() {
  CREATE TABLE pin (part INTEGER REFERENCES part (id) DEFERRABLE INITIALLY DEFERRED)
%}
%FUNCTION(DTW_SQL) count() {
  SELECT count(*) AS n FROM cart_line %REPORT { %ROW {$(V_n)%} %}
%}
%HTML(make) { @make() @parts() @pins() made %}
%FUNCTION(DTW_SQL) open() {
  SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'idle in transaction'
  %REPORT { %ROW {$(V_n)%} %}
%}
%HTML(count) { @count() %}
%HTML(open) { @open() %}
"#;

/// The shop over SQLite, with keys of its `session`.
pub(crate) fn serve(session: &str) -> Site {
    serve_with(session, "", "")
}

/// The same with more keys of `page`, and of its database.
pub(crate) fn serve_with(session: &str, keys: &str, database_keys: &str) -> Site {
    serve_in(shop(), session, keys, &database(database_keys))
}

/// The shop over a PostgreSQL of its own; nothing where none is installed.
pub(crate) fn serve_postgres(session: &str) -> Option<(PostgresServer, Site)> {
    let server = PostgresServer::start()?;
    let url = server.url("hob");
    let database = format!("[[database]]\nname = \"stock\"\nurl = \"{url}\"\n");
    let site = serve_in(shop(), session, "", &database);
    Some((server, site))
}

/// The same over a database of which this is told.
pub(crate) fn serve_over(session: &str, database: &str) -> Site {
    serve_in(shop(), session, "", database)
}

/// The pages, without a server.
pub(crate) fn shop() -> Place {
    let place = place();
    place.write("macros/shop.d2w", SHOP);
    place.write("macros/other.d2w", SHOP);
    place.write("macros/tables.page", TABLES);
    place
}

fn serve_in(place: Place, session: &str, keys: &str, database: &str) -> Site {
    let session = match session {
        "" => String::new(),
        session => format!("session = {session}, "),
    };
    let keys = format!("database = \"stock\", {session}{keys}");
    let site = serve_at(place, &keys, database);
    let made = site.get("/app/tables.page/make").answer;
    assert_eq!((made.status, made.text().trim()), (200, "made"));
    site
}

impl Site {
    /// Begins a visit: its handle.
    pub(crate) fn begin(&self) -> String {
        let answer = self.get("/app/shop.d2w/start").answer;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
        assert_eq!(answer.header("cache-control"), Some("private"));
        let handle = answer.text().trim().to_owned();
        assert!(handle.starts_with('~') && handle.len() == 33, "{handle}");
        handle
    }

    /// Asks for a block in a visit.
    pub(crate) fn ask(&self, handle: &str, what: &str) -> Answer {
        self.get(&format!("/app/{handle}/shop.d2w/{what}")).answer
    }

    /// The words of that, which must come.
    pub(crate) fn said(&self, handle: &str, what: &str) -> String {
        let answer = self.ask(handle, what);
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        let words: Vec<_> = answer
            .text()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        words.join(" ")
    }

    /// Adds a line to the order, if the visit is there.
    pub(crate) fn add(&self, handle: &str, item: &str) -> Reply {
        let target = format!("/app/{handle}/shop.d2w/add");
        post(self, &target, &format!("item={item}&qty=1"))
    }

    /// Adds a line to the order, and leaves: the visit waits no longer than a second.
    pub(crate) fn add_and_leave(&self, handle: &str, item: &str) {
        assert_eq!(self.add(handle, item).answer.status, 200);
        assert_eq!(self.said(handle, "leave"), "left");
    }

    /// Lines that everybody sees.
    pub(crate) fn line_count(&self) -> String {
        let answer = self.get("/app/tables.page/count").answer;
        answer.text().trim().to_owned()
    }

    /// Transactions that PostgreSQL holds open for visits.
    pub(crate) fn open_count(&self) -> String {
        let answer = self.get("/app/tables.page/open").answer;
        answer.text().trim().to_owned()
    }

    /// What `hob status --json` tells of visits.
    pub(crate) fn visits(&self) -> serde_json::Value {
        self.place.status()["programs"]["visits"][0].clone()
    }
}
