//! Bodies that come out of a pipe and go to the socket inside the kernel.
//!
//! ```text
//! little at a time: read, and sent with what else there is: a small answer leaves in one write
//! a full read:      from then on FIONREAD tells what is in the pipe; little is read as before,
//!                   more is announced (chunk size, MSG_MORE) and spliced
//! piece:            announced and still in the pipe
//! suffix:           ends a chunk; travels with the next one, or alone when the pipe is empty
//! ```
//!
//! What was announced is in the pipe, so a splice that gives EAGAIN means a full socket. Only then
//! is it the client's time that runs.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_trace::Outcome;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::pipe::SpliceFlags;

use crate::body::{BodyError, Chunk, PipeEnd};
use crate::limits::{
    BULK_BYTES_PER_TURN, COPY_BYTES_MAX, LARGE_PIPE_BYTES, LARGE_PIPES_MAX, PIPE_SMALL_BYTES,
};
use crate::pipe::Pipe;
use crate::request::Request;
use crate::response::Responder;
use crate::thread::conn::{ConnectionStage, SocketConnection};
use crate::thread::drive::DriveOutcome;
use crate::thread::ending::LONGER;
use crate::thread::filled::FilledBody;
use crate::thread::pull::fault_of;
use crate::thread::pump::Pumped;
use crate::thread::run::Thread;
use crate::thread::send::note_first_byte;

/// An answer's body on its way from a pipe to the socket.
pub(crate) struct Splicing {
    source: SpliceSource,
    /// Bytes announced to the client and still in the pipe.
    piece_bytes: usize,
    suffix_is_due: bool,
    /// A read found as much as it had room for: splicing pays.
    is_large: bool,
    taken_bytes: u64,
    /// One of the thread's large pipes, from the time on that it was to become one.
    large: Option<Option<Rc<()>>>,
}

/// What the bytes are in.
enum SpliceSource {
    /// A pipe that others fill.
    Pipe(Pipe),
    /// One that is filled here.
    Filled(FilledBody),
}

/// How moving bytes ended.
enum Moved {
    /// What is in `output` leaves first.
    Output,
    /// The socket takes no more for now.
    Blocked,
    /// The pipe is empty.
    Empty,
    /// The budget is used up.
    Yield,
    /// The body has ended.
    End,
    /// There is more than was announced.
    TooLong,
    Broken(BodyError),
    ClientLeft,
}

/// What is in a pipe.
enum PipeFill {
    /// So many bytes stand at the begin of `input`.
    Read(usize),
    /// So many bytes are there, to be spliced.
    Bytes(usize),
    Empty,
    End,
    Broken(BodyError),
}

