//! `trusted` of a listener: whose word on its clients is believed, and in which field.

use std::net::IpAddr;

use super::config::Listener;
use super::fault::Faults;
use super::tree::Section;

/// Who is believed on who its clients are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTrust {
    /// Networks of theirs.
    pub networks: Vec<AddressRange>,
    /// Whoever connects over a Unix socket.
    pub unix: bool,
    /// The field in which they say it, in lower case; `None` where the header of the PROXY protocol
    /// says it, and no field.
    pub field: Option<String>,
}

/// A network: addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// Whether an address is in it.
    pub fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differs = u32::from(own) ^ u32::from(other);
                u64::from(differs) >> (32 - self.bits) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differs = u128::from(own) ^ u128::from(other);
                self.bits == 0 || differs >> (128 - self.bits) == 0
            }
            _ => false,
        }
    }
}

impl ClientTrust {
    /// Whether what an address says is believed.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.has(address))
    }

    /// Whether what who connects from there says is believed; `None` is a Unix socket.
    pub fn has_peer(&self, peer: Option<IpAddr>) -> bool {
        peer.map_or(self.unix, |peer| self.has(peer))
    }

    /// Reads it; `None` where nobody is believed.
    pub(crate) fn read(section: &Section, faults: &mut Faults<'_>) -> Option<ClientTrust> {
        let field = section.text("client_from").to_ascii_lowercase();
        let is_meant = section.given("client_from").is_some() || !section.flag("proxy_protocol");
        let mut trust = ClientTrust {
            networks: Vec::new(),
            unix: false,
            field: None,
        };
        for (text, spot) in section.texts("trusted") {
            match AddressRange::parse(text) {
                _ if text == "unix" => trust.unix = true,
                Ok(network) => trust.networks.push(network),
                Err(hint) => {
                    faults
                        .error(spot, format!("{text:?} is no network"))
                        .hint(format!("{hint}, or `unix`"));
                }
            }
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if field.is_empty() || !field.bytes().all(is_name) {
            faults
                .error(
                    section.spot("client_from"),
                    format!("{field:?} is no field"),
                )
                .hint("write the name of a field, such as `X-Forwarded-For`");
        }
        trust.field = is_meant.then_some(field);
        let is_any = trust.unix || !trust.networks.is_empty();
        if let (Some(given), false) = (section.given("client_from"), is_any) {
            faults
                .warn(given.key, "`client_from` does nothing here")
                .hint("nobody is believed: add `trusted`, or remove it");
        }
        is_any.then_some(trust)
    }
}

/// What does not go together with the header of the PROXY protocol that a listener asks for.
pub(crate) fn look_at_header(section: &Section, listener: &mut Listener, faults: &mut Faults<'_>) {
    let given = section.given("proxy_protocol");
    if let (Some(tls), Some(keys)) = (&mut listener.tls, section.section("tls")) {
        tls.http3 = false;
        if let Some(http3) = keys.given("http3").filter(|_| keys.flag("http3")) {
            faults
                .warn(
                    http3.key,
                    "HTTP/3 is not spoken here: no header comes over UDP",
                )
                .see(section.spot("proxy_protocol"), "`proxy_protocol`")
                .hint("remove it, and listen for HTTP/3 where clients connect by themselves");
        }
    }
    let is_open = !listener.address.is_for_this_machine_only();
    if let (Some(given), true, None) = (given, is_open, &listener.trust) {
        faults
            .warn(
                given.key,
                "whoever reaches this listener can say who they are",
            )
            .hint("list what stands in front in `trusted`, such as `trusted = [\"10.0.0.0/8\"]`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_addresses_that_begin_like_theirs() {
        let has = |network: &str, address: &str| {
            AddressRange::parse(network)
                .unwrap()
                .has(address.parse().unwrap())
        };
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("192.0.2.1", "192.0.2.1") && !has("192.0.2.1", "192.0.2.2"));
        assert!(has("0.0.0.0/0", "255.1.1.1") && !has("0.0.0.0/0", "::1"));
        assert!(has("2001:db8::/32", "2001:db8:ffff::1") && !has("2001:db8::/32", "2001:db9::"));
        assert!(has("::/0", "::1") && has("::1", "::1") && !has("::1", "::2"));
        for wrong in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "a/8",
            "10.0.0.0/",
            "10.0.0.0/-1",
        ] {
            AddressRange::parse(wrong).unwrap_err();
        }
        let mapped = ClientTrust {
            networks: vec![AddressRange::parse("10.0.0.0/8").unwrap()],
            unix: false,
            field: None,
        };
        assert!(mapped.has("::ffff:10.1.2.3".parse().unwrap()));
    }
}
