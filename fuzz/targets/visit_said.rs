//! What a program says of a visit, and URLs with handles in them: a handle that is taken is known
//! for one again, and no URL is shown with a whole one. One that can be guessed is none without
//! what stands in a cookie beside it.
#![no_main]

use hob_server::handle::script::visits::handle::{
    UnfitHandle, VisitHandle, is_like_handle, shown, without_handles,
};
use hob_server::handle::script::visits::said::{VisitSaid, WeakHandles};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let said = VisitSaid::of_lines(bytes);
    if let Some(weak) = &said.weak {
        assert_eq!(said.kept(WeakHandles::Refuse), Some(Err(UnfitHandle::Weak)));
        assert_eq!(said.kept(WeakHandles::Bind), Some(Ok(weak.clone())));
        assert_eq!(VisitHandle::carried(weak.as_bytes(), None), None);
        let carried = VisitHandle::carried(weak.as_bytes(), Some(b"~"));
        assert_eq!(carried, Some(weak.clone().beside(b"~")));
    }
    if let Some(Ok(handle)) = said.keeps {
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
