//! A site with pages, and a database that one of them makes.

use std::os::unix::fs::PermissionsExt;

use crate::harness::Place;
use crate::harness::client::{Reply, call};
use crate::harness::site::Site;

/// Makes the tables, and fills them.
const MAKE: &str = r#"
%FUNCTION(DTW_SQL) parts() {
  CREATE TABLE part (id INTEGER PRIMARY KEY, title TEXT NOT NULL, kind TEXT, cents INTEGER)
%}
%FUNCTION(DTW_SQL) fill() {
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
  INSERT INTO part
    SELECT i, 'part <i>' || i || '</i>', CASE i % 2 WHEN 0 THEN 'nut' ELSE 'bolt' END, i * 700
    FROM n
%}
%FUNCTION(DTW_SQL) lines() {
  CREATE TABLE line (part INTEGER REFERENCES part (id) DEFERRABLE INITIALLY DEFERRED)
%}
%HTML(tables) { @parts() @fill() @lines() made %}
"#;

/// The search page of the reference: an optional filter, and paging.
const PARTS: &str = r#"
%{ parts.d2w: search with optional filter, and paging %}
%DEFINE {
  START_ROW_NUM = "1"
  RPT_MAX_ROWS  = "20"
  %LIST " AND " filt
  filt  = ? "kind = '$(kind)'"
  filt  = ? "title LIKE '%$(q)%'"
  where = ? "WHERE $(filt)"
%}
%FUNCTION(DTW_SQL) findParts() {
  SELECT id, title, cents FROM part $(where) ORDER BY id
  %REPORT { <ul>
    %ROW { <li>$(ROW_NUM). <a href="show?id=@DTW_rURLESCSEQ(V_ID)">$(V_TITLE)</a></li> %}
    </ul> %}
  %MESSAGE { 100 : "<p>nothing matched</p>" : continue
             -default : { <p>query failed ($(RETURN_CODE))</p> %} : exit %}
%}
%FUNCTION(DTW_SQL) add() {
  INSERT INTO part (title, kind, cents) VALUES ('$(title)', '$(kind)', $(cents))
  %MESSAGE { -default : "<p>not added ($(RETURN_CODE))</p>" : continue %}
%}
%FUNCTION(DTW_SQL) addLine() { INSERT INTO line VALUES ($(part)) %}
%FUNCTION(DTW_SQL) count() {
  SELECT count(*) AS n FROM part %REPORT { %ROW { $(V_n) parts %} %}
%}
%HTML(list) { <h1>Parts</h1> @findParts() %}
%HTML(input) { <form method="post" action="insert"><input name="title"></form> %}
%HTML(insert) { @add() @count() %}
%HTML(twice) { @add() @DTW_ASSIGN(title, "") @DTW_ASSIGN(cents, "") @add() @count() %}
%HTML(order) { @addLine() ordered %}
%HTML(count) { @count() %}
"#;

/// Pages, with these keys beside their folder, and tables of the config.
pub(crate) fn serve(keys: &str, more: &str) -> Site {
    serve_at(place(), keys, more)
}

/// The folders, without a server.
pub(crate) fn place() -> Place {
    let place = Place::new();
    place.folder("macros");
    place.folder("data");
    let open = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path("data"), open).unwrap();
    place.write("macros/make.page", MAKE);
    place.write("macros/parts.d2w", PARTS);
    place
}

pub(crate) fn serve_at(place: Place, keys: &str, more: &str) -> Site {
    let handler = format!("page = {{ dir = \"macros\", {keys} }}\n{more}");
    Site::serve(place, "", &handler, "")
}

/// A `[[database]]` that is made, with these keys beside.
pub(crate) fn database(keys: &str) -> String {
    format!(
        "[[database]]\nname = \"stock\"\nurl = \"sqlite:data/stock.db\"\ncreate = true\n{keys}\n"
    )
}

/// Pages with the database `stock`, whose tables are there.
pub(crate) fn serve_stock(keys: &str, database_keys: &str) -> Site {
    let site = serve(
        &format!("database = \"stock\", {keys}"),
        &database(database_keys),
    );
    let made = site.get("/app/make.page/tables").answer;
    assert_eq!((made.status, made.text().trim()), (200, "made"));
    site
}

/// Posts a form.
pub(crate) fn post(site: &Site, target: &str, form: &str) -> Reply {
    let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
    call(site.port(), "POST", target, fields, form.as_bytes())
}

/// Asks for a row whose constraint is looked at when the transaction ends: it is no success.
pub(crate) fn assert_unkept(site: &Site) {
    let refused = site.get("/app/parts.d2w/order?part=700").answer;
    assert_eq!(refused.status, 500);
    assert!(!refused.text().contains("ordered"));
    let record = site.record("/app/parts.d2w/order?part=700");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("could not be kept"), "{detail}");
}
