//! What has come over a connection: requests, their bodies, their ends.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_trace::{Fault, Outcome};

use crate::body::BodyError;
use crate::h1::{BODY_TOO_LARGE, Refusal};
use crate::h2::conn::Opened;
use crate::h2::{Code, Event, Failure, Flood};
use crate::limits::{READ_BYTES_PER_TURN, REQUESTS_PER_TURN};
use crate::request::{HalfClose, Incoming, IncomingState, Request};
use crate::response::{Answer, Answered};
use crate::thread::conn::Conn;
use crate::thread::h2::Session;
use crate::thread::h2::stream::{Stream, Work};
use crate::thread::run::Thread;

impl<A: Answer + 'static> Thread<A> {
    /// Reads the frames in `input` and answers their requests; returns how many bytes were used.
    pub(super) fn answer_frames(
        &mut self,
        conn: &mut Conn,
        session: &mut Session,
        input: &[u8],
    ) -> usize {
        let mut used = 0;
        let mut request_count = 0;
        let mut spare = None;
        loop {
            if request_count == REQUESTS_PER_TURN || self.output.len() >= READ_BYTES_PER_TURN {
                // More may be there: others first.
                session.is_cut = true;
                if request_count == REQUESTS_PER_TURN {
                    self.queue_bulk(conn);
                }
                break;
            }
            let mut request = match spare.take() {
                Some(request) => request,
                None => self.fresh_request(conn),
            };
            let Some(exchange) = Rc::get_mut(&mut request.exchange) else {
                debug_assert!(false, "a fresh request has one owner");
                break;
            };
            let (count, event) = session.core.read(
                &input[used..],
                &mut exchange.head,
                &mut self.output,
                self.now_ms,
            );
            used += count;
            let body = match event {
                Event::Data(_, len) => &input[used - len..used],
                _ => &[],
            };
            let is_head = matches!(event, Event::Request(_) | Event::Refused(..));
            request_count += usize::from(is_head);
            let is_last = matches!(event, Event::NeedMore | Event::Over(_));
            spare = self.take_event(conn, session, request, event, count as u64, body);
            if is_last {
                break;
            }
        }
        if session.is_over {
            used = input.len();
        }
        if let Some(request) = spare {
            self.recycle(request);
        }
        used
    }

    /// What became of the frames just read, of which `body` are the last bytes. Gives the request
    /// back if it was not needed.
    fn take_event(
        &mut self,
        conn: &mut Conn,
        session: &mut Session,
        request: Request,
        event: Event,
        bytes_in: u64,
        body: &[u8],
    ) -> Option<Request> {
        match event {
            Event::Request(opened) => {
                self.begin_stream(conn, session, request, opened, bytes_in);
                return None;
            }
            Event::Refused(id, refusal) => {
                self.refuse_stream(conn, session, request, id, refusal);
                return None;
            }
            Event::Malformed(reason) => {
                self.note_malformed(conn, request, reason);
                return None;
            }
            Event::Data(id, _) => self.take_data(session, id, body),
            Event::BodyEnd(id, trailers) => self.end_body(session, id, trailers),
            Event::TooMany => self.counters.limit_h2_streams.add(1),
            Event::Left(id) => self.leave_stream(conn, session, id),
            Event::Broken(id, reason) => self.break_stream(conn, session, id, reason),
            Event::Over(failure) => {
                self.count_failure(failure);
                session.is_over = true;
            }
            Event::NeedMore => {}
        }
        Some(request)
    }

    fn begin_stream(
        &mut self,
        conn: &mut Conn,
        session: &mut Session,
        request: Request,
        opened: Opened,
        bytes_in: u64,
    ) {
        self.note_start(conn, &request);
        request.record_mut().bytes_in = bytes_in;
        request.exchange.key.set(conn.key);
        request.exchange.body_limit.set(self.limits.body_bytes);
        let has_body = opened.length != Some(0) || session.core.body_is_open(opened.stream);
        if has_body {
            *request.exchange.body.borrow_mut() = Incoming {
                state: IncomingState::Open,
                announced: opened.length,
                ..Incoming::default()
            };
        }
        match self.answer.answer(&request) {
            Answered::Ready(response) => {
                if has_body && response.status() == 413 {
                    // Who reads a body that is too large is counted when that shows.
                    self.counters.limit_body.add(1);
                }
                self.push_stream_interims(session, opened.stream, &request);
                self.respond_stream(session, request, opened.stream, response);
            }
            Answered::Later(future) => {
                let stream = Stream::new(opened.stream, request, Work::Later(future));
                session.streams.push(stream);
            }
        }
    }

    /// Answers what the engine refused.
    fn refuse_stream(
        &mut self,
        conn: &mut Conn,
        session: &mut Session,
        request: Request,
        id: u32,
        refusal: Refusal,
    ) {
        self.count_refusal(refusal);
        self.note_start(conn, &request);
        {
            let mut record = request.record_mut();
            record.fault = Fault::Client;
            record.reason = Some(refusal.reason);
        }
        request.exchange.key.set(conn.key);
        let response = self.answer.refuse(&request, refusal.status);
        self.respond_stream(session, request, id, response);
    }

    /// What came was no request: it has a record all the same.
    fn note_malformed(&mut self, conn: &mut Conn, request: Request, reason: &'static str) {
        self.counters.bad_request.add(1);
        self.note_start(conn, &request);
        {
            let mut record = request.record_mut();
            record.outcome = Outcome::Broken;
            record.fault = Fault::Client;
            record.reason = Some(reason);
        }
        self.finishing.push(request);
    }

    /// The one copy of a request body: out of the thread's buffer, to live as long as needed.
    fn take_data(&mut self, session: &mut Session, id: u32, bytes: &[u8]) {
        let Some(at) = session.find(id) else {
            return;
        };
        let stream = &mut session.streams[at];
        stream.body_bytes += bytes.len() as u64;
        stream.request.record_mut().bytes_in += bytes.len() as u64;
        if stream.body_by_ms != u64::MAX {
            stream.body_by_ms = self.now_ms + self.limits.body_progress.as_millis() as u64;
        }
        if stream.body_bytes > stream.request.exchange.body_limit.get() {
            return self.refuse_body(session, at);
        }
        let mut body = stream.request.exchange.body.borrow_mut();
        if body.state == IncomingState::Open {
            body.push(Bytes::copy_from_slice(bytes));
        }
    }

    /// More has come than anyone wants, or more is announced.
    fn refuse_body(&mut self, session: &mut Session, at: usize) {
        let stream = &mut session.streams[at];
        {
            let mut record = stream.request.record_mut();
            record.fault = Fault::Client;
            record.reason = Some(BODY_TOO_LARGE.reason);
            // One that was announced is counted already.
            if record.status != 413 {
                self.counters.limit_body.add(1);
            }
        }
        stream.body_by_ms = u64::MAX;
        session.core.ignore_body(stream.id);
        let mut body = stream.request.exchange.body.borrow_mut();
        body.break_off(BodyError::TooLarge);
    }

    fn end_body(&mut self, session: &mut Session, id: u32, trailers: Vec<(Bytes, Bytes)>) {
        let Some(at) = session.find(id) else {
            return;
        };
        let stream = &mut session.streams[at];
        stream.body_by_ms = u64::MAX;
        let mut body = stream.request.exchange.body.borrow_mut();
        if body.state == IncomingState::Open {
            body.trailers = trailers;
            body.end();
        }
    }

    /// The client will send nothing more; says whether that changes anything.
    pub(super) fn end_of_frames(&mut self, conn: &Conn, session: &mut Session) -> bool {
        let mut has_changed = false;
        let mut at = 0;
        while let Some(stream) = session.streams.get(at) {
            let exchange = &stream.request.exchange;
            if exchange.half_close.get() == HalfClose::Cancel {
                let id = stream.id;
                session.core.break_off(id, Code::Cancel, &mut self.output);
                self.leave_stream(conn, session, id);
                has_changed = true;
                continue;
            }
            let mut body = exchange.body.borrow_mut();
            if body.state == IncomingState::Open {
                // A tunnel's end is said on its stream, too.
                body.break_off(BodyError::ClientLeft);
                has_changed = true;
            }
            drop(body);
            at += 1;
        }
        has_changed
    }

    fn count_failure(&self, failure: Failure) {
        let counters = &self.counters;
        match failure.flood {
            None => counters.h2_errors.add(1),
            Some(Flood::Resets) => counters.limit_h2_resets.add(1),
            Some(Flood::Continuation) => counters.limit_h2_continuation.add(1),
            Some(Flood::Settings) => counters.limit_h2_settings.add(1),
            Some(Flood::Ping) => counters.limit_h2_ping.add(1),
            Some(Flood::TinyData) => counters.limit_h2_tiny_data.add(1),
            Some(Flood::Empty) => counters.limit_h2_empty.add(1),
            Some(Flood::Window) => counters.limit_h2_window.add(1),
        }
        tracing::debug!(reason = failure.reason, "an HTTP/2 connection was ended");
    }

    /// What a stream's handler has asked for, and its answer if it is there now.
    pub(super) fn look_at_stream(
        &mut self,
        conn: &mut Conn,
        session: &mut Session,
        at: usize,
        is_woken: bool,
    ) {
        if is_woken && self.look_at_half_closed(conn, session, at) {
            return;
        }
        let stream = &mut session.streams[at];
        let (id, request) = (stream.id, stream.request.clone());
        let mut answer = None;
        match &mut stream.work {
            Work::Body(source) if is_woken => {
                session.core.set_ready(id, true);
                session.core.set_may_end(id, source.may_end());
            }
            Work::Later(_) if is_woken => {
                let waker = stream.waker(&self.key_waker(conn));
                if let Work::Later(future) = &mut stream.work
                    && let Poll::Ready(response) =
                        future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    answer = Some(response);
                }
            }
            _ => {}
        }
        self.push_stream_interims(session, id, &request);
        if let Some(response) = answer {
            let stream = session.streams.swap_remove(at);
            // The handler's future goes before its answer is sent.
            drop(stream);
            self.respond_stream(session, request, id, response);
            return;
        }
        self.look_at_body(session, at);
    }

    /// Lets the client send what the handler has room for.
    pub(super) fn look_at_body(&mut self, session: &mut Session, at: usize) {
        let stream = &mut session.streams[at];
        let exchange = &stream.request.exchange;
        let (held_bytes, announced) = {
            let body = exchange.body.borrow();
            if body.state != IncomingState::Open || !body.is_wanted {
                return;
            }
            (body.held_bytes, body.announced)
        };
        if announced.is_some_and(|announced| announced > exchange.body_limit.get()) {
            return self.refuse_body(session, at);
        }
        session.core.continue_now(stream.id, &mut self.output);
        session.core.offer(stream.id, held_bytes, &mut self.output);
        // Whoever has not read what is there does not wait for the client.
        stream.body_by_ms = match held_bytes {
            0 if session.core.is_tunnel(stream.id) => u64::MAX,
            0 if stream.body_by_ms == u64::MAX => {
                self.now_ms + self.limits.body_progress.as_millis() as u64
            }
            0 => stream.body_by_ms,
            _ => u64::MAX,
        };
    }
}
