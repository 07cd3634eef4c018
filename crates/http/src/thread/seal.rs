//! Answers into sealed records and to the kernel: as `send` does in clear text, with the same
//! order, budgets and ends.
//!
//! An answer that is ready and fits leaves as one record in one write. Larger ones are sealed a
//! batch at a time; bytes of files are read right into their record and sealed there.

use std::io::{self, IoSliceMut};

use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::SendFlags;

use crate::body::{FileBody, SHORTER, UNREADABLE};
use crate::h1::AfterAnswer;
use crate::limits::{
    BULK_BYTES_PER_TURN, SEAL_BYTES_PER_CALL, SMALL_AFTER_MS, SMALL_RECORD_BYTES,
    SMALL_RECORDS_BYTES,
};
use crate::raw;
use crate::response::Responder;
use crate::thread::conn::{ConnectionStage, Outgoing, OutputPiece, SocketConnection};
use crate::thread::run::Thread;
use crate::thread::send::{Flushed, SocketSendOutcome, break_off};
use crate::thread::tls::Secure;
use crate::tls::record::{OVERHEAD_BYTES_MAX, TEXT_BYTES_MAX, TlsContentType};

/// Records on their way from a connection to its socket; empty between connections.
#[derive(Default)]
pub(crate) struct Batch {
    /// As long as a batch may get, from its first use on.
    bytes: Vec<u8>,
    len: usize,
    /// Up to where the file at the front is known to be in memory.
    resident_until: u64,
}

/// Records of one batch: small ones first, then large ones, and what closes it.
const RECORDS_MAX: usize = SEAL_BYTES_PER_CALL / SMALL_RECORD_BYTES + 2;
const BATCH_BYTES_MAX: usize =
    SEAL_BYTES_PER_CALL + TEXT_BYTES_MAX + RECORDS_MAX * OVERHEAD_BYTES_MAX;

impl<A: Responder + 'static> Thread<A> {
    /// Sends what is sealed already, then `output`, then the queue of the connection.
    pub(crate) fn flush_sealed(&mut self, conn: &mut SocketConnection) -> Flushed {
        let mut budget = BULK_BYTES_PER_TURN;
        loop {
            match self.send_held(conn) {
                Ok(true) => {}
                Ok(false) => {
                    self.note_blocked(conn);
                    return self.stalled(conn, Flushed::Blocked);
                }
                Err(error) => {
                    tracing::debug!(%error, "an answer broke off");
                    return Flushed::Broken;
                }
            }
            if self.end_answers(conn) {
                return Flushed::All;
            }
            if budget == 0 {
                return self.stalled(conn, Flushed::Yield);
            }
            match self.seal_some(conn, budget) {
                Ok(SocketSendOutcome::Bytes(text_bytes)) => {
                    budget = budget.saturating_sub(text_bytes);
                    self.bulk.count(text_bytes);
                    if let Err(error) = self.send_batch(conn) {
                        tracing::debug!(%error, "an answer broke off");
                        return Flushed::Broken;
                    }
                }
                Ok(SocketSendOutcome::MustFetch) => {
                    conn.core.wait_for_source();
                    return self.stalled(conn, Flushed::Fetching);
                }
                Ok(SocketSendOutcome::SourceBroke(reason)) => return break_off(conn, reason),
                Err(error) => {
                    tracing::debug!(%error, "an answer broke off");
                    return Flushed::Broken;
                }
            }
        }
    }

    /// Sends sealed bytes that the socket did not take before; false when some are left.
    fn send_held(&self, conn: &mut SocketConnection) -> Result<bool, Errno> {
        if !conn.has_sealed() {
            return Ok(true);
        }
        let before = conn.secure.as_ref().map_or(0, |s| s.outbound_bytes());
        let sent = conn.send_sealed();
        let after = conn.secure.as_ref().map_or(0, |s| s.outbound_bytes());
        if after < before {
            self.note_sent(conn);
        }
        sent
    }

    /// Gives the batch to the socket; what it does not take is held by the connection.
    fn send_batch(&mut self, conn: &mut SocketConnection) -> Result<(), Errno> {
        let sealed = &self.batch.bytes[..self.batch.len];
        if sealed.is_empty() {
            return Ok(());
        }
        let count = loop {
            match rustix::net::send(&conn.socket, sealed, SendFlags::NOSIGNAL) {
                Ok(count) => break count,
                Err(Errno::AGAIN) => break 0,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        };
        if count > 0 {
            self.note_sent(conn);
        }
        if let (Some(secure), true) = (&mut conn.secure, count < sealed.len()) {
            secure.hold(&sealed[count..]);
        }
        self.batch.len = 0;
        Ok(())
    }

    /// Seals a batch of what is to leave.
    fn seal_some(
        &mut self,
        conn: &mut SocketConnection,
        budget: usize,
    ) -> io::Result<SocketSendOutcome> {
        if conn.out.fetch.is_some() {
            return self.take_fetched(conn);
        }
        let is_last = ends_with_this(conn);
        let Some(secure) = &mut conn.secure else {
            return Ok(SocketSendOutcome::Bytes(0));
        };
        self.batch.begin();
        let text_max = budget.min(SEAL_BYTES_PER_CALL);
        let mut text_bytes = 0;
        let mut stop = None;
        let mut output = &self.output[..];
        while text_bytes < text_max && stop.is_none() {
            let waiting = waiting_bytes(output, &conn.out);
            if waiting == 0 {
                pop_spent(&mut conn.out);
                break;
            }
            let room = secure.record_room(waiting, self.turn.now_ms);
            let sealed = self
                .batch
                .seal_one(secure, &mut output, &mut conn.out, room);
            match sealed {
                Ok(0) => break,
                Ok(count) => {
                    text_bytes += count;
                    secure.note_burst(count, self.turn.now_ms);
                }
                Err(reason) => stop = Some(reason),
            }
        }
        let used = self.output.len() - output.len();
        self.output.drain(..used);
        match stop {
            Some(SealObstacle::MustFetch) if text_bytes == 0 => return self.begin_fetch(conn),
            Some(SealObstacle::Broke(reason)) if text_bytes == 0 => {
                return Ok(SocketSendOutcome::SourceBroke(reason));
            }
            Some(SealObstacle::NoKey) => return Err(io::Error::other("its TLS key is used up")),
            _ => {}
        }
        if is_last && waiting_bytes(&self.output, &conn.out) == 0 {
            self.batch.push_end(secure);
        }
        Ok(SocketSendOutcome::Bytes(text_bytes))
    }
}

