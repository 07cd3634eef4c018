//! The three descriptors of a worker's region, and how they travel: with the first byte of hello.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

const COUNT: usize = 3;

/// What a worker is given to share memory with the server.
#[derive(Debug)]
pub struct Gifts {
    /// The sealed memfd.
    pub region: OwnedFd,
    /// Written by the worker when the server sleeps: an eventfd.
    pub bell_to_server: OwnedFd,
    /// Readable when a worker that sleeps in `poll` is to wake up: the reading end of a pipe.
    pub bell_to_worker: OwnedFd,
}

impl Gifts {
    /// Sends bytes with these descriptors; says how many bytes went out, at least one. Send the
    /// rest as usual.
    ///
    /// # Errors
    ///
    /// What the socket says. Nothing was sent then.
    pub fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        let fds = [
            self.region.as_fd(),
            self.bell_to_server.as_fd(),
            self.bell_to_worker.as_fd(),
        ];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let has_room = control.push(SendAncillaryMessage::ScmRights(&fds));
        assert!(has_room, "the space was made for three descriptors");
        let flags = SendFlags::NOSIGNAL;
        Ok(rustix::net::sendmsg(
            socket,
            &[IoSlice::new(bytes)],
            &mut control,
            flags,
        )?)
    }

    /// Reads bytes and, if they come with them, the three descriptors. Other descriptors than
    /// three are closed.
    ///
    /// # Errors
    ///
    /// What the socket says.
    pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Option<Gifts>)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let mut into = [IoSliceMut::new(bytes)];
        let received = rustix::net::recvmsg(socket, &mut into, &mut control, flags)?;
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        let gifts = <[OwnedFd; COUNT]>::try_from(fds).ok();
        let gifts = gifts.map(|[region, bell_to_server, bell_to_worker]| Gifts {
            region,
            bell_to_server,
            bell_to_worker,
        });
        Ok((received.bytes, gifts))
    }
}
