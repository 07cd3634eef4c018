//! What the machine's own files say: names of addresses in `/etc/hosts`, and in `/etc/resolv.conf`
//! who is asked for others.

use std::net::{IpAddr, SocketAddr};

/// The port of name servers.
const PORT: u16 = 53;
/// Name servers that are asked, one after the other.
pub const SERVER_COUNT_MAX: usize = 3;

/// Addresses with their first name, of `/etc/hosts`.
pub fn hosts(text: &str) -> impl Iterator<Item = (IpAddr, &str)> {
    text.lines().filter_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        let name = words.next()?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name =
            name.len() <= crate::dns::message::NAME_BYTES_MAX && name.bytes().all(is_plain);
        is_name.then_some((address, name))
    })
}

/// Name servers, of `/etc/resolv.conf`.
pub fn name_servers(text: &str) -> impl Iterator<Item = SocketAddr> {
    let words = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == "nameserver").then(|| words.next())?
    });
    let servers = words.filter_map(|word| Some(SocketAddr::new(word.parse().ok()?, PORT)));
    servers.take(SERVER_COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_their_first_name() {
        let text = "127.0.0.1\tlocalhost loopback # here\n# 10.0.0.1 no\n10.0.0.2\n\
                    ::1 ip6-localhost\nnot an address\n10.0.0.3 <b>\n";
        let all: Vec<_> = hosts(text).map(|(_, name)| name).collect();
        assert_eq!(all, ["localhost", "ip6-localhost"]);
    }

    #[test]
    fn three_name_servers_at_most() {
        let text = "search example\nnameserver 127.0.0.53\n nameserver ::1\nnameserver nobody\n\
                    nameserver 10.0.0.1\nnameserver 10.0.0.2\n";
        let all: Vec<_> = name_servers(text)
            .map(|server| server.to_string())
            .collect();
        assert_eq!(all, ["127.0.0.53:53", "[::1]:53", "10.0.0.1:53"]);
    }
}
