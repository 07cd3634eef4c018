//! `when`: which requests for its path a route answers, and who answers the others. That no way
//! leads around a route's rules is asked here, too.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{Connection, ask};
use harness::site::{TOP, ask_from, ask_from_with, record};
use harness::{Hob, Place, text_of};

/// A route that answers with a word, with more keys of its own.
fn route(path: &str, word: &str, more: &str) -> String {
    format!("[[site.route]]\npath = \"{path}\"\nrespond = {{ body = \"{word}\" }}\n{more}\n")
}

/// The same for some requests.
fn some(path: &str, word: &str, when: &str) -> String {
    route(path, word, &format!("when = {{ {when} }}"))
}

fn serve(place: &Place, routes: &[String]) -> Hob {
    place.serve_text(&format!("{TOP}{}", routes.concat()))
}

/// What answers a GET with these fields.
fn answered(hob: &Hob, target: &str, fields: &str) -> String {
    ask(hob.port(), "GET", target, fields).text()
}

fn reload(place: &Place, hob: &Hob, generation: u32, text: &str) {
    place.write("hob.toml", text);
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for(&format!("reloaded, generation {generation}"));
}

#[test]
fn method_chooses_among_routes_of_one_path() {
    let place = Place::new();
    place.folder("cgi");
    let echo = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nprogram'\n";
    place.script("cgi/echo", echo);
    let program = "[[site.route]]\npath = \"/form\"\ncgi = { script = \"cgi/echo\" }\n\
                   when = { method = [\"POST\"] }\n";
    let routes = [
        program.to_owned(),
        some("/form", "read", "method = [\"GET\"]"),
        route("/form", "rest", ""),
    ];
    let hob = serve(&place, &routes);
    let asked = |method: &str| ask(hob.port(), method, "/form", "Content-Length: 0\r\n");
    assert_eq!(asked("POST").text(), "program");
    assert_eq!(asked("GET").text(), "read");
    // HEAD goes along with GET: its length is that of the same answer.
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send_ask("HEAD", "/form", "");
    let (status, headers) = connection.read_head().unwrap();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    assert_eq!(status, 200);
    assert_eq!(length.map(|(_, value)| value.as_str()), Some("4"));
    assert_eq!(asked("PUT").text(), "rest");
    hob.stop();
}

#[test]
fn route_whose_condition_does_not_hold_is_as_if_it_were_not_there() {
    let place = Place::new();
    let routes = [
        some("/a/b", "exact", "query = { r = \"exact\" }"),
        some("/a/{x}", "capture", "query = { r = \"capture\" }"),
        some("/a/*", "below", "query = { r = \"below\" }"),
        some("/a/*", "below again", "query = { r = \"again\" }"),
        some("*.nothing", "ending", "query = { r = \"ending\" }"),
        some("/none/*", "none", "query = { r = \"none\" }"),
    ];
    let hob = serve(&place, &routes);
    for (target, expected) in [
        ("/a/b?r=exact", "exact"),
        ("/a/b?r=capture", "capture"),
        ("/a/b?r=below", "below"),
        ("/a/b?r=again", "below again"),
        ("/none/x?r=none", "none"),
        // What is left is the site's files.
        ("/hello.txt?r=none", "hello\n"),
    ] {
        assert_eq!(answered(&hob, target, ""), expected, "{target}");
    }
    for target in ["/a/b?r=x", "/a/b", "/none/x", "/a/c?r=exact"] {
        assert_eq!(ask(hob.port(), "GET", target, "").status, 404, "{target}");
    }
    // A folder's slash is asked for where the route behind it answers.
    let slash = ask(hob.port(), "GET", "/none?r=none", "");
    assert_eq!(
        (slash.status, slash.header("location")),
        (301, Some("/none/?r=none"))
    );
    assert_eq!(ask(hob.port(), "GET", "/none", "").status, 404);
    hob.stop();
}

