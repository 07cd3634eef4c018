//! Bodies of answers that come bit by bit: streams, tunnels, pipes. Never more is taken than a
//! window ahead of the client.

use std::task::{Context, Poll};

use bytes::Bytes;
use hob_trace::Fault;
use rustix::io::Errno;

use crate::body::{BodyError, Chunk};
use crate::limits::OUT_WINDOW_BYTES;
use crate::response::Answer;
use crate::thread::conn::{Conn, Stage};
use crate::thread::drive::Step;
use crate::thread::pump::Pumped;
use crate::thread::run::Thread;

/// Bytes read from a pipe at a time.
const PIPE_BYTES: usize = 64 * 1024;

impl<A: Answer + 'static> Thread<A> {
    /// Takes chunks from a body as long as the client keeps up.
    pub(crate) fn pull(&mut self, conn: &mut Conn) -> Step {
        let waker = self.waker_of(conn);
        let Some(request) = conn.request.clone() else {
            return Step::Close;
        };
        let mut cx = Context::from_waker(&waker);
        while conn.out.held_bytes + self.output.len() < OUT_WINDOW_BYTES {
            let Stage::Stream(body) = &mut conn.stage else {
                return Step::Again;
            };
            match body.poll_chunk(&mut cx, OUT_WINDOW_BYTES / 4) {
                Poll::Ready(Some(Ok(chunk))) => {
                    let is_file = matches!(chunk, Chunk::File(_));
                    if !self.queue_chunk(conn, &request, chunk) {
                        conn.request = None;
                        self.end_answer(conn, request, None);
                        return Step::Again;
                    }
                    if is_file {
                        return Step::Again;
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    let (fault, reason) = fault_of(error);
                    self.break_answer(conn, &request, fault, reason);
                    return Step::Again;
                }
                Poll::Ready(None) => {
                    let trailers = body.trailers();
                    conn.request = None;
                    self.end_answer(conn, request, trailers.as_ref());
                    return Step::Again;
                }
                Poll::Pending => return self.pump_beside(conn),
            }
        }
        Step::Again
    }

    /// The request's body may still be coming in while the answer's goes out.
    fn pump_beside(&mut self, conn: &mut Conn) -> Step {
        match self.pump(conn) {
            Pumped::Something => Step::Again,
            Pumped::Nothing => Step::Wait,
            Pumped::Broken => Step::Close,
        }
    }

    /// Takes what has come out of a pipe.
    pub(crate) fn pull_pipe(&mut self, conn: &mut Conn) -> Step {
        let Some(request) = conn.request.clone() else {
            return Step::Close;
        };
        let Stage::Pipe { fd, left } = &mut conn.stage else {
            return Step::Again;
        };
        let room = left.map_or(PIPE_BYTES, |left| left.min(PIPE_BYTES as u64) as usize);
        let mut bytes = Vec::with_capacity(room);
        let got = if room == 0 {
            Ok(0)
        } else {
            rustix::io::read(&*fd, rustix::buffer::spare_capacity(&mut bytes))
        };
        match got {
            Ok(0) => {
                conn.request = None;
                self.end_answer(conn, request, None);
                Step::Again
            }
            Ok(count) => {
                if let Some(left) = left {
                    *left -= count as u64;
                }
                if !self.queue_chunk(conn, &request, Chunk::Bytes(Bytes::from(bytes))) {
                    conn.request = None;
                    self.end_answer(conn, request, None);
                }
                Step::Again
            }
            Err(Errno::INTR) => Step::Again,
            Err(Errno::AGAIN) => self.pump_beside(conn),
            Err(_) => {
                self.break_answer(conn, &request, Fault::Script, "the pipe could not be read");
                Step::Again
            }
        }
    }
}

fn fault_of(error: BodyError) -> (Fault, &'static str) {
    match error {
        BodyError::Source(fault, reason) => (fault, reason),
        BodyError::Malformed(reason) => (Fault::Client, reason),
        BodyError::TooLarge => (Fault::Client, "the request body is larger than its limit"),
        BodyError::TooSlow => (Fault::Client, "the client stopped sending its request body"),
        BodyError::ClientLeft => (Fault::Client, "the client left within its request body"),
    }
}
