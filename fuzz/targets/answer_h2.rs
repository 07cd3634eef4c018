//! Answers over HTTP/2 as the load generator reads them: nothing panics, and what comes in pieces
//! comes to what it does when it comes at once.
//!
//! The first byte says how long the pieces are.
#![no_main]

use hob_load::replay_h2;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(first) + 1).collect();
    assert_eq!(replay_h2(&pieces), replay_h2(&[bytes]));
});
