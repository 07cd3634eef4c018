//! What pages answer.

use crate::harness::client::call;
use crate::place::{post, serve, serve_at, serve_stock};

#[test]
fn rows_are_found_by_fields_and_what_they_hold_is_text() {
    let site = serve_stock("", "");
    let get = |query: &str| {
        let answer = site.get(&format!("/app/parts.d2w/list{query}")).answer;
        assert_eq!(answer.status, 200, "{query}");
        answer.text()
    };
    assert_eq!(get("").matches("<li>").count(), 20);
    let some = get("?kind=bolt&q=1&RPT_MAX_ROWS=2&START_ROW_NUM=2");
    let wanted = "<li>2. <a href=\"show?id=11\">part &lt;i&gt;11&lt;/i&gt;</a></li>";
    assert!(some.contains(wanted), "{some}");
    assert_eq!(some.matches("<li>").count(), 2);
    for attack in ["?kind=x%27+OR+%271%27=%271", "?q=%27%3B+DROP+TABLE+part--"] {
        assert!(get(attack).contains("nothing matched"), "{attack}");
    }
    assert_eq!(get("?DATABASE=other&SHOWSQL=YES"), get(""));
    assert_eq!(site.place.counter("page_statements"), 9);
    site.stop();
}

#[test]
fn form_is_written_and_read_again() {
    let site = serve_stock("", "");
    let form = "title=a%3Cb%3E+c&kind=gear&cents=5";
    let added = post(&site, "/app/parts.d2w/insert", form).answer;
    assert_eq!((added.status, added.text().trim()), (200, "31 parts"));
    let found = site.get("/app/parts.d2w/list?kind=gear").answer.text();
    assert!(found.contains(">a&lt;b&gt; c</a>"), "{found}");
    site.stop();
}

#[test]
fn block_is_found_whatever_its_case_and_a_page_alone_leads_to_its_first() {
    let site = serve("", "");
    let get = |target: &str| site.get(target).answer;
    assert!(get("/app/parts.d2w/INPUT").text().contains("<form"));
    let led = get("/app/parts.d2w?kind=bolt");
    let location = led.header("location").unwrap().to_owned();
    assert_eq!(
        (led.status, &*location),
        (302, "/app/parts.d2w/list?kind=bolt")
    );
    for missing in [
        "/app/parts.d2w/none",
        "/app/none.d2w/list",
        "/app/none.d2w",
        "/app/",
        "/app/parts.d2w%2Flist",
        "/app/parts/list",
    ] {
        let answer = get(missing);
        assert_eq!(answer.status, 404, "{missing}");
        assert!(!answer.text().contains("parts"), "{missing}");
    }
    assert_eq!(site.record("/app/parts.d2w/none")["handler"], "page");
    site.stop();
}

#[test]
fn methods_are_those_of_forms() {
    let site = serve("", "");
    let ask = |method: &str| call(site.port(), method, "/app/parts.d2w/input", "", b"").answer;
    assert_eq!((ask("HEAD").status, ask("HEAD").body.len()), (200, 0));
    for method in ["PUT", "DELETE", "PATCH"] {
        let refused = ask(method);
        assert_eq!(refused.status, 405, "{method}");
        assert_eq!(refused.header("allow"), Some("GET, HEAD, POST, OPTIONS"));
    }
    assert_eq!(ask("OPTIONS").status, 204);
    site.stop();
}

#[test]
fn page_that_waits_for_nothing_runs_at_once() {
    let site = serve_stock("", "");
    for _ in 0..3 {
        site.get("/app/parts.d2w/input");
    }
    // The first has the file read.
    assert_eq!(site.place.counter("page_inline"), 2);
    assert_eq!(site.get("/app/parts.d2w/list").answer.status, 200);
    // One that asked a database once is expected to do so again.
    assert_eq!(site.get("/app/parts.d2w/input").answer.status, 200);
    assert_eq!(site.place.counter("page_inline"), 2);
    site.stop();
}

#[test]
fn long_computation_goes_on_where_it_may_wait() {
    let place = crate::place::place();
    let page = "%HTML(count) { @DTW_ASSIGN(i, \"0\") %WHILE (i < \"20000\") { @DTW_ADD(i, \"1\", i) %}\n$(i) %}";
    place.write("macros/long.page", page);
    let site = serve_at(place, "", "");
    for _ in 0..2 {
        let answer = site.get("/app/long.page/count").answer;
        assert_eq!((answer.status, answer.text().trim()), (200, "20000"));
    }
    assert_eq!(site.place.counter("page_waiting"), 2);
    site.stop();
}

#[test]
fn page_says_its_own_head() {
    let place = crate::place::place();
    let page = "%DEFINE DTW_PRINT_HEADER = \"NO\"\n%HTML(moved) {Location: /elsewhere\nStatus: 303 See Other\n\nSee there.%}\n\
                %HTML(csv) {\nContent-Type: text/csv\n\na,b\n%}\n";
    place.write("macros/head.page", page);
    place.write(
        "macros/feed.page",
        "%XML(feed) {<?xml version=\"1.0\"?><a>$(q)</a>%}",
    );
    let cookie = "%HTML(set) {@DTW_SETCOOKIE(\"seen\", \"1\")<p>set%}";
    place.write("macros/cookie.page", cookie);
    let site = serve_at(place, "", "");
    let get = |target: &str| site.get(target).answer;
    let moved = get("/app/head.page/moved");
    assert_eq!(
        (moved.status, moved.header("location")),
        (303, Some("/elsewhere"))
    );
    assert_eq!(moved.text(), "See there.");
    let csv = get("/app/head.page/csv");
    assert_eq!(
        (csv.header("content-type"), &*csv.text()),
        (Some("text/csv"), "a,b\n")
    );
    let feed = get("/app/feed.page/feed?q=%3Cb%3E");
    assert_eq!(feed.header("content-type"), Some("text/xml; charset=utf-8"));
    assert!(feed.text().ends_with("<a>&lt;b&gt;</a>"), "{}", feed.text());
    let set = get("/app/cookie.page/set");
    assert!(set.header("set-cookie").unwrap().starts_with("seen=1"));
    site.stop();
}

