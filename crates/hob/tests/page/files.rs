//! The files of pages.

use std::os::unix::fs::symlink;
use std::time::Instant;

use crate::harness::DEADLINE;
use crate::harness::site::Site;
use crate::place::{place, serve_at};

fn wait_for(site: &Site, target: &str, wanted: &str) {
    let until = Instant::now() + DEADLINE;
    loop {
        let text = site.get(target).answer.text();
        if text.contains(wanted) {
            return;
        }
        assert!(Instant::now() < until, "{text}");
    }
}

#[test]
fn change_of_a_page_or_of_what_it_includes_is_seen() {
    let place = place();
    place.write("macros/a.page", "%HTML(a) { one %INCLUDE \"part.inc\" %}");
    place.write("macros/part.inc", "<b>first</b>");
    let site = serve_at(place, "", "");
    wait_for(&site, "/app/a.page/a", "<b>first</b>");
    site.place.write("macros/part.inc", "<b>second</b>");
    wait_for(&site, "/app/a.page/a", "<b>second</b>");
    let page = "%HTML(a) { two %INCLUDE \"part.inc\" %}";
    site.place.write("macros/a.page", page);
    wait_for(&site, "/app/a.page/a", "two");
    site.stop();
}

/// Pages whose names, and those of what they include, are written in several ways.
fn serve_any_case(keys: &str) -> Site {
    let place = place();
    place.folder("macros/Sub");
    let page = "%INCLUDE \"DEFINE.INC\"\n%HTML(a) { $(x) %INCLUDE \"sub/PART.inc\" %}";
    place.write("macros/a.page", page);
    place.write("macros/define.inc", "%DEFINE x = \"defined\"");
    place.write("macros/Sub/part.inc", "part");
    place.write("macros/Exact.inc", "another");
    place.write("macros/exact.inc", "this");
    let page = "%HTML(a) { %INCLUDE \"exact.inc\" %INCLUDE \"EXACT.inc\" %}";
    place.write("macros/b.page", page);
    place.write("db2www.ini", "DTW_REMOVE_WS = NO\n");
    serve_at(place, keys, "")
}

fn printed(site: &Site, target: &str) -> (u16, String) {
    let answer = site.get(target).answer;
    let text = answer.text();
    let words: Vec<_> = text.split_whitespace().collect();
    (answer.status, words.join(" "))
}

#[test]
fn what_a_page_includes_is_found_in_any_case() {
    let site = serve_any_case("");
    for _ in 0..3 {
        let wanted = (200, "defined part".to_owned());
        assert_eq!(printed(&site, "/app/a.page/a"), wanted);
    }
    // A file of that very name comes first, else the first of the others by its name.
    assert_eq!(
        printed(&site, "/app/b.page/a"),
        (200, "this another".to_owned())
    );
    assert_eq!(site.get("/app/A.page/a").answer.status, 404);
    site.stop();
}

#[test]
fn pages_beside_old_settings_are_found_in_any_case() {
    let site = serve_any_case("ini = \"db2www.ini\"");
    for name in ["A.page", "a.Page", "a.page"] {
        let wanted = (200, "defined part".to_owned());
        assert_eq!(printed(&site, &format!("/app/{name}/a")), wanted, "{name}");
    }
    assert_eq!(site.get("/app/aa.page/a").answer.status, 404);
    assert_eq!(site.get("/app/../A.page/a").answer.status, 404);
    site.stop();
}

#[test]
fn nothing_outside_of_the_folder_is_read() {
    let place = place();
    place.write("secret.inc", "HIDDEN WORDS");
    place.write("secret.page", "%HTML(a) { HIDDEN WORDS %}");
    place.write(
        "macros/up.page",
        "%HTML(a) { a %INCLUDE \"../secret.inc\" b %}",
    );
    let absolute = format!(
        "%HTML(a) {{ a %INCLUDE \"{}\" b %}}",
        place.path("secret.inc").display()
    );
    place.write("macros/absolute.page", &absolute);
    place.write(
        "macros/case.page",
        "%HTML(a) { a %INCLUDE \"../SECRET.inc\" b %INCLUDE \"LINK.inc\" %}",
    );
    place.write(
        "macros/linked.page",
        "%HTML(a) { a %INCLUDE \"link.inc\" b %}",
    );
    place.write("macros/asked.page", "%HTML(a) { a %INCLUDE \"$(f)\" b %}");
    place.write("macros/db2www.ini", "SECRET HIDDEN WORDS");
    symlink(place.path("secret.inc"), place.path("macros/link.inc")).unwrap();
    symlink(place.path("secret.page"), place.path("macros/link.page")).unwrap();
    let site = serve_at(place, "dev = true", "");
    for target in [
        "/app/up.page/a",
        "/app/absolute.page/a",
        "/app/case.page/a",
        "/app/linked.page/a",
        "/app/asked.page/a?f=../secret.inc",
        "/app/asked.page/a?f=%2Fetc%2Fpasswd",
        "/app/link.page/a",
        "/app/..%2fsecret.page/a",
        "/app/db2www.ini",
        "/app/db2www.ini/a",
    ] {
        let answer = site.get(target).answer;
        assert!(answer.status >= 400, "{target}: {}", answer.status);
        assert!(!answer.text().contains("HIDDEN WORDS"), "{target}");
        assert!(!answer.text().contains("root:"), "{target}");
    }
    site.stop();
}

#[test]
fn old_settings_say_where_files_are_and_what_errors_say() {
    let place = place();
    place.folder("more");
    place.folder("shared");
    place.write(
        "more/old.mac",
        "%HTML(input) { %INCLUDE \"head.hti\" old %}",
    );
    place.write("shared/head.hti", "<h1>head</h1>");
    place.write("more/wrong.mac", "%HTML(input) { %IF %}");
    let ini = "MACRO_PATH more;/QSYS.LIB/none.lib\nINCLUDE_PATH = shared\n\
               DTW_DEFAULT_ERROR_MESSAGE Call the office.\n";
    place.write("db2www.ini", ini);
    let site = serve_at(place, "ini = \"db2www.ini\"", "");
    let old = site.get("/app/old.mac/INPUT").answer;
    assert!(old.text().contains("<h1>head</h1> old"), "{}", old.text());
    let wrong = site.get("/app/wrong.mac/input").answer;
    assert_eq!((wrong.status, &*wrong.text()), (500, "Call the office."));
    assert_eq!(site.get("/app/parts.d2w/input").answer.status, 200);
    let printed = site.stop_and_print();
    assert!(printed.contains("MACRO_PATH of the ini file"), "{printed}");
}
