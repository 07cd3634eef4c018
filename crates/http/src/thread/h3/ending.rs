//! Deadlines of connections over QUIC, and how they and their streams end.

use std::sync::atomic::Ordering;

use hob_trace::{Fault, Outcome};

use crate::body::BodyError;
use crate::h3::{Flood, Http3ConnectionError, Http3ErrorCode};
use crate::limits::{H3_LEAVE_MS, H3_PING_MS};
use crate::refusal::HEAD_TOO_SLOW;
use crate::response::Responder;
use crate::thread::ending::{BODY_TOO_SLOW, WRITE_TOO_SLOW, Why};
use crate::thread::exchange::note_end;
use crate::thread::h3::stream::{Receiving, ResponseProgress};
use crate::thread::h3::{Http3ServerSession, Http3SessionStage};
use crate::thread::handshake_failures::Attempt;
use crate::thread::run::Thread;
use crate::thread::work::Work;
use crate::tls::failure::HandshakeFailure;

impl<A: Responder + 'static> Thread<A> {
    /// The client has taken a request back, or does not want its answer.
    pub(super) fn leave_request(&mut self, session: &mut Http3ServerSession, at: usize) {
        let stream = &mut session.streams[at];
        stream.set_wait(false, self.turn.now_us);
        let request = stream.request.take();
        // Before the answer is dropped: who makes it looks whether the client has left.
        if let Some(request) = &request {
            request.exchange.leave();
        }
        session.cut(at, Http3ErrorCode::RequestCancelled);
        if let Some(request) = request {
            self.note_left(&request, Why::ClientLeft);
            self.end_record(request, &session.conn);
        }
        self.count_reset(session);
    }

    /// The client wants no more of an answer.
    pub(super) fn note_stopped(&mut self, session: &mut Http3ServerSession, id: u64) {
        let Some(at) = session.find(id) else {
            return;
        };
        self.leave_request(session, at);
    }

    /// A request turned out malformed.
    pub(super) fn break_request(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        reason: &'static str,
    ) {
        self.counters.bad_request.add(1);
        let stream = &mut session.streams[at];
        stream.set_wait(false, self.turn.now_us);
        let request = stream.request.take();
        if let Some(request) = &request {
            let error = BodyError::Malformed(reason);
            request.exchange.body.borrow_mut().break_off(error);
            request.exchange.leave();
        }
        session.cut(at, Http3ErrorCode::Message);
        if let Some(request) = request {
            note_end(&request, Outcome::Broken, Fault::Client, reason);
            self.end_record(request, &session.conn);
        }
        self.count_reset(session);
    }

    /// A request was taken back, or broken off for a fault: not too many of them.
    pub(super) fn count_reset(&mut self, session: &mut Http3ServerSession) {
        if session.stage == Http3SessionStage::Open
            && let Err(failure) = session.core.note_reset(self.turn.now_ms)
        {
            self.fail(session, failure);
        }
    }

    /// The client has broken the rules: the connection ends.
    pub(super) fn fail(&mut self, session: &mut Http3ServerSession, failure: Http3ConnectionError) {
        let counters = &self.counters;
        match failure.flood {
            None => counters.h3_errors.add(1),
            Some(Flood::Resets) => counters.limit_h3_resets.add(1),
            Some(Flood::TinyData) => counters.limit_h3_tiny_data.add(1),
            Some(Flood::Empty) => counters.limit_h3_empty.add(1),
        }
        tracing::debug!(reason = failure.reason, "an HTTP/3 connection was ended");
        self.close_session(session, failure.code, failure.reason, Why::ClientLeft);
    }

    /// Ends a connection from our side.
    pub(super) fn close_session(
        &mut self,
        session: &mut Http3ServerSession,
        code: Http3ErrorCode,
        reason: &str,
        why: Why,
    ) {
        let now_us = self.turn.now_us;
        if let Some(place) = self.quic.place(session.place) {
            let code = code as u64;
            place
                .endpoint
                .close(&mut session.conn, code, reason, now_us);
        }
        self.end_session(session, why, false);
    }

    /// The connection is over: whoever waits is told, and it counts no more. `is_in_order` says
    /// that the client had all it wanted.
    pub(super) fn end_session(
        &mut self,
        session: &mut Http3ServerSession,
        why: Why,
        is_in_order: bool,
    ) {
        match std::mem::replace(&mut session.stage, Http3SessionStage::Over) {
            Http3SessionStage::Over => return,
            Http3SessionStage::Handshake { .. } => {
                let failure = session.failure.unwrap_or(match why {
                    Why::ClientLeft => HandshakeFailure::Left,
                    Why::ServerStops => HandshakeFailure::Stopped,
                });
                let attempt = Attempt {
                    started_us: session.started_us,
                    server_name: None,
                    over: "QUIC",
                };
                self.book_failure(&session.facts, &attempt, failure, &"");
            }
            Http3SessionStage::Open => {}
        }
        for mut stream in std::mem::take(&mut session.streams) {
            stream.set_wait(false, self.turn.now_us);
            let Some(request) = stream.request.take() else {
                continue;
            };
            request.exchange.leave();
            stream.work = None;
            let ended_us = stream.ended_us;
            if ended_us > 0 && is_in_order {
                // Clients that have all they want go without a word about the last bytes.
                self.close_record(&request, ended_us, &session.conn);
                self.recycle(request);
                continue;
            }
            self.note_left(&request, why);
            self.end_record(request, &session.conn);
        }
        session.unis = Vec::new();
        session.unread.set(0);
        self.mailbox.conn_count.fetch_sub(1, Ordering::Relaxed);
        self.crew.leave(session.counted, session.counted_peer);
        self.counters.connections_closed.add(1);
    }

    /// Nothing more can come for a connection: its place is free.
    pub(super) fn forget(&mut self, session: &Http3ServerSession) {
        if let Some(place) = self.quic.place(session.place) {
            if let Some(index) = place.sessions.get_mut(session.conn.handle()) {
                *index = u32::MAX;
            }
            place.session_count -= 1;
        }
        self.quic.timers.remove(&(session.timer_ms, session.index));
        self.quic.free.push(session.index);
        self.drop_places();
    }

    /// Looks which time is up.
    pub(super) fn look_at_clocks(&mut self, session: &mut Http3ServerSession) {
        match session.stage {
            Http3SessionStage::Handshake { by_ms } if by_ms <= self.turn.now_ms => {
                session.failure = Some(HandshakeFailure::Late);
                let reason = "limits.handshake_time: it took too long";
                self.close_session(session, Http3ErrorCode::NoError, reason, Why::ClientLeft);
            }
            Http3SessionStage::Open if session.streams.is_empty() => {
                session.ping_by_ms = u64::MAX;
                if session.idle_by_ms <= self.turn.now_ms {
                    self.counters.limit_idle.add(1);
                    let mut out = Vec::new();
                    session.core.leave(&mut out);
                    session.push_control(out);
                    self.close_session(session, Http3ErrorCode::NoError, "", Why::ClientLeft);
                }
            }
            Http3SessionStage::Open => {
                if session.ping_by_ms <= self.turn.now_ms {
                    // An answer may take longer than either side would wait for nothing.
                    session.conn.ping();
                    session.ping_by_ms = u64::MAX;
                }
                if session.ping_by_ms == u64::MAX {
                    session.ping_by_ms = self.turn.now_ms + H3_PING_MS;
                }
                self.time_out_requests(session);
                self.look_for_silence(session);
            }
            Http3SessionStage::Handshake { .. } | Http3SessionStage::Over => {}
        }
    }

    /// A thread that ends does not wait long for clients that may have gone without a word.
    fn look_for_silence(&mut self, session: &mut Http3ServerSession) {
        let delivered_ms = session.delivered_ms().filter(|_| self.is_past_grace());
        let Some(delivered_ms) = delivered_ms else {
            session.silent_by_ms = u64::MAX;
            return;
        };
        if session.silent_by_ms == u64::MAX {
            // One that is only slow to read has nothing to say by itself: it is asked, and answers.
            session.conn.ping();
            session.silent_by_ms = self.turn.now_ms + H3_LEAVE_MS;
        }
        session.ping_by_ms = session.ping_by_ms.min(self.turn.now_ms + H3_LEAVE_MS / 2);
        session.silent_by_ms = session.silent_by_ms.max(delivered_ms + H3_LEAVE_MS);
        if session.silent_by_ms <= self.turn.now_ms {
            self.close_session(session, Http3ErrorCode::NoError, "", Why::ClientLeft);
        }
    }

    fn time_out_requests(&mut self, session: &mut Http3ServerSession) {
        for at in 0..session.streams.len() {
            if session.stage != Http3SessionStage::Open {
                return;
            }
            let stream = &mut session.streams[at];
            if stream.next_ms() > self.turn.now_ms {
                continue;
            }
            if stream.head_by_ms <= self.turn.now_ms {
                self.refuse_unfinished(session, at, HEAD_TOO_SLOW);
                // The answer is handed over in the next turn, whether or not the client says more.
                session.is_marked = true;
                continue;
            }
            let reason = if stream.body_by_ms <= self.turn.now_ms {
                self.counters.limit_body_progress.add(1);
                BODY_TOO_SLOW
            } else {
                self.counters.limit_write_progress.add(1);
                WRITE_TOO_SLOW
            };
            stream.body_by_ms = u64::MAX;
            stream.write_by_ms = u64::MAX;
            let (outcome, error) = (Outcome::Timeout, BodyError::TooSlow);
            self.give_up_request(session, at, reason, outcome, error, 408);
        }
    }

    /// This status unless an answer is under way.
    pub(super) fn give_up_request(
        &mut self,
        session: &mut Http3ServerSession,
        at: usize,
        reason: &'static str,
        outcome: Outcome,
        error: BodyError,
        status: u16,
    ) {
        let stream = &mut session.streams[at];
        let Some(request) = stream.request.clone() else {
            return session.cut(at, Http3ErrorCode::RequestCancelled);
        };
        note_end(&request, outcome, Fault::Client, reason);
        request.exchange.body.borrow_mut().break_off(error);
        if matches!(stream.work, Some(Work::Later(_))) {
            stream.work = None;
            let response = self.answer.refuse(&request, status);
            return self.respond_on(session, at, request, response);
        }
        request.exchange.leave();
        stream.set_wait(false, self.turn.now_us);
        stream.request = None;
        session.cut(at, Http3ErrorCode::RequestCancelled);
        self.end_record(request, &session.conn);
    }

    /// A draining thread tells its clients to go: first to open no more requests, later which one
    /// was the last.
    pub(super) fn announce_leaving(&mut self, session: &mut Http3ServerSession) {
        let Some(draining) = self.draining else {
            return;
        };
        let mut out = Vec::new();
        session.core.announce_leaving(&mut out);
        if self.turn.now_ms >= draining.grace_ms {
            session.core.leave(&mut out);
        }
        if !out.is_empty() {
            session.push_control(out);
        }
    }

    /// Closes a connection that was told to go and has its answers.
    pub(super) fn close_if_done(&mut self, session: &mut Http3ServerSession) {
        if self.is_past_grace() && session.stage == Http3SessionStage::Open && session.is_idle() {
            self.close_session(session, Http3ErrorCode::NoError, "", Why::ServerStops);
        }
    }

    fn is_past_grace(&self) -> bool {
        self.draining
            .is_some_and(|draining| self.turn.now_ms >= draining.grace_ms)
    }

    /// Has all connections look whether it is time to go.
    pub(crate) fn mark_sessions(&mut self) {
        self.quic.mark_all();
    }

    /// The time to drain is over.
    pub(crate) fn close_sessions(&mut self) {
        for index in 0..self.quic.sessions.len() {
            if let Some(mut session) = self.quic.sessions[index].take() {
                self.close_session(&mut session, Http3ErrorCode::NoError, "", Why::ServerStops);
                self.send_datagrams(&mut session, false);
                self.quic.sessions[index] = Some(session);
            }
        }
    }
}

impl Http3ServerSession {
    /// Reads no more of a request.
    pub(super) fn stop_reading(&mut self, at: usize, code: Http3ErrorCode) {
        let stream = &mut self.streams[at];
        stream.body_by_ms = u64::MAX;
        stream.head_by_ms = u64::MAX;
        if std::mem::replace(&mut stream.receiving, Receiving::Ended) != Receiving::Ended {
            self.conn.stop(stream.id, code as u64);
        }
    }

    /// Breaks a stream off both ways.
    pub(super) fn cut(&mut self, at: usize, code: Http3ErrorCode) {
        self.stop_reading(at, code);
        let stream = &mut self.streams[at];
        stream.work = None;
        stream.must_end = false;
        stream.is_half_closed = false;
        stream.write_by_ms = u64::MAX;
        stream.unsent = bytes::Bytes::new();
        if stream.sending != ResponseProgress::Over {
            stream.sending = ResponseProgress::Over;
            self.conn.reset(stream.id, code as u64);
        }
    }
}
