//! Request targets: a path that is accepted has no dot segment, no double slash and no byte that
//! was to be refused, not even where encoded slashes are taken for separators; encoded, it gives
//! itself; what follows any part of it is the same but for slashes. A host that is accepted is its
//! own normal form.
#![no_main]

use hob_server::route::host::{HOST_BYTES_MAX, normalise_host};
use hob_server::route::percent::{UrlPart, encode};
use hob_server::route::target::{ENCODED_SLASH, Normal, collapse, normalise, rest_as_sent, told};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|target: &[u8]| {
    let raw = target
        .split(|&byte| byte == b'?')
        .next()
        .unwrap_or_default();
    let mut out = Vec::new();
    if let Ok(normal) = normalise(raw, &mut out) {
        let path = normal.path(raw, &out);
        assert_eq!(path[0], b'/');
        let segments: Vec<&[u8]> = path[1..].split(|&byte| byte == b'/').collect();
        for (index, segment) in segments.iter().enumerate() {
            let is_last = index + 1 == segments.len();
            assert!(!segment.is_empty() || is_last);
            for piece in segment.split(|&byte| byte == ENCODED_SLASH) {
                assert!(!matches!(piece, b"." | b".."));
                assert!(
                    !piece
                        .iter()
                        .any(|byte| matches!(byte, 0..0x20 | 0x7f | b'\\'))
                );
            }
        }
        assert!(collapse(path, &mut Vec::new()).is_ok());
        let (mut encoded, mut again) = (Vec::new(), Vec::new());
        encode(path, UrlPart::Path, &mut encoded);
        let found = normalise(&encoded, &mut again);
        assert!(found.is_ok_and(|found| found.path(&encoded, &again) == path));
        for (named, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let mut rest = rest_as_sent(raw, path, named).into_owned();
            assert!(
                !told(rest.as_slice().into())
                    .split(|&byte| byte == b'/')
                    .any(|one| one == b"..")
            );
            rest.dedup_by(|one, before| *one == b'/' && *before == b'/');
            assert_eq!(rest, path[named..]);
        }
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
