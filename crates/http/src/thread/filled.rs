//! Bodies that come out of another socket: moved into a pipe, and from there to the client, inside
//! the kernel.

use std::os::fd::BorrowedFd;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::body::{BodyError, BodyStream, Chunk};
use crate::limits::SPLICED_BYTES_MIN;
use crate::request::Request;
use crate::response::Responder;
use crate::splice_pipe::{SplicePipe, SplicePipes};
use crate::thread::conn::{ConnectionStage, SocketConnection};
use crate::thread::pipe::Splicing;
use crate::thread::run::Thread;

/// A body that fills a pipe of the thread.
pub(crate) struct FilledBody {
    pipe: SplicePipe,
    body: Box<dyn BodyStream>,
    /// Bytes that are still to come out of the source.
    left: u64,
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
        let taken = len.map(|len| (len, SplicePipes::take(&self.splice_pipes)));
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
            pipe,
            left: len.saturating_sub(first.len() as u64),
            body,
        };
        if !self.queue_chunk(conn, &request, Chunk::Bytes(first)) {
            return self.end_answer(conn, request, None);
        }
        conn.request = Some(request);
        conn.stage = ConnectionStage::Pipe(Box::new(Splicing::filled(filled)));
    }
}

impl FilledBody {
    /// The pipe's reading end.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.reader()
    }

    /// So many bytes were taken out of the pipe.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.pipe.took(bytes);
    }

    /// Moves at most so many bytes into the pipe, which is empty; none at the end.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<usize, BodyError>> {
        let room = self.left.min(max as u64) as usize;
        let Some(writer) = self.pipe.writer().filter(|_| room > 0) else {
            return Poll::Ready(Ok(0));
        };
        let filled = self.body.poll_fill(cx, writer, room);
        if let Poll::Ready(Ok(count)) = filled {
            self.pipe.filled(count);
            self.left -= count as u64;
        }
        filled
    }
}
