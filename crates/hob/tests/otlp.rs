//! Traces: what a collector gets, what a program is told, and what happens when nobody takes them.
//! `conformance/otel` does the same with a real collector.
#![allow(clippy::unwrap_used)]

mod harness;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use harness::client::ask;
use harness::{DEADLINE, Place, send_signal, text_of};
use rustix::process::Signal;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// Something that takes batches as a collector does.
struct Collector {
    port: u16,
    bodies: Receiver<Vec<u8>>,
}

/// A span as far as these tests look at it.
#[derive(Debug)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: BTreeMap<String, String>,
}

impl Collector {
    /// Answers every batch with one of these, the last for all that follow.
    fn start(answers: &'static [&'static str]) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (send, bodies) = channel();
        std::thread::spawn(move || {
            let mut answers = answers.iter().cycle().take(answers.len());
            let mut answer = "";
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                while let Some(body) = read_request(&mut socket) {
                    answer = answers.next().unwrap_or(&answer);
                    socket.write_all(answer.as_bytes()).unwrap();
                    if send.send(body).is_err() {
                        return;
                    }
                }
            }
        });
        Collector { port, bodies }
    }

    /// The same over TLS, with the certificate `NAME.pem`. Who does not go on with the handshake
    /// is forgotten.
    fn start_tls(place: &Place, name: &str) -> Collector {
        let read = |end: &str| std::fs::read(place.path(&format!("{name}{end}"))).unwrap();
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(".pem")).collect();
        let key = PrivateKeyDer::from_pem_slice(&read(".key")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.unwrap(), key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (send, bodies) = channel();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut sealed = rustls::StreamOwned::new(connection, socket.unwrap());
                while let Some(body) = read_request(&mut sealed) {
                    sealed.write_all(TAKEN.as_bytes()).unwrap();
                    if send.send(body).is_err() {
                        return;
                    }
                }
            }
        });
        Collector { port, bodies }
    }

    fn keys(&self, more: &str) -> String {
        self.keys_for("http://127.0.0.1", more)
    }

    /// The same where the collector is known by this.
    fn keys_for(&self, origin: &str, more: &str) -> String {
        format!(
            "[otlp]\nendpoint = \"{origin}:{}\"\none_in = 1\ninterval = \"100ms\"\n\
             headers = {{ X-Key = \"secret\" }}\n{more}",
            self.port
        )
    }

    /// Spans, until there are so many.
    fn spans(&self, count: usize) -> Vec<Span> {
        let mut all = Vec::new();
        while all.len() < count {
            let body = self.bodies.recv_timeout(DEADLINE).unwrap();
            all.extend(spans(&body));
        }
        all
    }
}

/// The body of one request to the collector; `None` at the end of the connection.
fn read_request(socket: &mut impl Read) -> Option<Vec<u8>> {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") {
        if socket.read(&mut byte).ok()? == 0 {
            return None;
        }
        seen.push(byte[0]);
    }
    let head = String::from_utf8(seen).unwrap().to_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/x-protobuf\r\n"),
        "{head}"
    );
    assert!(head.contains("x-key: secret\r\n"), "{head}");
    let length = head.split("content-length: ").nth(1)?;
    let length = length.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    socket.read_exact(&mut body).ok()?;
    Some(body)
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const LATER: &str = "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
const NEVER: &str = "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n";

/// Fields of a protobuf message: number and bytes, or the bytes of a number.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                let value = varint(&mut bytes);
                all.push((key >> 3, value.to_be_bytes().to_vec()));
                continue;
            }
            1 => 8,
            5 => 4,
            2 => varint(&mut bytes) as usize,
            other => panic!("wire type {other}"),
        };
        let (value, rest) = bytes.split_at(length);
        all.push((key >> 3, value.to_vec()));
        bytes = rest;
    }
    all
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        if *byte < 128 {
            break;
        }
    }
    value
}

fn below(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    let all = fields(message).into_iter();
    all.filter(|(one, _)| *one == number)
        .map(|(_, value)| value)
        .collect()
}

