//! What somebody tries who wants in, or wants others out.

use serde_json::{Value, json};

use crate::harness::client::{Connection, get};
use crate::harness::{DEADLINE, Place, text_of};
use crate::place::{Pages, Visitor, json_of, serve};
use crate::stream::begin;

/// What the API can be asked to change, as its reference lists it.
fn changes() -> Vec<String> {
    let page = include_str!("../../../../docs/src/reference/admin.md");
    let posts = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `POST "));
    let paths = posts.filter_map(|line| line.split_once('`'));
    paths.map(|(path, _)| path.to_owned()).collect()
}

/// Sends exactly this and gives all that comes back.
fn raw(port: u16, bytes: &[u8]) -> String {
    let mut connection = Connection::open(port).unwrap();
    connection.send(bytes).unwrap();
    String::from_utf8_lossy(&connection.read_to_end()).into_owned()
}

#[test]
fn forms_of_other_pages_change_nothing_anywhere() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let changes = changes();
    assert!(changes.len() >= 13, "{changes:?}");
    // What a browser sends for `<form method=post>` with the cookie, were it to send that.
    let kinds = [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
    ];
    for target in &changes {
        for (kind, origin) in kinds.iter().flat_map(|kind| {
            ["http://elsewhere.example", "null", &pages.origin()]
                .map(|origin| (*kind, origin.to_owned()))
        }) {
            let fields = format!(
                "Host: 127.0.0.1:{}\r\nCookie: {}\r\nOrigin: {origin}\r\nContent-Type: {kind}\r\n",
                pages.port, visitor.cookie
            );
            let answer = pages.raw("POST", target, &fields, "{\"all\":true,\"x\":\"=\"}");
            assert_eq!(answer.status, 403, "{target} {kind} {origin}");
        }
        // A link, an image, a frame.
        for method in ["GET", "HEAD", "PUT", "DELETE", "PATCH", "TRACE"] {
            let answer = match method {
                "GET" | "HEAD" => visitor.get(target).status,
                _ => {
                    let cookie = format!("Cookie: {}\r\n", visitor.cookie);
                    let fields = format!("{}{cookie}", pages.own_fields());
                    pages.raw(method, target, &fields, "{}").status
                }
            };
            let is_refused = [403, 404, 405].contains(&answer);
            // One path is a page to read as well.
            assert!(
                is_refused || (target == "/v1/config" && ["GET", "HEAD"].contains(&method)),
                "{method} {target}: {answer}"
            );
        }
    }
    assert_eq!(place.status()["generation"], 1);
    assert_eq!(visitor.look("/v1/session")["role"], "operate");
    let entries = visitor.look("/v1/audit")["entries"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(entries, 1, "nothing but the login");
    hob.stop();
}

#[test]
fn name_that_was_rebound_to_this_address_is_no_way_in() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let (port, cookie) = (pages.port, &visitor.cookie);
    let evil = format!("rebound.example:{port}");
    let rest = format!(
        "Cookie: {cookie}\r\nOrigin: http://{evil}\r\nSec-Fetch-Site: same-origin\r\n\
         X-Hob-Admin: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    );
    let own = format!("127.0.0.1:{port}");
    for (begin, status) in [
        (format!("GET / HTTP/1.1\r\nHost: {evil}\r\n"), "421"),
        (
            format!("GET /v1/status HTTP/1.1\r\nHost: {evil}\r\n"),
            "421",
        ),
        (format!("POST /v1/stop HTTP/1.1\r\nHost: {evil}\r\n"), "421"),
        (
            format!("POST /v1/login HTTP/1.1\r\nHost: {evil}\r\n"),
            "421",
        ),
        // The target's own host counts, whatever `Host` says.
        (
            format!("POST http://{evil}/v1/stop HTTP/1.1\r\nHost: {own}\r\n"),
            "4",
        ),
        (
            format!("POST http://{own}/v1/stop HTTP/1.1\r\nHost: {evil}\r\n"),
            "4",
        ),
        (
            format!("POST /v1/stop HTTP/1.1\r\nHost: {own}\r\nHost: {evil}\r\n"),
            "400",
        ),
        (
            format!("POST /v1/stop HTTP/1.1\r\nHost: {evil}\r\nHost: {own}\r\n"),
            "400",
        ),
        ("POST /v1/stop HTTP/1.1\r\nHost:\r\n".to_owned(), "421"),
        (
            format!("POST /v1/stop HTTP/1.1\r\nHost: {own}@{evil}\r\n"),
            "4",
        ),
        (
            format!("POST /v1/stop HTTP/1.1\r\nHost: {evil}#{own}\r\n"),
            "4",
        ),
        ("POST /v1/stop HTTP/1.0\r\n".to_owned(), "4"),
        (
            format!("POST /v1/stop HTTP/1.1\r\nHost: 0.0.0.0:{port}\r\n"),
            "421",
        ),
        (
            format!("POST /v1/stop HTTP/1.1\r\nHost: 2130706433:{port}\r\n"),
            "421",
        ),
        (
            format!("POST /v1/stop HTTP/1.1\r\nHost: localhost.:{port}\r\n"),
            "421",
        ),
    ] {
        let answer = raw(port, format!("{begin}{rest}").as_bytes());
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{begin}: {answer}");
    }
    // It still runs, and lets in who belongs there.
    assert_eq!(visitor.look("/v1/session")["role"], "operate");
    hob.stop();
}

