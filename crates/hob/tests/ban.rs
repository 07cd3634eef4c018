//! `[[ban]]` and `hob ban`: clients that are refused too often are not heard for a while, and all
//! others go on as ever.
#![allow(clippy::unwrap_used)]

mod harness;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use harness::client::{Answer, Connection, ask, get};
use harness::site::{TOP, ask_from, ask_from_with, record};
use harness::{DEADLINE, Hob, Place, send_signal, text_of, wait_for_end};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Signal;

/// A ban rule of 404 and what else is said.
fn rule(keys: &str) -> String {
    format!("[[ban]]\nname = \"guessers\"\nstatus = [\"404\"]\n{keys}\n")
}

/// Serves to clients that are believed to be those whom a field names.
fn serve(place: &Place, rule: &str, site: &str) -> Hob {
    place.serve_text(&format!("{TOP}{site}\n{rule}"))
}

fn status(hob: &Hob, client: &str, path: &str) -> u16 {
    ask_from(hob, client, path).status
}

fn ban(place: &Place, arguments: &[&str]) -> (Option<i32>, String) {
    let output = place.run(&[&["ban"], arguments].concat());
    (output.status.code(), text_of(&output).trim().to_owned())
}

/// Who is banned, and by which rule.
fn banned(place: &Place) -> BTreeMap<String, String> {
    let output = place.run(&["ban", "list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let bans = told["bans"].as_array().unwrap();
    assert_eq!(told["total"], bans.len());
    let entry = |one: &serde_json::Value| {
        let rule = one["rule"].as_str().unwrap_or("hand");
        (one["client"].as_str().unwrap().to_owned(), rule.to_owned())
    };
    bans.iter().map(entry).collect()
}

fn is(bans: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(client, rule): &(&str, &str)| ((*client).to_owned(), (*rule).to_owned());
    bans.iter().map(owned).collect()
}

/// A connection of this machine's own from one of its addresses.
fn try_from_address(address: &str, port: u16) -> Option<Answer> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let from: std::net::SocketAddr = format!("{address}:0").parse().unwrap();
    let to: std::net::SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    rustix::net::bind(&socket, &from).unwrap();
    rustix::net::connect(&socket, &to).ok()?;
    let mut connection = Connection::of(socket);
    connection.send_get("/hello.txt").ok()?;
    connection.read().ok()
}

/// Asks over a connection that stays.
fn ask_on(connection: &mut Connection, path: &str, client: &str) -> Answer {
    let fields = match client {
        "" => String::new(),
        client => format!("X-Forwarded-For: {client}\r\n"),
    };
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    connection.send(head.as_bytes()).unwrap();
    connection.read().unwrap()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn client_that_is_refused_too_often_is_banned_listed_and_lifted() {
    let place = Place::new();
    let hob = serve(&place, &rule("count = \"3/1h\"\ntime = \"2h\""), "");
    for _ in 0..2 {
        assert_eq!(status(&hob, "192.0.2.1", "/nothing"), 404);
        assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 200);
    }
    assert_eq!(
        ban(&place, &["list"]),
        (Some(0), "nobody is banned".to_owned())
    );
    assert_eq!(status(&hob, "192.0.2.1", "/no?thing"), 404);
    let refused = ask_from_with(&hob, "192.0.2.1", "/hello.txt?banned", "");
    assert_eq!(refused.status, 403);
    let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=7200).contains(&after), "{after}");
    // Another client goes on.
    assert_eq!(status(&hob, "192.0.2.2", "/hello.txt"), 200);
    assert_eq!(banned(&place), is(&[("192.0.2.1", "guessers")]));
    let (code, text) = ban(&place, &["list"]);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("192.0.2.1  guessers  404 /no?thing"),
        "{text}"
    );
    let record = record(&place, "/hello.txt?banned");
    assert_eq!(record["reason"], "ban: the client is banned");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.starts_with("guessers, until 20"), "{detail}");
    let told = place.status();
    assert_eq!(told["bans"], 1);
    assert_eq!(told["counters"]["bans_made"], 1);
    assert_eq!(told["counters"]["ban_refused"], 1);
    let lifted = (Some(0), "not banned any more: 192.0.2.1".to_owned());
    let (code, text) = ban(&place, &["lift", "192.0.2.1"]);
    assert!(text.starts_with(&lifted.1) && code == lifted.0, "{text}");
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 200);
    let (code, text) = ban(&place, &["lift", "192.0.2.1"]);
    assert!(
        code == Some(1) && text.contains("not banned: 192.0.2.1"),
        "{text}"
    );
    // Nothing of what was counted before is left.
    for _ in 0..2 {
        assert_eq!(status(&hob, "192.0.2.1", "/nothing"), 404);
    }
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 200);
    hob.stop();
}

