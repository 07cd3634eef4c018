//! Which site answers: the host of the request, however it is written.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::Place;
use harness::client::{ask, raw};

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
fn host_in_the_target_wins_over_the_field() {
    let place = Place::new();
    let hob = place.serve_text(&config(&["one.test", "two.test"]));
    for (target, host, site) in [
        ("http://two.test/", "one.test", "two.test"),
        ("HTTP://TWO.test:81/?a", "one.test", "two.test"),
        ("http://two.test", "one.test", "two.test"),
        ("/", "two.test", "two.test"),
        // Without a site for all, the first answers.
        ("/", "three.test", "one.test"),
    ] {
        let answer = ask(hob.port(), "GET", target, &format!("Host: {host}\r\n"));
        assert_eq!(answer.text(), site, "{target} {host}");
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
