//! The history's file: entries, frames and rows of any bytes are taken or refused, and nothing
//! panics. So are the marks at which pages go on; what is taken is written as it was read.
#![no_main]

use hob_trace::history::Mark;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (base, rest) = data.split_at(data.len().min(8));
    let base = base
        .iter()
        .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    hob_trace::history::is_sound(rest, base);
    hob_trace::history::is_frame(data);
    hob_trace::activity::is_slot(data);
    let mark = std::str::from_utf8(data).ok().and_then(Mark::parse);
    if let Some(mark) = mark {
        assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
    }
});
