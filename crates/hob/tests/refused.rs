//! What is answered before a site is known is in the log of its listener.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "peers/exchange.rs"]
mod exchange;
#[path = "peers/servers.rs"]
mod servers;
#[path = "peers/site.rs"]
mod site;

const CONFIG: &str = r#"
default_log = "all"

[[log]]
name = "all"
file = "all.log"
format = "{method} {target} {status}"

[[listen]]
address = "127.0.0.1:0"

[[site]]
root = "@ROOT@"
"#;

#[test]
fn refused_requests_are_logged() {
    let site = site::Site::make();
    let hob = servers::hob_with(&site, CONFIG);
    let lines = [
        "CONNECT a:80",
        "GET /%00",
        "GET /../plain.txt",
        "GET plain.txt",
        "OPTIONS *",
    ];
    for line in lines {
        let request = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange::converse(hob.port, request.as_bytes()).unwrap();
    }
    // A server that has ended has written every line.
    drop(hob);
    let log = std::fs::read_to_string(site.room("hob").join("all.log")).unwrap();
    let mut logged: Vec<&str> = log.lines().collect();
    logged.sort_unstable();
    logged.retain(|line| lines.iter().any(|sent| line.starts_with(sent)));
    let expected = lines.iter().zip([405, 400, 400, 400, 204]);
    let expected: Vec<String> = expected
        .map(|(line, status)| format!("{line} {status}"))
        .collect();
    assert_eq!(logged, expected, "{log}");
}
