//! Which of an address' UDP sockets gets a datagram: the one of the thread that has its connection.
//!
//! The kernel spreads datagrams over the sockets of an address by the client's address and port, so
//! those of a client that has moved come to any of them, and its thread would get them passed on
//! by another. Our connection ids name the thread (`h3/quic/id.rs`); a program in the kernel reads
//! them. It knows no wrong: a datagram that lies comes to a thread that passes it on, or drops it.
//!
//! ```text
//! short header: first byte | id: generation, thread, ...
//! long header:  first byte | version 4 | length of the id | id: generation, thread, ...
//! ```

use std::io;
use std::os::fd::AsFd;

use libc::sock_filter;

use crate::h3::quic::ID_BYTES;
use crate::raw;

/// What the program returns for datagrams that are of no connection yet: no socket has this number.
const NO_SOCKET: u32 = u32::MAX;
const LONG_HEADER: u32 = 0x80;
/// Where a long header has the length of the id: so much later than a short one has the id.
const LENGTH_AT: u32 = 5;
/// Where a short header has the thread.
const THREAD_AT: u32 = 2;

/// Has datagrams come to the sockets of their threads: `socket` is one of so many that were bound
/// to one address, the first for the first thread and so on, in turns when there are more threads.
pub(super) fn steer(socket: impl AsFd, count: usize) -> io::Result<()> {
    let count = u32::try_from(count).map_err(io::Error::other)?;
    raw::choose_socket_by(socket.as_fd(), &mut program(count.max(1)))
}

//= rfc8999#5
fn program(socket_count: u32) -> [sock_filter; 10] {
    let load_byte = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    let load_byte_at_x = libc::BPF_LD | libc::BPF_B | libc::BPF_IND;
    let set_x = libc::BPF_LDX | libc::BPF_IMM;
    let jump_if_any = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    let jump_if_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    [
        step(set_x, 0),
        step(load_byte, 0),
        jump(jump_if_any, LONG_HEADER, 0, 4),
        step(load_byte, LENGTH_AT),
        jump(jump_if_equal, ID_BYTES as u32, 1, 0),
        step(libc::BPF_RET | libc::BPF_K, NO_SOCKET),
        step(set_x, LENGTH_AT),
        // What is too short for it goes to the first socket: a load beyond the end returns 0.
        step(load_byte_at_x, THREAD_AT),
        step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, socket_count),
        step(libc::BPF_RET | libc::BPF_A, 0),
    ]
}

fn step(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

/// Passes over so many instructions: when it is so, and when it is not.
fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}
