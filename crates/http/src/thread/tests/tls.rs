//! The dummy over TLS, asked by rustls and by clients that break the rules.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hob_trace::metric::ThreadCounters;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore};

use super::client::{Answer, Client};
use super::*;
use crate::tls::{Certificate, HostOffer, Offer, SelfSigned, TicketKeys, Version};

/// A server of `localhost`, and what a client trusts.
pub(super) struct Sealed {
    pub(super) running: Running,
    roots: Arc<RootCertStore>,
}

fn offer(minimum: Version, suites: &[&str]) -> (Offer, Arc<RootCertStore>) {
    let names = ["localhost".to_owned()];
    let made = SelfSigned::new(&names, &[], 1_790_000_000).unwrap();
    let certificate =
        Certificate::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let offer = Offer {
        minimum,
        suites: suites.iter().map(|suite| (*suite).to_owned()).collect(),
        hosts: vec![HostOffer {
            names: Vec::new(),
            certificate,
            client: None,
        }],
        default: 0,
    };
    (offer, Arc::new(roots))
}

pub(super) fn seal(limits: HttpLimits) -> Sealed {
    seal_offer(1, limits, &[])
}

fn seal_offer(thread_count: usize, limits: HttpLimits, suites: &[&str]) -> Sealed {
    let (offer, roots) = offer(Version::Tls12, suites);
    let terms = TlsHosts::new(&offer, &TicketKeys::new()).unwrap();
    Sealed {
        running: serve_terms(thread_count, limits, terms),
        roots,
    }
}

impl Sealed {
    pub(super) fn config(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        Arc::new(config)
    }

    pub(super) fn connect(&self) -> Client {
        self.connect_with(&self.config(rustls::ALL_VERSIONS))
    }

    fn connect_with(&self, config: &Arc<ClientConfig>) -> Client {
        self.seal(Client::connect(self.running.address), config)
    }

    /// The handshake is made with the first request.
    fn seal(&self, mut client: Client, config: &Arc<ClientConfig>) -> Client {
        client.tls = Some(self.client(config));
        client
    }

    /// One that has not shaken hands.
    pub(super) fn client(&self, config: &Arc<ClientConfig>) -> ClientConnection {
        let name = ServerName::try_from("localhost").unwrap();
        ClientConnection::new(Arc::clone(config), name).unwrap()
    }

    /// A client whose system holds little of what it does not read.
    pub(super) fn connect_narrow(&self, protocols: &[&[u8]]) -> Client {
        let mut config = (*self.config(rustls::ALL_VERSIONS)).clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let client = Client::connect_narrow(self.running.address);
        self.seal(client, &Arc::new(config))
    }

    pub(super) fn counters(&self) -> &ThreadCounters {
        &self.running.counters[0]
    }

    pub(super) fn wait_for(&self, count: impl Fn(&ThreadCounters) -> u64, expected: u64) {
        let begin = Instant::now();
        while count(self.counters()) != expected {
            assert!(begin.elapsed() < PATIENCE, "it is counted in time");
            std::thread::yield_now();
        }
    }
}

/// Answers of each kind, asked in one order.
const TARGETS: &[&str] = &[
    "/ready",
    "/bytes?0",
    "/bytes?1",
    "/bytes?5000",
    "/bytes?16384",
    "/bytes?200000",
    "/region?3000",
    "/region?100000",
    "/regions?9",
    "/stream?300000",
    "/trailers",
    "/file?70000",
    "/file?1000000",
    "/cold-file?400000",
    "/pipe?10",
    "/pipe?300000",
    "/sized-pipe?100000",
    "/nothing",
];

#[test]
fn answers_of_every_kind_are_those_of_clear_text() {
    let clear = serve(HttpLimits::default());
    let mut client = clear.connect();
    let expected: Vec<Answer> = TARGETS.iter().map(|target| client.ask(target)).collect();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let sealed = seal(HttpLimits::default());
        let mut client = sealed.connect_with(&sealed.config(&[version]));
        for (target, expected) in TARGETS.iter().zip(&expected) {
            let answer = client.ask(target);
            assert_eq!(answer.head, expected.head, "{target} {version:?}");
            let lens = (answer.body.len(), expected.body.len());
            assert!(answer == *expected, "{target} {version:?} {lens:?}");
        }
        assert_eq!(sealed.counters().tls_handshakes.value(), 1);
    }
}

