//! From a response to bytes in order: head, framing, body, and what comes after it.

use hob_trace::{Fault, Outcome};

use crate::Fields;
use crate::body::{Body, Chunk};
use crate::h1::{AfterAnswer, ResponseFraming};
use crate::limits::COPY_BYTES_MAX;
use crate::raw;
use crate::refusal::Refusal;
use crate::request::{HalfClose, Request};
use crate::response::{Responder, Response};
use crate::thread::conn::{ConnectionStage, OutputPiece, SocketConnection};
use crate::thread::ending::{LONGER, SHORTER};
use crate::thread::exchange::{note_end, note_fault};
use crate::thread::run::Thread;

impl<A: Responder + 'static> Thread<A> {
    /// Answers what the engine refused; the connection ends after it.
    pub(crate) fn refuse(
        &mut self,
        conn: &mut SocketConnection,
        request: Request,
        refusal: Refusal,
    ) {
        self.count_refusal(refusal);
        self.note_start(conn, &request);
        note_fault(&request, Fault::Client, refusal.reason);
        request.exchange.key.set(conn.key);
        let mut response = self.answer.refuse(&request, refusal.status);
        response.close = true;
        self.respond(conn, request, response);
    }

    /// Sends an answer's head and starts on its body.
    pub(crate) fn respond(
        &mut self,
        conn: &mut SocketConnection,
        request: Request,
        response: Response,
    ) {
        debug_assert!(conn.out.is_empty(), "an answer begins after the last one");
        if matches!(response.body, Body::Tunnel(_)) {
            return self.respond_tunnel(conn, request, response);
        }
        let Response {
            head, body, close, ..
        } = response;
        // A stream may still read the request's body, and so may the program behind a pipe; nobody
        // else will.
        let may_read = matches!(body, Body::Stream(_) | Body::Pipe { .. });
        let nobody_reads = !may_read && conn.core.rest_is_large();
        let close = close || nobody_reads || self.draining.is_some();
        let before = self.output.len();
        let status = head.status();
        let sending =
            conn.core
                .push_head(&head, body.len(), close, &self.turn.date, &mut self.output);
        {
            let mut record = request.record_mut();
            record.status = status;
            record.head_bytes_out = (self.output.len() - before) as u64;
        }
        if status >= 400 {
            self.answer.error_leaves(&request);
        }
        match (sending, body) {
            (ResponseFraming::Nothing, _) | (_, Body::Empty | Body::Tunnel(_)) => {
                self.end_answer(conn, request, None);
            }
            (_, Body::Bytes(bytes)) => self.respond_whole(conn, request, Chunk::Bytes(bytes)),
            (_, Body::Region(region)) => self.respond_whole(conn, request, Chunk::Region(region)),
            (_, Body::File(file)) => self.respond_whole(conn, request, Chunk::File(file)),
            (_, body @ Body::Pipe { .. }) if conn.secure.is_some() => {
                conn.stage = ConnectionStage::Stream(body.into_stream());
                conn.request = Some(request);
                // A small answer is often complete by now, and leaves with its head. While requests
                // are being read from `input` the request's body cannot be.
                if !self.input.is_empty() {
                    self.pull(conn);
                }
            }
            (
                _,
                Body::Pipe {
                    first,
                    fd,
                    len,
                    end,
                },
            ) => self.begin_pipe(conn, request, first, fd, len, end),
            (_, Body::Stream(body)) => self.begin_body(conn, request, body),
        }
    }

    /// Raw bytes both ways from here on, if the request has been read to its end.
    fn respond_tunnel(
        &mut self,
        conn: &mut SocketConnection,
        request: Request,
        response: Response,
    ) {
        if conn.core.body_is_open() {
            note_fault(
                &request,
                Fault::Server,
                "a tunnel was opened before the request body was read",
            );
            let mut response = self.answer.refuse(&request, 500);
            if matches!(response.body, Body::Tunnel(_)) {
                response.body = Body::Empty;
            }
            return self.respond(conn, request, response);
        }
        let before = self.output.len();
        let status = response.status();
        let fields = response.fields();
        conn.core
            .push_tunnel_head(status, fields, &self.turn.date, &mut self.output);
        {
            let mut record = request.record_mut();
            record.status = status;
            record.head_bytes_out = (self.output.len() - before) as u64;
        }
        if status >= 400 {
            self.answer.error_leaves(&request);
        }
        request.exchange.body.borrow_mut().begin_tunnel();
        // FIN is the end of one direction, and nobody's leaving.
        request.set_half_close(HalfClose::Serve);
        if let Body::Tunnel(body) = response.body {
            conn.stage = ConnectionStage::Stream(body);
        }
        conn.request = Some(request);
    }

    fn respond_whole(&mut self, conn: &mut SocketConnection, request: Request, chunk: Chunk) {
        self.queue_chunk(conn, &request, chunk);
        self.end_answer(conn, request, None);
    }

    /// Queues a piece of body with its framing. What does not fit into the announced size is
    /// dropped, and false returned.
    pub(crate) fn queue_chunk(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        chunk: Chunk,
    ) -> bool {
        let len = chunk.len();
        if len == 0 {
            return true;
        }
        let framed = self.with_tail(conn, |core, tail| core.push_data_prefix(len, tail));
        let mut record = request.record_mut();
        if framed.is_none() {
            record.outcome = Outcome::Broken;
            record.reason = Some(LONGER);
            return false;
        }
        record.body_bytes_out += len;
        drop(record);
        match chunk {
            // Copied so that head and body leave in one plain write.
            Chunk::Bytes(bytes) if bytes.len() <= COPY_BYTES_MAX => {
                self.with_tail(conn, |_, tail| tail.extend_from_slice(&bytes));
            }
            Chunk::Bytes(bytes) => conn.out.push(OutputPiece::Shared(bytes)),
            Chunk::Region(region) if len <= COPY_BYTES_MAX as u64 => {
                self.with_tail(conn, |_, tail| {
                    raw::copy_region(region.as_ref(), 0, len as usize, tail)
                });
            }
            Chunk::Region(region) => conn.out.push(OutputPiece::Region(region, 0)),
            Chunk::File(file) => conn.out.push(OutputPiece::File(file)),
            // It has no bytes, and was seen to.
            Chunk::HalfClose => {}
        }
        self.with_tail(conn, |core, tail| core.push_data_suffix(tail));
        true
    }

    /// Runs `push` with the buffer that comes after everything queued.
    fn with_tail<R>(
        &mut self,
        conn: &mut SocketConnection,
        push: impl FnOnce(&mut crate::h1::Http1Connection, &mut Vec<u8>) -> R,
    ) -> R {
        if conn.out.is_empty() {
            push(&mut conn.core, &mut self.output)
        } else {
            conn.out.with_tail(|tail| push(&mut conn.core, tail))
        }
    }

    /// All of the answer is queued: what comes next, and the record ends when it has left.
    pub(crate) fn end_answer(
        &mut self,
        conn: &mut SocketConnection,
        request: Request,
        trailers: Option<&Fields>,
    ) {
        let is_whole = self.with_tail(conn, |core, tail| core.push_end(trailers, tail));
        let next = if is_whole {
            conn.core.finish()
        } else {
            let mut record = request.record_mut();
            record.outcome = Outcome::Broken;
            record.reason.get_or_insert(SHORTER);
            AfterAnswer::Close
        };
        self.queue_end(conn, request);
        conn.stage = match next {
            AfterAnswer::Request if conn.out.is_empty() => ConnectionStage::Reading,
            next => ConnectionStage::Flushing(next),
        };
    }

    /// Marks where the answer ends among the bytes on their way.
    fn queue_end(&mut self, conn: &mut SocketConnection, request: Request) {
        if conn.out.is_empty() {
            self.finishing.push(request);
        } else {
            conn.out.push(OutputPiece::End(request));
        }
    }

    /// The source of an answer's body broke: what there is leaves, then the connection ends so that
    /// the client sees that something is missing.
    //= rfc9112#8
    pub(crate) fn break_answer(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        fault: Fault,
        reason: &'static str,
    ) {
        note_end(request, Outcome::Broken, fault, reason);
        if conn.core.ends_by_close() {
            // Without framing only a reset tells a broken answer from a whole one.
            conn.close_with_reset();
        }
        if let Some(request) = conn.request.take() {
            self.queue_end(conn, request);
        }
        conn.stage = ConnectionStage::Flushing(AfterAnswer::Close);
    }
}
