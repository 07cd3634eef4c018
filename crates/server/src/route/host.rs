//! The site that a request's host means.
//!
//! Exact names win over `*.name`, of which the longest wins, over the default site. A host is
//! compared without its port, without a final dot, in lower case; an IPv6 literal is compared by
//! its value. Host names are ASCII: a name with other bytes means the default site.

use std::collections::HashMap;
use std::io::Write;
use std::net::Ipv6Addr;

use foldhash::fast::FixedState;

use super::template::without_port;

/// Longest host name, in bytes, without a final dot. A longer one means the default site.
//= rfc1035#2.3.4
pub const HOST_BYTES_MAX: usize = 253;

/// Sites by host name.
#[derive(Clone, Debug)]
pub struct HostTable {
    exact: Map,
    /// By what follows the star: `*.example.org` is `.example.org`.
    wildcard: Map,
    default: u32,
    /// There is no site that is for all other hosts.
    all_named: bool,
    /// There is no site at all.
    is_empty: bool,
}

/// The site of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its index.
    pub site: u32,
    /// What decided it.
    pub by: ChosenBy,
}

/// What decides which site answers for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// The site bears the host's name.
    Name,
    /// The site bears `*` and the last `parent_bytes` of the normal host, from their dot on.
    Wildcard {
        /// How many bytes of the host follow the star.
        parent_bytes: usize,
    },
    /// No site bears a name of the host, or there is no host: this one answers for all such.
    Default,
    /// No site bears a name of the host, and each has names: this is the first.
    Unknown,
}

/// Keys come from the config, never from clients, so a fixed seed will do.
type Map = HashMap<Box<[u8]>, u32, FixedState>;

impl Default for HostTable {
    fn default() -> HostTable {
        HostTable::build([[""; 0]; 0])
    }
}

impl HostTable {
    /// Builds the table from the names of each site, in order: exact names or `*.name`.
    ///
    /// The first site without names is the default, else the first site. Of two sites with one
    /// name the first has it. A name that is no host name is never found.
    pub fn build<'a, Names>(sites: impl IntoIterator<Item = Names>) -> HostTable
    where
        Names: IntoIterator<Item = &'a str>,
    {
        HostTable::of_some((0..).zip(sites))
    }

    /// The same from some sites with their indexes. Where there are none, all hosts are unknown.
    pub fn of_some<'a, Names>(sites: impl IntoIterator<Item = (u32, Names)>) -> HostTable
    where
        Names: IntoIterator<Item = &'a str>,
    {
        let mut table = HostTable {
            exact: Map::default(),
            wildcard: Map::default(),
            default: 0,
            all_named: false,
            is_empty: true,
        };
        let (mut first, mut nameless) = (None, None);
        for (site, names) in sites {
            first = first.or(Some(site));
            let mut has_names = false;
            for name in names {
                has_names = true;
                table.insert(site, name);
            }
            if !has_names {
                nameless = nameless.or(Some(site));
            }
        }
        let has_names = !table.exact.is_empty() || !table.wildcard.is_empty();
        table.all_named = nameless.is_none() && has_names;
        table.is_empty = first.is_none();
        table.default = nameless.or(first).unwrap_or(u32::MAX);
        table
    }

    /// The site that answers for `host`, as it stood in the request (empty when it has none), and
    /// what decided it.
    pub fn choose(&self, host: &[u8]) -> Chosen {
        let default = Chosen {
            site: self.default,
            by: match self.is_empty || self.all_named && !without_port(host).is_empty() {
                true => ChosenBy::Unknown,
                false => ChosenBy::Default,
            },
        };
        if self.exact.is_empty() && self.wildcard.is_empty() {
            return default;
        }
        let mut buffer = [0; HOST_BYTES_MAX];
        let Some(host) = normalise_host(host, &mut buffer) else {
            return default;
        };
        if let Some(&site) = self.exact.get(host) {
            let by = ChosenBy::Name;
            return Chosen { site, by };
        }
        if self.wildcard.is_empty() {
            return default;
        }
        // From the left, so the longest wildcard comes first; a star stands for one byte at least.
        memchr::memchr_iter(b'.', host)
            .filter(|&dot| dot > 0)
            .find_map(|dot| {
                let site = *self.wildcard.get(&host[dot..])?;
                let by = ChosenBy::Wildcard {
                    parent_bytes: host.len() - dot,
                };
                Some(Chosen { site, by })
            })
            .unwrap_or(default)
    }

    fn insert(&mut self, site: u32, name: &str) {
        let (map, name) = match name.strip_prefix('*') {
            Some(parent) if parent.starts_with('.') => (&mut self.wildcard, parent),
            _ => (&mut self.exact, name),
        };
        let mut buffer = [0; HOST_BYTES_MAX];
        if let Some(name) = normalise_host(name.as_bytes(), &mut buffer) {
            map.entry(name.into()).or_insert(site);
        }
    }
}

