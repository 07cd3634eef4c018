//! The wire of a connection: messages in and out, over shared memory or the stream.
//!
//! Used under the connection's lock; nothing here waits, except a stream's write when the socket is
//! full, which the server always empties.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hob_ipc::file::{self, FileRange};
use hob_ipc::message::{Carrier, Head, Kind, Side};
use hob_ipc::shm::{Full, Room, Taken, WorkerEnd};
use hob_ipc::stream::{self, Decoder};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, SendFlags};

use crate::failure::Failure;

/// A payload from this size on is written from where it lies.
const GATHERED_BYTES_MIN: usize = 4096;

/// The wire.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) decoder: Decoder,
    /// The last read of the stream was full.
    pub(crate) is_flowing: bool,
    pub(crate) shm: Option<WorkerEnd>,
    /// The payload of the message that was taken last.
    pub(crate) payload: Vec<u8>,
    /// Messages for the stream that have not been written.
    outgoing: Vec<u8>,
}

impl Link {
    pub(crate) fn new(socket: Arc<OwnedFd>, decoder: Decoder, shm: Option<WorkerEnd>) -> Link {
        Link {
            socket,
            decoder,
            is_flowing: false,
            shm,
            payload: Vec::new(),
            outgoing: Vec::new(),
        }
    }

    pub(crate) fn carrier(&self) -> Carrier {
        match self.shm {
            Some(_) => Carrier::Shm,
            None => Carrier::Stream,
        }
    }

    /// The next message that is here already; its payload is in `payload`. No system call.
    pub(crate) fn take(&mut self) -> Result<Option<Head>, Failure> {
        if let Some(end) = &mut self.shm {
            return Ok(end.pop(&mut self.payload)?);
        }
        let Some(message) = self.decoder.next_message()? else {
            return Ok(None);
        };
        self.payload.clear();
        self.payload.extend_from_slice(message.payload);
        Ok(Some(message.head))
    }

    /// Reads from the stream without waiting; false when nothing was there.
    pub(crate) fn fill(&mut self) -> Result<bool, Failure> {
        Ok(receive(&self.socket, &mut self.decoder, RecvFlags::DONTWAIT)? != Filled::Nothing)
    }

    /// Takes a request over; false when the server has taken it back.
    pub(crate) fn start(&self, request: &Head) -> bool {
        self.shm.as_ref().is_none_or(|end| end.start(request))
    }

    /// Writes a message. It leaves with [`Link::flush`] at the latest.
    ///
    /// Inner [`Full`]: the ring has no room now.
    pub(crate) fn push(
        &mut self,
        head: Head,
        payload: &[&[u8]],
    ) -> Result<Result<(), Full>, Failure> {
        if let Some(end) = &mut self.shm {
            return Ok(end.push(head, payload));
        }
        let bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        if bytes < GATHERED_BYTES_MIN {
            stream::append(&mut self.outgoing, head, payload);
            return Ok(Ok(()));
        }
        let head = head.sized(bytes).encode();
        let outgoing = std::mem::take(&mut self.outgoing);
        let mut pieces = vec![IoSlice::new(&outgoing), IoSlice::new(&head)];
        pieces.extend(payload.iter().map(|piece| IoSlice::new(piece)));
        let written = write_all(&self.socket, &mut pieces);
        self.outgoing = outgoing;
        self.outgoing.clear();
        written.map(Ok)
    }

    /// Sends a chunk; it comes back when the ring has no room now.
    pub(crate) fn push_chunk(
        &mut self,
        request: u32,
        flags: u8,
        taken: Taken,
        bytes: usize,
    ) -> Result<(), Option<Taken>> {
        match &mut self.shm {
            Some(end) => end
                .push_chunk(request, flags, taken, bytes)
                .map_err(|(Full, taken)| Some(taken)),
            None => Err(None),
        }
    }

    /// Sends bytes of a file by its descriptor. In shared memory there must be room in the ring for
    /// a `file`; no other message may come between the descriptor and its place there.
    pub(crate) fn push_file(
        &mut self,
        head: Head,
        range: FileRange,
        file: BorrowedFd<'_>,
    ) -> Result<(), Failure> {
        let payload = range.encode();
        // Together with what waits on a stream.
        let outgoing = &mut self.outgoing;
        stream::append(outgoing, head, &[&payload]);
        let sent = send_with(&self.socket, outgoing, file);
        let written = sent.and_then(|sent| {
            let rest = &outgoing[sent..];
            write_all(&self.socket, &mut [IoSlice::new(rest)])
        });
        outgoing.clear();
        written?;
        match &mut self.shm {
            Some(end) => end.push(head, &[&payload]).map_err(|Full| Failure::Broken),
            None => Ok(()),
        }
    }

    /// Shows the server everything that was written.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if let Some(end) = &mut self.shm {
            end.flush();
            return Ok(());
        }
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let written = write_all(&self.socket, &mut [IoSlice::new(&self.outgoing)]);
        self.outgoing.clear();
        written
    }

    /// True when there is such room now; on a stream there always is.
    pub(crate) fn has_room(&mut self, room: Room) -> bool {
        self.shm.as_mut().is_none_or(|end| end.has_room(room))
    }
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Nothing was there.
    Nothing,
    /// All that was there.
    Some,
    /// As much as there was room for: there may be more.
    Full,
}

/// Reads once into the decoder. The end of the stream is [`Failure::Gone`].
pub(crate) fn receive(
    socket: impl AsFd,
    decoder: &mut Decoder,
    flags: RecvFlags,
) -> Result<Filled, Failure> {
    let space = decoder.space();
    let room = space.len();
    match rustix::net::recv(socket, space, flags) {
        Ok((_, 0)) => Err(Failure::Gone),
        Ok((_, count)) => {
            decoder.filled(count);
            match count == room {
                true => Ok(Filled::Full),
                false => Ok(Filled::Some),
            }
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Filled::Nothing),
        Err(errno) => Err(errno.into()),
    }
}

fn send_with(socket: &OwnedFd, bytes: &[u8], file: BorrowedFd<'_>) -> Result<usize, Failure> {
    loop {
        match file::send(socket.as_fd(), bytes, file) {
            Ok(count) => return Ok(count),
            Err(error) => match error.kind() {
                std::io::ErrorKind::Interrupted => {}
                std::io::ErrorKind::WouldBlock => wait_for_room(socket)?,
                std::io::ErrorKind::BrokenPipe => return Err(Failure::Gone),
                _ => return Err(Failure::System),
            },
        }
    }
}

fn wait_for_room(socket: &OwnedFd) -> Result<(), Failure> {
    let mut fds = [PollFd::new(socket, PollFlags::OUT)];
    match rustix::event::poll(&mut fds, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn write_all(socket: &OwnedFd, mut pieces: &mut [IoSlice<'_>]) -> Result<(), Failure> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    // Empty ones go.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        let mut control = rustix::net::SendAncillaryBuffer::default();
        match rustix::net::sendmsg(socket, pieces, &mut control, flags) {
            Ok(count) => IoSlice::advance_slices(&mut pieces, count),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => wait_for_room(socket)?,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// A callout's head.
pub(crate) fn callout(request: u32, serial: u16, flags: u8) -> Head {
    Head::new(Kind::Callout, request).small(serial).flags(flags)
}

/// What reads a server.
pub(crate) fn decoder() -> Decoder {
    Decoder::new(Side::Server)
}
