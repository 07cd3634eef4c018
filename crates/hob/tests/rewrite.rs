//! Rewrites: the handler sees another path than the client asked for, and never one above its root.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{ask, call};
use harness::{Place, text_of};

#[test]
fn handler_sees_the_rewritten_path_and_the_client_no_redirect() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("site/pages/deep")).unwrap();
    place.write("site/pages/ann.html", "ann");
    place.write("site/pages/b b.html", "b b");
    place.write("site/pages/deep/c.html", "c");
    place.write("secret.html", "secret");
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/user/{name}\"\nrewrite = \"/pages/{name}.html\"\nfiles = {}\n\
         [[site.route]]\npath = \"/all/{rest*}\"\nrewrite = \"/pages/{rest}.html\"\nfiles = {}\n\
         [[site.route]]\npath = \"/raw/{rest*}\"\nrewrite = \"/{rest}\"\nfiles = {}\n\
         [[site.route]]\npath = \"/greet\"\nrewrite = \"/hello.txt\"\nfiles = {}\n",
    );
    for (path, status, text) in [
        ("/user/ann", 200, "ann"),
        ("/user/b%20b", 200, "b b"),
        ("/user/bob", 404, ""),
        ("/all/deep/c", 200, "c"),
        ("/greet?x=y", 200, "hello\n"),
        ("/raw/pages/ann.html", 200, "ann"),
        // Dot segments are taken out before the route captures, and looked for after.
        ("/user/..", 403, ""),
        ("/all/%2e%2e/%2e%2e/secret", 400, ""),
        ("/raw/.env", 404, ""),
    ] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_eq!(answer.status, status, "{path}");
        if status == 200 {
            assert_eq!(answer.text(), text, "{path}");
        }
    }
    hob.stop();
}

#[test]
fn capture_that_leads_above_the_root_is_refused() {
    let place = Place::new();
    place.write("secret", "secret");
    // A dot before a capture that begins with one: together they would be two.
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/x/{name}\"\nrewrite = \"/.{name}/secret\"\n\
         files = { dot_files = true }\n",
    );
    let answer = ask(hob.port(), "GET", "/x/...", "");
    assert_eq!(answer.status, 404);
    for path in ["/x/.", "/x/%2e"] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_ne!(answer.status, 200, "{path}");
        assert!(!answer.text().contains("secret"), "{path}");
    }
    hob.stop();
}

#[test]
fn program_sees_the_rewritten_query_and_the_rest_of_the_request() {
    let place = Place::new();
    place.folder("cgi");
    place.write(
        "cgi/index",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
         echo \"$SCRIPT_NAME $QUERY_STRING $REQUEST_URI $REQUEST_METHOD $1\"\ncat\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/index"), mode).unwrap();
    let cgi = "cgi = { dir = \"cgi\" }\n";
    let hob = place.serve_config_with(
        "",
        &format!(
            "[[site.route]]\npath = \"/page/{{name}}\"\n\
             rewrite = \"/index?page={{name}}&{{query}}\"\n{cgi}\
             [[site.route]]\npath = \"/none\"\nrewrite = \"/index?\"\n{cgi}\
             [[site.route]]\npath = \"/same\"\nrewrite = \"/index\"\n{cgi}"
        ),
    );
    for (target, seen) in [
        ("/page/a%26b?x=1", "page=a%26b&x=1 /page/a%26b?x=1 GET "),
        ("/page/a", "page=a /page/a GET "),
        ("/none?x", " /none?x GET "),
        ("/same?x", "x /same?x GET x"),
    ] {
        let answer = ask(hob.port(), "GET", target, "");
        assert_eq!(answer.text(), format!("/index {seen}\n"), "{target}");
    }
    let answer = call(hob.port(), "POST", "/page/a?x", "", b"body").answer;
    let seen = "/index page=a&x /page/a?x POST \nbody";
    assert_eq!(answer.text(), seen);
    let told = text_of(&place.run(&["explain", "GET", "/page/a?x=1"]));
    assert!(told.contains("/index?page=a&x=1"), "{told}");
    hob.stop();
}

/// What a shell program was asked for.
const SEEN: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
    printf '%s' \"$SCRIPT_NAME $PATH_INFO $QUERY_STRING $REQUEST_URI\"\n";