/// The host as it is compared, written to `buffer`; `None` when it cannot be anybody's name.
//= rfc9110#4.2.3
pub fn normalise_host<'a>(host: &[u8], buffer: &'a mut [u8; HOST_BYTES_MAX]) -> Option<&'a [u8]> {
    let host = without_port(host);
    if host.first() == Some(&b'[') {
        return normalise_literal(host, buffer);
    }
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.is_empty() {
        return None;
    }
    let name = buffer.get_mut(..host.len())?;
    for (to, &from) in name.iter_mut().zip(host) {
        if !is_name_byte(from) {
            return None;
        }
        *to = from.to_ascii_lowercase();
    }
    Some(name)
}

/// `[::1]` in one spelling.
//= rfc5952#4
fn normalise_literal<'a>(host: &[u8], buffer: &'a mut [u8; HOST_BYTES_MAX]) -> Option<&'a [u8]> {
    let inner = host.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let address: Ipv6Addr = std::str::from_utf8(inner).ok()?.parse().ok()?;
    let mut free = &mut buffer[..];
    write!(free, "[{address}]").ok()?;
    let used = HOST_BYTES_MAX - free.len();
    Some(&buffer[..used])
}

/// Letters, digits, `-`, `.`, and the `_` that names in use have against the rules.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(host: &str) -> Option<String> {
        let mut buffer = [0; HOST_BYTES_MAX];
        let host = normalise_host(host.as_bytes(), &mut buffer)?;
        Some(String::from_utf8(host.to_vec()).unwrap())
    }

    #[test]
    fn one_host_has_one_spelling() {
        let cases = [
            ("Example.ORG", "example.org"),
            ("example.org.", "example.org"),
            ("example.org:8080", "example.org"),
            ("example.org.:8080", "example.org"),
            ("example.org:", "example.org"),
            ("a_b-1", "a_b-1"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[::1]:8080", "[::1]"),
            ("[0:0:0:0:0:0:0:1]", "[::1]"),
            ("[2001:DB8::A]", "[2001:db8::a]"),
        ];
        for (host, expected) in cases {
            assert_eq!(normal(host).as_deref(), Some(expected), "{host}");
        }
    }

    #[test]
    fn what_is_no_host_is_nobodys_name() {
        let long = "a".repeat(HOST_BYTES_MAX + 1);
        let hosts = [
            "",
            ".",
            ":80",
            "a b",
            "a/b",
            "b\u{fc}cher.de",
            "user@a",
            "a:b",
            "::1",
            "[::1",
            "[a]",
            &long,
        ];
        for host in hosts {
            assert_eq!(normal(host), None, "{host}");
        }
        assert!(normal(&long[1..]).is_some());
    }

    #[test]
    fn exact_then_longest_wildcard_then_default() {
        let sites: [&[&str]; 6] = [
            &["example.org", "www.example.org"],
            &["*.example.org"],
            &["*.b.example.org"],
            &[],
            &["[::1]", "127.0.0.1"],
            &["example.org"],
        ];
        let table = HostTable::build(sites.map(|names| names.iter().copied()));
        let cases = [
            ("EXAMPLE.org:81", 0),
            ("www.example.org.", 0),
            ("a.example.org", 1),
            ("x.y.example.org", 1),
            ("b.example.org", 1),
            ("a.b.example.org", 2),
            (".example.org", 3),
            ("badexample.org", 3),
            ("other", 3),
            ("", 3),
            ("[0::1]:80", 4),
            ("127.0.0.1:80", 4),
        ];
        for (host, site) in cases {
            assert_eq!(table.choose(host.as_bytes()).site, site, "{host}");
        }
        let by = |host: &str| table.choose(host.as_bytes()).by;
        let parent_bytes = ".b.example.org".len();
        assert_eq!(by("EXAMPLE.org:81"), ChosenBy::Name);
        assert_eq!(
            by("a.b.example.org:80"),
            ChosenBy::Wildcard { parent_bytes }
        );
        assert_eq!(by("other"), ChosenBy::Default);
    }

    #[test]
    fn without_a_nameless_site_the_first_is_the_default() {
        let table = HostTable::build([["a"], ["b"]]);
        let chosen = |host: &str| {
            let Chosen { site, by } = table.choose(host.as_bytes());
            (site, by)
        };
        assert_eq!(chosen("b"), (1, ChosenBy::Name));
        for unknown in ["c", "c:80", "a b"] {
            assert_eq!(chosen(unknown), (0, ChosenBy::Unknown), "{unknown}");
        }
        // Who names no host asks for the server, not for another.
        assert_eq!(chosen(""), (0, ChosenBy::Default));
        assert_eq!(chosen(":80"), (0, ChosenBy::Default));
        let nameless = HostTable::build([[""; 0], [""; 0]]);
        let by = ChosenBy::Default;
        assert_eq!(nameless.choose(b"anything"), Chosen { site: 0, by });
    }
}