#[test]
fn operator_bans_without_a_rule_and_lifts_all() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    for client in ["192.0.2.1", "198.51.100.0/24", "2001:db8::/48"] {
        let (code, text) = ban(&place, &["add", client, "--time", "1d"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.starts_with(&format!("banned for 86400 s: {client}")),
            "{text}"
        );
    }
    let all = is(&[
        ("192.0.2.1", "hand"),
        ("198.51.100.0/24", "hand"),
        ("2001:db8::/48", "hand"),
    ]);
    assert_eq!(banned(&place), all);
    for (client, expected) in [
        ("192.0.2.1", 403),
        ("192.0.2.2", 200),
        ("198.51.100.9", 403),
        ("2001:db8:0:7::1", 403),
        ("2001:db8:1::1", 200),
    ] {
        assert_eq!(status(&hob, client, "/hello.txt"), expected, "{client}");
    }
    let (code, text) = ban(&place, &["add", "192.0.2.300"]);
    assert!(
        code == Some(1) && text.contains("give an address, or a network"),
        "{text}"
    );
    let (_, text) = ban(&place, &["add", "127.0.0.1"]);
    assert!(text.contains("a listener has it in `trusted`"), "{text}");
    let (code, text) = ban(&place, &["lift", "--all"]);
    assert!(
        code == Some(0) && text.starts_with("bans ended: 4"),
        "{text}"
    );
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 200);
    hob.stop();
}

#[test]
fn ban_comes_with_the_last_of_the_count_whichever_thread_answers() {
    let place = Place::new();
    let rule = rule("count = \"40/1h\"\ntime = \"2h\"");
    let hob = place.serve_text(&format!("threads = 2\n{TOP}{rule}"));
    let port = hob.port();
    // Each has a connection of its own, so that both threads have some.
    let asked = || {
        let mut connection = Connection::open(port).unwrap();
        let ask = |_| ask_on(&mut connection, "/nothing", "192.0.2.1").status;
        (0..10).map(ask).collect::<Vec<u16>>()
    };
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(asked)).collect();
        threads
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect()
    });
    assert_eq!(statuses, [404; 40]);
    assert_eq!(status(&hob, "192.0.2.1", "/nothing"), 403);
    assert_eq!(place.counter("bans_made"), 1);
    assert_eq!(banned(&place), is(&[("192.0.2.1", "guessers")]));
    hob.stop();
}

#[test]
fn ban_is_over_when_its_time_is() {
    let place = Place::new();
    let hob = serve(&place, &rule("count = \"1/1h\"\ntime = \"1s\""), "");
    assert_eq!(status(&hob, "192.0.2.1", "/nothing"), 404);
    until("served again", || {
        status(&hob, "192.0.2.1", "/hello.txt") == 200
    });
    assert_eq!(banned(&place), is(&[]));
    assert_eq!(place.status()["bans"], 0);
    hob.stop();
}

#[test]
fn refusals_count_by_what_refused_and_a_page_that_is_missing_does_not() {
    let place = Place::new();
    place.write("staff", "ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n");
    let rules = "[[auth]]\nname = \"staff\"\nhtpasswd = \"staff\"\n\
        [[ban]]\nname = \"guess\"\nrefused = [\"sign_in\"]\ncount = \"2/1h\"\n\
        [[ban]]\nname = \"closed\"\nrefused = [\"access\"]\ncount = \"2/1h\"\n\
        [[ban]]\nname = \"fast\"\nrefused = [\"rate\"]\ncount = \"2/1h\"\n";
    let site = "[[site.route]]\npath = \"/staff/*\"\nfiles = {}\nrequire = \"staff\"\n\
        [[site.route]]\npath = \"/closed\"\nrespond = { body = \"x\" }\n\
        access = { deny = [\"all\"] }\n\
        [[site.route]]\npath = \"/slow\"\nrespond = { body = \"x\" }\n\
        rate = { requests = \"1/h\", burst = 1 }\n";
    let hob = serve(&place, rules, site);
    let wrong = "Authorization: Basic YW5uOndyb25n\r\n";
    for _ in 0..2 {
        for path in ["/nothing", "/staff/a"] {
            assert!(
                [401, 404].contains(&status(&hob, "192.0.2.9", path)),
                "{path}"
            );
        }
        let answer = ask_from_with(&hob, "192.0.2.1", "/staff/a", wrong);
        assert_eq!(answer.status, 401);
        assert_eq!(status(&hob, "192.0.2.2", "/closed"), 403);
    }
    for expected in [200, 429, 429, 403] {
        assert_eq!(status(&hob, "192.0.2.3", "/slow"), expected);
    }
    let all = [
        ("192.0.2.1", "guess"),
        ("192.0.2.2", "closed"),
        ("192.0.2.3", "fast"),
    ];
    assert_eq!(banned(&place), is(&all));
    assert_eq!(status(&hob, "192.0.2.9", "/hello.txt"), 200);
    hob.stop();
}

