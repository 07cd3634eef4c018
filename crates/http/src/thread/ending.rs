//! How requests and connections end for the books: records, deadlines, what is told to whom.

use std::rc::Rc;

use hob_trace::{Fault, Outcome};

use crate::body::BodyError;
use crate::clock::clock_us;
use crate::deadline::Deadline;
use crate::network::NetworkProbe;
use crate::refusal::HEAD_TOO_SLOW;
use crate::request::{IncomingState, Request};
use crate::response::Responder;
use crate::thread::conn::{ConnectionStage, OutputPiece, SocketConnection};
use crate::thread::drive::Fate;
use crate::thread::exchange::note_end;
use crate::thread::run::Thread;
use crate::tls::failure::HandshakeFailure;

/// A body and its announced size do not agree.
pub(super) const LONGER: &str = "the body is longer than its announced size";
pub(super) const SHORTER: &str = "the body is shorter than its announced size";
pub(super) const BODY_TOO_SLOW: &str = "limits.body_progress: the client stopped sending";
pub(super) const WRITE_TOO_SLOW: &str = "limits.write_progress: the client took no bytes";

/// Why a connection ends with something under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    ClientLeft,
    ServerStops,
}

impl<A: Responder + 'static> Thread<A> {
    /// Everything of these answers was handed to the kernel.
    pub(crate) fn finish_all(&mut self, way: &dyn NetworkProbe) {
        if self.finishing.is_empty() {
            return;
        }
        let written_us = clock_us();
        let mut finishing = std::mem::take(&mut self.finishing);
        for request in finishing.drain(..) {
            self.close_record(&request, written_us, way);
            self.recycle(request);
        }
        self.finishing = finishing;
    }

    /// The connection ends with something under way: those who wait are told, records are closed.
    pub(crate) fn abandon(&mut self, conn: &mut SocketConnection, why: Why) {
        self.note_taken(conn);
        let waiting = conn.request.take();
        let mut session = conn.h2.take();
        for stream in session.iter_mut().flat_map(|session| &mut session.streams) {
            stream.end_wait(self.turn.now_us);
        }
        let streams = session.iter().flat_map(|session| session.requests());
        let queued = std::mem::take(&mut conn.out.pieces);
        let sealed_bytes = conn.secure.as_ref().map_or(0, |s| s.outbound_bytes()) as u64;
        let queued_bytes: u64 = queued.iter().map(OutputPiece::unsent_bytes).sum();
        let unsent_bytes = queued_bytes + sealed_bytes;
        let ended = queued.into_iter().filter_map(|piece| match piece {
            OutputPiece::End(request) => Some(request),
            _ => None,
        });
        let fresh = std::mem::take(&mut self.finishing);
        let answering = waiting.into_iter().chain(streams);
        let left: Vec<Request> = fresh.into_iter().chain(ended).chain(answering).collect();
        for request in &left {
            request.exchange.leave();
        }
        discount_unsent(&left, unsent_bytes);
        // Futures and streams go after they could see that the client has left.
        conn.stage = ConnectionStage::Lingering;
        conn.out.fetch = None;
        drop(session);
        for request in left {
            self.note_left(&request, why);
            self.end_record(request, &conn.socket);
        }
    }

    /// Notes why an answer that is not complete will not be.
    pub(super) fn note_left(&self, request: &Request, why: Why) {
        let mut record = request.record_mut();
        match (record.outcome, why) {
            (Outcome::Complete, Why::ClientLeft) => {
                record.outcome = Outcome::ClientLeft;
                record.fault = Fault::Client;
                self.counters.client_left.add(1);
            }
            (Outcome::Complete, Why::ServerStops) => {
                record.outcome = Outcome::Broken;
                record.fault = Fault::Server;
                record.reason = Some("the server stopped before the answer was complete");
            }
            // It is known already what went wrong.
            _ => {}
        }
    }

    /// Nothing more happens with this request.
    pub(super) fn end_record(&mut self, request: Request, way: &dyn NetworkProbe) {
        self.close_record(&request, clock_us(), way);
        self.recycle(request);
    }

    /// The same at a time that is known.
    pub(super) fn close_record(&self, request: &Request, end_us: u64, way: &dyn NetworkProbe) {
        {
            let mut record = request.record_mut();
            record.total_us = end_us.saturating_sub(record.started_us);
            if record.first_byte_us == 0 {
                record.first_byte_us = record.total_us;
            }
        }
        self.note_waits(request, end_us, way);
        if Rc::strong_count(&request.exchange) > 1 {
            // Someone still holds it: no more body will come.
            let mut body = request.exchange.body.borrow_mut();
            if body.state == IncomingState::Open {
                body.break_off(BodyError::ClientLeft);
            }
        }
        request.let_go();
        self.answer.finished(request);
    }

    /// A deadline has passed.
    pub(crate) fn time_out(&mut self, conn: &mut SocketConnection, deadline: Deadline) -> Fate {
        if conn.h2.is_some() {
            return self.time_out_session(conn);
        }
        match deadline {
            Deadline::None => return Fate::Keep,
            Deadline::Idle => return self.time_out_idle(conn),
            Deadline::Linger => self.counters.limit_linger.add(1),
            Deadline::Write => {
                self.counters.limit_write_progress.add(1);
                mark_slow(conn, WRITE_TOO_SLOW);
                // What the kernel holds for a client that takes nothing goes at once.
                conn.close_with_reset();
            }
            Deadline::Head if matches!(conn.stage, ConnectionStage::Header(_)) => {
                self.time_out_header(conn);
            }
            Deadline::Head if matches!(conn.stage, ConnectionStage::TurnedAway) => {
                return self.turn_down(conn);
            }
            Deadline::Head => {
                self.refuse_head(conn, HEAD_TOO_SLOW);
                return self.drive(conn);
            }
            Deadline::Handshake => {
                self.fail_handshake(conn, HandshakeFailure::Late);
            }
            Deadline::Body => return self.time_out_body(conn),
        }
        Fate::Close
    }

    /// Nothing came between requests, unless it came in this very turn.
    fn time_out_idle(&mut self, conn: &mut SocketConnection) -> Fate {
        let fate = self.drive_if_busy(conn);
        if fate == Fate::Keep && conn.is_idle() {
            self.counters.limit_idle.add(1);
            return Fate::Close;
        }
        fate
    }

    /// Looks whether an idle connection has a request after all, and lets it go on.
    pub(crate) fn drive_if_busy(&mut self, conn: &mut SocketConnection) -> Fate {
        conn.is_readable = true;
        self.drive(conn)
    }

    /// The client stopped sending its body: 408 unless an answer is under way.
    fn time_out_body(&mut self, conn: &mut SocketConnection) -> Fate {
        self.counters.limit_body_progress.add(1);
        mark_slow(conn, BODY_TOO_SLOW);
        if !matches!(conn.stage, ConnectionStage::Later(_)) {
            return Fate::Close;
        }
        let Some(request) = conn.request.take() else {
            return Fate::Close;
        };
        request
            .exchange
            .body
            .borrow_mut()
            .break_off(BodyError::TooSlow);
        conn.stage = ConnectionStage::Reading;
        conn.core.give_up_input();
        let mut response = self.answer.refuse(&request, 408);
        response.close = true;
        self.respond(conn, request, response);
        self.drive(conn)
    }
}

/// Takes the bytes that never left out of the records of their answers, which are in the order of
/// the connection: what is unsent is the end of it.
fn discount_unsent(answers: &[Request], mut unsent_bytes: u64) {
    for request in answers.iter().rev() {
        let mut record = request.record_mut();
        let made = record.head_bytes_out + record.body_bytes_out;
        let sent = made.saturating_sub(unsent_bytes);
        unsent_bytes -= made - sent;
        record.head_bytes_out = record.head_bytes_out.min(sent);
        record.body_bytes_out = sent - record.head_bytes_out;
    }
}

/// Notes in the record of the answer under way that its client was too slow.
fn mark_slow(conn: &SocketConnection, reason: &'static str) {
    let queued = conn.out.pieces.iter().find_map(|piece| match piece {
        OutputPiece::End(request) => Some(request),
        _ => None,
    });
    if let Some(request) = conn.request.as_ref().or(queued) {
        note_end(request, Outcome::Timeout, Fault::Client, reason);
    }
}
