//! Clients that go to the edge of TLS 1.3, as tlsfuzzer's scripts do: legacy versions, several
//! records that change no cipher, records of no type or without content, connections that break
//! off at each message.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf;
use rustls::{ClientConfig, ClientConnection, KeyLog, SupportedProtocolVersion};

use super::tls::{Sealed, fatal, raw, seal};
use super::*;

const TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];
/// What middle boxes want to see (RFC 8446 appendix D.4).
const CHANGE_CIPHER: &[u8] = &[20, 3, 3, 0, 1, 1];

/// The begin of a handshake: a ClientHello in its record.
fn hello(sealed: &Sealed) -> Vec<u8> {
    let mut client = sealed.client(&sealed.config(TLS13));
    let mut out = Vec::new();
    client.write_tls(&mut out).unwrap();
    out
}

/// Shakes hands, and sends more records of our own before the client's last message.
fn shake_with(sealed: &Sealed, more: &[u8]) -> Result<(ClientConnection, TcpStream), u8> {
    let mut stream = TcpStream::connect(sealed.running.address).unwrap();
    let mut client = sealed.client(&sealed.config(TLS13));
    client.write_tls(&mut stream).unwrap();
    stream.write_all(more).unwrap();
    while client.is_handshaking() {
        if client.read_tls(&mut stream).unwrap() == 0 {
            return Err(0);
        }
        client
            .process_new_packets()
            .map_err(|error| alert_in(&error))?;
    }
    client.write_tls(&mut stream).unwrap();
    Ok((client, stream))
}

fn alert_in(error: &rustls::Error) -> u8 {
    match error {
        rustls::Error::AlertReceived(alert) => u8::from(*alert),
        other => panic!("{other}"),
    }
}

/// What comes for a request: the begin of the answer, or the alert.
fn ask(client: &mut ClientConnection, stream: &mut TcpStream) -> Result<Vec<u8>, u8> {
    let request = b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    client.writer().write_all(request).unwrap();
    // Who was refused meanwhile may have a closed socket.
    let _ = client.write_tls(stream);
    let mut answer = Vec::new();
    loop {
        match client.read_tls(stream) {
            Ok(0) | Err(_) => return Ok(answer),
            Ok(_) => {}
        }
        client
            .process_new_packets()
            .map_err(|error| alert_in(&error))?;
        let mut piece = [0; 1000];
        if let Ok(count) = client.reader().read(&mut piece) {
            answer.extend_from_slice(&piece[..count]);
        }
    }
}

//= rfc8446#D.5
#[test]
fn hello_that_says_ssl_is_refused_whatever_else_it_offers() {
    let sealed = seal(HttpLimits::default());
    let hello = hello(&sealed);
    assert_eq!(hello[9..11], [3, 3]);
    for version in [
        [3, 0],
        [0, 0],
        [2, 0],
        [0, 2],
        [1, 0],
        [1, 3],
        [1, 2],
        [0, 1],
    ] {
        let mut old = hello.clone();
        old[9..11].copy_from_slice(&version);
        assert_eq!(raw(&sealed, &old), fatal(70), "{version:?}");
    }
    assert_eq!(sealed.counters().tls_failed_version.value(), 8);
    // Others mean nothing beside the versions that are offered.
    //= rfc8446#4.2.1
    for version in [[3, 1], [3, 2], [3, 4]] {
        let mut other = hello.clone();
        other[9..11].copy_from_slice(&version);
        assert_eq!(raw(&sealed, &other)[..3], [22, 3, 3], "{version:?}");
    }
}

/// tlsfuzzer expects the second to be refused, which no rule asks for: each must be dropped.
//= rfc8446#5
#[test]
fn records_that_change_no_cipher_are_dropped_before_the_last_message_of_the_client() {
    let sealed = seal(HttpLimits::default());
    for count in [0, 1, 2, 100] {
        let (mut client, mut stream) = shake_with(&sealed, &CHANGE_CIPHER.repeat(count)).unwrap();
        let answer = ask(&mut client, &mut stream).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{count}");
    }
    for wrong in [&[20, 3, 3, 0, 2, 1, 1][..], &[20, 3, 3, 0, 1, 2]] {
        let refused = match shake_with(&sealed, wrong) {
            Err(alert) => Err(alert),
            Ok((mut client, mut stream)) => ask(&mut client, &mut stream),
        };
        assert_eq!(refused, Err(10), "{wrong:?}");
    }
    // After the handshake there is no such record.
    let (mut client, mut stream) = shake_with(&sealed, b"").unwrap();
    stream.write_all(CHANGE_CIPHER).unwrap();
    assert_eq!(ask(&mut client, &mut stream), Err(10));
}

/// The secrets of a connection, as they are logged for those who look into it.
#[derive(Debug, Default)]
struct Secrets(Mutex<HashMap<String, Vec<u8>>>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, _random: &[u8], secret: &[u8]) {
        self.0
            .lock()
            .unwrap()
            .insert(label.to_owned(), secret.to_vec());
    }
}

