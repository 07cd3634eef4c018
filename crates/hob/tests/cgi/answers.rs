//! What programs print, and the answers made of it (RFC 3875 section 6).

use crate::harness::client::{Connection, call};
use crate::site::Programs;

#[test]
fn hello_in_each_language() {
    let programs = Programs::new()
        .with_sh(
            "sh.cgi",
            "printf 'Content-Type: text/plain\\n\\nhello from sh\\n'\n",
        )
        .with(
            "perl.cgi",
            "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\r\\n\\r\\nhello from perl\\n\";\n",
        )
        .with(
            "python.cgi",
            "#!/usr/bin/env python3\nprint('Content-Type: text/plain\\n\\nhello from python')\n",
        )
        .with_c(
            "c.cgi",
            "#include <stdio.h>\nint main(void) {\n\
             puts(\"Content-Type: text/plain\\n\\nhello from c\"); return 0; }\n",
        )
        .serve("");
    for language in ["sh", "perl", "python", "c"] {
        let path = format!("/cgi/{language}.cgi");
        let reply = programs.get(&path);
        assert_eq!(reply.answer.status, 200, "{reply:?}");
        assert_eq!(reply.answer.text(), format!("hello from {language}\n"));
        assert_eq!(reply.answer.header("content-type"), Some("text/plain"));
        let record = programs.record(&path);
        assert_eq!(record["handler"], "cgi");
        assert_eq!(record["reason"], "");
        assert!(record["program_us"].as_u64().unwrap() > 0);
    }
    programs.stop();
}

