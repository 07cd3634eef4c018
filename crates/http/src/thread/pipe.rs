//! Bodies that come out of a pipe.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::body::{Chunk, PipeEnd};
use crate::pipe::Pipe;
use crate::request::Request;
use crate::response::Answer;
use crate::thread::conn::{Conn, Stage};
use crate::thread::drive::Step;
use crate::thread::pull::fault_of;
use crate::thread::run::Thread;

/// Bytes read from a pipe at a time.
const PIPE_BYTES: usize = 64 * 1024;

impl<A: Answer + 'static> Thread<A> {
    /// Sends what was read already, and goes on with the pipe.
    pub(crate) fn begin_pipe(
        &mut self,
        conn: &mut Conn,
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
            Ok(pipe) => conn.stage = Stage::Pipe(Box::new(pipe)),
            Err(error) => {
                let (fault, reason) = fault_of(error);
                self.break_answer(conn, &request, fault, reason);
            }
        }
    }

    /// Takes what has come out of a pipe.
    pub(crate) fn pull_pipe(&mut self, conn: &mut Conn) -> Step {
        let waker = self.waker_of(conn);
        let Some(request) = conn.request.clone() else {
            return Step::Close;
        };
        let Stage::Pipe(pipe) = &mut conn.stage else {
            return Step::Again;
        };
        match pipe.poll_bytes(&mut Context::from_waker(&waker), PIPE_BYTES) {
            Poll::Ready(Some(Ok(bytes))) => {
                if !self.queue_chunk(conn, &request, Chunk::Bytes(bytes)) {
                    conn.request = None;
                    self.end_answer(conn, request, None);
                }
                Step::Again
            }
            Poll::Ready(None) => {
                conn.request = None;
                self.end_answer(conn, request, None);
                Step::Again
            }
            Poll::Ready(Some(Err(error))) => {
                let (fault, reason) = fault_of(error);
                self.break_answer(conn, &request, fault, reason);
                Step::Again
            }
            Poll::Pending => self.pump_beside(conn),
        }
    }
}
