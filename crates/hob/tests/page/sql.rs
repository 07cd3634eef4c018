//! Pages that are statements.

use serde_json::{Value, json};

use crate::harness::client::{Answer, call};
use crate::harness::site::Site;
use crate::place::{database, place, post, serve_at};

const PARTS: &str = "-- hob: page\n-- title: All <parts>\n-- rows: 10\n\
    SELECT id, title, cents / 100.0 AS price, NULL AS note FROM part\n\
    WHERE (:kind IS NULL OR kind = :kind) AND id > coalesce(:above, 0) ORDER BY id;\n";
const ADD: &str = "-- hob: page\nINSERT INTO part (title, kind) VALUES (:title, :kind);\n\
    SELECT count(*) AS parts FROM part;\n";

fn serve() -> Site {
    let place = place();
    place.write("macros/parts.sql", PARTS);
    place.write("macros/add.sql", ADD);
    place.write("macros/schema.sql", "CREATE TABLE secret (a);\n");
    place.write("macros/wrong.sql", "-- hob: page\nSELECT a FROM\n'b");
    let keys = "database = \"stock\", dev = true";
    let site = serve_at(place, keys, &database(""));
    assert_eq!(site.get("/app/make.page/tables").answer.status, 200);
    site
}

fn get_as(site: &Site, target: &str, accept: &str) -> Answer {
    let fields = format!("Accept: {accept}\r\n");
    call(site.port(), "GET", target, &fields, b"").answer
}

#[test]
fn rows_are_a_table_and_data_is_text() {
    let site = serve();
    let first = site.get("/app/parts.sql?kind=bolt").answer;
    assert_eq!(
        first.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(first.header("vary"), Some("Accept"));
    let text = first.text();
    assert!(text.contains("<h1>All &lt;parts&gt;</h1>"), "{text}");
    assert!(
        text.contains("<tr><td>1<td>part &lt;i&gt;1&lt;/i&gt;<td>7.0<td>\n"),
        "{text}"
    );
    assert_eq!(text.matches("<tr><td>").count(), 10);
    assert!(
        text.contains("<a href=\"?kind=bolt&amp;page=2\">More</a>"),
        "{text}"
    );
    let second = site.get("/app/parts.sql?kind=bolt&page=2").answer.text();
    assert_eq!(second.matches("<tr><td>").count(), 5);
    assert!(second.contains("<a href=\"?kind=bolt&amp;page=1\">Before</a>"));
    assert!(!second.contains("More"));
    for attack in ["kind=x%27+OR+%271%27=%271", "kind=%22%3B+DROP+TABLE+part"] {
        let text = site.get(&format!("/app/parts.sql?{attack}")).answer.text();
        assert!(text.contains("Nothing was found."), "{text}");
    }
    let all = site
        .get("/app/parts.sql?kind=&above=28&page=x")
        .answer
        .text();
    assert_eq!(all.matches("<tr><td>").count(), 2);
    site.stop();
}

#[test]
fn client_gets_what_it_accepts() {
    let site = serve();
    let answer = get_as(&site, "/app/parts.sql?above=28", "application/json");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let rows: Value = serde_json::from_slice(&answer.body).unwrap();
    let wanted = json!([
        {"id": 29, "title": "part <i>29</i>", "price": 203.0, "note": null},
        {"id": 30, "title": "part <i>30</i>", "price": 210.0, "note": null},
    ]);
    assert_eq!(rows, wanted);
    let none = get_as(&site, "/app/parts.sql?above=99", "application/json");
    assert_eq!(none.text().trim(), "[]");
    let all = get_as(&site, "/app/parts.sql", "text/csv");
    assert_eq!(all.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = all.text();
    let lines: Vec<_> = text.split("\r\n").collect();
    assert_eq!((lines.len(), lines[0]), (32, "id,title,price,note"));
    assert_eq!(lines[1], "1,part <i>1</i>,7.0,");
    site.stop();
}

#[test]
fn page_that_writes_is_asked_for_by_post_from_its_own_site() {
    let site = serve();
    let refused = site.get("/app/add.sql?title=a&kind=b").answer;
    assert_eq!(refused.status, 405);
    assert_eq!(refused.header("allow"), Some("POST, OPTIONS"));
    let form = "title=a&kind=b";
    let sent = |fields: &str| {
        let fields = format!("Content-Type: application/x-www-form-urlencoded\r\n{fields}");
        let target = "/app/add.sql";
        call(site.port(), "POST", target, &fields, form.as_bytes()).answer
    };
    for foreign in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://elsewhere.example\r\n",
        "Origin: null\r\n",
        "Origin: https://localhost\r\nSec-Fetch-Site: cross-site\r\n",
    ] {
        assert_eq!(sent(foreign).status, 403, "{foreign}");
    }
    let count = || {
        get_as(&site, "/app/parts.sql", "text/csv")
            .text()
            .lines()
            .count()
            - 1
    };
    assert_eq!(count(), 30);
    let added = post(&site, "/app/add.sql", form).answer;
    assert!(
        added.text().contains("<p>1 rows changed.</p>"),
        "{}",
        added.text()
    );
    assert!(added.text().contains("<tr><td>31\n"), "{}", added.text());
    for own in [
        "Sec-Fetch-Site: same-origin\r\n",
        "Sec-Fetch-Site: none\r\n",
    ] {
        assert_eq!(sent(own).status, 200, "{own}");
    }
    assert_eq!(count(), 33);
    // The page that only reads does so by POST too.
    assert_eq!(post(&site, "/app/parts.sql", "kind=b").answer.status, 200);
    site.stop();
}

#[test]
fn other_files_of_sql_are_not_there() {
    let site = serve();
    for target in [
        "/app/schema.sql",
        "/app/schema.sql/a",
        "/app/parts.sql/list",
        "/app/none.sql",
    ] {
        let answer = site.get(target).answer;
        assert_eq!(answer.status, 404, "{target}");
        assert!(!answer.text().contains("secret"), "{target}");
    }
    let wrong = site.get("/app/wrong.sql").answer;
    assert_eq!(wrong.status, 500);
    assert!(wrong.text().contains("wrong.sql:3:1"), "{}", wrong.text());
    site.place
        .write("macros/failing.sql", "-- hob: page\n\nSELECT a FROM none");
    let failing = site.get("/app/failing.sql").answer;
    assert_eq!(failing.status, 500);
    assert!(
        failing
            .text()
            .contains("failing.sql:3:1: no such table: none"),
        "{}",
        failing.text()
    );
    site.stop();
}