#[test]
fn file_that_was_written_to_is_not_whole() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.get("/written-to-file?70000");
    let (mut len, mut buffer) = (0, [0; 16 * 1024]);
    let error = loop {
        match client.read(&mut buffer) {
            Ok(0) => panic!("the connection ended in order"),
            Ok(count) => len += count,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(len < 70_000, "{len}");
    let finished = sealed.running.finished();
    assert_eq!(finished.outcome, Outcome::Broken);
    let reason = "the file was written to while it was sent";
    assert_eq!(finished.reason, Some(reason));
}

#[test]
fn every_suite_carries_requests_and_answers() {
    for suite in crate::tls::SUITES {
        if suite.contains("_RSA_") {
            // The certificate has another kind of key; the cipher is the same.
            continue;
        }
        let sealed = seal_offer(1, HttpLimits::default(), &[suite]);
        let mut client = sealed.connect();
        client.post("/count", 100_000);
        client.write(&[b'x'; 100_000]).unwrap();
        assert_eq!(client.answer().text(), "100000", "{suite}");
        assert_eq!(client.ask("/bytes?100000").body.len(), 100_000, "{suite}");
        let agreed = client.tls.as_ref().unwrap().negotiated_cipher_suite();
        let agreed = format!("{:?}", agreed.unwrap().suite()).replace("TLS13_", "TLS_");
        assert_eq!(agreed, *suite);
    }
}

#[test]
fn pipelined_requests_in_one_record_are_answered_in_order() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    let one = "GET /bytes?20000 HTTP/1.1\r\nHost: h\r\n\r\nGET /ready HTTP/1.1\r\nHost: h\r\n\r\n";
    client.send(&one.repeat(10));
    for _ in 0..10 {
        assert_eq!(client.answer().body.len(), 20_000);
        assert_eq!(client.answer().text(), "ready");
    }
}

#[test]
fn request_in_pieces_of_a_byte_each_is_one_request() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    for byte in b"GET /ready HTTP/1.1\r\nHost: h\r\n\r\n" {
        client.write(&[*byte]).unwrap();
    }
    assert_eq!(client.answer().text(), "ready");
}

#[test]
fn client_that_stops_reading_is_waited_for_and_gets_everything() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.get("/bytes?20000000");
    // The socket is full by now: another connection goes on all the same.
    assert_eq!(sealed.connect().ask("/ready").text(), "ready");
    assert_eq!(client.answer().body, super::dummy::pattern(20_000_000));
}

#[test]
fn answer_that_closes_says_that_it_is_whole() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    let answer = client.ask("/close");
    assert_eq!((answer.text(), answer.closes()), ("close", true));
    // Without the alert that ends the session this would be an error.
    client.assert_end();
}

#[test]
fn answer_that_breaks_where_only_the_close_ends_it_is_not_whole() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.send("GET /broken HTTP/1.0\r\n\r\n");
    client.head();
    let mut room = [0; 1000];
    let error = loop {
        match client.read(&mut room) {
            Ok(count) => assert_ne!(count, 0, "it does not end in order"),
            Err(error) => break error,
        }
    };
    assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
}

#[test]
fn tunnel_carries_bytes_both_ways() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.get("/tunnel");
    assert!(client.head().starts_with("HTTP/1.1 101 "));
    for size in [1, 1000, 50_000] {
        let bytes = vec![b'a'; size];
        client.write(&bytes).unwrap();
        assert_eq!(client.take(size), bytes);
    }
}

//= rfc5246#7.2.1
#[test]
fn half_close_over_tls_1_2_waits_for_the_end_of_the_tunnel() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect_with(&sealed.config(&[&rustls::version::TLS12]));
    client.get("/half-tunnel");
    assert!(client.head().starts_with("HTTP/1.1 101 "));
    // Nothing may stand behind a half-close: that it comes shows that there was none.
    assert_eq!(client.take(12), b"before after");
}

#[test]
fn tunnel_that_is_cut_off_does_not_end_in_order() {
    let sealed = seal(HttpLimits::default());
    for is_cut in [false, true] {
        let mut client = sealed.connect();
        client.get("/tunnel");
        client.head();
        client.write(b"a").unwrap();
        assert_eq!(client.take(1), b"a");
        if is_cut {
            client.half_close();
        } else {
            client.tls.as_mut().unwrap().send_close_notify();
            client.write(b"").unwrap();
        }
        let end = client.read(&mut [0; 10]);
        assert_eq!(end.is_err(), is_cut, "{end:?}");
    }
}

