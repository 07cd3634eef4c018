//! What a client gets from a program of another machine is what it gets from one of this machine.

use crate::authority::Authority;
use crate::harness::client::{Answer, Connection, call, raw};
use crate::pair::{HANDLERS, Owner, TLS, front_place, handler, pair, place_with_program};

/// Requests, each by its line and what follows that; every one ends its connection.
const ASKED: &[(&str, &str)] = &[
    ("GET /app/tell HTTP/1.1", ""),
    (
        "GET /app/tell/a%20b//c?x=%20y&z HTTP/1.1",
        "Cookie: a=b\r\nCookie: c=d\r\nX-Own: 1\r\n",
    ),
    (
        "GET /app/tell/%2Fa/../b%2Fc HTTP/1.1",
        "X-Forwarded-For: 6.6.6.6\r\nReferer: x\r\n",
    ),
    ("HEAD /app/tell HTTP/1.1", ""),
    ("OPTIONS /app/tell HTTP/1.1", "Te: trailers\r\n"),
    ("GET /app/fields HTTP/1.1", ""),
    ("HEAD /app/fields HTTP/1.1", ""),
    ("GET /app/fields HTTP/1.1", "If-None-Match: \"a\"\r\n"),
    ("GET /app/fields HTTP/1.1", "Range: bytes=5-14\r\n"),
    ("GET /app/fields HTTP/1.1", "Accept-Encoding: gzip\r\n"),
    ("GET /app/missing HTTP/1.1", ""),
    ("GET /app/silent HTTP/1.1", ""),
    ("GET /app/none HTTP/1.1", ""),
    ("GET /app/inside HTTP/1.1", ""),
    ("POST /app/place HTTP/1.1", "Content-Length: 2\r\n\r\nab"),
    ("GET /app/file/a.txt HTTP/1.1", ""),
    ("GET /app/file/a.txt HTTP/1.1", "Range: bytes=1-3\r\n"),
    ("HEAD /app/file/a.txt HTTP/1.1", ""),
    ("GET /app/file/none.txt HTTP/1.1", ""),
    ("TRACE /app/tell HTTP/1.1", ""),
    ("PUT /app/echo HTTP/1.1", "Content-Length: 5\r\n\r\nhello"),
    (
        "POST /app/echo HTTP/1.1",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n",
    ),
    (
        "POST /app/tell HTTP/1.1",
        "Content-Type: a/b\r\nContent-Length: 0\r\n",
    ),
    ("GET /app/tell HTTP/1.0", ""),
];

/// A page for errors, compression and rules of the site that has the client.
const RULES: &str = "error_pages = { 404 = \"404.html\", 502 = \"502.html\" }\n\
                     headers = { X-Rule = \"here\" }\ncompress = [\"gzip\"]\n";

/// What an answer says, without what differs from one to the next, tells of the machine, or is up
/// to when pieces came.
fn told(answer: Answer) -> (u16, Vec<(String, String)>, String) {
    let differs = |(name, _): &(String, String)| {
        ["date", "content-length", "transfer-encoding"].contains(&name.as_str())
    };
    let is_coded = answer.header("content-encoding").is_some();
    let text = if is_coded {
        String::new()
    } else {
        answer.text()
    };
    let names = ["REMOTE_PORT=", "HTTP_HOST=", "SERVER_NAME="];
    let lines = text.split('\n');
    let lines = lines.filter(|line| !names.iter().any(|name| line.starts_with(name)));
    let lines = lines.collect::<Vec<_>>().join("\n");
    let mut headers = answer.headers;
    headers.retain(|pair| !differs(pair));
    (answer.status, headers, lines)
}

#[test]
fn answers_are_those_of_a_program_of_this_machine() {
    for kind in HANDLERS {
        let authority = Authority::new("hobs");
        let owner = Owner::serve(place_with_program(), &authority, kind, "\"front\"");
        let place = front_place(&authority);
        place.write("404.html", "own page for 404\n");
        place.write("502.html", "own page for 502\n");
        let files = owner.place.path("app/files").display().to_string();
        let route = |host: &str, handler: &str| {
            format!(
                "[[site]]\nnames = [\"{host}\"]\n{RULES}[[site.route]]\npath = \"/app/*\"\n\
                 sendfile = [\"{files}\"]\n{handler}\n"
            )
        };
        let remote = format!(
            "remote = {{ to = {}, program = \"app\", {TLS} }}",
            owner.to()
        );
        let front = place.serve_text(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{}{}",
            route("home", &handler(kind, &owner.place)),
            route("away", &remote),
        ));
        for (line, rest) in ASKED {
            let [home, away] = ["home", "away"].map(|host| {
                let end = match rest.contains("\r\n\r\n") {
                    true => String::new(),
                    false => "\r\n".to_owned(),
                };
                let end = if rest.ends_with("0\r\n") {
                    "\r\n".to_owned()
                } else {
                    end
                };
                let text = format!("{line}\r\nHost: {host}\r\nConnection: close\r\n{rest}{end}");
                let mut connection = Connection::open(front.port()).unwrap();
                connection.send(text.as_bytes()).unwrap();
                told(connection.read_last(line.split(' ').next().unwrap()))
            });
            assert_eq!(away, home, "{kind}: {line} {rest}");
        }
        front.stop();
        owner.stop();
    }
}