/// Why no record could be filled.
enum SealObstacle {
    /// A file's bytes are not in memory.
    MustFetch,
    /// A file does not give what it promised.
    Broke(&'static str),
    /// The session can seal no more.
    NoKey,
}

impl Batch {
    fn begin(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = vec![0; BATCH_BYTES_MAX];
        }
        self.len = 0;
        self.resident_until = 0;
    }

    /// Adds one record with at most `room` bytes of text. Returns how many it has.
    fn seal_one(
        &mut self,
        secure: &mut Secure,
        output: &mut &[u8],
        out: &mut Outgoing,
        room: usize,
    ) -> Result<usize, SealObstacle> {
        let Some((session, held)) = secure.session() else {
            return Err(SealObstacle::NoKey);
        };
        if self.len > 0 && session.is_key_worn() {
            // What is sealed with the old key leaves before it changes.
            return Ok(0);
        }
        let Some(key) = session.sealer(held) else {
            return Err(SealObstacle::NoKey);
        };
        if !held.is_empty() {
            // A change of keys leaves first.
            return Ok(0);
        }
        let rest = &mut self.bytes[self.len..];
        let large = match output.is_empty() {
            true => out.large_front(room),
            false => output.get(..room),
        };
        if let Some(text) = large {
            let record = &mut rest[..room + key.overhead()];
            key.seal_text(TlsContentType::Data, text, record);
            self.len += record.len();
            match output.is_empty() {
                true => out.consume(room),
                false => *output = &output[room..],
            }
            return Ok(room);
        }
        let text_at = key.text_at();
        let count = gather(
            output,
            out,
            &mut rest[text_at..text_at + room],
            &mut self.resident_until,
        )?;
        let record = &mut rest[..count + key.overhead()];
        key.seal(TlsContentType::Data, record);
        self.len += record.len();
        Ok(count)
    }

    /// Adds what says that nothing more comes.
    fn push_end(&mut self, secure: &mut Secure) {
        let Some((session, _)) = secure.session() else {
            return;
        };
        let mut end = Vec::new();
        session.push_end(&mut end);
        self.bytes[self.len..self.len + end.len()].copy_from_slice(&end);
        self.len += end.len();
    }
}

impl Secure {
    /// How much text the next record may have, of so much that is ready. What fits into one record
    /// is one.
    fn record_room(&mut self, waiting: u64, now_ms: u64) -> usize {
        if now_ms.saturating_sub(self.burst_ms) >= SMALL_AFTER_MS {
            self.burst_bytes = 0;
            self.burst_ms = now_ms;
        }
        let is_small = waiting > TEXT_BYTES_MAX as u64 && self.burst_bytes < SMALL_RECORDS_BYTES;
        let room = match is_small {
            true => SMALL_RECORD_BYTES,
            false => TEXT_BYTES_MAX,
        };
        room.min(usize::try_from(waiting).unwrap_or(usize::MAX))
    }

