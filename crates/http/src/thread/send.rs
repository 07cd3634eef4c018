//! Bytes to the kernel, in order: what was made in this turn first, then what is queued.

use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll};

use hob_trace::{Fault, Outcome};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::body::{SHORTER, UNREADABLE};
use crate::clock::clock_us;
use crate::limits::{BULK_BYTES_OVER, BULK_BYTES_PER_TURN};
use crate::raw::Gathered;
use crate::request::Request;
use crate::response::Responder;
use crate::thread::conn::{OutputPiece, SocketConnection};
use crate::thread::exchange::note_end;
use crate::thread::run::Thread;

/// How sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Everything was handed to the kernel.
    All,
    /// The socket takes no more for now.
    Blocked,
    /// A file's bytes are being fetched from the disk.
    Fetching,
    /// The budget of this turn is used up.
    Yield,
    /// The client is gone, or the source of the bytes broke.
    Broken,
}

/// What one call did.
pub(super) enum SocketSendOutcome {
    Bytes(usize),
    MustFetch,
    /// The file does not give what it promised.
    SourceBroke(&'static str),
}

/// Bytes fetched from a disk at a time.
const FETCH_BYTES: usize = 256 * 1024;

impl<A: Responder + 'static> Thread<A> {
    /// Sends `output`, then the queue of the connection.
    pub(crate) fn flush(&mut self, conn: &mut SocketConnection) -> Flushed {
        if conn.secure.is_some() {
            return self.flush_sealed(conn);
        }
        if conn.out.is_empty() {
            return self.flush_output(conn);
        }
        let mut budget = BULK_BYTES_PER_TURN;
        loop {
            if self.end_answers(conn) {
                return Flushed::All;
            }
            if budget == 0 {
                return self.stalled(conn, Flushed::Yield);
            }
            match self.send_some(conn, budget) {
                Ok(SocketSendOutcome::Bytes(0)) => {}
                Ok(SocketSendOutcome::Bytes(count)) => {
                    self.note_sent(conn);
                    budget = budget.saturating_sub(count);
                    self.bulk.count(count);
                }
                Ok(SocketSendOutcome::MustFetch) => {
                    conn.core.wait_for_source();
                    return self.stalled(conn, Flushed::Fetching);
                }
                Ok(SocketSendOutcome::SourceBroke(reason)) => return break_off(conn, reason),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.note_blocked(conn);
                    return self.stalled(conn, Flushed::Blocked);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "an answer broke off");
                    return Flushed::Broken;
                }
            }
        }
    }

    /// Ends the answers whose bytes have all left; true when nothing is left at all.
    pub(super) fn end_answers(&mut self, conn: &mut SocketConnection) -> bool {
        if !self.output.is_empty() {
            return false;
        }
        while let Some(OutputPiece::End(_)) = conn.out.pieces.front() {
            if let Some(OutputPiece::End(request)) = conn.out.pop() {
                self.finishing.push(request);
            }
        }
        self.finish_all(&conn.socket);
        conn.out.is_empty()
    }

    /// The common case: everything fits into one call.
    fn flush_output(&mut self, conn: &mut SocketConnection) -> Flushed {
        while !self.output.is_empty() {
            match rustix::net::send(&conn.socket, &self.output, SendFlags::NOSIGNAL) {
                Ok(count) if count == self.output.len() => {
                    self.output.clear();
                    if conn.request.is_some() {
                        // This was the head, or a piece of more.
                        note_first_byte(conn);
                    }
                }
                Ok(count) => {
                    self.output.drain(..count);
                    self.note_sent(conn);
                }
                Err(Errno::AGAIN) => {
                    self.note_blocked(conn);
                    return self.stalled(conn, Flushed::Blocked);
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::debug!(%error, "an answer broke off");
                    return Flushed::Broken;
                }
            }
        }
        self.finish_all(&conn.socket);
        Flushed::All
    }

    /// Something stays behind: what this turn made goes into the connection's own queue.
    pub(super) fn stalled(&mut self, conn: &mut SocketConnection, how: Flushed) -> Flushed {
        for request in self.finishing.drain(..).rev() {
            conn.out.push_front(OutputPiece::End(request));
        }
        if !self.output.is_empty() {
            conn.out
                .push_front(OutputPiece::Own(self.output.as_slice().to_vec(), 0));
            self.output.clear();
        }
        how
    }

    /// One call's worth of bytes.
    fn send_some(
        &mut self,
        conn: &mut SocketConnection,
        budget: usize,
    ) -> io::Result<SocketSendOutcome> {
        let mut gathered = Gathered::new();
        if !self.output.is_empty() {
            gathered.push(&self.output);
        }
        let mut next = conn.out.pieces.iter().peekable();
        while let Some(piece) = next.peek() {
            let room = budget.saturating_sub(gathered.bytes());
            if gathered.is_full() || room == 0 {
                break;
            }
            match piece {
                OutputPiece::Own(bytes, from) => {
                    let bytes = &bytes[*from..];
                    gathered.push(&bytes[..bytes.len().min(room)]);
                }
                OutputPiece::Shared(bytes) => gathered.push(&bytes[..bytes.len().min(room)]),
                // Whole: it is given back once all of it has left.
                OutputPiece::Region(region, from) => gathered.push_region(region.as_ref(), *from),
                OutputPiece::File(_) | OutputPiece::Piped(_) | OutputPiece::End(_) => break,
            }
            next.next();
        }
        // If none follow, nothing may be announced: the kernel would hold the last segment back
        // for 200 ms (MSG_MORE).
        let more = matches!(
            next.peek(),
            Some(OutputPiece::File(_) | OutputPiece::Region(..))
        );
        if gathered.bytes() > 0 {
            let sent = gathered.send(conn.socket.as_fd(), more)?;
            let from_output = sent.min(self.output.len());
            if from_output == self.output.len() {
                self.output.clear();
            } else {
                self.output.drain(..from_output);
            }
            conn.out.consume(sent - from_output);
            return Ok(SocketSendOutcome::Bytes(sent));
        }
        match conn.out.pieces.front_mut() {
            Some(OutputPiece::File(_)) => self.send_file(conn, budget),
            Some(OutputPiece::Piped(pipe)) if !pipe.is_empty() => {
                Ok(SocketSendOutcome::Bytes(pipe.drain_into(&conn.socket)?))
            }
            Some(piece) if piece.is_spent() => {
                conn.out.pop();
                Ok(SocketSendOutcome::Bytes(0))
            }
            _ => Ok(SocketSendOutcome::Bytes(0)),
        }
    }

    /// Sends a piece of a file that is in memory, or has it fetched.
    fn send_file(
        &mut self,
        conn: &mut SocketConnection,
        budget: usize,
    ) -> io::Result<SocketSendOutcome> {
        if conn.out.fetch.is_some() {
            return self.take_fetched(conn);
        }
        let Some(OutputPiece::File(file)) = conn.out.pieces.front_mut() else {
            return Ok(SocketSendOutcome::Bytes(0));
        };
        // The last bytes of a file are not worth a turn of their own.
        let wanted = match file.len.saturating_sub(budget as u64) {
            0..=BULK_BYTES_OVER => file.len,
            _ => budget as u64,
        };
        let resident = file.source.resident(file.offset, wanted).min(wanted);
        if resident == 0 {
            let taken = self.begin_fetch(conn);
            if let Ok(SocketSendOutcome::MustFetch) = taken {
                // What was held back to travel with the file's bytes, the head above all, goes
                // ahead. Other kinds of sockets hold nothing back.
                let _ = rustix::net::sockopt::set_tcp_nodelay(&conn.socket, true);
            }
            return taken;
        }
        let mut offset = file.offset;
        let (fd, count) = (file.source.fd(), resident as usize);
        let sent = match rustix::fs::sendfile(&conn.socket, fd, Some(&mut offset), count) {
            Ok(0) => return Ok(SocketSendOutcome::SourceBroke(SHORTER)),
            Ok(sent) => sent,
            Err(Errno::IO) => return Ok(SocketSendOutcome::SourceBroke(UNREADABLE)),
            Err(error) => return Err(error.into()),
        };
        file.offset += sent as u64;
        file.len -= sent as u64;
        if file.len == 0 {
            conn.out.pop();
        }
        Ok(SocketSendOutcome::Bytes(sent))
    }

    /// Has bytes of the file at the front read elsewhere.
    pub(super) fn begin_fetch(
        &mut self,
        conn: &mut SocketConnection,
    ) -> io::Result<SocketSendOutcome> {
        if let Some(OutputPiece::File(file)) = conn.out.pieces.front() {
            let len = file.len.min(FETCH_BYTES as u64) as usize;
            conn.out.fetch = Some(file.source.fetch(file.offset, len));
        }
        self.take_fetched(conn)
    }

    /// Takes bytes that were read elsewhere and puts them before the rest of their file.
    pub(super) fn take_fetched(
        &mut self,
        conn: &mut SocketConnection,
    ) -> io::Result<SocketSendOutcome> {
        let waker = self.waker_of(conn);
        let Some(fetch) = &mut conn.out.fetch else {
            return Ok(SocketSendOutcome::MustFetch);
        };
        let bytes = match fetch.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => return Ok(SocketSendOutcome::MustFetch),
            Poll::Ready(result) => result,
        };
        conn.out.fetch = None;
        let bytes = match bytes {
            Ok(bytes) if bytes.is_empty() => return Ok(SocketSendOutcome::SourceBroke(SHORTER)),
            Ok(bytes) => bytes,
            Err(error) => {
                hob_trace::warn_seldom!(%error, "a file could not be read");
                return Ok(SocketSendOutcome::SourceBroke(UNREADABLE));
            }
        };
        let Some(OutputPiece::File(file)) = conn.out.pieces.front_mut() else {
            return Ok(SocketSendOutcome::Bytes(0));
        };
        let count = (bytes.len() as u64).min(file.len);
        file.offset += count;
        file.len -= count;
        let is_spent = file.len == 0;
        if is_spent {
            conn.out.pop();
        }
        conn.out
            .push_front(OutputPiece::Shared(bytes.slice(..count as usize)));
        Ok(SocketSendOutcome::Bytes(0))
    }
}

/// The answer whose bytes are leaving.
fn sending(conn: &SocketConnection) -> Option<&Request> {
    let mut queued = conn.out.pieces.iter().filter_map(|piece| match piece {
        OutputPiece::End(request) => Some(request),
        _ => None,
    });
    queued.next().or(conn.request.as_ref())
}

pub(super) fn note_first_byte(conn: &SocketConnection) {
    if let Some(request) = sending(conn) {
        if request.exchange.head_until.get() != 0 {
            // Answers of several requests stand in the queue: who made them knows whose bytes left.
            return;
        }
        let mut record = request.record_mut();
        if record.first_byte_us == 0 && record.status != 0 {
            let now_us = clock_us();
            record.first_byte_us = now_us.saturating_sub(record.started_us).max(1);
        }
    }
}

/// What an answer's bytes come from has failed: the answer ends so that its client can tell.
pub(super) fn break_off(conn: &mut SocketConnection, reason: &'static str) -> Flushed {
    if let Some(request) = sending(conn) {
        note_end(request, Outcome::Broken, Fault::Server, reason);
    }
    if conn.core.ends_by_close() {
        conn.close_with_reset();
    }
    Flushed::Broken
}
