//! Redirects from the config: where they lead, with which status, and that no request bends them.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{ask, raw};
use harness::{Hob, Place, text_of};

/// Serves one route.
fn serve(place: &Place, path: &str, redirect: &str) -> Hob {
    let route = format!("[[site.route]]\npath = \"{path}\"\nredirect = {redirect}\n");
    place.serve_config_with("", &route)
}

/// What `Location` says to a request for this target.
fn location(hob: &Hob, target: &str) -> String {
    let answer = ask(hob.port(), "GET", target, "");
    assert_eq!(answer.status, 302, "{target}");
    answer.header("location").unwrap().to_owned()
}

#[test]
fn captures_path_query_and_host_are_filled_in() {
    let place = Place::new();
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/user/{name}/posts\"\nredirect = \"/posts?by={name}\"\n\
         [[site.route]]\npath = \"/old/{rest*}\"\nredirect = \"/new/{rest}\"\n\
         [[site.route]]\npath = \"/away/*\"\nredirect = \"https://example.org{path}?{query}\"\n\
         [[site.route]]\npath = \"/safe/*\"\nredirect = \"https://{host}{path}\"\n\
         [[site.route]]\npath = \"/whole/*\"\nredirect = \"https://example.org{uri}\"\n\
         [[site.route]]\npath = \"/login\"\nredirect = \"/in?next={uri}\"\n\
         [[site.route]]\npath = \"/plain\"\nredirect = \"/hello.txt\"\n",
    );
    for (target, to) in [
        ("/user/ann/posts", "/posts?by=ann"),
        ("/user/a%26b%3Dc/posts", "/posts?by=a%26b%3Dc"),
        ("/old/a/b%20c", "/new/a/b%20c"),
        (
            "/away/x?a=1&b=%0d%0a",
            "https://example.org/away/x?a=1&b=%0d%0a",
        ),
        (
            "/whole/a%20b%2fc?x=%41&y",
            "https://example.org/whole/a%20b%2fc?x=%41&y",
        ),
        ("/whole/?", "https://example.org/whole/?"),
        ("/login?x=1&y=2", "/in?next=%2Flogin%3Fx%3D1%26y%3D2"),
        ("/safe/y", "https://localhost/safe/y"),
        ("/plain?q=1", "/hello.txt"),
    ] {
        assert_eq!(location(&hob, target), to, "{target}");
    }
    let answer = ask(hob.port(), "GET", "/safe/y", "Host: Example.org:8080\r\n");
    let to = answer.header("location").unwrap().to_ascii_lowercase();
    assert_eq!(to, "https://example.org/safe/y");
    hob.stop();
}

#[test]
fn status_is_302_unless_the_route_says_otherwise_and_the_page_links_there() {
    let place = Place::new();
    let statuses = [301, 302, 303, 307, 308];
    let routes = statuses.map(|status| {
        format!(
            "[[site.route]]\npath = \"/{status}\"\nredirect = {{ to = \"/x\", status = {status} }}\n\
             headers = {{ Cache-Control = \"no-store\" }}\n"
        )
    });
    let hob = place.serve_config_with("", &routes.concat());
    for status in statuses {
        for method in ["GET", "HEAD", "POST"] {
            let answer = ask(hob.port(), method, &format!("/{status}"), "");
            assert_eq!(answer.status, status, "{method}");
            assert_eq!(answer.header("location"), Some("/x"));
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert_eq!(answer.text().contains("href=\"/x\""), method != "HEAD");
        }
    }
    hob.stop();
}

#[test]
fn no_request_adds_a_line_or_another_host() {
    let place = Place::new();
    let hob = serve(&place, "/go/{rest*}", "\"/{rest}\"");
    // Line ends never come as far as the route.
    for target in ["/go/a%0d%0aSet-Cookie:%20a", "/go/%0a", "/go/%00"] {
        let answer = ask(hob.port(), "GET", target, "");
        assert_eq!(answer.status, 400, "{target}");
        assert_eq!(answer.header("set-cookie"), None);
        assert_eq!(answer.header("location"), None);
    }
    // A path stays a path of this host.
    assert_eq!(location(&hob, "/go//evil.example/"), "/evil.example/");
    assert_eq!(location(&hob, "/go/"), "/");
    assert_eq!(location(&hob, "/go/%23a%3Fb"), "/%23a%3Fb");
    hob.stop();
}