#[test]
fn fields_queries_and_cookies_are_compared_by_name_and_value() {
    let place = Place::new();
    let routes = [
        some("/x", "one", "field = { X-Beta = \"1\" }"),
        some("/x", "some", "field = { x-beta = \"*\" }"),
        some("/x", "mobile", "field = { User-Agent = \"*Mobile*\" }"),
        some("/x", "json", "query = { format = \"json\" }"),
        some("/x", "tea", "query = { q = \"green tea\" }"),
        some("/x", "flag", "query = { flag = \"*\" }"),
        some("/x", "b", "cookie = { ab = \"b\" }"),
        some("/x", "sid", "cookie = { sid = \"s-*\" }"),
        route("/x", "rest", ""),
    ];
    let hob = serve(&place, &routes);
    for (target, fields, expected) in [
        ("/x", "X-BETA: 1\r\n", "one"),
        ("/x", "x-beta: 2\r\n", "some"),
        ("/x", "X-Beta: 2\r\nX-Beta: 1\r\n", "one"),
        ("/x", "X-Beta2: 1\r\n", "rest"),
        ("/x", "User-Agent: Tin (Mobile; 1)\r\n", "mobile"),
        ("/x", "User-Agent: Tin (mobile; 1)\r\n", "rest"),
        ("/x?format=json", "", "json"),
        ("/x?a=1&format=js%6Fn&format=xml", "", "json"),
        ("/x?format=xml&format=json", "", "rest"),
        ("/x?q=green+tea", "", "tea"),
        ("/x?q=green%20tea", "", "tea"),
        ("/x?q=green", "", "rest"),
        ("/x?flag", "", "flag"),
        ("/x?fl%61g=", "", "flag"),
        ("/x?flags", "", "rest"),
        ("/x", "Cookie: a=1; ab=b; c=2\r\n", "b"),
        ("/x", "Cookie: ab=a; ab=b\r\n", "rest"),
        ("/x", "Cookie: xab=b\r\n", "rest"),
        ("/x", "Cookie: sid=s-17\r\n", "sid"),
        ("/x", "Cookie: sid=t-17\r\n", "rest"),
        ("/x", "", "rest"),
    ] {
        assert_eq!(
            answered(&hob, target, fields),
            expected,
            "{target} {fields}"
        );
    }
    hob.stop();
}

#[test]
fn all_that_is_said_has_to_hold() {
    let place = Place::new();
    let when = "method = [\"GET\", \"PUT\"], host = [\"a.test\", \"*.b.test\"], \
                field = { X-Beta = \"1\", X-Gamma = \"*\" }, query = { format = \"json\" }, \
                cookie = { ab = \"b\" }, address = [\"10.0.0.0/8\", \"2001:db8::/32\"]";
    let hob = serve(&place, &[some("/x", "all", when), route("/x", "rest", "")]);
    let full = [
        ("Host", "a.test"),
        ("X-Beta", "1"),
        ("X-Gamma", "g"),
        ("Cookie", "ab=b"),
        ("X-Forwarded-For", "10.1.2.3"),
    ];
    let ask = |target: &str, changed: (&str, &str)| {
        let value = |(name, value)| match changed {
            (other, new) if other == name => (name, new),
            _ => (name, value),
        };
        let fields = full.iter().map(|pair| value(*pair));
        let fields = fields.filter(|(_, value)| !value.is_empty());
        let lines: String = fields
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        ask(hob.port(), "GET", target, &lines).text()
    };
    for changed in [
        ("", ""),
        ("Host", "A.test:8080"),
        ("Host", "shop.b.test"),
        ("X-Forwarded-For", "2001:db8::7"),
    ] {
        assert_eq!(ask("/x?format=json", changed), "all", "{changed:?}");
    }
    assert_eq!(ask("/x", ("", "")), "rest");
    for changed in [
        ("Host", "c.test"),
        ("Host", "b.test"),
        ("X-Beta", "2"),
        ("X-Gamma", ""),
        ("Cookie", "ab=c"),
        ("Cookie", ""),
        ("X-Forwarded-For", "192.0.2.1"),
    ] {
        assert_eq!(ask("/x?format=json", changed), "rest", "{changed:?}");
    }
    hob.stop();
}

