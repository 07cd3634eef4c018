//! Datagrams in and out, many in one call where the kernel can (GRO, GSO, recvmmsg).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};

/// A bound UDP socket.
pub(crate) struct Socket {
    fd: Arc<OwnedFd>,
    state: UdpSocketState,
    /// Made when it is first read from.
    buffers: Vec<Box<[u8]>>,
}

/// A datagram as it came. It may go to another thread.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) bytes: BytesMut,
}

/// Reads that one call may make.
const BATCH: usize = 4;
/// Datagrams in one call: together they may not be larger than the largest datagram.
const DATAGRAMS_PER_SEND: usize = 32;
const _: () = assert!(DATAGRAMS_PER_SEND * 1500 < 65_000);
/// What one read may give: datagrams of one client that the kernel has put together.
const READ_BYTES: usize = 64 * 1024;

impl Socket {
    /// Takes a bound socket.
    pub(crate) fn new(fd: Arc<OwnedFd>) -> io::Result<Socket> {
        let state = UdpSocketState::new(UdpSockRef::from(&*fd))?;
        Ok(Socket {
            fd,
            state,
            buffers: Vec::new(),
        })
    }

    /// The socket.
    pub(crate) fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// Datagrams never leave in pieces, so their size can be found out.
    pub(crate) fn keeps_whole(&self) -> bool {
        !self.state.may_fragment()
    }

    /// How many datagrams one call may send.
    pub(crate) fn datagrams_per_send(&self) -> usize {
        self.state.max_gso_segments().min(DATAGRAMS_PER_SEND)
    }

    /// Reads what one call gives; true when there may be more.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(Datagram)) -> io::Result<bool> {
        if self.buffers.is_empty() {
            self.buffers = (0..BATCH)
                .map(|_| vec![0; READ_BYTES].into_boxed_slice())
                .collect();
        }
        let mut metas = [RecvMeta::default(); BATCH];
        let count = {
            let mut buffers = self.buffers.iter_mut();
            let mut slices: [IoSliceMut<'_>; BATCH] = std::array::from_fn(|_| {
                IoSliceMut::new(buffers.next().map_or(&mut [][..], |buffer| buffer))
            });
            let socket = UdpSockRef::from(&*self.fd);
            match self.state.recv(socket, &mut slices, &mut metas) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        };
        for (meta, buffer) in metas.iter().zip(&self.buffers).take(count) {
            // The one copy of what comes in: it lives as long as its streams need it.
            let mut bytes = BytesMut::from(&buffer[..meta.len.min(READ_BYTES)]);
            while !bytes.is_empty() {
                let len = meta.stride.clamp(1, bytes.len());
                take(Datagram {
                    remote: meta.addr,
                    local: meta.dst_ip,
                    ecn: meta.ecn.map(ecn_in),
                    bytes: bytes.split_to(len),
                });
            }
        }
        // A last call that finds nothing is saved: who waits hears of what comes later.
        Ok(count == BATCH)
    }

    /// Sends datagrams; false when the kernel has no room for them.
    pub(crate) fn send(&self, transmit: &Transmit, bytes: &[u8]) -> bool {
        let transmit = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.map(ecn_out),
            contents: &bytes[..transmit.size.min(bytes.len())],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        match self.state.try_send(UdpSockRef::from(&*self.fd), &transmit) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => {
                // As good as lost on its way: who needs it sends it again.
                tracing::debug!(%error, "a datagram could not be sent");
                true
            }
        }
    }
}

fn ecn_in(ecn: quinn_udp::EcnCodepoint) -> EcnCodepoint {
    match ecn {
        quinn_udp::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
        quinn_udp::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
        quinn_udp::EcnCodepoint::Ce => EcnCodepoint::Ce,
    }
}

fn ecn_out(ecn: EcnCodepoint) -> quinn_udp::EcnCodepoint {
    match ecn {
        EcnCodepoint::Ect0 => quinn_udp::EcnCodepoint::Ect0,
        EcnCodepoint::Ect1 => quinn_udp::EcnCodepoint::Ect1,
        EcnCodepoint::Ce => quinn_udp::EcnCodepoint::Ce,
    }
}