impl<A: Responder + 'static> Thread<A> {
    /// Sends what was read already, and goes on with the pipe.
    pub(crate) fn begin_pipe(
        &mut self,
        conn: &mut SocketConnection,
        request: Request,
        first: Bytes,
        fd: OwnedFd,
        len: Option<u64>,
        end: Option<Rc<dyn PipeEnd>>,
    ) {
        let left = len.map(|len| len.saturating_sub(first.len() as u64));
        if !self.queue_chunk(conn, &request, Chunk::Bytes(first)) {
            return self.end_answer(conn, request, None);
        }
        conn.request = Some(request.clone());
        match Pipe::new(&self.reactor, fd, left, end) {
            Ok(pipe) => {
                let splicing = Splicing::of(SpliceSource::Pipe(pipe));
                conn.stage = ConnectionStage::Pipe(Box::new(splicing));
                // A small answer is often complete by now, and leaves with its head. While requests
                // are being read from `input` there is no room for it.
                if conn.out.is_empty() && !self.input.is_empty() {
                    self.move_on(conn);
                }
            }
            Err(error) => {
                let (fault, reason) = fault_of(error);
                self.break_answer(conn, &request, fault, reason);
            }
        }
    }

    /// Moves what has come out of a pipe. Long answers take their turns in the queue.
    pub(crate) fn pull_pipe(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        let ConnectionStage::Pipe(splicing) = &mut conn.stage else {
            return DriveOutcome::Again;
        };
        if splicing.taken_bytes >= BULK_BYTES_PER_TURN as u64 {
            splicing.enlarge(&self.large_pipes);
        }
        if splicing.taken_bytes >= PIPE_SMALL_BYTES as u64 && !self.bulk.is_round() {
            self.queue_bulk(conn);
            return DriveOutcome::Wait;
        }
        self.move_on(conn)
    }

    fn move_on(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        let waker = self.waker_of(conn);
        let Some(request) = conn.request.clone() else {
            return DriveOutcome::Close;
        };
        let ConnectionStage::Pipe(mut splicing) =
            std::mem::replace(&mut conn.stage, ConnectionStage::Lingering)
        else {
            return DriveOutcome::Close;
        };
        let mut cx = Context::from_waker(&waker);
        let moved = self.move_bytes(conn, &request, &mut splicing, &mut cx);
        if matches!(moved, Moved::Empty | Moved::End) && splicing.suffix_is_due {
            splicing.suffix_is_due = false;
            conn.core.push_data_suffix(&mut self.output);
        }
        conn.stage = ConnectionStage::Pipe(splicing);
        match moved {
            Moved::Output => return DriveOutcome::Again,
            Moved::Blocked => self.note_blocked(conn),
            Moved::Empty => conn.core.wait_for_source(),
            Moved::Yield => self.queue_bulk(conn),
            Moved::End => {
                conn.request = None;
                self.end_answer(conn, request, None);
                return DriveOutcome::Again;
            }
            Moved::TooLong => {
                let mut record = request.record_mut();
                record.outcome = Outcome::Broken;
                record.reason = Some(LONGER);
                drop(record);
                conn.request = None;
                self.end_answer(conn, request, None);
                return DriveOutcome::Again;
            }
            Moved::Broken(error) => {
                let (fault, reason) = fault_of(error);
                self.break_answer(conn, &request, fault, reason);
                return DriveOutcome::Again;
            }
            Moved::ClientLeft => return DriveOutcome::Close,
        }
        // The program behind the pipe may still read the request's body.
        match self.pump(conn) {
            Pumped::Broken => DriveOutcome::Close,
            Pumped::Something | Pumped::Nothing => DriveOutcome::Wait,
        }
    }

    /// Moves bytes until something stops it.
    fn move_bytes(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        splicing: &mut Splicing,
        cx: &mut Context<'_>,
    ) -> Moved {
        let mut budget = match self.bulk.is_round() {
            true => BULK_BYTES_PER_TURN,
            false => PIPE_SMALL_BYTES,
        };
        loop {
            if splicing.piece_bytes > 0 {
                match self.splice_piece(conn, request, splicing) {
                    Ok(count) => budget = budget.saturating_sub(count),
                    Err(moved) => return moved,
                }
                continue;
            }
            if budget == 0 {
                return Moved::Yield;
            }
            let (len, is_read) = match splicing.look_into(&mut self.input, budget, cx) {
                PipeFill::Read(count) => (count, true),
                PipeFill::Bytes(count) => (count, false),
                PipeFill::Empty => return Moved::Empty,
                PipeFill::End => return Moved::End,
                PipeFill::Broken(error) => return Moved::Broken(error),
            };
            if std::mem::take(&mut splicing.suffix_is_due) {
                conn.core.push_data_suffix(&mut self.output);
            }
            let framed = conn.core.push_data_prefix(len as u64, &mut self.output);
            if framed.is_none() {
                return Moved::TooLong;
            }
            if is_read {
                self.output.extend_from_slice(&self.input[..len]);
                splicing.suffix_is_due = true;
                splicing.count(len, request);
                budget = budget.saturating_sub(len);
            } else {
                splicing.piece_bytes = len;
            }
        }
    }

    /// Moves bytes of the piece that was announced from the pipe to the socket, behind what goes
    /// before it.
    fn splice_piece(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        splicing: &mut Splicing,
    ) -> Result<usize, Moved> {
        if !self.output.is_empty() {
            self.send_before_piece(conn)?;
        }
        let mut flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        if conn.core.is_chunked() {
            // The end of the chunk follows, whatever else does.
            flags |= SpliceFlags::MORE;
        }
        let room = splicing.piece_bytes;
        let Some(source) = splicing.source.fd() else {
            return Err(Moved::Broken(crate::pipe::UNREADABLE));
        };
        match rustix::pipe::splice(source, None, &conn.socket, None, room, flags) {
            Ok(0) | Err(Errno::INVAL) => Err(Moved::Broken(crate::pipe::UNREADABLE)),
            Ok(count) => {
                splicing.piece_bytes -= count;
                splicing.suffix_is_due = splicing.piece_bytes == 0;
                splicing.source.took(count);
                splicing.count(count, request);
                self.bulk.count(count);
                self.note_sent(conn);
                Ok(count)
            }
            Err(Errno::AGAIN) => Err(Moved::Blocked),
            Err(Errno::INTR) => Ok(0),
            Err(error) => {
                tracing::debug!(%error, "an answer broke off");
                Err(Moved::ClientLeft)
            }
        }
    }

    /// Sends `output`, which the piece follows at once.
    fn send_before_piece(&mut self, conn: &mut SocketConnection) -> Result<(), Moved> {
        let flags = SendFlags::NOSIGNAL | SendFlags::MORE;
        match rustix::net::send(&conn.socket, &self.output, flags) {
            Ok(count) if count == self.output.len() => {
                self.output.clear();
                note_first_byte(conn);
                self.finish_all(&conn.socket);
                Ok(())
            }
            Ok(count) => {
                self.output.drain(..count);
                note_first_byte(conn);
                Err(Moved::Output)
            }
            Err(Errno::AGAIN | Errno::INTR) => Err(Moved::Output),
            Err(error) => {
                tracing::debug!(%error, "an answer broke off");
                Err(Moved::ClientLeft)
            }
        }
    }
}

