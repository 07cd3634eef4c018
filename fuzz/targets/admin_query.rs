//! Queries of the admin API: nothing panics, and what was encoded comes back.
//!
//! The first byte says where the bytes are cut into a value and a query around it.
#![no_main]

use hob_inside::admin::query::value_of;
use hob_server::route::percent::{UrlPart, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let (value, query) = bytes.split_at(usize::from(first).min(bytes.len()));
    if let Some(found) = value_of(query, "q") {
        assert!(found.len() <= 3 * query.len());
    }
    let mut whole = b"q=".to_vec();
    encode(value, UrlPart::Value, &mut whole);
    whole.push(b'&');
    whole.extend_from_slice(query);
    let back = value_of(&whole, "q").expect("it was put in front");
    assert_eq!(back, String::from_utf8_lossy(value));
});
