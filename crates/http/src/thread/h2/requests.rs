//! What has come over a connection: requests, their bodies, their ends.

use std::rc::Rc;

use bytes::Bytes;
use hob_trace::{Fault, Outcome};

use crate::body::BodyError;
use crate::h2::conn::OpenedStream;
use crate::h2::{Flood, Http2ConnectionError, Http2ErrorCode, Http2Event};
use crate::limits::{READ_BYTES_PER_TURN, REQUESTS_PER_TURN};
use crate::request::{HalfClose, Incoming, IncomingState, Request};
use crate::response::Responder;
use crate::thread::conn::SocketConnection;
use crate::thread::exchange::note_end;
use crate::thread::h2::Http2ServerSession;
use crate::thread::h2::stream::Http2RequestStream;
use crate::thread::run::Thread;
use crate::thread::work::Work;

impl<A: Responder + 'static> Thread<A> {
    /// Reads the frames in `input` and answers their requests; returns how many bytes were used.
    pub(super) fn answer_frames(
        &mut self,
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
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
                self.turn.now_ms,
            );
            used += count;
            let body = match event {
                Http2Event::Data(_, len) => &input[used - len..used],
                _ => &[],
            };
            let is_head = matches!(event, Http2Event::Request(_) | Http2Event::Refused(..));
            request_count += usize::from(is_head);
            let is_last = matches!(event, Http2Event::NeedMore | Http2Event::Over(_));
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
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
        request: Request,
        event: Http2Event,
        bytes_in: u64,
        body: &[u8],
    ) -> Option<Request> {
        match event {
            Http2Event::Request(OpenedStream { stream: id, .. }) | Http2Event::Refused(id, _)
                if !has_room(session, &request) =>
            {
                self.counters.limit_connection_heads.add(1);
                //= rfc9113#8.7
                session
                    .core
                    .break_off(id, Http2ErrorCode::Refused, &mut self.output);
                self.recycle(request);
                return None;
            }
            Http2Event::Request(opened) => {
                self.begin_stream(conn, session, request, opened, bytes_in);
                return None;
            }
            Http2Event::Refused(id, refusal) => {
                self.note_start(conn, &request);
                request.exchange.key.set(conn.key);
                self.refuse_on(session, id, request, refusal);
                return None;
            }
            Http2Event::Malformed(reason) => {
                self.note_malformed(conn, request, reason);
                return None;
            }
            Http2Event::Data(id, _) => {
                if let Some(at) = session.find(id) {
                    self.take_data(session, at, body);
                }
            }
            Http2Event::BodyEnd(id, trailers) => self.end_body(session, id, trailers),
            Http2Event::TooMany => self.counters.limit_h2_streams.add(1),
            Http2Event::Left(id) => self.leave_stream(conn, session, id),
            Http2Event::Broken(id, reason) => self.break_stream(conn, session, id, reason),
            Http2Event::Over(failure) => {
                self.count_failure(failure);
                session.is_over = true;
            }
            Http2Event::NeedMore => {}
        }
        Some(request)
    }

    fn begin_stream(
        &mut self,
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
        request: Request,
        opened: OpenedStream,
        bytes_in: u64,
    ) {
        self.note_start(conn, &request);
        request.record_mut().bytes_in = bytes_in;
        request.exchange.key.set(conn.key);
        let has_body = opened.length != Some(0) || session.core.body_is_open(opened.stream);
        let body = has_body.then(|| Incoming {
            state: IncomingState::Open,
            announced: opened.length,
            ..Incoming::default()
        });
        self.answer_on(session, opened.stream, request, body);
    }

    /// What came was no request: it has a record all the same.
    fn note_malformed(
        &mut self,
        conn: &mut SocketConnection,
        request: Request,
        reason: &'static str,
    ) {
        self.counters.bad_request.add(1);
        self.note_start(conn, &request);
        note_end(&request, Outcome::Broken, Fault::Client, reason);
        self.finishing.push(request);
    }

    fn end_body(
        &mut self,
        session: &mut Http2ServerSession,
        id: u32,
        trailers: Vec<(Bytes, Bytes)>,
    ) {
        let Some(at) = session.find(id) else {
            return;
        };
        let held =
            |stream: &Http2RequestStream| stream.request.exchange.body.borrow().trailer_bytes();
        let others_bytes = match trailers.is_empty() {
            true => 0,
            false => session.streams.iter().map(held).sum(),
        };
        let stream = &mut session.streams[at];
        stream.body_by_ms = u64::MAX;
        let mut body = stream.request.exchange.body.borrow_mut();
        if body.state != IncomingState::Open {
            return;
        }
        if body.take_trailers(trailers, others_bytes) {
            body.end();
        } else {
            self.counters.limit_connection_heads.add(1);
            body.break_off(BodyError::TooLarge);
        }
    }

    /// The client will send nothing more, windows neither: what has none left cannot be sent. Says
    /// whether that changes anything.
    pub(super) fn end_of_frames(
        &mut self,
        conn: &SocketConnection,
        session: &mut Http2ServerSession,
    ) -> bool {
        let mut has_changed = false;
        let mut at = 0;
        while let Some(stream) = session.streams.get(at) {
            let exchange = &stream.request.exchange;
            let id = stream.id;
            let is_cancelled = exchange.said.half_close.get() == HalfClose::Cancel;
            if is_cancelled || session.core.has_no_room(id) {
                session
                    .core
                    .break_off(id, Http2ErrorCode::Cancel, &mut self.output);
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

    fn count_failure(&self, failure: Http2ConnectionError) {
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
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
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
                answer = stream.work.poll_answer(&waker);
            }
            _ => {}
        }
        self.push_interims_on(session, id, &request);
        if let Some(response) = answer {
            let stream = session.streams.swap_remove(at);
            // The handler's future goes before its answer is sent.
            drop(stream);
            self.respond_on(session, id, request, response);
            return;
        }
        self.look_at_body(session, at);
    }
}

/// True when the connection may hold one more head.
fn has_room(session: &Http2ServerSession, request: &Request) -> bool {
    let others = session.streams.iter().map(|stream| stream.request.head());
    request.head().has_room_beside(others)
}
