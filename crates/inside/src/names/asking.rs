//! The name of an address, if it leads back.

use std::net::IpAddr;

use hob_server::dns::asking::NameServers;
use hob_server::dns::message::{DnsAnswer, DnsQuestion};

/// What came of looking up an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReverseLookup {
    /// Its name, for so many seconds.
    Name(String, u32),
    /// It has none.
    Nothing,
    /// It has one that does not lead back to it.
    Mismatch,
    /// Nobody said anything that counts, in time.
    Failed,
}

/// The name of an address, if that name has this address.
pub(super) fn name_of(servers: &NameServers, address: IpAddr) -> ReverseLookup {
    let (name, ttl_s) = match servers.ask(&DnsQuestion::NameOf(address)) {
        DnsAnswer::Name(name, ttl_s) => (name, ttl_s),
        DnsAnswer::Nothing => return ReverseLookup::Nothing,
        _ => return ReverseLookup::Failed,
    };
    match servers.ask(&DnsQuestion::AddressesOf(name.clone(), address)) {
        DnsAnswer::Addresses(all, also_s) if all.contains(&address) => {
            ReverseLookup::Name(name, ttl_s.min(also_s))
        }
        DnsAnswer::Addresses(..) | DnsAnswer::Nothing => ReverseLookup::Mismatch,
        _ => ReverseLookup::Failed,
    }
}

#[cfg(test)]
mod tests;
