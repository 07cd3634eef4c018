//! Pages over ODBC: with Debian's drivers for SQLite and PostgreSQL, and with one that crashes.

use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;

use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::harness::{
    DEADLINE, Place, children_of, send_signal, status_line, text_of, wait_for_end,
};
use crate::place::{assert_unkept, place, post, serve_at};
use crate::postgres::MAKE;
use crate::server::PostgresServer;
use crate::visit_place::serve_over;
use crate::visits::assert_order_is_one_transaction;

/// Pages that are the same for each database.
const MORE: &str = r#"
%FUNCTION(DTW_SQL) one() { SELECT title, kind, cents, id FROM part WHERE title = '$(title)'
  %REPORT { %ROW {[$(V_title)|$(V_kind)|$(V_cents)] %} %}
  %MESSAGE { 100 : "nothing" : continue %} %}
%FUNCTION(DTW_SQL) price() { SELECT cents FROM part WHERE id = $(V_id)
  %REPORT { %ROW {$(V_cents) %} %} %}
%FUNCTION(DTW_SQL) nested() { SELECT id FROM part WHERE id < 4 ORDER BY id
  %REPORT { %ROW {@price()%} %} %}
%FUNCTION(DTW_SQL) add() { INSERT INTO part (title, cents) VALUES ('$(title)', 1) %}
%FUNCTION(DTW_SQL) nothing() { SELECT x FROM nothing
  %MESSAGE { -default : "$(RETURN_CODE) $(SQL_STATE)" : continue %} %}
%HTML(one) {@one()%}
%HTML(nested) {@nested()%}
%HTML(add) {@add()added%}
%HTML(nothing) {@nothing()%}
"#;
/// As it takes from the driver of SQLite.
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

/// A database behind a driver.
struct Source {
    url: String,
    server: Option<PostgresServer>,
    /// A statement that does not end, and one with 100,000 rows.
    endless: &'static str,
    rows: &'static str,
    /// One with a value that is too large.
    large: &'static str,
    /// What `nothing` says.
    missing: &'static str,
}

/// Those that are installed.
fn sources(place: &Place) -> Vec<Source> {
    let known = std::fs::read_to_string("/etc/odbcinst.ini").unwrap_or_default();
    let has = |driver: &str, package: &str| {
        let is_there = known.contains(&format!("[{driver}]"));
        if !is_there {
            println!("skipped: Debian package {package} is not installed");
        }
        is_there
    };
    let mut sources = Vec::new();
    if has("SQLite3", "libsqliteodbc") {
        let file = place.path("data/odbc.db");
        sources.push(Source {
            url: format!(
                "odbc:Driver=SQLite3;FKSupport=1;Database={}",
                file.display()
            ),
            server: None,
            endless: ENDLESS,
            rows: "SELECT i, printf('%0300d', i) AS wide FROM (WITH RECURSIVE n(i) AS \
                   (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n)",
            large: "SELECT hex(zeroblob(9000000)) AS x",
            missing: "-1 HY000",
        });
    }
    if has("PostgreSQL Unicode", "odbc-postgresql")
        && let Some(server) = PostgresServer::start()
    {
        let folder = server.url("hob");
        let folder = folder.split('=').next_back().unwrap();
        sources.push(Source {
            url: format!(
                "odbc:Driver=PostgreSQL Unicode;Server={folder};Database=postgres;UID=hob;\
                 UseDeclareFetch=1;Fetch=100"
            ),
            server: Some(server),
            endless: "SELECT pg_sleep(3600)",
            rows: "SELECT i, lpad(i::text, 300, '0') AS wide FROM generate_series(1, 100000) i",
            large: "SELECT repeat('x', 18000000) AS x",
            missing: "-204 42P01",
        });
    }
    sources
}