#[test]
fn tokens_that_are_not_exactly_one_are_refused_wherever_they_stand() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let token = pages.token.clone();
    let parts = [
        json!(""),
        json!(token[..token.len() - 1]),
        json!(format!("{token}0")),
        json!(format!("{token}\0")),
        json!(format!(" {token}")),
        json!(token.to_uppercase() + "x"),
        json!([token]),
        json!({ "token": token }),
        json!(null),
        json!(1),
        json!(true),
    ];
    for part in parts {
        let answer = pages.log_in(&json!({ "token": part }));
        assert!([400, 401].contains(&answer.status), "{part}: {answer:?}");
        assert_eq!(answer.header("set-cookie"), None, "{part}");
    }
    // It opens nothing but the login.
    let own = pages.own_fields();
    for fields in [
        format!("Authorization: Bearer {token}\r\n"),
        format!("Cookie: hob-admin-{}={token}\r\n", pages.port),
        format!("X-Hob-Token: {token}\r\n"),
    ] {
        let answer = pages.raw("GET", "/v1/status", &format!("{own}{fields}"), "");
        assert_eq!(answer.status, 401, "{fields}");
    }
    let target = format!("/v1/status?token={token}");
    assert_eq!(pages.raw("GET", &target, &own, "").status, 401);
    // And is still good for one.
    assert_eq!(pages.log_in(&json!({ "token": token })).status, 200);
    assert_eq!(pages.log_in(&json!({ "token": token })).status, 401);
    hob.stop();
}

#[test]
fn cookie_of_another_listener_or_of_the_visitor_s_own_making_is_nobody_s() {
    let (here, there) = (Place::new(), Place::new());
    let (hob, other) = (serve(&here, "", ""), serve(&there, "", ""));
    let (pages, others) = (Pages::of(&hob), Pages::of(&other));
    let (own, foreign) = (pages.operator(), others.operator());
    let secret = foreign.cookie.split_once('=').unwrap().1;
    let port = pages.port;
    let chosen = "0123456789abcdef".repeat(4);
    for cookie in [
        foreign.cookie.clone(),
        format!("hob-admin-{port}={secret}"),
        format!("hob-admin-{port}={chosen}"),
        format!("__Host-hob-admin-{port}={secret}"),
        format!("hob-admin-{port}="),
        format!("hob-admin-{port}"),
        // The first of a name counts, and it is the wrong one.
        format!("hob-admin-{port}=x; {}", own.cookie),
    ] {
        let fields = format!("{}Cookie: {cookie}\r\n", pages.own_fields());
        let answer = pages.raw("GET", "/v1/status", &fields, "");
        assert_eq!(answer.status, 401, "{cookie}");
    }
    // A secret that a login finds set is not taken over.
    let output = here.run(&["status", "--admin-url"]);
    let url = text_of(&output);
    let token = url.trim().split_once("#token=").unwrap().1;
    let fields = format!(
        "{}Cookie: hob-admin-{port}={chosen}\r\n",
        pages.own_fields()
    );
    let body = json!({ "token": token }).to_string();
    let answer = pages.raw("POST", "/v1/login", &fields, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!answer.header("set-cookie").unwrap().contains(&chosen));
    hob.stop();
    other.stop();
}

