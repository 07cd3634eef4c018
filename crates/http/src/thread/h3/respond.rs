//! Answers: heads at once, bodies in the order of their urgency.

use std::task::{Context, Poll};

use bytes::Bytes;
use hob_trace::{Fault, Outcome};

use crate::body::Body;
use crate::clock::clock_us;
use crate::date::DateLine;
use crate::fields_coding::qpack;
use crate::h3::frame::{self, DATA_HEADER_BYTES, Http3ErrorCode};
use crate::h3::quic::Wrote;
use crate::head::Fields;
use crate::limits::{COPY_BYTES_MAX, H3_PIECE_BYTES};
use crate::request::Request;
use crate::response::{Responder, ResponseHead};
use crate::status;
use crate::thread::ending::{LONGER, SHORTER};
use crate::thread::exchange::{
    Follows, MultiplexedConnection, ReceivingRequest, ResponseEnd, note_end,
};
use crate::thread::h3::Http3ServerSession;
use crate::thread::h3::stream::{Http3RequestStream, Receiving, ResponseProgress};
use crate::thread::pull::fault_of;
use crate::thread::run::Thread;
use crate::thread::source::{Gave, OutgoingBody};
use crate::thread::work::Work;

impl<A: Responder + 'static> Thread<A> {
    /// Fills streams with what their answers have, the most urgent first; says whether something
    /// moved.
    pub(super) fn fill_streams(
        &mut self,
        session: &mut Http3ServerSession,
        budget: &mut usize,
    ) -> bool {
        let has_unsent = |stream: &Http3RequestStream| !stream.unsent.is_empty() || stream.must_end;
        let is_ready = |stream: &Http3RequestStream| {
            let has_body = matches!(stream.work, Some(Work::Body(_)));
            has_unsent(stream) || (has_body && stream.may_have_more)
        };
        if let Some(control) = session.control
            && !session.unsent.is_empty()
        {
            session.conn.write(control, &mut session.unsent);
        }
        let streams = session.streams.iter().enumerate();
        let ready = streams.filter(|(_, stream)| is_ready(stream));
        let mut order: Vec<_> = ready.map(|(at, stream)| (stream.order(), at)).collect();
        order.sort_unstable();
        let mut has_moved = false;
        // Those of one order take turns, piece by piece.
        let mut from = 0;
        while from < order.len() && *budget > 0 {
            let of_one = order[from..]
                .iter()
                .take_while(|(key, _)| *key == order[from].0);
            let to = from + of_one.count();
            let mut is_moving = true;
            while is_moving && *budget > 0 {
                is_moving = false;
                for (_, at) in &order[from..to] {
                    is_moving |= self.fill_stream(session, *at, budget);
                }
                has_moved |= is_moving;
            }
            from = to;
        }
        has_moved
    }

    /// Sends what waits, then makes the next piece; says whether something moved.
    fn fill_stream(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        budget: &mut usize,
    ) -> bool {
        let stream = &mut session.streams[at];
        let before = stream.unsent.len();
        if before > 0
            && let Some(has_moved) = self.send_unsent(session, at)
        {
            return has_moved;
        }
        let stream = &mut session.streams[at];
        if std::mem::take(&mut stream.must_end) {
            self.finish_answer(session, at);
            return true;
        }
        if !matches!(stream.work, Some(Work::Body(_))) || !stream.may_have_more || *budget == 0 {
            return before > 0;
        }
        let conn = self.session_waker(session);
        let stream = &mut session.streams[at];
        let waker = stream.waker(&conn);
        let Some(Work::Body(source)) = &mut stream.work else {
            return before > 0;
        };
        // The frame's header is written when it is known how much there is.
        let mut out = Vec::with_capacity(DATA_HEADER_BYTES + source.size_hint(H3_PIECE_BYTES));
        out.resize(DATA_HEADER_BYTES, 0);
        let mut cx = Context::from_waker(&waker);
        match source.poll_into(&mut cx, H3_PIECE_BYTES, None, &mut out) {
            Poll::Pending => {
                stream.may_have_more = false;
                // It may wait for the request's body.
                let is_readable = self.look_at_input(session, at);
                before > 0 || is_readable
            }
            Poll::Ready(Ok(Gave::HalfClose)) => {
                stream.sending = ResponseProgress::Ended;
                stream.is_half_closed = true;
                stream.must_end = true;
                true
            }
            Poll::Ready(Ok(Gave::Bytes(count))) => {
                *budget = budget.saturating_sub(count);
                if !stream.count_out(count) {
                    self.break_off_answer(session, at, Fault::Server, LONGER);
                    return true;
                }
                out[..DATA_HEADER_BYTES].copy_from_slice(&frame::data_header(count));
                stream.queue(out.into());
                if let Some(request) = &stream.request {
                    request.record_mut().body_bytes_out += count as u64;
                }
                if stream.sending == ResponseProgress::Ended {
                    stream.work = None;
                    stream.must_end = true;
                }
                true
            }
            Poll::Ready(Ok(Gave::End(trailers))) => {
                stream.work = None;
                self.complete_answer(session, at, trailers.as_ref());
                true
            }
            Poll::Ready(Err(error)) => {
                let (fault, reason) = fault_of(error);
                self.break_off_answer(session, at, fault, reason);
                true
            }
        }
    }

    /// Sends what waits for room. `None` when all of it has left; else whether some of it moved.
    fn send_unsent(&mut self, session: &mut Http3ServerSession, at: usize) -> Option<bool> {
        let stream = &mut session.streams[at];
        let before = stream.unsent.len();
        match session.conn.write(stream.id, &mut stream.unsent) {
            Wrote::All => {
                stream.write_by_ms = u64::MAX;
                stream.set_wait(false, self.turn.now_us);
                None
            }
            Wrote::Blocked => {
                let has_moved = stream.unsent.len() < before;
                stream.set_wait(true, self.turn.now_us);
                if has_moved || stream.write_by_ms == u64::MAX {
                    let patience_ms = self.limits.write_progress.as_millis() as u64;
                    stream.write_by_ms = self.turn.now_ms + patience_ms;
                }
                Some(has_moved)
            }
            Wrote::Gone => {
                self.leave_request(session, at);
                Some(true)
            }
        }
    }

    /// All of the answer is made.
    fn complete_answer(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        trailers: Option<&Fields>,
    ) {
        let stream = &mut session.streams[at];
        if stream.is_half_closed {
            return self.end_tunnel(session, at);
        }
        match stream.sending {
            ResponseProgress::Nothing | ResponseProgress::Body(Some(1..)) => {
                return self.break_off_answer(session, at, Fault::Server, SHORTER);
            }
            ResponseProgress::Body(_) => stream.sending = ResponseProgress::Ended,
            ResponseProgress::Ended => {}
            ResponseProgress::Over => return,
        }
        if let Some(trailers) = trailers.filter(|trailers| !trailers.is_empty()) {
            let mut out = Vec::new();
            let begun = frame::begin_headers(&mut out);
            qpack::push_prefix(&mut out);
            for (name, value) in trailers.iter() {
                qpack::push_field(name, value, &mut out);
            }
            frame::end_headers(begun, &mut out);
            stream.queue(out.into());
        }
        stream.work = None;
        stream.must_end = true;
    }

    /// The last byte of an answer is handed over. What is left of the request nobody reads.
    //= rfc9114#4.1
    fn finish_answer(&mut self, session: &mut Http3ServerSession, at: usize) {
        let stream = &mut session.streams[at];
        if !session.conn.finish(stream.id) {
            return self.leave_request(session, at);
        }
        if stream.is_half_closed {
            return;
        }
        stream.ended_us = clock_us();
        stream.work = None;
        session.core.note_answered();
        session.stop_reading(at, Http3ErrorCode::NoError);
    }

    /// A tunnel is over whose client was told before that it gets no more. One that still sends is
    /// told to stop.
    fn end_tunnel(&mut self, session: &mut Http3ServerSession, at: usize) {
        let stream = &mut session.streams[at];
        stream.is_half_closed = false;
        stream.ended_us = clock_us();
        stream.work = None;
        let (id, has_arrived) = (stream.id, stream.sending == ResponseProgress::Over);
        session.core.note_answered();
        session.stop_reading(at, Http3ErrorCode::NoError);
        if has_arrived {
            self.note_arrived(session, id);
        }
    }

    /// The answer breaks off so that the client sees that something is missing.
    pub(super) fn break_off_answer(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        fault: Fault,
        reason: &'static str,
    ) {
        let stream = &mut session.streams[at];
        stream.set_wait(false, self.turn.now_us);
        let request = stream.request.take();
        session.cut(at, Http3ErrorCode::Internal);
        if let Some(request) = request {
            note_end(&request, Outcome::Broken, fault, reason);
            self.end_record(request, &session.conn);
        }
    }
}

