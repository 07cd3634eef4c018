//! Static files as clients see them: methods, types, folders, conditions, what is refused.
//!
//! - `changed` files that change while they are downloaded
//! - `ranges` parts of files
//! - `variants` compressed copies, beside the file and made on the fly
//! - `listing` folders without an index
//! - `programs` files that are programs' to answer for
//! - `names` paths that try to fool, names that are hard to write, links
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "files/changed.rs"]
mod changed;
#[path = "files/listing.rs"]
mod listing;
#[path = "files/names.rs"]
mod names;
#[path = "files/programs.rs"]
mod programs;
#[path = "files/ranges.rs"]
mod ranges;
#[path = "files/variants.rs"]
mod variants;

use std::time::{Duration, SystemTime};

use harness::client::{Connection, ask, raw};
use harness::{BIG_BYTES, BIG_LINE, Hob, Place};

/// A second that has a well-known date.
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

fn set_modified(place: &Place, name: &str) {
    let file = std::fs::File::options()
        .append(true)
        .open(place.path(name))
        .unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777))
        .unwrap();
}

/// Serves the site with these keys for its files.
fn serve(place: &Place, keys: &str) -> Hob {
    place.serve_config_with("", &format!("[site.files]\n{keys}\n"))
}

/// A place with these files below its site.
fn place_with(files: &[(&str, &str)]) -> Place {
    let place = Place::new();
    for (name, text) in files {
        let path = place.path("site").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    place
}

#[test]
fn folder_is_answered_by_its_index_and_redirected_to_its_slash_with_the_query() {
    let place = place_with(&[("index.html", "home"), ("docs/start.htm", "docs")]);
    let hob = serve(&place, "index = [\"index.html\", \"start.htm\"]");
    let port = hob.port();
    assert_eq!(ask(port, "GET", "/", "").text(), "home");
    assert_eq!(ask(port, "GET", "/docs/", "").text(), "docs");
    let answer = ask(port, "GET", "/docs?a=1&b=%2F", "");
    assert_eq!(answer.status, 301);
    assert_eq!(answer.header("location"), Some("/docs/?a=1&b=%2F"));
    // Two slashes at its start would be another host.
    let answer = ask(port, "GET", "//docs", "");
    assert_eq!(answer.header("location"), Some("/docs/"));
    assert_eq!(ask(port, "GET", "/docs/start.htm/", "").status, 404);
    hob.stop();
}

#[test]
fn type_follows_the_ending_and_text_has_a_charset() {
    let place = place_with(&[
        ("a.html", "x"),
        ("a.CSS", "x"),
        ("a.js", "x"),
        ("a.json", "x"),
        ("a.svg", "x"),
        ("a.png", "x"),
        ("a.wasm", "x"),
        ("a.own", "x"),
        ("plain", "x"),
    ]);
    let hob = serve(
        &place,
        "charset = \"iso-8859-1\"\ntypes = { \".own\" = \"text/x-own\" }",
    );
    for (name, media_type) in [
        ("a.html", "text/html; charset=iso-8859-1"),
        ("a.CSS", "text/css; charset=iso-8859-1"),
        ("a.js", "text/javascript; charset=iso-8859-1"),
        ("a.json", "application/json"),
        ("a.svg", "image/svg+xml; charset=iso-8859-1"),
        ("a.png", "image/png"),
        ("a.wasm", "application/wasm"),
        ("a.own", "text/x-own; charset=iso-8859-1"),
        ("plain", "application/octet-stream"),
    ] {
        let answer = ask(hob.port(), "GET", &format!("/{name}"), "");
        assert_eq!(answer.header("content-type"), Some(media_type), "{name}");
    }
    hob.stop();
}

#[test]
fn head_is_get_without_the_body() {
    let place = place_with(&[("empty.txt", "")]);
    set_modified(&place, "site/hello.txt");
    let hob = place.serve_config("");
    for path in ["/hello.txt", "/big.bin", "/empty.txt", "/missing", "/"] {
        let get = ask(hob.port(), "GET", path, "");
        let head = ask(hob.port(), "HEAD", path, "");
        let without_date = |answer: &harness::client::Answer| {
            let mut headers = answer.headers.clone();
            headers.retain(|(name, _)| name != "date");
            headers
        };
        assert_eq!(
            (get.status, without_date(&get)),
            (head.status, without_date(&head))
        );
    }
    let get = ask(hob.port(), "GET", "/hello.txt", "");
    assert_eq!(get.header("last-modified"), Some(MODIFIED));
    assert_eq!(get.header("content-length"), Some("6"));
    let tag = get.header("etag").unwrap();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    hob.stop();
}

#[test]
fn methods_that_do_not_read_are_refused_with_those_that_do() {
    let place = Place::new();
    let hob = place.serve_config("");
    let allowed = Some("GET, HEAD, OPTIONS");
    for (method, target, status) in [
        ("OPTIONS", "/hello.txt", 204),
        ("OPTIONS", "*", 204),
        ("POST", "/hello.txt", 405),
        ("DELETE", "/hello.txt", 405),
        ("TRACE", "/hello.txt", 405),
    ] {
        let answer = ask(hob.port(), method, target, "");
        assert_eq!(
            (answer.status, answer.header("allow")),
            (status, allowed),
            "{method} {target}"
        );
    }
    for method in ["BREW", "get"] {
        assert_eq!(ask(hob.port(), method, "/hello.txt", "").status, 501);
    }
    hob.stop();
}

#[test]
fn every_condition_is_kept_and_the_stronger_ones_win() {
    let place = Place::new();
    set_modified(&place, "site/hello.txt");
    let hob = place.serve_config("");
    let tag = ask(hob.port(), "GET", "/hello.txt", "");
    let tag = tag.header("etag").unwrap();
    for (fields, status) in [
        (format!("If-Match: {tag}\r\n"), 200),
        ("If-Match: *\r\n".into(), 200),
        (format!("If-Match: W/{tag}\r\n"), 412),
        ("If-Match: \"other\"\r\n".into(), 412),
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: \"a\", W/{tag}\r\n"), 304),
        ("If-None-Match: *\r\n".into(), 304),
        ("If-None-Match: \"other\"\r\n".into(), 200),
        (format!("If-Modified-Since: {MODIFIED}\r\n"), 304),
        (format!("If-Modified-Since: {BEFORE}\r\n"), 200),
        ("If-Modified-Since: yesterday\r\n".into(), 200),
        (format!("If-Unmodified-Since: {MODIFIED}\r\n"), 200),
        (format!("If-Unmodified-Since: {BEFORE}\r\n"), 412),
        (
            format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {MODIFIED}\r\n"),
            200,
        ),
        (
            format!("If-Match: {tag}\r\nIf-Unmodified-Since: {BEFORE}\r\n"),
            200,
        ),
        (
            format!("If-Match: \"other\"\r\nIf-None-Match: {tag}\r\n"),
            412,
        ),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = ask(hob.port(), method, "/hello.txt", &fields);
            assert_eq!(answer.status, status, "{method} {fields}");
            if status == 304 {
                assert_eq!(answer.header("etag"), Some(tag));
                assert_eq!(answer.header("content-type"), None);
            }
        }
    }
    // An error is an error, whatever the conditions.
    let answer = ask(hob.port(), "GET", "/missing", "If-None-Match: *\r\n");
    assert_eq!(answer.status, 404);
    hob.stop();
}

