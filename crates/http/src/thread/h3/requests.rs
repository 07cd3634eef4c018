//! What has come over a connection: requests, their bodies, their ends.

use std::rc::Rc;

use bytes::Bytes;
use hob_trace::{Fault, Outcome};

use crate::body::BodyError;
use crate::fields_coding::head::{Sound, Wrong};
use crate::fields_coding::qpack;
use crate::h3::quic::Readout;
use crate::h3::{Http3ConnectionError, Http3ErrorCode, Receiver, RequestStreamEvent};
use crate::limits::BODY_WINDOW_BYTES;
use crate::refusal::{HEAD_TOO_LONG, Refusal};
use crate::request::{Incoming, IncomingState, Request};
use crate::response::Responder;
use crate::thread::exchange::{BodyInterest, note_end};
use crate::thread::h3::stream::Receiving;
use crate::thread::h3::{Http3ServerSession, Http3SessionStage};
use crate::thread::run::Thread;
use crate::thread::work::Work;

const WRONG_SIZE: &str = "the body has not the size that was announced";
/// Bytes read from a stream at a time.
const READ_BYTES: usize = 16 * 1024;

impl<A: Responder + 'static> Thread<A> {
    /// Reads what has come over a stream, as far as somebody wants it; says whether something did.
    pub(super) fn read_stream(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        budget: &mut usize,
    ) -> bool {
        let mut has_moved = false;
        while session.stage == Http3SessionStage::Open && *budget > 0 {
            let stream = &mut session.streams[at];
            let room = room_of(stream.receiving, stream.request.as_ref());
            if !stream.is_readable || stream.receiving == Receiving::Ended {
                break;
            }
            if room == 0 {
                if session.conn.was_reset(stream.id) {
                    self.leave_request(session, at);
                    return true;
                }
                break;
            }
            match session.conn.read(stream.id, room.min(READ_BYTES)) {
                Readout::Bytes(bytes) if stream.receiving == Receiving::Head => {
                    *budget = budget.saturating_sub(bytes.len());
                    self.take_begin(session, at, bytes);
                }
                Readout::Bytes(bytes) => {
                    *budget = budget.saturating_sub(bytes.len());
                    self.take_bytes(session, at, &bytes, false);
                }
                Readout::Nothing => {
                    stream.is_readable = false;
                    break;
                }
                Readout::End => self.end_input(session, at),
                Readout::Gone => self.leave_request(session, at),
            }
            has_moved = true;
        }
        has_moved
    }

    /// Bytes of a head. Whether the request ends with them decides whether it has a body at all.
    fn take_begin(&mut self, session: &mut Http3ServerSession, at: usize, first: Bytes) {
        let id = session.streams[at].id;
        let mut rest = Vec::new();
        let end = loop {
            match session.conn.read(id, READ_BYTES) {
                Readout::Bytes(more) if rest.is_empty() => rest = [&first[..], &more].concat(),
                Readout::Bytes(more) => rest.extend_from_slice(&more),
                end => break end,
            }
            if rest.len() >= 2 * READ_BYTES {
                break Readout::Nothing;
            }
        };
        let has_ended = matches!(end, Readout::End);
        let bytes = if rest.is_empty() { &first[..] } else { &rest };
        self.take_bytes(session, at, bytes, has_ended);
        match end {
            Readout::End if session.stage == Http3SessionStage::Open => self.end_input(session, at),
            Readout::Gone if session.stage == Http3SessionStage::Open => {
                self.leave_request(session, at)
            }
            // Whatever is there is asked for once more.
            _ => {}
        }
    }

    fn take_bytes(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        bytes: &[u8],
        has_ended: bool,
    ) {
        let mut used = 0;
        while session.stage == Http3SessionStage::Open {
            let stream = &mut session.streams[at];
            let (count, event) = stream.receiver.read(&bytes[used..]);
            used += count;
            stream.bytes_in += count as u64;
            let is_tiny = stream.receiver.take_tiny();
            if is_tiny && let Err(failure) = session.core.note_tiny_data(self.turn.now_ms) {
                return self.fail(session, failure);
            }
            match event {
                RequestStreamEvent::NeedMore => return,
                RequestStreamEvent::Head(section) => {
                    let is_last = has_ended && Receiver::is_idle(&bytes[used..]);
                    self.take_head(session, at, &section, is_last);
                }
                RequestStreamEvent::Data(len) => {
                    self.take_piece(session, at, &bytes[used - len..used])
                }
                RequestStreamEvent::Trailers(section) => {
                    self.end_with_trailers(session, at, &section)
                }
                RequestStreamEvent::TooLong => self.refuse_unfinished(session, at, HEAD_TOO_LONG),
                RequestStreamEvent::Idle => {
                    if let Err(failure) = session.core.note_idle(self.turn.now_ms) {
                        self.fail(session, failure);
                    }
                }
                RequestStreamEvent::Broken(failure) => self.fail(session, failure),
            }
            if session
                .streams
                .get(at)
                .is_none_or(|stream| stream.receiving == Receiving::Ended)
            {
                return;
            }
        }
    }

    /// A request's head is there.
    fn take_head(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        section: &[u8],
        is_last: bool,
    ) {
        let mut request = self.request_for(&session.facts);
        let Some(exchange) = Rc::get_mut(&mut request.exchange) else {
            debug_assert!(false, "a fresh request has one owner");
            return;
        };
        let limits = Rc::clone(&self.limits);
        let read = qpack::read_head(section, &mut exchange.head, &limits);
        let others = session
            .streams
            .iter()
            .filter_map(|stream| stream.request.as_ref());
        let others = others.map(Request::head);
        if read.is_ok() && !request.head().has_room_beside(others) {
            self.counters.limit_connection_heads.add(1);
            self.recycle(request);
            //= rfc9114#4.1.1
            session.cut(at, Http3ErrorCode::RequestRejected);
            return self.count_reset(session);
        }
        match read {
            Err(malformed) => {
                self.recycle(request);
                self.fail(
                    session,
                    Http3ConnectionError::new(Http3ErrorCode::Decompression, malformed.0),
                );
            }
            Ok(Ok(sound)) => {
                let announced = match is_last {
                    true => sound.length.or(Some(0)),
                    false => sound.length,
                };
                self.open_request(session, at, request, sound, announced);
            }
            Ok(Err(Wrong::Refused(refusal))) => {
                self.refuse_request(session, at, request, refusal);
            }
            Ok(Err(Wrong::Malformed(reason))) => {
                self.end_malformed(session, at, request, reason);
            }
        }
    }

    fn open_request(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        request: Request,
        sound: Sound,
        announced: Option<u64>,
    ) {
        self.open_record(session, at, &request);
        let stream = &mut session.streams[at];
        let id = stream.id;
        stream.head_by_ms = u64::MAX;
        stream.receiving = Receiving::Body(sound.length);
        stream.is_head_method = request.head().method() == b"HEAD";
        stream.continue_is_due = sound.expects_continue;
        stream.is_tunnel = sound.is_tunnel;
        if sound.is_tunnel {
            stream.receiver.begin_tunnel();
        }
        if !stream.has_early_priority {
            stream.priority = sound.priority;
        }
        let (urgency, age) = stream.order();
        session.conn.set_order(id, urgency, age);
        request.exchange.key.set(session.key());
        session.streams[at].request = Some(request.clone());
        let body = (announced != Some(0)).then(|| Incoming {
            state: IncomingState::Open,
            announced,
            ..Incoming::default()
        });
        self.answer_on(session, at, request, body);
    }

    /// Opens the record of a request.
    pub(super) fn open_record(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        request: &Request,
    ) {
        let count = session.request_count;
        self.note_start_of(&session.facts, count, request);
        request.record_mut().bytes_in = session.streams[at].bytes_in;
        session.request_count = count.wrapping_add(1);
    }

    /// A head that is longer than any that is read.
    pub(super) fn refuse_unfinished(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        refusal: Refusal,
    ) {
        if session.streams[at].request.is_some() {
            // Trailers: the request was sound so far.
            return self.break_request(session, at, "limits.head: the trailers are too long");
        }
        let request = self.request_for(&session.facts);
        self.refuse_request(session, at, request, refusal);
    }

    /// Answers what is refused.
    pub(super) fn refuse_request(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        request: Request,
        refusal: Refusal,
    ) {
        self.open_record(session, at, &request);
        let stream = &mut session.streams[at];
        stream.head_by_ms = u64::MAX;
        stream.receiving = Receiving::Body(None);
        stream.is_head_method = request.head().method() == b"HEAD";
        stream.request = Some(request.clone());
        request.exchange.key.set(session.key());
        self.refuse_on(session, at, request, refusal);
    }

    /// What came was no request: it has a record all the same.
    fn end_malformed(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        request: Request,
        reason: &'static str,
    ) {
        self.counters.bad_request.add(1);
        self.open_record(session, at, &request);
        note_end(&request, Outcome::Broken, Fault::Client, reason);
        self.end_record(request, &session.conn);
        session.cut(at, Http3ErrorCode::Message);
        self.count_reset(session);
    }

    /// Bytes of a body, which has no more of them than was announced.
    fn take_piece(&mut self, session: &mut Http3ServerSession, at: usize, bytes: &[u8]) {
        let stream = &mut session.streams[at];
        let Receiving::Body(left) = &mut stream.receiving else {
            return;
        };
        let mut is_wrong = false;
        if let Some(left) = left {
            match left.checked_sub(bytes.len() as u64) {
                Some(rest) => *left = rest,
                None => is_wrong = true,
            }
        }
        if is_wrong {
            return self.break_request(session, at, WRONG_SIZE);
        }
        self.take_data(session, at, bytes);
    }

    fn end_with_trailers(&mut self, session: &mut Http3ServerSession, at: usize, section: &[u8]) {
        let limits = Rc::clone(&self.limits);
        match qpack::read_trailers(section, &limits) {
            Err(malformed) => {
                self.fail(
                    session,
                    Http3ConnectionError::new(Http3ErrorCode::Decompression, malformed.0),
                );
            }
            Ok(Err(reason)) => self.break_request(session, at, reason),
            Ok(Ok(trailers)) => {
                let requests = session
                    .streams
                    .iter()
                    .filter_map(|one| one.request.as_ref());
                let held = |request: &Request| request.exchange.body.borrow().trailer_bytes();
                let others_bytes = requests.map(held).sum();
                if let Some(request) = &session.streams[at].request {
                    let mut body = request.exchange.body.borrow_mut();
                    if !body.take_trailers(trailers, others_bytes) {
                        self.counters.limit_connection_heads.add(1);
                        body.break_off(BodyError::TooLarge);
                    }
                }
            }
        }
    }

    /// The client has sent all of a request.
    fn end_input(&mut self, session: &mut Http3ServerSession, at: usize) {
        let stream = &mut session.streams[at];
        if let Err(failure) = stream.receiver.end() {
            return self.fail(session, failure);
        }
        let before = std::mem::replace(&mut stream.receiving, Receiving::Ended);
        stream.body_by_ms = u64::MAX;
        match before {
            //= rfc9114#4.1
            Receiving::Head => {
                stream.head_by_ms = u64::MAX;
                session.cut(at, Http3ErrorCode::RequestIncomplete);
                self.count_reset(session);
            }
            Receiving::Body(Some(1..)) if !stream.is_tunnel => {
                self.break_request(session, at, WRONG_SIZE);
            }
            _ => {
                let Some(request) = &stream.request else {
                    return;
                };
                let mut body = request.exchange.body.borrow_mut();
                if body.state == IncomingState::Open {
                    body.end();
                }
            }
        }
    }

    /// What a stream's handler has asked for, and its answer if it is there now; says whether
    /// something changed.
    pub(super) fn look_at_request(&mut self, session: &mut Http3ServerSession, at: usize) -> bool {
        let stream = &mut session.streams[at];
        if stream.request.is_none() {
            // A new one is looked at as such when its whole head has come.
            return false;
        }
        let is_woken = stream.take_woken();
        let mut answer = None;
        if is_woken && matches!(stream.work, Some(Work::Later(_))) {
            let conn = self.session_waker(session);
            let stream = &mut session.streams[at];
            let waker = stream.waker(&conn);
            answer = stream
                .work
                .as_mut()
                .and_then(|work| work.poll_answer(&waker));
        }
        let stream = &mut session.streams[at];
        stream.may_have_more |= is_woken;
        let Some(request) = stream.request.clone() else {
            return false;
        };
        self.push_interims_on(session, at, &request);
        if let Some(response) = answer {
            // The handler's future goes before its answer is sent.
            session.streams[at].work = None;
            self.respond_on(session, at, request, response);
            return true;
        }
        self.look_at_input(session, at)
    }

    /// Lets the client send what the handler has room for; says whether something can be read, or
    /// changed.
    pub(super) fn look_at_input(&mut self, session: &mut Http3ServerSession, at: usize) -> bool {
        match self.look_at_body(session, at) {
            BodyInterest::Unwanted => false,
            BodyInterest::Refused => true,
            BodyInterest::Wanted(held_bytes) => {
                session.streams[at].is_readable && held_bytes < BODY_WINDOW_BYTES
            }
        }
    }
}

/// How many bytes somebody has room for.
fn room_of(receiving: Receiving, request: Option<&Request>) -> usize {
    match (receiving, request) {
        (Receiving::Head, _) => READ_BYTES,
        (Receiving::Ended, _) | (_, None) => 0,
        (Receiving::Body(left), Some(request)) => {
            let body = request.exchange.body.borrow();
            match body.state {
                // Nothing is to come but the end of the stream.
                IncomingState::Ended if left == Some(0) => READ_BYTES,
                IncomingState::Open if body.is_wanted => {
                    BODY_WINDOW_BYTES.saturating_sub(body.held_bytes)
                }
                _ => 0,
            }
        }
    }
}