/// The clients that carry tests over HTTP/2 and 3 send no malformed host, and none without one.
#[test]
fn h1_only_malformed_host_is_not_led_to() {
    let place = Place::new();
    let hob = serve(&place, "/go/*", "\"https://{host}/in\"");
    for host in [
        "evil.example/",
        "a@evil.example",
        "a b",
        "a\\b",
        "a?b",
        "a#b",
    ] {
        let answer = ask(hob.port(), "GET", "/go/", &format!("Host: {host}\r\n"));
        assert_eq!(answer.status, 400, "{host}");
    }
    // There is no host to lead to.
    let answer = raw(hob.port(), b"GET /go/ HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    hob.stop();
}

/// Serves a site of files with these routes.
fn serve_slashes(place: &Place, routes: &str) -> Hob {
    let program = "printf 'Content-Type: text/plain\\n\\n%s' \"$SCRIPT_NAME\"\n";
    place.write("notes.sh", program);
    place.serve_config_with("", routes)
}

#[test]
fn path_that_only_lacks_a_slash_is_sent_there() {
    let place = Place::new();
    place.write("site/taken", "a file");
    place.write("site/index.html", "home");
    let hob = serve_slashes(
        &place,
        "[site.files]\nfallback = \"index.html\"\n\
         [[site.route]]\npath = \"/notes/*\"\ncgi = { script = \"notes.sh\", interpreters = { \".sh\" = \"sh\" } }\n\
         [[site.route]]\npath = \"/of/{name}/*\"\nrespond = { body = \"of\" }\n\
         [[site.route]]\npath = \"/old/{rest*}\"\nredirect = \"/new/{rest}\"\n\
         [[site.route]]\npath = \"/own\"\nrespond = { body = \"own\" }\n\
         [[site.route]]\npath = \"/own/*\"\nrespond = { body = \"below\" }\n\
         [[site.route]]\npath = \"/taken/*\"\nrespond = { body = \"below\" }\n\
         [[site.route]]\npath = \"/exact/*\"\nstrict = true\nrespond = { body = \"below\" }\n\
         [[site.route]]\npath = \"/inner/*\"\ninternal = true\nrespond = { body = \"below\" }\n\
         [[site.route]]\npath = \"*.php\"\nrespond = { body = \"php\" }\n",
    );
    for (target, to) in [
        ("/notes", "/notes/"),
        ("/notes?a=1&b=%2F", "/notes/?a=1&b=%2F"),
        ("/of/ann", "/of/ann/"),
        ("/old", "/old/"),
    ] {
        for (method, status) in [("GET", 301), ("HEAD", 301), ("POST", 308), ("PUT", 308)] {
            let answer = ask(hob.port(), method, target, "");
            assert_eq!(answer.status, status, "{method} {target}");
            assert_eq!(answer.header("location"), Some(to), "{method} {target}");
        }
    }
    // What answers as it came goes nowhere, and neither does what nothing answers below.
    for (target, text) in [
        ("/notes/", "/notes"),
        ("/own", "own"),
        ("/own/", "below"),
        ("/taken", "a file"),
        ("/exact", "home"),
        ("/inner", "home"),
        ("/of", "home"),
        ("/a.php", "php"),
    ] {
        let answer = ask(hob.port(), "GET", target, "");
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, text),
            "{target}"
        );
    }
    hob.stop();
}

#[test]
fn slash_is_added_where_the_site_has_no_files() {
    let place = Place::new();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n\
         [[site.route]]\npath = \"/notes/*\"\nrespond = { body = \"notes\" }\n\
         [[site.route]]\npath = \"/exact/*\"\nstrict = true\nrespond = { body = \"below\" }\n",
    );
    for (method, status) in [("GET", 301), ("DELETE", 308)] {
        let answer = ask(hob.port(), method, "/notes?q", "");
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("location"), Some("/notes/?q"));
    }
    for path in ["/exact", "/other", "/"] {
        assert_eq!(ask(hob.port(), "GET", path, "").status, 404, "{path}");
    }
    hob.stop();
}

#[test]
fn paths_of_a_list_are_sent_where_they_have_moved() {
    let place = Place::new();
    let list = "# what was where\n/old /hello.txt\n/caf%C3%A9 https://b.test/menu?day=1 308\n\
                /hello.txt/x /y 302\n";
    place.write("moved.txt", list);
    let hob = place.serve_config_with("", "redirects = \"moved.txt\"\n");
    let to = |method: &str, target: &str| {
        let answer = ask(hob.port(), method, target, "");
        (answer.status, answer.header("location").map(str::to_owned))
    };
    let moved = |status, place: &str| (status, Some(place.to_owned()));
    assert_eq!(to("GET", "/old"), moved(301, "/hello.txt"));
    assert_eq!(to("HEAD", "/old?a=b"), moved(301, "/hello.txt?a=b"));
    assert_eq!(to("POST", "//./old"), moved(301, "/hello.txt"));
    assert_eq!(
        to("GET", "/caf%c3%a9?a"),
        moved(308, "https://b.test/menu?day=1")
    );
    assert_eq!(to("GET", "/hello.txt/x"), moved(302, "/y"));
    assert_eq!(to("GET", "/hello.txt").0, 200);
    assert_eq!(to("GET", "/old/"), (404, None));
    let explained = text_of(&place.run(&["explain", "/old"]));
    for told in ["301", "Location: /hello.txt", "moved.txt:2"] {
        assert!(explained.contains(told), "{explained}");
    }
    hob.stop();
}

#[test]
fn list_of_many_paths_is_read_again_and_a_wrong_one_leaves_the_old_one() {
    let place = Place::new();
    let list = |to: &str| -> String {
        let lines = (0..100_000).map(|at| format!("/old/page-{at}.html /{to}/{at}\n"));
        lines.collect()
    };
    place.write("moved.txt", &list("new"));
    let hob = place.serve_config_with("", "redirects = { file = \"moved.txt\", status = 302 }\n");
    assert_eq!(location(&hob, "/old/page-0.html"), "/new/0");
    assert_eq!(location(&hob, "/old/page-99999.html?q"), "/new/99999?q");
    place.write(
        "moved.txt",
        &format!("{}/old/page-5.html /again\n", list("other")),
    );
    let refused = place.run(&["reload"]);
    let text = text_of(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(
        text.contains("line 100001: \"/old/page-5.html\" stands in line 6 already"),
        "{text}"
    );
    assert_eq!(location(&hob, "/old/page-7.html"), "/new/7");
    place.write("moved.txt", &list("other"));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation");
    assert_eq!(location(&hob, "/old/page-7.html"), "/other/7");
    hob.stop();
}
