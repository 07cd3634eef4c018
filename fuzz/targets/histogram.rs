//! Histograms of results, as they are below their compression: a random one is refused, or read
//! and written so that it comes back.
#![no_main]

use hob_load::replay_histogram;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((once, again)) = replay_histogram(data) {
        assert_eq!(once, again);
    }
});
