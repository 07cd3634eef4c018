//! The port on which the servers' machine hears its clients.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::line::is_readable;
use crate::limits::DISTANT_LOOK_PERIOD;

/// Where it is heard: an address of IPv4 and a port, 0 for any that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPort(SocketAddrV4);

impl FromStr for ControlPort {
    type Err = String;

    fn from_str(text: &str) -> Result<ControlPort, String> {
        let address = text.parse().map_err(|_| {
            format!(
                "{text:?} is no address to listen on; write an address of this machine and a port, \
                 as in 0.0.0.0:7070 or 192.0.2.7:7070 (IPv4)"
            )
        })?;
        Ok(ControlPort(address))
    }
}

impl fmt::Display for ControlPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ControlPort {
    /// Listens there, and says at which address and port that is.
    pub(super) fn open(self) -> io::Result<(TcpListener, SocketAddrV4)> {
        let listener = TcpListener::bind(self.0)?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok((listener, SocketAddrV4::new(*self.0.ip(), port)))
    }

    /// Is that every address that this machine has?
    pub(super) fn is_any(self) -> bool {
        *self.0.ip() == Ipv4Addr::UNSPECIFIED
    }
}

/// Waits for the next client; none once this side is told to end.
pub(super) fn next_client(listener: &TcpListener, is_stopped: &AtomicBool) -> Option<TcpStream> {
    while !is_stopped.load(Ordering::Relaxed) {
        if is_readable(listener, DISTANT_LOOK_PERIOD)
            && let Ok((stream, _)) = listener.accept()
        {
            return Some(stream);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_one_of_this_machine() {
        for text in ["127.0.0.1:0", "0.0.0.0:7070"] {
            assert!(text.parse::<ControlPort>().is_ok(), "{text}");
        }
        for text in ["", "7070", "localhost:7070", "[::1]:7070", "127.0.0.1"] {
            let why = text.parse::<ControlPort>().unwrap_err();
            assert!(why.contains("as in 0.0.0.0:7070"), "{why}");
        }
        assert!("0.0.0.0:1".parse::<ControlPort>().unwrap().is_any());
    }
}
