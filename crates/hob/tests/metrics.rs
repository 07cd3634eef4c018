//! `/metrics`: what it counts, who may see it, and what Prometheus's own tools say of it.
#![allow(clippy::unwrap_used)]

mod harness;

use std::io::Write;
use std::process::{Command, Stdio};

use harness::client::{Answer, Connection, ask, get};
use harness::{Place, text_of};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OPENMETRICS: &str = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";

fn control(place: &Place, fields: &str) -> Answer {
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    connection.send_ask("GET", "/metrics", fields);
    connection.read_last("GET")
}

/// The value of a number by its name and labels, as they are written.
fn value(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name))?;
    line.strip_prefix(' ')?.parse().ok()
}

fn site_with_programs(place: &Place) -> String {
    place.folder("site/bin");
    let script = place.path("site/bin/hello.sh");
    std::fs::write(
        &script,
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello'\n",
    )
    .unwrap();
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, runnable).unwrap();
    place.write("token", &format!("{TOKEN}\n"));
    "[[site.route]]\npath = \"/bin/*\"\ncgi = { dir = \"site/bin\" }\n\
     [[site.route]]\npath = \"/metrics\"\nmetrics = { token_file = \"token\" }\n"
        .to_owned()
}

/// A page of a server that has had requests of several kinds.
fn busy_page(place: &Place, fields: &str) -> Answer {
    let routes = site_with_programs(place);
    let hob = place.serve_config_with("threads = 2", &routes);
    for _ in 0..3 {
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    }
    assert_eq!(get(hob.port(), "/bin/hello.sh").unwrap().text(), "hello");
    assert_eq!(ask(hob.port(), "GET", "/missing", "").status, 404);
    place.wait_for_counter("requests", 5);
    let answer = control(place, fields);
    hob.stop();
    answer
}

#[test]
fn requests_are_counted_by_site_handler_and_class_with_their_times() {
    let place = Place::new();
    let answer = busy_page(&place, OPENMETRICS);
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some(media_type));
    let page = answer.text();
    assert!(page.ends_with("# EOF\n"), "{page}");
    let files = |class: &str| {
        let labels = format!("{{site=\"*\",handler=\"files\",class=\"{class}\"}}");
        value(&page, &format!("hob_requests_total{labels}"))
    };
    assert_eq!((files("2xx"), files("4xx")), (Some(3.0), Some(1.0)));
    for (name, wanted) in [
        (
            "hob_requests_total{site=\"*\",handler=\"cgi\",class=\"2xx\"}",
            1.0,
        ),
        ("hob_cache_hits_total", 2.0),
        ("hob_limit_reached_total{limit=\"head\"}", 0.0),
        (
            "hob_request_duration_seconds_count{site=\"*\",handler=\"files\"}",
            4.0,
        ),
        ("hob_program_start_seconds_count{handler=\"cgi\"}", 1.0),
        ("hob_program_cpu_seconds_count{handler=\"cgi\"}", 1.0),
        ("hob_program_processes{program=\"/bin/* cgi\"}", 0.0),
        ("hob_queue_length{program=\"/bin/* cgi\"}", 0.0),
        ("hob_programs_ended_total", 1.0),
    ] {
        assert_eq!(value(&page, name), Some(wanted), "{name}\n{page}");
    }
    assert!(value(&page, "process_resident_memory_bytes").unwrap() > 1.0e6);
    let accepted = page
        .lines()
        .find(|line| line.starts_with("hob_listener_connections_total{"));
    assert!(accepted.unwrap().ends_with("\"} 5"), "{accepted:?}");
}

#[test]
fn sites_beyond_the_limit_are_counted_as_other() {
    let place = Place::new();
    let hob = place.serve_text(
        "[metrics]\nsites = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[site]]\nnames = [\"a.test\"]\nroot = \"site\"\n\
         [[site]]\nnames = [\"b.test\"]\nroot = \"site\"\n",
    );
    for host in ["a.test", "b.test", "b.test"] {
        let answer = ask(
            hob.port(),
            "GET",
            "/hello.txt",
            &format!("Host: {host}\r\n"),
        );
        assert_eq!(answer.status, 200);
    }
    place.wait_for_counter("requests", 3);
    let page = control(&place, "").text();
    for (site, count) in [("a.test", 1.0), ("other", 2.0)] {
        let labels = format!("{{site=\"{site}\",handler=\"files\",class=\"2xx\"}}");
        assert_eq!(
            value(&page, &format!("hob_requests_total{labels}")),
            Some(count),
            "{page}"
        );
    }
    hob.stop();
}

