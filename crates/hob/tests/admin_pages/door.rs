//! Who is let in at all.

use serde_json::json;

use crate::harness::Place;
use crate::harness::client::{ask, get};
use crate::place::{Pages, json_of, serve};

const TARGETS: [&str; 5] = [
    "/v1/status",
    "/v1/session",
    "/v1/audit",
    "/v1/live?page=overview",
    "/v1/nothing",
];

#[test]
fn without_a_session_only_the_pages_and_the_login_answer() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let own = pages.own_fields();
    for target in TARGETS {
        for cookie in [
            "",
            "Cookie: hob-admin-0=\r\n",
            "Cookie: a=b; hob-admin-1=c\r\n",
        ] {
            let answer = pages.raw("GET", target, &format!("{own}{cookie}"), "");
            assert_eq!(answer.status, 401, "{target} {cookie}");
            assert!(json_of(&answer)["text"].is_string());
        }
    }
    for target in [
        "/v1/reload",
        "/v1/stop",
        "/v1/upgrade",
        "/v1/logout",
        "/v1/admin-url",
    ] {
        assert_eq!(
            pages.raw("POST", target, &own, "{}").status,
            401,
            "{target}"
        );
    }
    let page = pages.raw("GET", "/", &own, "");
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    // And the site knows nothing of it, as its listener knows nothing of the site.
    assert_eq!(ask(hob.port(), "GET", "/v1/session", "").status, 404);
    assert_eq!(pages.raw("GET", "/hello.txt", &own, "").status, 404);
    hob.stop();
}

#[test]
fn only_the_listeners_own_names_are_answered() {
    let place = Place::new();
    let hob = serve(&place, "", "names = [\"admin.example.org\"]");
    let pages = Pages {
        token: String::new(),
        port: {
            let line = hob.wait_for("admin pages on http://admin.example.org:");
            let (place, _) = line.split_once("/#token=").unwrap();
            place.rsplit(':').next().unwrap().parse().unwrap()
        },
    };
    let status_of = |host: &str| {
        pages
            .raw("GET", "/", &format!("Host: {host}\r\n"), "")
            .status
    };
    for own in [
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost:9080",
        "LOCALHOST",
        "[::1]:80",
        "admin.example.org",
        "admin.example.org:443",
    ] {
        assert_eq!(status_of(own), 200, "{own}");
    }
    for other in [
        "example.org",
        "127.0.0.1.example.org",
        "localhost.example.org:80",
        "10.0.0.1",
        "evil.admin.example.org",
        "a",
    ] {
        assert_eq!(status_of(other), 421, "{other}");
    }
    assert!(place.status()["admin"]["refused"].as_u64().unwrap() >= 6);
    hob.stop();
}

