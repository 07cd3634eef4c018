//! Results of load tests in files: what cannot be read is refused, and of what can be read a page,
//! logs, a summary, a whole of several and a comparison are made or refused without a panic.
#![no_main]

use hob_load::{ResultComparison, SavedResult};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(all) = SavedResult::read(text) else {
        return;
    };
    for one in &all {
        assert!(one.page().html().starts_with("<!DOCTYPE html>"));
        let _ = (one.hdr_log(), one.hdr_percentiles());
        let _ = (one.summary(), one.has_failed());
    }
    if let Ok(whole) = SavedResult::merge(&all) {
        assert!(whole.page().html().starts_with("<!DOCTYPE html>"));
        let _ = (whole.summary(), whole.hdr_log());
    }
    let (before, after) = all.split_at(all.len() / 2);
    if let Ok(change) = "p99>10%".parse()
        && let Ok(comparison) = ResultComparison::of(before, after, &[change])
    {
        assert!(comparison.table().contains("p99"));
        assert!(comparison.json().is_object());
    }
});