#[test]
fn client_comes_back_with_a_ticket_to_any_thread() {
    let sealed = seal_offer(2, HttpLimits::default(), &[]);
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let before = resumed(&sealed);
        let mut config = ClientConfig::clone(&sealed.config(&[version]));
        config.resumption = Resumption::in_memory_sessions(8);
        let config = Arc::new(config);
        let mut open = Vec::new();
        for _ in 0..4 {
            let mut client = sealed.connect_with(&config);
            assert_eq!(client.ask("/ready").text(), "ready");
            // Held open, so that the next one goes to the other thread.
            open.push(client);
        }
        assert_eq!(resumed(&sealed) - before, 3, "{version:?}");
    }
}

fn resumed(sealed: &Sealed) -> u64 {
    let counters = sealed.running.counters.iter();
    counters.map(|counters| counters.tls_resumed.value()).sum()
}

#[test]
fn keys_are_changed_when_a_client_wants_it() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    assert_eq!(client.ask("/ready").text(), "ready");
    for _ in 0..3 {
        client.tls.as_mut().unwrap().refresh_traffic_keys().unwrap();
        assert_eq!(client.ask("/bytes?40000").body.len(), 40_000);
    }
}

#[test]
fn older_version_than_the_minimum_is_refused() {
    let (offer, roots) = offer(Version::Tls13, &[]);
    let terms = TlsHosts::new(&offer, &TicketKeys::new()).unwrap();
    let running = serve_terms(1, HttpLimits::default(), terms);
    let sealed = Sealed { running, roots };
    let mut old = sealed.connect_with(&sealed.config(&[&rustls::version::TLS12]));
    let error = old.write(b"x").unwrap_err().to_string();
    assert!(error.contains("ProtocolVersion"), "{error}");
    sealed.wait_for(|counters| counters.tls_handshakes_failed.value(), 1);
    let mut new = sealed.connect();
    assert_eq!(new.ask("/ready").text(), "ready");
    let agreed = new.tls.as_ref().unwrap().protocol_version();
    assert_eq!(agreed, Some(ProtocolVersion::TLSv1_3));
}

#[test]
fn hybrid_key_exchange_is_preferred() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.ask("/ready");
    let group = client.tls.as_ref().unwrap().negotiated_key_exchange_group();
    assert_eq!(format!("{:?}", group.unwrap().name()), "X25519MLKEM768");
}

#[test]
fn clear_text_is_told_to_speak_tls() {
    let sealed = seal(HttpLimits::default());
    let mut client = Client::connect(sealed.running.address);
    let answer = client.ask("/ready");
    assert_eq!((answer.status, answer.closes()), (400, true));
    assert!(answer.text().contains("https://"), "{}", answer.text());
    client.assert_end();
    assert_eq!(sealed.counters().tls_clear_text.value(), 1);
    let finished = sealed.running.finished();
    assert_eq!((finished.status, finished.fault), (400, Fault::Client));
}

#[test]
fn http2_in_clear_text_is_not_spoken_on_a_tls_port() {
    let sealed = seal(HttpLimits::default());
    let answer = raw(&sealed, crate::h2::PREFACE);
    assert!(answer.starts_with(b"HTTP/1.1 505 "), "{answer:?}");
    assert_eq!(sealed.counters().h2_connections.value(), 0);
}

/// What a client of raw bytes gets before the end.
pub(super) fn raw(sealed: &Sealed, bytes: &[u8]) -> Vec<u8> {
    let mut client = Client::connect(sealed.running.address);
    client.stream.write_all(bytes).unwrap();
    let mut all = Vec::new();
    client.stream.read_to_end(&mut all).unwrap();
    all
}

pub(super) const fn fatal(alert: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, alert]
}

#[test]
fn what_is_no_hello_gets_an_alert() {
    let sealed = seal(HttpLimits::default());
    assert_eq!(raw(&sealed, b"\x80\x2e\x01\x03\x01"), fatal(10), "SSL 2");
    assert_eq!(raw(&sealed, b"\x00\x00\x00"), fatal(10), "noise");
    assert_eq!(raw(&sealed, b"\x16\x03\x01\x00\x00"), fatal(10), "empty");
    let bad = raw(&sealed, b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03");
    assert_eq!(bad[..6], fatal(0)[..6], "a hello cut short within");
    assert_eq!(sealed.counters().tls_handshakes_failed.value(), 4);
    assert_eq!(sealed.counters().tls_handshakes.value(), 0);
}

#[test]
fn half_a_handshake_and_silence_is_over_in_time() {
    let limits = HttpLimits {
        handshake_time: Duration::from_millis(200),
        ..HttpLimits::default()
    };
    let sealed = seal(limits);
    for bytes in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        assert_eq!(raw(&sealed, bytes), b"");
    }
    assert_eq!(sealed.counters().limit_handshake_time.value(), 2);
    assert_eq!(sealed.running.crew.handshakes.load(Ordering::Relaxed), 0);
}

