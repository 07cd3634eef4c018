//! System calls that take a raw pointer, for memory no reference may be made to.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::body::Region;

/// Sends a region's bytes from `skip` on straight to the kernel; returns how many it took.
pub(crate) fn send_region(
    socket: BorrowedFd<'_>,
    region: &dyn Region,
    skip: usize,
    more: bool,
) -> io::Result<usize> {
    let (start, len) = region.raw();
    assert!(skip <= len, "only bytes of the region are sent");
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | if more { libc::MSG_MORE } else { 0 };
    // SAFETY: `Region::raw` promises `len` bytes at `start` until the region is dropped, and it is
    // borrowed here; the kernel copies them out, so a peer's writes race with nothing of ours.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            start.add(skip).cast(),
            len - skip,
            flags,
        )
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(sent.cast_unsigned())
    }
}

/// Appends a copy of `count` bytes of a region, from `skip` on.
pub(crate) fn copy_region(region: &dyn Region, skip: usize, count: usize, out: &mut Vec<u8>) {
    let (start, len) = region.raw();
    assert!(
        skip <= len && count <= len - skip,
        "only bytes of the region are copied"
    );
    out.reserve(count);
    // SAFETY: source as above; the target has room for `count` more bytes and is our own memory. A
    // peer that writes meanwhile can only change which bytes we get, and any bytes are valid u8.
    unsafe {
        std::ptr::copy_nonoverlapping(start.add(skip), out.as_mut_ptr().add(out.len()), count);
        out.set_len(out.len() + count);
    }
}
