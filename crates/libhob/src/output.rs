//! What a program writes, collected and sent in as few messages as possible.
//!
//! In shared memory up to 4 KiB are collected here and travel in the ring; what is more goes into a
//! chunk, which is filled and sent whole: 64 KiB, unless the server's are smaller. On the stream
//! 64 KiB are collected. Something is always kept back until more comes or the answer ends, so that
//! the last message can say that it is last.

use hob_ipc::limits::{PAYLOAD_BYTES_MAX, RING_DATA_BYTES_MAX};
use hob_ipc::message::{Carrier, LAST, MessageHead, MessageKind};
use hob_ipc::shm::{Room, WorkerChunk};

use crate::connection::{HobConnection, HobConnectionState};
use crate::failure::CallFailure;
use crate::wait::{Locked, Until, WaitKind};

/// What has been written and not been sent.
#[derive(Debug)]
pub(crate) struct UnsentOutput {
    small: Vec<u8>,
    chunk: Option<(WorkerChunk, usize)>,
}

impl UnsentOutput {
    /// Collects in that buffer, which is empty.
    pub(crate) fn new(small: Vec<u8>) -> UnsentOutput {
        UnsentOutput { small, chunk: None }
    }

    /// Gives the buffer back.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.small
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.chunk.is_none()
    }

    /// How many bytes were collected.
    pub(crate) fn bytes(&self) -> usize {
        self.small.len() + self.chunk.as_ref().map_or(0, |(_, filled)| *filled)
    }

    /// Collects bytes that need no message yet; false when they do.
    pub(crate) fn keep(&mut self, connection: &HobConnection, bytes: &[u8]) -> bool {
        match &mut self.chunk {
            None if self.small.len() + bytes.len() <= small_bytes_max(connection) => {
                self.small.extend_from_slice(bytes);
                true
            }
            Some((taken, filled)) if *filled + bytes.len() <= connection.piece_bytes_max => {
                taken.fill(*filled, bytes);
                *filled += bytes.len();
                true
            }
            _ => false,
        }
    }

    /// Collects bytes, and sends messages whenever one is full. The head has been sent.
    pub(crate) fn write(
        &mut self,
        locked: &mut Locked<'_>,
        connection: &HobConnection,
        id: u32,
        mut bytes: &[u8],
    ) -> Result<(), CallFailure> {
        while !self.keep(connection, bytes) {
            if connection.carrier == Carrier::Stream {
                let room = connection.piece_bytes_max - self.small.len();
                let (now, later) = bytes.split_at(bytes.len().min(room));
                let pieces = [&self.small[..], now];
                send(locked, id, 0, &pieces)?;
                self.small.clear();
                bytes = later;
                continue;
            }
            if self.chunk.is_none() {
                let bytes = self.small.len() + bytes.len();
                let bytes = bytes.min(connection.piece_bytes_max);
                self.chunk = Some((take_chunk(locked, id, bytes)?, 0));
                let small = std::mem::take(&mut self.small);
                self.keep(connection, &small);
                self.small = small;
                self.small.clear();
            }
            let (taken, filled) = self.chunk.as_mut().expect("made above");
            let room = connection.piece_bytes_max - *filled;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            taken.fill(*filled, now);
            *filled += now.len();
            bytes = later;
            if !bytes.is_empty() {
                self.send(locked, id, 0)?;
                locked.flush()?;
            }
        }
        Ok(())
    }

    /// A place of at least one byte to write to directly.
    pub(crate) fn space(
        &mut self,
        locked: &mut Locked<'_>,
        connection: &HobConnection,
        id: u32,
    ) -> Result<(*mut u8, usize), CallFailure> {
        let max = connection.piece_bytes_max;
        if connection.carrier == Carrier::Stream {
            if self.small.len() == max {
                self.send(locked, id, 0)?;
            }
            self.small.reserve(max - self.small.len());
            let spare = self.small.spare_capacity_mut();
            return Ok((spare.as_mut_ptr().cast(), spare.len().min(max)));
        }
        if self
            .chunk
            .as_ref()
            .is_some_and(|(_, filled)| *filled == max)
        {
            self.send(locked, id, 0)?;
            locked.flush()?;
        }
        if self.chunk.is_none() {
            if self.small.len() == max {
                self.send(locked, id, 0)?;
            }
            let mut taken = take_chunk(locked, id, max)?;
            taken.fill(0, &self.small);
            self.chunk = Some((taken, self.small.len()));
            self.small.clear();
        }
        let (taken, filled) = self.chunk.as_mut().expect("made above");
        Ok((taken.place().wrapping_add(*filled), max - *filled))
    }

    /// Sends all that was collected.
    pub(crate) fn send(
        &mut self,
        locked: &mut Locked<'_>,
        id: u32,
        flags: u8,
    ) -> Result<(), CallFailure> {
        if let Some((taken, filled)) = self.chunk.take()
            && filled > 0
        {
            take_credit(locked, id, filled)?;
            return locked.push_chunk(id, flags, taken, filled);
        }
        if self.small.is_empty() && flags & LAST == 0 {
            return Ok(());
        }
        send(locked, id, flags, &[&self.small])?;
        self.small.clear();
        Ok(())
    }

    /// Bytes were written to [`UnsentOutput::space`].
    pub(crate) fn advance(
        &mut self,
        connection: &HobConnection,
        count: usize,
    ) -> Result<(), CallFailure> {
        let max = connection.piece_bytes_max;
        match &mut self.chunk {
            Some((_, filled)) if count <= max - *filled => {
                *filled += count;
                Ok(())
            }
            None if count <= self.small.spare_capacity_mut().len() => {
                grow(&mut self.small, count);
                Ok(())
            }
            _ => Err(CallFailure::Misuse),
        }
    }

    /// A place to write to where no server is.
    pub(crate) fn plain_space(&mut self) -> (*mut u8, usize) {
        self.small.reserve(PAYLOAD_BYTES_MAX);
        let spare = self.small.spare_capacity_mut();
        (spare.as_mut_ptr().cast(), spare.len())
    }

    /// Bytes were written to [`UnsentOutput::plain_space`]: gives them to `write`.
    pub(crate) fn plain_advance<T>(
        &mut self,
        count: usize,
        write: impl FnOnce(&[u8]) -> Result<T, CallFailure>,
    ) -> Result<T, CallFailure> {
        if count > self.small.spare_capacity_mut().len() {
            return Err(CallFailure::Misuse);
        }
        grow(&mut self.small, count);
        let written = write(&self.small);
        self.small.clear();
        written
    }
}

