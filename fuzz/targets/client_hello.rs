//! The look at a ClientHello: nothing panics, a name is one, and bytes that come in pieces are what
//! they are at once.
#![no_main]

use hob_http::tls::hello::{Hello, asks_only_for, look};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let whole = look(data);
    if let Hello::Client(Some(name)) = &whole {
        assert!(!name.is_empty() && name.len() <= 253);
        assert!(name.is_ascii() && *name == name.to_ascii_lowercase());
    }
    if asks_only_for(data, b"acme-tls/1") {
        assert!(matches!(whole, Hello::Client(_)));
    }
    for end in 0..data.len().min(600) {
        match look(&data[..end]) {
            Hello::Partial => {}
            early => {
                // What is known early stays so, but for bytes that come after a whole hello.
                assert_eq!(early, whole, "at {end}");
                break;
            }
        }
    }
});
