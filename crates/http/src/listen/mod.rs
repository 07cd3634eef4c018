//! Listening sockets: where they are opened, taken over, tuned and named.
//!
//! `open` makes a socket for an address or takes one that somebody else bound; `tune` sets what an
//! accepted connection inherits and reads back what the kernel made of it; `datagrams` are the
//! sockets of HTTP/3, and `steer` has the kernel choose among them; `nameless` sockets stand in no
//! folder. Accepting is elsewhere.

mod datagrams;
pub mod nameless;
mod open;
mod steer;
mod tune;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

pub use datagrams::{adopt_datagrams, open_datagrams};
pub use open::{BoundFile, adopt, has_address, open, probe, shown};
pub use tune::tune;

/// An address that a socket can be bound to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BindAddress {
    /// TCP; port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// A Unix stream socket at a path.
    Unix(PathBuf),
}

/// What a listening socket, and every connection accepted from it, is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Connections the kernel holds until they are accepted.
    pub backlog: u32,
    /// SO_SNDBUF in bytes; `None` leaves it to the kernel.
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF in bytes; `None` leaves it to the kernel.
    pub receive_buffer: Option<usize>,
    /// TCP_NOTSENT_LOWAT in bytes; `None` leaves it to the kernel.
    pub notsent_lowat: Option<usize>,
    /// TCP_USER_TIMEOUT; `None` leaves it to the kernel.
    pub user_timeout: Option<Duration>,
    /// How long the kernel holds a connection back that has sent nothing (TCP_DEFER_ACCEPT), in
    /// whole seconds; zero does not.
    pub defer_accept: Duration,
    /// IPV6_V6ONLY; without meaning for other addresses.
    pub v6only: bool,
}

/// An open listening socket.
#[derive(Debug)]
pub struct ListeningSocket {
    /// The socket: listening, not blocking, closed on exec.
    pub socket: OwnedFd,
    /// Its real address as a person reads it: `127.0.0.1:8080`, `[::1]:80`, `unix:/run/x.sock`.
    pub shown: String,
    /// The file a Unix socket stands at, to be removed when the socket is given up.
    pub file: Option<BoundFile>,
    /// What the kernel made different from what was asked for, one sentence each.
    pub warnings: Vec<String>,
}

/// Why there is no listening socket.
#[derive(Debug)]
pub struct Error {
    /// The address as a person reads it.
    pub address: String,
    /// What was tried.
    pub step: &'static str,
    /// What to do about it; may be empty.
    pub advice: &'static str,
    /// What the kernel said.
    pub source: io::Error,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.step, self.address, self.source)?;
        if self.advice.is_empty() {
            return Ok(());
        }
        write!(f, "; {}", self.advice)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests;
