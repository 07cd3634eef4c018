//! Which site answers: the host of the request, however it is written.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{Connection, ask, raw};
use harness::{Hob, Place};

/// Sites that say their own name.
fn config(names: &[&str]) -> String {
    let sites = names.iter().map(|name| {
        let names = match *name {
            "" => String::new(),
            name => format!("names = [\"{name}\"]\n"),
        };
        format!(
            "[[site]]\n{names}[[site.route]]\npath = \"/*\"\nrespond = {{ body = \"{name}\" }}\n"
        )
    });
    let listen = "[[listen]]\naddress = \"127.0.0.1:0\"\n".to_owned();
    listen + &sites.collect::<String>()
}

#[test]
fn exact_name_wins_over_the_longest_star_over_the_default() {
    let place = Place::new();
    let hob = place.serve_text(&config(&[
        "example.org",
        "*.example.org",
        "*.deep.example.org",
        "www.example.org",
        "[::1]",
        "",
    ]));
    for (host, site) in [
        ("example.org", "example.org"),
        ("EXAMPLE.org", "example.org"),
        ("example.org:8080", "example.org"),
        ("example.org:", "example.org"),
        ("example.org.", "example.org"),
        ("Example.Org.:443", "example.org"),
        ("www.example.org", "www.example.org"),
        ("a.example.org", "*.example.org"),
        ("a.b.example.org", "*.example.org"),
        ("a.deep.example.org", "*.deep.example.org"),
        ("deep.example.org", "*.example.org"),
        ("badexample.org", ""),
        ("other.test", ""),
        ("127.0.0.1", ""),
        ("[::1]:8080", "[::1]"),
        ("[0:0::1]", "[::1]"),
    ] {
        let answer = ask(hob.port(), "GET", "/", &format!("Host: {host}\r\n"));
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, site),
            "{host}"
        );
    }
    hob.stop();
}

