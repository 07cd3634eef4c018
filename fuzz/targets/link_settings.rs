//! Links as people write them: nothing panics, and what is taken keeps the limits.
#![no_main]

use hob_load::limits::{BIT_RATE_MAX, BIT_RATE_MIN};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(rate) = hob_load::parse_bit_rate(text) {
        assert!((BIT_RATE_MIN..=BIT_RATE_MAX).contains(&rate));
    }
    match hob_compare::LinkSettings::parse(text) {
        Ok(link) => assert!(link.to_string().contains("each way")),
        Err(why) => assert!(why.contains("RATE,DELAY")),
    }
});
