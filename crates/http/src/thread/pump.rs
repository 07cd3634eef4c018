//! Request bodies: from the socket through the engine to whoever reads them, never more than a
//! window ahead.

use bytes::Bytes;
use hob_trace::Fault;

use crate::body::BodyError;
use crate::h1::Http1Event;
use crate::head::RequestHead;
use crate::limits::{BODY_WINDOW_BYTES, READ_BYTES_PER_TURN};
use crate::refusal::Refusal;
use crate::request::{BodyPiece, Request};
use crate::response::Responder;
use crate::splice_pipe::{SplicePipe, SplicePipes};
use crate::thread::conn::SocketConnection;
use crate::thread::receive::SocketReadOutcome;
use crate::thread::run::Thread;

/// What moving a request body gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// The handler has something new to see.
    Something,
    /// Nothing new.
    Nothing,
    /// The connection is broken.
    Broken,
}

/// What dropping input gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// The request body has ended; what follows is the next request.
    End,
    /// More may come.
    More,
    /// The client has ended its side, or the connection is broken.
    Over,
    /// The framing is wrong, or there is more than anyone wants to read.
    Refused,
}

/// The smallest read, however small the room in the window is.
const READ_BYTES_MIN: usize = 4 * 1024;

impl<A: Responder + 'static> Thread<A> {
    /// Moves request body from the socket to the handler.
    pub(crate) fn pump(&mut self, conn: &mut SocketConnection) -> Pumped {
        let Some(request) = conn.request.clone() else {
            return Pumped::Nothing;
        };
        let mut gave = Pumped::Nothing;
        let mut turn_bytes = 0;
        while conn.core.body_is_open() {
            let room = request.exchange.body.borrow().room();
            if room == 0 {
                conn.core.pause_body();
                break;
            }
            conn.core.limit_body(request.exchange.body_limit.get());
            // Also without bytes: an end may be due, or a refusal.
            let carry = std::mem::take(&mut conn.carry);
            let used = self.feed(conn, &request, &carry, &mut gave);
            conn.carry = unused(carry, used);
            if used > 0 || !conn.core.body_is_open() {
                continue;
            }
            conn.core.continue_now(&mut self.output);
            if turn_bytes >= READ_BYTES_PER_TURN {
                self.queue_bulk(conn);
                break;
            }
            if !conn.is_readable {
                if conn.is_half_closed {
                    end_early(conn, &request);
                    return Pumped::Something;
                }
                conn.core.wait_for_body(self.turn.now_ms);
                break;
            }
            match self.receive_body(conn, &request, room.max(READ_BYTES_MIN), &mut gave) {
                SocketReadOutcome::Bytes(count) => turn_bytes += count,
                SocketReadOutcome::Nothing => {}
                SocketReadOutcome::Eof => {
                    end_early(conn, &request);
                    return Pumped::Something;
                }
                SocketReadOutcome::Broken => return Pumped::Broken,
            }
        }
        gave
    }

    /// Takes bytes of the body from the socket to where the handler finds them.
    fn receive_body(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        room: usize,
        gave: &mut Pumped,
    ) -> SocketReadOutcome {
        if let Some(pipe) = self.pipe_for_body(conn, request) {
            return self.fill_pipe(conn, request, (pipe, room), gave);
        }
        let received = self.receive(conn, room);
        if let SocketReadOutcome::Bytes(count) = received {
            self.feed_input(conn, request, count, gave);
        }
        received
    }

    /// A pipe for what comes next of a body, where it may come in one.
    fn pipe_for_body(&self, conn: &SocketConnection, request: &Request) -> Option<SplicePipe> {
        let body = request.exchange.body.borrow();
        let is_clear = conn.secure.is_none() && conn.carry.is_empty();
        if !body.may_pipe || !is_clear || conn.core.left_unseen().is_none() || request.is_traced() {
            return None;
        }
        drop(body);
        let pipe = SplicePipes::take(&self.splice_pipes);
        if pipe.is_none() {
            self.note_lack_of_pipes(request);
        }
        pipe
    }

    /// Counts once that something of it is copied that could go by a pipe.
    pub(super) fn note_lack_of_pipes(&self, request: &Request) {
        let mut body = request.exchange.body.borrow_mut();
        if !std::mem::replace(&mut body.counted.has_lacked, true) {
            self.counters.limit_splice_pipes.add(1);
        }
    }

    /// Counts once that something of it goes by a pipe.
    pub(super) fn note_piped(&self, request: &Request) {
        let mut body = request.exchange.body.borrow_mut();
        if std::mem::replace(&mut body.counted.has_come, true) {
            return;
        }
        match body.is_tunnel {
            true => self.counters.spliced_tunnels.add(1),
            false => self.counters.spliced_requests.add(1),
        }
    }

    /// Moves bytes of a body, and nothing behind it, into a pipe for the handler.
    fn fill_pipe(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        (mut pipe, room): (SplicePipe, usize),
        gave: &mut Pumped,
    ) -> SocketReadOutcome {
        let left = conn.core.left_unseen().unwrap_or_default();
        let max = usize::try_from(left).map_or(room, |left| left.min(room));
        let filled = pipe.fill_from(&conn.socket, max);
        let outcome = conn.read_outcome(filled);
        if let SocketReadOutcome::Bytes(count) = outcome {
            conn.core.took_unseen(count, self.turn.now_ms);
            request.record_mut().bytes_in += count as u64;
            self.note_piped(request);
            let piece = BodyPiece::Piped(pipe);
            request.exchange.body.borrow_mut().push(piece);
            *gave = Pumped::Something;
            // Whether that was the end.
            self.feed(conn, request, &[], gave);
        }
        outcome
    }

    /// Feeds the first `count` bytes of `input`, after what was left over before.
    fn feed_input(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        count: usize,
        gave: &mut Pumped,
    ) {
        let input = std::mem::take(&mut self.input);
        if conn.carry.is_empty() {
            let used = self.feed(conn, request, &input[..count], gave);
            conn.carry.extend_from_slice(&input[used..count]);
        } else {
            let mut all = std::mem::take(&mut conn.carry);
            all.extend_from_slice(&input[..count]);
            let used = self.feed(conn, request, &all, gave);
            conn.carry = unused(all, used);
        }
        self.input = input;
    }

    /// Gives bytes to the engine and what it makes of them to the handler. Returns how many were
    /// used.
    fn feed(
        &mut self,
        conn: &mut SocketConnection,
        request: &Request,
        input: &[u8],
        gave: &mut Pumped,
    ) -> usize {
        let mut body = request.exchange.body.borrow_mut();
        let mut unused_head = RequestHead::empty();
        let mut used = 0;
        loop {
            let (count, event) = conn
                .core
                .read(&input[used..], &mut unused_head, self.turn.now_ms);
            used += count;
            match event {
                Http1Event::Data(len) => {
                    // The one copy of a request body: out of the thread's buffer, to live as long
                    // as needed.
                    let bytes = Bytes::copy_from_slice(&input[used - len..used]);
                    body.push(BodyPiece::Bytes(bytes));
                    request.record_mut().bytes_in += count as u64;
                    *gave = Pumped::Something;
                    if body.held_bytes >= BODY_WINDOW_BYTES {
                        return used;
                    }
                }
                Http1Event::BodyEnd(trailers) => {
                    request.record_mut().bytes_in += count as u64;
                    body.trailers = trailers;
                    body.end();
                    conn.core.pause_body();
                    *gave = Pumped::Something;
                    return used;
                }
                Http1Event::Refused(refusal) => {
                    let mut record = request.record_mut();
                    record.fault = Fault::Client;
                    record.reason = Some(refusal.reason);
                    drop(record);
                    self.count_refusal(refusal);
                    body.break_off(error_of(refusal));
                    *gave = Pumped::Something;
                    return used;
                }
                Http1Event::NeedMore | Http1Event::Busy | Http1Event::Request(_) => return used,
            }
        }
    }

    /// Reads and drops what is left of a request body, or of a connection.
    pub(crate) fn discard(&mut self, conn: &mut SocketConnection) -> Discarded {
        let mut turn_bytes = 0;
        loop {
            let carry = std::mem::take(&mut conn.carry);
            let (used, ended) = self.drop_input(conn, &carry);
            conn.carry = unused(carry, used);
            if let Some(ended) = ended {
                return ended;
            }
            if turn_bytes >= READ_BYTES_PER_TURN {
                self.queue_bulk(conn);
                return Discarded::More;
            }
            if !conn.is_readable {
                return if conn.is_half_closed {
                    Discarded::Over
                } else {
                    Discarded::More
                };
            }
            match self.receive(conn, READ_BYTES_PER_TURN) {
                SocketReadOutcome::Bytes(count) => {
                    turn_bytes += count;
                    if conn.carry.is_empty() {
                        let input = std::mem::take(&mut self.input);
                        let (used, ended) = self.drop_input(conn, &input[..count]);
                        conn.carry.extend_from_slice(&input[used..count]);
                        self.input = input;
                        if let Some(ended) = ended {
                            return ended;
                        }
                    } else {
                        conn.carry.extend_from_slice(&self.input[..count]);
                    }
                }
                SocketReadOutcome::Nothing => {}
                SocketReadOutcome::Eof | SocketReadOutcome::Broken => return Discarded::Over,
            }
        }
    }

    /// Drops as much of `input` as the engine takes; returns how much, and the end if it came.
    fn drop_input(&self, conn: &mut SocketConnection, input: &[u8]) -> (usize, Option<Discarded>) {
        let mut unused_head = RequestHead::empty();
        let mut used = 0;
        loop {
            let (count, event) = conn
                .core
                .read(&input[used..], &mut unused_head, self.turn.now_ms);
            used += count;
            match event {
                Http1Event::Data(_) => {}
                Http1Event::BodyEnd(_) => return (used, Some(Discarded::End)),
                Http1Event::Refused(_) => return (input.len(), Some(Discarded::Refused)),
                Http1Event::NeedMore => return (used, None),
                Http1Event::Busy | Http1Event::Request(_) => return (input.len(), None),
            }
        }
    }
}

/// The client has sent FIN: a tunnel's input ends, a request's body is broken.
fn end_early(conn: &mut SocketConnection, request: &Request) {
    let mut body = request.exchange.body.borrow_mut();
    // A tunnel's end is told by FIN alone, which anybody on the way can send.
    if conn.core.is_tunnel() && !conn.is_cut_off() {
        body.end();
    } else {
        body.break_off(BodyError::ClientLeft);
    }
    conn.core.end_input();
}

/// What is left of `bytes`; nothing is held for nothing.
fn unused(bytes: Vec<u8>, used: usize) -> Vec<u8> {
    if used == 0 && !bytes.is_empty() {
        bytes
    } else {
        bytes[used..].to_vec()
    }
}

fn error_of(refusal: Refusal) -> BodyError {
    match refusal.status {
        413 => BodyError::TooLarge,
        _ => BodyError::Malformed(refusal.reason),
    }
}