/// Later versions have a host in every request.
#[test]
fn h1_only_request_without_a_host_is_for_the_default() {
    let place = Place::new();
    let hob = place.serve_text(&config(&["example.org", ""]));
    assert_eq!(ask(hob.port(), "GET", "/", "Host: \r\n").text(), "");
    let answer = raw(hob.port(), b"GET / HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    hob.stop();
}

#[test]
fn h1_only_host_in_the_target_is_the_one_of_the_field() {
    let place = Place::new();
    let hob = place.serve_text(&config(&["one.test", "two.test"]));
    for (target, host, site) in [
        ("http://two.test/", "two.test", "two.test"),
        ("HTTP://TWO.test:81/?a", "two.test:81", "two.test"),
        ("http://two.test", "two.test:80", "two.test"),
        ("/", "two.test", "two.test"),
    ] {
        let answer = ask(hob.port(), "GET", target, &format!("Host: {host}\r\n"));
        assert_eq!(answer.text(), site, "{target} {host}");
    }
    // One that names another is neither's.
    for request in [
        "GET http://two.test/ HTTP/1.1\r\nHost: one.test\r\n\r\n",
        "GET https://two.test/ HTTP/1.0\r\nHost: one.test\r\n\r\n",
        "GET http://two.test:81/ HTTP/1.1\r\nHost: two.test\r\n\r\n",
    ] {
        let answer = raw(hob.port(), request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request}: {answer}");
    }
    hob.stop();
}

/// About the field `Host`; the pseudo-header of later versions has unit tests in `http`.
#[test]
fn h1_only_host_that_is_missing_doubled_or_malformed_gets_400() {
    let place = Place::new();
    let hob = place.serve_config("");
    for fields in [
        "",
        "Host: a\r\nHost: a\r\n",
        "Host: a, b\r\n",
        "Host: a/b\r\n",
        "Host: user@a\r\n",
        "Host: a:b\r\n",
        "Host: [::1\r\n",
    ] {
        let request = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        let answer = raw(hob.port(), request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400 "), "{fields}: {answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    }
    hob.stop();
}

/// Two sites that have names, the first of which sends everybody elsewhere for good.
fn moved(keys: &str) -> String {
    format!(
        "{keys}\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[site]]\nnames = [\"moved.test\"]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/301\"\nredirect = {{ to = \"https://new.test{{uri}}\", status = 301 }}\n\
         [[site.route]]\npath = \"/308\"\nredirect = {{ to = \"/new\", status = 308 }}\n\
         [[site.route]]\npath = \"/303\"\nredirect = {{ to = \"/new\", status = 303 }}\n\
         [[site.route]]\npath = \"/program\"\ncgi = {{ script = \"moved.sh\", interpreters = {{ \".sh\" = \"sh\" }} }}\n\
         [[site]]\nnames = [\"two.test\"]\n[[site.route]]\npath = \"/*\"\nrespond = {{ body = \"two\" }}\n"
    )
}

fn place_of_moved() -> Place {
    let place = Place::new();
    std::fs::create_dir_all(place.path("site/folder")).unwrap();
    let program = "printf 'Status: 301\\nLocation: /new\\n\\n'\n";
    place.write("moved.sh", program);
    place
}

const MOVED: [(&str, u16, u16); 5] = [
    ("/301", 301, 302),
    ("/308", 308, 307),
    ("/303", 303, 303),
    ("/folder", 301, 302),
    ("/program", 301, 302),
];

#[test]
fn unknown_host_is_refused_where_each_site_has_names() {
    let place = place_of_moved();
    let hob = place.serve_text(&moved(""));
    for host in ["other.test", "other.test:80", "a.moved.test", "127.0.0.1"] {
        for path in ["/301", "/hello.txt", "/program", "/missing"] {
            let answer = ask(hob.port(), "GET", path, &format!("Host: {host}\r\n"));
            assert_eq!(answer.status, 421, "{host}{path}");
            assert_eq!(answer.header("location"), None);
        }
    }
    for (path, known, _) in MOVED {
        let answer = ask(hob.port(), "GET", path, "Host: moved.test\r\n");
        assert_eq!(answer.status, known, "{path}");
    }
    assert_eq!(
        ask(hob.port(), "GET", "/", "Host: two.test\r\n").text(),
        "two"
    );
    hob.stop();
}

#[test]
fn first_site_answers_unknown_hosts_by_choice_and_redirects_none_for_good() {
    let place = place_of_moved();
    let hob = place.serve_text(&moved("unknown_host = \"first\""));
    for (path, known, unknown) in MOVED {
        for (host, status) in [("moved.test", known), ("other.test", unknown)] {
            let answer = ask(hob.port(), "GET", path, &format!("Host: {host}\r\n"));
            assert_eq!(answer.status, status, "{host}{path}");
            assert!(answer.header("location").is_some(), "{host}{path}");
            let told = answer.text().contains("Permanent");
            assert_eq!(
                told,
                [301, 308].contains(&status) && path != "/program",
                "{host}{path}"
            );
        }
    }
    let answer = ask(hob.port(), "GET", "/hello.txt", "Host: other.test\r\n");
    assert_eq!(answer.status, 200);
    hob.stop();
}

/// Clients of later versions send a host with every request.
#[test]
fn h1_only_who_names_no_host_asks_for_the_first_site() {
    let place = place_of_moved();
    let hob = place.serve_text(&moved(""));
    let answer = raw(hob.port(), b"GET /hello.txt HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    hob.stop();
}

/// It is about clear text.
#[test]
fn h1_only_https_only_sends_unknown_hosts_nowhere_for_good() {
    let place = Place::new();
    let text = "unknown_host = \"first\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
                [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\
                [[site]]\nnames = [\"one.test\"]\nroot = \"site\"\nhttps_only = true\n";
    let hob = place.serve_text(text);
    let port = hob.port();
    for (host, get, post) in [("one.test", 301, 308), ("other.test", 302, 307)] {
        for (method, status) in [("GET", get), ("POST", post)] {
            let answer = ask(port, method, "/x", &format!("Host: {host}\r\n"));
            assert_eq!(answer.status, status, "{method} {host}");
        }
    }
    hob.stop();
}

/// Where a request for this host and target is sent, with its status; from the host on.
fn sent_to(hob: &Hob, method: &str, host: &str, target: &str) -> (u16, String) {
    let fields = format!("Host: {host}\r\nContent-Length: 0\r\n");
    let answer = ask(hob.port(), method, target, &fields);
    let location = answer.header("location").unwrap_or_default();
    let location = location.strip_prefix("https:").unwrap_or(location);
    let location = location.strip_prefix("http:").unwrap_or(location);
    (answer.status, location.to_owned())
}

#[test]
fn of_two_names_that_differ_by_www_one_is_used() {
    let place = Place::new();
    let site = |name: &str, keys: &str| {
        format!(
            "[[site]]\nnames = [\"{name}\", \"www.{name}\"]\n{keys}\n[[site.route]]\n\
             path = \"/*\"\nrespond = {{ body = \"{name}\" }}\n"
        )
    };
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{}{}{}",
        site("drop.test", "www = \"drop\""),
        site("add.test", "www = \"add\""),
        site("keep.test", ""),
    ));
    let to = |status: u16, location: &str| (status, location.to_owned());
    for (method, host, target, expected) in [
        ("GET", "www.drop.test", "/", to(301, "//drop.test/")),
        ("HEAD", "www.drop.test", "/a", to(301, "//drop.test/a")),
        ("POST", "www.drop.test", "/a", to(308, "//drop.test/a")),
        (
            "GET",
            "WWW.Drop.test.",
            "/a?b=C",
            to(301, "//drop.test/a?b=C"),
        ),
        (
            "GET",
            "www.drop.test:8080",
            "/a%20b",
            to(301, "//drop.test:8080/a%20b"),
        ),
        ("GET", "drop.test", "/", to(200, "")),
        ("GET", "add.test", "/A", to(301, "//www.add.test/A")),
        ("GET", "www.add.test", "/", to(200, "")),
        ("GET", "keep.test", "/", to(200, "")),
        ("GET", "www.keep.test", "/", to(200, "")),
        ("GET", "www.www.drop.test", "/", to(421, "")),
    ] {
        assert_eq!(
            sent_to(&hob, method, host, target),
            expected,
            "{method} {host} {target}"
        );
    }
    hob.stop();
}

#[test]
fn paths_with_capital_letters_are_sent_to_the_same_in_lower_case() {
    let place = Place::new();
    let hob = place.serve_config_with("", "path_case = \"lower\"\n");
    let to = |status: u16, location: &str| (status, location.to_owned());
    for (target, expected) in [
        ("/Hello.TXT", to(301, "/hello.txt")),
        (
            "/Hello.TXT?Name=Ann%20B",
            to(301, "/hello.txt?Name=Ann%20B"),
        ),
        ("/%48ello.txt", to(301, "/hello.txt")),
        ("/a%2FB", to(301, "/a%2Fb")),
        ("//Evil.test/x", to(301, "/evil.test/x")),
        ("/%C3%84", to(404, "")),
        ("/hello.txt?A", to(200, "")),
    ] {
        assert_eq!(
            sent_to(&hob, "GET", "localhost", target),
            expected,
            "{target}"
        );
    }
    assert_eq!(sent_to(&hob, "PUT", "localhost", "/A").0, 308);
    hob.stop();
}

/// Of two listeners, the first of which is a port.
const TWO_LISTENERS: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\n\
    address = \"unix:run/web.sock\"\n";
const PORT: &str = "listener = [\"127.0.0.1:0\"]";
const SOCKET: &str = "listener = [\"unix:run/web.sock\"]";

/// A site that answers everything with its body.
fn said(body: &str, names: &[&str], keys: &str) -> String {
    let names = match names {
        [] => String::new(),
        names => format!("names = {names:?}\n"),
    };
    format!(
        "[[site]]\n{names}{keys}\n[[site.route]]\npath = \"/*\"\nrespond = {{ body = \"{body}\" }}\n"
    )
}

/// The status and the body that the port gives for a host, and the socket.
fn by_both(place: &Place, hob: &Hob, host: &str) -> [(u16, String); 2] {
    let of = |answer: harness::client::Answer| {
        let body = if answer.status == 200 {
            answer.text()
        } else {
            String::new()
        };
        (answer.status, body)
    };
    let mut socket = Connection::open_unix(&place.path("run/web.sock")).unwrap();
    let field = format!("Host: {host}\r\n");
    socket
        .send(format!("GET / HTTP/1.1\r\n{field}\r\n").as_bytes())
        .unwrap();
    [
        of(ask(hob.port(), "GET", "/", &field)),
        of(socket.read().unwrap()),
    ]
}

#[test]
fn site_answers_on_its_listeners_alone() {
    let place = Place::new();
    let config = format!(
        "{TWO_LISTENERS}{}{}{}{}{}",
        said("outer", &["same.test"], PORT),
        said("inner", &["same.test", "*.inner.test"], SOCKET),
        said("both", &["both.test"], ""),
        said(
            "either",
            &["either.test"],
            "listener = [\"unix:run/web.sock\", \"127.0.0.1:0\"]"
        ),
        said("rest", &[], PORT),
    );
    let hob = place.serve_text(&config);
    let is = |status: u16, body: &str| (status, body.to_owned());
    for (host, port, socket) in [
        ("same.test", is(200, "outer"), is(200, "inner")),
        ("SAME.test.", is(200, "outer"), is(200, "inner")),
        ("a.inner.test", is(200, "rest"), is(200, "inner")),
        ("both.test", is(200, "both"), is(200, "both")),
        ("either.test", is(200, "either"), is(200, "either")),
        // Each listener has its own default, or none.
        ("other.test", is(200, "rest"), is(421, "")),
    ] {
        assert_eq!(by_both(&place, &hob, host), [port, socket], "{host}");
    }
    // After a reload they are where they are said to be then.
    let swapped = config
        .replace(PORT, "(port)")
        .replace(SOCKET, PORT)
        .replace("(port)", SOCKET);
    place.write("hob.toml", &swapped);
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", harness::text_of(&reload));
    assert_eq!(
        by_both(&place, &hob, "same.test"),
        [is(200, "inner"), is(200, "outer")]
    );
    assert_eq!(
        by_both(&place, &hob, "other.test"),
        [is(421, ""), is(200, "rest")]
    );
    hob.stop();
}

#[test]
fn listener_without_a_site_knows_no_host() {
    let place = Place::new();
    let hob = place.serve_text(&format!("{TWO_LISTENERS}{}", said("port", &[], PORT)));
    let [port, socket] = by_both(&place, &hob, "a.test");
    assert_eq!((port.0, socket.0), (200, 421));
    // Who names no host is for nobody here, too.
    let mut socket = Connection::open_unix(&place.path("run/web.sock")).unwrap();
    socket.send(b"GET / HTTP/1.1\r\nHost:\r\n\r\n").unwrap();
    assert_eq!(socket.read().unwrap().status, 421);
    assert!(hob.printed().contains("no site answers on this listener"));
    hob.stop();
    // The first site of the listener is that of unknown hosts, by choice.
    let hob = place.serve_text(&format!(
        "unknown_host = \"first\"\n{TWO_LISTENERS}{}{}",
        said("port", &["a.test"], PORT),
        said("socket", &["b.test"], SOCKET),
    ));
    let is = |body: &str| (200, body.to_owned());
    assert_eq!(by_both(&place, &hob, "c.test"), [is("port"), is("socket")]);
    assert_eq!(by_both(&place, &hob, "a.test"), [is("port"), is("socket")]);
    hob.stop();
}

#[test]
fn explain_asks_the_sites_of_the_listener() {
    let place = Place::new();
    let listen =
        "[[listen]]\naddress = \"127.0.0.1:8081\"\n[[listen]]\naddress = \"127.0.0.1:8082\"\n";
    place.write(
        "hob.toml",
        &format!(
            "{listen}{}{}",
            said("one", &["same.test"], "listener = [\"127.0.0.1:8081\"]"),
            said("two", &["same.test"], "listener = [\"127.0.0.1:8082\"]"),
        ),
    );
    let explain = |url: &str| {
        let told = harness::text_of(&place.run(&["explain", url, "--header", "Host: same.test"]));
        ["hob.toml:5)", "hob.toml:11)"].map(|place| told.contains(place))
    };
    assert_eq!(explain("http://127.0.0.1:8081/"), [true, false]);
    assert_eq!(explain("http://127.0.0.1:8082/"), [false, true]);
}

#[test]
fn slash_at_the_end_is_added_or_dropped() {
    let place = Place::new();
    let route = |path: &str, keys: &str| {
        format!("[[site.route]]\npath = \"{path}\"\nrespond = {{ body = \"x\" }}\n{keys}\n")
    };
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nnames = [\"drop.test\"]\n\
         slash = \"drop\"\n{}{}{}[[site.route]]\npath = \"/files/*\"\nfiles = \"site\"\n\
         rewrite = \"/hello.txt\"\n{}\
         [[site]]\nnames = [\"add.test\"]\nslash = \"add\"\n{}{}[[site.route]]\n\
         path = \"/own/*\"\nslash = \"drop\"\nrespond = {{ body = \"x\" }}\n{}",
        route("/keep/*", "slash = \"keep\""),
        route("/only/*", ""),
        route("/in/*", "internal = true"),
        route("/*", "when = { method = [\"GET\", \"HEAD\", \"POST\"] }"),
        route("/leaf/{name}", ""),
        route("/back", "slash = \"drop\""),
        route("/*", ""),
    ));
    let to = |status: u16, location: &str| (status, location.to_owned());
    for (method, host, target, expected) in [
        ("GET", "drop.test", "/a/", to(301, "/a")),
        ("HEAD", "drop.test", "/a/b/?c=d/", to(301, "/a/b?c=d/")),
        ("POST", "drop.test", "/a/", to(308, "/a")),
        ("GET", "drop.test", "/a", to(200, "")),
        ("GET", "drop.test", "/", to(200, "")),
        ("GET", "drop.test", "//", to(200, "")),
        // No other server is ever named.
        ("GET", "drop.test", "//evil.test/", to(301, "/evil.test")),
        ("GET", "drop.test", "/%5Cevil.test/", to(400, "")),
        (
            "GET",
            "drop.test",
            "/%2Fevil.test/",
            to(301, "/%2Fevil.test"),
        ),
        ("GET", "drop.test", "/a%20b/", to(301, "/a%20b")),
        ("GET", "drop.test", "/a%0d%0aX:%20y/", to(400, "")),
        ("GET", "drop.test", "/keep/a/", to(200, "")),
        // Without its slash this one comes to another route, which is of the same mind.
        ("GET", "drop.test", "/only/", to(301, "/only")),
        ("GET", "drop.test", "/in/", to(404, "")),
        ("GET", "drop.test", "/files/", to(200, "")),
        ("GET", "add.test", "/a", to(301, "/a/")),
        ("GET", "add.test", "/a?b", to(301, "/a/?b")),
        ("PUT", "add.test", "/a/b", to(308, "/a/b/")),
        ("GET", "add.test", "/a/b/", to(200, "")),
        ("GET", "add.test", "/app.css", to(200, "")),
        ("GET", "add.test", "//evil", to(301, "/evil/")),
        ("GET", "add.test", "/leaf/ann", to(301, "/leaf/ann/")),
        ("GET", "add.test", "/own/a/", to(301, "/own/a")),
        ("GET", "add.test", "/own/a", to(200, "")),
        // Who would send it back is not asked.
        ("GET", "add.test", "/back", to(200, "")),
    ] {
        assert_eq!(
            sent_to(&hob, method, host, target),
            expected,
            "{method} {host} {target}"
        );
    }
    let told = harness::text_of(&place.run(&["explain", "http://drop.test/a/"]));
    assert!(
        told.contains("`slash`: the route uses another form of the path"),
        "{told}"
    );
    hob.stop();
}
