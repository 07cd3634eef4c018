//! Clients by where they connect from: a set of networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::fault::{Faults, Spot};
use super::tree::Section;

/// A network: addresses that begin alike.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    bits: u8,
}

impl AddressRange {
    /// `10.0.0.0/8`, or one address.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<AddressRange, &'static str> {
        const HINT: &str = "write an address, or a network such as `10.0.0.0/8`";
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| HINT)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or(HINT)?,
            None => most,
        };
        Ok(AddressRange { address, bits })
    }

    /// The address that is written, and how many of its bits count.
    pub fn parts(self) -> (IpAddr, u8) {
        (self.address, self.bits)
    }
}

impl fmt::Display for AddressRange {
    /// As it is written in a config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Clients, by where they connect from.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientSet {
    /// As they were written.
    networks: Vec<AddressRange>,
    /// Whoever connects over a Unix socket.
    unix: bool,
    /// First and last addresses of ranges, in order, none of which overlap.
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

/// The word for everybody.
pub(crate) const ALL: &str = "all";

/// Every address.
const EVERYWHERE: [AddressRange; 2] = [
    AddressRange {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        bits: 0,
    },
    AddressRange {
        address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        bits: 0,
    },
];

impl ClientSet {
    /// Reads a list of networks, in which `unix` may stand, and `all` where that may be.
    pub(crate) fn read(
        section: &Section,
        key: &str,
        may_be_all: bool,
        faults: &mut Faults<'_>,
    ) -> ClientSet {
        let words = if may_be_all {
            "`unix` or `all`"
        } else {
            "`unix`"
        };
        ClientSet::of(section.given_texts(key), (may_be_all, words), faults)
    }

    /// The same of these texts; `words` are told where one is no network.
    pub(crate) fn of(
        texts: Vec<(&str, Spot)>,
        (may_be_all, words): (bool, &str),
        faults: &mut Faults<'_>,
    ) -> ClientSet {
        let (mut networks, mut unix) = (Vec::new(), false);
        for (text, spot) in texts {
            match AddressRange::parse(text) {
                _ if text == "unix" => unix = true,
                _ if text == ALL && may_be_all => {
                    unix = true;
                    networks.extend(EVERYWHERE);
                }
                Ok(network) => networks.push(network),
                Err(hint) => {
                    faults
                        .error(spot, format!("{text:?} is no network"))
                        .hint(format!("{hint}, or {words}"));
                }
            }
        }
        ClientSet::new(networks, unix)
    }

    /// Those of these networks, and perhaps all who connect over a Unix socket.
    pub fn new(networks: Vec<AddressRange>, unix: bool) -> ClientSet {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for AddressRange { address, bits } in &networks {
            match address {
                IpAddr::V4(address) => {
                    let rest = u32::MAX.checked_shr(u32::from(*bits)).unwrap_or(0);
                    let first = u32::from(*address) & !rest;
                    v4.push((first, first | rest));
                }
                IpAddr::V6(address) => {
                    let rest = u128::MAX.checked_shr(u32::from(*bits)).unwrap_or(0);
                    let first = u128::from(*address) & !rest;
                    v6.push((first, first | rest));
                    v4.extend(mapped(first, first | rest));
                }
            }
        }
        ClientSet {
            networks,
            unix,
            v4: merged(v4),
            v6: merged(v6),
        }
    }

    /// As they are written in a config: networks, and `unix`.
    pub fn texts(&self) -> Vec<String> {
        let networks = self.networks.iter().map(ToString::to_string);
        networks
            .chain(self.unix.then(|| "unix".to_owned()))
            .collect()
    }

    /// Nobody.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.unix
    }

    /// Whether a client at this address is one of them.
    pub fn has(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => within(&self.v4, u32::from(address)),
            IpAddr::V6(address) => within(&self.v6, u128::from(address)),
        }
    }

    /// Whether who connects from there is one of them; `None` is a Unix socket.
    pub fn has_peer(&self, peer: Option<IpAddr>) -> bool {
        peer.map_or(self.unix, |peer| self.has(peer))
    }
}

