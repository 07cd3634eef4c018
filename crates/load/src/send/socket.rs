//! Opening connections. When the ports of one loopback address are used up, the next address of
//! 127.0.0.0/8 takes its place, so that neither many connections nor short ones run out of them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with, sockopt,
};

use crate::plan::Protocol;

/// Where the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Inet(SocketAddr),
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Inet(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Is the server on this machine, with nobody in between?
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Address::Inet(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

/// Addresses besides the usual one that connections may come from.
const SOURCE_COUNT_MAX: u8 = 250;

/// A connection that was begun.
pub(crate) struct Opened {
    pub(crate) socket: OwnedFd,
    /// It is complete; else the socket becomes writable when it is.
    pub(crate) is_complete: bool,
}

/// Opens connections to one address.
#[derive(Debug)]
pub(crate) struct Opener {
    address: Address,
    /// TCP, or UDP below QUIC.
    kind: SocketType,
    /// The last part of the address of 127.0.1.0/24 they come from; 0 for the system's choice.
    source: u8,
}

impl Opener {
    pub(crate) fn new(address: Address, protocol: Protocol) -> Opener {
        let kind = match protocol {
            Protocol::H3 => SocketType::DGRAM,
            _ => SocketType::STREAM,
        };
        Opener {
            address,
            kind,
            source: 0,
        }
    }

    /// Begins a connection.
    pub(crate) fn open(&mut self) -> io::Result<Opened> {
        loop {
            match self.try_open() {
                Err(Errno::ADDRNOTAVAIL) if self.has_more_sources() => self.source += 1,
                opened => return Ok(opened?),
            }
        }
    }

    fn has_more_sources(&self) -> bool {
        let is_loopback = |address: &SocketAddr| match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(_) => false,
        };
        let may = matches!(&self.address, Address::Inet(address) if is_loopback(address));
        may && self.source < SOURCE_COUNT_MAX
    }

    fn try_open(&self) -> Result<Opened, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (socket, connected) = match &self.address {
            Address::Unix(path) => {
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                let connected = connect(&socket, &SocketAddrUnix::new(path)?);
                (socket, connected)
            }
            Address::Inet(address) => {
                let family = match address {
                    SocketAddr::V4(_) => AddressFamily::INET,
                    SocketAddr::V6(_) => AddressFamily::INET6,
                };
                let socket = socket_with(family, self.kind, flags, None)?;
                if self.kind == SocketType::STREAM {
                    sockopt::set_tcp_nodelay(&socket, true)?;
                }
                if self.source > 0 {
                    let source = Ipv4Addr::new(127, 0, 1, self.source);
                    bind(&socket, &SocketAddr::from((source, 0)))?;
                }
                let connected = connect(&socket, address);
                (socket, connected)
            }
        };
        match connected {
            Ok(()) => Ok(Opened {
                socket,
                is_complete: true,
            }),
            Err(Errno::INPROGRESS) => Ok(Opened {
                socket,
                is_complete: false,
            }),
            Err(error) => Err(error),
        }
    }
}

/// What became of a connection that was begun.
pub(crate) fn completed(socket: &OwnedFd) -> io::Result<()> {
    let outcome = sockopt::socket_error(socket)?;
    Ok(outcome?)
}