#[test]
fn session_is_of_a_request_and_not_of_its_connection_and_framing_is_not_read_twice() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let own = pages.own_fields();
    let cookie = format!("Cookie: {}\r\n", visitor.cookie);
    let mut connection = Connection::open(pages.port).unwrap();
    for (fields, status) in [(&*cookie, 200), ("", 401), (&*cookie, 200)] {
        let head = format!("GET /v1/session HTTP/1.1\r\n{own}{fields}\r\n");
        connection.send(head.as_bytes()).unwrap();
        assert_eq!(connection.read().unwrap().status, status);
    }
    let inner = format!("POST /v1/stop HTTP/1.1\r\n{own}{cookie}Content-Length: 2\r\n\r\n{{}}");
    for fields in [
        format!("Content-Length: 0\r\nContent-Length: {}\r\n", inner.len()),
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n",
            inner.len()
        ),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "Transfer-Encoding:\x0bchunked\r\n".to_owned(),
        "Content-Length: +0\r\n".to_owned(),
        "Content-Length: 0x0\r\n".to_owned(),
        "X: a\r\n folded: b\r\n".to_owned(),
        "X: a\x00b\r\n".to_owned(),
        "X-\x00Hob-Admin: 1\r\n".to_owned(),
        "X: a\rCookie: b\r\n".to_owned(),
    ] {
        let head = format!("POST /v1/logout HTTP/1.1\r\n{own}{fields}\r\n0\r\n\r\n{inner}");
        let answer = raw(pages.port, head.as_bytes());
        let statuses = answer.matches("HTTP/1.1 ").count();
        assert_eq!(statuses, 1, "{fields:?}: {answer}");
        assert!(
            answer.starts_with("HTTP/1.1 400") || answer.starts_with("HTTP/1.1 501"),
            "{fields:?}: {answer}"
        );
    }
    assert_eq!(visitor.look("/v1/session")["role"], "operate");
    hob.stop();
}

#[test]
fn heads_and_bodies_beyond_their_limits_are_refused_and_odd_json_too() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let own = pages.own_fields();
    let long = "x".repeat(200_000);
    for (head, status) in [
        (format!("GET /{long} HTTP/1.1\r\n{own}\r\n"), "414"),
        (format!("GET / HTTP/1.1\r\n{own}X: {long}\r\n\r\n"), "431"),
        (
            format!("GET / HTTP/1.1\r\n{own}Cookie: {long}\r\n\r\n"),
            "431",
        ),
        (
            format!("GET / HTTP/1.1\r\n{own}{}\r\n", "X: y\r\n".repeat(5000)),
            "431",
        ),
    ] {
        let answer = raw(pages.port, head.as_bytes());
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
    }
    let log_in = |body: &str| pages.raw("POST", "/v1/login", &own, body).status;
    assert_eq!(
        log_in(&json!({ "token": "x".repeat(9000) }).to_string()),
        413
    );
    for body in [
        "[",
        "[]",
        "null",
        "{\"token\":}",
        &"[".repeat(8000),
        "\u{0}",
    ] {
        assert_eq!(log_in(body), 400, "{}", &body[..body.len().min(20)]);
    }
    let visitor = pages.operator();
    let check = |text: String| {
        visitor
            .post("/v1/config/check", &json!({ "text": text }))
            .status
    };
    assert_eq!(check("x".repeat(1024 * 1024)), 413);
    let fields = format!("{own}Cookie: {}\r\n", visitor.cookie);
    let post = |body: &str| pages.raw("POST", "/v1/cache/purge", &fields, body).status;
    for nested in ["[".repeat(500_000), "{\"a\":".repeat(150_000)] {
        assert_eq!(post(&nested), 400);
    }
    let answer = raw(
        pages.port,
        &[
            format!("POST /v1/cache/purge HTTP/1.1\r\n{fields}Content-Length: 8\r\n").as_bytes(),
            b"Connection: close\r\n\r\n{\"a\":\"\xff\xfe",
        ]
        .concat(),
    );
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    hob.stop();
}