#[test]
fn fields_of_a_route_are_set_and_removed() {
    let place = Place::new();
    let hob = place.serve_config_with(
        "",
        "[site.files]\ncache_control = \"max-age=60\"\n\n[[site.route]]\npath = \"/*\"\nfiles = {}\n\
         headers = { X-Frame-Options = \"DENY\", Server = \"\", ETag = \"\" }\n",
    );
    let answer = ask(hob.port(), "GET", "/hello.txt", "");
    assert_eq!(answer.header("cache-control"), Some("max-age=60"));
    assert_eq!(answer.header("x-frame-options"), Some("DENY"));
    assert_eq!(
        (answer.header("server"), answer.header("etag")),
        (None, None)
    );
    let modified = answer.header("last-modified").unwrap();
    let since = format!("If-Modified-Since: {modified}\r\n");
    let answer = ask(hob.port(), "GET", "/hello.txt", &since);
    assert_eq!(answer.status, 304);
    assert_eq!(answer.header("x-frame-options"), Some("DENY"));
    assert_eq!(answer.header("cache-control"), Some("max-age=60"));
    hob.stop();
}

#[test]
fn fallback_answers_for_what_is_not_there() {
    let place = place_with(&[("app.html", "app"), ("assets/a.js", "js")]);
    let hob = serve(&place, "fallback = \"app.html\"");
    for path in ["/", "/deep/link", "/missing.js", "/assets/b.js"] {
        let answer = ask(hob.port(), "GET", path, "");
        // The root is there: it has no index and may not be listed.
        let expected = if path == "/" { 403 } else { 200 };
        assert_eq!(answer.status, expected, "{path}");
        if expected == 200 {
            assert_eq!(answer.text(), "app", "{path}");
            let media_type = answer.header("content-type");
            assert_eq!(media_type, Some("text/html; charset=utf-8"));
        }
    }
    assert_eq!(ask(hob.port(), "GET", "/assets/a.js", "").text(), "js");
    assert_eq!(ask(hob.port(), "POST", "/deep/link", "").status, 405);
    assert_eq!(ask(hob.port(), "GET", "/.env", "").status, 404);
    hob.stop();
}

