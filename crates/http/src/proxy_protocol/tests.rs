//! Headers as HAProxy's text has them, those that are none, and both directions against each other.

use super::*;
use crate::h2::tests::random::Random;

const BYTES_MAX: usize = 2048;

fn ends(client: &str, server: &str) -> Option<ProxiedEnds> {
    Some(ProxiedEnds {
        client: client.parse().unwrap(),
        server: server.parse().unwrap(),
    })
}

fn v2(command: u8, kind: u8, rest: &[u8]) -> Vec<u8> {
    let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, kind], &len, rest].concat()
}

const ADDRESSES: &[u8] = &[192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 1, 0xbb];

/// TCP over IPv4 with these fields.
fn with(fields: &[u8]) -> Vec<u8> {
    v2(PROXY, TCP4, &[ADDRESSES, fields].concat())
}

fn fault(input: &[u8]) -> ProxyFault {
    read(input, BYTES_MAX).unwrap_err()
}

#[test]
fn lines_of_version_1_are_read() {
    let said = |line: &str| {
        let (header, len) = read(line.as_bytes(), 0).unwrap().unwrap();
        assert_eq!((len, header.tls), (line.find('\n').unwrap() + 1, None));
        header.ends
    };
    assert_eq!(
        said("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nGET / HTTP/1.1\r\n"),
        ends("192.0.2.1:56324", "198.51.100.2:443")
    );
    assert_eq!(
        said("PROXY TCP6 2001:db8::1 ::ffff:192.0.2.1 0 65535\r\n"),
        ends("[2001:db8::1]:0", "[::ffff:192.0.2.1]:65535")
    );
    assert_eq!(said("PROXY UNKNOWN\r\n"), None);
    let full = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    let longest = format!("PROXY UNKNOWN {full} {full} 65535 65535\r\n");
    assert_eq!((longest.len(), said(&longest)), (LINE_BYTES_MAX, None));
}

#[test]
fn lines_that_are_none_are_refused() {
    for line in [
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
        "PROXY TCP4 192.0.2.1  192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
        "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.02.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 2001:db8::1 192.0.2.2 1 2\r\n",
        "PROXY TCP6 2001:db8::1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 \u{e9}\r\n",
    ] {
        assert_eq!(fault(line.as_bytes()), ProxyFault::Line, "{line:?}");
    }
    let long = ["PROXY UNKNOWN ", &"x".repeat(92), "\r\n"].concat();
    assert_eq!(fault(long.as_bytes()), ProxyFault::Long);
    for other in [
        "GET / HTTP/1.1\r\n",
        "proxy ",
        "PROXYX",
        "\r\n\r\nx",
        "\x16",
    ] {
        assert_eq!(fault(other.as_bytes()), ProxyFault::Missing, "{other:?}");
    }
}

#[test]
fn headers_of_version_2_are_read() {
    let said = |input: &[u8]| {
        let (header, len) = read(input, BYTES_MAX).unwrap().unwrap();
        assert_eq!(len, input.len());
        (header.ends, header.tls.is_some())
    };
    let four = ends("192.0.2.1:56324", "198.51.100.2:443");
    assert_eq!(said(&with(b"")), (four, false));
    // Fields that say nothing here: a name, bytes to pass over, one of the user's.
    let passed = b"\x02\0\x01h\x04\0\x02xx\xe0\0\0";
    assert_eq!(said(&with(passed)), (four, false));
    let six = [
        &Ipv6Addr::LOCALHOST.octets()[..],
        &Ipv6Addr::UNSPECIFIED.octets(),
        &[0, 1, 0, 2],
    ];
    assert_eq!(
        said(&v2(PROXY, TCP6, &six.concat())),
        (ends("[::1]:1", "[::]:2"), false)
    );
    // What speaks for itself, or not of TCP, leaves the connection as it is.
    assert_eq!(said(&v2(LOCAL, 0xff, b"whatever")), (None, false));
    assert_eq!(said(&v2(PROXY, UNKNOWN, b"")), (None, false));
    assert_eq!(said(&v2(PROXY, 0x12, ADDRESSES)), (None, false));
    assert_eq!(said(&v2(PROXY, 0x31, &[b'/'; 216])), (None, false));
    let tls = b"\x20\0\x0f\x01\0\0\0\x01\x21\0\x07TLSv1.3";
    assert_eq!(said(&with(tls)), (four, true));
    // In front of it nobody spoke TLS.
    assert_eq!(said(&with(b"\x20\0\x05\0\0\0\0\x01")), (four, false));
}