#[test]
fn dry_run_and_exceptions_ban_nobody() {
    let place = Place::new();
    let rules = format!(
        "{}[[ban]]\nname = \"dry\"\nstatus = [\"4xx\"]\ncount = \"2/1h\"\ndry_run = true\n",
        rule("count = \"2/1h\"\nexcept = [\"192.0.2.0/24\", \"2001:db8::7\"]")
    );
    let hob = serve(&place, &rules, "");
    for (index, client) in ["192.0.2.1", "2001:db8::7"].iter().enumerate() {
        for ask in 0..4 {
            assert_eq!(status(&hob, client, &format!("/nothing?{index}{ask}")), 404);
        }
        assert_eq!(status(&hob, client, "/hello.txt"), 200);
    }
    assert_eq!(place.counter("ban_dry_run"), 4);
    assert_eq!(place.counter("bans_made"), 0);
    let note = "ban: without `dry_run` the client would be banned";
    assert_eq!(record(&place, "/nothing?01")["note"], note);
    assert_eq!(record(&place, "/nothing?00")["note"], "");
    // A network is banned for another of its addresses, and the excepted one goes on.
    for _ in 0..2 {
        assert_eq!(status(&hob, "2001:db8::8", "/nothing"), 404);
    }
    assert_eq!(status(&hob, "2001:db8::9", "/hello.txt"), 403);
    assert_eq!(status(&hob, "2001:db8::7", "/hello.txt"), 200);
    hob.stop();
}

#[test]
fn reload_keeps_bans_and_counts_and_ends_what_no_rule_would_make() {
    let place = Place::new();
    let site = |rules: &str| format!("{TOP}{rules}");
    let before = rule("count = \"3/1h\"\ntime = \"2h\"");
    let hob = place.serve_text(&site(&before));
    for _ in 0..3 {
        status(&hob, "192.0.2.1", "/nothing");
    }
    for _ in 0..2 {
        assert_eq!(status(&hob, "192.0.2.2", "/nothing"), 404);
    }
    assert_eq!(ban(&place, &["add", "192.0.2.7"]).0, Some(0));
    let reload = |rules: &str, count: usize| {
        place.write("hob.toml", &site(rules));
        let reload = place.run(&["reload"]);
        assert!(reload.status.success(), "{}", text_of(&reload));
        hob.wait_for(&format!("reloaded, generation {count}"));
    };
    reload(&before, 2);
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 403);
    assert_eq!(status(&hob, "192.0.2.2", "/nothing"), 404);
    assert_eq!(status(&hob, "192.0.2.2", "/hello.txt"), 403);
    let except = "count = \"3/1h\"\nexcept = [\"192.0.2.1\"]";
    reload(&rule(except), 3);
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 200);
    assert_eq!(
        banned(&place),
        is(&[("192.0.2.2", "guessers"), ("192.0.2.7", "hand")])
    );
    reload("", 4);
    assert_eq!(banned(&place), is(&[("192.0.2.7", "hand")]));
    hob.stop();
}

