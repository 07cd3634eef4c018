//! Packets of a TCP connection, as the kernel has counted them (`TCP_INFO`). The structure of the C
//! library ends before the counters, so they are read by their place in the kernel's own, which
//! never changes, only grows.
#![allow(unsafe_code)]

use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Where the counters stand in `struct tcp_info` of Linux: two numbers of 32 bits.
const SENT_AT: usize = 136;
const RECEIVED_AT: usize = 140;
const INFO_BYTES: usize = 256;

/// Packets of one connection, those of its begin and end included as far as they have happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Segments {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Asks the kernel; nothing where it is too old to count (before 4.2).
pub(crate) fn segments(stream: &TcpStream) -> Option<Segments> {
    let mut info = [0u8; INFO_BYTES];
    let mut length = INFO_BYTES as libc::socklen_t;
    // SAFETY: writes at most `length` bytes into `info`, and how many into `length`.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if code != 0 || (length as usize) < RECEIVED_AT + 4 {
        return None;
    }
    let number = |at: usize| {
        let bytes = [info[at], info[at + 1], info[at + 2], info[at + 3]];
        u64::from(u32::from_ne_bytes(bytes))
    };
    Some(Segments {
        sent: number(SENT_AT),
        received: number(RECEIVED_AT),
    })
}
