//! Headers of the PROXY protocol: nothing panics, bytes that come in pieces are what they are at
//! once, and what was understood is the same when it is written and read again.
#![no_main]

use hob_http::proxy_protocol::{ProxyVersion, read};
use libfuzzer_sys::fuzz_target;

const BYTES_MAX: usize = 2048;

fuzz_target!(|data: &[u8]| {
    let whole = read(data, BYTES_MAX);
    for end in 0..data.len().min(BYTES_MAX) {
        match read(&data[..end], BYTES_MAX) {
            Ok(None) => {}
            early => {
                assert_eq!(early, whole, "at {end}");
                break;
            }
        }
    }
    let Ok(Some((header, len))) = whole else {
        return;
    };
    assert!(len <= data.len().min(BYTES_MAX));
    let mut written = Vec::new();
    header.push(ProxyVersion::V2, &mut written);
    assert_eq!(
        read(&written, usize::MAX),
        Ok(Some((header.clone(), written.len())))
    );
    let mut line = Vec::new();
    header.push(ProxyVersion::V1, &mut line);
    let (back, line_len) = read(&line, 0).unwrap().unwrap();
    assert_eq!(
        (back.ends.is_some(), line_len),
        (header.ends.is_some(), line.len())
    );
});
