//! Parcels: bytes and descriptors over a SOCK_SEQPACKET Unix socket.
//!
//! A parcel is sent in as many packets as its descriptors need. Each packet:
//!
//! ```text
//! offset 0   u8    version (1)
//!        1   u8    kind, the same in every packet of a parcel
//!        2   u8    1: more packets of this parcel follow, 0: this is the last
//!        3   u8    0
//!        4   u16   descriptors with this packet (little-endian), at most DESCRIPTORS_PER_PACKET
//!        6   n x   u8 slot kind, u16 index: what each descriptor is for
//!        then      the body; only the first packet has one
//! ```
//!
//! Both ends are not blocking. Whoever sends keeps an `Outbox`, whoever receives an `Inbox`; both
//! are bounded. A packet that breaks a rule makes the socket useless: its reader gives up on it.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg,
    sendmsg, socketpair,
};

use super::wire::MalformedPart;

/// Version of the packets; another one is refused.
const VERSION: u8 = 1;
/// Largest body of a parcel, in bytes. What is larger travels as a descriptor of memory.
pub(crate) const BODY_BYTES_MAX: usize = 48 * 1024;
/// The kernel takes 253 with one packet.
const DESCRIPTORS_PER_PACKET: usize = 200;
/// Most descriptors of one parcel.
pub(crate) const DESCRIPTORS_MAX: usize = 4096;
/// Most packets that wait for the other side.
const OUTBOX_PACKETS_MAX: usize = 256;
const HEAD_BYTES: usize = 6;
const SLOT_BYTES: usize = 3;
const PACKET_BYTES_MAX: usize = HEAD_BYTES + DESCRIPTORS_PER_PACKET * SLOT_BYTES + BODY_BYTES_MAX;

const _: () = assert!(DESCRIPTORS_PER_PACKET <= 253);
const _: () = assert!(DESCRIPTORS_MAX.div_ceil(DESCRIPTORS_PER_PACKET) < OUTBOX_PACKETS_MAX);

/// What a descriptor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescriptorSlot {
    /// A word of the message that carries it, as a number.
    pub(crate) kind: u8,
    /// Which of its kind.
    pub(crate) index: u16,
}

/// One message: a kind, bytes, and descriptors with their slots.
#[derive(Debug)]
pub struct Parcel {
    pub(crate) kind: u8,
    pub(crate) body: Vec<u8>,
    pub(crate) descriptors: Vec<(DescriptorSlot, OwnedFd)>,
}

/// Why a parcel was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// Body or descriptors beyond the limits.
    TooLarge,
    /// The other side takes nothing and the outbox is full.
    Full,
    /// The other side is gone.
    Gone,
}

/// Why no parcel came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReceived {
    /// Nothing there now.
    Nothing,
    /// The other side is gone.
    Gone,
    /// One is there whose descriptors find no room in this process; it stays where it is.
    NoRoom,
    /// It broke the rules.
    Malformed(MalformedPart),
}

/// A connected pair of packet sockets, closed on exec and not blocking.
pub fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Packets on their way out.
#[derive(Default)]
pub(crate) struct Outbox {
    packets: VecDeque<Packet>,
    /// The kernel refused the first for its descriptors (ETOOMANYREFS of unix(7)).
    is_over_quota: bool,
}