#[test]
fn bans_outlive_crash_upgrade_and_restart_where_there_is_a_state() {
    let place = Place::new();
    let text = format!(
        "state = \"run/state\"\n{TOP}{}",
        rule("count = \"1/1h\"\ntime = \"2h\"")
    );
    let hob = place.serve_text(&text);
    assert_eq!(status(&hob, "192.0.2.1", "/nothing"), 404);
    assert_eq!(ban(&place, &["add", "2001:db8::/48", "--close"]).0, Some(0));
    let all = is(&[("192.0.2.1", "guessers"), ("2001:db8::/48", "hand")]);
    let is_banned = |hob: &Hob| {
        assert_eq!(status(hob, "192.0.2.1", "/hello.txt"), 403);
        assert_eq!(status(hob, "192.0.2.2", "/hello.txt"), 200);
        assert_eq!(banned(&place), all);
    };
    is_banned(&hob);
    let server = hob.server();
    send_signal(server, Signal::KILL);
    wait_for_end(server);
    hob.wait_for_count("server ready", 2);
    is_banned(&hob);
    let upgrade = place.run(&["upgrade"]);
    assert!(upgrade.status.success(), "{}", text_of(&upgrade));
    is_banned(&hob);
    hob.stop();
    let hob = place.serve_text(&text);
    is_banned(&hob);
    assert_eq!(ban(&place, &["lift", "192.0.2.1"]).0, Some(0));
    hob.stop();
    // A ban that was made last, just before the end.
    let hob = place.serve_text(&text);
    assert_eq!(banned(&place), is(&[("2001:db8::/48", "hand")]));
    assert_eq!(status(&hob, "192.0.2.3", "/nothing"), 404);
    hob.stop();
    let hob = place.serve_text(&text);
    assert_eq!(status(&hob, "192.0.2.3", "/hello.txt"), 403);
    hob.stop();
    // A file that is broken is told of, and bans are made all the same.
    place.write("run/state/bans", "[{\"network\": ");
    let hob = place.serve_text(&text);
    hob.wait_for("the file of bans cannot be read");
    assert_eq!(banned(&place), is(&[]));
    assert_eq!(status(&hob, "192.0.2.3", "/nothing"), 404);
    hob.stop();
    let hob = place.serve_text(&text);
    assert_eq!(status(&hob, "192.0.2.3", "/hello.txt"), 403);
    hob.stop();
}

#[test]
fn as_many_are_banned_as_may_be_and_the_first_to_end_goes() {
    let place = Place::new();
    let rule = rule("count = \"1/1h\"\ntime = \"2h\"");
    let hob = serve(&place, &format!("[limits]\nbans = 3\n{rule}"), "");
    assert_eq!(
        ban(&place, &["add", "192.0.2.1", "--time", "1d"]).0,
        Some(0)
    );
    for client in 2..=5 {
        assert_eq!(status(&hob, &format!("192.0.2.{client}"), "/nothing"), 404);
    }
    let all = [
        ("192.0.2.1", "hand"),
        ("192.0.2.4", "guessers"),
        ("192.0.2.5", "guessers"),
    ];
    assert_eq!(banned(&place), is(&all));
    assert_eq!(place.counter("limit_bans"), 2);
    hob.stop();
}

#[test]
fn nobody_gets_others_banned_or_evades_a_ban_by_a_field_h1_only() {
    let place = Place::new();
    let rule = rule("count = \"2/1h\"");
    // Nobody is believed here.
    let text = format!("{rule}[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n");
    let hob = place.serve_text(&text);
    for client in ["192.0.2.1", "192.0.2.2"] {
        let field = format!("X-Forwarded-For: {client}\r\n");
        assert_eq!(ask(hob.port(), "GET", "/nothing", &field).status, 404);
    }
    let field = "X-Forwarded-For: 192.0.2.3\r\n";
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", field).status, 403);
    assert_eq!(banned(&place), is(&[("127.0.0.1", "guessers")]));
    assert_eq!(
        try_from_address("127.0.0.2", hob.port()).unwrap().status,
        200
    );
    hob.stop();
}