#[test]
fn way_that_a_request_comes_decides() {
    let place = Place::new();
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"unix:run/web.sock\"\n\
         [[site]]\nroot = \"site\"\n{}{}{}{}{}",
        some("/by", "socket", "listener = [\"unix:run/web.sock\"]"),
        some("/by", "port", "listener = [\"127.0.0.1:0\"]"),
        some("/from", "unix", "address = [\"unix\"]"),
        some("/from", "loopback", "address = [\"127.0.0.1\"]"),
        some("/tls", "secure", "tls = true"),
    );
    let hob = place.serve_text(&format!("{text}{}", some("/tls", "clear", "tls = false")));
    let socket = |target: &str| {
        let mut connection = Connection::open_unix(&place.path("run/web.sock")).unwrap();
        connection.send_get(target).unwrap();
        let (_, headers) = connection.read_head().unwrap();
        String::from_utf8(connection.read_body(&headers).unwrap()).unwrap()
    };
    assert_eq!(answered(&hob, "/by", ""), "port");
    assert_eq!(socket("/by"), "socket");
    assert_eq!(answered(&hob, "/from", ""), "loopback");
    assert_eq!(socket("/from"), "unix");
    assert_eq!(socket("/tls"), "clear");
    let scheme = harness::over::Protocol::tested().scheme();
    let expected = if scheme == "https" { "secure" } else { "clear" };
    assert_eq!(answered(&hob, "/tls", ""), expected);
    hob.stop();
}

#[test]
fn tls_that_a_trusted_proxy_speaks_is_tls() {
    let place = Place::new();
    let routes = [some("/x", "secure", "tls = true"), route("/x", "clear", "")];
    let hob = serve(&place, &routes);
    let ask = |fields| ask_from_with(&hob, "192.0.2.1", "/x", fields).text();
    assert_eq!(ask("X-Forwarded-Proto: https\r\n"), "secure");
    assert_eq!(ask("X-Forwarded-Proto: http\r\n"), "clear");
    hob.stop();
}

/// Addresses that differ in all their bytes.
fn address(number: u32) -> String {
    let [a, b, c, d] = (0x0b00_0000 + number * 70_001).to_be_bytes();
    format!("{a}.{b}.{c}.{d}")
}

#[test]
fn share_is_near_what_it_says_and_each_client_stays() {
    const CLIENTS: u32 = 2_000;
    let place = Place::new();
    let config = |share: &str| {
        let new = some("/app/*", "new", &format!("share = \"{share}\""));
        format!("{TOP}{new}{}", route("/app/*", "old", ""))
    };
    let hob = place.serve_text(&config("10%"));
    // One connection for all: the field says who asks.
    let sides = || {
        let mut connection = Connection::open(hob.port()).unwrap();
        let mut sides = Vec::new();
        for number in 0..CLIENTS {
            let client = address(number);
            let head = format!(
                "GET /app/{number} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {client}\r\n\r\n"
            );
            connection.send(head.as_bytes()).unwrap();
            let (status, headers) = connection.read_head().unwrap();
            assert_eq!(status, 200);
            let body = connection.read_body(&headers).unwrap();
            sides.push(match &body[..] {
                b"new" => true,
                b"old" => false,
                other => panic!("{other:?}"),
            });
        }
        sides
    };
    let count = |sides: &[bool]| sides.iter().filter(|is_new| **is_new).count();
    let tenth = sides();
    // Five times what chance makes of 200 in 2,000; the places of clients never change.
    assert!((133..=267).contains(&count(&tenth)), "{}", count(&tenth));
    assert_eq!(sides(), tenth);
    reload(&place, &hob, 2, &config("30%"));
    let third = sides();
    assert!((497..=703).contains(&count(&third)), "{}", count(&third));
    let has_left = |(was, is): (&bool, &bool)| *was && !is;
    assert!(
        !tenth.iter().zip(&third).any(has_left),
        "a larger share has all of the smaller"
    );
    reload(&place, &hob, 3, &config("0%"));
    assert_eq!(count(&sides()), 0);
    reload(&place, &hob, 4, &config("100%"));
    assert_eq!(count(&sides()), CLIENTS as usize);
    hob.stop();
    // Another start, and whatever else is asked: the same side.
    let again = place.serve_text(&config("10%"));
    for number in 0..100 {
        let answer = ask_from_with(&again, &address(number), "/app/x?y", "Cookie: a=b\r\n");
        assert_eq!(answer.text() == "new", tenth[number as usize], "{number}");
    }
    again.stop();
}