impl SpliceSource {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            SpliceSource::Pipe(pipe) => Some(pipe.source.fd()),
            SpliceSource::Filled(filled) => filled.fd(),
        }
    }

    /// So many bytes were taken out of it.
    fn took(&mut self, bytes: usize) {
        match self {
            SpliceSource::Pipe(pipe) => pipe.took(bytes),
            SpliceSource::Filled(filled) => filled.took(bytes),
        }
    }
}

impl Splicing {
    fn of(source: SpliceSource) -> Splicing {
        Splicing {
            source,
            piece_bytes: 0,
            suffix_is_due: false,
            is_large: false,
            taken_bytes: 0,
            large: None,
        }
    }

    /// Of a body that fills a pipe of the thread.
    pub(crate) fn filled(filled: FilledBody) -> Splicing {
        Splicing::of(SpliceSource::Filled(filled))
    }

    /// Looks what is in the pipe; a little of it is read into `input`.
    fn look_into(&mut self, input: &mut [u8], budget: usize, cx: &mut Context<'_>) -> PipeFill {
        let pipe = match &mut self.source {
            SpliceSource::Pipe(pipe) => pipe,
            SpliceSource::Filled(filled) => {
                return match filled.poll_fill(cx, budget) {
                    Poll::Ready(Ok(0)) => PipeFill::End,
                    Poll::Ready(Ok(count)) => PipeFill::Bytes(count),
                    Poll::Ready(Err(error)) => PipeFill::Broken(error),
                    Poll::Pending => PipeFill::Empty,
                };
            }
        };
        loop {
            let room = pipe.room(budget);
            if room == 0 {
                return PipeFill::End;
            }
            let input = &mut input[..room.min(COPY_BYTES_MAX)];
            let at_eof = match look_once(pipe, (input, &mut self.is_large), room, cx) {
                Ok(filled) => return filled,
                Err(at_eof) => at_eof,
            };
            match pipe.poll_end(cx, at_eof) {
                Poll::Ready(Ok(())) if at_eof => return PipeFill::End,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return PipeFill::Broken(error),
                Poll::Pending => return PipeFill::Empty,
            }
        }
    }

    /// Gives a long body a larger pipe: program and server wake each other less often (a third less
    /// CPU time for both, with writes of 64 KiB). The kernel lends a user only so much memory for
    /// pipes and makes later ones tiny, so a thread has a limited number of large ones.
    fn enlarge(&mut self, large_pipes: &Rc<()>) {
        let SpliceSource::Pipe(pipe) = &self.source else {
            return;
        };
        if self.large.is_some() {
            return;
        }
        let is_allowed = Rc::strong_count(large_pipes) <= LARGE_PIPES_MAX
            && rustix::pipe::fcntl_setpipe_size(pipe.source.fd(), LARGE_PIPE_BYTES).is_ok();
        self.large = Some(is_allowed.then(|| Rc::clone(large_pipes)));
    }

    /// Bytes of the body have been taken out of the pipe.
    fn count(&mut self, bytes: usize, request: &Request) {
        self.taken_bytes += bytes as u64;
        request.record_mut().body_bytes_out += bytes as u64;
    }
}

/// What is in the pipe, or, when nothing is, whether all writers have closed it.
fn look_once(
    pipe: &mut Pipe,
    (input, is_large): (&mut [u8], &mut bool),
    room: usize,
    cx: &mut Context<'_>,
) -> Result<PipeFill, bool> {
    if *is_large {
        match pipe.poll_filled(cx) {
            Poll::Ready(Ok(0)) => return Err(true),
            Poll::Ready(Ok(count)) if count > COPY_BYTES_MAX && room > COPY_BYTES_MAX => {
                return Ok(PipeFill::Bytes(count.min(room)));
            }
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => return Ok(PipeFill::Broken(error)),
            Poll::Pending => return Err(false),
        }
    }
    match pipe.source.poll_read(cx, input) {
        Poll::Ready(Ok(0)) => Err(true),
        Poll::Ready(Ok(count)) => {
            *is_large |= count == COPY_BYTES_MAX;
            pipe.took(count);
            Ok(PipeFill::Read(count))
        }
        Poll::Ready(Err(_)) => Ok(PipeFill::Broken(crate::pipe::UNREADABLE)),
        Poll::Pending => Err(false),
    }
}
