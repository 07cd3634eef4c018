//! Tables of releases as people edit them: nothing panics, and what was written once is written the
//! same again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let once = hob_compare::release_table(text);
    assert!(once.contains("| release |"));
    assert_eq!(hob_compare::release_table(&once), once);
});
