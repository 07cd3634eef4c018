//! Networks that are banned, as operators and files write them: what is read is written as it is
//! read again, and it has its own first address.
#![no_main]

use hob_server::step::banned_network::BanNetwork;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(network) = BanNetwork::parse(text) else {
        return;
    };
    assert_eq!(BanNetwork::parse(&network.to_string()), Ok(network));
    assert!(network.has(&BanNetwork::of(network.first(), 128)));
});