#[test]
fn shares_of_several_routes_count_from_the_same_client() {
    let place = Place::new();
    let routes = [
        some("/x", "first", "share = \"10%\""),
        some("/x", "second", "share = \"30%\""),
        route("/x", "rest", ""),
        some("/y", "first", "share = \"10%\""),
        route("/y", "rest", ""),
    ];
    let hob = serve(&place, &routes);
    let (mut first, mut second) = (0, 0);
    for number in 0..400 {
        let client = address(number);
        let word = ask_from(&hob, &client, "/x").text();
        first += usize::from(word == "first");
        second += usize::from(word == "second");
        let other = ask_from(&hob, &client, "/y").text();
        assert_eq!(other == "first", word == "first", "{client}");
    }
    assert!((10..=70).contains(&first), "{first}");
    assert!((40..=120).contains(&second), "{second}");
    hob.stop();
}

#[test]
fn reload_brings_other_conditions() {
    let place = Place::new();
    let config = |value: &str| {
        let some = some("/x", "some", &format!("field = {{ X-Beta = \"{value}\" }}"));
        format!("{TOP}{some}{}", route("/x", "rest", ""))
    };
    let hob = place.serve_text(&config("1"));
    let both = || ["X-Beta: 1\r\n", "X-Beta: 2\r\n"].map(|fields| answered(&hob, "/x", fields));
    assert_eq!(both(), ["some", "rest"]);
    reload(&place, &hob, 2, &config("2"));
    assert_eq!(both(), ["rest", "some"]);
    reload(
        &place,
        &hob,
        3,
        &format!("{TOP}{}", route("/x", "rest", "")),
    );
    assert_eq!(both(), ["rest", "rest"]);
    hob.stop();
}

/// Text of files that not everybody may have.
const INNER: &str = "for us alone\n";

/// A site whose folder `inner` has a page, and a program that sends requests on.
fn with_inner(place: &Place, site: &str) -> Hob {
    std::fs::create_dir_all(place.path("site/inner")).unwrap();
    place.write("site/inner/index.html", INNER);
    place.folder("cgi");
    let go = "#!/bin/sh\nprintf 'Location: %s\\n\\n' \"$QUERY_STRING\"\n";
    place.script("cgi/go", go);
    place.serve_text(&format!(
        "{TOP}files = {{ fallback = \"inner/index.html\" }}\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = {{ dir = \"cgi\" }}\n\
         [[site.route]]\npath = \"/renamed\"\nrewrite = \"/inner/index.html\"\nfiles = {{}}\n{site}"
    ))
}

/// Ways to the page.
const WAYS: [&str; 6] = [
    "/inner/index.html",
    "/inner/",
    "/renamed",
    "/cgi/go?/inner/index.html",
    "/cgi/go?/inner/",
    "/nothing",
];

const RULES: &str = "access = { allow = [\"10.0.0.0/8\"] }\n";

/// Each way to a page is the page's own: where its route's condition holds, that route's rules do.
/// Where it does not, nobody who asks for the page itself meets them either.
#[test]
fn no_way_leads_around_the_rules_of_a_route_whose_condition_holds() {
    let place = Place::new();
    let guarded = format!(
        "[[site.route]]\npath = \"/inner/index.html\"\nfiles = {{}}\n\
         when = {{ field = {{ X-Guard = \"1\" }} }}\n{RULES}"
    );
    let hob = with_inner(&place, &guarded);
    for way in WAYS {
        let guard = "X-Guard: 1\r\n";
        let answer = ask_from_with(&hob, "192.0.2.1", way, guard);
        assert_eq!(answer.status, 403, "{way}");
        assert!(!answer.text().contains(INNER), "{way}");
        let inside = ask_from_with(&hob, "10.1.2.3", way, guard);
        assert_eq!(
            (inside.status, inside.text()),
            (200, INNER.to_owned()),
            "{way}"
        );
        let other = ask_from(&hob, "192.0.2.1", way);
        assert_eq!(
            (other.status, other.text()),
            (200, INNER.to_owned()),
            "{way}"
        );
    }
    hob.stop();
}

