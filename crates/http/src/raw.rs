//! System calls that take a raw pointer: for memory no reference may be made to, and socket
//! options no crate wraps.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::body::Region;

/// What one call gives the kernel: bytes of ours and of regions, in order.
pub(crate) struct Gathered<'a> {
    parts: [libc::iovec; GATHER_MAX],
    count: usize,
    bytes: usize,
    /// They are borrowed until the call.
    borrowed: PhantomData<&'a [u8]>,
}

/// Pieces given to the kernel in one call.
const GATHER_MAX: usize = 16;

impl<'a> Gathered<'a> {
    pub(crate) fn new() -> Gathered<'a> {
        let none = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        Gathered {
            parts: [none; GATHER_MAX],
            count: 0,
            bytes: 0,
            borrowed: PhantomData,
        }
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// No more pieces can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.count == GATHER_MAX
    }

    /// Adds bytes of ours.
    pub(crate) fn push(&mut self, bytes: &'a [u8]) {
        self.push_part(bytes.as_ptr(), bytes.len());
    }

    /// Adds bytes of a region, from `skip` on.
    pub(crate) fn push_region(&mut self, region: &'a dyn Region, skip: usize) {
        let (start, len) = region.raw();
        assert!(skip <= len, "only bytes of the region are sent");
        // SAFETY: `Region::raw` promises `len` bytes at `start`.
        self.push_part(unsafe { start.add(skip) }, len - skip);
    }

    fn push_part(&mut self, start: *const u8, len: usize) {
        self.parts[self.count] = libc::iovec {
            iov_base: start.cast_mut().cast(),
            iov_len: len,
        };
        self.count += 1;
        self.bytes += len;
    }

    /// Sends them; returns how many bytes the kernel took.
    pub(crate) fn send(&self, socket: BorrowedFd<'_>, more: bool) -> io::Result<usize> {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | if more { libc::MSG_MORE } else { 0 };
        // SAFETY: all zero is a message without address and control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = self.parts.as_ptr().cast_mut();
        message.msg_iovlen = self.count as _;
        // SAFETY: so many parts, each of so many bytes that are borrowed here, or that
        // `Region::raw` promises until the region is dropped, which is borrowed. The kernel only
        // reads them, so a peer's writes race with nothing of ours.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(sent.cast_unsigned())
        }
    }
}

/// Has the kernel hold connections back until their first bytes are there, or that many seconds
/// have passed (TCP_DEFER_ACCEPT). Says what the kernel made of the number.
pub(crate) fn defer_accept(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<u32> {
    let mut value = libc::c_int::try_from(seconds).unwrap_or(libc::c_int::MAX);
    let mut len = size_of_val(&value) as libc::socklen_t;
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT);
    // SAFETY: `value` is a C int and `len` its size; both live through the calls.
    let result = unsafe {
        match libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            len,
        ) {
            0 => libc::getsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw mut value).cast(),
                &raw mut len,
            ),
            failed => failed,
        }
    };
    match result {
        0 => Ok(value.cast_unsigned()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Bytes of `struct tcp_info` that are asked for; older kernels give fewer, the rest stays zero.
pub(crate) const TCP_INFO_BYTES: usize = 192;

/// What the kernel knows of a TCP connection (TCP_INFO), as its `struct tcp_info`.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<[u8; TCP_INFO_BYTES]> {
    let mut told = [0u8; TCP_INFO_BYTES];
    let mut len = TCP_INFO_BYTES as libc::socklen_t;
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the kernel writes at most `len` bytes, which is the size of the live array, and any
    // bytes are valid u8.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            told.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    match result {
        0 => Ok(told),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has a classic BPF program choose among the sockets of one address which of them gets a datagram
/// (SO_ATTACH_REUSEPORT_CBPF). It reads the datagram from its first byte on and returns the number
/// of a socket, in the order they were bound; any other number leaves the choice to the kernel.
pub(crate) fn choose_socket_by(
    socket: BorrowedFd<'_>,
    program: &mut [libc::sock_filter],
) -> io::Result<()> {
    let value = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_mut_ptr(),
    };
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is what this option takes and `len` its size. It points to `program`, which
    // has that many instructions and lives through the call; the kernel checks and copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_ATTACH_REUSEPORT_CBPF,
            (&raw const value).cast(),
            len,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number of the option; `libc` has it for other systems only.
const SO_ATTACH_REUSEPORT_CBPF: libc::c_int = 51;

/// Copies bytes of a region, from `skip` on, to fill `room`.
pub(crate) fn copy_region_into(region: &dyn Region, skip: usize, room: &mut [u8]) {
    let (start, len) = region.raw();
    assert!(
        skip <= len && room.len() <= len - skip,
        "only bytes of the region are copied"
    );
    // SAFETY: source as above; the target is our own memory, of that size. A peer that writes
    // meanwhile can only change which bytes we get, and any bytes are valid u8.
    unsafe {
        std::ptr::copy_nonoverlapping(start.add(skip), room.as_mut_ptr(), room.len());
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