#[test]
fn pages_elsewhere_can_do_nothing_with_a_session() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let host = format!(
        "Host: 127.0.0.1:{}\r\nCookie: {}\r\n",
        pages.port, visitor.cookie
    );
    let origin = format!("Origin: {}\r\n", pages.origin());
    let field = "X-Hob-Admin: 1\r\n";
    let refused = [
        // A form, which can send no field of its own.
        format!("{host}{origin}"),
        format!("{host}{origin}X-Hob-Admin: 2\r\n"),
        // A script of another origin, a sandboxed frame, another port, another scheme's look-alike.
        format!("{host}{field}Origin: http://example.org\r\n"),
        format!("{host}{field}Origin: null\r\n"),
        format!("{host}{field}Origin: http://127.0.0.1:1\r\n"),
        format!(
            "{host}{field}Origin: http://127.0.0.1:{}.example.org\r\n",
            pages.port
        ),
        format!("{host}{field}Origin: ftp://127.0.0.1:{}\r\n", pages.port),
        // None at all, and two.
        format!("{host}{field}"),
        format!("{host}{field}{origin}{origin}"),
        format!("{host}{field}{origin}Sec-Fetch-Site: cross-site\r\n"),
        format!("{host}{field}{origin}Sec-Fetch-Site: same-site\r\n"),
    ];
    for fields in refused {
        let answer = pages.raw("POST", "/v1/reload", &fields, "{}");
        assert_eq!(answer.status, 403, "{fields}: {}", answer.text());
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let preflight = format!("{host}Origin: http://example.org\r\n");
    let answer = pages.raw("OPTIONS", "/v1/reload", &preflight, "");
    assert_eq!(answer.status, 403);
    let foreign = format!("{host}Origin: http://example.org\r\n");
    assert_eq!(pages.raw("GET", "/v1/status", &foreign, "").status, 403);
    let foreign = format!("{host}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(pages.raw("GET", "/v1/status", &foreign, "").status, 403);
    // A login can be made by no other page either.
    let login = pages.raw(
        "POST",
        "/v1/login",
        &format!("{host}{field}Origin: http://example.org\r\n"),
        &json!({ "token": "x" }).to_string(),
    );
    assert_eq!(login.status, 403);
    assert_eq!(place.status()["generation"], 1);
    // The pages themselves can.
    let own = format!("{host}{field}{origin}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(pages.raw("POST", "/v1/reload", &own, "{}").status, 200);
    hob.stop();
}

#[test]
fn answers_are_told_to_nobody_else() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    for target in ["/", "/nothing", "/v1/status", "/v1/nothing"] {
        let answer = visitor.get(target);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{target}: {policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{target}");
        }
        if target.starts_with("/v1/") {
            assert_eq!(answer.header("cache-control"), Some("no-store"), "{target}");
        }
    }
    let policy = visitor.get("/");
    let policy = policy.header("content-security-policy").unwrap();
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    hob.stop();
}

#[test]
fn nothing_of_it_is_logged_or_counted() {
    let place = Place::new();
    let log = "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"run/access.log\"\n";
    let hob = serve(&place, log, "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    visitor.look("/v1/status");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    place.wait_for_counter("requests", 1);
    visitor.look("/v1/status");
    assert_eq!(place.counter("requests"), 1);
    let secret = visitor.cookie.split_once('=').unwrap().1.to_owned();
    let token = pages.token.clone();
    let log_path = place.path("run/access.log");
    let printed = hob.stop_and_print();
    let log = std::fs::read_to_string(log_path).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("/hello.txt"));
    // The token stands where it is printed, and nowhere else.
    assert_eq!(printed.matches(&token).count(), 1);
    assert!(!printed.contains(&secret));
}

#[test]
fn a_reload_keeps_the_listener_and_what_is_not_configured_is_not_there() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    visitor.act("/v1/reload", &json!({}));
    let session = visitor.look("/v1/session");
    assert_eq!(session["role"], "operate");
    // Asking for the counter is a connection, too.
    let is_ours = || {
        let before = place.counter("connections_accepted");
        let opened = crate::harness::client::Connection::open(pages.port);
        let _ = opened.and_then(|mut one| one.send_get("/").and_then(|()| one.read()));
        place.counter("connections_accepted") - before > 1
    };
    assert!(is_ours());
    place.write_config("", "site");
    visitor.act("/v1/reload", &json!({}));
    // Another may have the port by now.
    assert!(!is_ours());
    assert!(place.status()["admin"].is_null());
    let output = place.run(&["status", "--admin-url"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(crate::harness::text_of(&output).contains("add `[admin]`"));
    hob.stop();
}

#[test]
fn files_of_the_pages_are_sent_small_and_kept_by_browsers() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let get = |target: &str, fields: &str| {
        pages.raw(
            "GET",
            target,
            &format!("{}{fields}", pages.own_fields()),
            "",
        )
    };
    let page = get("/", "");
    let text = page.text();
    if text.contains("built without its admin pages") {
        println!("skipped: the pages were not built (make pages)");
        hob.stop();
        return;
    }
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let (_, after) = text.split_once("src=\".").unwrap();
    let (script, _) = after.split_once('"').unwrap();
    let plain = get(script, "");
    assert!(
        plain
            .header("content-type")
            .unwrap()
            .starts_with("text/javascript")
    );
    assert_eq!(plain.header("content-encoding"), None);
    for coding in ["br", "gzip"] {
        let coded = get(script, &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(coded.header("content-encoding"), Some(coding));
        assert!(coded.body.len() < plain.body.len() / 2);
        assert!(
            coded
                .header("cache-control")
                .unwrap()
                .ends_with("immutable")
        );
        assert_eq!(coded.header("vary"), Some("Accept-Encoding"));
        let tag = coded.header("etag").unwrap();
        assert_ne!(Some(tag), plain.header("etag"));
        let known = format!("Accept-Encoding: {coding}\r\nIf-None-Match: \"x\", W/{tag}\r\n");
        let again = get(script, &known);
        assert_eq!((again.status, again.body.len()), (304, 0));
    }
    assert_eq!(get("/assets/none.js", "").status, 404);
    assert_eq!(get("/../Cargo.toml", "").status, 404);
    assert_eq!(pages.raw("POST", "/", &pages.own_fields(), "").status, 405);
    hob.stop();
}
