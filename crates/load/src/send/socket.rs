//! Opening connections, from one client address or spread over several of 127.0.0.0/8. Where nobody
//! says how many, the next one takes its place when the ports of one are used up, so that neither
//! many connections nor short ones run out of them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with, sockopt,
};

use crate::plan::Protocol;

/// Where the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// A host's.
    Inet(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServerAddress::Inet(address) => address.fmt(f),
            ServerAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl ServerAddress {
    /// Is the server on this machine, with nobody in between?
    pub(crate) fn is_local(&self) -> bool {
        match self {
            ServerAddress::Inet(address) => address.ip().is_loopback(),
            ServerAddress::Unix(_) => true,
        }
    }

    /// Can clients of it have any address of 127.0.0.0/8?
    pub(crate) fn has_sources(&self) -> bool {
        match self {
            ServerAddress::Inet(address) => match address.ip() {
                IpAddr::V4(ip) => ip.is_loopback(),
                IpAddr::V6(_) => false,
            },
            ServerAddress::Unix(_) => false,
        }
    }
}

/// Addresses besides the usual one that connections may come from where nobody says how many.
const SPARE_SOURCE_COUNT: usize = 250;
/// Connections of a thread after which the next ones come from another address of this machine:
/// from 14,000 on, half of the usual ports, the system looks longer and longer for a free one.
const CONNECTIONS_PER_SOURCE: usize = 10_000;
/// Addresses of one /24 that are used: .1 to .250.
const SOURCES_PER_NETWORK: usize = 250;

/// The client address of a number, counted from zero: 127.0.1.1 and those behind it.
pub(crate) fn source_address(number: usize) -> Ipv4Addr {
    let (network, host) = (number / SOURCES_PER_NETWORK, number % SOURCES_PER_NETWORK);
    Ipv4Addr::new(127, 0, 1 + network as u8, 1 + host as u8)
}

/// Which client addresses the connections of a thread come from.
#[derive(Debug, Clone, Copy)]
pub enum SourceAddresses {
    /// The system's choice, and others when its ports are used up.
    Any,
    /// So many in turn over all threads.
    Spread {
        /// How many.
        count: usize,
        /// The number of the thread's first connection, or visitor, among all.
        first: usize,
        /// How many the thread has of them.
        own: usize,
    },
}

/// Bounds of what the system takes of a slow connection before it is read, in bytes.
const RECEIVE_BYTES_MIN: u64 = 4 * 1024;
const RECEIVE_BYTES_MAX: u64 = 64 * 1024;

/// A connection that was begun.
pub struct ConnectingSocket {
    /// The socket; it does not block.
    pub socket: OwnedFd,
    /// It is complete; else the socket becomes writable when it is.
    pub is_complete: bool,
}

/// Opens connections to one address.
#[derive(Debug)]
pub struct Opener {
    address: ServerAddress,
    /// TCP, or UDP below QUIC.
    kind: SocketType,
    sources: SourceAddresses,
    /// Addresses whose ports were used up, where the system chose the first.
    used_up: usize,
    /// How much the system takes before it is read, in bytes; else as it likes.
    receive_bytes: Option<usize>,
}

impl Opener {
    /// Opens connections to an address, which come from such sources.
    pub fn new(address: ServerAddress, protocol: Protocol, sources: SourceAddresses) -> Opener {
        let kind = match protocol {
            Protocol::H3 => SocketType::DGRAM,
            _ => SocketType::STREAM,
        };
        Opener {
            address,
            kind,
            sources,
            used_up: 0,
            receive_bytes: None,
        }
    }

    /// Of connections that are read this slowly the system takes no more than a little beforehand,
    /// else the server would hear nothing of it.
    pub fn receiving(self, read_rate: Option<NonZeroU64>) -> Opener {
        let bytes = read_rate.map(|rate| rate.get().clamp(RECEIVE_BYTES_MIN, RECEIVE_BYTES_MAX));
        Opener {
            receive_bytes: bytes.map(|bytes| bytes as usize),
            ..self
        }
    }

    /// Begins a connection, by its number in the thread.
    pub fn open(&mut self, conn: usize) -> io::Result<ConnectingSocket> {
        if let SourceAddresses::Spread { count, first, own } = self.sources {
            // Those of one visitor lie as far apart as there are visitors.
            let source = source_address((first + conn % own) % count);
            return self.try_open(Some(source)).map_err(|error| match error {
                Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => io::Error::new(
                    io::ErrorKind::AddrNotAvailable,
                    format!("no port is free at the client address {source}; try more --sources"),
                ),
                error => error.into(),
            });
        }
        loop {
            let number = self.source_number(conn);
            match self.try_open(number.checked_sub(1).map(source_address)) {
                Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) if self.has_more_sources() => {
                    self.used_up = number + 1;
                }
                opened => return Ok(opened?),
            }
        }
    }

    /// Where a connection comes from that nobody has said it of: 0 for the system's choice, else
    /// the number of a spare address, from 1.
    fn source_number(&self, conn: usize) -> usize {
        let apart = match self.address.has_sources() {
            true => conn / CONNECTIONS_PER_SOURCE,
            false => 0,
        };
        self.used_up.max(apart).min(SPARE_SOURCE_COUNT)
    }

    fn has_more_sources(&self) -> bool {
        self.address.has_sources() && self.used_up < SPARE_SOURCE_COUNT
    }

    fn try_open(&self, source: Option<Ipv4Addr>) -> Result<ConnectingSocket, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (socket, connected) = match &self.address {
            ServerAddress::Unix(path) => {
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                let connected = connect(&socket, &SocketAddrUnix::new(path)?);
                (socket, connected)
            }
            ServerAddress::Inet(address) => {
                let family = match address {
                    SocketAddr::V4(_) => AddressFamily::INET,
                    SocketAddr::V6(_) => AddressFamily::INET6,
                };
                let socket = socket_with(family, self.kind, flags, None)?;
                if self.kind == SocketType::STREAM {
                    sockopt::set_tcp_nodelay(&socket, true)?;
                }
                if let Some(bytes) = self.receive_bytes {
                    sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
                }
                if let Some(source) = source {
                    bind(&socket, &SocketAddr::from((source, 0)))?;
                }
                let connected = connect(&socket, address);
                (socket, connected)
            }
        };
        match connected {
            Ok(()) => Ok(ConnectingSocket {
                socket,
                is_complete: true,
            }),
            Err(Errno::INPROGRESS) => Ok(ConnectingSocket {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SOURCE_COUNT_MAX;

    #[test]
    fn client_addresses_are_hosts_of_127_0_0_0() {
        let all: std::collections::BTreeSet<Ipv4Addr> =
            (0..SOURCE_COUNT_MAX).map(source_address).collect();
        assert_eq!(all.len(), SOURCE_COUNT_MAX);
        assert_eq!(all.first(), Some(&Ipv4Addr::new(127, 0, 1, 1)));
        assert_eq!(source_address(250), Ipv4Addr::new(127, 0, 2, 1));
        assert_eq!(all.last(), Some(&Ipv4Addr::new(127, 0, 40, 250)));
    }

    #[test]
    fn many_connections_leave_the_address_the_system_chose() {
        let opener = |address: &str| {
            let address = ServerAddress::Inet(address.parse().unwrap());
            Opener::new(address, Protocol::H1, SourceAddresses::Any)
        };
        let near = opener("127.0.0.1:80");
        let numbers = [0, 9_999, 10_000, 25_000, 10_000_000].map(|conn| near.source_number(conn));
        assert_eq!(numbers, [0, 0, 1, 2, SPARE_SOURCE_COUNT]);
        let used_up = Opener { used_up: 2, ..near };
        assert_eq!(used_up.source_number(0), 2);
        assert_eq!(opener("192.0.2.1:80").source_number(25_000), 0);
    }
}
