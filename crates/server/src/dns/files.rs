//! What the machine's own files say: names of addresses in `/etc/hosts`, and in `/etc/resolv.conf`
//! who is asked for others, and by which names.

use std::net::{IpAddr, SocketAddr};

/// The port of name servers.
const PORT: u16 = 53;
/// Name servers that are asked, one after the other.
pub const SERVER_COUNT_MAX: usize = 3;

/// Domains in which a name is looked for.
const SEARCH_COUNT_MAX: usize = 6;
/// Most dots of a name that is looked for in them first (`resolv.conf(5)`).
const DOTS_MAX: usize = 15;

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

/// Whether `/etc/hosts` has this name, first or not.
pub fn is_in_hosts(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let line = line.split('#').next().unwrap_or_default();
        let names = line.split_ascii_whitespace().skip(1);
        names.into_iter().any(|one| one.eq_ignore_ascii_case(name))
    })
}

/// The names that are asked for in the place of one, in their order, by `search` and `ndots` of
/// `/etc/resolv.conf`.
pub fn asked_names(text: &str, name: &str) -> Vec<String> {
    if let Some(whole) = name.strip_suffix('.') {
        return vec![whole.to_owned()];
    }
    let (mut search, mut dots_min) = (Vec::new(), 1);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            // The last of them counts.
            Some("search" | "domain") => search = words.take(SEARCH_COUNT_MAX).collect(),
            Some("options") => {
                let mut dots = words.filter_map(|word| word.strip_prefix("ndots:")?.parse().ok());
                dots_min = dots.next().unwrap_or(dots_min).min(DOTS_MAX);
            }
            _ => {}
        }
    }
    let below = search.iter().map(|domain| {
        let domain = domain.trim_end_matches('.');
        format!("{name}.{domain}")
    });
    let is_first = name.matches('.').count() >= dots_min;
    let own = |is_wanted: bool| is_wanted.then(|| name.to_owned());
    own(is_first)
        .into_iter()
        .chain(below)
        .chain(own(!is_first))
        .filter(|name| name.len() <= crate::dns::message::NAME_BYTES_MAX)
        .collect()
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
    fn hosts_have_further_names() {
        let text = "127.0.0.1 localhost Loopback # here\n";
        assert!(is_in_hosts(text, "loopback") && is_in_hosts(text, "LOCALHOST"));
        assert!(!is_in_hosts(text, "here") && !is_in_hosts(text, "127.0.0.1"));
    }

    #[test]
    fn short_names_are_looked_for_in_the_domains_of_the_machine() {
        let text = "domain old.example\nsearch a.example b.example.\noptions edns0 ndots:2\n";
        let names = |name| asked_names(text, name);
        assert_eq!(names("app"), ["app.a.example", "app.b.example", "app"]);
        assert_eq!(
            names("app.x.y"),
            ["app.x.y", "app.x.y.a.example", "app.x.y.b.example"]
        );
        assert_eq!(names("app.x.y."), ["app.x.y"]);
        assert_eq!(asked_names("", "app"), ["app"]);
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
