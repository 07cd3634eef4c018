//! Databases of pages.

use crate::place::{assert_unkept, database, place, post, serve, serve_at, serve_stock};

#[test]
fn statement_that_fails_undoes_all_of_its_run() {
    let site = serve_stock("", "");
    let form = "title=one&kind=gear&cents=5";
    let twice = post(&site, "/app/parts.d2w/twice", form).answer;
    assert_eq!(twice.status, 200);
    let count = site.get("/app/parts.d2w/count").answer;
    assert_eq!(count.text().trim(), "30 parts", "{}", twice.text());
    site.stop();
}

#[test]
fn what_cannot_be_kept_is_no_success() {
    let site = serve_stock("", "");
    let good = site.get("/app/parts.d2w/order?part=7").answer;
    assert_eq!((good.status, good.text().trim()), (200, "ordered"));
    assert_unkept(&site);
    site.stop();
}

#[test]
fn database_that_is_read_only_is_not_written() {
    let site = serve_stock("", "");
    let more = format!(
        "{}[[database]]\nname = \"seen\"\nurl = \"sqlite:data/stock.db\"\nreadonly = true\n",
        database("")
    );
    let place = site.place;
    site.hob.stop();
    let site = serve_at(place, "database = \"seen\"", &more);
    let form = "title=one&kind=gear&cents=5";
    let refused = post(&site, "/app/parts.d2w/insert", form).answer;
    assert!(
        refused.text().contains("not added (-817)"),
        "{}",
        refused.text()
    );
    let count = site.get("/app/parts.d2w/count").answer;
    assert_eq!(count.text().trim(), "30 parts");
    site.stop();
}

#[test]
fn page_names_another_database() {
    let place = place();
    let page = "%DEFINE DATABASE = \"LOG\"\n%FUNCTION(DTW_SQL) make() { CREATE TABLE seen (a) %}\n\
                %FUNCTION(DTW_SQL) look() { SELECT 'here' AS a %REPORT { %ROW { $(V_a) %} %} %}\n\
                %FUNCTION(DTW_SQL) other() { SELECT 1 FROM part %MESSAGE { -default : \"($(RETURN_CODE))\" : continue %} %}\n\
                %HTML(make) { @make() %}\n%HTML(look) { @look() %}\n\
                %HTML(none) { @DTW_ASSIGN(DATABASE, \"none\") @other() %}";
    place.write("macros/log.page", page);
    let log = "[[database]]\nname = \"log\"\nurl = \"sqlite:data/log.db\"\ncreate = true\n";
    let more = database("") + log;
    let site = serve_at(place, "database = \"stock\"", &more);
    assert_eq!(site.get("/app/log.page/make").answer.status, 200);
    assert!(site.place.path("data/log.db").exists());
    assert!(!site.place.path("data/stock.db").exists());
    let looked = site.get("/app/log.page/look").answer;
    assert_eq!(looked.text().trim(), "here");
    let none = site.get("/app/log.page/none").answer;
    assert_eq!(none.text().trim(), "(-1013)");
    site.stop();
}

#[test]
fn page_without_a_database_says_so() {
    let site = serve("dev = true", "");
    let answer = site.get("/app/parts.d2w/list").answer;
    assert!(
        answer.text().contains("query failed (-1013)"),
        "{}",
        answer.text()
    );
    site.stop();
}

#[test]
fn file_that_takes_the_place_of_a_database_is_used() {
    let site = serve_stock("", "");
    assert_eq!(
        site.get("/app/parts.d2w/count").answer.text().trim(),
        "30 parts"
    );
    post(&site, "/app/parts.d2w/insert", "title=one&kind=a&cents=1");
    for ending in ["-wal", "-shm", ""] {
        std::fs::remove_file(site.place.path(&format!("data/stock.db{ending}"))).unwrap();
    }
    // On whichever thread it runs: tables can be made, so this is another file.
    let made = site.get("/app/make.page/tables").answer;
    assert_eq!((made.status, made.text().trim()), (200, "made"));
    assert_eq!(
        site.get("/app/parts.d2w/count").answer.text().trim(),
        "30 parts"
    );
    site.stop();
}
