//! What the C library's allocator keeps goes back to the kernel.
#![allow(unsafe_code)]

/// Has the allocator give back what is free. It takes the locks of all heaps for as long as it
/// takes to walk them: not for a thread that serves.
pub fn give_back() {
    // SAFETY: it takes no pointer, and may be called by any thread at any time.
    unsafe { libc::malloc_trim(0) };
}
