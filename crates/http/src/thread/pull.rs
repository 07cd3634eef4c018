//! Bodies of answers that come bit by bit: streams and tunnels. Never more is taken than a
//! window ahead of the client.

use std::task::{Context, Poll};

use hob_trace::{Fault, TlsVersion};
use rustix::io::Errno;
use rustix::net::Shutdown;

use crate::body::{BodyError, Chunk};
use crate::limits::{OUT_WINDOW_BYTES, SPLICE_PIPE_BYTES};
use crate::request::Request;
use crate::response::Responder;
use crate::splice_pipe::SplicePipes;
use crate::thread::conn::{ConnectionStage, OutputEnd, OutputPiece, SocketConnection};
use crate::thread::drive::DriveOutcome;
use crate::thread::pump::Pumped;
use crate::thread::run::Thread;

impl<A: Responder + 'static> Thread<A> {
    /// Takes chunks from a body as long as the client keeps up.
    pub(crate) fn pull(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        let waker = self.waker_of(conn);
        let Some(request) = conn.request.clone() else {
            return DriveOutcome::Close;
        };
        // Whoever comes here has sent everything that was made.
        if conn.output_end == OutputEnd::Due && !conn.has_unsent() {
            return match conn.end_output() {
                Ok(()) => DriveOutcome::Again,
                Err(_) => DriveOutcome::Close,
            };
        }
        let mut cx = Context::from_waker(&waker);
        while conn.out.held_bytes + self.output.len() < OUT_WINDOW_BYTES {
            if let Some(outcome) = self.pull_into_pipe(conn, &request, &mut cx) {
                return outcome;
            }
            let ConnectionStage::Stream(body) = &mut conn.stage else {
                return DriveOutcome::Again;
            };
            match body.poll_chunk(&mut cx, OUT_WINDOW_BYTES / 4) {
                // TLS 1.2 knows no half: its client would close at once, and its own bytes be lost.
                // It hears of the end when the tunnel's has come.
                //= rfc5246#7.2.1
                Poll::Ready(Some(Ok(Chunk::HalfClose))) if is_tls12(&request) => {}
                Poll::Ready(Some(Ok(Chunk::HalfClose))) => {
                    conn.output_end = OutputEnd::Due;
                    return DriveOutcome::Again;
                }
                Poll::Ready(Some(Ok(chunk))) => {
                    let is_file = matches!(chunk, Chunk::File(_));
                    if !self.queue_chunk(conn, &request, chunk) {
                        conn.request = None;
                        self.end_answer(conn, request, None);
                        return DriveOutcome::Again;
                    }
                    if is_file {
                        return DriveOutcome::Again;
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    let (fault, reason) = fault_of(error);
                    self.break_answer(conn, &request, fault, reason);
                    return DriveOutcome::Again;
                }
                Poll::Ready(None) => {
                    let trailers = body.trailers();
                    conn.request = None;
                    self.end_answer(conn, request, trailers.as_ref());
                    return DriveOutcome::Again;
                }
                Poll::Pending => return self.pump_beside(conn),
            }
        }
        DriveOutcome::Again
    }

    /// Moves what comes next of a tunnel into a pipe. `None` where it is to come as a chunk.
    fn pull_into_pipe(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> Option<DriveOutcome> {
        let ConnectionStage::Stream(body) = &mut conn.stage else {
            return None;
        };
        if conn.secure.is_some() || !body.fills_next() {
            return None;
        }
        let Some(mut pipe) = SplicePipes::take(&self.splice_pipes) else {
            self.note_lack_of_pipes(request);
            return None;
        };
        match body.poll_fill(cx, pipe.writer()?, SPLICE_PIPE_BYTES) {
            Poll::Ready(Ok(0)) => None,
            Poll::Ready(Ok(count)) => {
                pipe.filled(count);
                request.record_mut().body_bytes_out += count as u64;
                self.note_piped(request);
                conn.out.push(OutputPiece::Piped(pipe));
                Some(DriveOutcome::Again)
            }
            Poll::Ready(Err(error)) => {
                let (fault, reason) = fault_of(error);
                self.break_answer(conn, request, fault, reason);
                Some(DriveOutcome::Again)
            }
            Poll::Pending => {
                // Who waits holds none.
                drop(pipe);
                Some(self.pump_beside(conn))
            }
        }
    }

    /// The request's body may still be coming in while the answer's goes out.
    pub(super) fn pump_beside(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        match self.pump(conn) {
            Pumped::Something => DriveOutcome::Again,
            Pumped::Nothing => DriveOutcome::Wait,
            Pumped::Broken => DriveOutcome::Close,
        }
    }
}

impl SocketConnection {
    /// Ends our direction of a tunnel: over TLS by its own word, in clear text by FIN. The socket
    /// goes on giving what the client sends.
    //= rfc8446#6.1
    fn end_output(&mut self) -> Result<(), Errno> {
        self.output_end = OutputEnd::Told;
        if self.secure.is_some() {
            self.end_session();
            return Ok(());
        }
        rustix::net::shutdown(&self.socket, Shutdown::Write)
    }
}

fn is_tls12(request: &Request) -> bool {
    let tls = request.facts().tls.as_ref();
    tls.is_some_and(|tls| tls.version == TlsVersion::Tls12)
}

pub(super) fn fault_of(error: BodyError) -> (Fault, &'static str) {
    match error {
        BodyError::Source(fault, reason) => (fault, reason),
        BodyError::Malformed(reason) => (Fault::Client, reason),
        BodyError::TooLarge => (Fault::Client, "the request body is larger than its limit"),
        BodyError::TooSlow => (Fault::Client, "the client stopped sending its request body"),
        BodyError::ClientLeft => (Fault::Client, "the client left within its request body"),
    }
}