impl fmt::Debug for ClientSet {
    /// As it is written in a config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for network in &self.networks {
            list.entry(&format_args!("{network}"));
        }
        if self.unix {
            list.entry(&format_args!("unix"));
        }
        list.finish()
    }
}

/// The IPv4 addresses that a network within `::ffff:0:0/96` stands for.
fn mapped(first: u128, last: u128) -> Option<(u32, u32)> {
    let v4 = |address| Ipv6Addr::from_bits(address).to_ipv4_mapped().map(u32::from);
    Some((v4(first)?, v4(last)?))
}

/// The same addresses in ranges that are in order and do not overlap.
fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.sort_unstable();
    let mut merged: Vec<(T, T)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= *end => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

fn within<T: Ord + Copy>(ranges: &[(T, T)], address: T) -> bool {
    let behind = ranges.partition_point(|(first, _)| *first <= address);
    let last = ranges[..behind].last();
    last.is_some_and(|(_, last)| address <= *last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(networks: &[&str]) -> ClientSet {
        let networks = networks.iter().map(|text| AddressRange::parse(text));
        ClientSet::new(networks.collect::<Result<_, _>>().unwrap(), false)
    }

    #[test]
    fn networks_have_the_addresses_that_begin_like_theirs() {
        let has = |network: &str, address: &str| set(&[network]).has(address.parse().unwrap());
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("10.1.2.3/8", "10.0.0.0") && !has("10.1.2.3/8", "9.255.255.255"));
        assert!(has("192.0.2.1", "192.0.2.1") && !has("192.0.2.1", "192.0.2.2"));
        assert!(has("0.0.0.0/0", "255.1.1.1") && !has("0.0.0.0/0", "::1"));
        assert!(has("2001:db8::/32", "2001:db8:ffff::1") && !has("2001:db8::/32", "2001:db9::"));
        assert!(has("::/0", "::1") && !has("::/0", "10.0.0.1"));
        assert!(has("::1", "::1") && !has("::1", "::2"));
        assert!(has("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(has("::ffff:10.0.0.0/104", "10.1.2.3") && !has("::ffff:10.0.0.0/104", "11.1.2.3"));
        for wrong in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "a/8",
            "10.0.0.0/",
            "10.0.0.0/-1",
        ] {
            assert!(AddressRange::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn many_networks_in_any_order_are_those_of_each() {
        let texts = [
            "10.0.0.0/8",
            "10.1.0.0/16",
            "192.0.2.7",
            "192.0.2.4/30",
            "172.16.0.0/12",
            "2001:db8::/32",
            "2001:db8:1::/48",
            "0.0.0.0",
            "255.255.255.255",
        ];
        let all = set(&texts);
        for address in [
            "10.1.2.3",
            "10.255.255.255",
            "9.255.255.255",
            "11.0.0.0",
            "192.0.2.3",
            "192.0.2.5",
            "192.0.2.7",
            "192.0.2.8",
            "172.31.255.255",
            "172.32.0.0",
            "0.0.0.0",
            "0.0.0.1",
            "255.255.255.255",
            "255.255.255.254",
            "2001:db8:1::1",
            "2001:db9::",
            "::",
        ] {
            let address: IpAddr = address.parse().unwrap();
            let expected = texts.iter().any(|text| set(&[text]).has(address));
            assert_eq!(all.has(address), expected, "{address}");
        }
        assert!(set(&[]).is_empty() && !set(&[]).has_peer(None));
        assert!(ClientSet::new(Vec::new(), true).has_peer(None));
        assert_eq!(
            format!("{:?}", set(&["10.0.0.0/8", "::1"])),
            "[10.0.0.0/8, ::1/128]"
        );
    }
}
