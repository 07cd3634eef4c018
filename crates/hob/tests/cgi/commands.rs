//! Commands that know nothing of the web.

use crate::harness::client::call;
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
fn exit_code_other_than_0_is_a_500_with_stderr_in_the_record() {
    let programs = serve(&[
        (
            "/fails",
            "command = [\"sh\", \"-c\", \"echo partly; echo why it failed >&2; exit 3\"]",
        ),
        (
            "/killed",
            "command = [\"sh\", \"-c\", \"echo partly; kill -9 $$\"]",
        ),
        (
            "/late",
            "command = [\"sh\", \"-c\", \"head -c 1000000 /dev/zero; exit 1\"]",
        ),
    ]);
    let fails = programs.get("/fails").answer;
    assert_eq!(fails.status, 500);
    assert!(!fails.text().contains("partly"));
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
    // Too much to wait for its end: it breaks off.
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