/// Serves the pages of the place and more over a source, whose tables are there then.
fn serve(place: Place, source: &Source, keys: &str, more: &str) -> Site {
    place.write("macros/more.page", MORE);
    place.write("macros/pg.page", MAKE);
    let ways = format!(
        "%FUNCTION(DTW_SQL) nap() {{ {} %}}\n%FUNCTION(DTW_SQL) rows() {{ {}\n\
         %REPORT {{ %ROW {{$(V_i) $(V_wide)\n%}} %}} %}}\n\
         %FUNCTION(DTW_SQL) large() {{ {}\n\
         %MESSAGE {{ -default : \"$(RETURN_CODE)\" : continue %}} %}}\n\
         %HTML(nap) {{@nap()%}}\n%HTML(rows) {{@rows()%}}\n%HTML(large) {{@large()%}}",
        source.endless, source.rows, source.large
    );
    place.write("macros/ways.page", &ways);
    let sql = "-- hob: page\nSELECT id, title FROM part WHERE title = :title;\n";
    place.write("macros/one.sql", sql);
    let delete = "-- hob: page\nDELETE FROM part WHERE id = :id;\n";
    place.write("macros/delete.sql", delete);
    let url = &source.url;
    let database = format!("[[database]]\nname = \"stock\"\nurl = \"{url}\"\n{more}\n");
    serve_at(place, &format!("database = \"stock\", {keys}"), &database)
}

fn make(site: &Site, source: &Source) {
    let page = source.server.as_ref().map_or("make.page", |_| "pg.page");
    let made = site.get(&format!("/app/{page}/tables")).answer;
    assert_eq!((made.status, made.text().trim()), (200, "made"));
}

/// Does it once for each database that is there.
fn with_each(keys: &str, more: &str, test: impl Fn(&Site, &Source)) {
    for at in 0..2 {
        let place = place();
        let mut sources = sources(&place);
        if at < sources.len() {
            let source = sources.swap_remove(at);
            let site = serve(place, &source, keys, more);
            make(&site, &source);
            test(&site, &source);
            site.stop();
        }
    }
}

/// Processes that have a driver in them.
fn drivers(site: &Site) -> Vec<u32> {
    let named = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "hob-odbc")
    };
    let children = children_of(site.hob.server());
    children.into_iter().filter(named).collect()
}

/// Asks for a page that takes long, and waits until it runs.
fn begin(site: &Site, target: &str) -> Connection {
    let before = site.place.counter("page_waiting");
    let mut slow = Connection::open(site.port()).unwrap();
    slow.send_get(target).unwrap();
    site.place.wait_for_counter("page_waiting", before + 1);
    slow
}

fn text(site: &Site, target: &str) -> String {
    site.get(target).answer.text().trim().to_owned()
}

#[test]
fn pages_find_write_and_keep_their_data() {
    with_each("", "", |site, source| {
        let target = "/app/parts.d2w/list?kind=bolt&q=1&RPT_MAX_ROWS=2";
        assert_eq!(text(site, target).matches("<li>").count(), 2);
        let attack = "/app/parts.d2w/list?kind=x%27+OR+%271%27=%271";
        assert!(text(site, attack).contains("nothing matched"));
        // Umlauts, a sign beyond 16 bits, a number as text, NULL, and text that comes in pieces.
        let wide = format!("gr%C3%B6%C3%9Fe%F0%9F%98%80{}", "%C3%A4".repeat(9_000));
        for title in [&*wide, "42"] {
            post(site, "/app/more.page/add", &format!("title={title}"));
        }
        let found = post(site, "/app/more.page/one", &format!("title={wide}")).answer;
        let one = format!("[größe😀{}||1]", "ä".repeat(9_000));
        assert_eq!(found.text().trim(), one);
        assert_eq!(text(site, "/app/more.page/one?title=42"), "[42||1]");
        assert!(text(site, "/app/one.sql?title=42").contains("<td>42\n"));
        assert_eq!(text(site, "/app/more.page/one?title=x"), "nothing");
        let nested = text(site, "/app/more.page/nested");
        let nested: Vec<&str> = nested.split_whitespace().collect();
        assert_eq!(nested, ["700", "1400", "2100"]);
        assert_eq!(text(site, "/app/more.page/nothing"), source.missing);
        assert_eq!(text(site, "/app/ways.page/large"), "-302");
        let count = text(site, "/app/parts.d2w/count");
        // The second of two statements fails: the first one is undone.
        post(site, "/app/parts.d2w/twice", "title=a&kind=b&cents=5");
        assert_eq!(text(site, "/app/parts.d2w/count"), count);
        assert_unkept(site);
    });
}

