//! What another server is asked, and what a client gets of its answer.

use crate::harness::client::{Connection, call};
use crate::harness::over::Protocol;
use crate::peer::{Peer, answer, answers, sends, serve, serve_to, stays_after};

/// What a peer is asked where a client asks so.
fn asked(keys: &str, method: &str, target: &str, fields: &str, body: &[u8]) -> String {
    let peer = Peer::start(vec![answers(1)]);
    let site = serve(&[&peer], keys);
    let reply = call(site.port(), method, target, fields, body);
    assert_eq!(reply.answer.status, 200, "{method} {target}");
    site.stop();
    peer.join().remove(0)
}

/// Its lines, names of fields in lower case: over HTTP/2 they are sent so.
fn lines(request: &str) -> Vec<String> {
    let lines = request
        .split("\r\n")
        .map(|line| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
            None => line.to_owned(),
        });
    lines.collect()
}

#[test]
fn request_is_made_anew_and_says_who_asks() {
    let fields = "X-A: 1\r\nX-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\n\
                  Forwarded: for=6\r\n\
                  X-Forwarded-Ssl: on\r\nX-Forwarded-Protocol: ssl\r\n\
                  X-Forwarded-Scheme: https\r\nX-Forwarded: 6\r\n\
                  X-Forwarded-Server: 6\r\nX-Url-Scheme: https\r\n\
                  Front-End-Https: on\r\n\
                  X-Real-IP: 6\r\nProxy: x\r\nTE: trailers\r\nKeep-Alive: 5\r\n\
                  Cookie: a=1; hob-admin-1=secret\r\nAuthorization: Basic eDp5\r\n";
    let told = asked("", "GET", "/app/x?q=%20", fields, b"");
    let proto = format!("x-forwarded-proto: {}", Protocol::tested().scheme());
    assert_eq!(
        lines(&told),
        [
            "GET /app/x?q=%20 HTTP/1.1",
            "host: localhost",
            "x-a: 1",
            "authorization: Basic eDp5",
            "cookie: a=1",
            "x-forwarded-for: 127.0.0.1",
            &proto,
            "x-forwarded-host: localhost",
            "",
            ""
        ]
    );
    let all = "forwarded = [\"X-Real-IP\", \"X-Forwarded-Port\", \"Forwarded\", \"Via\"], keep = 0, \
               host = \"app.internal:8080\"";
    let told = asked(all, "GET", "/app/", "Via: 1.0 before\r\n", b"");
    let told = lines(&told);
    let scheme = Protocol::tested().scheme();
    let version = Protocol::tested().version().trim_start_matches("HTTP/");
    for line in [
        "host: app.internal:8080",
        "via: 1.0 before",
        "x-real-ip: 127.0.0.1",
        &format!("forwarded: for=127.0.0.1;host=\"localhost\";proto={scheme}"),
        &format!("via: {version} hob"),
        "connection: close",
    ] {
        assert!(told.iter().any(|one| one == line), "{line}: {told:?}");
    }
    let begins = |name: &str| told.iter().any(|line| line.starts_with(name));
    assert!(
        begins("x-forwarded-port: ") && !begins("x-forwarded-for"),
        "{told:?}"
    );
}

#[test]
fn fields_that_the_config_sets_stand_in_the_place_of_the_clients() {
    let keys = "headers = { X-Api-Key = \"own\", Accept-Encoding = \"\", \
                X-Forwarded-Ssl = \"on\" }";
    let fields = "X-Api-Key: theirs\r\nX_Api_Key: theirs\r\nAccept-Encoding: gzip\r\n\
                  X-B: 1\r\n";
    let told = lines(&asked(keys, "GET", "/app/", fields, b""));
    let of = |name: &str| {
        let mut found = told.iter().filter(|line| line.starts_with(name));
        (found.next().cloned(), found.count())
    };
    assert_eq!(of("x-api-key"), (Some("x-api-key: own".to_owned()), 0));
    assert_eq!((of("x_api_key").0, of("accept-encoding").0), (None, None));
    assert_eq!(of("x-b").0.as_deref(), Some("x-b: 1"));
    // For who believes nothing else.
    let on = Some("x-forwarded-ssl: on".to_owned());
    assert_eq!(of("x-forwarded-ssl"), (on, 0));
}

