//! The history's file: entries, frames and rows of any bytes are taken or refused, and nothing
//! panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (base, rest) = data.split_at(data.len().min(8));
    let base = base
        .iter()
        .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    hob_trace::history::is_sound(rest, base);
    hob_trace::history::is_frame(data);
    hob_trace::activity::is_slot(data);
});