#[test]
fn parts_of_segments_and_regular_expressions_capture() {
    let place = Place::new();
    place.folder("site/j");
    place.write("site/j/12.json", "twelve");
    place.script("seen.sh", SEEN);
    let hob = place.serve_config_with(
        "",
        r#"
[[site.route]]
path = "/j/{id}.html"
rewrite = "/j/{id}.json"
files = {}
[[site.route]]
path = '~ ^/archive/(?<year>[0-9]{4})/([a-z]+)$'
rewrite = "/seen?year={year}&name={2}"
cgi = { script = "seen.sh" }
[[site.route]]
path = '~* \.(png|gif)$'
respond = { body = "picture" }
[[site.route]]
path = "/~{user}/*"
cgi = { script = "seen.sh" }
[[site.route]]
path = '~ ^/(de|en)(/.*)?$'
redirect = "/{1}.example{2}"
"#,
    );
    for (path, status, text) in [
        ("/j/12.html", 200, "twelve"),
        ("/j/13.html", 404, ""),
        ("/j/12.htm", 404, ""),
        (
            "/archive/2026/tea?x",
            200,
            " /seen year=2026&name=tea /archive/2026/tea?x",
        ),
        ("/archive/26/tea", 404, ""),
        ("/archive/2026/TEA", 404, ""),
        ("/a/b/C.PNG", 200, "picture"),
        ("/a%2fb.gif", 200, "picture"),
        ("/~ann/x/y", 200, "/~ann /x/y  /~ann/x/y"),
        ("/~/x", 404, ""),
    ] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_eq!(answer.status, status, "{path}");
        if status == 200 {
            assert_eq!(answer.text(), text, "{path}");
        }
    }
    for (path, to) in [("/de", "/de.example"), ("/en/a%20b", "/en.example/a%20b")] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_eq!(answer.header("location"), Some(to), "{path}");
    }
    for (path, told) in [
        ("/archive/2026/tea", "year = \"2026\""),
        ("/archive/26/tea", "the regular expression is not found"),
        ("/j/x.htm", "where it has \"{..}.html\""),
    ] {
        let text = text_of(&place.run(&["explain", path]));
        assert!(text.contains(told), "{path}: {text}");
    }
    hob.stop();
}

/// Bytes that are no UTF-8 are a part of paths as all others: no rule of a route is passed by with
/// them.
#[test]
fn no_byte_passes_by_a_regular_expression() {
    let place = Place::new();
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = '~ ^/admin/'\naccess = { deny = [\"all\"] }\nrespond = { body = \"admin\" }\n\
         [[site.route]]\npath = '~* ^/Private/[^/]+$'\naccess = { deny = [\"all\"] }\nrespond = { body = \"p\" }\n\
         [[site.route]]\npath = \"/*\"\nrespond = { body = \"open\" }\n",
    );
    for path in [
        "/admin/",
        "/admin/%ff",
        "/%61dmin/x",
        "//admin/x",
        "/./admin/x",
        "/x/../admin/x",
        "/admin/%0a",
        "/private/%ff%fe",
        "/PRIVATE/a%2fb",
        "/private/%C3%28",
    ] {
        let answer = ask(hob.port(), "GET", path, "");
        assert!(
            matches!(answer.status, 400 | 403),
            "{path}: {}",
            answer.status
        );
    }
    assert_eq!(ask(hob.port(), "GET", "/Admin/", "").text(), "open");
    hob.stop();
}

#[test]
fn list_has_other_paths_answered_with_the_rules_of_their_routes() {
    let place = Place::new();
    place.write("site/new.html", "new");
    place.write("site/secret.html", "secret");
    place.script("seen.sh", SEEN);
    let list = "/old /new.html rewrite\n/hidden /secret.html rewrite\n/shop/7 /seen/x%20y?id=7 rewrite\n\
                /chain /old rewrite\n/miss /files/none rewrite\n/moved /new.html\n/up /up/x rewrite\n";
    place.write("map.txt", list);
    let member = Place::new();
    member.script("seen.sh", SEEN);
    let behind = member.serve_config_with(
        "",
        "[[site.route]]\npath = \"/*\"\ncgi = { script = \"seen.sh\" }\n",
    );
    let hob = place.serve_config_with(
        "",
        &format!(
            "redirects = \"map.txt\"\n\
             [[site.route]]\npath = \"/secret.html\"\naccess = {{ deny = [\"all\"] }}\nfiles = {{}}\n\
             [[site.route]]\npath = \"/seen/*\"\ncgi = {{ script = \"seen.sh\" }}\n\
             [[site.route]]\npath = \"/files/*\"\nfiles = {{ try = [\"{{path}}\", \"next\"] }}\n\
             [[site.route]]\npath = \"/files/*\"\ncgi = {{ script = \"seen.sh\" }}\n\
             [[site.route]]\npath = \"/up/*\"\nproxy = \"http://127.0.0.1:{}\"\n",
            behind.port()
        ),
    );
    for (path, status, text) in [
        ("/old", 200, "new"),
        ("/%6fld?x", 200, "new"),
        ("/hidden", 403, ""),
        ("/shop/7", 200, "/seen /x y id=7 /shop/7"),
        ("/shop/7?id=8", 200, "/seen /x y id=7 /shop/7?id=8"),
        // What a list leads to is not looked up in it again.
        ("/chain", 404, ""),
        ("/miss?q", 200, "/files /none q /miss?q"),
        ("/moved", 301, ""),
        ("/up?q", 200, " /up/x q /up/x?q"),
    ] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_eq!(answer.status, status, "{path}");
        if status == 200 {
            assert_eq!(answer.text(), text, "{path}");
        }
    }
    for (path, told) in [
        ("/shop/7", "map.txt:3 has /seen/x y?id=7 answered"),
        ("/hidden", "map.txt:2 has /secret.html answered"),
        ("/miss", "seen.sh"),
    ] {
        let text = text_of(&place.run(&["explain", path]));
        assert!(text.contains(told), "{path}: {text}");
    }
    hob.stop();
    behind.stop();
}