#[test]
fn answers_that_lead_to_the_other_server_lead_here() {
    let redirect = |location: &str| {
        let cookie = "Set-Cookie: a=1; Path=/base/; Domain=127.0.0.1";
        sends(format!(
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\n{cookie}\r\nContent-Length: 0\r\n\r\n"
        ))
    };
    let peer = Peer::start_with(|port| {
        let own = format!("http://127.0.0.1:{port}/base/x?y");
        vec![
            redirect(&own),
            redirect("/base/z"),
            redirect("https://other.example/base/"),
        ]
    });
    let to = format!("\"http://127.0.0.1:{}/base/\"", peer.port);
    let site = serve_to(&to, "cookies = true, keep = 0");
    for led in ["/app/x?y", "/app/z", "https://other.example/base/"] {
        let answer = site.get("/app/").answer;
        assert_eq!(answer.header("location"), Some(led));
        assert_eq!(answer.header("set-cookie"), Some("a=1; Path=/app/"));
    }
    site.stop();
    peer.join();
}

#[test]
fn fields_that_connection_names_stay_behind() {
    let peer = Peer::start(vec![answers(1)]);
    let site = serve(&[&peer], "");
    let mut client = Connection::open(site.port()).unwrap();
    client
        .send(
            b"GET /app/ HTTP/1.1\r\nHost: h\r\nConnection: x-secret, close\r\nX-Secret: 1\r\n\
              X-Public: 2\r\n\r\n",
        )
        .unwrap();
    client.read().unwrap();
    let told = {
        site.stop();
        peer.join().remove(0)
    };
    let told = told.to_lowercase();
    assert!(
        told.contains("x-public: 2") && !told.contains("x-secret"),
        "{told}"
    );
}

#[test]
fn path_goes_on_as_it_was_sent_unless_that_could_mean_another() {
    let target = |target: &str| {
        let told = asked("", "GET", target, "", b"");
        told.split(' ').nth(1).unwrap().to_owned()
    };
    for same in [
        "/app/a%2Bb;c=d/%7Ex//y?//..",
        "/app/%E2%82%AC/",
        "/app/a%2Fb",
    ] {
        assert_eq!(target(same), same);
    }
    for (sent, told) in [
        ("//app/x", "/app/x"),
        ("/other/../app/./x", "/app/x"),
        ("/app/%2e%2e/app/x%20y", "/app/x%20y"),
    ] {
        assert_eq!(target(sent), told, "{sent}");
    }
}

#[test]
fn path_behind_the_port_stands_in_the_place_of_the_routes_folder() {
    for (base, told) in [
        ("/", "/x/y?q"),
        ("/base", "/base/x/y?q"),
        ("/b%20c/", "/b%20c/x/y?q"),
    ] {
        let peer = Peer::start(vec![answers(1)]);
        let to = format!("\"http://127.0.0.1:{}{base}\"", peer.port);
        let site = serve_to(&to, "host = \"upstream\"");
        assert_eq!(site.get("/app/x/y?q").answer.text(), "0");
        site.stop();
        let expected = format!("GET {told} HTTP/1.1\r\nHost: 127.0.0.1:");
        let asked = peer.join().remove(0);
        assert!(asked.starts_with(&expected), "{asked}");
    }
}

