//! What the network below a connection is like, as TCP or QUIC sees it. Asked for only where
//! somebody wants to know: it is a system call.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hob_trace::Record;

use crate::raw;

/// What the network below a connection is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Round-trip time, smoothed, in microseconds.
    pub rtt_us: u32,
    /// Segments or packets that were sent again, or are known to be lost.
    pub retransmits: u32,
    /// The congestion window, in bytes.
    pub window_bytes: u32,
    /// Bytes that came over the connection, below TLS.
    pub bytes_in: u64,
    /// Bytes that went over it and were acknowledged (TCP) or sent (QUIC).
    pub bytes_out: u64,
}

/// Something that knows its network.
pub(crate) trait NetworkProbe {
    /// `None` where there is none, as for Unix sockets.
    fn network(&self) -> Option<Network>;
}

impl NetworkProbe for OwnedFd {
    fn network(&self) -> Option<Network> {
        let told = raw::tcp_info(self.as_fd()).ok()?;
        Some(Network::of_tcp(&told))
    }
}

/// Bytes that the other side of a TCP connection has acknowledged, from any number on; `None` where
/// the kernel does not tell.
pub fn acknowledged_bytes(socket: BorrowedFd<'_>) -> Option<u64> {
    let told = raw::tcp_info(socket).ok()?;
    Some(Network::of_tcp(&told).bytes_out)
}

impl Network {
    /// From the kernel's `struct tcp_info`, by the offsets that are part of its interface.
    fn of_tcp(told: &[u8; raw::TCP_INFO_BYTES]) -> Network {
        let u32_at = |at: usize| {
            let bytes = told[at..].first_chunk();
            bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        };
        let u64_at = |at: usize| {
            let bytes = told[at..].first_chunk();
            bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
        };
        let [segment_bytes, rtt_us, window, retransmits] = [16, 68, 80, 100].map(u32_at);
        Network {
            rtt_us,
            retransmits,
            window_bytes: window.saturating_mul(segment_bytes),
            bytes_in: u64_at(128),
            bytes_out: u64_at(120),
        }
    }

    /// Writes it into a record.
    pub(crate) fn note(&self, record: &mut Record) {
        record.rtt_us = self.rtt_us;
        record.retransmits = self.retransmits;
        record.window_bytes = self.window_bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connection_over_loopback_has_a_round_trip_and_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut served, _) = listener.accept().unwrap();
        client.write_all(b"12345").unwrap();
        served.read_exact(&mut [0; 5]).unwrap();
        served.write_all(b"123").unwrap();
        client.read_exact(&mut [0; 3]).unwrap();
        client.write_all(b"6").unwrap();
        served.read_exact(&mut [0; 1]).unwrap();
        let network = OwnedFd::from(served).network().unwrap();
        assert!(
            network.rtt_us > 0 && network.window_bytes > 1000,
            "{network:?}"
        );
        assert_eq!((network.bytes_in, network.bytes_out), (6, 3));
        assert_eq!(network.retransmits, 0);
    }

    #[test]
    fn unix_socket_has_no_network() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(OwnedFd::from(one).network(), None);
    }
}
