//! What comes from a name server, which may be anybody: nothing may panic, and a name that is taken
//! has only what host names may have. Of a service each place is there once, no more than may be.
#![no_main]

use std::collections::HashSet;

use hob_server::dns::files::{asked_names, hosts, is_in_hosts, name_servers};
use hob_server::dns::lookup::most_wanted;
use hob_server::dns::message::{DnsAnswer, DnsQuestion, NAME_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let client = "192.0.2.7".parse().expect("an address");
    let number = bytes
        .get(..2)
        .map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
    if let Some(DnsAnswer::Name(name, _)) = DnsQuestion::NameOf(client).read(number, bytes) {
        assert!(is_host_name(&name));
    }
    DnsQuestion::AddressesOf("a.example".to_owned(), client).read(number, bytes);
    let service = DnsQuestion::ServersOf("_app._tcp.example".to_owned());
    if let Some(DnsAnswer::Servers(all, _)) = service.read(number, bytes) {
        assert!(all.iter().all(|one| is_host_name(&one.target)));
        let count = all.len();
        let (wanted, surplus) = most_wanted(all, SERVERS_MAX);
        assert!(wanted.len() <= SERVERS_MAX && wanted.len() + surplus <= count);
        let places: HashSet<_> = wanted.iter().map(|one| (&one.target, one.port)).collect();
        assert_eq!(places.len(), wanted.len());
        assert!(wanted.is_sorted_by_key(|one| one.priority));
    }
    let text = String::from_utf8_lossy(bytes);
    hosts(&text).for_each(drop);
    name_servers(&text).for_each(drop);
    is_in_hosts(&text, "app");
    assert!(
        asked_names(&text, "app")
            .iter()
            .all(|name| name.len() <= NAME_BYTES_MAX)
    );
});

const SERVERS_MAX: usize = 3;

fn is_host_name(name: &str) -> bool {
    let is_plain = |one: u8| one.is_ascii_alphanumeric() || b"-_.".contains(&one);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}
