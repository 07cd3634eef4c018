//! What happens when a connection over QUIC can go on: take what happened, read, look at streams,
//! fill, until nothing moves; then send.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_trace::TlsVersion;

use crate::clock::clock_us;
use crate::h3::quic::{DatagramSendOutcome, Happened, Lost};
use crate::h3::{ControlEvent, Http3ConnectionError, Http3ErrorCode, Uni};
use crate::limits::{BULK_BYTES_PER_ROUND, BULK_BYTES_PER_TURN};
use crate::reactor::wake::KeyWaker;
use crate::request::{ConnectionFacts, TlsFacts};
use crate::response::Responder;
use crate::thread::ending::Why;
use crate::thread::h3::stream::{Http3RequestStream, ResponseProgress};
use crate::thread::h3::{Http3ServerSession, Http3SessionStage};
use crate::thread::run::Thread;

/// Rounds of taking and making before others have their turn.
const ROUNDS_PER_TURN: usize = 8;

impl<A: Responder + 'static> Thread<A> {
    /// Drives the connections for which something came, or whose time has come.
    pub(crate) fn drive_marked(&mut self) {
        while let Some((at_ms, index)) = self.quic.timers.first().copied()
            && at_ms <= self.turn.now_ms
        {
            self.quic.timers.pop_first();
            if let Some(Some(session)) = self.quic.sessions.get_mut(index as usize) {
                session.timer_ms = u64::MAX;
                self.quic.mark(index);
            }
        }
        // Those marked meanwhile have their turn after the next events, and so have those that are
        // left when much was sent.
        let mut turns_left = self.quic.marked.len();
        let mut sent_bytes = 0;
        while turns_left > 0
            && sent_bytes < BULK_BYTES_PER_ROUND
            && let Some(index) = self.quic.marked.pop_front()
        {
            turns_left -= 1;
            let slot = self.quic.sessions.get_mut(index as usize);
            if let Some(mut session) = slot.and_then(Option::take) {
                session.is_marked = false;
                sent_bytes += self.drive_one(session);
            }
        }
    }

    /// Returns how many bytes it sent.
    fn drive_one(&mut self, mut session: Box<Http3ServerSession>) -> usize {
        // What handlers ask for while their connection is driven is seen to right here.
        self.ready.begin(session.key());
        if let Some(waker) = &session.waker {
            // Wakes from now on count anew.
            drop(waker.waker());
        }
        let now_us = self.turn.now_us;
        if let Some(place) = self.quic.place(session.place) {
            place.endpoint.pass_time(&mut session.conn, now_us);
        }
        session.note_move();
        let is_cut = self.go_on_with(&mut session);
        self.ready.end();
        let (sent_bytes, is_over) = self.send_datagrams(&mut session, is_cut);
        if is_over && session.stage == Http3SessionStage::Over {
            self.forget(&session);
            return sent_bytes;
        }
        self.set_timer(&mut session);
        let index = session.index as usize;
        let is_marked = std::mem::take(&mut session.is_marked);
        self.quic.sessions[index] = Some(session);
        if is_marked {
            self.quic.mark(index as u32);
        }
        sent_bytes
    }

    /// Lets a connection go as far as it can. True when more could be done at once.
    fn go_on_with(&mut self, session: &mut Http3ServerSession) -> bool {
        let mut budget = BULK_BYTES_PER_TURN;
        let mut is_cut = false;
        for _ in 0..ROUNDS_PER_TURN {
            is_cut = false;
            self.take_happenings(session);
            if session.stage != Http3SessionStage::Open {
                break;
            }
            self.announce_leaving(session);
            let mut has_moved = self.read_unis(session);
            has_moved |= self.look_at_all(session, &mut budget);
            has_moved |= self.fill_streams(session, &mut budget);
            self.sweep(session);
            if budget == 0 {
                return true;
            }
            if !has_moved {
                break;
            }
            is_cut = true;
        }
        self.weigh_unread(session);
        self.look_at_clocks(session);
        self.sweep(session);
        self.close_if_done(session);
        is_cut
    }

    fn take_happenings(&mut self, session: &mut Http3ServerSession) {
        while let Some(happened) = session.conn.next() {
            match happened {
                Happened::Connected => self.open_session(session),
                Happened::Lost(lost, failure) => {
                    session.failure.get_or_insert(failure);
                    self.lose(session, lost);
                }
                Happened::Opened => self.accept_streams(session),
                Happened::Readable(id) => match session.find(id) {
                    Some(at) => session.streams[at].is_readable = true,
                    None => session.unis_are_readable = true,
                },
                Happened::Writable => {}
                Happened::Finished(id) => self.note_arrived(session, id),
                Happened::Stopped(id) => self.note_stopped(session, id),
            }
        }
    }

    /// The handshake is done: requests may come.
    fn open_session(&mut self, session: &mut Http3ServerSession) {
        if !matches!(session.stage, Http3SessionStage::Handshake { .. }) {
            return;
        }
        session.stage = Http3SessionStage::Open;
        self.crew.handshakes.fetch_sub(1, Ordering::Relaxed);
        self.counters.tls_handshakes.add(1);
        self.counters.h3_connections.add(1);
        if let Some(shaken) = session.conn.shaken() {
            if shaken.is_resumed {
                self.counters.tls_resumed.add(1);
            }
            session.facts = Rc::new(ConnectionFacts {
                tls: Some(Rc::new(TlsFacts {
                    server_name: shaken.server_name,
                    version: TlsVersion::Tls13,
                    suite: shaken.suite,
                    is_resumed: shaken.is_resumed,
                    rule: shaken.rule,
                    client: shaken.client,
                    shown: shaken.shown,
                    admitted: Cell::new(shaken.rule),
                    handshake_us: clock_us().saturating_sub(session.started_us),
                })),
                ..ConnectionFacts::clone(&session.facts)
            });
        }
        session.idle_by_ms = self.turn.now_ms + self.limits.idle.as_millis() as u64;
        session.control = session.conn.open_one_way();
        if session.control.is_none() {
            let reason = "there is no room for our control stream";
            return self.fail(
                session,
                Http3ConnectionError::new(Http3ErrorCode::StreamCreation, reason),
            );
        }
        let mut opening = Vec::new();
        session.core.push_opening(&mut opening);
        session.push_control(opening);
        self.accept_streams(session);
    }

    fn accept_streams(&mut self, session: &mut Http3ServerSession) {
        if session.stage != Http3SessionStage::Open {
            return;
        }
        while let Some(id) = session.conn.accept_one_way() {
            session.unis.push((id, Uni::default()));
            session.unis_are_readable = true;
        }
        while let Some(id) = session.conn.accept_both_ways() {
            if !session.core.open(id) {
                // It was told which request was the last one.
                session
                    .conn
                    .stop(id, Http3ErrorCode::RequestRejected as u64);
                session
                    .conn
                    .reset(id, Http3ErrorCode::RequestRejected as u64);
                continue;
            }
            let head_by_ms = self.turn.now_ms + self.limits.head_time.as_millis() as u64;
            let mut stream = Http3RequestStream::new(id, self.limits.head_bytes, head_by_ms);
            if let Some(at) = session.early.iter().position(|(early, _)| *early == id) {
                stream.set_priority(session.early.swap_remove(at).1);
            }
            session.streams.push(stream);
        }
    }

    /// Reads what came on streams that go one way; says whether something did.
    fn read_unis(&mut self, session: &mut Http3ServerSession) -> bool {
        if !std::mem::take(&mut session.unis_are_readable) {
            return false;
        }
        let mut priorities = Vec::new();
        let mut at = 0;
        while at < session.unis.len() {
            let read = session.read_uni(at, self.turn.now_ms, |event| {
                let ControlEvent::Priority(stream, priority) = event;
                priorities.push((stream, priority));
            });
            match read {
                Ok(true) => at += 1,
                Ok(false) => drop(session.unis.swap_remove(at)),
                Err(failure) => {
                    self.fail(session, failure);
                    return true;
                }
            }
        }
        for (stream, priority) in priorities {
            session.set_priority(stream, priority);
        }
        true
    }

    /// Looks at all streams: what has come for them, and what their handlers have to say.
    fn look_at_all(&mut self, session: &mut Http3ServerSession, budget: &mut usize) -> bool {
        let mut has_moved = false;
        let mut at = 0;
        while at < session.streams.len() && session.stage == Http3SessionStage::Open {
            has_moved |= self.read_stream(session, at, budget);
            if session.stage != Http3SessionStage::Open {
                return true;
            }
            has_moved |= self.look_at_request(session, at);
            at += 1;
        }
        has_moved
    }

    /// Those that are over are forgotten.
    fn sweep(&mut self, session: &mut Http3ServerSession) {
        if session.streams.is_empty() {
            return;
        }
        session.streams.retain(|stream| !stream.is_over());
        if session.streams.is_empty() {
            session.streams = Vec::new();
            session.idle_by_ms = self.turn.now_ms + self.limits.idle.as_millis() as u64;
        }
    }

    /// Sends what there is. Returns how many bytes, and whether the connection is over for good.
    pub(super) fn send_datagrams(
        &mut self,
        session: &mut Http3ServerSession,
        is_cut: bool,
    ) -> (usize, bool) {
        let (place, now_us) = (session.place, self.turn.now_us);
        let mut buffer = std::mem::take(&mut self.quic.buffer);
        let Some(socket) = self.quic.place(place) else {
            return (0, true);
        };
        session.conn.fit_send_window();
        // Either time the endpoint may hear that it is over, and it hears so once.
        let was_over = socket.endpoint.settle(&mut session.conn);
        let sent =
            socket
                .endpoint
                .send(&mut session.conn, &mut buffer, BULK_BYTES_PER_TURN, now_us);
        let is_over = was_over | socket.endpoint.settle(&mut session.conn);
        buffer.clear();
        self.quic.buffer = buffer;
        let bytes = match sent {
            DatagramSendOutcome::All(bytes) => {
                session.is_marked |= is_cut;
                bytes
            }
            DatagramSendOutcome::More(bytes) => {
                session.is_marked = true;
                bytes
            }
            DatagramSendOutcome::Blocked => {
                self.watch_for_room(place, true);
                0
            }
        };
        (bytes, is_over)
    }

    fn set_timer(&mut self, session: &mut Http3ServerSession) {
        let own_ms = session.next_ms();
        let Some(place) = self.quic.place(session.place) else {
            return;
        };
        let at_ms = own_ms.min(place.endpoint.next_ms(&mut session.conn));
        if at_ms < session.timer_ms {
            self.quic.timers.remove(&(session.timer_ms, session.index));
            self.quic.timers.insert((at_ms, session.index));
            session.timer_ms = at_ms;
        }
    }

    pub(super) fn session_waker(&self, session: &mut Http3ServerSession) -> Arc<KeyWaker> {
        let key = session.key();
        let waker = session
            .waker
            .get_or_insert_with(|| KeyWaker::new(self.mailbox.clone(), key));
        Arc::clone(waker)
    }

    /// The connection is over: whoever waits is told.
    fn lose(&mut self, session: &mut Http3ServerSession, lost: Lost) {
        if lost == Lost::Broken && session.stage == Http3SessionStage::Open {
            self.counters.h3_errors.add(1);
        }
        // One that has forgotten the connection may have crashed: nobody knows what had arrived.
        let is_in_order = lost == Lost::Closed;
        self.end_session(session, Why::ClientLeft, is_in_order);
    }

    /// All bytes of a stream of ours have arrived.
    pub(super) fn note_arrived(&mut self, session: &mut Http3ServerSession, id: u64) {
        let Some(at) = session.find(id) else {
            return;
        };
        let stream = &mut session.streams[at];
        stream.sending = ResponseProgress::Over;
        if stream.is_half_closed {
            // What the client sends is still read.
            return;
        }
        let ended_us = stream.ended_us;
        if let Some(request) = stream.request.take() {
            self.close_record(&request, ended_us, &session.conn);
            self.recycle(request);
        }
    }
}