struct Packet {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Outbox {
    /// Sends a parcel, or what of it the socket takes now; the rest waits for `flush`.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, parcel: Parcel) -> Result<(), NotSent> {
        if parcel.body.len() > BODY_BYTES_MAX || parcel.descriptors.len() > DESCRIPTORS_MAX {
            return Err(NotSent::TooLarge);
        }
        let packets = split(parcel);
        if self.packets.len() + packets.len() > OUTBOX_PACKETS_MAX {
            return Err(NotSent::Full);
        }
        self.packets.extend(packets);
        self.flush(socket)
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<(), NotSent> {
        let was_over_quota = std::mem::take(&mut self.is_over_quota);
        while let Some(packet) = self.packets.front() {
            match send_packet(socket, packet) {
                Ok(_) => drop(self.packets.pop_front()),
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(()),
                Err(Errno::TOOMANYREFS) => {
                    self.is_over_quota = true;
                    if !was_over_quota {
                        tracing::warn!(
                            "descriptors for another process wait: all processes of this user have \
                             as many under way as this one may have open (LimitNOFILE= of a \
                             service, `ulimit -Hn`)"
                        );
                    }
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.packets.clear();
                    return Err(NotSent::Gone);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// What waits does so until others have taken their descriptors, which nobody tells of: `flush`
    /// is to be called now and then, and the socket not to be waited for.
    pub(crate) fn is_over_quota(&self) -> bool {
        self.is_over_quota
    }
}

fn split(parcel: Parcel) -> Vec<Packet> {
    let Parcel {
        kind,
        body,
        descriptors,
    } = parcel;
    let packet_count = descriptors.len().div_ceil(DESCRIPTORS_PER_PACKET).max(1);
    let mut rest = descriptors.into_iter();
    let mut packets = Vec::with_capacity(packet_count);
    for number in 1..=packet_count {
        let carried: Vec<_> = rest.by_ref().take(DESCRIPTORS_PER_PACKET).collect();
        let is_last = number == packet_count;
        let mut bytes = vec![VERSION, kind, u8::from(!is_last), 0];
        let count = u16::try_from(carried.len()).expect("DESCRIPTORS_PER_PACKET fits");
        bytes.extend_from_slice(&count.to_le_bytes());
        for (slot, _) in &carried {
            bytes.push(slot.kind);
            bytes.extend_from_slice(&slot.index.to_le_bytes());
        }
        if number == 1 {
            bytes.extend_from_slice(&body);
        }
        let descriptors = carried
            .into_iter()
            .map(|(_, descriptor)| descriptor)
            .collect();
        packets.push(Packet { bytes, descriptors });
    }
    packets
}

fn send_packet(socket: BorrowedFd<'_>, packet: &Packet) -> rustix::io::Result<usize> {
    let borrowed: Vec<BorrowedFd<'_>> = packet.descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = vec![MaybeUninit::uninit(); control_bytes()];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(Errno::TOOBIG);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&packet.bytes)], &mut control, flags)
}

fn control_bytes() -> usize {
    SendAncillaryMessage::ScmRights(&[]).size()
        + DESCRIPTORS_PER_PACKET * size_of::<i32>()
        + size_of::<usize>() * 2
}

/// Packets on their way in.
pub(crate) struct Inbox {
    /// The parcel whose last packet has not come.
    partial: Option<Parcel>,
    descriptors_max: usize,
    buffer: Vec<u8>,
}

impl Inbox {
    /// An inbox that takes at most so many descriptors with one parcel.
    pub(crate) fn new(descriptors_max: usize) -> Inbox {
        Inbox {
            partial: None,
            descriptors_max,
            buffer: vec![0; PACKET_BYTES_MAX + 1],
        }
    }

    /// The next whole parcel.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<Parcel, NotReceived> {
        loop {
            let (len, descriptors) = self.receive_packet(socket)?;
            let parcel = parse(&self.buffer[..len], descriptors, self.partial.take());
            match parcel.map_err(NotReceived::Malformed)? {
                (parcel, _) if parcel.descriptors.len() > self.descriptors_max => {
                    return Err(NotReceived::Malformed(MalformedPart(
                        "count of descriptors",
                    )));
                }
                (parcel, true) => self.partial = Some(parcel),
                (parcel, false) => return Ok(parcel),
            }
        }
    }

    fn receive_packet(
        &mut self,
        socket: BorrowedFd<'_>,
    ) -> Result<(usize, Vec<OwnedFd>), NotReceived> {
        // Without room for descriptors the kernel drops what a sender smuggles in.
        let takes_descriptors = self.descriptors_max > 0;
        let room = if takes_descriptors {
            control_bytes()
        } else {
            0
        };
        let mut space = vec![MaybeUninit::uninit(); room];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        // What cannot be taken whole, because the process has as many descriptors as it may, is
        // left for later: taken, the rest of it would be lost.
        flags.set(RecvFlags::PEEK, takes_descriptors);
        let received = loop {
            let mut parts = [IoSliceMut::new(&mut self.buffer)];
            match recvmsg(socket, &mut parts, &mut control, flags) {
                Ok(received) => break received,
                // Who left without reading everything: told once, before what was said last.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Err(NotReceived::Nothing),
                Err(_) => return Err(NotReceived::Gone),
            }
        };
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(carried) = message {
                descriptors.extend(carried);
            }
        }
        if received.bytes == 0 {
            return Err(NotReceived::Gone);
        }
        let is_cut = received.flags.contains(ReturnFlags::CTRUNC);
        if is_cut && takes_descriptors && self.has_too_few(received.bytes, descriptors.len()) {
            return Err(NotReceived::NoRoom);
        }
        if takes_descriptors {
            // It is here; the one that waits goes.
            let _ = recv(socket, &mut [0; 1], RecvFlags::DONTWAIT);
        }
        if is_cut || received.flags.contains(ReturnFlags::TRUNC) {
            return Err(NotReceived::Malformed(MalformedPart("size of a packet")));
        }
        Ok((received.bytes, descriptors))
    }

    /// Whether the packet that was read had more descriptors than came, and no more than it may.
    fn has_too_few(&self, len: usize, count: usize) -> bool {
        let announced = match self.buffer[..len] {
            [_, _, _, _, low, high, ..] => usize::from(u16::from_le_bytes([low, high])),
            _ => 0,
        };
        count < announced && announced <= DESCRIPTORS_PER_PACKET
    }
}

/// Adds a packet to the parcel it continues, or begins one; true when more is to come.
fn parse(
    packet: &[u8],
    descriptors: Vec<OwnedFd>,
    partial: Option<Parcel>,
) -> Result<(Parcel, bool), MalformedPart> {
    let (head, rest) = packet
        .split_first_chunk::<HEAD_BYTES>()
        .ok_or(MalformedPart("packet head"))?;
    let [version, kind, more, zero, count_low, count_high] = *head;
    if version != VERSION {
        return Err(MalformedPart("packet version"));
    }
    if more > 1 || zero != 0 {
        return Err(MalformedPart("packet flags"));
    }
    let count = usize::from(u16::from_le_bytes([count_low, count_high]));
    if count != descriptors.len() || count > DESCRIPTORS_PER_PACKET {
        return Err(MalformedPart("count of descriptors"));
    }
    let (slots, body) = rest
        .split_at_checked(count * SLOT_BYTES)
        .ok_or(MalformedPart("list of descriptors"))?;
    let slots = slots.chunks_exact(SLOT_BYTES).map(|slot| DescriptorSlot {
        kind: slot[0],
        index: u16::from_le_bytes([slot[1], slot[2]]),
    });
    let mut parcel = match partial {
        None if body.len() > BODY_BYTES_MAX => return Err(MalformedPart("size of a body")),
        None => Parcel {
            kind,
            body: body.to_vec(),
            descriptors: Vec::new(),
        },
        Some(parcel) if parcel.kind == kind && body.is_empty() && count > 0 => parcel,
        Some(_) => return Err(MalformedPart("continued packet")),
    };
    parcel.descriptors.extend(slots.zip(descriptors));
    Ok((parcel, more == 1))
}

#[cfg(test)]
mod tests;
