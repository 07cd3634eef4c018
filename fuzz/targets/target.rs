//! Request targets: a path that is accepted has no dot segment, no double slash and no byte that
//! was to be refused; a host that is accepted is its own normal form.
#![no_main]

use hob_server::route::host::{HOST_BYTES_MAX, normalise_host};
use hob_server::route::target::{Normal, can_be_segment, collapse, normalise, split_target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|target: &[u8]| {
    let (raw, _query) = split_target(target);
    let mut out = Vec::new();
    if let Ok(normal) = normalise(raw, &mut out) {
        let path = normal.path(raw, &out);
        assert_eq!(path[0], b'/');
        let segments: Vec<&[u8]> = path[1..].split(|&byte| byte == b'/').collect();
        for (index, segment) in segments.iter().enumerate() {
            let is_last = index + 1 == segments.len();
            assert!(can_be_segment(segment) || (is_last && segment.is_empty()));
        }
        assert!(collapse(path, &mut Vec::new()).is_ok());
        if normal == Normal::Clean {
            assert_eq!(normalise(path, &mut Vec::new()), Ok(Normal::Clean));
        }
    }
    let _ = collapse(raw, &mut out);
    let (mut first, mut second) = ([0; HOST_BYTES_MAX], [0; HOST_BYTES_MAX]);
    if let Some(host) = normalise_host(target, &mut first) {
        let is_dotted = host.ends_with(b".");
        assert!(is_dotted || normalise_host(host, &mut second) == Some(host));
    }
});
