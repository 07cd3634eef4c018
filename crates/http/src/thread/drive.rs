//! What happens when a connection can go on: send, then let the answer or the reading go on, until
//! nothing moves.

use std::rc::Rc;
use std::task::{Context, Poll};

use crate::h1::{AfterAnswer, Eof, Framing, Http1Event, Length};
use crate::h2::PREFACE;
use crate::head::RequestHead;
use crate::limits::{READ_BYTES_PER_TURN, REQUESTS_PER_TURN};
use crate::refusal::Refusal;
use crate::request::{Incoming, IncomingState, Request};
use crate::response::{Answered, Responder};
use crate::thread::conn::{ConnectionStage, OutputPiece, SocketConnection};
use crate::thread::pump::{Discarded, Pumped};
use crate::thread::receive::SocketReadOutcome;
use crate::thread::run::Thread;
use crate::thread::send::Flushed;

/// Rounds of sending and making on one connection before others have their turn.
const ROUNDS_PER_TURN: usize = 8;

/// Whether a connection lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Keep,
    Close,
}

/// What the first bytes of a connection in clear text say of its protocol.
//= rfc9113#3.3
pub(crate) enum Greeting {
    /// HTTP/2: all of its preface is there.
    Whole,
    /// HTTP/2 as far as it goes.
    Part,
    /// HTTP/1.
    Other,
}

impl Greeting {
    pub(crate) fn of(input: &[u8]) -> Greeting {
        let len = input.len().min(PREFACE.len());
        match input[..len] == PREFACE[..len] {
            false => Greeting::Other,
            true if len < PREFACE.len() => Greeting::Part,
            true => Greeting::Whole,
        }
    }
}

/// Whether driving goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriveOutcome {
    Again,
    Wait,
    Close,
}