#[test]
fn head_is_passed_on_but_for_what_is_the_servers() {
    let programs = Programs::new()
        .with_sh(
            "fields.cgi",
            "cat <<END\nStatus: 404 Gone fishing\nContent-Type: text/x-test\nX-Own: 1\n\
             Set-Cookie: a=1\nSet-Cookie: b=2\nConnection: close, X-Hop\nX-Hop: 1\nKeep-Alive: 9\n\
             Date: never\nServer: mine\nX-CGI-Own: 1\n\nbody\nEND\n",
        )
        .with_sh("typeless.cgi", "printf 'X-Own: 1\\n\\n<b>text</b>'\n")
        .with_sh("empty.cgi", "printf 'Status: 200\\n\\n'\n")
        .serve("");
    let reply = programs.get("/cgi/fields.cgi");
    let header = |name: &str| {
        let all = reply.answer.headers.iter();
        let values = all.filter(|(known, _)| known == name);
        values.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        (reply.answer.status, reply.answer.text().as_str()),
        (404, "body\n")
    );
    assert_eq!(header("content-type"), ["text/x-test"]);
    assert_eq!(header("x-own"), ["1"]);
    assert_eq!(header("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(header("server"), ["hob"]);
    assert_eq!(header("connection"), ["close"]);
    for gone in ["x-hop", "keep-alive", "x-cgi-own", "status"] {
        assert!(header(gone).is_empty(), "{gone}");
    }
    let [date] = header("date")[..] else {
        panic!("one date: {reply:?}");
    };
    assert!(date.ends_with("GMT"), "{date}");
    // Without a type nothing in it is run.
    let typeless = programs.get("/cgi/typeless.cgi").answer;
    assert_eq!(
        typeless.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let empty = programs.get("/cgi/empty.cgi").answer;
    assert_eq!(
        (empty.status, empty.header("content-length")),
        (200, Some("0"))
    );
    assert_eq!(empty.header("content-type"), None);
    programs.stop();
}

#[test]
fn status_line_of_its_own_is_read_and_the_answer_framed_anew() {
    let programs = Programs::new()
        .with_sh(
            "nph-plain.cgi",
            "printf 'HTTP/1.0 404 Not Here\\r\\nContent-Type: text/plain\\r\\nX-A: 1\\r\\n'\n\
             printf 'Script-Control: buffer=on\\r\\n\\r\\nno'\n",
        )
        .with_sh(
            "nph-chunks.cgi",
            "printf 'HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\n'\n\
             printf 'Transfer-Encoding: chunked\\r\\nContent-Type: text/plain\\r\\n\\r\\n'\n\
             printf '3\\r\\nabc\\r\\n4;x=y\\r\\ndefg\\r\\n0\\r\\n\\r\\n'\n",
        )
        .with_sh(
            "nph-wrong.cgi",
            "printf 'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nplain'\n",
        )
        .serve("");
    let reply = programs.get("/cgi/nph-plain.cgi");
    assert_eq!(
        (reply.answer.status, reply.answer.text().as_str()),
        (404, "no")
    );
    assert_eq!(reply.answer.header("x-a"), Some("1"));
    assert_eq!(reply.answer.header("content-length"), Some("2"));
    assert_eq!(programs.text("/cgi/nph-chunks.cgi"), "abcdefg");
    assert!(programs.get("/cgi/nph-wrong.cgi").is_broken());
    programs.stop();
}

#[test]
fn location_of_this_server_answers_instead() {
    let programs = Programs::new()
        .with_sh("file.cgi", "printf 'Location: /hello.txt\\n\\n'\n")
        .with_sh(
            "query.cgi",
            "printf 'Location: /cgi/shown.cgi/info?a=b%%20c\\n\\n'\n",
        )
        .with_sh(
            "shown.cgi",
            "printf 'Content-Type: text/plain\\n\\n'\n\
             echo \"$REQUEST_METHOD $SCRIPT_NAME $PATH_INFO $QUERY_STRING $CONTENT_LENGTH\"\n\
             echo \"$REQUEST_URI\"; wc -c\n",
        )
        .with_sh("missing.cgi", "printf 'Location: /not/there\\n\\n'\n")
        .with_sh("circle.cgi", "printf 'Location: /cgi/circle.cgi\\n\\n'\n")
        .serve("");
    assert_eq!(programs.text("/cgi/file.cgi"), "hello\n");
    let reply = call(programs.port(), "POST", "/cgi/query.cgi?own=1", "", b"body");
    assert_eq!(
        reply.answer.text(),
        "GET /cgi/shown.cgi /info a=b%20c \n/cgi/query.cgi?own=1\n0\n"
    );
    assert_eq!(programs.get("/cgi/missing.cgi").answer.status, 404);
    let circle = programs.get("/cgi/circle.cgi");
    assert_eq!(circle.answer.status, 500, "{circle:?}");
    assert_eq!(programs.record("/cgi/circle.cgi")["fault"], "script");
    programs.stop();
}

#[test]
fn other_locations_redirect_the_client() {
    let programs = Programs::new()
        .with_sh(
            "away.cgi",
            "printf 'Location: http://example.org/x?y#z\\n\\n'\n",
        )
        .with_sh("part.cgi", "printf 'Location: /hello.txt#part\\n\\n'\n")
        .with_sh(
            "other.cgi",
            "printf 'Status: 303 Other\\nLocation: /hello.txt\\n\\n'\n",
        )
        .with_sh(
            "created.cgi",
            "printf 'Status: 201 Created\\nLocation: /new\\nContent-Type: text/plain\\n\\nmade'\n",
        )
        .serve("");
    for (name, status, location, body) in [
        ("away", 302, "http://example.org/x?y#z", ""),
        ("part", 302, "/hello.txt#part", ""),
        ("other", 303, "/hello.txt", ""),
        ("created", 201, "/new", "made"),
    ] {
        let answer = programs.get(&format!("/cgi/{name}.cgi")).answer;
        assert_eq!(
            (answer.status, answer.header("location")),
            (status, Some(location))
        );
        assert_eq!(answer.text(), body, "{name}");
    }
    programs.stop();
}

#[test]
fn announced_length_is_held_against_the_body() {
    let programs = Programs::new()
        .with_sh(
            "exact.cgi",
            "printf 'Content-Length: 4\\nContent-Type: a/b\\n\\nbody'\n",
        )
        .with_sh(
            "longer.cgi",
            "printf 'Content-Length: 4\\nContent-Type: a/b\\n\\nbody and more'\n",
        )
        .with_sh(
            "shorter.cgi",
            "printf 'Content-Length: 9\\nContent-Type: a/b\\n\\nbody'\n",
        )
        .with_sh(
            "shorter-late.cgi",
            "printf 'Content-Length: 300000\\nContent-Type: a/b\\n\\n'\n\
             head -c 200000 /dev/zero\n",
        )
        .with_sh(
            "longer-late.cgi",
            "printf 'Content-Length: 200000\nContent-Type: a/b\n\n'\n\
             head -c 300000 /dev/zero\n",
        )
        .serve("");
    let late = programs.get("/cgi/longer-late.cgi");
    assert_eq!((late.answer.body.len(), late.is_whole), (200_000, true));
    let cut = "the body was cut to its Content-Length";
    assert_eq!(programs.record("/cgi/longer-late.cgi")["note"], cut);
    for name in ["exact", "longer"] {
        let reply = programs.get(&format!("/cgi/{name}.cgi"));
        assert_eq!(
            (reply.answer.status, reply.answer.text().as_str()),
            (200, "body"),
            "{name}"
        );
        assert_eq!(reply.answer.header("content-length"), Some("4"));
    }
    assert_eq!(programs.record("/cgi/longer.cgi")["note"], cut);
    assert_ne!(programs.record("/cgi/exact.cgi")["note"], cut);
    let shorter = programs.get("/cgi/shorter.cgi");
    assert_eq!(shorter.answer.status, 502);
    let record = programs.record("/cgi/shorter.cgi");
    assert_eq!(
        record["reason"],
        "the program's output is shorter than its Content-Length"
    );
    assert!(
        record["detail"].as_str().unwrap().ends_with("4 bytes of 9"),
        "{record}"
    );
    // Its head has left: the client sees that something is missing.
    let late = programs.get("/cgi/shorter-late.cgi");
    assert_eq!((late.answer.status, late.is_whole), (200, false));
    assert_eq!(
        programs.record("/cgi/shorter-late.cgi")["outcome"],
        "broken"
    );
    programs.stop();
}

#[test]
fn large_output_is_passed_on_as_it_comes() {
    let programs = Programs::new()
        .with_sh(
            "large.cgi",
            "printf 'Content-Type: application/octet-stream\\n\\n'\n\
             yes 0123456789abcde | head -c 50000000\n",
        )
        .with_sh(
            "events.cgi",
            "printf 'Content-Type: text/event-stream\\n\\ndata: first\\n\\n'\n\
             read line < \"$1\"\nprintf 'data: second\\n\\n'\n",
        )
        .serve("");
    let reply = programs.get("/cgi/large.cgi");
    assert!(reply.is_whole && reply.is_chunked);
    assert_eq!(reply.answer.body.len(), 50_000_000);
    assert!(
        reply
            .answer
            .body
            .chunks(16)
            .all(|line| b"0123456789abcde\n".starts_with(line))
    );
    // The first event arrives while the program waits for us.
    let fifo = programs.place.path("run/fifo");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
    )
    .unwrap();
    let mut connection = Connection::open(programs.port()).unwrap();
    let query = fifo.display().to_string().replace('/', "%2f");
    connection
        .send_get(&format!("/cgi/events.cgi?{query}"))
        .unwrap();
    let (status, _) = connection.read_head().unwrap();
    assert_eq!(status, 200);
    connection.read_until("data: first");
    std::fs::write(&fifo, "go on\n").unwrap();
    connection.read_until("data: second");
    connection.read_to_end();
    programs.stop();
}

#[test]
fn head_request_gets_the_head_alone() {
    let programs = Programs::new()
        .with_sh(
            "page.cgi",
            "printf 'Content-Type: text/plain\\nX-Method: %s\\n\\n' $REQUEST_METHOD\n\
             head -c 1000000 /dev/zero\necho $? >&2\n",
        )
        .with_sh(
            "length.cgi",
            "printf 'Content-Length: 12\\nContent-Type: a/b\\n\\n'\n",
        )
        .serve("");
    let mut connection = Connection::open(programs.port()).unwrap();
    for path in ["/cgi/page.cgi", "/cgi/length.cgi", "/hello.txt"] {
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        connection.send(request.as_bytes()).unwrap();
        let (status, headers) = connection.read_head().unwrap();
        assert_eq!(status, 200, "{path}");
        let value = |name: &str| {
            let found = headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        match path {
            "/cgi/page.cgi" => assert_eq!(value("x-method"), Some("HEAD")),
            "/cgi/length.cgi" => assert_eq!(value("content-length"), Some("12")),
            _ => assert_eq!(value("content-length"), Some("6")),
        }
    }
    // What it printed was read: it did not die of a broken pipe.
    programs.hob().wait_for("stderr: 0");
    programs.stop();
}