#[test]
fn page_that_announces_a_head_and_prints_none_gets_the_usual_one() {
    let place = crate::place::place();
    let page = "%DEFINE DTW_PRINT_HEADER = \"NO\"
        %HTML(none) {\n<!DOCTYPE html>\n<p>$(q)%}
        %HTML(sent) {$(q)\n\n<p>none%}
        %HTML(long) {$(q)<p>@DTW_rPAD(\"\", \"200000\", \".\")%}
        %HTML(wrong) {Content-Type text: a\n\n%}
        %HTML(bad) {Content-Type: text/csv\nand more\n\n%}
        %HTML(endless) {Content-Type: text/csv\n%}
        %HTML(csv) {$(q)Content-Type: text/csv\n\na%}\n";
    place.write("macros/head.page", page);
    let site = serve_at(place, "", "");
    let get = |block: &str| site.get(&format!("/app/head.page/{block}")).answer;
    let sent = "q=Set-Cookie:+a%3Db%0D%0AContent-Type:+text/plain%0D%0A%0D%0A%3Cb%3E";
    let shown = "Set-Cookie: a=b\r\nContent-Type: text/plain\r\n\r\n&lt;b&gt;";
    let missing = "the page says that it prints its own header (DTW_PRINT_HEADER is \"NO\") and \
                   prints none: it got the usual one";
    for (block, wanted) in [
        (
            "none?q=%3Cb%3E",
            "\n<!DOCTYPE html>\n<p>&lt;b&gt;".to_owned(),
        ),
        (&format!("sent?{sent}"), format!("{shown}\n\n<p>none")),
        (
            &format!("long?{sent}"),
            format!("{shown}<p>{}", ".".repeat(200_000)),
        ),
    ] {
        let answer = get(block);
        assert_eq!((answer.status, answer.text()), (200, wanted));
        let content_type = answer.header("content-type");
        assert_eq!(content_type, Some("text/html; charset=utf-8"));
        assert_eq!(answer.header("set-cookie"), None);
        let record = site.record(&format!("/app/head.page/{block}"));
        assert_eq!(record["detail"], missing, "{block}");
    }
    let csv = get(&format!("csv?{sent}"));
    assert_eq!(csv.header("content-type"), Some("text/csv"));
    assert_eq!((&*csv.text(), csv.header("set-cookie")), ("a", None));
    assert_eq!(get("wrong").status, 200, "a blank is in no name");
    for (block, line) in [("bad", "and more"), ("endless", "Content-Type: text/csv")] {
        assert_eq!(get(block).status, 500);
        let record = site.record(&format!("/app/head.page/{block}"));
        let detail = record["detail"].as_str().unwrap();
        assert!(detail.contains(line), "{detail}");
        assert_eq!(record["fault"], "script");
    }
    site.stop();
}

#[test]
fn what_is_wrong_is_told_to_whom_it_concerns() {
    let place = crate::place::place();
    place.write("macros/wrong.page", "%HTML(a) {\n  %IF (x == \"1\" %}\n");
    let site = serve_at(place, "", "");
    let answer = site.get("/app/wrong.page/a").answer;
    assert_eq!(answer.status, 500);
    assert!(!answer.text().contains("wrong.page"));
    let record = site.record("/app/wrong.page/a");
    assert_eq!(record["reason"], "the page is not of the language");
    assert!(
        record["detail"]
            .as_str()
            .unwrap()
            .starts_with("wrong.page:2:")
    );
    let printed = site.hob.wait_for("wrong.page:2:");
    assert!(printed.contains("the page is not of the language"));
    site.stop();

    let place = crate::place::place();
    place.write("macros/wrong.page", "%HTML(a) {\n  %IF (x == \"1\" %}\n");
    let site = serve_at(place, "dev = true", "");
    let answer = site.get("/app/wrong.page/a").answer;
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("wrong.page:2:"), "{}", answer.text());
    site.stop();
}

#[test]
fn environment_is_that_of_a_program() {
    let place = crate::place::place();
    let page = "%DEFINE { REQUEST_METHOD = %ENVVAR\nSCRIPT_NAME = %ENVVAR\nPATH_INFO = %ENVVAR %}\n\
                %HTML(env) {$(REQUEST_METHOD) $(SCRIPT_NAME) $(PATH_INFO) @DTW_rGETCOOKIE(\"who\")%}";
    place.write("macros/env.page", page);
    let site = serve_at(place, "", "");
    let target = "/app/env.page/env?REQUEST_METHOD=x";
    let answer = call(site.port(), "GET", target, "Cookie: a=b; who=ben\r\n", b"").answer;
    assert_eq!(answer.text(), "GET /app /env.page/env ben");
    site.stop();
}
