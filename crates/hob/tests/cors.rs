//! `cors`: what browsers are told of pages elsewhere. What one does then is in `browser.rs`.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{Answer, ask};
use harness::{Hob, Place, text_of};

const PAGE: &str = "https://app.example.com";

fn serve(place: &Place, site: &str) -> Hob {
    place.folder("cgi");
    let own = "#!/bin/sh\nprintf 'Content-Type: text/plain\\nAccess-Control-Allow-Origin: *\\n\\n'\n\
               printf %s \"$REQUEST_METHOD\"\n";
    place.script("cgi/own", own);
    place.serve_config_with("", site)
}

fn ask_from(hob: &Hob, method: &str, path: &str, origin: &str, fields: &str) -> Answer {
    ask(
        hob.port(),
        method,
        path,
        &format!("Origin: {origin}\r\n{fields}"),
    )
}

fn told<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.header(&format!("access-control-{name}"))
}

/// That the answer must not be given to another origin.
fn varies(answer: &Answer) -> bool {
    let varies = answer.headers.iter().filter(|(name, _)| name == "vary");
    { varies }.any(|(_, value)| value.contains("Origin"))
}

#[test]
fn pages_that_are_listed_may_read_answers_and_errors() {
    let place = Place::new();
    let hob = serve(
        &place,
        "cors = { origins = [\"https://app.example.com\", \"https://*.example.net\"], \
         expose = [\"X-Total\", \"ETag\"], credentials = true }\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
         [[site.route]]\npath = \"/closed\"\nrespond = { body = \"x\" }\n\
         access = { deny = [\"all\"] }\n",
    );
    for (path, status) in [
        ("/hello.txt", 200),
        ("/nothing", 404),
        ("/closed", 403),
        ("/cgi/own", 200),
    ] {
        for origin in [PAGE, "https://a.example.net"] {
            let answer = ask_from(&hob, "GET", path, origin, "");
            assert_eq!(answer.status, status, "{path}");
            let origins = answer.headers.iter();
            let name = "access-control-allow-origin";
            let origins: Vec<&str> = origins
                .filter(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
                .collect();
            assert_eq!(origins, [origin], "{path}");
            assert_eq!(told(&answer, "allow-credentials"), Some("true"));
            assert_eq!(told(&answer, "expose-headers"), Some("X-Total, ETag"));
            assert!(varies(&answer), "{path}");
        }
        for origin in [
            "https://evil.test",
            "https://app.example.com.evil.test",
            "null",
        ] {
            let answer = ask_from(&hob, "GET", path, origin, "");
            assert_eq!(answer.status, status, "{path}");
            assert_eq!(told(&answer, "allow-origin"), None, "{path} {origin}");
            assert_eq!(told(&answer, "allow-credentials"), None);
            assert!(varies(&answer), "{path}");
        }
        // Who keeps this one must not give it to a page.
        assert!(varies(&ask(hob.port(), "GET", path, "")), "{path}");
    }
    hob.stop();
}

#[test]
fn browser_that_asks_first_is_answered_before_anybody_else() {
    let place = Place::new();
    let hob = serve(
        &place,
        "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
         access = { methods = [\"PUT\"] }\nrate = { requests = \"1/h\", burst = 1 }\n\
         cors = { origins = [\"https://app.example.com\"], methods = [\"PUT\"], \
         headers = [\"X-Test\", \"Authorization\"], max_age = \"1h\" }\n\
         [[site.route]]\npath = \"/any\"\nrespond = { body = \"x\" }\n\
         cors = { origins = [\"*\"], headers = [\"*\"] }\n",
    );
    let first = "Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-test\r\n";
    for _ in 0..2 {
        let answer = ask_from(&hob, "OPTIONS", "/cgi/own", PAGE, first);
        assert_eq!((answer.status, answer.text()), (204, String::new()));
        assert_eq!(told(&answer, "allow-origin"), Some(PAGE));
        assert_eq!(told(&answer, "allow-methods"), Some("PUT"));
        assert_eq!(
            told(&answer, "allow-headers"),
            Some("X-Test, Authorization")
        );
        assert_eq!(told(&answer, "max-age"), Some("3600"));
        assert_eq!(told(&answer, "allow-credentials"), None);
    }
    let answer = ask_from(&hob, "OPTIONS", "/cgi/own", "https://evil.test", first);
    assert_eq!(answer.status, 204);
    for name in ["allow-origin", "allow-methods", "allow-headers", "max-age"] {
        assert_eq!(told(&answer, name), None, "{name}");
    }
    let any = ask_from(&hob, "OPTIONS", "/any", "https://evil.test", first);
    assert_eq!(told(&any, "allow-origin"), Some("*"));
    assert_eq!(told(&any, "allow-headers"), Some("x-test"));
    assert_eq!(told(&any, "allow-methods"), Some("GET, HEAD, POST"));
    // Without a page behind it this is a request like any other.
    assert_eq!(ask(hob.port(), "OPTIONS", "/cgi/own", "").status, 405);
    let put = ask_from(&hob, "PUT", "/cgi/own", PAGE, "Content-Length: 0\r\n");
    assert_eq!((put.status, put.text()), (200, "PUT".to_owned()));
    hob.stop();
}

#[test]
fn explain_says_whose_pages_may() {
    let place = Place::new();
    place.write(
        "hob.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         cors = { origins = [\"https://app.example.com\"] }\n",
    );
    let explain = |origin: &str| {
        let field = format!("Origin: {origin}");
        text_of(&place.run(&["explain", "/hello.txt", "--header", &field]))
    };
    let may = explain(PAGE);
    assert!(
        may.contains("pages of this origin may read the answer"),
        "{may}"
    );
    let may_not = explain("https://evil.test");
    assert!(
        may_not.contains("browsers let no page of this origin"),
        "{may_not}"
    );
}
