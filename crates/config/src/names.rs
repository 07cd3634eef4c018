//! `[names]`: whether clients have names, and who is asked for them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::fault::Faults;
use super::tree::Section;

/// How names of clients are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientNamesSettings {
    /// The name server; `None` is those of the machine.
    pub server: Option<SocketAddr>,
    /// Addresses whose names are kept.
    pub entries: usize,
    /// Addresses that wait to be looked up.
    pub queue: usize,
    /// How long an answer may take.
    pub time: Duration,
    /// How long a name is kept at most.
    pub keep: Duration,
    /// How long it is kept that there is none.
    pub keep_unknown: Duration,
}

/// The port of name servers.
const PORT: u16 = 53;

/// What a config says about names of clients; `None` when they have none.
pub(crate) fn build_names(root: &Section, faults: &mut Faults<'_>) -> Option<ClientNamesSettings> {
    let section = root.section("names")?;
    let server = section.optional_text("server").and_then(|text| {
        let address = name_server(text);
        if address.is_none() {
            faults
                .error(
                    section.spot("server"),
                    format!("`{text}` is no address of a name server"),
                )
                .hint("write an address such as `127.0.0.1`, `127.0.0.1:5353` or `[::1]:53`");
        }
        address
    });
    Some(ClientNamesSettings {
        server,
        entries: section.number("entries"),
        queue: section.number("queue"),
        time: section.time("time"),
        keep: section.time("keep"),
        keep_unknown: section.time("keep_unknown"),
    })
}

/// The address of a name server; its port may be left out.
pub fn name_server(text: &str) -> Option<SocketAddr> {
    let alone = || Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, PORT));
    text.parse().ok().or_else(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_of_a_name_server_may_be_left_out() {
        for (text, meant) in [
            ("127.0.0.1", "127.0.0.1:53"),
            ("127.0.0.1:5353", "127.0.0.1:5353"),
            ("::1", "[::1]:53"),
            ("[::1]:5353", "[::1]:5353"),
        ] {
            assert_eq!(
                name_server(text).map(|one| one.to_string()).as_deref(),
                Some(meant)
            );
        }
        assert_eq!(name_server("dns.example"), None);
    }
}
