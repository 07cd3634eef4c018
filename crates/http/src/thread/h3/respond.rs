//! Answers: heads at once, bodies in the order of their urgency.

use std::task::{Context, Poll};

use hob_trace::{Fault, Outcome};

use crate::body::Body;
use crate::h3::frame::{self, Code, DATA_HEADER_BYTES};
use crate::h3::qpack;
use crate::h3::quic::Wrote;
use crate::head::Fields;
use crate::limits::{COPY_BYTES_MAX, H3_PIECE_BYTES};
use crate::response::{Answer, Response, ResponseHead};
use crate::status;
use crate::thread::ending::{LONGER, SHORTER};
use crate::thread::h2::source::{Gave, Source};
use crate::thread::h2::stream::Work;
use crate::thread::h3::Session;
use crate::thread::h3::stream::{Receiving, Sending, Stream};
use crate::thread::pull::fault_of;
use crate::thread::run::Thread;

impl<A: Answer + 'static> Thread<A> {
    pub(super) fn push_interims_h3(&mut self, session: &mut Session, at: usize) {
        let Some(request) = &session.streams[at].request else {
            return;
        };
        if request.exchange.line.borrow().interim.is_empty() {
            return;
        }
        let interims = std::mem::take(&mut request.exchange.line.borrow_mut().interim);
        for (status, fields) in interims {
            self.push_interim_h3(session, at, status, &fields);
            self.counters.responses_1xx.add(1);
        }
    }

    /// Sends an interim answer, unless the head of the final one was sent.
    pub(super) fn push_interim_h3(
        &mut self,
        session: &mut Session,
        at: usize,
        status: u16,
        fields: &Fields,
    ) {
        let stream = &mut session.streams[at];
        if stream.sending != Sending::Nothing {
            return;
        }
        if status == 100 {
            stream.continue_is_due = false;
        }
        let mut out = Vec::new();
        let begun = frame::begin_headers(&mut out);
        qpack::push_prefix(&mut out);
        qpack::push_status(status, &mut out);
        for (name, value) in fields.iter() {
            qpack::push_field(name, value, &mut out);
        }
        frame::end_headers(begun, &mut out);
        stream.queue(out);
    }

    /// Sends an answer's head, and its body at once when that is short; else it takes its turns.
    pub(super) fn respond_h3(&mut self, session: &mut Session, at: usize, response: Response) {
        let stream = &mut session.streams[at];
        let Some(request) = stream.request.clone() else {
            return;
        };
        let Response { mut head, body, .. } = response;
        let is_tunnel = matches!(body, Body::Tunnel(_));
        if is_tunnel && !stream.is_tunnel {
            {
                let mut record = request.record_mut();
                record.fault = Fault::Server;
                record.reason = Some("a tunnel was opened for a request that is not CONNECT");
            }
            let mut response = self.answer.refuse(&request, 500);
            if matches!(response.body, Body::Tunnel(_)) {
                response.body = Body::Empty;
            }
            return self.respond_h3(session, at, response);
        }
        // What HTTP/1 says by changing the protocol is success here.
        //= rfc9220#3
        if is_tunnel
            && let ResponseHead::Fields(status, _) = &mut head
            && *status == 101
        {
            *status = 200;
        }
        let body_len = if is_tunnel { None } else { body.len() };
        let mut out = Vec::with_capacity(256);
        self.push_head_h3(stream, &head, body_len, &mut out);
        {
            let mut record = request.record_mut();
            record.status = head.status();
            record.head_bytes_out = out.len() as u64;
            let now_us = Self::clock_us();
            record.first_byte_us = now_us.saturating_sub(record.started_us).max(1);
        }
        if is_tunnel && matches!(stream.receiving, Receiving::Body(_)) {
            stream.receiving = Receiving::Body(None);
            request.exchange.body.borrow_mut().begin_tunnel();
        }
        if stream.sending == Sending::Ended {
            stream.must_end = true;
            return stream.queue(out);
        }
        match body {
            Body::Empty => {
                stream.queue(out);
                self.end_h3(session, at, None);
            }
            Body::Bytes(bytes) if bytes.len() <= COPY_BYTES_MAX && !bytes.is_empty() => {
                if !stream.count_out(bytes.len()) {
                    return self.break_answer_h3(session, at, Fault::Server, LONGER);
                }
                out.extend_from_slice(&frame::data_header(bytes.len()));
                out.extend_from_slice(&bytes);
                stream.queue(out);
                request.record_mut().body_bytes_out += bytes.len() as u64;
                self.end_h3(session, at, None);
            }
            body => {
                stream.queue(out);
                // No client is known to count tiny frames of HTTP/3: they are not paced.
                stream.work = Some(Work::Body(Source::of(body)));
                stream.may_have_more = true;
            }
        }
    }

    /// Appends the head of an answer and says what follows it. `body_len` is the body's size when
    /// known, unless the head announces one itself.
    fn push_head_h3(
        &self,
        stream: &mut Stream,
        head: &ResponseHead,
        body_len: Option<u64>,
        out: &mut Vec<u8>,
    ) {
        let (status, body_len) = match head {
            ResponseHead::Prepared(prepared) => (prepared.status(), Some(prepared.body_bytes())),
            ResponseHead::Fields(status, _) => (*status, body_len),
        };
        let is_bodiless =
            stream.is_head_method || status::is_bodiless(status) || body_len == Some(0);
        stream.sending = match is_bodiless {
            true => Sending::Ended,
            false => Sending::Body(body_len),
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
        qpack::push_field(b"date", self.date.date(), out);
        frame::end_headers(begun, out);
    }

    /// Fills streams with what their answers have, the most urgent first; says whether something
    /// moved.
    pub(super) fn fill_streams(&mut self, session: &mut Session, budget: &mut usize) -> bool {
        let has_unsent = |stream: &Stream| !stream.unsent.is_empty() || stream.must_end;
        let is_ready = |stream: &Stream| {
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
    fn fill_stream(&mut self, session: &mut Session, at: usize, budget: &mut usize) -> bool {
        let stream = &mut session.streams[at];
        let before = stream.unsent.len();
        if before > 0
            && let Some(has_moved) = self.send_unsent(session, at)
        {
            return has_moved;
        }
        let stream = &mut session.streams[at];
        if std::mem::take(&mut stream.must_end) {
            self.finish_h3(session, at);
            return true;
        }
        if !matches!(stream.work, Some(Work::Body(_))) || !stream.may_have_more || *budget == 0 {
            return before > 0;
        }
        let conn = self.key_waker_h3(session);
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
                let is_readable = self.look_at_body_h3(session, at);
                before > 0 || is_readable
            }
            Poll::Ready(Ok(Gave::HalfClose)) => {
                stream.sending = Sending::Ended;
                stream.is_half_closed = true;
                stream.must_end = true;
                true
            }
            Poll::Ready(Ok(Gave::Bytes(count))) => {
                *budget = budget.saturating_sub(count);
                if !stream.count_out(count) {
                    self.break_answer_h3(session, at, Fault::Server, LONGER);
                    return true;
                }
                out[..DATA_HEADER_BYTES].copy_from_slice(&frame::data_header(count));
                stream.queue(out);
                if let Some(request) = &stream.request {
                    request.record_mut().body_bytes_out += count as u64;
                }
                if stream.sending == Sending::Ended {
                    stream.work = None;
                    stream.must_end = true;
                }
                true
            }
            Poll::Ready(Ok(Gave::End(trailers))) => {
                stream.work = None;
                self.end_h3(session, at, trailers.as_ref());
                true
            }
            Poll::Ready(Err(error)) => {
                let (fault, reason) = fault_of(error);
                self.break_answer_h3(session, at, fault, reason);
                true
            }
        }
    }

    /// Sends what waits for room. `None` when all of it has left; else whether some of it moved.
    fn send_unsent(&mut self, session: &mut Session, at: usize) -> Option<bool> {
        let stream = &mut session.streams[at];
        let before = stream.unsent.len();
        match session.conn.write(stream.id, &mut stream.unsent) {
            Wrote::All => {
                stream.write_by_ms = u64::MAX;
                stream.set_wait(false, self.now_us);
                None
            }
            Wrote::Blocked => {
                let has_moved = stream.unsent.len() < before;
                stream.set_wait(true, self.now_us);
                if has_moved || stream.write_by_ms == u64::MAX {
                    let patience_ms = self.limits.write_progress.as_millis() as u64;
                    stream.write_by_ms = self.now_ms + patience_ms;
                }
                Some(has_moved)
            }
            Wrote::Gone => {
                self.leave_h3(session, at);
                Some(true)
            }
        }
    }

    /// All of the answer is made.
    fn end_h3(&mut self, session: &mut Session, at: usize, trailers: Option<&Fields>) {
        let stream = &mut session.streams[at];
        if stream.is_half_closed {
            return self.end_half_closed_h3(session, at);
        }
        match stream.sending {
            Sending::Nothing | Sending::Body(Some(1..)) => {
                return self.break_answer_h3(session, at, Fault::Server, SHORTER);
            }
            Sending::Body(_) => stream.sending = Sending::Ended,
            Sending::Ended => {}
            Sending::Over => return,
        }
        if let Some(trailers) = trailers.filter(|trailers| !trailers.is_empty()) {
            let mut out = Vec::new();
            let begun = frame::begin_headers(&mut out);
            qpack::push_prefix(&mut out);
            for (name, value) in trailers.iter() {
                qpack::push_field(name, value, &mut out);
            }
            frame::end_headers(begun, &mut out);
            stream.queue(out);
        }
        stream.work = None;
        stream.must_end = true;
    }

    /// The last byte of an answer is handed over. What is left of the request nobody reads.
    //= rfc9114#4.1
    fn finish_h3(&mut self, session: &mut Session, at: usize) {
        let stream = &mut session.streams[at];
        if !session.conn.finish(stream.id) {
            return self.leave_h3(session, at);
        }
        if stream.is_half_closed {
            return;
        }
        stream.ended_us = Self::clock_us();
        stream.work = None;
        session.core.note_answered();
        session.stop_reading(at, Code::NoError);
    }

    /// A tunnel is over whose client was told before that it gets no more. One that still sends is
    /// told to stop.
    fn end_half_closed_h3(&mut self, session: &mut Session, at: usize) {
        let stream = &mut session.streams[at];
        stream.is_half_closed = false;
        stream.ended_us = Self::clock_us();
        stream.work = None;
        let (id, has_arrived) = (stream.id, stream.sending == Sending::Over);
        session.core.note_answered();
        session.stop_reading(at, Code::NoError);
        if has_arrived {
            self.note_arrived(session, id);
        }
    }

    /// The answer breaks off so that the client sees that something is missing.
    pub(super) fn break_answer_h3(
        &mut self,
        session: &mut Session,
        at: usize,
        fault: Fault,
        reason: &'static str,
    ) {
        let stream = &mut session.streams[at];
        stream.set_wait(false, self.now_us);
        let request = stream.request.take();
        session.cut(at, Code::Internal);
        if let Some(request) = request {
            {
                let mut record = request.record_mut();
                record.outcome = Outcome::Broken;
                record.fault = fault;
                record.reason = Some(reason);
            }
            self.end_record(request, &session.conn);
        }
    }
}

impl Stream {
    /// Bytes that leave behind what waits.
    fn queue(&mut self, bytes: Vec<u8>) {
        self.unsent = match self.unsent.is_empty() {
            true => bytes.into(),
            false => [&self.unsent[..], &bytes].concat().into(),
        };
    }

    /// Counts bytes of a body about to be sent; false when they are more than was announced.
    fn count_out(&mut self, len: usize) -> bool {
        let Sending::Body(left) = &mut self.sending else {
            return false;
        };
        if let Some(left) = left {
            match left.checked_sub(len as u64) {
                Some(rest) => *left = rest,
                None => return false,
            }
            if *left == 0 {
                self.sending = Sending::Ended;
            }
        }
        true
    }
}