#[test]
fn connections_that_say_nothing_shut_out_neither_sites_nor_the_control_socket() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let mut held = Vec::new();
    for _ in 0..300 {
        let mut connection = Connection::open(pages.port).unwrap();
        // One that is refused may be closed already.
        let _ = connection.send(b"GET / HTTP/1.1\r\nHost: ");
        held.push(connection);
    }
    let until = std::time::Instant::now() + DEADLINE;
    while place.counter("limit_connections") < 236 {
        assert!(std::time::Instant::now() < until);
    }
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert_eq!(place.status()["admin"]["sessions"], 1);
    drop(held);
    // Their places come free, and who was in is in.
    let until = std::time::Instant::now() + DEADLINE;
    loop {
        let mut connection = Connection::open(pages.port).unwrap();
        let head = format!(
            "GET /v1/session HTTP/1.1\r\n{}Cookie: {}\r\n\r\n",
            pages.own_fields(),
            visitor.cookie
        );
        let sent = connection.send(head.as_bytes());
        if sent
            .and_then(|()| connection.read())
            .is_ok_and(|answer| answer.status == 200)
        {
            break;
        }
        assert!(
            std::time::Instant::now() < until,
            "the places do not come free"
        );
    }
    hob.stop();
}

#[test]
fn paths_lead_to_no_file_beside_the_pages() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    for target in [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../../Cargo.toml",
        "/assets/..%5c..%5cCargo.toml",
        "/assets/%00",
        "/index.html%00.js",
        "//etc/passwd",
        "/file:///etc/passwd",
        "/v1/logs/..%2f..%2fetc%2fpasswd",
        "/v1/logs/%2fetc%2fpasswd",
        "/v1/logs/-1",
        "/v1/logs/99999999999999999999",
        "/v1/history/..%2f1",
        "/v1/../etc/passwd",
        "/v1",
        "/v1/",
        "/V1/status",
    ] {
        let answer = visitor.get(target);
        assert!(
            (400..=421).contains(&answer.status),
            "{target}: {}",
            answer.status
        );
        assert!(!answer.text().contains("root:"), "{target}");
    }
    for path in [
        "/etc/passwd",
        "../hob.toml",
        "/proc/self/environ",
        "",
        "hob.toml\0",
    ] {
        for target in ["/v1/config/check", "/v1/config/diff", "/v1/config/apply"] {
            let body = json!({ "path": path, "text": "x = 1\n", "base_hash": "0" });
            let answer = visitor.post(target, &body);
            assert!(
                (400..=422).contains(&answer.status),
                "{target} {path:?}: {}",
                answer.text()
            );
            assert!(!answer.text().contains("root:"), "{target} {path}");
        }
    }
    hob.stop();
}

/// Texts that steer terminals, end strings, tags and lines, or read otherwise than they are.
const HOSTILE: &[&str] = &[
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'; DROP TABLE x; --",
    "\u{9b}2J\u{9d}0;title\u{9c}",
    "\u{202e}gnp.exe\u{2066}",
    "\u{2028}\u{2029}\u{feff}",
    "${jndi:ldap://x}%0d%0aSet-Cookie:%20a=b",
    "__proto__",
];