#[test]
fn variables_are_those_of_the_client_and_of_the_program() {
    let (owner, front) = pair("cgi");
    let answer = front.get("/app/tell/x?y=z").answer.text();
    let port = front.port();
    for line in [
        "REMOTE_ADDR=127.0.0.1".to_owned(),
        format!("SERVER_PORT={port}"),
        "SERVER_NAME=localhost".to_owned(),
        "SERVER_PROTOCOL=HTTP/1.1".to_owned(),
        "REQUEST_SCHEME=http".to_owned(),
        "REQUEST_URI=/app/tell/x?y=z".to_owned(),
        "SCRIPT_NAME=/app".to_owned(),
        "PATH_INFO=/tell/x".to_owned(),
        "QUERY_STRING=y=z".to_owned(),
        format!(
            "SCRIPT_FILENAME={}",
            owner.place.path("app/app.py").display()
        ),
    ] {
        assert!(answer.lines().any(|one| one == line), "{line} in {answer}");
    }
    let asked = b"GET /app/fields HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let written = raw(front.port(), asked);
    let fields = "Content-Type: text/plain\r\nETag: \"a\"\r\nX-cAsE: 1\r\nSet-Cookie: a=b\r\n";
    assert!(written.contains(fields), "{written}");
    for name in ["HTTPS=", "SSL_", "HTTP_HOB"] {
        assert!(
            !answer.lines().any(|line| line.starts_with(name)),
            "{name} in {answer}"
        );
    }
    front.stop();
    owner.stop();
}

#[test]
fn large_bodies_go_both_ways() {
    let (owner, front) = pair("resident");
    let body: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    let answer = call(front.port(), "POST", "/app/echo", "", &body).answer;
    assert_eq!(answer.status, 200);
    assert!(answer.body == body);
    front.stop();
    owner.stop();
}

#[test]
fn answer_that_breaks_off_there_breaks_off_here() {
    for kind in HANDLERS {
        let (owner, front) = pair(kind);
        let mut connection = Connection::open(front.port()).unwrap();
        connection.send_ask("GET", "/app/short", "");
        let (status, headers) = connection.read_head().unwrap();
        assert_eq!(status, 200, "{kind}");
        let length = headers.iter().find(|(name, _)| name == "content-length");
        assert_eq!(
            length.map(|(_, value)| value.as_str()),
            Some("10000000"),
            "{kind}"
        );
        assert!(connection.read_to_end().len() < 10_000_000, "{kind}");
        front.stop();
        owner.stop();
    }
}

#[test]
fn failure_is_told_by_the_machine_that_has_the_client_and_explained_on_the_other() {
    for kind in HANDLERS {
        let authority = Authority::new("hobs");
        let owner = Owner::serve(place_with_program(), &authority, kind, "\"front\"");
        let place = front_place(&authority);
        place.write("502.html", "own page for 502\n");
        let page = "error_pages = { 502 = \"502.html\" }";
        let front = crate::pair::serve_front(place, &owner.to(), "", page);
        let answer = front.get("/app/fail").answer;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (502, "own page for 502\n"),
            "{kind}"
        );
        let record = front.record("/app/fail");
        assert_eq!(record["fault"], "script", "{kind}");
        let reason = "the machine that has the program says that it failed";
        assert_eq!(record["reason"], reason, "{kind}");
        let detail = record["detail"].as_str().unwrap();
        assert!(detail.starts_with("127.0.0.1:"), "{kind}: {detail}");
        owner.hob.wait_for("this is said on standard error");
        assert!(
            !front
                .hob
                .printed()
                .contains("this is said on standard error")
        );
        front.stop();
        owner.stop();
    }
}
