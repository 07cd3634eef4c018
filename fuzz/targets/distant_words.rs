//! Lines that a client and the servers' machine of a comparison say to each other: nothing panics,
//! and a question that is understood is understood again when it is written anew.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| hob_compare::replay_words(data));
