//! How calls of programs end: by themselves, by a limit, by a signal, or because nobody waits.

use rustix::process::Signal;

use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::harness::{send_signal, wait_for_end};
use crate::program_place::{Routes, number, serve};

/// Calls `f`, and says what came of it.
const PAGE: &str = "%FUNCTION(DTW_SYSTEM) f(OUT v) { %EXEC { f %}\n\
                    %MESSAGE { default : \"code $(RETURN_CODE)\" : continue %} %}\n\
                    %HTML(out) {@f(v)[$(v)]%}";
/// Tells who it is, and does not end by itself.
const WAITS: &str = "#!/bin/sh\necho $$ > ../data/waits\nexec sleep 1000\n";

fn ask(site: &Site) -> (u16, String) {
    let answer = site.get("/app/p.page/out").answer;
    (answer.status, answer.text().trim().to_owned())
}

#[test]
fn program_that_is_killed_is_a_failure() {
    let site = serve(PAGE, &Routes::default().cgi("f", WAITS));
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get("/app/p.page/out").unwrap();
    send_signal(number(&site, "waits"), Signal::KILL);
    assert_eq!(client.read().unwrap().text().trim(), "code -1[]");
    let record = site.record("/app/p.page/out");
    assert_eq!(record["fault"], "script");
    assert_eq!(record["reason"], "a signal ended the program");
    site.stop();
}

#[test]
fn client_that_leaves_ends_its_program() {
    let site = serve(PAGE, &Routes::default().cgi("f", WAITS));
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get("/app/p.page/out").unwrap();
    let program = number(&site, "waits");
    client.leave();
    wait_for_end(program);
    site.stop();
}

#[test]
fn page_whose_time_is_up_ends_its_program() {
    // Its run has to begin in that time, on a busy machine too.
    let routes = Routes::default().keys("time = \"2s\"").cgi("f", WAITS);
    let site = serve(PAGE, &routes);
    assert_eq!(ask(&site).0, 504);
    wait_for_end(number(&site, "waits"));
    assert_eq!(site.place.counter("limit_page_time"), 1);
    site.stop();
}

#[test]
fn time_of_the_program_holds_too() {
    let routes = Routes::default()
        .limits("total = \"300ms\"")
        .cgi("f", WAITS);
    let site = serve(PAGE, &routes);
    assert_eq!(ask(&site), (200, "code -1[]".to_owned()));
    let record = site.record("/app/p.page/out");
    assert_eq!(
        record["reason"],
        "limits: total: the program ran for too long"
    );
    assert_eq!(site.place.counter("limit_program_total"), 1);
    site.stop();
}

#[test]
fn program_that_prints_without_end_is_ended() {
    let prints = "#!/bin/sh\necho $$ > ../data/prints\nexec yes\n";
    let sets = "#!/bin/sh\necho $$ > ../data/sets\nexec yes 'v=1' > $DTWPIPE\n";
    for (program, name) in [(prints, "prints"), (sets, "sets")] {
        let routes = Routes::default().keys("program_output = \"64KiB\"");
        let site = serve(PAGE, &routes.cgi("f", program));
        assert_eq!(ask(&site), (200, "code -1[]".to_owned()));
        wait_for_end(number(&site, name));
        let record = site.record("/app/p.page/out");
        let reason = record["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("limits: page.program_output"),
            "{reason}"
        );
        assert_eq!(site.place.counter("limit_page_program_output"), 1);
        site.stop();
    }
}

#[test]
fn output_and_values_up_to_the_limit_come_whole() {
    let program = "#!/bin/sh\nhead -c 65536 /dev/zero | tr '\\0' x\n\
                   { printf 'v=\"'; head -c 65000 /dev/zero | tr '\\0' y; printf '\"'; } \
                   > $DTWPIPE\n";
    let routes = Routes::default().keys("program_output = \"64KiB\"");
    let site = serve(PAGE, &routes.cgi("f", program));
    let (status, text) = ask(&site);
    let wanted = format!("{}[{}]", "x".repeat(65_536), "y".repeat(65_000));
    assert!(
        status == 200 && text == wanted,
        "{status}: {} bytes",
        text.len()
    );
    site.stop();
}

