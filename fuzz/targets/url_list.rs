//! Lists of URLs: nothing panics, what is taken keeps the limits, and a refusal names a line that
//! there is.
#![no_main]

use hob_load::parse_list;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let base = "http://127.0.0.1:8080/".parse().expect("this is a URL");
    let mut asked = 0;
    let body = |name: &str| {
        asked += 1;
        Ok(name.as_bytes().into())
    };
    match parse_list(text, Some(&base), body) {
        Ok(entries) => {
            assert!(!entries.is_empty() && entries.len() <= text.lines().count());
            for entry in &entries {
                assert_eq!(entry.url.origin(), base.origin());
                assert!(entry.weight > 0.0 && entry.weight.is_finite());
            }
        }
        Err(error) => assert!((1..=text.lines().count().max(1)).contains(&error.line)),
    }
    assert!(asked <= text.len());
});