#[test]
fn what_only_reads_cannot_write() {
    with_each("", "", |site, _| {
        assert_eq!(site.get("/app/delete.sql?id=7").answer.status, 405);
        assert_eq!(text(site, "/app/parts.d2w/count"), "30 parts");
        let deleted = post(site, "/app/delete.sql", "id=7").answer;
        assert!(deleted.text().contains("<p>1 rows changed.</p>"));
        assert_eq!(text(site, "/app/parts.d2w/count"), "29 parts");
    });
    let place = place();
    if let Some(source) = sources(&place).first() {
        let site = serve(place, source, "", "readonly = true");
        let refused = text(&site, "/app/more.page/add?title=a");
        assert!(refused.contains("(-817)"), "{refused}");
        site.stop();
    }
}

#[test]
fn many_rows_are_kept_by_nobody() {
    with_each("time = \"1h\"", "connections = 1", |site, source| {
        // The driver of SQLite keeps all of them: that is its business, and its process's.
        let keeps = source.server.is_none();
        let drivers = drivers(site).into_iter().filter(|_| !keeps);
        let all = drivers.chain([site.hob.server()]);
        let all: Vec<(u32, u64)> = all.map(|pid| (pid, peak_kib(pid))).collect();
        let rows = site.get("/app/ways.page/rows").answer;
        let rows = rows.text();
        let lines: Vec<&str> = rows.trim().lines().collect();
        assert_eq!(lines.len(), 100_000);
        for (at, line) in lines.iter().enumerate() {
            assert_eq!(*line, format!("{} {:0300}", at + 1, at + 1));
        }
        for (pid, before) in all {
            let grown = peak_kib(pid) - before;
            assert!(grown < 8 << 10, "{pid} has grown by {grown} KiB");
        }
    });
}

