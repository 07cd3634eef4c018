//! Handshakes over QUIC that fail: counted by reason, and told to those who watch, as over TCP.

use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::{ClientConfig, SignatureScheme};
use serde_json::Value;

use crate::scene::{Client, Scene, Version, on};
use crate::watcher::Watcher;
use crate::{h2, h3, next, tls};

/// One handshake at a time: one that is not counted out leaves no room for the next.
const ONE: &str = "[limits]\nhandshakes = 1\n";

/// A client that fails, and what is then told.
struct Case {
    client: fn() -> Arc<ClientConfig>,
    counter: &'static str,
    reason: &'static str,
}

const CASES: &[Case] = &[
    Case {
        client: || tls::client_of(short(), b"gopher"),
        counter: "tls_failed_protocol",
        reason: "there is no application protocol that both sides speak",
    },
    Case {
        client: || {
            let mut provider = short();
            provider.signature_verification_algorithms = WebPkiSupportedAlgorithms {
                all: &[],
                mapping: &[(SignatureScheme::ED448, &[])],
            };
            tls::client_of(provider, b"h3")
        },
        counter: "tls_failed_suite",
        reason: "there is no cipher suite, key exchange or signature both sides know",
    },
];

/// With a small key, whose ClientHello is one datagram.
fn short() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![kx_group::X25519],
        ..default_provider()
    }
}

fn assert_told(event: &Value, over: &str, reason: &str) {
    assert_eq!(event["stage"], "tls", "{event:#}");
    assert_eq!(event["outcome"], "failed", "{event:#}");
    assert_eq!(event["reason"], reason, "{event:#}");
    assert_eq!(event["client"], "127.0.0.1", "{event:#}");
    assert!(event["client_port"].as_u64().unwrap() > 0, "{event:#}");
    let text = format!("the handshake over {over} failed: {reason}");
    assert_eq!(event["text"], text, "{event:#}");
}

async fn counted(scene: &Scene, name: &'static str) -> u64 {
    scene.apart(move |place| place.counter(name)).await
}

/// A client whose handshake is known to be over.
async fn settled(port: u16) -> Client {
    let mut client = Client::connect(Version::Http3, port).await;
    assert_eq!(client.get("/hello.txt").await, (200, 6));
    client
}

#[test]
fn those_that_fail_late_are_told_and_counted() {
    on(Version::Http3, "", async |scene: Scene, port: u16| {
        let watcher = scene.watch("client=127.0.0.1").await;
        // Its ClientHello is too long for one datagram.
        let endpoint = h3::endpoint(tls::client(b"gopher"));
        assert!(h3::connect(endpoint, port).await.is_err());
        let (event, _watcher) = next(&scene, watcher).await;
        assert_told(&event, "QUIC", CASES[0].reason);
        scene.wait_for_counter("tls_failed_protocol", 1).await;
        scene.wait_for_counter("tls_handshakes_failed", 1).await;
    });
}

#[test]
fn those_that_fail_with_the_first_datagram_are_told_and_counted() {
    on(Version::Http3, ONE, async |scene: Scene, port: u16| {
        let _client = settled(port).await;
        let mut watcher = scene.watch("client=127.0.0.1").await;
        for (index, case) in CASES.iter().enumerate() {
            let endpoint = h3::endpoint((case.client)());
            assert!(h3::connect(endpoint, port).await.is_err());
            let event;
            (event, watcher) = next(&scene, watcher).await;
            assert_told(&event, "QUIC", case.reason);
            assert_eq!(event["fault"], "client", "{event:#}");
            assert_eq!(counted(&scene, case.counter).await, 1);
            let all = counted(&scene, "tls_handshakes_failed").await;
            assert_eq!(all, index as u64 + 1);
        }
        assert_eq!(counted(&scene, "limit_handshakes").await, 0);
        settled(port).await;
    });
}

/// The first datagram of a connection, by its looks, with noise in it. What is taken off it in
/// order to read it follows from the connection's id, and so does what is found.
fn noise() -> Vec<u8> {
    let id = [ID; 8];
    let mut bytes = [&[0xc0, 0, 0, 0, 1, 8][..], &id, &[0, 0, 0x44, 0x9e]].concat();
    bytes.resize(1200, 0x5a);
    bytes
}

/// With it the two bits of the header that must be clear are.
const ID: u8 = 3;

#[test]
fn noise_in_a_first_datagram_is_neither_tls_nor_http() {
    on(Version::Http3, "", async |scene: Scene, port: u16| {
        let watcher = scene.watch("client=127.0.0.1").await;
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket.send_to(&noise(), ("127.0.0.1", port)).unwrap();
        let (event, _watcher): (Value, Watcher) = next(&scene, watcher).await;
        assert_told(&event, "QUIC", "what came is neither TLS nor HTTP");
        assert_eq!(counted(&scene, "tls_failed_foreign").await, 1);
        assert_eq!(counted(&scene, "tls_handshakes_failed").await, 1);
        settled(port).await;
    });
}

#[test]
fn those_beyond_the_limit_count_alike_over_tcp_and_quic() {
    on(Version::Http3, ONE, async |scene: Scene, port: u16| {
        let _client = settled(port).await;
        let mut held = TcpStream::connect(("127.0.0.1", port)).unwrap();
        held.write_all(b"\x16").unwrap();
        scene.connection(|one| one["state"] == "handshake").await;
        let mut watcher = scene.watch("client=127.0.0.1").await;
        for (index, over) in ["TCP", "QUIC"].into_iter().enumerate() {
            let is_refused = match over {
                "TCP" => h2::connect(tls::client(b"h2"), port).await.is_err(),
                _ => {
                    let endpoint = h3::endpoint(tls::client(b"h3"));
                    h3::connect(endpoint, port).await.is_err()
                }
            };
            assert!(is_refused, "{over}");
            let event;
            (event, watcher) = next(&scene, watcher).await;
            let reason = "limits.handshakes: as many as may are under way";
            assert_told(&event, over, reason);
            assert_eq!(event["fault"], "server", "{event:#}");
            for counter in ["limit_handshakes", "tls_handshakes_failed"] {
                let count = counted(&scene, counter).await;
                assert_eq!(count, index as u64 + 1, "{counter} over {over}");
            }
        }
        drop(held);
        scene.wait_for_counter("tls_failed_left", 1).await;
        settled(port).await;
    });
}