/// Takes written bytes of a vector's spare room in.
#[allow(unsafe_code)]
fn grow(buffer: &mut Vec<u8>, count: usize) {
    // SAFETY: the caller has checked the capacity, and `hob_advance` says that the program has
    // written so many bytes.
    unsafe { buffer.set_len(buffer.len() + count) }
}

fn send(locked: &mut Locked<'_>, id: u32, flags: u8, pieces: &[&[u8]]) -> Result<(), CallFailure> {
    let bytes = pieces.iter().map(|piece| piece.len()).sum();
    take_credit(locked, id, bytes)?;
    locked.push(MessageHead::new(MessageKind::Data, id).flags(flags), pieces)
}

/// WaitKind until so many bytes may be sent.
pub(crate) fn take_credit(
    locked: &mut Locked<'_>,
    id: u32,
    bytes: usize,
) -> Result<(), CallFailure> {
    let take = |inner: &mut HobConnectionState| match inner.request(id) {
        None => Some(Err(CallFailure::Misuse)),
        Some(active) if active.is_cancelled => Some(Err(CallFailure::Cancelled)),
        Some(active) if active.credit >= bytes as u64 => {
            active.credit -= bytes as u64;
            Some(Ok(()))
        }
        Some(_) => None,
    };
    if let Some(taken) = take(locked.inner()) {
        return taken;
    }
    locked.wait(Until::Ever, None, WaitKind::Change, take)?
}

/// Takes a chunk for so many bytes once they may be sent: who waits for a client holds none that
/// another request could use.
fn take_chunk(locked: &mut Locked<'_>, id: u32, bytes: usize) -> Result<WorkerChunk, CallFailure> {
    let may_send = |inner: &mut HobConnectionState| match inner.request(id) {
        Some(active) if !active.is_cancelled => (active.credit >= bytes as u64).then_some(Ok(())),
        _ => Some(Err(CallFailure::Cancelled)),
    };
    match may_send(locked.inner()) {
        Some(may) => may?,
        None => locked.wait(Until::Ever, None, WaitKind::Change, may_send)??,
    }
    let take = |inner: &mut HobConnectionState| {
        if inner.request(id).is_none_or(|active| active.is_cancelled) {
            return Some(Err(CallFailure::Cancelled));
        }
        let end = inner.link.shm.as_mut()?;
        end.take_chunk().map(Ok)
    };
    if let Some(taken) = take(locked.inner()) {
        return taken;
    }
    let room = Room {
        payload_bytes: 8,
        chunk: true,
    };
    locked.wait(Until::Ever, Some(room), WaitKind::Change, take)?
}

fn small_bytes_max(connection: &HobConnection) -> usize {
    match connection.carrier {
        Carrier::Shm => RING_DATA_BYTES_MAX.min(connection.piece_bytes_max),
        Carrier::Stream => connection.piece_bytes_max,
    }
}