fn spans(export: &[u8]) -> Vec<Span> {
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let mut all = Vec::new();
    for resource in below(export, 1) {
        for scope in below(&resource, 2) {
            for span in below(&scope, 2) {
                let one = |number| below(&span, number).pop().unwrap_or_default();
                let attributes = below(&span, 9).into_iter().map(|pair| {
                    let key = below(&pair, 1).pop().unwrap();
                    let value = fields(&below(&pair, 2).pop().unwrap()).pop().unwrap();
                    let value = match value {
                        (1, text) => String::from_utf8(text).unwrap(),
                        (_, number) => u64::from_be_bytes(number.try_into().unwrap()).to_string(),
                    };
                    (String::from_utf8(key).unwrap(), value)
                });
                all.push(Span {
                    trace: hex(&one(1)),
                    id: hex(&one(2)),
                    parent: hex(&one(4)),
                    name: String::from_utf8(one(5)).unwrap(),
                    attributes: attributes.collect(),
                });
            }
        }
    }
    all
}

/// A program that prints what it was told of its trace.
fn program(place: &Place) -> &'static str {
    let text = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s %s %s' \
                \"$TRACEPARENT\" \"$HTTP_TRACEPARENT\" \"$HTTP_TRACESTATE\"\n";
    place.script("site/bin/trace.sh", text);
    "[[site.route]]\npath = \"/bin/*\"\ncgi = { dir = \"site/bin\" }\n"
}

