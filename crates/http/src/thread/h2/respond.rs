//! Answers: heads at once, bodies in the order of their urgency.

use std::sync::Arc;
use std::task::{Context, Poll};

use hob_trace::{Fault, Outcome};

use crate::body::Body;
use crate::date::DateLine;
use crate::h2::frame::{HEADER_BYTES, PAYLOAD_BYTES};
use crate::h2::{AfterHead, Http2ErrorCode, StreamSendTurn};
use crate::head::Fields;
use crate::reactor::wake::KeyWaker;
use crate::request::Request;
use crate::response::{Responder, ResponseHead};
use crate::thread::conn::SocketConnection;
use crate::thread::ending::{LONGER, SHORTER};
use crate::thread::exchange::{
    Follows, MultiplexedConnection, ReceivingRequest, ResponseEnd, note_end,
};
use crate::thread::h2::Http2ServerSession;
use crate::thread::h2::stream::Http2RequestStream;
use crate::thread::pull::fault_of;
use crate::thread::run::Thread;
use crate::thread::source::{Gave, OutgoingBody};
use crate::thread::work::Work;

impl<A: Responder + 'static> Thread<A> {
    pub(super) fn key_waker(&self, conn: &mut SocketConnection) -> Arc<KeyWaker> {
        let waker = conn
            .waker
            .get_or_insert_with(|| KeyWaker::new(self.mailbox.clone(), conn.key));
        Arc::clone(waker)
    }

    /// A stream's turn to send: a frame's worth of its body.
    pub(super) fn send_turn(
        &mut self,
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
        at: usize,
        turn: StreamSendTurn,
    ) {
        let stream = &mut session.streams[at];
        stream.end_wait(self.turn.now_us);
        let waker = stream.waker(&self.key_waker(conn));
        let Work::Body(source) = &mut stream.work else {
            session.core.set_ready(turn.stream, false);
            return;
        };
        // The frame's header is written when it is known how much there is.
        let start = self.output.len();
        self.output.resize(start + HEADER_BYTES, 0);
        let mut cx = Context::from_waker(&waker);
        let polled = source.poll_into(
            &mut cx,
            turn.bytes_max,
            Some(&mut session.tiny),
            &mut self.output,
        );
        session.core.set_may_end(turn.stream, source.may_end());
        let held_count = session.tiny.take_held_count();
        self.counters.h2_tiny_data_held.add(held_count);
        let gave = match polled {
            Poll::Ready(Ok(Gave::Bytes(0))) => return self.output.truncate(start),
            Poll::Ready(Ok(Gave::Bytes(count))) => {
                return self.frame_piece(session, at, start, count);
            }
            Poll::Ready(gave) => gave,
            Poll::Pending => {
                self.output.truncate(start);
                session.core.set_ready(turn.stream, false);
                // It may wait for the request's body.
                self.look_at_body(session, at);
                return;
            }
        };
        self.output.truncate(start);
        if matches!(gave, Ok(Gave::HalfClose)) {
            return self.half_close_stream(session, at);
        }
        let stream = session.streams.swap_remove(at);
        let (request, id) = (stream.request.clone(), stream.id);
        drop(stream);
        match gave {
            Ok(Gave::End(trailers)) => {
                session.end_answer(self, id, request, ResponseEnd::Body(trailers.as_ref()));
            }
            Ok(Gave::Bytes(_) | Gave::HalfClose) => {}
            Err(error) => {
                let (fault, reason) = fault_of(error);
                session.break_answer(self, id, request, fault, reason);
            }
        }
    }

    /// No more bytes of a tunnel go to the client, which may still send.
    fn half_close_stream(&mut self, session: &mut Http2ServerSession, at: usize) {
        let stream = session.streams.swap_remove(at);
        session.core.push_half_close(stream.id, &mut self.output);
        session.streams.push(stream.half_closed());
    }

    /// Looks whether a tunnel whose client gets no more bytes has come to its end; true when it
    /// has.
    pub(super) fn look_at_half_closed(
        &mut self,
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
        at: usize,
    ) -> bool {
        let stream = &mut session.streams[at];
        if !matches!(stream.work, Work::HalfClosed(_)) {
            return false;
        }
        let waker = stream.waker(&self.key_waker(conn));
        let Work::HalfClosed(source) = &mut stream.work else {
            return false;
        };
        let mut cx = Context::from_waker(&waker);
        let Poll::Ready(gave) = source.poll_into(&mut cx, PAYLOAD_BYTES, None, &mut Vec::new())
        else {
            return false;
        };
        let stream = session.streams.swap_remove(at);
        let (request, id) = (stream.request.clone(), stream.id);
        drop(stream);
        match gave {
            Ok(Gave::End(_)) => {
                session.core.end_half_closed(id, &mut self.output);
                self.finishing.push(request);
            }
            Ok(Gave::Bytes(_) | Gave::HalfClose) => {
                session.break_answer(self, id, request, Fault::Server, LONGER);
            }
            Err(error) => {
                let (fault, reason) = fault_of(error);
                session.break_answer(self, id, request, fault, reason);
            }
        }
        true
    }

    /// Writes the header of a frame whose `len` bytes stand behind it already.
    fn frame_piece(
        &mut self,
        session: &mut Http2ServerSession,
        at: usize,
        start: usize,
        len: usize,
    ) {
        let stream = &mut session.streams[at];
        let id = stream.id;
        stream.write_by_ms = u64::MAX;
        session.write_by_ms = u64::MAX;
        match session.core.frame_data(id, start, len, &mut self.output) {
            Some(sending) => {
                stream.request.record_mut().body_bytes_out += len as u64;
                if sending == AfterHead::Body {
                    return;
                }
                let stream = session.streams.swap_remove(at);
                let request = stream.request.clone();
                drop(stream);
                session.end_answer(self, id, request, ResponseEnd::Body(None));
            }
            None => {
                self.output.truncate(start);
                let stream = session.streams.swap_remove(at);
                let request = stream.request.clone();
                drop(stream);
                session.break_answer(self, id, request, Fault::Server, LONGER);
            }
        }
    }
}

