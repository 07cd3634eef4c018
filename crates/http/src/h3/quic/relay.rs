//! Datagrams between a server that drains and the one that follows it: both have the sockets, and
//! either may read what is for the other.
//!
//! ```text
//! remote: address 16, port 2, scope 4 | local: is known 1, address 16 | ecn 1 | the datagram
//! ```
//!
//! IPv4 addresses are written as IPv6 has them. The relay is a pair of sockets that keep messages
//! whole; what there is no room for is lost, as on any other way.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use bytes::BytesMut;
use quinn_proto::EcnCodepoint;

use crate::h3::quic::socket::Datagram;

const HEADER_BYTES: usize = 16 + 2 + 4 + 1 + 16 + 1;
/// The longest datagram there is.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// The longest message there is.
pub(crate) const MESSAGE_BYTES_MAX: usize = HEADER_BYTES + DATAGRAM_BYTES_MAX;

/// A datagram as a message.
pub(crate) fn encode(datagram: &Datagram) -> Vec<u8> {
    let wide = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let scope = match datagram.remote {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(remote) => remote.scope_id(),
    };
    let mut message = Vec::with_capacity(HEADER_BYTES + datagram.bytes.len());
    message.extend_from_slice(&wide(datagram.remote.ip()));
    message.extend_from_slice(&datagram.remote.port().to_be_bytes());
    message.extend_from_slice(&scope.to_be_bytes());
    message.push(datagram.local.is_some().into());
    let nowhere = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    message.extend_from_slice(&wide(datagram.local.unwrap_or(nowhere)));
    message.push(datagram.ecn.map_or(0, |ecn| ecn as u8));
    message.extend_from_slice(&datagram.bytes);
    message
}

/// The datagram in a message.
pub(crate) fn decode(message: &[u8]) -> Option<Datagram> {
    let (ip, rest) = message.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let (scope, rest) = rest.split_first_chunk::<4>()?;
    let (has_local, rest) = rest.split_first()?;
    let (local, rest) = rest.split_first_chunk::<16>()?;
    let (ecn, bytes) = rest.split_first()?;
    let ip = Ipv6Addr::from(*ip);
    let (port, scope) = (u16::from_be_bytes(*port), u32::from_be_bytes(*scope));
    let remote = match ip.to_ipv4_mapped() {
        Some(ip) => (ip, port).into(),
        None => SocketAddrV6::new(ip, port, 0, scope).into(),
    };
    let local = Ipv6Addr::from(*local);
    let local = local.to_ipv4_mapped().map_or(IpAddr::V6(local), IpAddr::V4);
    Some(Datagram {
        remote,
        local: (*has_local == 1).then_some(local),
        ecn: EcnCodepoint::from_bits(*ecn),
        bytes: BytesMut::from(bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagram_comes_through_as_it_was() {
        for (remote, local) in [
            ("192.0.2.7:4433", Some("198.51.100.1")),
            ("[fe80::1%3]:65535", Some("2001:db8::1")),
            ("[2001:db8::2]:1", None),
        ] {
            let datagram = Datagram {
                remote: remote.parse().unwrap(),
                local: local.map(|local| local.parse().unwrap()),
                ecn: EcnCodepoint::from_bits(3),
                bytes: BytesMut::from(&b"datagram"[..]),
            };
            let read = decode(&encode(&datagram)).unwrap();
            assert_eq!(format!("{read:?}"), format!("{datagram:?}"));
        }
        assert!(decode(&[0; HEADER_BYTES - 1]).is_none());
    }
}