#[test]
fn believed_proxy_is_never_banned_and_its_clients_are_each_for_themself() {
    let place = Place::new();
    let rule = rule("count = \"2/1h\"\nclose = true");
    let hob = serve(&place, &rule, "");
    for _ in 0..4 {
        assert_eq!(get(hob.port(), "/nothing").unwrap().status, 404);
        assert_eq!(status(&hob, "127.0.0.1", "/nothing"), 404);
    }
    // What a client wrote before the address that its proxy saw is nobody's word.
    for _ in 0..2 {
        assert_eq!(status(&hob, "192.0.2.66, 192.0.2.1", "/nothing"), 404);
    }
    assert_eq!(banned(&place), is(&[("192.0.2.1", "guessers")]));
    let mut connection = Connection::open(hob.port()).unwrap();
    for (client, expected) in [
        ("192.0.2.1", 403),
        ("192.0.2.66", 200),
        ("192.0.2.66, 192.0.2.1", 403),
        ("192.0.2.1, 192.0.2.66", 200),
    ] {
        // All over one connection: it is the proxy's, and stays.
        let answer = ask_on(&mut connection, "/hello.txt", client);
        assert_eq!(answer.status, expected, "{client}");
    }
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    hob.stop();
}

#[test]
fn connections_of_a_banned_client_are_closed_where_the_rule_says_so_h1_only() {
    let place = Place::new();
    let rule = rule("count = \"2/1h\"\nclose = true");
    let text = format!("{rule}[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n");
    let hob = place.serve_text(&text);
    // The one that asks is among them.
    let open = || {
        let counters = place.status()["counters"].clone();
        let count = |name: &str| counters[name].as_u64().unwrap();
        count("connections_accepted") - count("connections_closed")
    };
    let at_first = open();
    let mut held = Connection::open(hob.port()).unwrap();
    for _ in 0..2 {
        assert_eq!(ask_on(&mut held, "/nothing", "").status, 404);
    }
    // Whoever is connected is told, once.
    let answer = ask_on(&mut held, "/hello.txt", "");
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(get(hob.port(), "/hello.txt").is_err());
    assert!(try_from_address("127.0.0.1", hob.port()).is_none());
    assert_eq!(
        try_from_address("127.0.0.2", hob.port()).unwrap().status,
        200
    );
    // The operator comes over a socket that nobody is banned from.
    assert_eq!(place.counter("ban_closed"), 2);
    assert_eq!(ban(&place, &["lift", "127.0.0.1"]).0, Some(0));
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    until("those that were closed are counted out", || {
        open() == at_first
    });
    hob.stop();
}

#[test]
fn failed_handshakes_count_h1_only() {
    let place = Place::new();
    place.certificate("own", "own.test");
    let text = "[[ban]]\nname = \"tls\"\nrefused = [\"tls\"]\ncount = \"3/1h\"\nclose = true\n\
        [[listen]]\naddress = \"127.0.0.1:0\"\n\
        tls = { certificate = \"own.pem\", key = \"own.key\", http3 = false }\n\
        [[site]]\nroot = \"site\"\n";
    let hob = place.serve_text(text);
    let attempt = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(("127.0.0.1", hob.tls_port())).unwrap();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    for _ in 0..2 {
        assert!(!attempt(b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03").is_empty());
    }
    // One that leaves is no offence.
    drop(TcpStream::connect(("127.0.0.1", hob.tls_port())).unwrap());
    assert_eq!(banned(&place), is(&[]));
    attempt(b"\x00\x01\x02\x03");
    until("banned", || banned(&place) == is(&[("127.0.0.1", "tls")]));
    assert!(attempt(b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03").is_empty());
    let (_, text) = ban(&place, &["list"]);
    assert!(
        text.contains("TLS: what came is neither TLS nor HTTP"),
        "{text}"
    );
    hob.stop();
}

#[test]
fn header_of_the_proxy_protocol_says_whose_connection_is_closed_h1_only() {
    let place = Place::new();
    let rule = rule("count = \"1/1h\"\nclose = true");
    let text = format!(
        "{rule}[[listen]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = true\n\
         trusted = [\"127.0.0.1\"]\n[[site]]\nroot = \"site\"\n"
    );
    let hob = place.serve_text(&text);
    let asked = |client: &str, path: &str| {
        let mut connection = Connection::open(hob.port()).unwrap();
        let header = format!("PROXY TCP4 {client} 198.51.100.2 4711 443\r\n");
        connection.send(header.as_bytes()).ok()?;
        connection.send_get(path).ok()?;
        connection.read().ok().map(|answer| answer.status)
    };
    assert_eq!(asked("192.0.2.1", "/nothing"), Some(404));
    assert_eq!(asked("192.0.2.1", "/hello.txt"), None);
    assert_eq!(asked("192.0.2.2", "/hello.txt"), Some(200));
    assert_eq!(place.counter("ban_closed"), 1);
    hob.stop();
}
