//! What requests have in common that are counted together, by `rate` and `concurrency`.

use std::net::{IpAddr, Ipv6Addr};

use hob_config::RateKey;
use hob_http::Request;

use super::cookie::cookie;
use crate::route::pattern::Pattern;

/// A request that is counted with others of its route.
#[derive(Clone, Copy)]
pub(crate) struct CountedRequest<'a> {
    pub(crate) request: &'a Request,
    /// What its route is called.
    pub(crate) label: &'a str,
    /// The route's path.
    pub(crate) pattern: &'a Pattern,
    /// The path by which it came to the route, in normal form.
    pub(crate) path: &'a [u8],
}

impl CountedRequest<'_> {
    /// What it is counted by. One that says nothing of itself is known by where it comes from.
    pub(crate) fn key(&self, by: &RateKey, v6_prefix: u8) -> Vec<u8> {
        let of_value = |value: &[u8]| [b"=", value].concat();
        let own = match by {
            RateKey::Client => None,
            RateKey::All => Some(of_value(b"")),
            RateKey::Field(name) => {
                let mut values = self.request.head().values(name.as_bytes());
                values.next().map(of_value)
            }
            RateKey::Cookie(name) => cookie(self.request, name.as_bytes()).map(of_value),
            RateKey::User => {
                let signed_in = self.request.signed_in();
                let user = signed_in.as_ref().map(|known| &*known.user);
                let user = user.filter(|user| !user.is_empty());
                user.map(|user| of_value(user.as_bytes()))
            }
            RateKey::Path => Some(of_value(self.label.as_bytes())),
            RateKey::Capture(index) => {
                let captures = self.pattern.matches(self.path);
                let captures = captures.as_ref();
                captures.and_then(|all| all.text(*index, self.path).map(of_value))
            }
        };
        own.unwrap_or_else(|| client_of(self.request, v6_prefix))
    }

    /// Whom it is counted with if its client finds no place: the client's network.
    pub(crate) fn crowd(&self) -> Vec<u8> {
        crowd_of(self.request)
    }
}

/// The client of a request.
pub(crate) fn client_of(request: &Request, v6_prefix: u8) -> Vec<u8> {
    client(address(request), v6_prefix)
}

/// The network of the client of a request.
pub(crate) fn crowd_of(request: &Request) -> Vec<u8> {
    crowd(address(request))
}

fn address(request: &Request) -> Option<IpAddr> {
    let peer = request.facts().peer;
    peer.map(|peer| peer.ip().to_canonical())
}

/// A client by its address; one without is whoever connects over a Unix socket. No value of a field
/// is the same.
fn client(address: Option<IpAddr>, v6_prefix: u8) -> Vec<u8> {
    match address {
        None => Vec::new(),
        Some(IpAddr::V4(address)) => [&b"@"[..], &address.octets()].concat(),
        Some(IpAddr::V6(address)) => [&b"@"[..], &network(address, v6_prefix)].concat(),
    }
}

fn crowd(address: Option<IpAddr>) -> Vec<u8> {
    match address {
        None => Vec::new(),
        Some(IpAddr::V4(address)) => address.octets()[..2].to_vec(),
        Some(IpAddr::V6(address)) => network(address, 32).to_vec(),
    }
}

fn network(address: Ipv6Addr, prefix: u8) -> [u8; 16] {
    let rest = u128::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
    (u128::from(address) & !rest).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_addresses_and_networks() {
        let v4: IpAddr = "192.0.2.7".parse().unwrap();
        let (one, other): (IpAddr, IpAddr) = (
            "2001:db8:0:1::7".parse().unwrap(),
            "2001:db8:0:1:ffff::8".parse().unwrap(),
        );
        assert_eq!(client(Some(one), 64), client(Some(other), 64));
        assert_ne!(client(Some(one), 128), client(Some(other), 128));
        assert_ne!(client(Some(v4), 64), client(None, 64));
        assert_eq!(
            crowd(Some(one)),
            crowd(Some("2001:db8:9::".parse().unwrap()))
        );
        assert_eq!(crowd(Some(v4)), [192, 0]);
    }
}
