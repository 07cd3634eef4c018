//! Documents and stylesheets as `hob bench --page` reads them: nothing panics, limits hold, what a
//! reference is resolved to can be asked for in one line and leads to itself, and what is found of
//! a document that comes in pieces is what it begins with when it is whole.
#![no_main]

use hob_load::{limits, resolve, scan_ahead, scan_css, scan_html};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for scan in [scan_html(data), scan_css(data)] {
        assert!(scan.found.len() <= limits::ASSET_COUNT_MAX);
        for found in &scan.found {
            assert!(found.reference.len() <= limits::TARGET_BYTES_MAX);
            for path in ["/", "/a/b?c", scan.base.as_deref().unwrap_or("/x/")] {
                check(path, &found.reference);
            }
        }
    }
    let len = usize::from(data.first().copied().unwrap_or_default()) + 1;
    let pieces = scan_ahead(data, len);
    assert!(scan_html(data).found.starts_with(&pieces));
});

fn check(path: &str, reference: &str) {
    let Some(Ok(target)) = resolve(path, reference) else {
        return;
    };
    assert!(target.starts_with('/') && target.len() <= limits::TARGET_BYTES_MAX);
    assert!(
        target
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#')
    );
    // Two slashes at the beginning would name a server.
    if !target.starts_with("//") {
        assert_eq!(resolve("/", &target), Some(Ok(target.clone())));
    }
}
