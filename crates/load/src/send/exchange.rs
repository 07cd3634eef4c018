//! One connection's bytes: opening it, and over HTTP/1 sending the request, reading the answer, and
//! what comes of both. A connection has one lane then, of the same number.

use std::cmp::Reverse;
use std::io;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::conn::ConnectionPhase;
use super::fields::Wrong;
use super::h1::{AnswerProgress, BadAnswer};
use super::kept::Kept;
use super::lane::LaneState;
use super::secure::told;
use super::socket;
use super::thread::Thread;
use super::visits::request;
use crate::limits::{KNOCK_PAUSE, RETRY_PAUSE};
use crate::measure::AnswerSummary;
use crate::measure::{FailureKind, MeasuredAnswer};
use crate::plan::{Protocol, Reuse};

/// The connection, or what the server sends over it, is over.
const ENDED: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);
/// Bodies with more to come than this are not copied out of the kernel.
const COPIED_BYTES_MAX: u64 = 64 * 1024;

/// What a read gave.
pub(super) enum AnswerRead {
    /// The answer is complete.
    Complete,
    /// There is nothing more for now.
    Nothing,
    /// There may be more, but others have their turn first.
    Turn,
    /// The connection has ended.
    Ended,
    Bad(BadAnswer),
    /// So much of the answer has come that it is broken off, as it was to be.
    BrokenOff,
    /// What came is no HTTP/2.
    Wrong(Wrong),
    /// A connection over QUIC has ended; why.
    Lost(FailureKind, String),
    Broken(Errno),
    /// What came is no TLS, or none that was agreed on.
    NoTls(rustls::Error),
}