/// The route behind has the rules, and a `when` before it opens the page for some requests alone.
#[test]
fn no_way_leads_around_the_rules_of_a_route_behind_one_whose_condition_does_not_hold() {
    let place = Place::new();
    let routes = format!(
        "[[site.route]]\npath = \"/inner/index.html\"\nfiles = {{}}\n\
         when = {{ cookie = {{ key = \"right\" }}, method = [\"GET\"] }}\n\
         [[site.route]]\npath = \"/inner/index.html\"\nfiles = {{}}\n{RULES}"
    );
    let hob = with_inner(&place, &routes);
    for way in WAYS {
        for fields in [
            "",
            "Cookie: key=wrong\r\n",
            "X-Key: right\r\n",
            "key: right\r\n",
        ] {
            let answer = ask_from_with(&hob, "192.0.2.1", way, fields);
            assert_eq!(answer.status, 403, "{way} {fields}");
            assert!(!answer.text().contains(INNER), "{way} {fields}");
            assert_eq!(
                ask_from_with(&hob, "10.1.2.3", way, fields).status,
                200,
                "{way}"
            );
        }
        let keyed = ask_from_with(&hob, "192.0.2.1", way, "Cookie: key=right\r\n");
        assert_eq!(
            (keyed.status, keyed.text()),
            (200, INNER.to_owned()),
            "{way}"
        );
    }
    hob.stop();
}

/// An address in a `when` is as good as one in rules, if what is behind says no to all others.
#[test]
fn condition_on_the_address_holds_for_every_way() {
    let place = Place::new();
    let routes = "[[site.route]]\npath = \"/inner/*\"\nfiles = {}\n\
                  when = { address = [\"10.0.0.0/8\"] }\n\
                  [[site.route]]\npath = \"/inner/*\"\nrespond = { status = 403 }\n\
                  access = { deny = [\"all\"] }\n";
    std::fs::create_dir_all(place.path("site/inner")).unwrap();
    place.write("site/inner/index.html", INNER);
    place.write("site/inner/a.txt", INNER);
    let hob = place.serve_text(&format!(
        "{TOP}files = {{ fallback = \"inner/a.txt\" }}\n{routes}"
    ));
    for way in [
        "/inner/a.txt",
        "/inner/",
        "//inner/./a.txt",
        "/inner/%61.txt",
        "/nothing",
    ] {
        let inside = ask_from(&hob, "10.1.2.3", way);
        assert_eq!(inside.status, 200, "{way}");
        let outside = ask_from(&hob, "192.0.2.1", way);
        assert_eq!(outside.status, 403, "{way}");
        assert!(!outside.text().contains(INNER), "{way}");
    }
    hob.stop();
}

#[test]
fn each_route_of_one_path_has_its_own_rules_and_rates() {
    let place = Place::new();
    let limited = "rate = { requests = \"1/h\", burst = 1 }\n";
    let often = "rate = { requests = \"1/h\", burst = 3 }\n";
    let routes = [
        route(
            "/x",
            "beta",
            &format!("when = {{ field = {{ X-Beta = \"1\" }} }}\n{limited}"),
        ),
        route("/x", "rest", often),
    ];
    let hob = serve(&place, &routes);
    let status = |fields| ask_from_with(&hob, "192.0.2.1", "/x", fields).status;
    let beta = "X-Beta: 1\r\n";
    assert_eq!((status(beta), status(beta)), (200, 429));
    assert_eq!(
        (status(""), status(""), status(""), status("")),
        (200, 200, 200, 429)
    );
    hob.stop();
}

#[test]
fn records_and_metrics_tell_routes_of_one_path_apart() {
    let place = Place::new();
    let routes = [
        some("/x", "beta", "field = { X-Beta = \"1\" }"),
        route("/x", "rest", ""),
    ];
    let hob = serve(&place, &routes);
    assert_eq!(
        ask_from_with(&hob, "192.0.2.1", "/x?beta", "X-Beta: 1\r\n").status,
        200
    );
    assert_eq!(ask_from(&hob, "192.0.2.1", "/x?rest").status, 200);
    assert_eq!(record(&place, "/x?beta")["route"], "/x when field x-beta=1");
    assert_eq!(record(&place, "/x?rest")["route"], "/x");
    hob.stop();
}

