//! What has come over a connection: requests, their bodies, their ends.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_trace::{Fault, Outcome};

use crate::body::BodyError;
use crate::h1::parse::HEAD_TOO_LONG;
use crate::h1::{BODY_TOO_LARGE, Refusal};
use crate::h2::head::{Sound, Wrong};
use crate::h3::quic::Readout;
use crate::h3::{Code, Event, Failure, Receiver, qpack};
use crate::limits::BODY_WINDOW_BYTES;
use crate::request::{Incoming, IncomingState, Request};
use crate::response::{Answer, Answered};
use crate::thread::h2::stream::Work;
use crate::thread::h3::stream::{Receiving, Sending};
use crate::thread::h3::{Session, Stage};
use crate::thread::run::Thread;

const WRONG_SIZE: &str = "the body has not the size that was announced";
/// Bytes read from a stream at a time.
const READ_BYTES: usize = 16 * 1024;

impl<A: Answer + 'static> Thread<A> {
    /// Reads what has come over a stream, as far as somebody wants it; says whether something did.
    pub(super) fn read_stream(
        &mut self,
        session: &mut Session,
        at: usize,
        budget: &mut usize,
    ) -> bool {
        let mut has_moved = false;
        while session.stage == Stage::Open && *budget > 0 {
            let stream = &mut session.streams[at];
            let room = room_of(stream.receiving, stream.request.as_ref());
            if !stream.is_readable || stream.receiving == Receiving::Ended {
                break;
            }
            if room == 0 {
                if session.conn.was_reset(stream.id) {
                    self.leave_h3(session, at);
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
                Readout::Gone => self.leave_h3(session, at),
            }
            has_moved = true;
        }
        has_moved
    }

    /// Bytes of a head. Whether the request ends with them decides whether it has a body at all.
    fn take_begin(&mut self, session: &mut Session, at: usize, first: Bytes) {
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
            Readout::End if session.stage == Stage::Open => self.end_input(session, at),
            Readout::Gone if session.stage == Stage::Open => self.leave_h3(session, at),
            // Whatever is there is asked for once more.
            _ => {}
        }
    }

    fn take_bytes(&mut self, session: &mut Session, at: usize, bytes: &[u8], has_ended: bool) {
        let mut used = 0;
        while session.stage == Stage::Open {
            let stream = &mut session.streams[at];
            let (count, event) = stream.receiver.read(&bytes[used..]);
            used += count;
            stream.bytes_in += count as u64;
            let is_tiny = stream.receiver.take_tiny();
            if is_tiny && let Err(failure) = session.core.note_tiny_data(self.now_ms) {
                return self.fail(session, failure);
            }
            match event {
                Event::NeedMore => return,
                Event::Head(section) => {
                    let is_last = has_ended && Receiver::is_idle(&bytes[used..]);
                    self.begin_h3(session, at, &section, is_last);
                }
                Event::Data(len) => self.take_data_h3(session, at, &bytes[used - len..used]),
                Event::Trailers(section) => self.end_with_trailers(session, at, &section),
                Event::TooLong => self.refuse_head_h3(session, at, HEAD_TOO_LONG),
                Event::Idle => {
                    if let Err(failure) = session.core.note_idle(self.now_ms) {
                        self.fail(session, failure);
                    }
                }
                Event::Broken(failure) => self.fail(session, failure),
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
    fn begin_h3(&mut self, session: &mut Session, at: usize, section: &[u8], is_last: bool) {
        let mut request = self.request_for(&session.facts);
        let Some(exchange) = Rc::get_mut(&mut request.exchange) else {
            debug_assert!(false, "a fresh request has one owner");
            return;
        };
        let limits = Rc::clone(&self.limits);
        match qpack::read_head(section, &mut exchange.head, &limits) {
            Err(malformed) => {
                self.recycle(request);
                self.fail(session, Failure::new(Code::Decompression, malformed.0));
            }
            Ok(Ok(sound)) => {
                let announced = match is_last {
                    true => sound.length.or(Some(0)),
                    false => sound.length,
                };
                self.open_request(session, at, request, sound, announced);
            }
            Ok(Err(Wrong::Refused(refusal))) => {
                self.refuse_h3(session, at, request, refusal);
            }
            Ok(Err(Wrong::Malformed(reason))) => {
                self.note_malformed_h3(session, at, request, reason);
            }
        }
    }

    fn open_request(
        &mut self,
        session: &mut Session,
        at: usize,
        request: Request,
        sound: Sound,
        announced: Option<u64>,
    ) {
        self.note_start_h3(session, at, &request);
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
        request.exchange.body_limit.set(self.limits.body_bytes);
        if announced != Some(0) {
            *request.exchange.body.borrow_mut() = Incoming {
                state: IncomingState::Open,
                announced,
                ..Incoming::default()
            };
        }
        match self.answer.answer(&request) {
            Answered::Ready(response) => {
                if announced != Some(0) && response.status() == 413 {
                    // Who reads a body that is too large is counted when that shows.
                    self.counters.limit_body.add(1);
                }
                session.streams[at].request = Some(request);
                self.push_interims_h3(session, at);
                self.respond_h3(session, at, response);
            }
            Answered::Later(future) => {
                let stream = &mut session.streams[at];
                stream.request = Some(request);
                stream.work = Some(Work::Later(future));
            }
        }
    }

    /// Opens the record of a request.
    pub(super) fn note_start_h3(&mut self, session: &mut Session, at: usize, request: &Request) {
        let count = session.request_count;
        self.note_start_of(&session.facts, count, request);
        request.record_mut().bytes_in = session.streams[at].bytes_in;
        session.request_count = count.wrapping_add(1);
    }

    /// A head that is longer than any that is read.
    pub(super) fn refuse_head_h3(&mut self, session: &mut Session, at: usize, refusal: Refusal) {
        if session.streams[at].request.is_some() {
            // Trailers: the request was sound so far.
            return self.break_h3(session, at, "limits.head: the trailers are too long");
        }
        let request = self.request_for(&session.facts);
        self.refuse_h3(session, at, request, refusal);
    }

    /// Answers what is refused.
    pub(super) fn refuse_h3(
        &mut self,
        session: &mut Session,
        at: usize,
        request: Request,
        refusal: Refusal,
    ) {
        self.count_refusal(refusal);
        self.note_start_h3(session, at, &request);
        {
            let mut record = request.record_mut();
            record.fault = Fault::Client;
            record.reason = Some(refusal.reason);
        }
        request.exchange.key.set(session.key());
        let stream = &mut session.streams[at];
        stream.head_by_ms = u64::MAX;
        stream.receiving = Receiving::Body(None);
        let response = self.answer.refuse(&request, refusal.status);
        stream.is_head_method = request.head().method() == b"HEAD";
        stream.request = Some(request);
        self.respond_h3(session, at, response);
    }

    /// What came was no request: it has a record all the same.
    fn note_malformed_h3(
        &mut self,
        session: &mut Session,
        at: usize,
        request: Request,
        reason: &'static str,
    ) {
        self.counters.bad_request.add(1);
        self.note_start_h3(session, at, &request);
        {
            let mut record = request.record_mut();
            record.outcome = Outcome::Broken;
            record.fault = Fault::Client;
            record.reason = Some(reason);
        }
        self.end_record(request, &session.conn);
        session.cut(at, Code::Message);
        self.note_reset_h3(session);
    }

    /// The one copy of a request body out of the datagrams, to live as long as needed.
    fn take_data_h3(&mut self, session: &mut Session, at: usize, bytes: &[u8]) {
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
            return self.break_h3(session, at, WRONG_SIZE);
        }
        let Some(request) = stream.request.clone() else {
            return;
        };
        stream.body_bytes += bytes.len() as u64;
        request.record_mut().bytes_in += bytes.len() as u64;
        if stream.body_by_ms != u64::MAX {
            stream.body_by_ms = self.now_ms + self.limits.body_progress.as_millis() as u64;
        }
        let mut body = request.exchange.body.borrow_mut();
        if body.state != IncomingState::Open {
            return;
        }
        if stream.body_bytes > request.exchange.body_limit.get() {
            drop(body);
            return self.refuse_body_h3(session, at, &request);
        }
        body.push(Bytes::copy_from_slice(bytes));
    }

    /// More has come than anyone wants, or more is announced.
    fn refuse_body_h3(&mut self, session: &mut Session, at: usize, request: &Request) {
        {
            let mut record = request.record_mut();
            record.fault = Fault::Client;
            record.reason = Some(BODY_TOO_LARGE.reason);
            if record.status != 413 {
                // Else it was counted with its head, and now the body comes.
                self.counters.limit_body.add(1);
            }
        }
        session.stop_reading(at, Code::NoError);
        let mut body = request.exchange.body.borrow_mut();
        body.break_off(BodyError::TooLarge);
    }

    fn end_with_trailers(&mut self, session: &mut Session, at: usize, section: &[u8]) {
        let limits = Rc::clone(&self.limits);
        match qpack::read_trailers(section, &limits) {
            Err(malformed) => {
                self.fail(session, Failure::new(Code::Decompression, malformed.0));
            }
            Ok(Err(reason)) => self.break_h3(session, at, reason),
            Ok(Ok(trailers)) => {
                if let Some(request) = &session.streams[at].request {
                    request.exchange.body.borrow_mut().trailers = trailers;
                }
            }
        }
    }

    /// The client has sent all of a request.
    fn end_input(&mut self, session: &mut Session, at: usize) {
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
                session.cut(at, Code::RequestIncomplete);
                self.note_reset_h3(session);
            }
            Receiving::Body(Some(1..)) if !stream.is_tunnel => {
                self.break_h3(session, at, WRONG_SIZE);
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
    pub(super) fn look_at_h3(&mut self, session: &mut Session, at: usize) -> bool {
        let stream = &mut session.streams[at];
        if stream.request.is_none() {
            // A new one is looked at as such when its whole head has come.
            return false;
        }
        let is_woken = stream.take_woken();
        let mut answer = None;
        if is_woken && matches!(stream.work, Some(Work::Later(_))) {
            let conn = self.key_waker_h3(session);
            let stream = &mut session.streams[at];
            let waker = stream.waker(&conn);
            if let Some(Work::Later(future)) = &mut stream.work
                && let Poll::Ready(response) =
                    future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                answer = Some(response);
            }
        }
        session.streams[at].may_have_more |= is_woken;
        self.push_interims_h3(session, at);
        if let Some(response) = answer {
            // The handler's future goes before its answer is sent.
            session.streams[at].work = None;
            self.respond_h3(session, at, response);
            return true;
        }
        self.look_at_body_h3(session, at)
    }

    /// Lets the client send what the handler has room for.
    pub(super) fn look_at_body_h3(&mut self, session: &mut Session, at: usize) -> bool {
        let stream = &mut session.streams[at];
        if stream.receiving == Receiving::Ended {
            // The answer may be over before the body is, which nobody reads any more then.
            return false;
        }
        let Some(request) = stream.request.clone() else {
            return false;
        };
        let (held_bytes, announced) = {
            let body = request.exchange.body.borrow();
            if body.state != IncomingState::Open || !body.is_wanted {
                return false;
            }
            (body.held_bytes, body.announced)
        };
        if announced.is_some_and(|announced| announced > request.exchange.body_limit.get()) {
            self.refuse_body_h3(session, at, &request);
            return true;
        }
        if stream.continue_is_due && stream.sending == Sending::Nothing {
            self.push_interim_h3(session, at, 100, &crate::head::Fields::new());
        }
        let stream = &mut session.streams[at];
        // Whoever has not read what is there does not wait for the client.
        stream.body_by_ms = match held_bytes {
            0 if stream.is_tunnel => u64::MAX,
            0 if stream.body_by_ms == u64::MAX => {
                self.now_ms + self.limits.body_progress.as_millis() as u64
            }
            0 => stream.body_by_ms,
            _ => u64::MAX,
        };
        stream.is_readable && held_bytes < BODY_WINDOW_BYTES
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
