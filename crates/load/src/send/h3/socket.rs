//! Datagrams in and out, many in one call where the kernel can (GRO, GSO).

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use bytes::BytesMut;
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};

/// Datagrams in one call: together they may not be larger than the largest datagram.
const DATAGRAMS_PER_SEND: usize = 32;

/// What the kernel can do with a socket's datagrams.
#[derive(Debug)]
pub struct Datagrams(UdpSocketState);

impl Datagrams {
    /// Datagrams of a socket.
    pub fn new(socket: &OwnedFd) -> io::Result<Datagrams> {
        UdpSocketState::new(UdpSockRef::from(socket)).map(Datagrams)
    }

    /// How many one call may send.
    pub(crate) fn per_send(&self) -> usize {
        self.0.max_gso_segments().min(DATAGRAMS_PER_SEND)
    }

    /// Reads what one call gives into `buffer`, hands each datagram on, and says how many bytes
    /// came; none when there is nothing.
    pub fn receive(
        &self,
        socket: &OwnedFd,
        buffer: &mut [u8],
        mut take: impl FnMut(SocketAddr, Option<EcnCodepoint>, BytesMut),
    ) -> io::Result<Option<usize>> {
        let mut metas = [RecvMeta::default()];
        let mut slices = [IoSliceMut::new(buffer)];
        match self
            .0
            .recv(UdpSockRef::from(socket), &mut slices, &mut metas)
        {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        let [meta] = metas;
        let ecn = meta.ecn.map(ecn_in);
        // The one copy of what comes in: it lives as long as its streams need it.
        let mut bytes = BytesMut::from(&buffer[..meta.len.min(buffer.len())]);
        while !bytes.is_empty() {
            let len = meta.stride.clamp(1, bytes.len());
            take(meta.addr, ecn, bytes.split_to(len));
        }
        Ok(Some(meta.len))
    }

    /// Sends datagrams; false when the kernel has no room for them.
    pub fn send(&self, socket: &OwnedFd, transmit: &Transmit, bytes: &[u8]) -> io::Result<bool> {
        let transmit = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.map(ecn_out),
            contents: &bytes[..transmit.size.min(bytes.len())],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        match self.0.try_send(UdpSockRef::from(socket), &transmit) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
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