impl<A: Responder + 'static> Thread<A> {
    /// Lets the connection go as far as it can. `output` and `finishing` are empty before, unless
    /// an answer was begun already, and empty after.
    pub(crate) fn drive(&mut self, conn: &mut SocketConnection) -> Fate {
        // What handlers ask for while their connection is driven is seen to right here.
        self.ready.begin(conn.key);
        let fate = if conn.is_reset {
            Fate::Close
        } else {
            self.drive_on(conn)
        };
        self.ready.end();
        if fate == Fate::Close && !self.output.is_empty() {
            // The books want to know what never left.
            let unsent = self.output.as_slice().to_vec();
            conn.out.push_front(OutputPiece::Own(unsent, 0));
        }
        self.output.clear();
        if fate == Fate::Keep
            && let Err(error) = self.watch(conn)
        {
            hob_trace::warn_seldom!(%error, "a connection could not be watched");
            return Fate::Close;
        }
        fate
    }

    fn drive_on(&mut self, conn: &mut SocketConnection) -> Fate {
        let mut rounds = 0;
        let mut waits = false;
        loop {
            if conn.h2.is_some()
                && let Some(fate) = self.drive_frames(conn)
            {
                return fate;
            }
            rounds += 1;
            if rounds > ROUNDS_PER_TURN {
                self.queue_bulk(conn);
            }
            if self.has_output(conn) {
                match self.flush(conn) {
                    Flushed::All => conn.core.wrote_all(self.turn.now_ms),
                    Flushed::Blocked => return self.read_beside(conn),
                    Flushed::Fetching => return Fate::Keep,
                    Flushed::Yield => {
                        self.queue_bulk(conn);
                        return Fate::Keep;
                    }
                    Flushed::Broken => return Fate::Close,
                }
            }
            if waits || conn.is_in_bulk {
                return Fate::Keep;
            }
            match self.step(conn) {
                DriveOutcome::Again => {}
                DriveOutcome::Wait => {
                    if !self.has_output(conn) {
                        return Fate::Keep;
                    }
                    waits = true;
                }
                DriveOutcome::Close => return Fate::Close,
            }
        }
    }

    /// Something is to be sent, or booked as sent.
    fn has_output(&self, conn: &SocketConnection) -> bool {
        !self.output.is_empty() || !self.finishing.is_empty() || conn.has_unsent()
    }

    fn step(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        match conn.stage {
            ConnectionStage::Header(_) => self.read_header(conn),
            ConnectionStage::Handshake => self.shake(conn),
            ConnectionStage::Reading => self.read_requests(conn),
            ConnectionStage::TurnedAway => self.hear_out(conn),
            ConnectionStage::Later(_) => self.poll_answer(conn),
            ConnectionStage::Stream(_) | ConnectionStage::Pipe(_) if conn.has_left_by_fin() => {
                DriveOutcome::Close
            }
            ConnectionStage::Stream(_) => self.pull(conn),
            ConnectionStage::Pipe(_) => self.pull_pipe(conn),
            ConnectionStage::Flushing(next) => self.go_on(conn, next),
            ConnectionStage::Discarding => self.discard_body(conn),
            ConnectionStage::Lingering => match self.discard(conn) {
                Discarded::More => DriveOutcome::Wait,
                _ => DriveOutcome::Close,
            },
        }
    }

    /// The client takes no more for now. What it sends meanwhile is read, or both sides could wait
    /// for each other.
    fn read_beside(&mut self, conn: &mut SocketConnection) -> Fate {
        match conn.stage {
            ConnectionStage::Stream(_) | ConnectionStage::Pipe(_) => match self.pump(conn) {
                Pumped::Broken => Fate::Close,
                Pumped::Something | Pumped::Nothing => Fate::Keep,
            },
            ConnectionStage::Flushing(AfterAnswer::Discard) => {
                if let Discarded::End | Discarded::Refused = self.discard(conn) {
                    conn.stage = ConnectionStage::Flushing(conn.core.finish());
                }
                Fate::Keep
            }
            ConnectionStage::Flushing(AfterAnswer::Linger) => {
                self.discard(conn);
                Fate::Keep
            }
            _ => Fate::Keep,
        }
    }

    /// Reads and answers requests until input or the turn's budget is used up.
    fn read_requests(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        if !conn.carry.is_empty() {
            let carry = std::mem::take(&mut conn.carry);
            let used = self.answer_input(conn, &carry);
            if used < carry.len() {
                // What was read meanwhile cannot be: reading stops while there is a carry.
                conn.carry = if used == 0 {
                    carry
                } else {
                    carry[used..].to_vec()
                };
            }
            if used > 0 || !matches!(conn.stage, ConnectionStage::Reading) {
                return DriveOutcome::Again;
            }
        }
        if !conn.is_readable {
            return if conn.is_half_closed {
                self.end_of_input(conn)
            } else {
                DriveOutcome::Wait
            };
        }
        match self.receive(conn, READ_BYTES_PER_TURN) {
            SocketReadOutcome::Bytes(count) => {
                self.read_input(conn, count);
                // A part of a head: the rest may be there already.
                let is_partial =
                    matches!(conn.stage, ConnectionStage::Reading) && self.output.is_empty();
                if is_partial && !conn.is_readable && !conn.is_half_closed {
                    return DriveOutcome::Wait;
                }
                DriveOutcome::Again
            }
            SocketReadOutcome::Nothing => DriveOutcome::Wait,
            SocketReadOutcome::Eof => self.end_of_input(conn),
            SocketReadOutcome::Broken => DriveOutcome::Close,
        }
    }

    /// Answers what is in the first `count` bytes of `input`, after what was left over before.
    fn read_input(&mut self, conn: &mut SocketConnection, count: usize) {
        let input = std::mem::take(&mut self.input);
        if conn.carry.is_empty() {
            let used = self.answer_input(conn, &input[..count]);
            conn.carry.extend_from_slice(&input[used..count]);
        } else {
            let mut carry = std::mem::take(&mut conn.carry);
            carry.extend_from_slice(&input[..count]);
            let used = self.answer_input(conn, &carry);
            if used < carry.len() {
                carry.drain(..used);
                conn.carry = carry;
            }
        }
        self.input = input;
    }

    fn end_of_input(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        match conn.core.handle_eof(conn.carry.len()) {
            Eof::Refuse(refusal) => {
                self.refuse_head(conn, refusal);
                DriveOutcome::Again
            }
            Eof::Close | Eof::BodyBroken | Eof::HalfClosed => DriveOutcome::Close,
        }
    }

    /// Refuses a head that will not be complete.
    pub(crate) fn refuse_head(&mut self, conn: &mut SocketConnection, refusal: Refusal) {
        let mut request = self.fresh_request(conn);
        if let Some(exchange) = Rc::get_mut(&mut request.exchange) {
            crate::h1::parse::keep_refused_line(&conn.carry, &mut exchange.head);
        }
        conn.carry = Vec::new();
        conn.core.give_up_input();
        self.refuse(conn, request, refusal);
    }

    /// Answers the requests in `input`; returns how many bytes were used.
    fn answer_input(&mut self, conn: &mut SocketConnection, input: &[u8]) -> usize {
        let may_be_h2 = conn.request_count == 0 && !conn.must_be_secure;
        if may_be_h2 && input.starts_with(b"PR") {
            match Greeting::of(input) {
                Greeting::Whole => {
                    self.begin_frames(conn);
                    return 0;
                }
                Greeting::Part => return self.wait_for_greeting(conn, input),
                Greeting::Other => {}
            }
        }
        let mut used = 0;
        for _ in 0..REQUESTS_PER_TURN {
            if used == input.len() || self.output.len() >= READ_BYTES_PER_TURN {
                return used;
            }
            let mut request = self.fresh_request(conn);
            let Some(exchange) = Rc::get_mut(&mut request.exchange) else {
                debug_assert!(false, "a fresh request has one owner");
                return used;
            };
            let (count, event) =
                conn.core
                    .read(&input[used..], &mut exchange.head, self.turn.now_ms);
            used += count;
            match event {
                Http1Event::Request(framing) => self.begin(conn, request, framing),
                Http1Event::Refused(refusal) => {
                    self.refuse(conn, request, refusal);
                    return input.len();
                }
                Http1Event::NeedMore
                | Http1Event::Data(_)
                | Http1Event::BodyEnd(_)
                | Http1Event::Busy => {
                    self.recycle(request);
                    return used;
                }
            }
            if !matches!(conn.stage, ConnectionStage::Reading) {
                return used;
            }
        }
        // More is there: others first.
        self.queue_bulk(conn);
        used
    }

    /// It may become HTTP/2. As far as it could be a head of HTTP/1 too, it is read as one, which
    /// starts the clock of a head.
    fn wait_for_greeting(&mut self, conn: &mut SocketConnection, input: &[u8]) -> usize {
        const LINE: usize = b"PRI * HTTP/2.0\r\n".len();
        let part = &input[..input.len().min(LINE)];
        let (used, _) = conn
            .core
            .read(part, &mut RequestHead::empty(), self.turn.now_ms);
        debug_assert_eq!(used, 0, "it is no whole head");
        0
    }

    fn begin(&mut self, conn: &mut SocketConnection, request: Request, framing: Framing) {
        self.note_start(conn, &request);
        request.exchange.key.set(conn.key);
        request.exchange.body_limit.set(self.limits.body_bytes);
        if framing.length != Length::Bytes(0) {
            *request.exchange.body.borrow_mut() = Incoming {
                state: IncomingState::Open,
                announced: match framing.length {
                    Length::Bytes(len) => Some(len),
                    Length::Chunked => None,
                },
                ..Incoming::default()
            };
        }
        if conn.must_be_secure {
            return self.refuse_clear_text(conn, request);
        }
        match self.answer.answer(&request) {
            Answered::Ready(response) => {
                if framing.length != Length::Bytes(0) && response.status() == 413 {
                    // Who reads a body that is too large is counted when that shows.
                    self.counters.limit_body.add(1);
                }
                self.push_interims(conn, &request);
                self.respond(conn, request, response);
            }
            Answered::Later(future) => {
                conn.request = Some(request);
                conn.stage = ConnectionStage::Later(future);
            }
        }
    }

    /// Polls an answer that is on its way, and feeds it the request's body.
    fn poll_answer(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        let waker = self.waker_of(conn);
        let ConnectionStage::Later(future) = &mut conn.stage else {
            return DriveOutcome::Again;
        };
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let Some(request) = conn.request.clone() else {
            return DriveOutcome::Close;
        };
        self.push_interims(conn, &request);
        if let Poll::Ready(response) = polled {
            conn.stage = ConnectionStage::Reading;
            conn.request = None;
            self.respond(conn, request, response);
            return DriveOutcome::Again;
        }
        if conn.has_left_by_fin() {
            return DriveOutcome::Close;
        }
        conn.probe_half_closed();
        match self.pump(conn) {
            Pumped::Something => DriveOutcome::Again,
            Pumped::Nothing => DriveOutcome::Wait,
            Pumped::Broken => DriveOutcome::Close,
        }
    }

    fn push_interims(&mut self, conn: &mut SocketConnection, request: &Request) {
        if request.exchange.said.interim.borrow().is_empty() {
            return;
        }
        let interims = request.exchange.said.interim.take();
        for (status, fields) in interims {
            conn.core.push_interim(status, &fields, &mut self.output);
            self.counters.responses_1xx.add(1);
        }
    }

    /// Everything has left; the connection goes on as the engine said.
    fn go_on(&mut self, conn: &mut SocketConnection, next: AfterAnswer) -> DriveOutcome {
        match next {
            AfterAnswer::Request => {
                conn.stage = ConnectionStage::Reading;
                DriveOutcome::Again
            }
            AfterAnswer::Discard => {
                conn.stage = ConnectionStage::Discarding;
                conn.core.wait_for_body(self.turn.now_ms);
                DriveOutcome::Again
            }
            // Closing with unread input would reset the connection and destroy the answer on its
            // way.
            AfterAnswer::Close if conn.must_reset || !conn.is_readable && conn.carry.is_empty() => {
                DriveOutcome::Close
            }
            AfterAnswer::Linger | AfterAnswer::Close => {
                conn.core.begin_linger(self.turn.now_ms);
                conn.end_session();
                if rustix::net::shutdown(&conn.socket, rustix::net::Shutdown::Write).is_err() {
                    return DriveOutcome::Close;
                }
                conn.stage = ConnectionStage::Lingering;
                DriveOutcome::Again
            }
        }
    }

    fn discard_body(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        match self.discard(conn) {
            Discarded::End => {
                let next = conn.core.finish();
                conn.core.wrote_all(self.turn.now_ms);
                self.go_on(conn, next)
            }
            Discarded::More => DriveOutcome::Wait,
            // The answer has left; what remains is to let it arrive.
            Discarded::Refused => self.go_on(conn, AfterAnswer::Linger),
            Discarded::Over => DriveOutcome::Close,
        }
    }
}
