//! What requests have in common that are counted together, by `rate` and `concurrency`.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
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

/// By what requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestKey<'a> {
    /// A value that they have in common.
    Value(Cow<'a, [u8]>),
    /// Where they come from; no value is the same.
    Client(ClientNetwork),
}

/// A client by its address or a network of it; none is whoever connects over a Unix socket.
pub(crate) type ClientNetwork = Option<IpAddr>;

impl Hash for RequestKey<'_> {
    /// In as few words as tell them apart: it is done for each request.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            RequestKey::Value(value) => {
                state.write(value);
                state.write_u8(1);
            }
            RequestKey::Client(None) => state.write_u8(2),
            RequestKey::Client(Some(IpAddr::V4(address))) => {
                state.write_u64(u64::from(u32::from(*address)));
            }
            RequestKey::Client(Some(IpAddr::V6(address))) => {
                let address = u128::from(*address);
                state.write_u64((address >> 64) as u64);
                state.write_u64(address as u64);
                state.write_u8(3);
            }
        }
    }
}

impl<'a> CountedRequest<'a> {
    /// What it is counted by. One that says nothing of itself is known by where it comes from.
    pub(crate) fn key(&self, by: &'a RateKey, v6_prefix: u8) -> RequestKey<'a> {
        let own = match by {
            RateKey::Client => None,
            RateKey::All => Some(Cow::Borrowed(&b""[..])),
            RateKey::Field(name) => {
                let mut values = self.request.head().values(name.as_bytes());
                values.next().map(Cow::Borrowed)
            }
            RateKey::Cookie(name) => cookie(self.request, name.as_bytes()).map(Cow::Borrowed),
            RateKey::User => {
                let signed_in = self.request.signed_in();
                let user = signed_in.as_ref().map(|known| &*known.user);
                let user = user.filter(|user| !user.is_empty());
                user.map(|user| Cow::Owned(user.as_bytes().to_vec()))
            }
            RateKey::Path => Some(Cow::Borrowed(self.label.as_bytes())),
            RateKey::Capture(index) => {
                let captures = self.pattern.matches(self.path);
                let text = captures.as_ref();
                let text = text.and_then(|all| all.text(*index, self.path));
                text.map(|text| Cow::Owned(text.to_vec()))
            }
        };
        let client = || RequestKey::Client(client_of(self.request, v6_prefix));
        own.map_or_else(client, RequestKey::Value)
    }

    /// Whom it is counted with if its client finds no place: the client's network.
    pub(crate) fn crowd(&self) -> ClientNetwork {
        crowd_of(self.request)
    }
}

/// The client of a request.
pub(crate) fn client_of(request: &Request, v6_prefix: u8) -> ClientNetwork {
    address(request).map(|address| client(address, v6_prefix))
}

/// The network of the client of a request.
pub(crate) fn crowd_of(request: &Request) -> ClientNetwork {
    address(request).map(crowd)
}

fn address(request: &Request) -> Option<IpAddr> {
    let peer = request.facts().peer;
    peer.map(|peer| peer.ip().to_canonical())
}

fn client(address: IpAddr, v6_prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => network(address, v6_prefix),
    }
}

fn crowd(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            IpAddr::from([first, second, 0, 0])
        }
        IpAddr::V6(address) => network(address, 32),
    }
}

fn network(address: Ipv6Addr, prefix: u8) -> IpAddr {
    let rest = u128::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
    Ipv6Addr::from(u128::from(address) & !rest).into()
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
        assert_eq!(client(one, 64), client(other, 64));
        assert_ne!(client(one, 128), client(other, 128));
        assert_eq!(client(v4, 64), v4);
        assert_eq!(crowd(one), crowd("2001:db8:9::".parse().unwrap()));
        assert_eq!(crowd(v4), IpAddr::from([192, 0, 0, 0]));
    }
}
