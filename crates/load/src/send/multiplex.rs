//! Connections that carry several requests at once: which request begins where, what comes of it,
//! and what becomes of the requests of a connection that ends.
//!
//! Requests wait in their connection's queue until it is open and the server takes another. When a
//! server says that it takes no more (GOAWAY), or is not heard of any more, the connection is moved
//! aside with what it still has to answer, and a new one takes its place.

use std::cmp::Reverse;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::coming::is_late;
use super::conn::{BenchConnection, ConnectionPhase, MultiplexedSession};
use super::event::AnswerEvent;
use super::exchange::AnswerRead;
use super::h2;
use super::lane::LaneState;
use super::secure::{Flushed, told};
use super::thread::Thread;
use super::tls::PIECE_BYTES;
use crate::limits::AGAIN_COUNT_MAX;
use crate::measure::FailureKind;
use crate::plan::{Protocol, Reuse};

/// What became of a connection whose events were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionFate {
    All,
    /// It was for one request, and is closed.
    Closed,
}

impl Thread<'_> {
    /// A lane has a request: it begins now, or waits.
    pub(super) fn begin_many(&mut self, lane: usize, now: u64) {
        self.lanes[lane].again_count = 0;
        self.lanes[lane].state = LaneState::Opening;
        let home = lane % self.conn_count;
        self.wait(lane, home);
        self.go_on(home, now);
    }

    pub(super) fn wait(&mut self, lane: usize, home: usize) {
        self.lanes[lane].conn = home as u32;
        if let Some(many) = &mut self.conns[home].many {
            many.waiting.push_back(lane as u32);
        }
    }

    /// Opens the connection for what waits, or begins as much of it as there is room for.
    fn go_on(&mut self, conn: usize, now: u64) {
        let one = &mut self.conns[conn];
        let Some(many) = &mut one.many else {
            return;
        };
        match one.phase {
            ConnectionPhase::Closed => {
                if let Some(lane) = many.waiting.front() {
                    let is_measured = self.lanes[*lane as usize].is_measured;
                    if self.prepared.protocol == Protocol::H2 {
                        let session = h2::H2ClientSession::new(self.prepared.streams);
                        many.session = Some(MultiplexedSession::H2(Box::new(session)));
                    }
                    many.heard_ns = now;
                    self.connect(conn, is_measured, now);
                }
            }
            ConnectionPhase::Open => self.fill(conn, now),
            ConnectionPhase::Connecting | ConnectionPhase::Handshaking => {}
        }
    }

    /// Begins what waits, as far as the server takes it.
    fn fill(&mut self, conn: usize, now: u64) {
        let Some(many) = &mut self.conns[conn].many else {
            return;
        };
        let Some(session) = &mut many.session else {
            return;
        };
        while session.has_room() {
            let Some(number) = many.waiting.pop_front() else {
                break;
            };
            let lane = &mut self.lanes[number as usize];
            if lane.state == LaneState::Queued {
                // It is sent now: over a connection that the server keeps this short, a closed loop
                // is one of as many requests as the server takes.
                lane.begun_ns = now;
                if !self.prepared.is_open {
                    lane.intended_ns = now;
                } else if !lane.is_delayed && is_late(lane.intended_ns, now) {
                    lane.is_delayed = true;
                    self.tally.waited += u64::from(lane.is_measured);
                }
            }
            lane.state = LaneState::Waiting;
            match &self.visits {
                None => {
                    let path = lane.logged.as_ref().map(|logged| &*logged.target);
                    session.start(number, lane.kind as usize, path, self.prepared);
                    if let Some(share) = lane.break_at {
                        session.break_off_at(number, share);
                    }
                }
                Some(visits) => {
                    let (head, kept) = (visits.head(number as usize), visits.kept(number as usize));
                    session.start_alone(number, head, kept, self.prepared);
                }
            }
            if !many.is_dirty {
                many.is_dirty = true;
                self.dirty.push(conn);
            }
        }
        // Those that came last are not marked yet.
        for number in many.waiting.iter().rev() {
            let lane = &mut self.lanes[*number as usize];
            if lane.state == LaneState::Queued {
                break;
            }
            lane.state = LaneState::Queued;
        }
    }

    /// The connection can carry requests.
    pub(super) fn opened_many(&mut self, conn: usize, now: u64) {
        self.fill(conn, now);
    }

    /// Something happened to an open connection.
    pub(super) fn handle_many(&mut self, conn: usize, has_input: bool, has_ended: bool) {
        if has_input {
            let read = self.read_many(conn, has_ended);
            if !matches!(
                read,
                AnswerRead::Turn | AnswerRead::Nothing | AnswerRead::Complete | AnswerRead::Bad(_)
            ) && let Some(session) = self.conns[conn].session()
            {
                // It is over: what follows the answers that came begins on the next one.
                session.stop_beginning();
            }
            if self.take_events(conn) == ConnectionFate::Closed {
                return self.flush_dirty();
            }
            match read {
                AnswerRead::Turn => self.read_again(conn, has_ended),
                AnswerRead::Ended => {
                    let why = "the server closed the connection before the answer was complete";
                    return self.lost(conn, FailureKind::Closed, why);
                }
                AnswerRead::Wrong(why) => return self.wrong(conn, why),
                AnswerRead::Broken(error) => return self.broken(conn, error),
                AnswerRead::Lost(kind, why) => return self.lost(conn, kind, &why),
                AnswerRead::NoTls(error) => return self.no_tls(conn, told(&error)),
                AnswerRead::Nothing
                | AnswerRead::Complete
                | AnswerRead::Bad(_)
                | AnswerRead::BrokenOff => {}
            }
            self.settle(conn);
        }
        self.flush_many(conn);
        self.flush_dirty();
    }

    /// After what was read: an old connection without requests is over, one that takes no more is
    /// moved aside, one with room takes more.
    fn settle(&mut self, conn: usize) {
        let is_old = conn >= self.conn_count;
        let Some(session) = self.conns[conn].session() else {
            return;
        };
        let (is_going_away, active) = (session.is_going_away(), session.active());
        if is_old {
            if active == 0 {
                self.conns[conn].close();
                self.spare.push(conn);
            }
            return;
        }
        if is_going_away {
            self.retire(conn);
        }
        let now = self.prepared.now();
        self.go_on(conn, now);
    }

    /// Moves a connection aside with the requests it still has to answer.
    fn retire(&mut self, conn: usize) {
        let session = self.conns[conn].session();
        let active = session.map_or(0, |session| session.active());
        if active == 0 {
            return self.conns[conn].close();
        }
        let aside = self.spare.pop().unwrap_or_else(|| {
            self.conns.push(BenchConnection::new(true));
            self.conns.len() - 1
        });
        self.conns.swap(conn, aside);
        let (front, back) = self.conns.split_at_mut(aside);
        let (new, old) = (&mut front[conn], &mut back[0]);
        if let (Some(new), Some(old)) = (&mut new.many, &mut old.many) {
            std::mem::swap(&mut new.waiting, &mut old.waiting);
            new.is_dirty = false;
            old.is_dirty = false;
        }
        self.dirty.retain(|dirty| *dirty != conn && *dirty != aside);
        if let Some(session) = old.session() {
            for lane in session.lanes() {
                self.lanes[lane as usize].conn = aside as u32;
            }
            if let MultiplexedSession::H3(session) = session
                && let Some(until) = session.timer_ns
            {
                self.timers.push(Reverse((until, aside)));
            }
        }
        if !old.unheard.is_empty() {
            self.resting.push(Reverse((old.read_at_ns, aside)));
        }
        if let Some(socket) = &old.socket {
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let key = EventData::new_u64(aside as u64);
            // It is in the set: only memory for that could be missing, and its requests time out.
            let _ = epoll::modify(&self.epoll, socket, key, flags);
        }
    }

    /// Gives each request what came for it.
    fn take_events(&mut self, conn: usize) -> ConnectionFate {
        let mut taken = ConnectionFate::All;
        if self.events.is_empty() {
            return taken;
        }
        let now = self.prepared.now();
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                AnswerEvent::Answered { lane, answer, kept } => {
                    if self.prepared.reuse == Reuse::PerRequest {
                        self.conns[conn].close();
                        taken = ConnectionFate::Closed;
                    }
                    self.answered(lane as usize, &answer, kept, now);
                }
                AnswerEvent::BrokenOff { lane } => {
                    if self.prepared.reuse == Reuse::PerRequest {
                        self.conns[conn].close();
                        taken = ConnectionFate::Closed;
                    }
                    self.broken_off(lane as usize, now);
                }
                AnswerEvent::Reset { lane, why } => {
                    let why = || format!("the server reset the stream: {why}");
                    self.failed(lane as usize, (FailureKind::Reset, true), now, why);
                }
                AnswerEvent::Malformed { lane, why } => {
                    let why = || why.to_owned();
                    self.failed(lane as usize, (FailureKind::Malformed, true), now, why);
                }
                AnswerEvent::Again { lane } => self.again(lane as usize, now),
            }
        }
        // Nothing is read while events are taken, so nothing was added.
        self.events = events;
        taken
    }

    /// The server has not looked at a request: it is sent again, on this connection or the next.
    fn again(&mut self, lane: usize, now: u64) {
        let one = &mut self.lanes[lane];
        one.again_count += 1;
        self.tally.again += u64::from(one.is_measured);
        if one.again_count > AGAIN_COUNT_MAX {
            let why = || format!("the server refused to begin it {AGAIN_COUNT_MAX} times");
            return self.failed(lane, (FailureKind::Reset, false), now, why);
        }
        one.state = LaneState::Opening;
        let home = lane % self.conn_count;
        self.wait(lane, home);
        if self.conns[home].phase == ConnectionPhase::Closed {
            self.go_on(home, now);
        }
    }

    /// Reads what there is of answers into `events`.
    pub(super) fn read_many(&mut self, conn: usize, has_ended: bool) -> AnswerRead {
        if self.prepared.protocol == Protocol::H3 {
            return self.read_quic(conn);
        }
        let is_counted = self.counts_bytes(conn);
        let one = &mut self.conns[conn];
        let (Some(socket), Some(many)) = (&one.socket, &mut one.many) else {
            return AnswerRead::Nothing;
        };
        let (Some(MultiplexedSession::H2(session)), Some(common)) =
            (&mut many.session, &self.prepared.h2)
        else {
            return AnswerRead::Nothing;
        };
        let mut turn_bytes = 0;
        loop {
            let kept = one.tls.as_ref().map_or(0, |tls| tls.kept.len());
            if let Some(tls) = &one.tls {
                self.buffer[..kept].copy_from_slice(&tls.kept);
            }
            let room = (self.buffer.len() - kept).min(self.pace.next_bytes());
            let here = &mut self.buffer[kept..kept + room];
            let count = match recv(socket, here, RecvFlags::empty()) {
                Ok((0, _)) => return AnswerRead::Ended,
                Ok((count, _)) => count,
                Err(Errno::AGAIN) => return AnswerRead::Nothing,
                Err(Errno::INTR) => continue,
                Err(error) => return AnswerRead::Broken(error),
            };
            if is_counted {
                self.tally.received_bytes += count as u64;
            }
            many.heard_ns = self.prepared.now();
            one.read_at_ns = self.pace.next_read_ns(count, self.prepared);
            let bytes = &mut self.buffer[..kept + count];
            let Some(tls) = &mut one.tls else {
                if let Err(why) = session.receive(bytes, common, &mut self.events) {
                    return AnswerRead::Wrong(why);
                }
                match count {
                    // The socket was emptied: what comes next is another event.
                    _ if count < room && !has_ended => return AnswerRead::Nothing,
                    _ => turn_bytes += count,
                }
                if turn_bytes >= self.pace.turn_bytes() {
                    return AnswerRead::Turn;
                }
                continue;
            };
            let mut wrong = None;
            let done = tls.process(bytes, |plain| {
                if wrong.is_none() {
                    wrong = session.receive(plain, common, &mut self.events).err();
                }
            });
            let done = match done {
                Ok(done) => done,
                Err(error) => return AnswerRead::NoTls(error),
            };
            tls.keep(&bytes[done..]);
            match wrong {
                Some(why) => return AnswerRead::Wrong(why),
                None if tls.is_closed => return AnswerRead::Ended,
                None if count < room && !has_ended => return AnswerRead::Nothing,
                None => turn_bytes += count,
            }
            if turn_bytes >= self.pace.turn_bytes() {
                return AnswerRead::Turn;
            }
        }
    }

    /// Sends what connections have that got requests outside of their own events.
    pub(super) fn flush_dirty(&mut self) {
        while let Some(conn) = self.dirty.pop() {
            self.flush_many(conn);
        }
    }

    /// Sends what there is to send.
    fn flush_many(&mut self, conn: usize) {
        let one = &mut self.conns[conn];
        let Some(many) = &mut one.many else {
            return;
        };
        many.is_dirty = false;
        if one.phase != ConnectionPhase::Open {
            return;
        }
        let sent = match one.tls {
            _ if self.prepared.protocol == Protocol::H3 => return self.flush_quic(conn),
            None => self.flush_clear(conn),
            Some(_) => self.flush_secure(conn),
        };
        match sent {
            Flushed::All | Flushed::Full => {}
            // The server may have answered, or said why, before it closed.
            Flushed::Broken(error @ (Errno::PIPE | Errno::CONNRESET)) => {
                let _ = self.read_many(conn, true);
                if self.take_events(conn) == ConnectionFate::All {
                    self.broken(conn, error);
                }
            }
            Flushed::Broken(error) => self.broken(conn, error),
        }
    }

    fn flush_clear(&mut self, conn: usize) -> Flushed {
        let is_counted = self.counts_bytes(conn);
        let BenchConnection { socket, many, .. } = &mut self.conns[conn];
        let session = many.as_mut().and_then(|many| many.session.as_mut());
        let (Some(socket), Some(MultiplexedSession::H2(session)), Some(common)) =
            (socket, session, &self.prepared.h2)
        else {
            return Flushed::All;
        };
        loop {
            let bytes = session.unsent(common);
            if bytes.is_empty() {
                return Flushed::All;
            }
            match send(&*socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    session.sent(count);
                    if is_counted {
                        self.tally.sent_bytes += count as u64;
                    }
                }
                Err(Errno::AGAIN) => return Flushed::Full,
                Err(Errno::INTR) => {}
                Err(error) => return Flushed::Broken(error),
            }
        }
    }

    fn flush_secure(&mut self, conn: usize) -> Flushed {
        loop {
            match self.flush(conn) {
                Flushed::All => {}
                other => return other,
            }
            let BenchConnection { tls, many, .. } = &mut self.conns[conn];
            let session = many.as_mut().and_then(|many| many.session.as_mut());
            let (Some(tls), Some(MultiplexedSession::H2(session)), Some(common)) =
                (tls, session, &self.prepared.h2)
            else {
                return Flushed::All;
            };
            let bytes = session.unsent(common);
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            // What cannot be encrypted is a connection that the server has ended: reading tells.
            if piece.is_empty() || tls.encrypt(piece).is_err() {
                return Flushed::All;
            }
            let count = piece.len();
            session.sent(count);
        }
    }

    /// The server does not keep to the protocol.
    fn wrong(&mut self, conn: usize, why: &str) {
        if let Some(MultiplexedSession::H2(session)) = self.conns[conn].session() {
            session.go_away();
        }
        let _ = match self.conns[conn].tls {
            None => self.flush_clear(conn),
            Some(_) => self.flush_secure(conn),
        };
        self.lost(conn, FailureKind::Malformed, why);
    }

    /// A connection is of no use any more. Its requests have failed; those that wait get another.
    pub(super) fn lost_many(&mut self, conn: usize, kind: FailureKind, why: &str) {
        let now = self.prepared.now();
        let one = &mut self.conns[conn];
        let was_open = one.phase == ConnectionPhase::Open;
        let mut lanes: Vec<u32> = one.session().map_or(Vec::new(), |session| session.lanes());
        if let Some(many) = one.many.as_mut().filter(|_| !was_open) {
            lanes.extend(many.waiting.drain(..));
        }
        one.close();
        if conn >= self.conn_count {
            self.spare.push(conn);
        }
        for lane in lanes {
            self.failed(lane as usize, (kind, was_open), now, || why.to_owned());
        }
        self.go_on(conn, now);
    }

    /// No complete answer came in time.
    pub(super) fn timed_out_many(&mut self, lane: usize, text: &str, now: u64) {
        let conn = self.lanes[lane].conn as usize;
        let one = &mut self.conns[conn];
        let was_open = one.phase == ConnectionPhase::Open;
        let (begun_ns, timeout_ns) = (one.begun_ns, self.prepared.timeout_ns);
        let mut is_dead = !was_open && now.saturating_sub(begun_ns) >= timeout_ns;
        if let Some(many) = &mut one.many {
            many.waiting.retain(|waiting| *waiting != lane as u32);
            if let Some(session) = many.session.as_mut().filter(|_| was_open) {
                session.cancel(lane as u32);
                is_dead = now.saturating_sub(many.heard_ns) >= timeout_ns;
            }
            if was_open && !many.is_dirty {
                many.is_dirty = true;
                self.dirty.push(conn);
            }
        }
        if is_dead && !was_open {
            self.to_start += 1;
            self.conns[conn].close();
        } else if is_dead && conn < self.conn_count {
            self.retire(conn);
        }
        if self.prepared.reuse == Reuse::PerRequest {
            self.conns[conn].close();
        }
        self.failed(lane, (FailureKind::Timeout, was_open), now, || {
            text.to_owned()
        });
        self.settle(conn);
        self.go_on(conn, now);
    }
}
