//! What happens when a connection that speaks HTTP/2 can go on: send, look at streams, read, fill,
//! until nothing moves.

use std::rc::Rc;

use crate::clock::clock_us;
use crate::h1::AfterAnswer;
use crate::h2;
use crate::limits::{BULK_BYTES_PER_TURN, H2_FILL_BYTES, READ_BYTES_PER_TURN};
use crate::response::Responder;
use crate::thread::conn::{ConnectionStage, OutputPiece, SocketConnection};
use crate::thread::drive::Fate;
use crate::thread::h2::Http2ServerSession;
use crate::thread::receive::SocketReadOutcome;
use crate::thread::run::Thread;
use crate::thread::send::Flushed;

impl<A: Responder + 'static> Thread<A> {
    /// From here on the connection speaks HTTP/2, whose first bytes have yet to be read.
    pub(crate) fn begin_frames(&mut self, conn: &mut SocketConnection) {
        let mut all = self.accepting.listeners.iter();
        let listening = all.find(|one| one.number == conn.facts.listener);
        let limits = match listening.is_some_and(|one| one.is_for_hobs) {
            true => Rc::new(self.limits.for_carried()),
            false => Rc::clone(&self.limits),
        };
        let mut core = h2::Http2Connection::new(limits, self.turn.now_ms, &mut self.output);
        core.set_alt_svc(conn.core.take_alt_svc());
        conn.h2 = Some(Box::new(Http2ServerSession::new(core, self.turn.now_ms)));
        self.counters.h2_connections.add(1);
    }

    /// Lets the connection go as far as it can. `None` when it speaks HTTP/2 no more: what is left
    /// is to end it, which is done as for HTTP/1.
    pub(crate) fn drive_frames(&mut self, conn: &mut SocketConnection) -> Option<Fate> {
        let mut session = conn.h2.take()?;
        let fate = self.drive_session(conn, &mut session);
        if fate.is_some() {
            conn.h2 = Some(session);
            return fate;
        }
        // Who made the answers that still wait counts no more; their bytes are noted as they leave.
        for piece in &conn.out.pieces {
            if let OutputPiece::End(request) = piece {
                request.exchange.head_until.set(0);
            }
        }
        self.abandon_streams(conn, &mut session);
        conn.core.give_up_input();
        // The client may be sending still, acknowledgements at least. It is heard out, or it would
        // not hear the end of its answers.
        let next = match conn.is_half_closed {
            true => AfterAnswer::Close,
            false => AfterAnswer::Linger,
        };
        conn.carry = Vec::new();
        conn.stage = ConnectionStage::Flushing(next);
        None
    }

    fn drive_session(
        &mut self,
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
    ) -> Option<Fate> {
        if let Some(waker) = &conn.waker {
            // Wakes from now on count anew.
            drop(waker.waker());
        }
        self.take_leave(session);
        let mut turn_bytes = 0;
        loop {
            self.settle_output(conn, session);
            let mut is_blocked = false;
            if !self.output.is_empty() || conn.has_unsent() || !self.finishing.is_empty() {
                turn_bytes += self.output.len();
                self.bulk.count(self.output.len());
                session.made_bytes += self.output.len() as u64;
                let before = self.output.len() + conn.unsent_bytes();
                match self.flush(conn) {
                    Flushed::All => session.write_by_ms = u64::MAX,
                    Flushed::Blocked => is_blocked = true,
                    Flushed::Fetching | Flushed::Yield => {
                        self.note_first_bytes(conn, session);
                        self.queue_bulk(conn);
                        return Some(Fate::Keep);
                    }
                    Flushed::Broken => {
                        self.note_first_bytes(conn, session);
                        return Some(Fate::Close);
                    }
                }
                let has_moved = conn.unsent_bytes() < before;
                if has_moved {
                    // The client takes bytes: its time begins anew.
                    session.write_by_ms = u64::MAX;
                }
                if has_moved || !is_blocked {
                    // Where nothing left, no head did.
                    self.note_first_bytes(conn, session);
                }
            }
            let has_left = !is_blocked && self.is_done(conn, session);
            if has_left || session.is_over {
                return None;
            }
            if turn_bytes >= BULK_BYTES_PER_TURN {
                self.queue_bulk(conn);
            }
            if conn.is_in_bulk {
                break;
            }
            if !self.make(conn, session, is_blocked) {
                if !is_blocked && self.is_done(conn, session) {
                    return None;
                }
                break;
            }
        }
        session.core.settle(self.turn.now_ms);
        if session.streams.is_empty() && session.streams.capacity() > 0 {
            session.streams = Vec::new();
        }
        self.set_clocks(conn, session);
        Some(Fate::Keep)
    }

    /// Makes what there is to send; says whether something is, or may be after a write.
    fn make(
        &mut self,
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
        is_blocked: bool,
    ) -> bool {
        self.look_at_streams(conn, session);
        let has_read = self.read_frames(conn, session);
        // Those that came just now are looked at too: what they have goes along.
        if session.streams.iter().any(|stream| stream.is_new) {
            self.look_at_streams(conn, session);
        }
        if is_blocked {
            self.settle_output(conn, session);
            return has_read;
        }
        self.fill(conn, session);
        let has_output = !self.output.is_empty() || !self.finishing.is_empty();
        has_read || has_output
    }

    /// What was made stands behind what is queued.
    fn settle_output(&mut self, conn: &mut SocketConnection, session: &mut Http2ServerSession) {
        if !conn.has_unsent() {
            return;
        }
        session.made_bytes += self.output.len() as u64;
        if !self.output.is_empty() {
            conn.out
                .push(OutputPiece::Own(self.output.as_slice().to_vec(), 0));
            self.output.clear();
        }
        if !self.finishing.is_empty() && conn.take_since_us != 0 {
            // Answers that were made just now have not waited since the socket was full.
            let fresh = std::mem::take(&mut self.finishing);
            // The socket may be full since later than this turn of the loop.
            let since_us = conn.take_since_us.max(self.turn.now_us);
            self.note_taken(conn);
            conn.take_since_us = since_us;
            self.finishing = fresh;
        }
        for request in self.finishing.drain(..) {
            conn.out.push(OutputPiece::End(request));
        }
    }

    /// Reads what there is, unless much waits for the client already; says whether there was
    /// something.
    fn read_frames(
        &mut self,
        conn: &mut SocketConnection,
        session: &mut Http2ServerSession,
    ) -> bool {
        if session.is_over || conn.unsent_bytes() >= H2_FILL_BYTES {
            return false;
        }
        if std::mem::take(&mut session.is_cut) {
            let carry = std::mem::take(&mut conn.carry);
            let used = self.answer_frames(conn, session, &carry);
            conn.carry = carry[used..].to_vec();
            return true;
        }
        if !conn.is_readable {
            return conn.is_half_closed && self.end_of_frames(conn, session);
        }
        match self.receive(conn, READ_BYTES_PER_TURN) {
            SocketReadOutcome::Bytes(count) => {
                let input = std::mem::take(&mut self.input);
                if conn.carry.is_empty() {
                    let used = self.answer_frames(conn, session, &input[..count]);
                    conn.carry.extend_from_slice(&input[used..count]);
                } else {
                    let mut carry = std::mem::take(&mut conn.carry);
                    carry.extend_from_slice(&input[..count]);
                    let used = self.answer_frames(conn, session, &carry);
                    conn.carry = carry[used..].to_vec();
                }
                self.input = input;
                true
            }
            SocketReadOutcome::Nothing => false,
            SocketReadOutcome::Eof => self.end_of_frames(conn, session),
            SocketReadOutcome::Broken => {
                conn.is_reset = true;
                session.is_over = true;
                true
            }
        }
    }

    /// Fills the output with what streams have to send, the most urgent first.
    fn fill(&mut self, conn: &mut SocketConnection, session: &mut Http2ServerSession) {
        while self.output.len() < H2_FILL_BYTES {
            let Some(turn) = session.core.next_turn() else {
                return;
            };
            match session.find(turn.stream) {
                Some(at) => self.send_turn(conn, session, at, turn),
                None => session.core.set_ready(turn.stream, false),
            }
        }
    }

    /// True when the connection is to be closed: the client has nothing more to ask, or has been
    /// told to go and has its answers.
    fn is_done(&mut self, conn: &SocketConnection, session: &Http2ServerSession) -> bool {
        if !session.streams.is_empty() || conn.has_unsent() {
            return false;
        }
        let is_past_grace = self
            .draining
            .is_some_and(|draining| self.turn.now_ms >= draining.grace_ms);
        let has_input = conn.is_readable || session.is_cut;
        (conn.is_half_closed && !has_input) || (is_past_grace && !has_input && session.is_idle())
    }

    /// A draining thread tells its clients to go: first to open no more streams, later which one
    /// was the last.
    fn take_leave(&mut self, session: &mut Http2ServerSession) {
        let Some(draining) = self.draining else {
            return;
        };
        session.core.announce_leaving(&mut self.output);
        if self.turn.now_ms >= draining.grace_ms {
            session.core.leave(&mut self.output);
        }
    }

    /// Notes the first byte of those answers whose heads have left: of all that was made, in order,
    /// what waits has not. Sealed bytes are a few more than those in them; so the end of a head may
    /// be taken to wait with what follows it, and none is ever taken to have left that waits.
    fn note_first_bytes(&self, conn: &SocketConnection, session: &Http2ServerSession) {
        let left_bytes = session
            .made_bytes
            .saturating_sub(conn.unsent_bytes() as u64);
        let made = conn.out.pieces.iter().filter_map(|piece| match piece {
            OutputPiece::End(request) => Some(request),
            _ => None,
        });
        let streams = session.streams.iter().map(|stream| &stream.request);
        for request in streams.chain(made) {
            let head_until = request.exchange.head_until.get();
            if head_until == 0 || head_until > left_bytes {
                continue;
            }
            let mut record = request.record_mut();
            if record.first_byte_us == 0 {
                let now_us = clock_us();
                record.first_byte_us = now_us.saturating_sub(record.started_us).max(1);
            }
        }
    }

    /// Looks at the streams that were woken, and at what their handlers have asked for.
    fn look_at_streams(&mut self, conn: &mut SocketConnection, session: &mut Http2ServerSession) {
        let mut at = 0;
        while let Some(stream) = session.streams.get_mut(at) {
            let id = stream.id;
            let is_woken = stream.take_woken();
            self.look_at_stream(conn, session, at, is_woken);
            // One that is over has left its place to another.
            if session
                .streams
                .get(at)
                .is_some_and(|stream| stream.id == id)
            {
                at += 1;
            }
        }
    }
}
