//! The settings of a listening socket that accepted connections inherit, with a look at what the
//! kernel made of them. A value it clamps is a warning, never an error: the server works, slower.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::{AddressFamily, listen, sockopt};
use socket2::SockRef;

use super::SocketOptions;
use super::open::backlog;
use crate::raw;

/// Sets every option, also on a socket that already listens, and says what differs from the wish.
pub fn tune(socket: impl AsFd, options: &SocketOptions) -> Vec<String> {
    let socket = socket.as_fd();
    let mut warnings = Vec::new();
    let mut note = |warning: Option<String>| warnings.extend(warning);
    if let Some(asked_bytes) = options.send_buffer {
        note(send_buffer(socket, asked_bytes));
    }
    if let Some(asked_bytes) = options.receive_buffer {
        note(receive_buffer(socket, asked_bytes));
    }
    if is_tcp(socket) {
        // Answers are written whole; waiting for more to send only costs time.
        note(refused(
            "TCP_NODELAY",
            sockopt::set_tcp_nodelay(socket, true),
        ));
        if let Some(asked_bytes) = options.notsent_lowat {
            note(notsent_lowat(socket, asked_bytes));
        }
        if let Some(timeout) = options.user_timeout {
            note(user_timeout(socket, timeout));
        }
        note(defer_accept(socket, options.defer_accept));
    }
    note(backlog_limit(options));
    if sockopt::socket_acceptconn(socket).unwrap_or(false) {
        note(refused("the backlog", listen(socket, backlog(options))));
    }
    warnings
}

fn send_buffer(socket: impl AsFd, asked_bytes: usize) -> Option<String> {
    let set = sockopt::set_socket_send_buffer_size(&socket, capped(asked_bytes));
    let given = sockopt::socket_send_buffer_size(&socket);
    refused("SO_SNDBUF", set)
        .or_else(|| clamped("send_buffer", asked_bytes, given, "net.core.wmem_max"))
}

fn receive_buffer(socket: impl AsFd, asked_bytes: usize) -> Option<String> {
    let set = sockopt::set_socket_recv_buffer_size(&socket, capped(asked_bytes));
    let given = sockopt::socket_recv_buffer_size(&socket);
    refused("SO_RCVBUF", set)
        .or_else(|| clamped("receive_buffer", asked_bytes, given, "net.core.rmem_max"))
}

fn notsent_lowat(socket: impl AsFd, asked_bytes: usize) -> Option<String> {
    let reference = SockRef::from(&socket);
    let wanted = u32::try_from(asked_bytes).unwrap_or(u32::MAX);
    if let Err(error) = reference.set_tcp_notsent_lowat(wanted) {
        return Some(format!("TCP_NOTSENT_LOWAT was not set: {error}"));
    }
    let given = reference.tcp_notsent_lowat().ok()?;
    (given as usize != asked_bytes)
        .then(|| format!("notsent_lowat: {asked_bytes} bytes asked for, the kernel gives {given}"))
}

fn user_timeout(socket: impl AsFd, timeout: Duration) -> Option<String> {
    let asked_ms = u32::try_from(timeout.as_millis())
        .unwrap_or(u32::MAX)
        .min(i32::MAX as u32);
    if let Err(errno) = sockopt::set_tcp_user_timeout(&socket, asked_ms) {
        return Some(format!("TCP_USER_TIMEOUT was not set: {errno}"));
    }
    let given_ms = sockopt::tcp_user_timeout(&socket).ok()?;
    (u128::from(given_ms) != timeout.as_millis()).then(|| {
        let asked_ms = timeout.as_millis();
        format!("user_timeout: {asked_ms} ms asked for, the kernel gives {given_ms}")
    })
}

fn defer_accept(socket: impl AsFd, time: Duration) -> Option<String> {
    let seconds = u32::try_from(time.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
    // The kernel counts in retransmissions, so it gives what is near: no reason for a warning.
    raw::defer_accept(socket.as_fd(), seconds)
        .err()
        .map(|error| format!("TCP_DEFER_ACCEPT was not set: {error}"))
}

/// The kernel keeps twice what is asked for, the second half for its own bookkeeping, and answers
/// with the doubled value; what it clamps it clamps before doubling.
fn clamped(
    key: &str,
    asked_bytes: usize,
    given: rustix::io::Result<usize>,
    limit: &str,
) -> Option<String> {
    let given_bytes = given.ok()? / 2;
    (given_bytes < asked_bytes).then(|| {
        format!(
            "{key}: {asked_bytes} bytes asked for, the kernel gives {given_bytes}; raise {limit}"
        )
    })
}

fn backlog_limit(options: &SocketOptions) -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?;
    let limit: u32 = text.trim().parse().ok()?;
    let asked = options.backlog;
    (asked > limit).then(|| {
        format!("backlog: {asked} asked for, the kernel gives {limit}; raise net.core.somaxconn")
    })
}

fn refused<T>(what: &str, result: rustix::io::Result<T>) -> Option<String> {
    result
        .err()
        .map(|errno| format!("{what} was not set: {errno}"))
}

fn is_tcp(socket: impl AsFd) -> bool {
    let family = sockopt::socket_domain(socket);
    matches!(family, Ok(AddressFamily::INET | AddressFamily::INET6))
}

/// setsockopt takes a C int; rustix would panic in a debug build on more.
fn capped(asked_bytes: usize) -> usize {
    asked_bytes.min(i32::MAX as usize / 2)
}