#[test]
fn explain_says_which_routes_are_skipped_and_why() {
    let place = Place::new();
    let routes = [
        some("/x", "post", "method = [\"POST\"]"),
        some("/x", "beta", "field = { X-Beta = \"1\" }"),
        some("/x", "office", "address = [\"10.0.0.0/8\"]"),
        some("/x", "json", "query = { format = \"json\" }"),
        some("/x", "b", "cookie = { ab = \"b*\" }"),
        some("/x", "a", "host = [\"a.test\"]"),
        some("/x", "secure", "tls = true"),
        some("/x", "tenth", "share = \"10%\""),
        route("/x", "rest", ""),
    ];
    place.write("hob.toml", &format!("{TOP}{}", routes.concat()));
    let explain = |arguments: &[&str]| text_of(&place.run(&[&["explain"], arguments].concat()));
    let url = "http://b.test/x?format=xml";
    let told = explain(&[
        url,
        "--from",
        "192.0.2.1",
        "--header",
        "X-Beta: 2",
        "--header",
        "Cookie: ab=a",
    ]);
    for why in [
        "`method` does not have GET",
        "the field `x-beta` is \"2\", not \"1\"",
        "`address` does not have 192.0.2.1",
        "the name in the query `format` is \"xml\", not \"json\"",
        "the cookie `ab` is \"a\", not `b*`",
        "`host` does not have b.test",
        "the request is in clear text",
        "192.0.2.1 is not of 10%",
    ] {
        assert!(
            told.contains(&format!("/x is skipped, says its `when`: {why} (")),
            "{why}: {told}"
        );
    }
    assert!(told.contains("/x matches (hob.toml:"), "{told}");
    let unknown = explain(&["/x"]);
    assert!(
        unknown.contains("`address` asks for the client's address: --from ADDRESS tries one"),
        "{unknown}"
    );
    assert!(unknown.contains("there is no field `x-beta`"), "{unknown}");
    let json = explain(&["POST", url, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["routes"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["routes"][0]["matches"], true);
    let json = explain(&[url, "--header", "X-Beta: 1", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let skipped = &json["routes"][0];
    assert_eq!(
        (&skipped["skipped"], &skipped["matches"]),
        (&true.into(), &false.into())
    );
    assert_eq!(skipped["why_not"], "`method` does not have GET");
    assert_eq!(json["routes"][1]["skipped"], false);
    assert_eq!(json["handler"]["settings"]["when.field"][0], "X-Beta: 1");
}

#[test]
fn explain_takes_the_listener_and_tls_from_the_url() {
    let place = Place::new();
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:8081\"\n[[listen]]\naddress = \"127.0.0.1:8443\"\n\
         tls = \"self-signed\"\n[[site]]\nroot = \"site\"\n{}{}{}",
        some("/x", "one", "listener = [\"127.0.0.1:8081\"]"),
        some("/x", "two", "tls = true"),
        route("/x", "rest", "")
    );
    place.write("hob.toml", &text);
    let count = |url: &str| {
        let told = text_of(&place.run(&["explain", url, "--json"]));
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        told["routes"].as_array().unwrap().len()
    };
    assert_eq!(count("http://127.0.0.1:8081/x"), 1);
    assert_eq!(count("https://127.0.0.1:8443/x"), 2);
    assert_eq!(count("http://127.0.0.1:8443/x"), 3);
    assert_eq!(count("/x"), 1);
    let told = text_of(&place.run(&["explain", "https://127.0.0.1:8443/x"]));
    assert!(
        told.contains("`listener` does not have 127.0.0.1:8443"),
        "{told}"
    );
}

#[test]
fn hundred_routes_of_one_path_are_told_apart() {
    let place = Place::new();
    let mut routes: Vec<String> = (0..100)
        .map(|number| {
            let when = match number % 4 {
                0 => format!("field = {{ X-Number = \"{number}\" }}"),
                1 => format!("query = {{ number = \"{number}\" }}"),
                2 => format!("cookie = {{ number = \"{number}\" }}"),
                _ => format!("method = [\"M{number}\", \"GET\"], field = {{ X-{number} = \"*\" }}"),
            };
            some("/x", &number.to_string(), &when)
        })
        .collect();
    routes.push(route("/x", "rest", ""));
    let hob = serve(&place, &routes);
    for number in 0..100 {
        let (target, fields) = match number % 4 {
            0 => ("/x".to_owned(), format!("X-Number: {number}\r\n")),
            1 => (format!("/x?number={number}"), String::new()),
            2 => ("/x".to_owned(), format!("Cookie: number={number}\r\n")),
            _ => ("/x".to_owned(), format!("X-{number}: any\r\n")),
        };
        assert_eq!(answered(&hob, &target, &fields), number.to_string());
    }
    assert_eq!(answered(&hob, "/x?number=x", "X-Number: 1\r\n"), "rest");
    hob.stop();
}