impl MultiplexedConnection for Http3ServerSession {
    /// The place of the stream.
    type Stream = usize;

    fn keep(&mut self, at: usize, _request: Request, work: Work) {
        self.streams[at].work = Some(work);
    }

    fn open_tunnel(&mut self, at: usize) -> bool {
        let receiving = &mut self.streams[at].receiving;
        let is_open = matches!(receiving, Receiving::Body(_));
        if is_open {
            *receiving = Receiving::Body(None);
        }
        is_open
    }

    fn push_interim(&mut self, at: usize, status: u16, fields: &Fields, out: &mut Vec<u8>) {
        let stream = &mut self.streams[at];
        if stream.sending != ResponseProgress::Nothing {
            return;
        }
        if status == 100 {
            stream.continue_is_due = false;
        }
        let begun = frame::begin_headers(out);
        qpack::push_prefix(out);
        qpack::push_status(status, out);
        for (name, value) in fields.iter() {
            qpack::push_field(name, value, out);
        }
        frame::end_headers(begun, out);
    }

    fn push_head(
        &mut self,
        at: usize,
        request: &Request,
        head: &ResponseHead,
        follows: Follows,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) -> bool {
        let stream = &mut self.streams[at];
        let status = head.status();
        let body_len = match (head, follows) {
            (ResponseHead::Prepared(prepared), _) => Some(prepared.body_bytes()),
            (ResponseHead::Fields(..), Follows::Body(len)) => len,
            (ResponseHead::Fields(..), Follows::Tunnel) => None,
        };
        let is_bodiless =
            stream.is_head_method || status::is_bodiless(status) || body_len == Some(0);
        stream.sending = match is_bodiless {
            true => ResponseProgress::Ended,
            false => ResponseProgress::Body(body_len),
        };
        let begun = frame::begin_headers(out);
        match head {
            ResponseHead::Prepared(prepared) => out.extend_from_slice(prepared.section().bytes()),
            ResponseHead::Fields(_, fields) => {
                qpack::push_prefix(out);
                qpack::push_status(status, out);
                for (name, value) in fields.iter() {
                    qpack::push_field(name, value, out);
                }
                if let (Some(len), false) = (body_len, status::is_bodiless(status)) {
                    qpack::push_content_length(len, out);
                }
            }
        }
        qpack::push_field(b"date", date.date(), out);
        frame::end_headers(begun, out);
        // It leaves with the datagrams of this turn.
        let age_us = request.age_us();
        request.record_mut().first_byte_us = age_us.max(1);
        !is_bodiless
    }

