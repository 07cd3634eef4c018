//! What comes from a name server, which may be anybody: nothing may panic, and a name that is taken
//! has only what host names may have.
#![no_main]

use hob_server::dns::files::{asked_names, hosts, is_in_hosts, name_servers};
use hob_server::dns::message::{DnsAnswer, DnsQuestion, NAME_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let client = "192.0.2.7".parse().expect("an address");
    let number = bytes
        .get(..2)
        .map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
    if let Some(DnsAnswer::Name(name, _)) = DnsQuestion::NameOf(client).read(number, bytes) {
        assert!(!name.is_empty() && name.len() <= NAME_BYTES_MAX);
        let is_plain = |one: u8| one.is_ascii_alphanumeric() || b"-_.".contains(&one);
        assert!(name.bytes().all(is_plain));
    }
    DnsQuestion::AddressesOf("a.example".to_owned(), client).read(number, bytes);
    DnsQuestion::ServersOf("_app._tcp.example".to_owned()).read(number, bytes);
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
