//! A connection to a member.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hob_http::reactor::Timer;
use hob_http::tls::peer::{PeerFault, PeerTerms, PeerVersions, TlsStream};
use hob_http::{Reactor, Watched};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, getpeername, socket_with,
    sockopt,
};

use crate::cache::disk_threads::DiskThreads;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::member::Member;
use crate::handle::upstream::stream::MemberStream;

/// Between two tries where a socket of this machine has no room for one more that waits.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// It was not there in time.
    Timeout,
    /// Why, in words.
    Refused(String),
    /// There is no TLS over it.
    Tls(PeerFault),
}

impl From<Errno> for ConnectError {
    fn from(error: Errno) -> ConnectError {
        io::Error::from(error).into()
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> ConnectError {
        ConnectError::Refused(error.to_string())
    }
}

/// Connects to a member, for at most `patience`, and sends what stands before all else. A name is
/// looked up by `pool`; where TLS is spoken, it is on these terms, and these versions of HTTP are
/// offered.
pub(crate) async fn to(
    (member, terms): (&Member, Option<(&PeerTerms, PeerVersions)>),
    (reactor, pool): (&Reactor, &DiskThreads),
    patience: Duration,
    opening: &[u8],
) -> Result<MemberStream, ConnectError> {
    let limit = reactor.timer();
    limit.set(patience);
    let Some(name) = &member.name else {
        let socket = to_address(member.address.place(), reactor, &limit).await?;
        return speak(socket, (member, terms, opening), &limit).await;
    };
    let mut looked = pin!(name.addresses(reactor, pool));
    let addresses = within(&limit, |cx| looked.as_mut().poll(cx)).await?;
    let mut refused = None;
    for address in addresses.map_err(ConnectError::Refused)? {
        let connected = match to_address(&MemberAddress::Tcp(address), reactor, &limit).await {
            Ok(socket) => speak(socket, (member, terms, opening), &limit).await,
            Err(error) => Err(error),
        };
        refused = Some(match connected {
            Err(ConnectError::Refused(error)) => {
                ConnectError::Refused(format!("{address}: {error}"))
            }
            Err(error @ ConnectError::Tls(_)) => error,
            done => return done,
        });
    }
    Err(refused.unwrap_or(ConnectError::Timeout))
}

/// Sends what stands before all else, and makes the handshake, where TLS is spoken.
async fn speak(
    socket: Watched,
    (member, terms, opening): (&Member, Option<(&PeerTerms, PeerVersions)>, &[u8]),
    limit: &Timer,
) -> Result<MemberStream, ConnectError> {
    let mut sent = 0;
    while sent < opening.len() {
        sent += within(limit, |cx| socket.poll_write(cx, &opening[sent..])).await??;
    }
    let (name, terms) = match (member.address.peer_name(), terms) {
        (None, _) => return Ok(MemberStream::Clear(socket)),
        (Some(name), Some(terms)) => (name, terms),
        // Terms are there before the first request.
        (Some(_), None) => return Err(ConnectError::Refused("no terms of TLS".to_owned())),
    };
    let mut shaking = pin!(TlsStream::shake(socket, terms, name));
    let shaken = within(limit, |cx| shaking.as_mut().poll(cx)).await?;
    shaken.map(MemberStream::Tls).map_err(ConnectError::Tls)
}

async fn to_address(
    address: &MemberAddress,
    reactor: &Reactor,
    limit: &Timer,
) -> Result<Watched, ConnectError> {
    loop {
        let socket = open(address)?;
        let begun = match address {
            MemberAddress::Unix(path) => connect(&socket, &SocketAddrUnix::new(path.as_path())?),
            MemberAddress::Run(run) => {
                connect(&socket, &SocketAddrUnix::new(run.path().as_path())?)
            }
            MemberAddress::Tcp(address) => connect(&socket, address),
            // It has been looked up.
            MemberAddress::Name(..) | MemberAddress::Service(_) | MemberAddress::Tls(..) => {
                Err(Errno::ADDRNOTAVAIL)
            }
        };
        match begun {
            Ok(()) => return Ok(reactor.watch(socket)?.count()),
            Err(Errno::INPROGRESS) => return await_connection(socket, reactor, limit).await,
            // As many wait there as may; nobody tells when one more may.
            Err(Errno::AGAIN) => {
                let pause = reactor.timer();
                pause.set(TRY_AGAIN);
                within(limit, |cx| pause.poll_elapsed(cx)).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn open(address: &MemberAddress) -> Result<OwnedFd, ConnectError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = match address {
        MemberAddress::Unix(_) | MemberAddress::Run(_) => AddressFamily::UNIX,
        MemberAddress::Tcp(address) if address.is_ipv6() => AddressFamily::INET6,
        MemberAddress::Tcp(_)
        | MemberAddress::Name(..)
        | MemberAddress::Service(_)
        | MemberAddress::Tls(..) => AddressFamily::INET,
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
    let socket = reactor.watch(socket)?.count();
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
async fn within<T>(
    limit: &Timer,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Result<T, ConnectError> {
    poll_fn(|cx| match poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => limit.poll_elapsed(cx).map(|()| Err(ConnectError::Timeout)),
    })
    .await
}
