//! `proxy_protocol` of an upstream: the header by which a member hears whose connection it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hob_http::ConnectionFacts;
use hob_http::proxy_protocol::{ProxiedEnds, ProxiedTls, ProxyHeader, ProxyVersion};

use crate::handle::config::fault::Faults;
use crate::handle::config::tree::Section;

/// Reads it from a section. A connection that begins so is one client's, and rests for nobody: a
/// number that `keep` has in its section does nothing.
pub(crate) fn read(
    section: &Section,
    (kept, keep): (&Section, usize),
    faults: &mut Faults<'_>,
) -> Option<ProxyVersion> {
    // A wrong one is told already.
    let version = section
        .given("proxy_protocol")
        .map(|_| match section.word("proxy_protocol") {
            "v1" => ProxyVersion::V1,
            _ => ProxyVersion::V2,
        });
    let is_any = version.is_some() && keep > 0;
    if let Some(given) = kept.given("keep").filter(|_| is_any) {
        faults
            .warn(given.key, "`keep` does nothing here")
            .see(
                section.spot("proxy_protocol"),
                "each connection is one client's",
            )
            .hint("remove it");
    }
    version
}

/// What a connection for a client begins with, or one of hob's own; nothing where no header is
/// asked for.
pub(crate) fn opening(version: Option<ProxyVersion>, facts: Option<&ConnectionFacts>) -> Vec<u8> {
    let mut opening = Vec::new();
    let Some(version) = version else {
        return opening;
    };
    let header = facts.map(header).unwrap_or_default();
    header.push(version, &mut opening);
    opening
}

fn header(facts: &ConnectionFacts) -> ProxyHeader<'_> {
    let ends = facts.peer.map(|client| ProxiedEnds {
        client,
        // A client behind who came over a Unix socket has connected to an address not known here.
        server: facts.local.unwrap_or_else(|| match client.ip() {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }),
    });
    let own = facts.tls.as_ref();
    let tls = facts.is_secure().then(|| ProxiedTls {
        version: own.map_or("", |tls| tls.version.word()).as_bytes(),
        is_verified: own.is_some_and(|tls| tls.client.is_some()),
    });
    ProxyHeader { ends, tls }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_hear_as_much_as_is_known_of_the_client() {
        let facts = |peer: Option<&str>, local: Option<&str>| ConnectionFacts {
            peer: peer.map(|peer| peer.parse().unwrap()),
            local: local.map(|local| local.parse().unwrap()),
            peer_uid: None,
            listener: 0,
            number: 0,
            tls: None,
            told: None,
        };
        let said =
            |facts| String::from_utf8(opening(Some(ProxyVersion::V1), Some(&facts))).unwrap();
        assert_eq!(
            said(facts(Some("192.0.2.1:4711"), Some("198.51.100.2:80"))),
            "PROXY TCP4 192.0.2.1 198.51.100.2 4711 80\r\n"
        );
        assert_eq!(
            said(facts(Some("[2001:db8::1]:0"), Some("198.51.100.2:80"))),
            "PROXY TCP6 2001:db8::1 ::ffff:198.51.100.2 0 80\r\n"
        );
        assert_eq!(
            said(facts(Some("192.0.2.1:0"), None)),
            "PROXY TCP4 192.0.2.1 0.0.0.0 0 0\r\n"
        );
        assert_eq!(said(facts(None, None)), "PROXY UNKNOWN\r\n");
        assert_eq!(opening(None, Some(&facts(None, None))), b"");
        let own = opening(Some(ProxyVersion::V2), None);
        assert_eq!(own, b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0");
    }
}