#[test]
fn bodies_go_up_with_their_length_or_in_chunks() {
    let sized = asked("", "POST", "/app/", "", b"hello");
    assert!(sized.ends_with("Content-Length: 5\r\n\r\nhello"), "{sized}");
    let none = asked("", "POST", "/app/", "", b"");
    assert!(none.ends_with("Content-Length: 0\r\n\r\n"), "{none}");
    let long = vec![b'x'; 3 << 20];
    let told = asked("", "PUT", "/app/", "", &long);
    assert!(told.ends_with(&"x".repeat(3 << 20)) && told.contains("Content-Length: 3145728\r\n"));
    let chunked = "Transfer-Encoding: chunked\r\n";
    let peer = Peer::start(vec![answers(1)]);
    let site = serve(&[&peer], "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("POST", "/app/", chunked);
    client.send(b"3\r\nabc\r\n").unwrap();
    client
        .send(b"2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n")
        .unwrap();
    assert_eq!(client.read().unwrap().status, 200);
    site.stop();
    let told = peer.join().remove(0);
    let (head, body) = told.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains(chunked.trim()) && !head.contains("Content-Length"),
        "{head}"
    );
    let data: String = body.split("\r\n").skip(1).step_by(2).collect();
    assert_eq!(data, "abcde", "{body}");
}

#[test]
fn answers_come_as_they_were_sent_without_what_is_the_connections() {
    let peer = Peer::start(vec![
        sends(
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 201 Made\r\nSet-Cookie: a\r\n\
             Set-Cookie: b\r\nConnection: X-Hidden\r\nX-Hidden: 1\r\nKeep-Alive: 1\r\n\
             X-Accel-Redirect: /y\r\n\
             ETag: \"e\"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        ),
        sends("HTTP/1.0 404 No\r\nContent-Type: text/x\r\n\r\nuntil the end"),
        sends("HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nContent-Length: 7\r\n\r\n"),
        sends("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"),
    ]);
    let site = serve(&[&peer], "keep = 0");
    let made = site.get("/app/").answer;
    assert_eq!((made.status, made.text().as_str()), (201, "abcde"));
    let cookies = made.headers.iter().filter(|(name, _)| name == "set-cookie");
    assert_eq!(cookies.count(), 2);
    assert_eq!(made.header("etag"), Some("\"e\""));
    for gone in ["x-hidden", "keep-alive", "x-accel-redirect"] {
        assert_eq!(made.header(gone), None, "{gone}");
    }
    let missing = site.get("/app/").answer;
    assert_eq!(
        (missing.status, missing.text().as_str()),
        (404, "until the end")
    );
    let same = site.get("/app/").answer;
    assert_eq!((same.status, same.header("etag")), (304, Some("\"e\"")));
    let head = call(site.port(), "HEAD", "/app/", "", b"").answer;
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("7"))
    );
    peer.join();
    site.stop();
}

#[test]
fn early_answer_ends_a_request_whose_body_still_comes() {
    let peer = Peer::start_after_heads(vec![stays_after(answer("enough"))]);
    let site = serve(&[&peer], "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("POST", "/app/", "Content-Length: 5000000\r\n");
    client.send(b"the begin of it").unwrap();
    assert_eq!(client.read().unwrap().text(), "enough");
    // The connection has half a request on it: it is closed.
    peer.join();
    site.stop();
}

#[test]
fn name_is_looked_up_and_a_port_of_a_scheme_is_its_usual_one() {
    let peer = Peer::start(vec![answers(1)]);
    // Not the word that means an address without being looked up.
    let to = format!(
        "\"http://LocalHost:{}\", \"http://no-such-host.invalid:1\"",
        peer.port
    );
    let site = serve_to(&to, "balance = \"round_robin\"");
    assert_eq!(site.get("/app/").answer.text(), "0");
    let failed = serve_to("\"http://no-such-host.invalid:1\"", "");
    assert_eq!(failed.get("/app/").answer.status, 502);
    let record = failed.record("/app/");
    assert_eq!(record["reason"], "the other server cannot be reached");
    let detail = record["detail"].as_str().unwrap();
    assert!(
        detail.contains("no-such-host.invalid was not found"),
        "{detail}"
    );
    peer.join();
    site.stop();
    failed.stop();
}
