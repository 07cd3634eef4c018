//! Lists of paths that have moved: what is found leads to a path of the site or to a whole URL,
//! or is a path in normal form.
#![no_main]

use hob_server::route::redirects::{MovedTo, Redirects};
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
    match redirects
        .find(normal.path(raw, &room))
        .map(|moved| &moved.to)
    {
        None => {}
        Some(MovedTo::Redirect(target)) => {
            let location = target.location(query);
            let is_path = location.starts_with(b"/") && !location.starts_with(b"//");
            let is_url = location.starts_with(b"http://") || location.starts_with(b"https://");
            assert!(is_path || is_url);
            assert!(matches!(target.status, 301..=303 | 307 | 308));
        }
        Some(MovedTo::Rewrite(path, _)) => {
            assert!(path.starts_with(b"/"));
            assert!(!path.windows(4).any(|window| window == b"/../"));
        }
    }
});
