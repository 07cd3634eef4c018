//! Packets with a few descriptors over a SOCK_SEQPACKET socket: one call each way, no allocation.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Most descriptors of a packet.
pub(crate) const DESCRIPTORS_MAX: usize = 5;

/// Descriptors of one packet, in order.
pub(crate) type Descriptors = [Option<OwnedFd>; DESCRIPTORS_MAX];

/// What came of a read.
#[derive(Debug)]
pub enum Received {
    /// A packet of so many bytes.
    Packet(usize, Descriptors),
    /// The same, but there was no room here for all of its descriptors.
    Bare(usize),
    /// Nothing there now.
    Nothing,
    /// The other side is gone, or broke the rules of packets.
    Gone,
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSendOutcome {
    /// It is out.
    Yes,
    /// The socket takes nothing now.
    Full,
    /// The kernel has no room for its descriptors or refuses them; this packet will never go.
    Refused(Errno),
    /// The other side is gone.
    Gone,
}

/// Sends a packet without waiting.
pub fn send(socket: BorrowedFd<'_>, packet: &[u8], descriptors: &[OwnedFd]) -> PacketSendOutcome {
    debug_assert!(descriptors.len() <= DESCRIPTORS_MAX && !packet.is_empty());
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let mut borrowed = [socket; DESCRIPTORS_MAX];
    for (place, descriptor) in borrowed.iter_mut().zip(descriptors) {
        *place = descriptor.as_fd();
    }
    let borrowed = &borrowed[..descriptors.len()];
    if !borrowed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(borrowed)) {
        return PacketSendOutcome::Refused(Errno::TOOBIG);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        return match sendmsg(socket, &[IoSlice::new(packet)], &mut control, flags) {
            Ok(_) => PacketSendOutcome::Yes,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => PacketSendOutcome::Full,
            // Too many descriptors on their way already; they come back as packets are read.
            Err(Errno::TOOMANYREFS) => PacketSendOutcome::Full,
            Err(errno @ (Errno::MSGSIZE | Errno::BADF | Errno::INVAL)) => {
                PacketSendOutcome::Refused(errno)
            }
            Err(_) => PacketSendOutcome::Gone,
        };
    }
}

/// Receives a packet without waiting; its descriptors are closed on exec.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Received {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        let mut parts = [IoSliceMut::new(buffer)];
        match recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(received) => break received,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Received::Nothing,
            Err(_) => return Received::Gone,
        }
    };
    let mut descriptors = Descriptors::default();
    let mut count = 0;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(carried) = message {
            for descriptor in carried {
                if let Some(place) = descriptors.get_mut(count) {
                    *place = Some(descriptor);
                }
                count += 1;
            }
        }
    }
    if received.bytes == 0 || received.flags.contains(ReturnFlags::TRUNC) {
        return Received::Gone;
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Received::Bare(received.bytes);
    }
    Received::Packet(received.bytes, descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parcel::pair as parcel_pair;

    fn null() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn packet_arrives_with_its_descriptors_and_a_longer_one_ends_the_link() {
        let (ours, theirs) = parcel_pair().unwrap();
        let mut buffer = [0; 8];
        assert!(matches!(
            receive(theirs.as_fd(), &mut buffer),
            Received::Nothing
        ));
        let carried = [null(), null(), null(), null(), null()];
        assert_eq!(
            send(ours.as_fd(), b"12345678", &carried),
            PacketSendOutcome::Yes
        );
        let Received::Packet(8, descriptors) = receive(theirs.as_fd(), &mut buffer) else {
            panic!("a packet");
        };
        assert_eq!(
            (&buffer, descriptors.iter().flatten().count()),
            (b"12345678", 5)
        );
        assert_eq!(
            send(ours.as_fd(), b"123456789", &[]),
            PacketSendOutcome::Yes
        );
        assert!(matches!(
            receive(theirs.as_fd(), &mut buffer),
            Received::Gone
        ));
        drop(theirs);
        assert_eq!(send(ours.as_fd(), b"1", &[]), PacketSendOutcome::Gone);
        assert!(matches!(receive(ours.as_fd(), &mut buffer), Received::Gone));
    }

    #[test]
    fn socket_that_takes_no_more_is_full() {
        let (ours, _theirs) = parcel_pair().unwrap();
        let packet = vec![1; super::super::message::PACKET_BYTES_MAX];
        let sent = std::iter::repeat_with(|| send(ours.as_fd(), &packet, &[]));
        let last = sent
            .take(10_000)
            .find(|sent| *sent != PacketSendOutcome::Yes);
        assert_eq!(last, Some(PacketSendOutcome::Full));
    }
}
