//! Networks that are banned: an address, or all that begin alike.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

use hob_config::AddressRange;
use serde::{Deserialize, Serialize};

/// Addresses that begin with so many same bits; the bits behind those are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BanNetwork {
    address: IpAddr,
    bits: u8,
}

impl BanNetwork {
    /// The network of an address that has so many bits; more than an address has are all of them.
    pub fn of(address: IpAddr, bits: u8) -> BanNetwork {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                let address = Ipv4Addr::from(u32::from(address) & mask).into();
                BanNetwork { address, bits }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                let address = Ipv6Addr::from(u128::from(address) & mask).into();
                BanNetwork { address, bits }
            }
        }
    }

    /// The client of an address: of IPv4 the address, of IPv6 so many bits of it.
    pub fn of_client(address: IpAddr, v6_prefix: u8) -> BanNetwork {
        match address.to_canonical() {
            address @ IpAddr::V4(_) => BanNetwork::of(address, 32),
            address @ IpAddr::V6(_) => BanNetwork::of(address, v6_prefix),
        }
    }

    /// Reads `192.0.2.7`, `192.0.2.0/24` or `2001:db8::/64`.
    ///
    /// # Errors
    /// It is none of these, or has fewer than 8 bits.
    pub fn parse(text: &str) -> Result<BanNetwork, &'static str> {
        const HINT: &str =
            "give an address, or a network such as `192.0.2.0/24` or `2001:db8::/48`";
        let (written, bits) = AddressRange::parse(text).map_err(|_| HINT)?.parts();
        let address = written.to_canonical();
        let bits = match written.is_ipv6() && address.is_ipv4() {
            true => bits.checked_sub(96).ok_or(HINT)?,
            false => bits,
        };
        if bits < BITS_MIN {
            return Err("a network has 8 bits at least");
        }
        Ok(BanNetwork::of(address, bits))
    }

    /// Whether the other is this one, or within it.
    pub fn has(&self, other: &BanNetwork) -> bool {
        other.bits >= self.bits && BanNetwork::of(other.address, self.bits) == *self
    }

    /// Its first address.
    pub fn first(&self) -> IpAddr {
        self.address
    }

    fn place(&self) -> usize {
        place(self.address, self.bits)
    }
}

/// Who bans fewer bits bans a continent.
const BITS_MIN: u8 = 8;

impl fmt::Display for BanNetwork {
    /// An address alone where it is one, else `192.0.2.0/24`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = if self.address.is_ipv4() { 32 } else { 128 };
        match self.bits == most {
            true => write!(f, "{}", self.address),
            false => write!(f, "{}/{}", self.address, self.bits),
        }
    }
}

impl TryFrom<String> for BanNetwork {
    type Error = &'static str;

    fn try_from(text: String) -> Result<BanNetwork, &'static str> {
        BanNetwork::parse(&text)
    }
}

impl From<BanNetwork> for String {
    fn from(network: BanNetwork) -> String {
        network.to_string()
    }
}

/// How many networks there are of each number of bits: those that a client has to be looked up by.
pub(crate) struct PrefixLengths {
    /// Of IPv4 first, then of IPv6.
    counts: Box<[AtomicUsize]>,
}

/// Numbers of bits that an address of IPv4 can begin with.
const V4_LENGTHS: usize = 33;

impl Default for PrefixLengths {
    fn default() -> PrefixLengths {
        let counts = V4_LENGTHS + 129;
        PrefixLengths {
            counts: (0..counts).map(|_| AtomicUsize::new(0)).collect(),
        }
    }
}

impl PrefixLengths {
    pub(crate) fn add(&self, network: &BanNetwork) {
        self.counts[network.place()].fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove(&self, network: &BanNetwork) {
        self.counts[network.place()].fetch_sub(1, Ordering::AcqRel);
    }

    /// Those that there are of an address's family, most bits first.
    pub(crate) fn of(&self, address: IpAddr) -> impl Iterator<Item = u8> + '_ {
        let most: u8 = if address.to_canonical().is_ipv4() {
            32
        } else {
            128
        };
        let canonical = address.to_canonical();
        let is_there =
            move |bits: &u8| self.counts[place(canonical, *bits)].load(Ordering::Acquire) > 0;
        (0..=most).rev().filter(is_there)
    }
}

fn place(address: IpAddr, bits: u8) -> usize {
    match address {
        IpAddr::V4(_) => usize::from(bits),
        IpAddr::V6(_) => V4_LENGTHS + usize::from(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_written_with_the_bits_behind_them_left_out() {
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7/32", "192.0.2.7"),
            ("192.0.2.7/24", "192.0.2.0/24"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8::1", "2001:db8::1"),
            ("2001:db8:0:1:2::1/64", "2001:db8:0:1::/64"),
        ] {
            let network = BanNetwork::parse(text);
            assert_eq!(network.map(|one| one.to_string()), Ok(expected.to_owned()));
        }
        for wrong in [
            "",
            "x",
            "192.0.2.7/33",
            "192.0.2.7/",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/7",
        ] {
            assert!(BanNetwork::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn client_of_ipv6_is_all_addresses_with_its_prefix() {
        let of = |text: &str, bits| BanNetwork::of_client(text.parse().unwrap(), bits).to_string();
        assert_eq!(of("2001:db8::1", 64), of("2001:db8::ffff:1", 64));
        assert_ne!(of("2001:db8::1", 64), of("2001:db8:0:1::1", 64));
        assert_eq!(of("2001:db8:0:1::1", 56), "2001:db8::/56");
        assert_eq!(of("2001:db8::1", 128), "2001:db8::1");
        assert_eq!(of("192.0.2.7", 64), "192.0.2.7");
        assert_eq!(of("::ffff:192.0.2.7", 64), "192.0.2.7");
    }

    #[test]
    fn network_has_what_is_within_it() {
        let has = |one: &str, other: &str| {
            let parse = |text| BanNetwork::parse(text).unwrap();
            parse(one).has(&parse(other))
        };
        assert!(has("192.0.2.0/24", "192.0.2.7") && has("192.0.2.7", "192.0.2.7"));
        assert!(!has("192.0.2.7", "192.0.2.0/24") && !has("192.0.2.0/24", "192.0.3.7"));
        assert!(has("2001:db8::/32", "2001:db8:1::/48") && !has("10.0.0.0/8", "2001:db8::1"));
    }
}