    fn bytes_at_once(&mut self, _at: usize) -> usize {
        COPY_BYTES_MAX
    }

    fn push_data(&mut self, at: usize, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        let fits = self.streams[at].count_out(bytes.len());
        if fits {
            out.extend_from_slice(&frame::data_header(bytes.len()));
            out.extend_from_slice(bytes);
        }
        fits
    }

    fn take_output(&mut self, at: usize, out: &mut Vec<u8>) {
        if !out.is_empty() {
            self.streams[at].queue(Bytes::copy_from_slice(out));
            out.clear();
        }
    }

    fn begin_body(&mut self, at: usize, _request: Request, body: Body) {
        let stream = &mut self.streams[at];
        // No client is known to count tiny frames of HTTP/3: they are not paced.
        stream.work = Some(Work::Body(OutgoingBody::of(body)));
        stream.may_have_more = true;
    }

    /// The answer may be over before the body is, which nobody reads any more then.
    fn reading(&mut self, at: usize) -> Option<ReceivingRequest<'_>> {
        let stream = &mut self.streams[at];
        if stream.receiving == Receiving::Ended {
            return None;
        }
        Some(ReceivingRequest {
            request: stream.request.as_ref()?,
            body_bytes: &mut stream.body_bytes,
            body_by_ms: &mut stream.body_by_ms,
        })
    }

    fn stop_body(&mut self, at: usize) {
        self.stop_reading(at, Http3ErrorCode::NoError);
    }

    fn ask_for_body(&mut self, at: usize, _held_bytes: usize, out: &mut Vec<u8>) {
        if self.streams[at].continue_is_due {
            self.push_interim(at, 100, &Fields::new(), out);
            self.take_output(at, out);
        }
    }

    /// The record ends when all of the answer has arrived.
    fn end_answer<A: Responder + 'static>(
        &mut self,
        thread: &mut Thread<A>,
        at: usize,
        request: Request,
        end: ResponseEnd<'_>,
    ) {
        drop(request);
        match end {
            ResponseEnd::Head => self.streams[at].must_end = true,
            ResponseEnd::Body(trailers) => thread.complete_answer(self, at, trailers),
        }
    }

    fn break_answer<A: Responder + 'static>(
        &mut self,
        thread: &mut Thread<A>,
        at: usize,
        request: Request,
        fault: Fault,
        reason: &'static str,
    ) {
        drop(request);
        thread.break_off_answer(self, at, fault, reason);
    }
}

impl Http3RequestStream {
    /// Bytes that leave behind what waits.
    fn queue(&mut self, bytes: Bytes) {
        self.unsent = match self.unsent.is_empty() {
            true => bytes,
            false => [&self.unsent[..], &bytes].concat().into(),
        };
    }

    /// Counts bytes of a body about to be sent; false when they are more than was announced.
    fn count_out(&mut self, len: usize) -> bool {
        let ResponseProgress::Body(left) = &mut self.sending else {
            return false;
        };
        if let Some(left) = left {
            match left.checked_sub(len as u64) {
                Some(rest) => *left = rest,
                None => return false,
            }
            if *left == 0 {
                self.sending = ResponseProgress::Ended;
            }
        }
        true
    }
}
