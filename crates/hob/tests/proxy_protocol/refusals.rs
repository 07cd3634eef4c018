//! Connections that are closed before anything is answered.

use crate::harness::client::{Connection, raw};
use crate::harness::{Hob, Place};
use crate::{VERSION_1, behind, header_2, version_2};

const TCP: &str = "address = \"127.0.0.1:0\"";
const REQUEST: &[u8] = b"GET /who HTTP/1.1\r\nHost: h\r\n\r\n";
const TOLD: &str = "a connection to a listener with `proxy_protocol` was closed";

/// Sends this and is closed without a word, which this counts.
fn is_closed(place: &Place, hob: &Hob, bytes: &[u8], counter: &str) {
    let before = place.counter(counter);
    assert_eq!(raw(hob.own_port(), bytes), "", "{bytes:?}");
    assert_eq!(place.counter(counter), before + 1, "{bytes:?}");
}

#[test]
fn connections_without_a_valid_header_are_closed_unanswered() {
    let (place, hob) = behind(TCP, "[limits]\nproxy_protocol_bytes = \"256B\"\n", "");
    let garbage = b"PROXY TCP4 192.0.2.777 198.51.100.2 4711 443\r\n";
    let bad_checksum = version_2(b"\x03\0\x04\x01\x02\x03\x04");
    for header in [
        b"",
        &garbage[..],
        b"PROXY TCP4 192.0.2.7 198.51.100.2 4711\r\n",
        &header_2(0x22, 0x11, &[0; 12]),
        &header_2(0x21, 0x11, &[0; 11]),
        &version_2(b"\x04\xff\xff\0"),
        &bad_checksum,
    ] {
        let bytes = [header, REQUEST].concat();
        is_closed(&place, &hob, &bytes, "proxy_protocol_wrong");
    }
    // The first one is told of, and that others were not comes with the next.
    let line = hob.wait_for(TOLD);
    for part in [
        "from=\"127.0.0.1:",
        "reason=it does not begin with a header",
        "hint=\"have it send the PROXY protocol, or use a listener without `proxy_protocol`\"",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert_eq!(hob.printed().matches(TOLD).count(), 1);
    // What it is for stays as it was.
    let mut connection = Connection::open(hob.port()).unwrap();
    assert_eq!(crate::who(&mut connection, VERSION_1, ""), crate::CLIENT);
    hob.stop();
}

#[test]
fn header_that_is_too_long_is_closed_and_counted() {
    let (place, hob) = behind(TCP, "[limits]\nproxy_protocol_bytes = \"256B\"\n", "");
    let counter = "limit_proxy_protocol_bytes";
    let line = [&b"PROXY UNKNOWN "[..], &[b'x'; 93]].concat();
    is_closed(&place, &hob, &line, counter);
    // 16 and 12 bytes stand before its TLVs.
    let tlv = |len: u8| [&[4, 0, len - 3][..], &vec![0; usize::from(len) - 3]].concat();
    is_closed(&place, &hob, &version_2(&tlv(229)), counter);
    let mut connection = Connection::open(hob.port()).unwrap();
    let fits = version_2(&tlv(228));
    assert_eq!(crate::who(&mut connection, &fits, ""), crate::CLIENT);
    hob.stop();
}

#[test]
fn half_a_header_and_silence_is_closed_in_time() {
    let (place, hob) = behind(TCP, "[limits]\nproxy_protocol_time = \"100ms\"\n", "");
    for (count, half) in [&b""[..], b"PROXY TC", &version_2(b"\x04\0\x01a")[..20]]
        .into_iter()
        .enumerate()
    {
        assert_eq!(raw(hob.own_port(), half), "");
        let expected = count as u64 + 1;
        assert_eq!(place.counter("limit_proxy_protocol_time"), expected);
    }
    let line = hob.wait_for(TOLD);
    assert!(line.contains("limits.proxy_protocol_time"), "{line}");
    hob.stop();
}

#[test]
fn header_that_is_cut_is_wrong_and_who_says_nothing_is_nobody() {
    let (place, hob) = behind(TCP, "", "");
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send(&VERSION_1[..20]).unwrap();
    connection.end_sending();
    assert_eq!(connection.read_to_end(), b"");
    assert_eq!(place.counter("proxy_protocol_wrong"), 1);
    // So look those who only try whether somebody listens.
    let mut silent = Connection::open(hob.port()).unwrap();
    silent.end_sending();
    assert_eq!(silent.read_to_end(), b"");
    assert_eq!(place.counter("proxy_protocol_wrong"), 1);
    hob.stop();
}

#[test]
fn who_is_not_trusted_may_not_even_say_it() {
    let trusted = format!("{TCP}\ntrusted = [\"10.0.0.0/8\", \"unix\"]");
    let (place, hob) = behind(&trusted, "", "");
    for header in [VERSION_1, b"PROXY UNKNOWN\r\n", b""] {
        let bytes = [header, REQUEST].concat();
        is_closed(&place, &hob, &bytes, "proxy_protocol_untrusted");
    }
    let line = hob.wait_for(TOLD);
    let hint = "hint=\"add its address to `trusted` if it may name clients\"";
    assert!(line.contains(hint), "{line}");
    hob.stop();
}

#[test]
fn tls_without_a_header_before_it_is_closed() {
    let (place, hob) = behind(&format!("{TCP}\ntls = true"), "", "");
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let port = hob.tls_port();
    for bytes in [&hello[..], REQUEST, &[hello, VERSION_1].concat()] {
        let before = place.counter("proxy_protocol_wrong");
        assert_eq!(raw(port, bytes), "");
        assert_eq!(place.counter("proxy_protocol_wrong"), before + 1);
    }
    assert_eq!(place.counter("tls_handshakes_failed"), 0);
    hob.stop();
}

#[test]
fn listener_that_asks_for_no_header_refuses_one() {
    let place = Place::new();
    let hob = place.serve_config("");
    for header in [VERSION_1, &version_2(b"")] {
        let answer = raw(hob.own_port(), &[header, REQUEST].concat());
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    hob.stop();
}
