//! Lists of paths that have moved: what is found leads to a path of the site or to a whole URL.
#![no_main]

use hob_server::route::redirects::Redirects;
use hob_server::route::target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8], Option<&[u8]>)| {
    let (text, raw, query) = input;
    let Ok(redirects) = Redirects::parse(text, 301) else {
        return;
    };
    assert!(redirects.len() <= text.lines().count());
    let mut room = Vec::new();
    let Ok(normal) = target::normalise(raw, &mut room) else {
        return;
    };
    if let Some(moved) = redirects.find(normal.path(raw, &room)) {
        let location = moved.location(query);
        let is_path = location.starts_with(b"/") && !location.starts_with(b"//");
        assert!(is_path || location.starts_with(b"http://") || location.starts_with(b"https://"));
        assert!(matches!(moved.status, 301..=303 | 307 | 308));
    }
});
