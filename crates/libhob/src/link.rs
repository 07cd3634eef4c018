//! The wire of a connection: messages in and out, over shared memory or the stream.
//!
//! Used under the connection's lock; nothing here waits, except a stream's write when the socket is
//! full, which the server always empties.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hob_ipc::file::{self, FileRange};
use hob_ipc::message::{Carrier, MessageHead, MessageKind, MessageSender};
use hob_ipc::shm::{RingFull, Room, WorkerChunk, WorkerEnd};
use hob_ipc::stream::{self, MessageDecoder};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, SendFlags};

use crate::failure::CallFailure;

/// A payload from this size on is written from where it lies.
const GATHERED_BYTES_MIN: usize = 4096;

/// The wire.
#[derive(Debug)]
pub(crate) struct CarrierLink {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) decoder: MessageDecoder,
    /// The last read of the stream was full.
    pub(crate) is_flowing: bool,
    pub(crate) shm: Option<WorkerEnd>,
    /// The payload of the message that was taken last.
    pub(crate) payload: Vec<u8>,
    /// Messages for the stream that have not been written.
    outgoing: Vec<u8>,
}

impl CarrierLink {
    pub(crate) fn new(
        socket: Arc<OwnedFd>,
        decoder: MessageDecoder,
        shm: Option<WorkerEnd>,
    ) -> CarrierLink {
        CarrierLink {
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
    pub(crate) fn take(&mut self) -> Result<Option<MessageHead>, CallFailure> {
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
    pub(crate) fn fill(&mut self) -> Result<bool, CallFailure> {
        Ok(receive(&self.socket, &mut self.decoder, RecvFlags::DONTWAIT)? != ReadAmount::Nothing)
    }

    /// Takes a request over; false when the server has taken it back.
    pub(crate) fn start(&self, request: &MessageHead) -> bool {
        self.shm.as_ref().is_none_or(|end| end.start(request))
    }

    /// Writes a message. It leaves with [`CarrierLink::flush`] at the latest.
    ///
    /// Inner [`Full`]: the ring has no room now.
    pub(crate) fn push(
        &mut self,
        head: MessageHead,
        payload: &[&[u8]],
    ) -> Result<Result<(), RingFull>, CallFailure> {
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
        taken: WorkerChunk,
        bytes: usize,
    ) -> Result<(), Option<WorkerChunk>> {
        match &mut self.shm {
            Some(end) => end
                .push_chunk(request, flags, taken, bytes)
                .map_err(|(RingFull, taken)| Some(taken)),
            None => Err(None),
        }
    }

    /// Sends bytes of a file by its descriptor. In shared memory there must be room in the ring for
    /// a `file`; no other message may come between the descriptor and its place there.
    pub(crate) fn push_file(
        &mut self,
        head: MessageHead,
        range: FileRange,
        file: BorrowedFd<'_>,
    ) -> Result<(), CallFailure> {
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
            Some(end) => end
                .push(head, &[&payload])
                .map_err(|RingFull| CallFailure::Broken),
            None => Ok(()),
        }
    }

    /// Shows the server everything that was written.
    pub(crate) fn flush(&mut self) -> Result<(), CallFailure> {
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
pub(crate) enum ReadAmount {
    /// Nothing was there.
    Nothing,
    /// All that was there.
    Some,
    /// As much as there was room for: there may be more.
    Full,
}

/// Reads once into the decoder. The end of the stream is [`CallFailure::Gone`].
pub(crate) fn receive(
    socket: impl AsFd,
    decoder: &mut MessageDecoder,
    flags: RecvFlags,
) -> Result<ReadAmount, CallFailure> {
    let space = decoder.space();
    let room = space.len();
    match rustix::net::recv(socket, space, flags) {
        Ok((_, 0)) => Err(CallFailure::Gone),
        Ok((_, count)) => {
            decoder.filled(count);
            match count == room {
                true => Ok(ReadAmount::Full),
                false => Ok(ReadAmount::Some),
            }
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(ReadAmount::Nothing),
        Err(errno) => Err(errno.into()),
    }
}

fn send_with(socket: &OwnedFd, bytes: &[u8], file: BorrowedFd<'_>) -> Result<usize, CallFailure> {
    loop {
        match file::send(socket.as_fd(), bytes, file) {
            Ok(count) => return Ok(count),
            Err(error) => match error.kind() {
                std::io::ErrorKind::Interrupted => {}
                std::io::ErrorKind::WouldBlock => wait_for_room(socket)?,
                std::io::ErrorKind::BrokenPipe => return Err(CallFailure::Gone),
                _ => return Err(CallFailure::System),
            },
        }
    }
}

fn wait_for_room(socket: &OwnedFd) -> Result<(), CallFailure> {
    let mut fds = [PollFd::new(socket, PollFlags::OUT)];
    match rustix::event::poll(&mut fds, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn write_all(socket: &OwnedFd, mut pieces: &mut [IoSlice<'_>]) -> Result<(), CallFailure> {
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
pub(crate) fn callout(request: u32, serial: u16, flags: u8) -> MessageHead {
    MessageHead::new(MessageKind::Callout, request)
        .small(serial)
        .flags(flags)
}

/// What reads a server.
pub(crate) fn decoder() -> MessageDecoder {
    MessageDecoder::new(MessageSender::Server)
}