#[test]
fn sampled_request_of_a_trace_is_exported_and_its_program_is_below_it() {
    let place = Place::new();
    let collector = Collector::start(&[TAKEN]);
    let log = "[[log]]\nname = \"main\"\nfile = \"run/log\"\nformat = \"{trace_id} {target}\"\n";
    let keys = format!("default_log = \"main\"\n{}{log}", collector.keys(""));
    let hob = place.serve_config_with(&keys, program(&place));
    let field =
        format!("Traceparent: 00-{TRACE}-{CALLER}-01\r\nTracestate: a=1\r\ntracestate: b=2\r\n");
    let answer = ask(hob.port(), "GET", "/bin/trace.sh?key=hidden", &field);
    // There is one more where it had to wait.
    let spans = collector.spans(2);
    assert!(spans.iter().any(|span| span.name == "program"), "{spans:?}");
    let own = spans.iter().find(|span| span.name == "GET /bin/*").unwrap();
    let told = format!("00-{TRACE}-{}-01", own.id);
    assert_eq!(answer.text(), format!("{told} {told} a=1,b=2"));
    assert_eq!((&*own.trace, &*own.parent), (TRACE, CALLER));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.route", "/bin/*"),
        ("http.response.status_code", "200"),
        ("url.path", "/bin/trace.sh"),
        ("url.scheme", "http"),
        ("network.protocol.version", "1.1"),
        ("hob.handler", "cgi"),
    ] {
        assert_eq!(
            own.attributes.get(key).map(String::as_str),
            Some(value),
            "{key}"
        );
    }
    assert!(!format!("{spans:?}").contains("hidden"));
    for span in spans.iter().filter(|span| span.name != own.name) {
        assert_eq!(
            (&span.trace, &span.parent),
            (&own.trace, &own.id),
            "{span:?}"
        );
    }
    place.wait_for_counter("otlp_spans", spans.len() as u64);
    hob.stop();
    let log = std::fs::read_to_string(place.path("run/log")).unwrap();
    assert_eq!(log, format!("{TRACE} /bin/trace.sh?key=hidden\n"));
}

#[test]
fn request_without_a_caller_begins_a_trace_of_its_own() {
    let place = Place::new();
    let collector = Collector::start(&[TAKEN]);
    let hob = place.serve_config(&collector.keys("service = \"shop\"\n"));
    let wrong = format!("traceparent: 00-{TRACE}-{CALLER}\r\ntracestate: a=1\r\n");
    for fields in ["", &wrong] {
        assert_eq!(ask(hob.port(), "GET", "/hello.txt", fields).status, 200);
    }
    let spans = collector.spans(2);
    assert!(
        spans
            .iter()
            .all(|span| span.parent.is_empty() && span.trace != TRACE)
    );
    assert_ne!(spans[0].trace, spans[1].trace);
    hob.stop();
}

#[test]
fn caller_that_does_not_sample_is_passed_on_and_not_exported() {
    let place = Place::new();
    let collector = Collector::start(&[TAKEN]);
    let hob = place.serve_config_with(&collector.keys(""), program(&place));
    let caller = format!("00-{TRACE}-{CALLER}-00");
    let field = format!("traceparent: {caller}\r\n");
    let answer = ask(hob.port(), "GET", "/bin/trace.sh", &field);
    assert_eq!(answer.text(), format!("{caller} {caller} "));
    // Only this one leaves.
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    let spans = collector.spans(1);
    assert!(spans.iter().all(|span| span.trace != TRACE), "{spans:?}");
    hob.stop();
}

#[test]
fn parent_can_be_joined_or_ignored() {
    for (parent, is_joined) in [("join", true), ("ignore", false)] {
        let place = Place::new();
        let collector = Collector::start(&[TAKEN]);
        let hob = place.serve_config(&collector.keys(&format!("parent = \"{parent}\"\n")));
        let field = format!("traceparent: 00-{TRACE}-{CALLER}-00\r\n");
        assert_eq!(ask(hob.port(), "GET", "/hello.txt", &field).status, 200);
        // `one_in` decides, not the caller.
        let spans = collector.spans(1);
        assert_eq!(spans[0].trace == TRACE, is_joined, "{parent}");
        hob.stop();
    }
}

#[test]
fn without_otlp_the_field_is_one_like_others() {
    let place = Place::new();
    let hob = place.serve_config_with("", program(&place));
    let answer = ask(
        hob.port(),
        "GET",
        "/bin/trace.sh",
        "traceparent: anything\r\n",
    );
    assert_eq!(answer.text(), " anything ");
    hob.stop();
}

#[test]
fn batch_is_sent_again_when_that_may_help_and_else_dropped() {
    let place = Place::new();
    let collector = Collector::start(&[LATER, TAKEN, NEVER]);
    let hob = place.serve_config(&collector.keys(""));
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    let (first, second) = (collector.spans(1), collector.spans(1));
    assert_eq!(first[0].id, second[0].id);
    place.wait_for_counter("otlp_spans", 1);
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    place.wait_for_counter("otlp_dropped", 1);
    assert_eq!(place.counter("otlp_failures"), 2);
    hob.wait_for("the collector did not take traces");
    hob.stop();
}

#[test]
fn what_waits_is_bounded_and_the_rest_is_counted() {
    let place = Place::new();
    // It takes connections and says nothing, so the first batch stays on its way.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let hob = place.serve_config(&format!(
        "threads = 1\n[otlp]\nendpoint = \"http://127.0.0.1:{port}\"\none_in = 1\nbatch = 1\n\
         queue = \"16KiB\"\ntimeout = \"60s\"\n"
    ));
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    let _held = silent.accept().unwrap();
    for _ in 0..100 {
        assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    }
    drop(_held);
    drop(silent);
    // What the ring refused is counted once the thread has a moment.
    let until = std::time::Instant::now() + DEADLINE;
    while place.counter("otlp_dropped") == 0 {
        assert!(std::time::Instant::now() < until, "nothing was dropped");
    }
    hob.stop();
}

#[test]
fn stop_sends_what_is_left() {
    let place = Place::new();
    let collector = Collector::start(&[TAKEN]);
    let keys = collector.keys("").replace("100ms", "60s");
    let hob = place.serve_config(&keys);
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    hob.stop();
    assert_eq!(collector.spans(1)[0].name, "GET /*");
}

/// Makes an authority `AUTHORITY.pem` and a certificate `NAME.pem` that it has signed, for this.
fn signed(place: &Place, authority: &str, name: &str, alternative: &str) {
    let path = |file: &str| place.path(file).display().to_string();
    let run = |arguments: &[&str]| {
        let made = Command::new("openssl").args(arguments).output().unwrap();
        assert!(made.status.success(), "{}", text_of(&made));
    };
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ];
    let own = [
        path(&format!("{authority}.key")),
        path(&format!("{authority}.pem")),
    ];
    let subject = format!("/CN={authority}");
    let begin = ["req", "-x509", "-days", "2", "-subj", &subject];
    run(&[&begin, &key[..], &["-keyout", &own[0], "-out", &own[1]]].concat());
    let leaf = [".key", ".csr", ".pem", ".ext"].map(|end| path(&format!("{name}{end}")));
    std::fs::write(&leaf[3], format!("subjectAltName={alternative}\n")).unwrap();
    let begin = ["req", "-subj", "/CN=Collector"];
    run(&[&begin, &key[..], &["-keyout", &leaf[0], "-out", &leaf[1]]].concat());
    run(&[
        "x509",
        "-req",
        "-days",
        "2",
        "-in",
        &leaf[1],
        "-CA",
        &own[1],
        "-CAkey",
        &own[0],
        "-CAcreateserial",
        "-extfile",
        &leaf[3],
        "-out",
        &leaf[2],
    ]);
}

#[test]
fn collector_of_an_authority_of_one_s_own_is_believed_over_tls() {
    let place = Place::new();
    signed(&place, "ca", "collector", "IP:127.0.0.1");
    let collector = Collector::start_tls(&place, "collector");
    let keys = collector.keys_for("https://127.0.0.1", "ca = \"ca.pem\"\n");
    let hob = place.serve_config(&keys);
    for _ in 0..2 {
        assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
        assert_eq!(collector.spans(1)[0].name, "GET /*");
    }
    place.wait_for_counter("otlp_spans", 2);
    assert_eq!(place.counter("otlp_failures"), 0);
    hob.stop();
}

#[test]
fn collector_with_a_wrong_certificate_gets_nothing_and_the_reason_is_told() {
    let place = Place::new();
    signed(&place, "ca", "named", "DNS:elsewhere.test");
    signed(&place, "another", "other", "IP:127.0.0.1");
    for (name, reason) in [("other", "UnknownIssuer"), ("named", "not valid for name")] {
        let collector = Collector::start_tls(&place, name);
        let keys = collector.keys_for("https://127.0.0.1", "ca = \"ca.pem\"\n");
        let hob = place.serve_config(&keys);
        assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
        let line = hob.wait_for("the collector did not take traces");
        assert!(line.contains("invalid peer certificate"), "{line}");
        assert!(line.contains(reason), "{name}: {line}");
        assert!(collector.bodies.try_recv().is_err(), "{name}");
        hob.stop();
    }
}

#[test]
fn file_of_authorities_that_is_no_use_is_refused() {
    let place = Place::new();
    place.write("empty.pem", "");
    place.write("other.pem", "no certificate\n");
    let keys = |url: &str, file: &str| {
        format!("[otlp]\nendpoint = \"{url}://127.0.0.1:1\"\nca = \"{file}\"\n")
    };
    for (keys, said) in [
        (keys("https", "none.pem"), "none.pem"),
        (
            keys("https", "empty.pem"),
            "`otlp.ca` holds no certificate in PEM: ",
        ),
        (
            keys("https", "other.pem"),
            "`otlp.ca` holds no certificate in PEM: ",
        ),
        (
            keys("http", "empty.pem"),
            "`ca` without a collector that speaks TLS",
        ),
    ] {
        place.write_config(&keys, "site");
        for command in ["check", "serve"] {
            let output = place.run(&[command, "--config", "hob.toml"]);
            assert_eq!(output.status.code(), Some(2), "{command}: {keys}");
            assert!(text_of(&output).contains(said), "{}", text_of(&output));
        }
    }
}

#[test]
fn reload_with_an_unusable_file_of_authorities_is_refused_and_traces_go_on() {
    let place = Place::new();
    signed(&place, "ca", "collector", "IP:127.0.0.1");
    let collector = Collector::start_tls(&place, "collector");
    let keys = collector.keys_for("https://127.0.0.1", "ca = \"ca.pem\"\n");
    let hob = place.serve_config(&keys);
    let good = std::fs::read_to_string(place.path("ca.pem")).unwrap();
    let hide = |mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(place.path("ca.pem"), mode).unwrap();
    };
    place.write("ca.pem", "");
    refused_reload(&place, "`otlp.ca` holds no certificate in PEM");
    place.write("ca.pem", &good);
    hide(0o000);
    refused_reload(&place, "ca.pem cannot be read: Permission denied");
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    assert_eq!(collector.spans(1)[0].name, "GET /*");
    // Another authority takes over at a reload, though no key has changed.
    hide(0o644);
    signed(&place, "another", "other", "IP:127.0.0.1");
    let another = std::fs::read_to_string(place.path("another.pem")).unwrap();
    place.write("ca.pem", &another);
    assert_eq!(place.run(&["reload"]).status.code(), Some(0));
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    hob.wait_for("UnknownIssuer");
    hob.stop();
}

#[test]
fn server_that_dies_comes_back_though_its_file_of_authorities_is_no_use_any_more() {
    let place = Place::new();
    signed(&place, "ca", "collector", "IP:127.0.0.1");
    let keys = "[otlp]\nendpoint = \"https://127.0.0.1:1\"\nca = \"ca.pem\"\n";
    let hob = place.serve_config(keys);
    place.write("ca.pem", "");
    send_signal(hob.server(), Signal::KILL);
    hob.wait_for("the collector's certificate cannot be checked");
    hob.wait_for_count("server ready", 2);
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    hob.stop();
}

fn refused_reload(place: &Place, said: &str) {
    let output = place.run(&["reload"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    assert!(text_of(&output).contains(said), "{}", text_of(&output));
}
