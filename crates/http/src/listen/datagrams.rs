//! The sockets of HTTP/3 beside a TCP listener: a relay between servers that follow each other, and
//! UDP sockets, one for each thread as far as there are some.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

use super::open::{error, make_private};
use super::steer::steer;
use super::{Error, SocketOptions, shown};

/// More threads than this share sockets.
const SOCKETS_MAX: usize = 64;
const BUFFER_BYTES: usize = 2 * 1024 * 1024;
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// Opens what HTTP/3 needs at the address of a TCP listener: the two ends of a relay, then as many
/// UDP sockets as threads will read from them.
///
/// A server that drains reads from the first end of the relay what the server that follows it, and
/// has the sockets now, writes into the second: datagrams of connections it still has.
pub fn open_datagrams(
    listening: impl AsFd,
    count: usize,
    options: &SocketOptions,
) -> Result<Vec<OwnedFd>, Error> {
    let name = format!("{} for HTTP/3 (UDP)", shown(&listening));
    let refuse = |(step, errno)| {
        let mut error = error(name.clone(), step, errno);
        if errno == Errno::ADDRINUSE {
            error.advice =
                "another process has the UDP port; stop it, or set `http3 = false` in `tls`";
        }
        error
    };
    let address = address_of(&listening).map_err(refuse)?;
    let mut all = relay().map_err(refuse)?;
    let relay_count = all.len();
    for _ in 0..count.clamp(1, SOCKETS_MAX) {
        all.push(open_one(address, options).map_err(refuse)?);
    }
    steer_to_threads(&all[relay_count..], &name);
    Ok(all)
}

/// Takes a UDP socket that somebody else bound, as systemd does, and gives what [`open_datagrams`]
/// does. Where others may bind to its address too (`ReusePort=` in the socket unit, same user) each
/// thread gets a socket of its own, else they share this one.
pub fn adopt_datagrams(
    socket: OwnedFd,
    name: &str,
    count: usize,
    options: &SocketOptions,
) -> Result<Vec<OwnedFd>, Error> {
    let name = format!("the inherited socket `{name}` for HTTP/3");
    let refuse = |(step, errno)| {
        let mut error = error(name.clone(), step, errno);
        if errno == Errno::AFNOSUPPORT {
            error.advice = "it must be a UDP socket: a port in ListenDatagram= of the socket unit";
        }
        error
    };
    let address = address_of(&socket).map_err(refuse)?;
    make_private(&socket).map_err(|errno| refuse(("set flags of", errno)))?;
    let may_share = sockopt::socket_reuseport(&socket).unwrap_or(false);
    set_buffers(&socket, options);
    let mut all = relay().map_err(refuse)?;
    let relay_count = all.len();
    all.push(socket);
    if may_share {
        for _ in 1..count.clamp(1, SOCKETS_MAX) {
            match open_one(address, options) {
                Ok(socket) => all.push(socket),
                Err((_, error)) => {
                    tracing::debug!(%error, "{name}: threads share it");
                    break;
                }
            }
        }
    }
    steer_to_threads(&all[relay_count..], &name);
    Ok(all)
}

/// What was tried, and what came of it.
type Failed = (&'static str, Errno);

fn address_of(socket: impl AsFd) -> Result<SocketAddr, Failed> {
    let address = getsockname(socket).map_err(|errno| ("look at", errno))?;
    SocketAddr::try_from(address).map_err(|errno| ("use", errno))
}

fn relay() -> Result<Vec<OwnedFd>, Failed> {
    let (unix, whole) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let pair = rustix::net::socketpair(unix, whole, FLAGS, None);
    let (first, second) = pair.map_err(|errno| ("make a relay for", errno))?;
    Ok(vec![first, second])
}

fn open_one(address: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, Failed> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::DGRAM, FLAGS, None)
        .map_err(|errno| ("make a socket for", errno))?;
    sockopt::set_socket_reuseport(&socket, true).map_err(|errno| ("set SO_REUSEPORT of", errno))?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, options.v6only)
            .map_err(|errno| ("set IPV6_V6ONLY of", errno))?;
    }
    set_buffers(&socket, options);
    bind(&socket, &SocketAddrAny::from(address)).map_err(|errno| ("bind to", errno))?;
    Ok(socket)
}

/// As much as the kernel lets us: datagrams there is no room for are lost.
fn set_buffers(socket: &OwnedFd, options: &SocketOptions) {
    let receive = options.receive_buffer.unwrap_or(BUFFER_BYTES);
    let send = options.send_buffer.unwrap_or(BUFFER_BYTES);
    let _ = sockopt::set_socket_recv_buffer_size(socket, receive);
    let _ = sockopt::set_socket_send_buffer_size(socket, send);
}

/// Datagrams come to the thread of their connection; where the kernel does not do it, threads pass
/// them on.
fn steer_to_threads(sockets: &[OwnedFd], name: &str) {
    let [first, _, ..] = sockets else {
        return;
    };
    if let Err(error) = steer(first, sockets.len()) {
        tracing::warn!(%error, "{name}: datagrams cannot be steered, threads pass them on");
    }
}