    fn note_burst(&mut self, text_bytes: usize, now_ms: u64) {
        let text_bytes = u32::try_from(text_bytes).unwrap_or(u32::MAX);
        self.burst_bytes = self.burst_bytes.saturating_add(text_bytes);
        self.burst_ms = now_ms;
    }
}

impl Outgoing {
    /// The bytes in memory at the front, if they fill a record.
    fn large_front(&self, room: usize) -> Option<&[u8]> {
        let bytes = match self.pieces.front()? {
            OutputPiece::Own(bytes, from) => &bytes[*from..],
            OutputPiece::Shared(bytes) => &bytes[..],
            _ => return None,
        };
        bytes.get(..room)
    }
}

/// Bytes that can leave before the next end of an answer.
fn waiting_bytes(output: &[u8], out: &Outgoing) -> u64 {
    let pieces = out.pieces.iter();
    let until_end = pieces.take_while(|piece| !matches!(piece, OutputPiece::End(_)));
    output.len() as u64 + until_end.map(OutputPiece::unsent_bytes).sum::<u64>()
}

/// This is the last the client gets, and it is whole.
fn ends_with_this(conn: &SocketConnection) -> bool {
    matches!(
        conn.stage,
        ConnectionStage::Flushing(AfterAnswer::Close | AfterAnswer::Linger)
    ) && !conn.must_reset
}

/// Takes bytes in order until `room` is full or nothing more is ready; returns how many.
fn gather(
    output: &mut &[u8],
    out: &mut Outgoing,
    room: &mut [u8],
    resident_until: &mut u64,
) -> Result<usize, SealObstacle> {
    let mut filled = copy_front(output, room);
    *output = &output[filled..];
    while filled < room.len() {
        pop_spent(out);
        let room = &mut room[filled..];
        let taken = match out.pieces.front_mut() {
            Some(OutputPiece::Own(bytes, from)) => copy_front(&bytes[*from..], room),
            Some(OutputPiece::Shared(bytes)) => copy_front(bytes, room),
            Some(OutputPiece::Region(region, from)) => {
                let count = (region.raw().1 - *from).min(room.len());
                raw::copy_region_into(region.as_ref(), *from, &mut room[..count]);
                *from += count;
                out.held_bytes -= count;
                filled += count;
                continue;
            }
            Some(OutputPiece::File(file)) => match read_resident(file, room, resident_until) {
                Ok(count) => {
                    filled += count;
                    continue;
                }
                Err(_) if filled > 0 => break,
                Err(stop) => return Err(stop),
            },
            // No pipe stands before what is to be sealed.
            Some(OutputPiece::Piped(_) | OutputPiece::End(_)) | None => break,
        };
        out.consume(taken);
        filled += taken;
    }
    pop_spent(out);
    Ok(filled)
}

fn copy_front(bytes: &[u8], room: &mut [u8]) -> usize {
    let count = bytes.len().min(room.len());
    room[..count].copy_from_slice(&bytes[..count]);
    count
}

/// Drops pieces that have given all their bytes.
fn pop_spent(out: &mut Outgoing) {
    while let Some(piece) = out.pieces.front() {
        let is_spent = !matches!(piece, OutputPiece::End(_)) && piece.unsent_bytes() == 0;
        if !is_spent {
            return;
        }
        out.pop();
    }
}

/// Reads bytes of a file that are in memory.
fn read_resident(
    file: &mut FileBody,
    room: &mut [u8],
    resident_until: &mut u64,
) -> Result<usize, SealObstacle> {
    if *resident_until <= file.offset {
        // Asked once for many records: asking costs as much as reading a few.
        let wanted = file.len.min(BULK_BYTES_PER_TURN as u64);
        let resident = file.source.resident(file.offset, wanted).min(wanted);
        *resident_until = file.offset + resident;
    }
    let resident = (*resident_until - file.offset).min(file.len);
    if resident == 0 {
        return Err(SealObstacle::MustFetch);
    }
    let count = resident.min(room.len() as u64) as usize;
    let mut slices = [IoSliceMut::new(&mut room[..count])];
    let flags = ReadWriteFlags::NOWAIT;
    match rustix::io::preadv2(file.source.fd(), &mut slices, file.offset, flags) {
        Ok(0) => Err(SealObstacle::Broke(SHORTER)),
        Ok(count) => {
            file.take_resident(count).map_err(SealObstacle::Broke)?;
            if file.len == 0 {
                // What comes next is another file.
                *resident_until = 0;
            }
            Ok(count)
        }
        Err(Errno::IO) => Err(SealObstacle::Broke(UNREADABLE)),
        // It has left memory meanwhile, or its file system cannot say.
        Err(_) => Err(SealObstacle::MustFetch),
    }
}
