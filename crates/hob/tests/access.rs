//! `access`: who may ask for what a route answers, by address and method, whichever way leads to
//! it. Certificates of clients are in `tls/rules.rs`.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::ask;
use harness::site::{SPELLINGS, TOP, ask_from, record};
use harness::{Hob, Place, text_of};

/// Text of files that not everybody may have.
const INNER: &str = "for us alone\n";

fn serve(place: &Place, site: &str) -> Hob {
    std::fs::create_dir_all(place.path("site/inner")).unwrap();
    place.write("site/inner/a.txt", INNER);
    place.write("site/inner/index.html", INNER);
    place.serve_text(&format!("{TOP}{site}"))
}

fn inner(access: &str) -> String {
    format!("[[site.route]]\npath = \"/inner/*\"\nfiles = {{}}\naccess = {{ {access} }}\n")
}

#[test]
fn address_decides_who_may() {
    let place = Place::new();
    let site = "allow = [\"10.0.0.0/8\", \"2001:db8::/32\"], deny = [\"10.0.0.13\"]";
    let hob = serve(&place, &inner(site));
    for (client, status, reason) in [
        ("10.1.2.3", 200, ""),
        ("::ffff:10.1.2.3", 200, ""),
        ("2001:db8::7", 200, ""),
        ("10.0.0.13", 403, "access: `deny` has the client's address"),
        (
            "192.0.2.1",
            403,
            "access: `allow` does not have the client's address",
        ),
        (
            "2001:db9::",
            403,
            "access: `allow` does not have the client's address",
        ),
    ] {
        let path = format!("/inner/a.txt?{client}");
        let answer = ask_from(&hob, client, &path);
        assert_eq!(answer.status, status, "{client}");
        assert_eq!(answer.text() == INNER, status == 200, "{client}");
        let record = record(&place, &path);
        assert_eq!(record["reason"], reason, "{client}");
        assert_eq!(ask_from(&hob, client, "/hello.txt").status, 200);
    }
    assert_eq!(place.counter("access_refused"), 3);
    hob.stop();
}

#[test]
fn field_of_who_is_not_trusted_changes_nothing() {
    let place = Place::new();
    let top = TOP.replace("trusted = [\"127.0.0.1\"]\n", "");
    let own = "[[site.route]]\npath = \"/own\"\nrewrite = \"/hello.txt\"\nfiles = {}\n\
               access = { allow = [\"127.0.0.1\"] }\n";
    let hob = place.serve_text(&format!("{top}{own}{}", inner("allow = [\"10.0.0.0/8\"]")));
    assert_eq!(ask_from(&hob, "10.1.2.3", "/inner/a.txt").status, 403);
    assert_eq!(ask_from(&hob, "10.1.2.3", "/own").status, 200);
    hob.stop();
}

#[test]
fn route_has_its_own_rules_in_the_place_of_its_sites() {
    let place = Place::new();
    let open = inner("methods = [\"GET\"]");
    let hob = serve(&place, &format!("access = {{ deny = [\"all\"] }}\n{open}"));
    assert_eq!(ask_from(&hob, "192.0.2.1", "/inner/a.txt").status, 200);
    assert_eq!(ask_from(&hob, "192.0.2.1", "/hello.txt").status, 403);
    hob.stop();
}

#[test]
fn rules_of_a_site_alone_change_nothing_about_who_answers() {
    let place = Place::new();
    let hob = serve(
        &place,
        "access = { allow = [\"10.0.0.0/8\"] }\n\
         [[site.route]]\npath = \"/renamed\"\nrewrite = \"/hello.txt\"\nfiles = {}\n\
         headers = { X-Route = \"renamed\" }\n",
    );
    let answer = ask_from(&hob, "10.1.2.3", "/renamed");
    assert_eq!(answer.header("x-route"), Some("renamed"));
    assert_eq!(ask_from(&hob, "192.0.2.1", "/renamed").status, 403);
    hob.stop();
}

#[test]
fn route_with_rules_answers_from_its_own_folder_whatever_its_path_becomes() {
    let place = Place::new();
    place.folder("apart");
    place.write("apart/a.txt", "apart");
    let hob = serve(
        &place,
        "[[site.route]]\npath = \"/apart/{rest*}\"\nrewrite = \"/{rest}\"\n\
         files = \"apart\"\naccess = { allow = [\"10.0.0.0/8\"] }\n",
    );
    let answer = ask_from(&hob, "10.1.2.3", "/apart/a.txt");
    assert_eq!((answer.status, answer.text()), (200, "apart".to_owned()));
    assert_eq!(ask_from(&hob, "192.0.2.1", "/apart/a.txt").status, 403);
    hob.stop();
}

