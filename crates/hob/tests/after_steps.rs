//! What is done to answers after their handler: header rules, compression, and for programs also
//! conditions, ranges, and what they ask of the server.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "after_steps/programs.rs"]
mod programs;

use std::io::Read;

use harness::Place;
use harness::client::{Answer, ask};

const RULES: &str = "error_pages = { 404 = \"page.html\" }\n\
    headers = { X-Frame-Options = \"DENY\", Server = \"\" }\n\
    headers_add = [\"Link: </a>\", \"Link: </b>\"]\n\
    [[site.route]]\npath = \"/old\"\nredirect = \"/new\"\n\
    [[site.route]]\npath = \"/fixed\"\nrespond = { body = \"ok\" }\n\
    headers = { X-Frame-Options = \"SAMEORIGIN\", Cache-Control = \"no-store\" }\n\
    [[site.route]]\npath = \"/own/*\"\nfiles = \"site\"\n\
    headers = { Cache-Control = \"max-age=600\" }\nheaders_remove = [\"Link\"]\n";

fn values<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let fields = answer.headers.iter();
    let of_name = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    of_name.map(|(_, value)| value.as_str()).collect()
}

#[test]
fn header_rules_hold_for_every_handler_and_every_status() {
    let place = Place::new();
    place.write("page.html", "own page");
    let hob = place.serve_config_with("", RULES);
    for (path, fields, status, frame) in [
        ("/hello.txt", "", 200, "DENY"),
        ("/hello.txt", "Range: bytes=0-1\r\n", 206, "DENY"),
        ("/hello.txt", "Range: bytes=99-\r\n", 416, "DENY"),
        ("/hello.txt", "If-None-Match: *\r\n", 304, "DENY"),
        ("/missing", "", 404, "DENY"),
        ("/%00", "", 400, "DENY"),
        ("/old", "", 302, "DENY"),
        ("/fixed", "", 200, "SAMEORIGIN"),
    ] {
        let answer = ask(hob.port(), "GET", path, fields);
        assert_eq!(answer.status, status, "{path} {fields}");
        assert_eq!(
            values(&answer, "x-frame-options"),
            [frame],
            "{path} {fields}"
        );
        assert_eq!(values(&answer, "link"), ["</a>", "</b>"], "{path} {fields}");
        assert_eq!(values(&answer, "server"), [""; 0], "{path} {fields}");
    }
    // Twice: what the cache holds is as good as what was just loaded.
    for _ in 0..2 {
        let answer = ask(hob.port(), "GET", "/own/hello.txt", "");
        assert_eq!(values(&answer, "cache-control"), ["max-age=600"]);
        assert_eq!(values(&answer, "link"), [""; 0]);
    }
    let missing = ask(hob.port(), "GET", "/own/missing", "");
    assert_eq!((missing.status, missing.text().as_str()), (404, "own page"));
    assert_eq!(values(&missing, "cache-control"), [""; 0]);
    let fixed = ask(hob.port(), "GET", "/fixed", "");
    assert_eq!(values(&fixed, "cache-control"), ["no-store"]);
    hob.stop();
}

#[test]
fn header_rules_of_security_leave_what_answers_say_themselves() {
    let place = Place::new();
    place.script(
        "own.sh",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\nX-Frame-Options: ALLOWALL\\n\\nown'\n",
    );
    let keys = "security_headers = \"basic\"\nheaders = { Referrer-Policy = \"\" }\n\
                [[site.route]]\npath = \"/own\"\ncgi = { script = \"own.sh\" }\n\
                [[site.route]]\npath = \"/strict\"\nrespond = { body = \"strict\" }\n\
                security_headers = \"strict\"\nheaders = { X-Frame-Options = \"SAMEORIGIN\" }\n\
                [[site.route]]\npath = \"/off\"\nrespond = { body = \"off\" }\n\
                security_headers = \"off\"\n";
    let hob = place.serve_config_with("", keys);
    for (path, frame, sniff, policy) in [
        ("/hello.txt", &["SAMEORIGIN"][..], &["nosniff"][..], false),
        ("/none", &["SAMEORIGIN"], &["nosniff"], false),
        ("/own", &["ALLOWALL"], &["nosniff"], false),
        ("/strict", &["SAMEORIGIN"], &["nosniff"], true),
        ("/off", &[], &[], false),
    ] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_eq!(values(&answer, "x-frame-options"), frame, "{path}");
        assert_eq!(values(&answer, "x-content-type-options"), sniff, "{path}");
        // What the rules of the site remove is gone.
        assert_eq!(values(&answer, "referrer-policy"), [""; 0], "{path}");
        let has_policy = !values(&answer, "permissions-policy").is_empty();
        assert_eq!(has_policy, policy, "{path}");
    }
    hob.stop();
}

#[test]
fn explain_shows_the_fields_that_rules_leave() {
    let place = Place::new();
    place.write("page.html", "own page");
    place.write(
        "hob.toml",
        &format!("{}{RULES}", harness::config("", "site")),
    );
    for path in ["/hello.txt", "/fixed", "/missing"] {
        let output = place.run(&["explain", "--json", "GET", path]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let fields = told["answer"]["fields"].to_string();
        assert!(fields.contains("X-Frame-Options"), "{path} {fields}");
        assert!(!fields.contains("Server"), "{path} {fields}");
    }
}

#[test]
fn fixed_answer_is_compressed_once_it_is_large_enough() {
    let place = Place::new();
    let text = "the kettle is warm ".repeat(100);
    let hob = place.serve_config_with(
        "",
        &format!(
            "[[site.route]]\npath = \"/large\"\nrespond = {{ body = \"{text}\" }}\n\
             [[site.route]]\npath = \"/small\"\nrespond = {{ body = \"small\" }}\n\
             [[site.route]]\npath = \"/off\"\nrespond = {{ body = \"{text}\" }}\ncompress = []\n"
        ),
    );
    let accept = "Accept-Encoding: gzip\r\n";
    let coded = ask(hob.port(), "GET", "/large", accept);
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert_eq!(coded.header("vary"), Some("Accept-Encoding"));
    let mut decoded = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&coded.body[..]);
    decoder.read_to_string(&mut decoded).unwrap();
    assert_eq!(decoded, text);
    let head = ask(hob.port(), "HEAD", "/large", accept);
    assert_eq!(
        head.header("content-length"),
        coded.header("content-length")
    );
    let plain = ask(hob.port(), "GET", "/large", "");
    assert_eq!(
        (plain.text(), plain.header("vary")),
        (text.clone(), Some("Accept-Encoding"))
    );
    for path in ["/small", "/off"] {
        let answer = ask(hob.port(), "GET", path, accept);
        assert_eq!(answer.header("content-encoding"), None, "{path}");
        assert_eq!(answer.header("vary"), None, "{path}");
    }
    hob.stop();
}

#[test]
fn internal_route_is_not_found_from_outside() {
    let place = Place::new();
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/inside/*\"\ninternal = true\nfiles = \"site\"\n",
    );
    assert_eq!(ask(hob.port(), "GET", "/inside/hello.txt", "").status, 404);
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    let explained = place.run(&["explain", "GET", "/inside/hello.txt"]);
    let text = String::from_utf8(explained.stdout).unwrap();
    assert!(
        text.contains("404") && text.contains("the route is internal"),
        "{text}"
    );
    hob.stop();
}