/// Derives a key or a vector from a secret of `TLS_AES_256_GCM_SHA384`.
//= rfc8446#7.1
fn derive(secret: &[u8], label: &[u8], out: &mut [u8]) {
    struct Len(usize);
    impl hkdf::KeyType for Len {
        fn len(&self) -> usize {
            self.0
        }
    }
    let (len, label_len) = (out.len() as u16, (6 + label.len()) as u8);
    let info = [&len.to_be_bytes()[..], &[label_len], b"tls13 ", label, &[0]];
    let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA384, secret);
    secret
        .expand(&info, Len(out.len()))
        .unwrap()
        .fill(out)
        .unwrap();
}

/// The first record sealed with a secret; `inner` is text, type and padding.
fn sealed_with(secret: &[u8], inner: &[u8]) -> Vec<u8> {
    let (mut key, mut vector) = ([0; 32], [0; 12]);
    derive(secret, b"key", &mut key);
    derive(secret, b"iv", &mut vector);
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).unwrap());
    let mut record = vec![23, 3, 3];
    record.extend_from_slice(&(inner.len() as u16 + 16).to_be_bytes());
    let (nonce, aad) = (
        Nonce::assume_unique_for_key(vector),
        Aad::from(record.clone()),
    );
    let mut text = inner.to_vec();
    key.seal_in_place_append_tag(nonce, aad, &mut text).unwrap();
    [record, text].concat()
}

/// The alert that a client gets that sends such a record in place of its last message, or behind
/// it; 0 when the connection is closed without one.
fn alert_for(sealed: &Sealed, is_behind: bool, inner: &[u8]) -> u8 {
    let secrets = Arc::new(Secrets::default());
    let mut config = ClientConfig::clone(&sealed.config(TLS13));
    config.key_log = Arc::<Secrets>::clone(&secrets);
    let mut stream = TcpStream::connect(sealed.running.address).unwrap();
    let mut client = sealed.client(&Arc::new(config));
    client.write_tls(&mut stream).unwrap();
    while client.is_handshaking() {
        assert!(client.read_tls(&mut stream).unwrap() > 0);
        client.process_new_packets().unwrap();
    }
    let suite = client.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, rustls::CipherSuite::TLS13_AES_256_GCM_SHA384);
    if is_behind {
        client.write_tls(&mut stream).unwrap();
    }
    let label = match is_behind {
        true => "CLIENT_TRAFFIC_SECRET_0",
        false => "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    };
    let secret = secrets.0.lock().unwrap()[label].clone();
    stream.write_all(&sealed_with(&secret, inner)).unwrap();
    loop {
        if !client.read_tls(&mut stream).is_ok_and(|count| count > 0) {
            return 0;
        }
        if let Err(error) = client.process_new_packets() {
            return alert_in(&error);
        }
    }
}

//= rfc8446#5.4
#[test]
fn record_of_no_type_or_without_content_is_refused_at_any_time() {
    let sealed = seal(HttpLimits::default());
    for inner in [&[0][..], &[0; 43], &[22], &[22, 0, 0], &[21], &[21, 0]] {
        assert_eq!(alert_for(&sealed, true, inner), 10, "{inner:?}");
    }
    // Before the client's last message it is rustls that refuses them, as it does: without an
    // alert, or with decode_error.
    for (inner, alert) in [(&[0][..], 0), (&[0; 43], 0), (&[21], 50)] {
        assert_eq!(alert_for(&sealed, false, inner), alert, "{inner:?}");
    }
    assert_eq!(sealed.connect().ask("/ready").text(), "ready");
}

#[test]
fn connection_may_break_off_at_each_message() {
    let sealed = seal(HttpLimits::default());
    let hello = hello(&sealed);
    for linger in [None, Some(Duration::ZERO)] {
        for step in 0..6 {
            let stream = TcpStream::connect(sealed.running.address).unwrap();
            // With none it is reset.
            socket2::SockRef::from(&stream).set_linger(linger).unwrap();
            let mut stream = match step {
                3.. => {
                    drop(stream);
                    let (mut client, mut stream) = shake_with(&sealed, b"").unwrap();
                    socket2::SockRef::from(&stream).set_linger(linger).unwrap();
                    if step > 3 {
                        client
                            .writer()
                            .write_all(b"GET /bytes?5000 HTTP/1.1\r\nHost: h\r\n\r\n")
                            .unwrap();
                        client.write_tls(&mut stream).unwrap();
                    }
                    if step > 4 {
                        client.read_tls(&mut stream).unwrap();
                    }
                    stream
                }
                _ => stream,
            };
            if let 1 | 2 = step {
                stream.write_all(&hello).unwrap();
            }
            if step == 2 {
                stream.read_exact(&mut [0; 100]).unwrap();
            }
        }
    }
    sealed.running.wait_for_open(0);
    assert_eq!(sealed.running.crew.handshakes.load(Ordering::Relaxed), 0);
    assert_eq!(sealed.connect().ask("/ready").text(), "ready");
}
