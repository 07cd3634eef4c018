//! Bodies that come out of another socket: moved into a pipe, and from there to the client, inside
//! the kernel.
//!
//! The pipe is empty whenever it is filled: a fill that gives nothing means an empty source.
//! Pipes are used again. A thread has a limited number of them: the kernel allows one user some
//! thousand, and makes later ones tiny. Who gets none copies.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rustix::pipe::PipeFlags;

use crate::body::{BodyError, BodyStream, Chunk};
use crate::limits::{
    SPLICE_PIPE_BYTES, SPLICE_PIPES_IDLE_MAX, SPLICE_PIPES_MAX, SPLICED_BYTES_MIN,
};
use crate::request::Request;
use crate::response::Responder;
use crate::thread::conn::{ConnectionStage, SocketConnection};
use crate::thread::pipe::Splicing;
use crate::thread::run::Thread;

/// The pipes of a thread for such bodies.
#[derive(Default)]
pub(crate) struct FilledPipes {
    idle: RefCell<Vec<FilledPipe>>,
    taken_count: Cell<usize>,
}

struct FilledPipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

/// A body that fills a pipe of the thread.
pub(crate) struct FilledBody {
    /// `None` once it is given back.
    pipe: Option<FilledPipe>,
    pipes: Rc<FilledPipes>,
    body: Box<dyn BodyStream>,
    /// Bytes that are still to come out of the source.
    left: u64,
    /// Bytes in the pipe.
    held: usize,
}

impl<A: Responder + 'static> Thread<A> {
    /// Goes on with a body that comes bit by bit: by a pipe where it can fill one, and that is
    /// worth it.
    pub(crate) fn begin_body(
        &mut self,
        conn: &mut SocketConnection,
        request: Request,
        mut body: Box<dyn BodyStream>,
    ) {
        let len = body.len().filter(|len| *len > SPLICED_BYTES_MIN);
        let len = len.filter(|_| conn.secure.is_none() && body.may_fill());
        let taken = len.map(|len| (len, FilledPipes::take(&self.filled_pipes)));
        let (len, pipe) = match taken {
            Some((len, Some(pipe))) => (len, pipe),
            none => {
                if none.is_some() {
                    self.counters.limit_splice_pipes.add(1);
                }
                conn.stage = ConnectionStage::Stream(body);
                conn.request = Some(request);
                return;
            }
        };
        self.counters.spliced_answers.add(1);
        let first: Bytes = body.begin_filling();
        let filled = FilledBody {
            pipe: Some(pipe),
            pipes: Rc::clone(&self.filled_pipes),
            left: len.saturating_sub(first.len() as u64),
            body,
            held: 0,
        };
        if !self.queue_chunk(conn, &request, Chunk::Bytes(first)) {
            return self.end_answer(conn, request, None);
        }
        conn.request = Some(request);
        conn.stage = ConnectionStage::Pipe(Box::new(Splicing::filled(filled)));
    }
}

impl FilledPipes {
    fn take(pipes: &Rc<FilledPipes>) -> Option<FilledPipe> {
        if pipes.taken_count.get() >= SPLICE_PIPES_MAX {
            return None;
        }
        let idle = pipes.idle.borrow_mut().pop();
        let pipe = idle.or_else(FilledPipe::new)?;
        pipes.taken_count.set(pipes.taken_count.get() + 1);
        Some(pipe)
    }
}

impl FilledPipe {
    /// `None` where the system has none of a size that is worth it.
    fn new() -> Option<FilledPipe> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (reader, writer) = rustix::pipe::pipe_with(flags).ok()?;
        let size = rustix::pipe::fcntl_getpipe_size(&reader).ok()?;
        (size >= SPLICE_PIPE_BYTES).then_some(FilledPipe { reader, writer })
    }
}

impl FilledBody {
    /// The pipe's reading end.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(|pipe| pipe.reader.as_fd())
    }

    /// So many bytes were taken out of the pipe.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Moves at most so many bytes into the pipe, which is empty; none at the end.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<usize, BodyError>> {
        let room = self.left.min(max as u64) as usize;
        let Some(pipe) = self.pipe.as_ref().filter(|_| room > 0) else {
            return Poll::Ready(Ok(0));
        };
        debug_assert_eq!(self.held, 0, "what is in the pipe leaves first");
        let filled = self.body.poll_fill(cx, pipe.writer.as_fd(), room);
        if let Poll::Ready(Ok(count)) = filled {
            self.held += count;
            self.left -= count as u64;
        }
        filled
    }
}

impl Drop for FilledBody {
    fn drop(&mut self) {
        let pipes = &self.pipes;
        pipes.taken_count.set(pipes.taken_count.get() - 1);
        let mut idle = pipes.idle.borrow_mut();
        // One that holds bytes nobody will take is closed.
        let pipe = self.pipe.take().filter(|_| self.held == 0);
        if idle.len() < SPLICE_PIPES_IDLE_MAX {
            idle.extend(pipe);
        }
    }
}
