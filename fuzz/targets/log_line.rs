//! Lines of access logs: nothing panics, and what is taken can be sent as it stands.
#![no_main]

use hob_load::LogLine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(line) = LogLine::parse(data) else {
        return;
    };
    assert!(line.target.starts_with('/'));
    assert!(line.target.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(line.target.len() <= hob_load::limits::LOG_TARGET_BYTES_MAX + 1);
    assert!(!line.method.is_empty() && line.method.is_ascii());
});
