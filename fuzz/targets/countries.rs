//! Files of countries: whatever stands in one, it is refused or looked up in, and no address of it
//! has a country that is none.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hob_server::step::country::CountryFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = CountryFile::parse(bytes.to_vec()) else {
        return;
    };
    // Addresses that the file itself may speak of, and those of its first bytes.
    let known = [[192, 0, 2, 1], [198, 51, 100, 7], [203, 0, 113, 1], [0; 4], [255; 4]];
    let own = bytes.chunks_exact(4).take(64);
    let own = own.map(|four| [four[0], four[1], four[2], four[3]]);
    for four in known.into_iter().chain(own) {
        let address = Ipv4Addr::from(four);
        let found = file.find(IpAddr::V4(address));
        let mapped = file.find(IpAddr::V6(address.to_ipv6_mapped()));
        assert_eq!(found, mapped);
        let code = found.code();
        assert!(code.is_none_or(|code| code.iter().all(u8::is_ascii_uppercase)));
    }
    for sixteen in bytes.chunks_exact(16).take(64) {
        if let Ok(sixteen) = <[u8; 16]>::try_from(sixteen) {
            file.find(IpAddr::V6(Ipv6Addr::from(sixteen)));
        }
    }
});