#[test]
fn headers_that_go_beyond_their_end_or_are_unknown_are_refused() {
    for kind in [0x01, 0x10, 0x13, 0x41, 0xff] {
        assert_eq!(fault(&v2(PROXY, kind, &[0; 216])), ProxyFault::Kind);
    }
    for command in [0x01, 0x11, 0x22, 0x2f, 0x31] {
        assert_eq!(fault(&v2(command, TCP4, ADDRESSES)), ProxyFault::Kind);
    }
    for (kind, len) in [(TCP4, 11), (TCP6, 35), (0x31, 215)] {
        assert_eq!(
            fault(&v2(PROXY, kind, &[0; 216][..len])),
            ProxyFault::Length
        );
    }
    for fields in [
        &b"\x04"[..],
        b"\x04\0",
        b"\x04\0\x01",
        b"\x04\xff\xff\0",
        b"\x03\0\x03\0\0\0",
        b"\x20\0\x04\0\0\0\0",
        b"\x20\0\x07\x01\0\0\0\0\x21\0",
        b"\x20\0\x08\x01\0\0\0\0\x21\0\x01",
    ] {
        assert_eq!(fault(&with(fields)), ProxyFault::Length, "{fields:?}");
    }
    let mut room = with(&[0; 3]);
    room.extend_from_slice(b"GET");
    let exact = FIXED_BYTES + ADDRESSES.len() + 3;
    read(&room, exact).unwrap().unwrap();
    assert_eq!(read(&room, exact - 1), Err(ProxyFault::Long));
    // That is known before it has come.
    assert_eq!(read(&room[..16], exact - 1), Err(ProxyFault::Long));
}

#[test]
fn checksum_is_looked_at_where_there_is_one() {
    // The check value of RFC 3720 appendix B.4: 32 bytes of zeros.
    assert_eq!(crc32c([&[0; 30], &[0], &[0]]), 0x8a91_36aa);
    let mut header = with(b"\x04\0\x01x\x03\0\x04\0\0\0\0\x04\0\0");
    let sum = crc32c([&header, b"", b""]).to_be_bytes();
    let at = header.len() - 3 - 4;
    header[at..at + 4].copy_from_slice(&sum);
    read(&header, BYTES_MAX).unwrap().unwrap();
    header[at + 3] ^= 1;
    assert_eq!(fault(&header), ProxyFault::Checksum);
    header[at + 3] ^= 1;
    header[FIXED_BYTES] ^= 0x80;
    assert_eq!(fault(&header), ProxyFault::Checksum);
}

#[test]
fn what_is_written_is_read_back_also_where_it_comes_in_pieces() {
    let mut random = Random(0x5eed);
    for _ in 0..2_000 {
        let mut end = || -> SocketAddr {
            let bits = (random.below(1 << 32) as u128) << 64 | random.below(1 << 32) as u128;
            let ip: IpAddr = match random.below(2) {
                0 => Ipv4Addr::from_bits(bits as u32).into(),
                _ => Ipv6Addr::from_bits(bits << 24).into(),
            };
            (ip, random.below(1 << 16) as u16).into()
        };
        let (client, server) = (end(), end());
        let name = [&b""[..], b"TLSv1.2", b"TLSv1.3"][random.below(3)];
        let header = ProxyHeader {
            ends: (random.below(4) > 0).then_some(ProxiedEnds { client, server }),
            tls: (random.below(2) > 0).then_some(ProxiedTls {
                version: name,
                is_verified: random.below(2) > 0,
            }),
        };
        for version in [ProxyVersion::V1, ProxyVersion::V2] {
            let mut bytes = Vec::new();
            header.push(version, &mut bytes);
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end], BYTES_MAX), Ok(None), "{end}");
            }
            let len = bytes.len();
            bytes.extend_from_slice(b"PROXY ");
            let (back, back_len) = read(&bytes, BYTES_MAX).unwrap().unwrap();
            let canonical = |end: SocketAddr| (end.ip().to_canonical(), end.port());
            let both = |ends: ProxiedEnds| (canonical(ends.client), canonical(ends.server));
            assert_eq!(
                (back.ends.map(both), back_len),
                (header.ends.map(both), len)
            );
            if version == ProxyVersion::V2 {
                assert_eq!(back.tls, header.tls);
            }
        }
    }
}
