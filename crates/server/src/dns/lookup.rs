//! Where a name leads, and for how long that holds. Waits: for threads that may.
//!
//! The machine's own files come first, then name servers, which tell how long an answer holds; what
//! they do not have, the system may find by other means. Name servers of one's own are asked for
//! the name as it is, and nobody else.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

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

/// Where one of those listens that offer a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePlace {
    /// Those with the lowest are asked first.
    pub priority: u16,
    /// Its share among those of the same priority.
    pub weight: u16,
    /// An address and a port.
    pub address: SocketAddr,
}

/// Servers of a service that are looked up.
const SERVERS_MAX: usize = 64;

/// Where a service is to be found, by these name servers, or those of the machine, and for how long
/// that holds.
///
/// # Errors
/// Why it is nowhere, in words.
pub fn services(
    name: &str,
    servers: &[SocketAddr],
) -> Result<(Vec<ServicePlace>, Duration), String> {
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
    let (found, ttl_s) = match all.ask(&DnsQuestion::ServersOf(name.to_owned())) {
        DnsAnswer::Servers(found, ttl_s) => (found, ttl_s),
        DnsAnswer::Nothing => return Err(format!("{name} has no servers")),
        _ => return Err(format!("no name server answered for {name}")),
    };
    let mut holds = Duration::from_secs(ttl_s.into()).clamp(HOLDS_MIN, HOLDS_MAX);
    let (mut places, mut failed) = (Vec::new(), String::new());
    for server in found.into_iter().take(SERVERS_MAX) {
        let ServiceServer {
            priority,
            weight,
            target,
            port,
        } = server;
        // Its name is whole: nothing is searched for.
        match addresses(&format!("{target}."), servers) {
            Ok(found) => {
                holds = holds.min(found.holds);
                let there = found.addresses.into_iter();
                places.extend(there.map(|address| ServicePlace {
                    priority,
                    weight,
                    address: SocketAddr::new(address, port),
                }));
            }
            Err(why) => failed = why,
        }
    }
    match places.is_empty() {
        true => Err(failed),
        false => Ok((places, holds)),
    }
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
