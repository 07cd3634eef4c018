//! What a program says of a visit, and URLs with handles in them: a handle that is taken is known
//! for one again, and no URL is shown with a whole one.
#![no_main]

use hob_server::handle::script::visits::handle::{is_like_handle, shown, without_handles};
use hob_server::handle::script::visits::said::VisitSaid;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(Ok(handle)) = VisitSaid::of_lines(bytes).keeps {
        let text = handle.as_bytes();
        assert!(is_like_handle(text));
        assert!(shown(text).len() < text.len());
        let path = [b"/shop/", text, b"/cart"].concat();
        let masked = without_handles(&path).expect("it has one");
        assert!(!masked.windows(text.len()).any(|part| part == text));
    }
    if let Some(masked) = without_handles(bytes) {
        assert!(without_handles(&masked).is_none_or(|again| again == masked));
    }
});
