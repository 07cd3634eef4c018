//! What the kernel prints below `/proc`, as anything else might: no text may panic, and numbers
//! that are found in one come out again.
#![no_main]

use hob_machine::text::{everything, interfaces, netstat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    everything(&text);
    for (name, _) in interfaces(&text) {
        assert_eq!(name, name.trim());
    }
    let number = bytes.len() as u64;
    let below = format!("TcpExt: A Wanted B\nTcpExt: 1 {number} 2\n{text}");
    assert_eq!(netstat(&below, "TcpExt", "Wanted"), Some(number));
});
