//! Datagrams between a server that drains and the one that follows it: both have the sockets, and
//! either may read what is for the other.
//!
//! ```text
//! remote: family 1, address 16, port 2, scope 4 | local: family 1, address 16 | ecn 1 | datagram
//! ```
//!
//! A family is 4 or 6, and 0 where the address is not known. IPv4 addresses are written as IPv6
//! has them; a socket for both families has them so too, and then they must stay so. The relay is a
//! pair of sockets that keep messages whole; what there is no room for is lost, as on any other
//! way.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use bytes::BytesMut;
use quinn_proto::EcnCodepoint;

use crate::h3::quic::socket::Datagram;

const HEADER_BYTES: usize = 1 + 16 + 2 + 4 + 1 + 16 + 1;
const UNKNOWN: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;
/// The longest datagram there is.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// The longest message there is.
pub(crate) const MESSAGE_BYTES_MAX: usize = HEADER_BYTES + DATAGRAM_BYTES_MAX;

/// A datagram as a message.
pub(crate) fn encode(datagram: &Datagram) -> Vec<u8> {
    let wide = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => (V4, ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => (V6, ip.octets()),
    };
    let (remote_family, remote) = wide(datagram.remote.ip());
    let nowhere = (UNKNOWN, Ipv6Addr::UNSPECIFIED.octets());
    let (local_family, local) = datagram.local.map_or(nowhere, wide);
    let scope = match datagram.remote {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(remote) => remote.scope_id(),
    };
    let mut message = Vec::with_capacity(HEADER_BYTES + datagram.bytes.len());
    message.push(remote_family);
    message.extend_from_slice(&remote);
    message.extend_from_slice(&datagram.remote.port().to_be_bytes());
    message.extend_from_slice(&scope.to_be_bytes());
    message.push(local_family);
    message.extend_from_slice(&local);
    message.push(datagram.ecn.map_or(0, |ecn| ecn as u8));
    message.extend_from_slice(&datagram.bytes);
    message
}

/// The datagram in a message.
pub(crate) fn decode(message: &[u8]) -> Option<Datagram> {
    let (remote_family, rest) = message.split_first()?;
    let (remote, rest) = rest.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let (scope, rest) = rest.split_first_chunk::<4>()?;
    let (local_family, rest) = rest.split_first()?;
    let (local, rest) = rest.split_first_chunk::<16>()?;
    let (ecn, bytes) = rest.split_first()?;
    let port = u16::from_be_bytes(*port);
    let remote = match narrow(*remote_family, *remote)? {
        IpAddr::V4(ip) => (ip, port).into(),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, u32::from_be_bytes(*scope)).into(),
    };
    Some(Datagram {
        remote,
        local: narrow(*local_family, *local),
        ecn: EcnCodepoint::from_bits(*ecn),
        bytes: BytesMut::from(bytes),
    })
}

/// An address as it was written.
fn narrow(family: u8, octets: [u8; 16]) -> Option<IpAddr> {
    let wide = Ipv6Addr::from(octets);
    match family {
        V4 => wide.to_ipv4_mapped().map(IpAddr::V4),
        V6 => Some(IpAddr::V6(wide)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagram_comes_through_as_it_was() {
        for (remote, local) in [
            ("192.0.2.7:4433", Some("198.51.100.1")),
            ("[fe80::1%3]:65535", Some("2001:db8::1")),
            ("[::ffff:192.0.2.7]:4433", Some("::ffff:198.51.100.1")),
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