#[test]
fn hostile_text_is_text_in_json_and_steers_no_terminal() {
    let place = Place::new();
    let log = "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"run/access.log\"\n";
    let hob = serve(&place, log, "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let mut watching = begin(&visitor, "/v1/watch?head=1");
    watching.read_until(": watching");
    for text in HOSTILE {
        let path: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let head = format!(
            "GET /{path}?{path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {text}\r\n\
             Referer: {text}\r\nX-Own: {text}\r\nConnection: close\r\n\r\n"
        );
        let answer = raw(hob.port(), head.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 40"), "{text}: {answer}");
    }
    place.wait_for_counter("requests", HOSTILE.len() as u64);
    // The API: one JSON text each, with exactly what was sent.
    let found = visitor.look("/v1/history?limit=100");
    let agents: Vec<&str> = found["requests"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|request| request["user_agent"].as_str().unwrap())
        .collect();
    assert_eq!(agents, HOSTILE);
    for target in [
        "/v1/history",
        "/v1/logs/0?lines=50",
        "/v1/routes",
        "/v1/overview",
    ] {
        let answer = visitor.get(target);
        assert_eq!(
            answer.header("content-type"),
            Some("application/json"),
            "{target}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let text = answer.text();
        assert_eq!(text.lines().count(), 1, "{target}");
        assert!(!text.contains('\x1b'), "{target}");
        json_of(&answer);
    }
    watching.read_until("__proto__");
    // The commands: nothing but printable characters and line ends.
    let id = found["requests"][4]["id"].as_str().unwrap();
    for arguments in [
        &["history"][..],
        &["history", "--json"],
        &["history", id],
        &["top", "--once"],
        &["status"],
    ] {
        let output = place.run(arguments);
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {text}");
        let steers = |one: char| {
            (one.is_control() && one != '\n')
                || ('\u{200b}'..='\u{200f}').contains(&one)
                || ('\u{2028}'..='\u{202e}').contains(&one)
                || ('\u{2066}'..='\u{2069}').contains(&one)
                || one == '\u{feff}'
        };
        let found: Vec<char> = text.chars().filter(|one| steers(*one)).collect();
        assert_eq!(found, [], "{arguments:?}: {text:?}");
    }
    hob.stop();
}

#[test]
fn streams_of_a_session_end_before_they_tell_more_once_it_has_ended() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let mut watching = begin(&visitor, "/v1/watch?secrets=1&head=1");
    watching.read_until(": watching");
    let mut overview = begin(&visitor, "/v1/live?page=overview");
    overview.read_until("event: overview");
    assert_eq!(get(hob.port(), "/hello.txt?before").unwrap().status, 200);
    watching.read_until("?before");
    visitor.act("/v1/logout", &json!({}));
    assert_eq!(get(hob.port(), "/hello.txt?after").unwrap().status, 200);
    for stream in [&mut watching, &mut overview] {
        let rest = rest_of(stream);
        assert!(!rest.contains("?after"), "{rest}");
    }
    hob.stop();
}

/// What comes of a body in chunks until its last.
fn rest_of(stream: &mut Connection) -> String {
    let mut rest = Vec::new();
    while !rest.ends_with(b"0\r\n\r\n") {
        rest.extend(stream.read_some().unwrap());
    }
    String::from_utf8(rest).unwrap()
}

#[test]
fn one_who_never_reads_a_stream_costs_a_bounded_queue_and_hears_of_the_gap() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let mut slow = begin(&visitor, "/v1/watch?head=1");
    slow.read_until(": watching");
    let long = format!("X-Long: {}\r\n", "y".repeat(6000));
    let head = format!("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n{long}\r\n");
    let mut client = Connection::open(hob.port()).unwrap();
    for _ in 0..400 {
        client.send(head.as_bytes()).unwrap();
        assert_eq!(client.read().unwrap().status, 200);
    }
    slow.read_until("event: dropped\ndata: {\"count\":");
    hob.stop();
}

#[test]
fn values_of_queries_that_are_no_numbers_or_too_large_harm_nothing() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let huge = "9".repeat(400);
    for key in [
        "from", "to", "step", "limit", "since", "until", "before", "lines", "slower", "q",
    ] {
        for value in [
            "-1",
            "0",
            "1e309",
            "NaN",
            "18446744073709551615",
            &huge,
            "%00",
            "%ff",
            "",
        ] {
            for path in [
                "activity",
                "resources",
                "history",
                "cache",
                "logs/0",
                "watch",
                "explain",
                "access",
            ] {
                let target = format!("/v1/{path}?{key}={value}");
                if path == "watch" {
                    // A filter that can be understood is a stream.
                    let answer = visitor.pages.raw("HEAD", &target, &fields_of(&visitor), "");
                    assert!(
                        [200, 400].contains(&answer.status),
                        "{target}: {}",
                        answer.status
                    );
                    continue;
                }
                let answer = visitor.get(&target);
                assert!(answer.status < 500, "{target}: {}", answer.status);
                let value: Value = json_of(&answer);
                assert!(value.is_object(), "{target}");
            }
        }
    }
    assert_eq!(hob.servers().len(), 1);
    assert!(!hob.printed().contains("panicked"));
    hob.stop();
}

fn fields_of(visitor: &Visitor<'_>) -> String {
    format!(
        "{}Cookie: {}\r\n",
        visitor.pages.own_fields(),
        visitor.cookie
    )
}
