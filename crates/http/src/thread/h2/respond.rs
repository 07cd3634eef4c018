//! Answers: heads at once, bodies in the order of their urgency.

use std::sync::Arc;
use std::task::{Context, Poll};

use hob_trace::{Fault, Outcome};

use crate::body::Body;
use crate::h2::frame::{HEADER_BYTES, PAYLOAD_BYTES};
use crate::h2::{Code, Sending, Turn};
use crate::head::Fields;
use crate::reactor::wake::KeyWaker;
use crate::request::Request;
use crate::response::{Answer, Response};
use crate::thread::conn::Conn;
use crate::thread::ending::{LONGER, SHORTER};
use crate::thread::h2::Session;
use crate::thread::h2::source::{Gave, Source};
use crate::thread::h2::stream::{Stream, Work};
use crate::thread::pull::fault_of;
use crate::thread::run::Thread;

impl<A: Answer + 'static> Thread<A> {
    pub(super) fn key_waker(&self, conn: &mut Conn) -> Arc<KeyWaker> {
        let waker = conn
            .waker
            .get_or_insert_with(|| KeyWaker::new(&self.mailbox, conn.key));
        Arc::clone(waker)
    }

    pub(super) fn push_stream_interims(
        &mut self,
        session: &mut Session,
        id: u32,
        request: &Request,
    ) {
        if request.exchange.line.borrow().interim.is_empty() {
            return;
        }
        let interims = std::mem::take(&mut request.exchange.line.borrow_mut().interim);
        for (status, fields) in interims {
            session
                .core
                .push_interim(id, status, &fields, &mut self.output);
            self.counters.responses_1xx.add(1);
        }
    }

    /// Sends an answer's head, and its body at once when that is short; else it takes its turns.
    pub(super) fn respond_stream(
        &mut self,
        session: &mut Session,
        request: Request,
        id: u32,
        response: Response,
    ) {
        if matches!(response.body, Body::Tunnel(_)) {
            return self.respond_tunnel_stream(session, request, id, response);
        }
        let Response { head, body, .. } = response;
        let before = self.output.len();
        let body_len = body.len();
        let sending = session
            .core
            .push_head(id, &head, body_len, &self.date, &mut self.output);
        self.note_head(session, &request, head.status(), before);
        if sending == Sending::Nothing {
            self.finishing.push(request);
            return;
        }
        match body {
            Body::Empty => self.end_stream(session, request, id, None),
            Body::Bytes(bytes)
                if bytes.len() <= PAYLOAD_BYTES.min(session.core.room(id)) && !bytes.is_empty() =>
            {
                let sending = session.core.push_data(id, bytes.len(), &mut self.output);
                if sending.is_none() {
                    return self.break_answer_stream(session, request, id, Fault::Server, LONGER);
                }
                self.output.extend_from_slice(&bytes);
                request.record_mut().body_bytes_out += bytes.len() as u64;
                self.end_stream(session, request, id, None);
            }
            body => {
                let source = match session.core.body_is_open(id) {
                    true => Source::of(body),
                    false => Source::paced(body),
                };
                self.begin_body(session, request, id, source);
            }
        }
    }

    /// An answer's head stands at the end of the output, which was so long before it.
    fn note_head(&self, session: &Session, request: &Request, status: u16, before: usize) {
        let until = session.made_bytes + self.output.len() as u64;
        request.exchange.head_until.set(until);
        let mut record = request.record_mut();
        record.status = status;
        record.head_bytes_out = (self.output.len() - before) as u64;
    }

    fn begin_body(&mut self, session: &mut Session, request: Request, id: u32, source: Source) {
        let may_end = source.may_end();
        let mut stream = Stream::new(id, request, Work::Body(source));
        stream.is_new = false;
        session.streams.push(stream);
        session.core.set_ready(id, true);
        session.core.set_may_end(id, may_end);
    }

    /// Raw bytes both ways from here on, if the request asked for that.
    fn respond_tunnel_stream(
        &mut self,
        session: &mut Session,
        request: Request,
        id: u32,
        response: Response,
    ) {
        if !session.core.is_tunnel(id) {
            {
                let mut record = request.record_mut();
                record.fault = Fault::Server;
                record.reason = Some("a tunnel was opened for a request that is not CONNECT");
            }
            let mut response = self.answer.refuse(&request, 500);
            if matches!(response.body, Body::Tunnel(_)) {
                response.body = Body::Empty;
            }
            return self.respond_stream(session, request, id, response);
        }
        let before = self.output.len();
        let status = match response.status() {
            101 => 200,
            status => status,
        };
        let fields = response.fields();
        session
            .core
            .push_tunnel_head(id, status, fields, &self.date, &mut self.output);
        self.note_head(session, &request, status, before);
        if session.core.body_is_open(id) {
            request.exchange.body.borrow_mut().begin_tunnel();
        }
        self.begin_body(session, request, id, Source::of(response.body));
    }

    /// A stream's turn to send: a frame's worth of its body.
    pub(super) fn send_turn(
        &mut self,
        conn: &mut Conn,
        session: &mut Session,
        at: usize,
        turn: Turn,
    ) {
        let stream = &mut session.streams[at];
        stream.end_wait(self.now_us);
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
                return self.look_at_body(session, at);
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
            Ok(Gave::End(trailers)) => self.end_stream(session, request, id, trailers.as_ref()),
            Ok(Gave::Bytes(_) | Gave::HalfClose) => {}
            Err(error) => {
                let (fault, reason) = fault_of(error);
                self.break_answer_stream(session, request, id, fault, reason);
            }
        }
    }

    /// No more bytes of a tunnel go to the client, which may still send.
    fn half_close_stream(&mut self, session: &mut Session, at: usize) {
        let stream = session.streams.swap_remove(at);
        session.core.push_half_close(stream.id, &mut self.output);
        session.streams.push(stream.half_closed());
    }

    /// Looks whether a tunnel whose client gets no more bytes has come to its end; true when it
    /// has.
    pub(super) fn look_at_half_closed(
        &mut self,
        conn: &mut Conn,
        session: &mut Session,
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
                self.break_answer_stream(session, request, id, Fault::Server, LONGER);
            }
            Err(error) => {
                let (fault, reason) = fault_of(error);
                self.break_answer_stream(session, request, id, fault, reason);
            }
        }
        true
    }

    /// Writes the header of a frame whose `len` bytes stand behind it already.
    fn frame_piece(&mut self, session: &mut Session, at: usize, start: usize, len: usize) {
        let stream = &mut session.streams[at];
        let id = stream.id;
        stream.write_by_ms = u64::MAX;
        session.write_by_ms = u64::MAX;
        match session.core.frame_data(id, start, len, &mut self.output) {
            Some(sending) => {
                stream.request.record_mut().body_bytes_out += len as u64;
                if sending == Sending::Body {
                    return;
                }
                let stream = session.streams.swap_remove(at);
                let request = stream.request.clone();
                drop(stream);
                self.end_stream(session, request, id, None);
            }
            None => {
                self.output.truncate(start);
                let stream = session.streams.swap_remove(at);
                let request = stream.request.clone();
                drop(stream);
                self.break_answer_stream(session, request, id, Fault::Server, LONGER);
            }
        }
    }

    /// All of the answer is made: the record ends when it has left.
    fn end_stream(
        &mut self,
        session: &mut Session,
        request: Request,
        id: u32,
        trailers: Option<&Fields>,
    ) {
        if !session.core.push_end(id, trailers, &mut self.output) {
            let mut record = request.record_mut();
            record.outcome = Outcome::Broken;
            record.reason.get_or_insert(SHORTER);
        }
        self.finishing.push(request);
    }

    /// The answer breaks off so that the client sees that something is missing.
    fn break_answer_stream(
        &mut self,
        session: &mut Session,
        request: Request,
        id: u32,
        fault: Fault,
        reason: &'static str,
    ) {
        {
            let mut record = request.record_mut();
            record.outcome = Outcome::Broken;
            record.fault = fault;
            record.reason = Some(reason);
        }
        session.core.break_off(id, Code::Internal, &mut self.output);
        self.finishing.push(request);
    }
}