#[test]
fn program_that_cannot_be_started_is_a_failure() {
    let site = serve(PAGE, &Routes::default().cgi("f", WAITS));
    site.place.script("programs/f", "#!/no/such/interpreter\n");
    assert_eq!(ask(&site), (200, "code -1[]".to_owned()));
    let record = site.record("/app/p.page/out");
    assert_eq!(record["reason"], "the program could not be started");
    site.stop();
}

#[test]
fn warm_program_is_a_fork_of_one_interpreter() {
    let program = "import os\nprint(os.getppid(), os.environ['DTW_q'], end=' ')\n\
                   open(os.environ['DTWPIPE'], 'w').write('v=\"of a fork\"')\n";
    let page = "%FUNCTION(DTW_SYSTEM) f(IN q, OUT v) { %EXEC { f.py %} %}\n\
                %HTML(out) {@f(\"one\", v)@f(\"two\", v)$(v)%}";
    let handler = "warm = { script = \"programs/f.py\", interpreter = \"python3\" }";
    let site = serve(
        page,
        &Routes::default().other("f.py", handler, "f.py", program),
    );
    let (status, text) = ask(&site);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(status, 200);
    assert_eq!((words[0], words[1], words[3]), (words[2], "one", "two"));
    assert!(text.ends_with("of a fork"), "{text}");
    site.stop();
}

#[test]
fn resident_program_keeps_its_process() {
    let program = "import json, os, urllib.parse\n\
        def application(environ, start):\n\
        \x20   query = dict(urllib.parse.parse_qsl(environ['QUERY_STRING']))\n\
        \x20   start('200 OK', [('Content-Type', 'application/json')])\n\
        \x20   rows = [['id', 'name'], [1, query['q']], [2, query['argument']]]\n\
        \x20   told = {'v': os.getpid(), 't': rows, 'output': environ['REQUEST_METHOD']}\n\
        \x20   return [json.dumps(told).encode()]\n";
    let page = "%DEFINE { t = %TABLE(ALL) %}\n\
                %FUNCTION(DTW_SYSTEM) f(IN q, OUT v, INOUT t) { %EXEC { app $(q)! %} %}\n\
                %HTML(out) {@f(q, v, t)$(v) @f(q, w, t)$(w) @DTW_TB_rROWS(t)\
                 @DTW_TB_rGETV(t, \"1\", \"2\") @DTW_TB_rGETV(t, \"2\", \"2\")%}";
    let handler = "resident = { wsgi = \"app:application\", dir = \"programs\", \
                   workers = { max = 1 } }";
    let site = serve(
        page,
        &Routes::default().other("app", handler, "app.py", program),
    );
    let answer = site.get("/app/p.page/out?q=%26%3B%22%0A").answer;
    let text = answer.text();
    let words: Vec<&str> = text.trim().splitn(3, ' ').collect();
    assert_eq!(words[0], words[1]);
    assert!(words[0].starts_with("GET"), "{text}");
    assert_eq!(words[2], "2&amp;;&quot;\n &amp;;&quot;\n!");
    site.stop();
}

#[test]
fn program_of_a_long_answer_is_called_when_that_has_begun() {
    let program = "#!/bin/sh\necho late\n";
    let page = "%FUNCTION(DTW_SYSTEM) f() { %EXEC { f %} %}\n\
                %HTML(out) {@DTW_rPAD(\"x\", \"200000\", \"x\")@f()%}";
    let site = serve(page, &Routes::default().cgi("f", program));
    let (status, text) = ask(&site);
    assert_eq!(status, 200);
    assert!(
        text.len() == 200_004 && text.ends_with("late"),
        "{}",
        text.len()
    );
    site.stop();
}