#[test]
fn route_that_answers_in_the_end_has_its_say() {
    let place = Place::new();
    place.folder("cgi");
    let go = "#!/bin/sh\nprintf 'Location: %s\\n\\n' \"$QUERY_STRING\"\n";
    place.script("cgi/go", go);
    let routes = "files = { fallback = \"inner/a.txt\" }\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
         [[site.route]]\npath = \"/renamed\"\nrewrite = \"/inner/a.txt\"\nfiles = {}\n\
         [[site.route]]\npath = \"/inner/index.html\"\nfiles = {}\n\
         access = { allow = [\"10.0.0.0/8\"] }\n\
         [[site.route]]\npath = \"/inner/a.txt\"\nfiles = {}\n\
         access = { allow = [\"10.0.0.0/8\"] }\n";
    let hob = serve(&place, routes);
    for path in [
        "/inner/a.txt",
        // The index of a folder, whose route has no rules.
        "/inner/",
        // The path that a route makes of it.
        "/renamed",
        // A program that sends the request there.
        "/cgi/go?/inner/a.txt",
        "/cgi/go?/inner/",
        "/cgi/go?/renamed",
        // What is sent in the place of what is not there.
        "/nothing",
    ] {
        assert_eq!(ask_from(&hob, "192.0.2.1", path).status, 403, "{path}");
        let answer = ask_from(&hob, "10.1.2.3", path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.text(), INNER, "{path}");
    }
    hob.stop();
}

#[test]
fn internal_route_asks_nobody_whom_a_program_sends_there() {
    let place = Place::new();
    place.folder("cgi");
    let accel =
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\nX-Accel-Redirect: /kept/a.txt\\n\\n'\n";
    place.script("cgi/accel", accel);
    let hob = serve(
        &place,
        "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
         [[site.route]]\npath = \"/kept/{name}\"\nfiles = \"site/inner\"\ninternal = true\n\
         access = { deny = [\"all\"] }\n",
    );
    // From outside it is not there; programs decide themselves for whom it is.
    assert_eq!(ask_from(&hob, "192.0.2.1", "/kept/a.txt").status, 404);
    let answer = ask_from(&hob, "192.0.2.1", "/cgi/accel");
    assert_eq!((answer.status, answer.text()), (200, INNER.to_owned()));
    hob.stop();
}

#[test]
fn no_spelling_of_a_path_leads_around_a_rule() {
    let place = Place::new();
    let hob = serve(&place, &inner("deny = [\"all\"]"));
    for path in SPELLINGS {
        let answer = ask(hob.port(), "GET", path, "");
        assert!(answer.status >= 400, "{path}: {}", answer.status);
        assert!(!answer.text().contains(INNER), "{path}");
    }
    // Nor do methods and ranges.
    for (method, field) in [
        ("HEAD", ""),
        ("GET", "Range: bytes=0-3\r\n"),
        ("OPTIONS", ""),
    ] {
        let answer = ask(hob.port(), method, "/inner/a.txt", field);
        assert_eq!(answer.status, 403, "{method}");
    }
    hob.stop();
}

#[test]
fn methods_that_a_route_does_not_take_are_named() {
    let place = Place::new();
    place.folder("cgi");
    let echo =
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nprintf %s \"$REQUEST_METHOD\"\n";
    place.script("cgi/echo", echo);
    let hob = serve(
        &place,
        "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
         access = { methods = [\"GET\", \"DELETE\"] }\n",
    );
    for method in ["GET", "DELETE"] {
        let answer = ask(hob.port(), method, "/cgi/echo", "");
        assert_eq!((answer.status, answer.text()), (200, method.to_owned()));
    }
    assert_eq!(ask(hob.port(), "HEAD", "/cgi/echo", "").status, 200);
    let answer = ask(hob.port(), "POST", "/cgi/echo", "Content-Length: 0\r\n");
    let allowed = answer.header("allow");
    assert_eq!((answer.status, allowed), (405, Some("GET, DELETE, HEAD")));
    assert_eq!(ask(hob.port(), "BREW", "/cgi/echo", "").status, 501);
    hob.stop();
}

#[test]
fn reload_brings_other_rules() {
    let place = Place::new();
    let hob = serve(&place, &inner("deny = [\"192.0.2.0/24\"]"));
    let status = |client| ask_from(&hob, client, "/inner/a.txt").status;
    assert_eq!((status("192.0.2.1"), status("198.51.100.1")), (403, 200));
    let other = inner("deny = [\"198.51.100.0/24\"]");
    place.write("hob.toml", &format!("{TOP}{other}"));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation 2");
    assert_eq!((status("192.0.2.1"), status("198.51.100.1")), (200, 403));
    hob.stop();
}

#[test]
fn explain_says_who_may() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("site/inner")).unwrap();
    place.write("site/inner/a.txt", INNER);
    let rules = "allow = [\"10.0.0.0/8\"], methods = [\"GET\"]";
    place.write("hob.toml", &format!("{TOP}{}", inner(rules)));
    let explain = |arguments: &[&str]| text_of(&place.run(&[&["explain"], arguments].concat()));
    let may = explain(&["/inner/a.txt", "--from", "10.1.2.3"]);
    assert!(
        may.contains("200 OK") && may.contains("access.allow"),
        "{may}"
    );
    let may_not = explain(&["/inner/a.txt", "--from", "192.0.2.1"]);
    let reason = "access: `allow` does not have the client's address";
    assert!(
        may_not.contains("403") && may_not.contains(reason),
        "{may_not}"
    );
    let unknown = explain(&["/inner/a.txt"]);
    assert!(
        unknown.contains("200 OK") && unknown.contains("--from ADDRESS"),
        "{unknown}"
    );
    let method = explain(&["DELETE", "/inner/a.txt", "--from", "10.1.2.3"]);
    assert!(
        method.contains("405") && method.contains("Allow: GET, HEAD"),
        "{method}"
    );
    let wrong = place.run(&["explain", "/", "--from", "here"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text_of(&wrong));
}