#[test]
fn handshake_that_is_too_long_gets_an_alert() {
    let limits = HttpLimits {
        handshake_bytes: 20_000,
        ..HttpLimits::default()
    };
    let sealed = seal(limits);
    // A hello that says it has so many bytes, and goes on and on.
    let mut hello = Vec::new();
    for record in 0..3 {
        hello.extend_from_slice(b"\x16\x03\x01\x3f\xff");
        let mut fragment = vec![0; 0x3fff];
        if record == 0 {
            fragment[..4].copy_from_slice(&[1, 0xff, 0xff, 0xff]);
        }
        hello.extend_from_slice(&fragment);
    }
    assert_eq!(raw(&sealed, &hello), fatal(80));
    assert_eq!(sealed.counters().limit_handshake_bytes.value(), 1);
}

#[test]
fn handshake_beyond_the_limit_gets_an_alert_and_the_next_has_room() {
    let limits = HttpLimits {
        handshake_count: 1,
        ..HttpLimits::default()
    };
    let sealed = seal(limits);
    let waiting = Client::connect(sealed.running.address);
    sealed.running.wait_for_open(1);
    assert_eq!(raw(&sealed, b""), fatal(80));
    assert_eq!(sealed.counters().limit_handshakes.value(), 1);
    drop(waiting);
    sealed.running.wait_for_open(0);
    assert_eq!(sealed.connect().ask("/ready").text(), "ready");
}

#[test]
fn client_beyond_the_connections_gets_an_alert() {
    let limits = HttpLimits {
        connection_count: 1,
        ..HttpLimits::default()
    };
    let sealed = seal(limits);
    let mut first = sealed.connect();
    first.ask("/ready");
    assert_eq!(raw(&sealed, b""), fatal(80));
    assert_eq!(first.ask("/ready").text(), "ready");
}

#[test]
fn changed_record_ends_the_connection_with_an_alert() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.ask("/ready");
    let mut record = vec![23, 3, 3, 0, 40];
    record.extend_from_slice(&[7; 40]);
    client.stream.write_all(&record).unwrap();
    let error = client.read(&mut [0; 100]).unwrap_err().to_string();
    assert!(error.contains("BadRecordMac"), "{error}");
    assert_eq!(sealed.counters().tls_broken.value(), 1);
}

#[test]
fn record_that_is_too_long_ends_the_connection_with_an_alert() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.ask("/ready");
    client.stream.write_all(&[23, 3, 3, 0xff, 0xff]).unwrap();
    let error = client.read(&mut [0; 100]).unwrap_err().to_string();
    assert!(error.contains("RecordOverflow"), "{error}");
}

#[test]
fn request_that_was_cut_off_is_answered_by_nobody() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.post("/count", 100);
    client.write(b"half").unwrap();
    client.half_close();
    assert_eq!(sealed.running.note(), "the client left");
}

#[test]
fn client_that_ends_its_side_behind_its_last_request_hears_how_the_answer_ends() {
    for has_fin in [false, true] {
        let sealed = seal(HttpLimits::default());
        let mut client = sealed.connect();
        client.write(b"GET /later?cancel HTTP/1.0\r\n\r\n").unwrap();
        let tls = client.tls.as_mut().unwrap();
        tls.send_close_notify();
        tls.write_tls(&mut client.stream).unwrap();
        if has_fin {
            client.half_close();
        }
        assert_eq!(sealed.running.note(), "waiting");
        sealed.running.gate().open();
        assert_eq!(client.answer().text(), "later");
        client.assert_end();
    }
}

#[test]
fn client_that_says_it_sends_no_more_is_answered_before_the_end() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.get("/bytes?100000");
    client.tls.as_mut().unwrap().send_close_notify();
    client.write(b"").unwrap();
    assert_eq!(client.answer().body.len(), 100_000);
    client.assert_end();
}

#[test]
fn idle_connection_holds_no_buffer_and_little_memory() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect();
    client.ask("/file?1000000");
    client.post("/count", 100_000);
    client.write(&[b'x'; 100_000]).unwrap();
    client.answer();
    let held = sealed.running.ask(|thread| {
        let conn = thread.seats.iter().next();
        let conn = conn.expect("it is open");
        conn.secure.as_ref().map(|secure| secure.held_bytes())
    });
    assert_eq!(held, Some(0));
}
