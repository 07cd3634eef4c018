//! A child of the program has no part in the connection: the region is not inherited, the
//! descriptors are closed at once, so that the server sees the worker's end when the worker ends,
//! and every call says HOB_FORKED.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

const NONE: RawFd = -1;

static IS_CHILD: AtomicBool = AtomicBool::new(false);
static OURS: [AtomicI32; 3] = [const { AtomicI32::new(NONE) }; 3];
static HANDLER: Once = Once::new();

/// Closes these in every child from now on.
pub(crate) fn close_in_children(fds: impl IntoIterator<Item = RawFd>) {
    for (place, fd) in OURS.iter().zip(fds) {
        place.store(fd, Ordering::Relaxed);
    }
    HANDLER.call_once(|| {
        // SAFETY: the handler only makes calls that are allowed between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// True in a child of the process that connected.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

extern "C" fn in_child() {
    let mut has_any = false;
    for place in &OURS {
        let fd = place.swap(NONE, Ordering::Relaxed);
        if fd != NONE {
            has_any = true;
            // SAFETY: in the child nothing uses these any more: every call looks at IS_CHILD.
            unsafe { libc::close(fd) };
        }
    }
    if has_any {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
}