impl MultiplexedConnection for Http2ServerSession {
    type Stream = u32;

    fn keep(&mut self, id: u32, request: Request, work: Work) {
        self.streams
            .push(Http2RequestStream::new(id, request, work));
    }

    fn open_tunnel(&mut self, id: u32) -> bool {
        self.core.body_is_open(id)
    }

    fn push_interim(&mut self, id: u32, status: u16, fields: &Fields, out: &mut Vec<u8>) {
        self.core.push_interim(id, status, fields, out);
    }

    fn push_head(
        &mut self,
        id: u32,
        request: &Request,
        head: &ResponseHead,
        follows: Follows,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) -> bool {
        let has_body = match follows {
            Follows::Body(len) => self.core.push_head(id, head, len, date, out) == AfterHead::Body,
            Follows::Tunnel => {
                let (status, fields) = (head.status(), head.fields());
                self.core.push_tunnel_head(id, status, fields, date, out);
                true
            }
        };
        let until = self.made_bytes + out.len() as u64;
        request.exchange.head_until.set(until);
        has_body
    }

    fn bytes_at_once(&mut self, id: u32) -> usize {
        PAYLOAD_BYTES.min(self.core.room(id))
    }

    fn push_data(&mut self, id: u32, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        let fits = self.core.push_data(id, bytes.len(), out).is_some();
        if fits {
            out.extend_from_slice(bytes);
        }
        fits
    }

    fn take_output(&mut self, _id: u32, _out: &mut Vec<u8>) {}

    fn begin_body(&mut self, id: u32, request: Request, body: Body) {
        let is_answered = matches!(body, Body::Tunnel(_)) || self.core.body_is_open(id);
        let source = match is_answered {
            true => OutgoingBody::of(body),
            false => OutgoingBody::paced(body),
        };
        let may_end = source.may_end();
        let mut stream = Http2RequestStream::new(id, request, Work::Body(source));
        stream.is_new = false;
        self.streams.push(stream);
        self.core.set_ready(id, true);
        self.core.set_may_end(id, may_end);
    }

    fn reading(&mut self, at: usize) -> Option<ReceivingRequest<'_>> {
        let stream = self.streams.get_mut(at)?;
        Some(ReceivingRequest {
            request: &stream.request,
            body_bytes: &mut stream.body_bytes,
            body_by_ms: &mut stream.body_by_ms,
        })
    }

    fn stop_body(&mut self, at: usize) {
        self.core.ignore_body(self.streams[at].id);
    }

    fn ask_for_body(&mut self, at: usize, held_bytes: usize, out: &mut Vec<u8>) {
        let id = self.streams[at].id;
        self.core.continue_now(id, out);
        self.core.offer(id, held_bytes, out);
    }

    /// The record ends when the answer has left.
    fn end_answer<A: Responder + 'static>(
        &mut self,
        thread: &mut Thread<A>,
        id: u32,
        request: Request,
        end: ResponseEnd<'_>,
    ) {
        if let ResponseEnd::Body(trailers) = end
            && !self.core.push_end(id, trailers, &mut thread.output)
        {
            let mut record = request.record_mut();
            record.outcome = Outcome::Broken;
            record.reason.get_or_insert(SHORTER);
        }
        thread.finishing.push(request);
    }

    fn break_answer<A: Responder + 'static>(
        &mut self,
        thread: &mut Thread<A>,
        id: u32,
        request: Request,
        fault: Fault,
        reason: &'static str,
    ) {
        note_end(&request, Outcome::Broken, fault, reason);
        self.core
            .break_off(id, Http2ErrorCode::Internal, &mut thread.output);
        thread.finishing.push(request);
    }
}
