//! A connection to a member.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::task::Poll;
use std::time::Duration;

use hob_http::reactor::Timer;
use hob_http::{Reactor, Watched};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, getpeername, socket_with,
    sockopt,
};

use crate::handle::upstream::address::MemberAddress;

/// Between two tries where a socket of this machine has no room for one more that waits.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// It was not there in time.
    Timeout,
    /// The system says why.
    Refused(io::Error),
}

impl From<Errno> for ConnectError {
    fn from(error: Errno) -> ConnectError {
        ConnectError::Refused(error.into())
    }
}

/// Connects, for at most `patience`.
pub(crate) async fn to(
    address: &MemberAddress,
    reactor: &Reactor,
    patience: Duration,
) -> Result<Watched, ConnectError> {
    let limit = reactor.timer();
    limit.set(patience);
    loop {
        let socket = open(address)?;
        let begun = match address {
            MemberAddress::Unix(path) => connect(&socket, &SocketAddrUnix::new(path.as_path())?),
            MemberAddress::Tcp(address) => connect(&socket, address),
        };
        match begun {
            Ok(()) => return reactor.watch(socket).map_err(ConnectError::Refused),
            Err(Errno::INPROGRESS) => return await_connection(socket, reactor, &limit).await,
            // As many wait there as may; nobody tells when one more may.
            Err(Errno::AGAIN) => {
                let pause = reactor.timer();
                pause.set(TRY_AGAIN);
                within(&limit, |cx| pause.poll_elapsed(cx)).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn open(address: &MemberAddress) -> Result<OwnedFd, ConnectError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = match address {
        MemberAddress::Unix(_) => AddressFamily::UNIX,
        MemberAddress::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        MemberAddress::Tcp(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if family != AddressFamily::UNIX {
        sockopt::set_tcp_nodelay(&socket, true)?;
    }
    Ok(socket)
}

async fn await_connection(
    socket: OwnedFd,
    reactor: &Reactor,
    limit: &Timer,
) -> Result<Watched, ConnectError> {
    let socket = reactor.watch(socket).map_err(ConnectError::Refused)?;
    loop {
        // Room to write is what the kernel tells of a connection that is there, or failed.
        socket.clear_writable();
        within(limit, |cx| socket.poll_writable(cx)).await?;
        sockopt::socket_error(socket.fd())??;
        if getpeername(socket.fd()).is_ok() {
            return Ok(socket);
        }
    }
}

/// Waits, and not for longer than the limit.
async fn within(
    limit: &Timer,
    mut poll: impl FnMut(&mut std::task::Context<'_>) -> Poll<()>,
) -> Result<(), ConnectError> {
    poll_fn(|cx| match poll(cx) {
        Poll::Ready(()) => Poll::Ready(Ok(())),
        Poll::Pending => limit.poll_elapsed(cx).map(|()| Err(ConnectError::Timeout)),
    })
    .await
}
