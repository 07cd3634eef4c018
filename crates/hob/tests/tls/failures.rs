//! Handshakes that fail: counted by reason, and told to those who watch.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::harness::{DEADLINE, Hob, Place};
use super::rules::client_certificate;
use super::watcher::{Watcher, object, of};
use super::{config, s_client};

/// A client that fails, and what is then told.
struct Case {
    /// The counter of its reason.
    counter: &'static str,
    /// Begin of the reason in words.
    reason: &'static str,
    client: fn(&Place, &Hob),
}

fn raw(hob: &Hob, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", hob.tls_port())).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

const CASES: &[Case] = &[
    Case {
        counter: "tls_failed_version",
        reason: "there is no version of TLS that both sides speak",
        client: |_, hob| {
            let old = ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"];
            s_client(hob, &old, "");
        },
    },
    Case {
        counter: "tls_failed_suite",
        reason: "there is no cipher suite, key exchange or signature",
        client: |_, hob| {
            let odd = ["-tls1_2", "-cipher", "AES128-SHA"];
            s_client(hob, &odd, "");
        },
    },
    Case {
        counter: "tls_failed_protocol",
        reason: "there is no application protocol that both sides speak",
        client: |_, hob| {
            s_client(hob, &["-alpn", "gopher"], "");
        },
    },
    Case {
        counter: "tls_failed_refused",
        reason: "the client gave up",
        client: |place, hob| {
            let own = place.path("own.pem");
            let name = ["-verify_return_error", "-verify_hostname", "other.test"];
            let trust = ["-CAfile", own.to_str().unwrap(), "-servername", "own.test"];
            s_client(hob, &[&name[..], &trust].concat(), "");
        },
    },
    Case {
        counter: "tls_failed_certificate",
        reason: "the client's certificate is missing or not accepted",
        client: |_, hob| {
            // Nobody says so before TLS 1.3 is done on the client's side.
            s_client(hob, &["-tls1_2", "-servername", "closed.test"], "");
        },
    },
    Case {
        counter: "tls_failed_foreign",
        reason: "what came is neither TLS nor HTTP",
        client: |_, hob| {
            let mut stream = raw(hob, b"\x00\x01\x02\x03");
            stream.read_to_end(&mut Vec::new()).unwrap();
        },
    },
    Case {
        counter: "tls_failed_broken",
        reason: "the client broke the rules of TLS",
        client: |_, hob| {
            let mut stream = raw(hob, b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03");
            stream.read_to_end(&mut Vec::new()).unwrap();
        },
    },
    Case {
        counter: "tls_failed_left",
        reason: "the client left within the handshake",
        client: |_, hob| {
            let stream = raw(hob, b"\x16\x03\x01");
            stream.shutdown(Shutdown::Both).unwrap();
        },
    },
    Case {
        counter: "limit_handshake_time",
        reason: "limits.handshake_time: it took too long",
        client: |_, hob| {
            let mut stream = raw(hob, b"\x16");
            let _ = stream.read_to_end(&mut Vec::new());
        },
    },
];

fn serve(place: &Place) -> Hob {
    place.certificate("own", "own.test");
    place.certificate("ca", "ca.test");
    client_certificate(place, "ada", "/CN=Ada");
    let site = "[[site]]\nnames = [\"closed.test\"]\nroot = \"site\"\n\
                tls = { client = \"require\", client_ca = \"ca.pem\" }\n";
    let tls = "{ certificate = \"own.pem\", key = \"own.key\" }";
    let limits = "[limits]\nhandshake_time = \"3s\"\n";
    place.serve_text(&format!("{limits}{}", config(tls, site)))
}

#[test]
fn each_reason_is_counted_and_told_to_those_who_watch() {
    let place = Place::new();
    let hob = serve(&place);
    let mut watcher = Watcher::begin(&place, "");
    for (index, case) in CASES.iter().enumerate() {
        (case.client)(&place, &hob);
        let event = watcher.next();
        let name = case.counter;
        assert_eq!(event["stage"], "tls", "{name}: {event:#}");
        let reason = event["reason"].as_str().unwrap();
        assert!(reason.starts_with(case.reason), "{name}: {event:#}");
        let text = event["text"].as_str().unwrap();
        let expected = format!("the handshake over TCP failed: {reason}");
        assert_eq!(text, expected, "{name}");
        assert_eq!(event["fault"], "client", "{name}: {event:#}");
        assert_eq!(event["client"], "127.0.0.1", "{name}: {event:#}");
        assert!(event["client_port"].as_u64().unwrap() > 0, "{name}");
        assert_eq!(place.counter(name), 1, "{name}");
        let all = place.counter("tls_handshakes_failed");
        assert_eq!(all, index as u64 + 1, "{name}");
        let server_name = match name {
            "tls_failed_refused" => "own.test".into(),
            "tls_failed_certificate" => "closed.test".into(),
            _ => Value::Null,
        };
        assert_eq!(event["server_name"], server_name, "{name}: {event:#}");
    }
    hob.stop();
}

/// Waits until the server has this client's connection, or has it no more.
fn wait_for_connection(place: &Place, client_port: u16, is_there: bool) {
    let until = Instant::now() + DEADLINE;
    loop {
        let told = object(place, "/v1/connections");
        let open = told["connections"].as_array().unwrap();
        if open.iter().any(|one| one["client_port"] == client_port) == is_there {
            return;
        }
        assert!(Instant::now() < until, "{client_port}: {told:#}");
    }
}

#[test]
fn connection_that_ends_without_a_byte_was_no_handshake() {
    let place = Place::new();
    place.certificate("own", "own.test");
    // One place: what is not counted out leaves no room for the next. The kernel keeps none back.
    let tls = "{ certificate = \"own.pem\", key = \"own.key\" }\ndefer_accept = \"0s\"";
    let limits = "[limits]\nhandshakes = 1\n";
    let hob = place.serve_text(&format!("{limits}{}", config(tls, "")));
    let mut watcher = Watcher::begin(&place, "");
    for how in ["close", "half", "reset"] {
        let mut probe = raw(&hob, b"");
        let port = probe.local_addr().unwrap().port();
        wait_for_connection(&place, port, true);
        match how {
            "half" => {
                probe.shutdown(Shutdown::Write).unwrap();
                assert_eq!(probe.read(&mut [0]).unwrap(), 0);
            }
            "reset" => {
                let at_once = Some(Duration::ZERO);
                socket2::SockRef::from(&probe).set_linger(at_once).unwrap();
            }
            _ => {}
        }
        drop(probe);
        wait_for_connection(&place, port, false);
    }
    assert_eq!(place.counter("tls_handshakes_failed"), 0);
    let said = raw(&hob, b"\x16");
    let port = said.local_addr().unwrap().port();
    wait_for_connection(&place, port, true);
    drop(said);
    // The first that is told.
    let event = watcher.next();
    assert_eq!(event["client_port"], port, "{event:#}");
    assert_eq!(event["reason"], "the client left within the handshake");
    assert_eq!(place.counter("tls_failed_left"), 1);
    assert_eq!(place.counter("tls_handshakes_failed"), 1);
    s_client(
        &hob,
        &["-quiet", "-ign_eof"],
        "GET /hello.txt HTTP/1.0\r\n\r\n",
    );
    assert_eq!(place.counter("tls_handshakes"), 1);
    hob.stop();
}

#[test]
fn what_has_no_path_is_told_to_nobody_who_asks_for_one() {
    let place = Place::new();
    let hob = serve(&place);
    let mut asking = Watcher::begin(&place, "path=/hello*");
    let mut slow = Watcher::begin(&place, "slower=2s");
    let mut own = Watcher::begin(&place, "client=127.0.0.1");
    (CASES[5].client)(&place, &hob);
    assert_eq!(own.next()["stage"], "tls");
    (CASES[8].client)(&place, &hob);
    let told = slow.next();
    assert_eq!(told["reason"], CASES[8].reason, "{told:#}");
    assert!(told["t_us"].as_u64().unwrap() >= 2_000_000);
    s_client(
        &hob,
        &["-quiet", "-ign_eof"],
        "GET /hello.txt HTTP/1.0\r\n\r\n",
    );
    let events = asking.until("done");
    assert_eq!(of(&events, "request")["target"], "/hello.txt");
    hob.stop();
}

#[test]
fn clear_text_at_a_tls_port_is_a_request_that_is_refused() {
    let place = Place::new();
    let hob = serve(&place);
    let mut watcher = Watcher::begin(&place, "");
    let mut stream = raw(&hob, b"GET /hello.txt HTTP/1.1\r\nHost: own.test\r\n\r\n");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let events = watcher.until("done");
    let done = of(&events, "done");
    assert_eq!(done["status"], 400);
    let reason = "it came in clear text to a listener that speaks TLS";
    assert_eq!(done["reason"], reason, "{done:#}");
    assert_eq!(place.counter("tls_clear_text"), 1);
    assert_eq!(place.counter("tls_handshakes_failed"), 0);
    hob.stop();
}

#[test]
fn hob_watch_shows_them_as_lines_without_a_name_that_is_none() {
    let place = Place::new();
    let hob = serve(&place);
    let mut command = place.command();
    command.arg("watch");
    let mut watch = Hob::start(command);
    watch.wait_for("hob: watching");
    let mut watcher = Watcher::begin(&place, "");
    // A name that would clear the screen.
    let hello = [
        &b"\x16\x03\x01\x00\x43\x01\x00\x00\x3f\x03\x03"[..],
        &[7; 32],
        b"\x00\x00\x02\x13\x01\x01\x00\x00\x14\x00\x00\x00\x10\x00\x0e\x00\x00\x0b",
        b"a\x1b[2Jb.test",
    ]
    .concat();
    let mut stream = raw(&hob, &hello);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
    let event = watcher.next();
    assert_eq!(
        (&event["outcome"], &event["server_name"]),
        (&"failed".into(), &Value::Null)
    );
    (CASES[0].client)(&place, &hob);
    let line = watch.wait_for("no version of TLS");
    assert!(line.contains("  tls  "), "{line}");
    assert!(line.contains("client=127.0.0.1"), "{line}");
    watch.signal(rustix::process::Signal::INT);
    assert_eq!(watch.exit_code(), Some(0));
    hob.stop();
}
