//! Deadlines of a connection that speaks HTTP/2, and how its streams end before their time.

use hob_trace::{Fault, Outcome};

use crate::body::BodyError;
use crate::deadline::Deadline;
use crate::h2::Http2ErrorCode;
use crate::refusal::HEAD_TOO_SLOW;
use crate::request::Request;
use crate::response::Responder;
use crate::thread::conn::SocketConnection;
use crate::thread::drive::Fate;
use crate::thread::ending::{BODY_TOO_SLOW, WRITE_TOO_SLOW, Why};
use crate::thread::exchange::note_end;
use crate::thread::h2::Http2ServerSession;
use crate::thread::h2::stream::Http2RequestStream;
use crate::thread::run::Thread;
use crate::thread::waits::set_wait;
use crate::thread::work::Work;

impl<A: Responder + 'static> Thread<A> {
    /// The client has taken a request back.
    pub(super) fn leave_stream(
        &mut self,
        conn: &SocketConnection,
        session: &mut Http2ServerSession,
        id: u32,
    ) {
        let Some(at) = session.find(id) else {
            return;
        };
        let stream = session.streams.swap_remove(at);
        let request = dismiss(stream, self.turn.now_us);
        self.note_left(&request, Why::ClientLeft);
        self.end_record(request, &conn.socket);
    }

    /// A request turned out malformed.
    pub(super) fn break_stream(
        &mut self,
        conn: &SocketConnection,
        session: &mut Http2ServerSession,
        id: u32,
        reason: &'static str,
    ) {
        let Some(at) = session.find(id) else {
            return;
        };
        self.counters.bad_request.add(1);
        let stream = session.streams.swap_remove(at);
        stream
            .request
            .exchange
            .body
            .borrow_mut()
            .break_off(BodyError::Malformed(reason));
        let request = dismiss(stream, self.turn.now_us);
        note_end(&request, Outcome::Broken, Fault::Client, reason);
        self.end_record(request, &conn.socket);
    }

    /// The connection ends with streams open: those who wait are told, records are closed.
    pub(super) fn abandon_streams(
        &mut self,
        conn: &SocketConnection,
        session: &mut Http2ServerSession,
    ) {
        for stream in std::mem::take(&mut session.streams) {
            let request = dismiss(stream, self.turn.now_us);
            self.note_left(&request, Why::ClientLeft);
            self.end_record(request, &conn.socket);
        }
    }

    /// Sets the clocks of streams whose client has no room for what they have.
    pub(super) fn set_clocks(&mut self, conn: &SocketConnection, session: &mut Http2ServerSession) {
        let by_ms = self.turn.now_ms + self.limits.write_progress.as_millis() as u64;
        let is_waited_for = conn.has_unsent() || session.core.is_full();
        session.write_by_ms = match session.write_by_ms {
            _ if !is_waited_for => u64::MAX,
            u64::MAX => by_ms,
            set => set,
        };
        for stream in &mut session.streams {
            let (id, now_us) = (stream.id, self.turn.now_us);
            let is_waiting =
                session.core.is_held_up(id) || (is_waited_for && session.core.has_bytes(id));
            set_wait(
                &mut stream.take_since_us,
                is_waiting,
                now_us,
                &stream.request,
            );
            stream.write_by_ms = match stream.write_by_ms {
                _ if !session.core.is_held_up(stream.id) => u64::MAX,
                u64::MAX => by_ms,
                set => set,
            };
        }
    }

    /// A deadline has passed.
    pub(crate) fn time_out_session(&mut self, conn: &mut SocketConnection) -> Fate {
        let Some(mut session) = conn.h2.take() else {
            return Fate::Close;
        };
        let (by_ms, deadline) = session.core.deadline();
        let is_core_s = by_ms <= self.turn.now_ms;
        if session.write_by_ms <= self.turn.now_ms {
            self.counters.limit_write_progress.add(1);
            for stream in &session.streams {
                note_end(
                    &stream.request,
                    Outcome::Timeout,
                    Fault::Client,
                    WRITE_TOO_SLOW,
                );
            }
            conn.h2 = Some(session);
            // What the kernel holds for a client that takes nothing goes at once.
            conn.close_with_reset();
            return Fate::Close;
        }
        self.time_out_streams(&mut session);
        match deadline {
            Deadline::Head if is_core_s => {
                self.counters.limit_head_time.add(1);
                session.core.give_up(HEAD_TOO_SLOW.reason, &mut self.output);
                session.is_over = true;
            }
            Deadline::Idle if is_core_s => {
                conn.h2 = Some(session);
                return self.time_out_idle_session(conn);
            }
            _ => {}
        }
        conn.h2 = Some(session);
        self.drive(conn)
    }

    /// No request for as long as a connection may be idle, unless one came in this very turn.
    fn time_out_idle_session(&mut self, conn: &mut SocketConnection) -> Fate {
        let fate = self.drive_if_busy(conn);
        let is_late = |session: &Http2ServerSession| session.core.deadline().0 <= self.turn.now_ms;
        if fate == Fate::Keep
            && let Some(session) = conn.h2.as_mut().filter(|session| is_late(session))
        {
            self.counters.limit_idle.add(1);
            session.core.leave(&mut self.output);
            session.is_over = true;
            return self.drive(conn);
        }
        fate
    }

    fn time_out_streams(&mut self, session: &mut Http2ServerSession) {
        let mut at = 0;
        while let Some(stream) = session.streams.get_mut(at) {
            let is_body_late = stream.body_by_ms <= self.turn.now_ms;
            let is_write_late = stream.write_by_ms <= self.turn.now_ms;
            if !is_body_late && !is_write_late {
                at += 1;
                continue;
            }
            let reason = if is_body_late {
                self.counters.limit_body_progress.add(1);
                BODY_TOO_SLOW
            } else {
                self.counters.limit_write_progress.add(1);
                WRITE_TOO_SLOW
            };
            let stream = session.streams.swap_remove(at);
            note_end(&stream.request, Outcome::Timeout, Fault::Client, reason);
            self.time_out_stream(session, stream);
        }
    }

    /// 408 unless an answer is under way.
    fn time_out_stream(&mut self, session: &mut Http2ServerSession, stream: Http2RequestStream) {
        let id = stream.id;
        let is_unanswered = matches!(stream.work, Work::Later(_));
        let request = stream.request.clone();
        let error = BodyError::TooSlow;
        request.exchange.body.borrow_mut().break_off(error);
        if is_unanswered {
            drop(stream);
            let response = self.answer.refuse(&request, 408);
            return self.respond_on(session, id, request, response);
        }
        drop(dismiss(stream, self.turn.now_us));
        session
            .core
            .break_off(id, Http2ErrorCode::Cancel, &mut self.output);
        self.finishing.push(request);
    }
}

/// Tells whoever works on the stream that the client has left, and ends the work.
fn dismiss(mut stream: Http2RequestStream, now_us: u64) -> Request {
    let request = stream.request.clone();
    stream.end_wait(now_us);
    request.exchange.leave();
    drop(stream);
    request
}
