//! Fixed answers from the config.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::Place;
use harness::client::{Connection, ask};

#[test]
fn fixed_answer_has_its_status_type_fields_and_body() {
    let place = Place::new();
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/health\"\nrespond = { body = \"ok\\n\" }\n\
         [[site.route]]\npath = \"/gone/*\"\nrespond = { status = 410, body = \"gone\" }\n\
         [[site.route]]\npath = \"/empty\"\nrespond = { status = 204 }\n\
         [[site.route]]\npath = \"/json\"\n\
         respond = { content_type = \"application/json\", body = '{\"a\":1}' }\n\
         headers = { Cache-Control = \"no-store\", Server = \"\" }\n",
    );
    for (path, status, media_type, body) in [
        ("/health", 200, Some("text/plain; charset=utf-8"), "ok\n"),
        ("/gone/a/b", 410, Some("text/plain; charset=utf-8"), "gone"),
        ("/empty", 204, None, ""),
        ("/json", 200, Some("application/json"), "{\"a\":1}"),
    ] {
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            let answer = ask(hob.port(), method, path, "");
            assert_eq!(answer.status, status, "{method} {path}");
            assert_eq!(answer.header("content-type"), media_type, "{method} {path}");
            let expected = if method == "HEAD" { "" } else { body };
            assert_eq!(answer.text(), expected, "{method} {path}");
        }
    }
    let answer = ask(hob.port(), "GET", "/json", "");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("server"), None);
    // 204 has no length and no body.
    let answer = ask(hob.port(), "GET", "/empty", "");
    assert_eq!(answer.header("content-length"), None);
    hob.stop();
}

#[test]
fn body_of_a_request_is_read_past_and_the_connection_kept() {
    let place = Place::new();
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/sink\"\nrespond = { body = \"thanks\" }\n",
    );
    let mut connection = Connection::open(hob.port()).unwrap();
    for body in [
        "Content-Length: 5\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n",
    ] {
        let request = format!("POST /sink HTTP/1.1\r\nHost: a\r\n{body}");
        connection.send(request.as_bytes()).unwrap();
        let answer = connection.read().unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "thanks"));
        assert_eq!(answer.header("connection"), None);
    }
    connection.send_ask("GET", "/hello.txt", "");
    assert_eq!(connection.read_last("GET").text(), "hello\n");
    hob.stop();
}

#[test]
fn body_of_a_fixed_answer_is_sent_also_where_the_site_has_an_error_page() {
    let place = Place::new();
    place.write("page.html", "page");
    let hob = place.serve_config_with(
        "",
        "error_pages = { 404 = \"page.html\", 410 = \"page.html\" }\n\
         [[site.route]]\npath = \"/gone\"\nrespond = { status = 410, body = \"own\" }\n\
         [[site.route]]\npath = \"/hidden\"\nrespond = { status = 404 }\n",
    );
    for (path, status, media_type, body) in [
        ("/gone", 410, "text/plain; charset=utf-8", "own"),
        // An answer without a body of its own gets the site's.
        ("/hidden", 404, "text/html; charset=utf-8", "page"),
        ("/missing", 404, "text/html; charset=utf-8", "page"),
    ] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_eq!((answer.status, answer.text().as_str()), (status, body));
        assert_eq!(answer.header("content-type"), Some(media_type), "{path}");
        let explained = place.run(&["explain", "--json", "GET", path]);
        let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
        let has_page = body == "page";
        assert_eq!(explained["answer"]["own_error_page"], has_page, "{path}");
    }
    hob.stop();
}