#[test]
fn fallback_has_cache_rules_of_its_own_and_can_be_switched_off() {
    let place = place_with(&[
        ("app.html", "app"),
        ("assets/a.js", "js"),
        ("manual/b", "b"),
    ]);
    let hob = serve(
        &place,
        "fallback = \"app.html\"\ncache_control = \"max-age=60\"\n\
         [[site.route]]\npath = \"/assets/*\"\n\
         files = { cache_control = \"max-age=31536000, immutable\" }\n\
         [[site.route]]\npath = \"/kept/*\"\nfiles = { fallback_cache_control = \"max-age=5\" }\n\
         [[site.route]]\npath = \"/plain/*\"\nfiles = { fallback_cache_control = \"\" }\n\
         [[site.route]]\npath = \"/pinned/*\"\nfiles = { root = \"site\", cache = \"pin\" }\n\
         [[site.route]]\npath = \"/manual/*\"\nfiles = { fallback = \"off\" }",
    );
    let immutable = Some("max-age=31536000, immutable");
    for (path, status, rule) in [
        ("/assets/a.js", 200, immutable),
        ("/assets/missing.js", 200, Some("no-cache")),
        ("/view", 200, Some("no-cache")),
        ("/kept/view", 200, Some("max-age=5")),
        ("/plain/view", 200, None),
        ("/pinned/view", 200, Some("no-cache")),
        // By its own name it is a file as others are.
        ("/app.html", 200, Some("max-age=60")),
        ("/pinned/app.html", 200, Some("max-age=60")),
        ("/manual/b", 200, Some("max-age=60")),
        ("/manual/missing", 404, None),
    ] {
        // A second time, from what the first has left in memory.
        for _ in 0..2 {
            let answer = ask(hob.port(), "GET", path, "");
            assert_eq!(answer.status, status, "{path}");
            assert_eq!(answer.header("cache-control"), rule, "{path}");
            if rule == Some("no-cache") {
                assert_eq!(answer.text(), "app", "{path}");
                let tag = answer.header("etag").unwrap();
                let again = format!("If-None-Match: {tag}\r\n");
                let again = ask(hob.port(), "GET", path, &again);
                assert_eq!(again.status, 304, "{path}");
                assert_eq!(again.header("cache-control"), rule, "{path}");
            }
        }
    }
    hob.stop();
}

#[test]
fn error_page_of_the_site_is_sent_with_the_status_of_the_error() {
    let place = Place::new();
    place.write("gone.html", "<p>not here</p>");
    let hob = place.serve_config_with("", "error_pages = { 404 = \"gone.html\" }\n");
    for (method, body) in [("GET", "<p>not here</p>"), ("HEAD", "")] {
        let answer = ask(hob.port(), method, "/missing", "");
        assert_eq!((answer.status, answer.text().as_str()), (404, body));
        assert_eq!(answer.header("content-length"), Some("15"));
        let media_type = answer.header("content-type");
        assert_eq!(media_type, Some("text/html; charset=utf-8"));
    }
    let answer = ask(hob.port(), "GET", "/%00", "");
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("400"), "the built-in page");
    hob.stop();
}

#[test]
fn empty_file_and_files_above_the_cache_limit_come_whole() {
    let middle = BIG_LINE.repeat(10_000);
    let place = place_with(&[("empty.txt", ""), ("middle.txt", &middle)]);
    place.fill_big();
    let hob = serve(&place, "compress = []");
    // The second time from whatever was kept.
    for _ in 0..2 {
        let answer = ask(hob.port(), "GET", "/empty.txt", "");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-length"), Some("0"));
        assert!(ask(hob.port(), "GET", "/middle.txt", "").text() == middle);
        let answer = ask(hob.port(), "GET", "/big.bin", "");
        assert_eq!(answer.body.len(), BIG_BYTES);
        let lines = answer.body.chunks(16);
        assert!(lines.clone().all(|line| line == BIG_LINE.as_bytes()));
    }
    hob.stop();
}

#[test]
fn h1_only_old_clients_are_answered_and_their_connection_closed_unless_they_keep_it() {
    let place = Place::new();
    let hob = place.serve_config("");
    let answer = raw(hob.port(), b"GET /hello.txt HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello\n"), "{answer}");

    let mut connection = Connection::open(hob.port()).unwrap();
    let kept = b"GET /hello.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    for _ in 0..2 {
        connection.send(kept).unwrap();
        let answer = connection.read().unwrap();
        assert_eq!(answer.header("connection"), Some("keep-alive"));
        assert_eq!(answer.text(), "hello\n");
    }
    hob.stop();
}
