//! Commands that know nothing of the web.

use crate::harness::client::{Connection, call};
use crate::site::Programs;

fn route(path: &str, table: &str) -> String {
    format!("path = \"{path}\"\ncgi = {{ {table} }}\n[[site.route]]\n")
}

fn serve(routes: &[(&str, &str)]) -> Programs {
    let routes: String = routes
        .iter()
        .map(|(path, table)| route(path, table))
        .collect();
    let routes = routes.strip_suffix("[[site.route]]\n").unwrap();
    Programs::new().serve_route(routes)
}

#[test]
fn output_is_the_body() {
    let programs = serve(&[
        (
            "/plain",
            "command = [\"echo\", \"one  two\", \"$HOME\", \"*\", \"`id`\"]",
        ),
        (
            "/json",
            "command = [\"/bin/echo\", \"{}\"], output = \"application/json\"",
        ),
        ("/in", "command = [\"pwd\"], dir = \"cgi\""),
        ("/env", "command = [\"env\"], env = { OWN = \"1\" }"),
        ("/input", "command = [\"wc\", \"-c\"]"),
        ("/silent", "command = [\"true\"]"),
    ]);
    let plain = programs.get("/plain").answer;
    assert_eq!(
        (plain.status, plain.text().as_str()),
        (200, "one  two $HOME * `id`\n")
    );
    assert_eq!(
        plain.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(plain.header("content-length"), Some("22"));
    let json = programs.get("/json").answer;
    assert_eq!(
        (json.text().as_str(), json.header("content-type")),
        ("{}\n", Some("application/json"))
    );
    let dir = programs.place.path("cgi").display().to_string();
    assert_eq!(programs.text("/in").trim_end(), dir);
    let env = programs.text("/env");
    assert!(
        env.contains("OWN=1\n") && env.contains("PATH=/usr/local/sbin:"),
        "{env}"
    );
    assert!(
        !env.contains("REQUEST_METHOD") && !env.contains("HTTP_"),
        "{env}"
    );
    let input = call(programs.port(), "POST", "/input", "", b"body").answer;
    assert_eq!((input.status, input.text().as_str()), (200, "0\n"));
    assert_eq!(programs.text("/silent"), "");
    let refused = call(programs.port(), "DELETE", "/plain", "", b"").answer;
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("GET, HEAD, POST, OPTIONS"))
    );
    assert_eq!(
        call(programs.port(), "OPTIONS", "/plain", "", b"")
            .answer
            .status,
        204
    );
    programs.stop();
}

#[test]
fn exit_code_other_than_0_is_a_500_before_the_first_byte_and_breaks_off_after_it() {
    let programs = serve(&[
        (
            "/fails",
            "command = [\"sh\", \"-c\", \"echo why it failed >&2; exit 3\"]",
        ),
        ("/killed", "command = [\"sh\", \"-c\", \"kill -9 $$\"]"),
        (
            "/late",
            "command = [\"sh\", \"-c\", \"head -c 1000000 /dev/zero; exit 1\"]",
        ),
    ]);
    let fails = programs.get("/fails").answer;
    assert_eq!(fails.status, 500);
    let record = programs.record("/fails");
    assert_eq!(
        (&record["reason"], &record["fault"]),
        (&"the command failed".into(), &"script".into())
    );
    let detail = record["detail"].as_str().unwrap();
    assert!(
        detail.ends_with(": exit code 3; stderr: why it failed"),
        "{detail}"
    );
    assert_eq!(programs.get("/killed").answer.status, 502);
    let late = programs.get("/late");
    assert_eq!((late.answer.status, late.is_whole), (200, false));
    programs.stop();
}

#[test]
fn query_chooses_arguments_where_a_pattern_allows_it() {
    let programs = serve(&[(
        "/show",
        "command = [\"printf\", \"<%s>\", \"${query.day}\", \"${query.n}\"], \
         parameters = { day = \"mon|tue\", n = \"[0-9]{1,3}|[a-z $;]+\" }",
    )]);
    assert_eq!(programs.text("/show?day=mon&n=12&other=x"), "<mon><12>");
    assert_eq!(
        programs.text("/show?n=a+b+%24c%3B&day=tue"),
        "<tue><a b $c;>"
    );
    for (query, says) in [
        ("day=mon", "lacks a field"),
        ("day=wed&n=1", "does not allow"),
        ("day=mon&n=1234", "does not allow"),
        ("day=mon&n=-1", "does not allow"),
        ("day=mon&day=tue&n=1", "twice"),
    ] {
        let target = format!("/show?{query}");
        assert_eq!(programs.get(&target).answer.status, 400, "{query}");
        let record = programs.record(&target);
        assert!(
            record["reason"].as_str().unwrap().contains(says),
            "{record}"
        );
        assert_eq!(record["fault"], "client");
    }
    programs.stop();
}

#[test]
fn large_output_and_head_requests() {
    let programs = serve(&[
        (
            "/large",
            "command = [\"head\", \"-c\", \"5000000\", \"/dev/zero\"]",
        ),
        ("/small", "command = [\"echo\", \"small\"]"),
    ]);
    let large = programs.get("/large");
    assert!(large.is_whole && large.answer.body.len() == 5_000_000);
    for path in ["/large", "/small"] {
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let text = crate::harness::client::raw(programs.port(), request.as_bytes());
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"),
            "{text}"
        );
    }
    programs.stop();
}

#[test]
fn what_a_command_prints_is_sent_as_it_comes() {
    let mut programs = Programs::new();
    let fifo = programs.place.path("run/fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    let script = format!("echo begun; read line < {}; echo $line", fifo.display());
    programs = programs.serve_route(
        [("/plain", "text/plain"), ("/events", "text/event-stream")]
            .map(|(path, of)| {
                let keys = format!("command = [\"sh\", \"-c\", \"{script}\"], output = \"{of}\"");
                route(path, &keys)
            })
            .concat()
            .strip_suffix("[[site.route]]\n")
            .unwrap(),
    );
    for path in ["/plain", "/events"] {
        let mut connection = Connection::open(programs.port()).unwrap();
        connection.send_get(path).unwrap();
        // The command ends only after this was seen.
        connection.read_until("begun");
        std::fs::write(&fifo, "the end\n").unwrap();
        connection.read_until("the end");
        let record = programs.record(path);
        assert_eq!(
            (&record["status"], &record["program_end"]),
            (&200.into(), &"clean".into())
        );
    }
    programs.stop();
}

#[test]
fn first_byte_is_for_commands_too_and_ends_with_their_first_byte() {
    let programs = serve(&[
        (
            "/silent",
            "command = [\"sleep\", \"1000\"], first_byte = \"300ms\", grace = \"1s\"",
        ),
        (
            "/speaks",
            "command = [\"sh\", \"-c\", \"echo one; sleep 4; echo two\"], first_byte = \"3s\"",
        ),
        (
            "/trusted",
            "command = [\"sh\", \"-c\", \"echo none; exit 1\"], exit = \"trust\"",
        ),
    ]);
    assert_eq!(programs.get("/silent").answer.status, 504);
    assert_eq!(programs.text("/speaks"), "one\ntwo\n");
    assert_eq!(programs.text("/trusted"), "none\n");
    assert_eq!(programs.record("/trusted")["program_end"], "code 1");
    programs.stop();
}