#[test]
fn route_wants_its_token() {
    let place = Place::new();
    let routes = site_with_programs(&place);
    let hob = place.serve_config_with("", &routes);
    let wrong = "1".repeat(TOKEN.len());
    for authorization in [
        String::new(),
        "Authorization: Bearer\r\n".to_owned(),
        format!("Authorization: Bearer {wrong}\r\n"),
        format!("Authorization: Bearer {TOKEN}0\r\n"),
        format!("Authorization: Basic {TOKEN}\r\n"),
    ] {
        let answer = ask(hob.port(), "GET", "/metrics", &authorization);
        assert_eq!(answer.status, 401, "{authorization}");
        let challenge = Some("Bearer realm=\"metrics\"");
        assert_eq!(answer.header("www-authenticate"), challenge);
        assert!(!answer.text().contains("hob_"));
        let told = answer.text();
        assert!(told.contains("Authorization: Bearer TOKEN"), "{told}");
    }
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    let answer = ask(hob.port(), "GET", "/metrics", &right);
    assert_eq!(answer.status, 200);
    let media_type = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(answer.header("content-type"), Some(media_type));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(
        answer
            .text()
            .contains("\n# TYPE hob_requests_total counter\n")
    );
    assert_eq!(ask(hob.port(), "POST", "/metrics", &right).status, 405);
    hob.stop();
}

#[test]
fn token_that_is_none_is_told_when_the_config_is_loaded() {
    for (token, told) in [
        ("short", "16 to 1024 characters"),
        ("two words, which are no token", "one line"),
    ] {
        let place = Place::new();
        let routes = site_with_programs(&place);
        place.write("token", token);
        let text = format!("{}{routes}", harness::config("", "site"));
        place.write("hob.toml", &text);
        let output = place.run(&["serve", "--config", "hob.toml"]);
        assert_ne!(output.status.code(), Some(0));
        let said = text_of(&output);
        assert!(said.contains(told), "{said}");
    }
}

/// Gives a page to a program and says what it printed; `None` where it is not installed.
fn judged(program: &mut Command, page: &str) -> Option<(bool, String)> {
    let child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    child
        .stdin
        .take()
        .unwrap()
        .write_all(page.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Some((output.status.success(), text_of(&output)))
}

#[test]
fn promtool_finds_no_fault() {
    let place = Place::new();
    let page = busy_page(&place, "").text();
    match judged(Command::new("promtool").args(["check", "metrics"]), &page) {
        Some((is_right, said)) => assert!(is_right, "{said}\n{page}"),
        None => eprintln!("skipped: promtool is not installed (Debian package prometheus)"),
    }
}

#[test]
fn openmetrics_parser_of_prometheus_takes_every_line() {
    const CHECK: &str = "import sys\n\
        try:\n    from prometheus_client.openmetrics import parser\n\
        except ImportError:\n    print('missing'); sys.exit(0)\n\
        print(len(list(parser.text_string_to_metric_families(sys.stdin.read()))))\n";
    let place = Place::new();
    let page = busy_page(&place, OPENMETRICS).text();
    // Debian's, which has Debian's packages, whatever stands in PATH.
    match judged(Command::new("/usr/bin/python3").args(["-c", CHECK]), &page) {
        Some((true, said)) if said.starts_with("missing") => {
            eprintln!("skipped: Debian package python3-prometheus-client is not installed");
        }
        Some((is_right, said)) => {
            assert!(is_right, "{said}\n{page}");
            let families = page
                .lines()
                .filter(|line| line.starts_with("# TYPE "))
                .count();
            assert_eq!(said.trim(), families.to_string());
        }
        None => eprintln!("skipped: python3 is not installed"),
    }
}

#[test]
fn dashboard_names_only_metrics_that_are_there() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = std::fs::read_to_string(format!("{root}/packaging/grafana/hob.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let place = Place::new();
    let page = busy_page(&place, "").text();
    let mut named = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap_or(&Vec::new()) {
            let asked = target["expr"].as_str().unwrap();
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let words = asked.split(|c| !is_name(c));
            for name in
                words.filter(|word| word.starts_with("hob_") || word.starts_with("process_"))
            {
                named += 1;
                let family = ["_bucket", "_sum", "_count"];
                let family = family.iter().find_map(|end| name.strip_suffix(end));
                // Programs of a kind this site does not have: their families are told in the table.
                let is_there = [name, family.unwrap_or(name)]
                    .iter()
                    .any(|name| page.contains(&format!("# TYPE {name} ")));
                let reference = format!("{root}/docs/src/reference/metrics.md");
                let is_told = || {
                    let reference = std::fs::read_to_string(&reference).unwrap();
                    reference.contains(&format!("| `{}` |", family.unwrap_or(name)))
                };
                assert!(is_there || is_told(), "{name} in {asked}");
            }
        }
    }
    assert!(named > 20, "{named}");
}