fn peak_kib(pid: u32) -> u64 {
    let line = status_line(pid, "VmHWM");
    line.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn client_that_leaves_ends_its_statement() {
    with_each("time = \"1h\"", "connections = 1", |site, _| {
        let before = drivers(site);
        begin(site, "/app/ways.page/nap").leave();
        assert_eq!(text(site, "/app/parts.d2w/count"), "30 parts");
        // The driver ended it: its process is the same.
        assert_eq!(drivers(site), before);
    });
}

#[test]
fn process_that_is_killed_is_a_502_and_the_next_run_has_another() {
    with_each("", "connections = 1", |site, _| {
        let [driver] = drivers(site)[..] else {
            panic!("{:?}", drivers(site));
        };
        let mut slow = begin(site, "/app/ways.page/nap");
        send_signal(driver, Signal::KILL);
        assert_eq!(slow.read().unwrap().status, 502);
        let record = site.record("/app/ways.page/nap");
        assert_eq!(record["fault"], "upstream");
        assert_eq!(record["reason"], "the driver of a database crashed");
        let detail = record["detail"].as_str().unwrap();
        assert!(detail.contains("signal 9"), "{detail}");
        assert_eq!(text(site, "/app/parts.d2w/count"), "30 parts");
        // One that is killed while nothing is asked is missed by nobody.
        let next = drivers(site)[0];
        send_signal(next, Signal::KILL);
        wait_for_end(next);
        assert_eq!(text(site, "/app/parts.d2w/count"), "30 parts");
    });
}

#[test]
fn connections_are_no_more_than_the_config_says_and_end_with_the_server() {
    with_each("time = \"1h\"", "connections = 2", |site, _| {
        let slow: Vec<_> = (0..2).map(|_| begin(site, "/app/ways.page/nap")).collect();
        let mut next = begin(site, "/app/parts.d2w/count");
        assert_eq!(drivers(site).len(), 2);
        slow.into_iter().for_each(Connection::leave);
        assert_eq!(next.read().unwrap().text().trim(), "30 parts");
        let all = drivers(site);
        assert_eq!(all.len(), 2);
        send_signal(site.hob.server(), Signal::KILL);
        all.into_iter().for_each(wait_for_end);
    });
}

#[test]
fn database_that_is_gone_when_a_run_ends_has_kept_nothing() {
    let place = place();
    let mut found = sources(&place).into_iter();
    let Some(mut source) = found.find(|one| one.server.is_some()) else {
        return;
    };
    let server = source.server.as_mut().unwrap();
    let end = "%FUNCTION(DTW_SQL) end() { SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE pid <> pg_backend_pid() %REPORT { %ROW { %} %} %}\n\
               %FUNCTION(DTW_SQL) add() { INSERT INTO part (title) VALUES ('lost') %}\n\
               %HTML(end) {@add()@DTW_ASSIGN(DATABASE, \"direct\")@end()\
               @DTW_ASSIGN(DATABASE, \"\")kept%}";
    place.write("macros/end.page", end);
    let direct = format!(
        "connections = 1\n[[database]]\nname = \"direct\"\nurl = \"{}\"",
        server.url("hob")
    );
    let site = serve(place, &source, "", &direct);
    make(&site, &source);
    let lost = site.get("/app/end.page/end").answer;
    assert_eq!(lost.status, 500, "{}", lost.text());
    assert_eq!(text(&site, "/app/parts.d2w/count"), "30 parts");
    // A server that comes back is found again.
    let server = source.server.as_mut().unwrap();
    server.kill();
    assert!(!text(&site, "/app/parts.d2w/count").contains("parts"));
    server.go_on();
    let until = Instant::now() + DEADLINE;
    while text(&site, "/app/parts.d2w/count") != "30 parts" {
        assert!(Instant::now() < until);
    }
    site.stop();
}

#[test]
fn procedure_gives_a_table_and_values_back() {
    let place = place();
    let mut found = sources(&place).into_iter();
    let Some(source) = found.find(|one| one.server.is_some()) else {
        return;
    };
    let make =
        |name: &str, what: &str| format!("%FUNCTION(DTW_SQL) {name}() {{ CREATE {what} %}}\n");
    let call = "%DEFINE t = %TABLE\n\
                %FUNCTION(DTW_SQL) two(IN INTEGER n, OUT t) { CALL two\n\
                %REPORT { %ROW {$(V_a)=$(V_b) %} %} %}\n\
                %FUNCTION(DTW_SQL) back(IN INTEGER n, OUT INTEGER m, OUT VARCHAR(9) s) {\n\
                CALL back %}\n\
                %FUNCTION(DTW_SQL) turn(INOUT VARCHAR(9) s) { CALL turn %}\n\
                %FUNCTION(DTW_SQL) long(OUT VARCHAR(99) s) { CALL long\n\
                %MESSAGE { -default : \"$(RETURN_CODE)\" : continue %} %}\n\
                %FUNCTION(DTW_SQL) more(INOUT INTEGER n) { CALL more\n\
                %MESSAGE { -default : \"$(RETURN_CODE) \" : continue %} %}\n\
                %HTML(more) {@more(n)$(n)%}\n\
                %HTML(call) {@two(\"2\", t)%}\n\
                %HTML(back) {@back(\"21\", m, s)[$(m)|$(s)]%}\n\
                %HTML(none) {@back(\"0\", m, s)[$(m)|$(s)]%}\n\
                %HTML(turn) {@turn(s)[$(s)]%}\n\
                %HTML(long) {@long(s)%}\n\
                %HTML(make) {@a()@b()@c()@d()@e()made%}";
    let text_of_page = make(
        "a",
        "FUNCTION two(n integer) RETURNS TABLE (a integer, b text) LANGUAGE sql \
         AS 'SELECT i, repeat(''x'', i) FROM generate_series(1, n) i'",
    ) + &make(
        "b",
        "FUNCTION back(n integer, OUT m integer, OUT s text) LANGUAGE sql \
         AS 'SELECT n * 2, CASE WHEN n > 0 THEN ''größe'' END'",
    ) + &make(
        "c",
        "FUNCTION turn(INOUT s text) LANGUAGE sql AS 'SELECT reverse(s)'",
    ) + &make(
        "d",
        "FUNCTION long(OUT s text) LANGUAGE sql AS 'SELECT repeat(''x'', 32001)'",
    ) + &make(
        "e",
        "PROCEDURE more(INOUT n integer) LANGUAGE plpgsql AS 'BEGIN n := n + 1; END'",
    ) + call;
    place.write("macros/call.page", &text_of_page);
    let site = serve(place, &source, "", "");
    let ask = |block: &str| text(&site, &format!("/app/call.page/{block}"));
    assert_eq!(ask("make"), "made");
    let said = ask("call");
    let said: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(said, ["1=x", "2=xx"]);
    assert_eq!(ask("back"), "[42|größe]");
    assert_eq!(ask("none"), "[0|]");
    assert_eq!(ask("turn?s=abc"), "[cba]");
    assert_eq!(ask("turn?s=abcd"), "[dcba]");
    assert_eq!(ask("long"), "-302");
    // This driver calls functions alone: it makes a SELECT of every call.
    assert_eq!(ask("more?n=7"), "-440 7");
    site.stop();
}

/// A driver of the worst kind.
const CRASHING: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char text[200];
short SQLAllocHandle(short kind, void *of, void **handle) { *handle = malloc(64); return 0; }
short SQLFreeHandle(short kind, void *handle) { free(handle); return 0; }
short SQLSetEnvAttr(void *h, int a, void *v, int n) { return 0; }
short SQLSetConnectAttr(void *h, int a, void *v, int n) { return 0; }
short SQLGetInfo(void *h, unsigned short what, void *v, short room, short *n) { return -1; }
short SQLDriverConnect(void *h, void *w, char *in, short n, char *out, short room, short *len,
                       unsigned short how) { return strstr(in, "Server=crash") ? abort(), -1 : 0; }
short SQLDisconnect(void *h) { return 0; }
short SQLEndTran(short kind, void *h, short how) { return 0; }
short SQLPrepare(void *h, char *in, int n) { strncpy(text, in, 199); return 0; }
short SQLNumResultCols(void *h, short *n) { *n = 0; return 0; }
short SQLRowCount(void *h, long *n) { *n = 7; return 0; }
short SQLFreeStmt(void *h, unsigned short what) { return 0; }
short SQLExecute(void *h) {
  if (strstr(text, "crash")) abort();
  while (strstr(text, "eat")) memset(malloc(1 << 20), 1, 1 << 20);
  while (strstr(text, "hang")) pause();
  return 0;
}
"#;
const CRASHES: &str = "%FUNCTION(DTW_SQL) crash() { UPDATE crash SET a = 1
  %MESSAGE { -default : \"went on\" : continue %} %}
%FUNCTION(DTW_SQL) eat() { UPDATE eat SET a = 1
  %MESSAGE { -default : \"went on\" : continue %} %}
%FUNCTION(DTW_SQL) hang() { UPDATE hang SET a = 1 %}
%FUNCTION(DTW_SQL) works() { UPDATE works SET a = 1 %}
%HTML(crash) {@crash()done%}
%HTML(eat) {@eat()done%}
%HTML(hang) {@hang()done%}
%HTML(works) {@works()done%}";

/// Pages over that driver; nothing where there is no driver manager.
fn serve_crashing(server: &str, keys: &str) -> Option<Site> {
    let place = place();
    if sources(&place).is_empty() {
        return None;
    }
    let driver = place.path("data/libcrash.so");
    place.write("crash.c", CRASHING);
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(&driver);
    assert!(
        compiler
            .arg(place.path("crash.c"))
            .status()
            .unwrap()
            .success()
    );
    place.write("macros/crashes.page", CRASHES);
    let database = format!(
        "[[database]]\nname = \"stock\"\nconnections = 1\nmemory = \"64MiB\"\n\
         url = \"odbc:Driver={};Server={server};PWD=sesame\"\n",
        driver.display()
    );
    Some(serve_at(
        place,
        &format!("database = \"stock\", {keys}"),
        &database,
    ))
}

#[test]
fn driver_that_crashes_or_hangs_takes_nothing_along() {
    let Some(site) = serve_crashing("here", "time = \"500ms\"") else {
        return;
    };
    let server = site.hob.server();
    for _ in 0..3 {
        assert_eq!(text(&site, "/app/crashes.page/works"), "done");
        // Whatever the page says about failures: this is none to go on after.
        assert_eq!(site.get("/app/crashes.page/crash").answer.status, 502);
    }
    let record = site.record("/app/crashes.page/crash");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("signal 6"), "{detail}");
    assert_eq!(text(&site, "/app/crashes.page/works"), "done");
    let [hangs] = drivers(&site)[..] else {
        panic!("{:?}", drivers(&site));
    };
    assert_eq!(site.get("/app/crashes.page/hang").answer.status, 504);
    wait_for_end(hangs);
    assert_eq!(text(&site, "/app/crashes.page/works"), "done");
    assert_eq!(site.hob.server(), server);
    let printed = site.stop_and_print();
    assert!(!printed.contains("sesame"), "{printed}");
}

#[test]
fn driver_that_eats_memory_gets_no_more_than_its_process_may_have() {
    let Some(site) = serve_crashing("here", "") else {
        return;
    };
    let server = site.hob.server();
    assert_eq!(text(&site, "/app/crashes.page/works"), "done");
    let [driver] = drivers(&site)[..] else {
        panic!("{:?}", drivers(&site));
    };
    let limits = std::fs::read_to_string(format!("/proc/{driver}/limits")).unwrap();
    let limit = limits
        .lines()
        .find(|line| line.starts_with("Max data size"));
    assert!(limit.unwrap().contains(&(64 << 20).to_string()), "{limits}");
    assert_eq!(site.get("/app/crashes.page/eat").answer.status, 502);
    wait_for_end(driver);
    let record = site.record("/app/crashes.page/eat");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("it may have 64 MiB of memory"), "{detail}");
    assert_eq!(site.place.counter("page_driver_deaths"), 1);
    assert_eq!(text(&site, "/app/crashes.page/works"), "done");
    assert_eq!(site.hob.server(), server);
    site.stop();
}

#[test]
fn driver_that_crashes_while_it_connects_is_a_502() {
    let Some(site) = serve_crashing("crash", "") else {
        return;
    };
    for _ in 0..2 {
        assert_eq!(site.get("/app/crashes.page/works").answer.status, 502);
    }
    let status = site.place.status().to_string();
    assert!(!status.contains("sesame"), "{status}");
    let printed = site.stop_and_print();
    assert!(!printed.contains("sesame"), "{printed}");
}

#[test]
fn what_is_missing_is_told_with_what_to_do() {
    let place = place();
    place.write("macros/crashes.page", CRASHES);
    place.folder("broken");
    place.write("broken/libodbc.so.2", "no library");
    let run = |url: &str, name: &str, value: &str| {
        let mut command = place.command();
        command.args([
            "page",
            "run",
            "macros/crashes.page",
            "works",
            "--database",
            url,
        ]);
        let output = command.env(name, value).output().unwrap();
        (output.status.code(), text_of(&output))
    };
    let folder = place.path("broken").display().to_string();
    let (code, said) = run("odbc:DSN=stock", "LD_LIBRARY_PATH", &folder);
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with("hob: odbc:DSN=stock: there is no ODBC here ("),
        "{said}"
    );
    assert!(said.contains("install unixODBC and a driver"), "{said}");
    let (code, said) = run("odbc:UID=ann;PWD=sesame", "A", "b");
    assert_eq!(code, Some(2));
    assert_eq!(
        said,
        "hob: --database: it names neither a data source (DSN=) nor a driver (Driver=)\n"
    );
    if sources(&place).is_empty() {
        return;
    }
    let url = "odbc:DSN=hob-has-none;UID=ann;PWD=sesame";
    let (code, said) = run(url, "HOB_ODBC_PASSWORD", "other");
    assert_eq!(code, Some(1));
    let start = "hob: odbc:DSN=hob-has-none: [unixODBC][Driver Manager]Data source name not found";
    assert!(said.starts_with(start), "{said}");
    assert!(!said.contains("sesame"), "{said}");
    let by_hand = place.run(&["odbc"]);
    assert_eq!(by_hand.status.code(), Some(1));
    assert!(
        text_of(&by_hand).contains("not by hand"),
        "{}",
        text_of(&by_hand)
    );
}

#[test]
fn visits_keep_what_they_wrote_and_hold_no_process_to_read() {
    /// More than the connections that a database has besides.
    const COUNT: usize = 12;
    let found = sources(&place());
    let Some(source) = found.iter().find(|source| source.server.is_some()) else {
        return;
    };
    let url = &source.url;
    let database = format!("[[database]]\nname = \"stock\"\nurl = \"{url}\"\nconnections = 2\n");
    let site = serve_over("{ visits = { per_client = 0, rate = 0 } }", &database);
    assert_order_is_one_transaction(&site);
    for _ in 0..COUNT {
        assert_eq!(site.said(&site.begin(), "cart"), "0 lines: bolt;nut;");
    }
    let reading = drivers(&site).len();
    assert!(reading <= 2, "{reading}");
    for _ in 0..COUNT {
        let handle = site.begin();
        assert_eq!(site.add(&handle, "cup").answer.status, 200);
    }
    assert!(drivers(&site).len() >= COUNT);
    assert_eq!(site.line_count(), "2");
    site.stop();
}