impl Thread<'_> {
    /// Something happened to a connection.
    pub(super) fn handle_event(&mut self, conn: usize, flags: EventFlags) {
        let has_input = flags.intersects(EventFlags::IN | ENDED) && !self.rests(conn, flags);
        match self.conns[conn].phase {
            ConnectionPhase::Connecting => {
                if flags.intersects(EventFlags::OUT | ENDED) {
                    self.connected(conn);
                }
            }
            ConnectionPhase::Handshaking if self.prepared.protocol == Protocol::H3 => {
                self.shake_quic(conn, has_input);
            }
            ConnectionPhase::Handshaking => self.shake(conn, has_input),
            ConnectionPhase::Open if self.conns[conn].many.is_some() => {
                self.handle_many(conn, has_input, flags.intersects(ENDED));
            }
            ConnectionPhase::Open => match self.lanes[conn].state {
                // Nothing was asked: with an answer, the connection is of no use any more.
                LaneState::Idle | LaneState::Paused => {
                    if has_input && (flags.intersects(ENDED) || !self.is_mere_tls(conn)) {
                        self.conns[conn].close();
                    }
                }
                state => {
                    if state == LaneState::Sending && flags.contains(EventFlags::OUT) {
                        self.send(conn);
                    }
                    if has_input && self.lanes[conn].is_busy() {
                        self.receive(conn, flags.intersects(ENDED));
                    }
                }
            },
            ConnectionPhase::Closed => {}
        }
        if self.visits.is_some() {
            self.note_first_byte(conn);
            self.look_ahead(conn);
        }
    }

    /// Is it too early to read more of a connection? What was heard of it is looked at later then.
    fn rests(&mut self, conn: usize, flags: EventFlags) -> bool {
        let one = &mut self.conns[conn];
        if one.read_at_ns == 0 || self.prepared.now() >= one.read_at_ns {
            return false;
        }
        if one.unheard.is_empty() {
            self.resting.push(Reverse((one.read_at_ns, conn)));
        }
        one.unheard |= flags & (EventFlags::IN | ENDED);
        true
    }

    /// Goes on reading connections that have rested.
    pub(super) fn read_rested(&mut self, now: u64) {
        while let Some(Reverse((until, conn))) = self.resting.peek().copied() {
            if until > now {
                break;
            }
            self.resting.pop();
            let flags = std::mem::take(&mut self.conns[conn].unheard);
            // Nothing where it was closed meanwhile.
            if !flags.is_empty() {
                self.handle_event(conn, flags);
            }
        }
    }

    /// Begins a connection, for a request that counts or not.
    pub(super) fn connect(&mut self, conn: usize, is_measured: bool, now: u64) {
        self.conns[conn].is_measured = is_measured;
        self.conns[conn].begun_ns = now;
        self.knock(conn, now);
    }

    /// Tries to open a connection.
    pub(super) fn knock(&mut self, conn: usize, now: u64) {
        let opened = self.opener.open(conn).and_then(|opened| {
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let key = EventData::new_u64(conn as u64);
            epoll::add(&self.epoll, &opened.socket, key, flags)?;
            Ok(opened)
        });
        match opened {
            Ok(opened) => {
                self.conns[conn].socket = Some(opened.socket);
                self.conns[conn].phase = ConnectionPhase::Connecting;
                if opened.is_complete {
                    self.connected(conn);
                }
            }
            // A Unix socket says at once that its backlog is full, where TCP tries again by itself.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.conns[conn].phase = ConnectionPhase::Connecting;
                let until = now + KNOCK_PAUSE.as_nanos() as u64;
                self.knocking.push(Reverse((until, conn)));
            }
            Err(error) => self.not_connected(conn, &error),
        }
    }

    fn connected(&mut self, conn: usize) {
        let Some(socket) = &self.conns[conn].socket else {
            return;
        };
        if let Err(error) = socket::completed(socket) {
            return self.not_connected(conn, &error);
        }
        if self.prepared.protocol == Protocol::H3 {
            self.begin_quic(conn);
        } else if self.tls.is_some() {
            self.begin_tls(conn);
        } else {
            self.opened(conn);
        }
    }

    /// The connection can carry requests.
    pub(super) fn opened(&mut self, conn: usize) {
        let now = self.prepared.now();
        let one = &mut self.conns[conn];
        one.phase = ConnectionPhase::Open;
        if one.is_measured {
            self.tally.connect.record(now - one.begun_ns);
            self.tally.opened += 1;
        }
        self.to_start += 1;
        if one.many.is_some() {
            return self.opened_many(conn, now);
        }
        // A visitor's request may have left over another connection meanwhile.
        if self.visits.is_none() || self.lanes[conn].state == LaneState::Opening {
            self.lanes[conn].state = LaneState::Sending;
            self.send(conn);
        }
    }

    pub(super) fn not_connected(&mut self, conn: usize, error: &io::Error) {
        let text = format!("{error} ({})", self.prepared.address);
        self.lost(conn, FailureKind::Connect, &text);
    }

    /// A connection is of no use any more, and neither are the requests on it.
    pub(super) fn lost(&mut self, conn: usize, kind: FailureKind, why: &str) {
        self.to_start += usize::from(self.conns[conn].phase != ConnectionPhase::Open);
        if self.conns[conn].many.is_some() {
            return self.lost_many(conn, kind, why);
        }
        let now = self.prepared.now();
        self.fail(conn, kind, now, || why.to_owned());
    }

    /// Sends what is left of the request.
    pub(super) fn send(&mut self, conn: usize) {
        let one = &mut self.conns[conn];
        if one.tls.is_some() {
            return self.send_secure(conn);
        }
        let Some(socket) = &one.socket else {
            return;
        };
        let lane = &mut self.lanes[conn];
        let bytes = request(self.visits.as_deref(), self.prepared, conn, lane);
        loop {
            let rest = lane.rest(bytes, &self.prepared.requests, one.sent_bytes);
            if rest.is_empty() {
                break;
            }
            match send(socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    one.sent_bytes += count;
                    if lane.is_measured {
                        self.tally.sent_bytes += count as u64;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                // The server may have answered before it closed: whoever reads next finds out.
                Err(Errno::PIPE | Errno::CONNRESET) => return self.receive(conn, true),
                Err(error) => return self.broken(conn, error),
            }
        }
        lane.state = LaneState::Waiting;
    }

    /// Reads what there is of the answer.
    pub(super) fn receive(&mut self, conn: usize, has_ended: bool) {
        let read = match self.conns[conn].tls {
            None => self.read(conn, has_ended),
            Some(_) => self.read_secure(conn, has_ended),
        };
        let now = match read {
            AnswerRead::Nothing => return,
            AnswerRead::Turn => return self.read_again(conn, has_ended),
            _ => self.prepared.now(),
        };
        match read {
            AnswerRead::Complete => self.complete(conn, has_ended, now),
            AnswerRead::Ended => match self.conns[conn].end() {
                Ok(()) => self.complete(conn, true, now),
                Err(bad) => self.bad(conn, bad, now),
            },
            AnswerRead::Bad(bad) => self.bad(conn, bad, now),
            AnswerRead::BrokenOff => {
                // What was not read is left in the socket: the server hears RST then.
                self.conns[conn].close();
                self.broken_off(conn, now);
            }
            AnswerRead::Broken(error) => self.broken(conn, error),
            AnswerRead::NoTls(error) => self.no_tls(conn, told(&error)),
            AnswerRead::Nothing
            | AnswerRead::Turn
            | AnswerRead::Wrong(_)
            | AnswerRead::Lost(..) => {}
        }
    }

    /// There may be more to read on a connection, when others have had their turn.
    pub(super) fn read_again(&mut self, conn: usize, has_ended: bool) {
        let flags = match has_ended {
            true => EventFlags::IN | EventFlags::RDHUP,
            false => EventFlags::IN,
        };
        self.again.push((conn, flags));
    }

    fn read(&mut self, conn: usize, has_ended: bool) -> AnswerRead {
        let one = &mut self.conns[conn];
        let lane = &self.lanes[conn];
        let (is_measured, asked) = (lane.is_measured, self.prepared.asked(lane.kind));
        let break_at = lane.break_at;
        let Some(socket) = &one.socket else {
            return AnswerRead::Nothing;
        };
        let mut turn_bytes = 0;
        loop {
            let skippable = one.reader.skippable_bytes();
            let is_skipped = skippable > COPIED_BYTES_MAX;
            let most = one.reader.piece_bytes(break_at).min(self.pace.next_bytes());
            let got = if is_skipped {
                let room = skippable.min(self.skipped.len() as u64) as usize;
                let room = room.min(most);
                recv(socket, &mut self.skipped[..room], RecvFlags::TRUNC).map(|got| (got.1, room))
            } else {
                let room = self.buffer.len().min(most);
                recv(socket, &mut self.buffer[..room], RecvFlags::empty()).map(|got| (got.1, room))
            };
            let (count, room) = match got {
                Ok((0, _)) => return AnswerRead::Ended,
                Ok(got) => got,
                Err(Errno::AGAIN) => return AnswerRead::Nothing,
                Err(Errno::INTR) => continue,
                Err(error) => return AnswerRead::Broken(error),
            };
            if is_measured {
                self.tally.received_bytes += count as u64;
            }
            one.read_at_ns = self.pace.next_read_ns(count, self.prepared);
            let progress = if is_skipped {
                Ok(one.reader.skip(count as u64))
            } else {
                one.reader.read(&self.buffer[..count], asked)
            };
            match progress {
                Ok(progress) if one.reader.is_broken_off(break_at, progress) => {
                    return AnswerRead::BrokenOff;
                }
                // More than was asked for: the answer is whole, the connection of no use.
                Ok(AnswerProgress::Complete(used)) if !is_skipped && used < count => {
                    if asked.is_head {
                        return AnswerRead::Bad(BadAnswer::BodyToHead);
                    }
                    one.reader.refuse_reuse();
                    return AnswerRead::Complete;
                }
                Ok(AnswerProgress::Complete(_)) => return AnswerRead::Complete,
                // The socket was emptied: what comes next is another event.
                Ok(AnswerProgress::More) if count < room && !has_ended => {
                    return AnswerRead::Nothing;
                }
                Ok(AnswerProgress::More) => {}
                Err(bad) => return AnswerRead::Bad(bad),
            }
            turn_bytes += count;
            if turn_bytes >= self.pace.turn_bytes() {
                return AnswerRead::Turn;
            }
        }
    }

    /// The answer is there.
    fn complete(&mut self, conn: usize, has_ended: bool, now: u64) {
        let one = &mut self.conns[conn];
        let is_sent = self.lanes[conn].state == LaneState::Waiting;
        let answer = *one.reader.answer();
        let kept = one.reader.take_kept();
        let is_kept =
            answer.is_reusable && is_sent && !has_ended && self.prepared.reuse == Reuse::KeepAlive;
        if !is_kept {
            one.close();
        }
        self.answered(conn, &answer, kept, now);
    }

    /// A lane's request has its answer.
    pub(super) fn answered(
        &mut self,
        lane: usize,
        answer: &AnswerSummary,
        kept: Option<Box<Kept>>,
        now: u64,
    ) {
        if self.visits.is_some() {
            return self.visit_answered(lane, answer, kept, now);
        }
        let one = &mut self.lanes[lane];
        self.tally.answers_since_warm_up += 1;
        if one.is_measured {
            one.answered += 1;
            let kind = self.prepared.kind(one.kind);
            let outcome = MeasuredAnswer {
                answer,
                class: kind.class as usize,
                step: self.prepared.step(one.intended_ns),
                connection: lane % self.conn_count,
                logged_status: one.logged.as_ref().map_or(0, |logged| logged.status),
                response_ns: now - one.intended_ns,
                service_ns: now - one.begun_ns,
            };
            self.tally.now_ns = now;
            self.tally
                .answered(&outcome, &kind.expected, self.prepared.is_open);
        }
        self.rest(lane, self.prepared.think_ns, now);
    }

    /// A lane's request was broken off within its answer, as it was to be: it is no answer, and no
    /// failure.
    pub(super) fn broken_off(&mut self, lane: usize, now: u64) {
        if self.lanes[lane].is_measured {
            self.tally.broken_off += 1;
            self.tally.last_ns = now;
        }
        self.rest(lane, self.prepared.think_ns, now);
    }

    /// The request of a connection has no good answer; the connection is of no use any more.
    pub(super) fn fail(
        &mut self,
        conn: usize,
        kind: FailureKind,
        now: u64,
        example: impl FnOnce() -> String,
    ) {
        let was_open = self.conns[conn].phase == ConnectionPhase::Open;
        self.conns[conn].close();
        self.failed(conn, (kind, was_open), now, example);
    }

    /// A lane's request has no good answer, on a connection that was open or not.
    pub(super) fn failed(
        &mut self,
        lane: usize,
        (kind, was_open): (FailureKind, bool),
        now: u64,
        example: impl FnOnce() -> String,
    ) {
        if self.visits.is_some() {
            return self.visit_failed(lane, kind, example(), now);
        }
        let one = &self.lanes[lane];
        if one.is_measured {
            let class = self.prepared.kind(one.kind).class as usize;
            let place = (class, self.prepared.step(one.intended_ns));
            self.tally.now_ns = now;
            self.tally
                .failed(kind, place, now - one.intended_ns, example);
        }
        let pause = if was_open {
            self.prepared.think_ns
        } else {
            RETRY_PAUSE.as_nanos() as u64
        };
        self.rest(lane, pause, now);
    }

    /// The lane has no request any more and gets the next one, after a pause if there is one.
    fn rest(&mut self, lane: usize, pause_ns: u64, now: u64) {
        self.busy_count -= 1;
        self.lanes[lane].state = LaneState::Idle;
        if pause_ns > 0 {
            self.pause(lane, now + pause_ns);
        } else {
            self.next_request(lane, now);
        }
    }

    fn bad(&mut self, conn: usize, bad: BadAnswer, now: u64) {
        let kind = if bad.is_end() {
            FailureKind::Closed
        } else {
            FailureKind::Malformed
        };
        self.fail(conn, kind, now, || bad.to_string());
    }

    pub(super) fn broken(&mut self, conn: usize, error: Errno) {
        self.lost(
            conn,
            FailureKind::Reset,
            &io::Error::from(error).to_string(),
        );
    }
}
