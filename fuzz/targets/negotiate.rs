//! Negotiation: only what is available is chosen, and nothing but the identity without a wish.
#![no_main]

use hob_server::config::Coding;
use hob_server::step::negotiate::{Negotiated, coding, listing_form};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|list: &[u8]| {
    let all = [Coding::Brotli, Coding::Zstd, Coding::Gzip];
    for count in 0..=all.len() {
        if let Negotiated::Coded(chosen) = coding(Some(list), &all[..count]) {
            assert!(all[..count].contains(&chosen));
            assert!(list.contains(&b'*') || list.len() >= 2);
        }
    }
    listing_form(Some(list));
});
