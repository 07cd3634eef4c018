//! Where a name leads, and for how long that holds. Waits: for threads that may.
//!
//! The machine's own files come first, then name servers, which tell how long an answer holds; what
//! they do not have, the system may find by other means. Name servers of one's own are asked for
//! the name as it is, and nobody else.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use hob_machine::read;

use crate::dns::asking::NameServers;
use crate::dns::files;
use crate::dns::message::{DnsAnswer, DnsQuestion, ServiceServer};

/// What was found holds for so long at least, and at most, whatever its owner says.
const HOLDS_MIN: Duration = Duration::from_secs(1);
const HOLDS_MAX: Duration = Duration::from_secs(3600);
/// How long something holds of which nobody says so.
pub const HOLDS_UNTOLD: Duration = Duration::from_secs(10);
/// How long an answer to one question may take.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// After so long no further server of a service is looked up: what is known by then is told.
const SERVICE_TIME: Duration = Duration::from_secs(5);

/// Addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAddresses {
    /// At least one.
    pub addresses: Vec<IpAddr>,
    /// For so long.
    pub holds: Duration,
}

/// The addresses of a name, by these name servers, or by what the machine has for that.
///
/// # Errors
/// Why there is none, in words.
pub fn addresses(name: &str, servers: &[SocketAddr]) -> Result<FoundAddresses, String> {
    if !servers.is_empty() {
        let name = name.trim_end_matches('.');
        return match ask(name, servers) {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(format!("{name} has no address")),
            Err(NobodyAnswered) => Err(format!("no name server answered for {name}")),
        };
    }
    if !files::is_in_hosts(&read("/etc/hosts"), name) {
        let rules = read("/etc/resolv.conf");
        let servers: Vec<_> = files::name_servers(&rules).collect();
        for name in files::asked_names(&rules, name) {
            match ask(&name, &servers) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(NobodyAnswered) => break,
            }
        }
    }
    by_system(name)
}

/// One of those that offer a service, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundServer {
    /// What its record says.
    pub server: ServiceServer,
    /// At least one, or why none is known, in words.
    pub addresses: Result<Vec<SocketAddr>, String>,
}

/// Who offers a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundService {
    /// Those that are asked first come first; each place is there once.
    pub servers: Vec<FoundServer>,
    /// So many more were named.
    pub surplus: usize,
    /// For so long.
    pub holds: Duration,
}

/// Who offers a service, at most so many, by these name servers or those of the machine.
///
/// # Errors
/// Why that is not known, in words.
pub fn servers_of(
    name: &str,
    servers: &[SocketAddr],
    servers_max: usize,
) -> Result<FoundService, String> {
    let rules = read("/etc/resolv.conf");
    let asked = match servers.is_empty() {
        true => files::name_servers(&rules).collect(),
        false => servers.to_vec(),
    };
    let name = name.trim_end_matches('.');
    let all = NameServers {
        addresses: asked,
        time: ANSWER_TIME,
    };
    let end = Instant::now() + SERVICE_TIME;
    let (found, ttl_s) = match all.ask(&DnsQuestion::ServersOf(name.to_owned())) {
        DnsAnswer::Servers(found, ttl_s) => (found, ttl_s),
        DnsAnswer::Nothing => return Err(format!("{name} has no servers")),
        _ => return Err(format!("no name server answered for {name}")),
    };
    let mut holds = Duration::from_secs(ttl_s.into()).clamp(HOLDS_MIN, HOLDS_MAX);
    let (found, surplus) = most_wanted(found, servers_max);
    let mut of_service = Vec::with_capacity(found.len());
    for server in found {
        let target = &server.target;
        let looked = match Instant::now() < end {
            // Its name is whole: nothing is searched for.
            true => addresses(&format!("{target}."), servers),
            false => Err(format!("there was no time to look {target} up")),
        };
        holds = holds.min(looked.as_ref().map_or(HOLDS_UNTOLD, |found| found.holds));
        let with_port = |address: IpAddr| SocketAddr::new(address, server.port);
        of_service.push(FoundServer {
            addresses: looked.map(|found| found.addresses.into_iter().map(with_port).collect()),
            server,
        });
    }
    Ok(FoundService {
        servers: of_service,
        surplus,
        holds,
    })
}

/// As many as may be, each place once, those that are asked first before all others; and how many
/// more there were. Who has the same records comes to the same.
pub fn most_wanted(mut all: Vec<ServiceServer>, servers_max: usize) -> (Vec<ServiceServer>, usize) {
    let place = |one: &ServiceServer| (one.target.clone(), one.port);
    all.sort_by_cached_key(|one| (one.priority, Reverse(one.weight), place(one)));
    let mut seen = HashSet::new();
    all.retain(|one| seen.insert(place(one)));
    let surplus = all.len().saturating_sub(servers_max);
    all.truncate(servers_max);
    (all, surplus)
}

/// No name server said anything that counts, in time.
struct NobodyAnswered;

fn ask(name: &str, servers: &[SocketAddr]) -> Result<Option<FoundAddresses>, NobodyAnswered> {
    const FAMILIES: [IpAddr; 2] = [
        IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
    ];
    let servers = NameServers {
        addresses: servers.to_vec(),
        time: ANSWER_TIME,
    };
    let (mut addresses, mut ttl_s, mut is_told) = (Vec::new(), u32::MAX, true);
    for family in FAMILIES {
        match servers.ask(&DnsQuestion::AddressesOf(name.to_owned(), family)) {
            DnsAnswer::Addresses(found, also_s) => {
                addresses.extend(found);
                ttl_s = ttl_s.min(also_s);
            }
            DnsAnswer::Nothing => {}
            // One family is enough; who says nothing of the first is not asked for the second.
            _ if addresses.is_empty() => return Err(NobodyAnswered),
            _ => is_told = false,
        }
    }
    if addresses.is_empty() {
        return Ok(None);
    }
    let holds = match is_told {
        true => Duration::from_secs(ttl_s.into()).clamp(HOLDS_MIN, HOLDS_MAX),
        false => HOLDS_MIN,
    };
    Ok(Some(FoundAddresses { addresses, holds }))
}

fn by_system(name: &str) -> Result<FoundAddresses, String> {
    let found = (name, 0).to_socket_addrs();
    let found = found.map_err(|error| format!("{name} was not found: {error}"))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    match addresses.is_empty() {
        true => Err(format!("{name} has no address")),
        false => Ok(FoundAddresses {
            addresses,
            holds: HOLDS_UNTOLD,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_beyond_as_many_as_may_be_are_those_that_are_asked_last() {
        let server = |target: &str, priority, weight| ServiceServer {
            priority,
            weight,
            target: target.to_owned(),
            port: 80,
        };
        let all = vec![
            server("d.test", 2, 9),
            server("c.test", 1, 1),
            server("b.test", 1, 5),
            server("a.test", 1, 5),
            // The same place once more.
            server("a.test", 3, 5),
        ];
        let (found, surplus) = most_wanted(all.clone(), 3);
        let targets: Vec<_> = found.iter().map(|one| &*one.target).collect();
        assert_eq!(
            (&targets[..], surplus),
            (&["a.test", "b.test", "c.test"][..], 1)
        );
        assert_eq!(most_wanted(all, 4).1, 0);
    }
}
