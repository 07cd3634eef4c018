//! One connection's bytes: opening it, sending the request, reading the answer, and what comes
//! of both.

use std::io;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::h1::{BadAnswer, Progress};
use super::secure::told;
use super::slot::State;
use super::socket;
use super::thread::Thread;
use crate::limits::{RETRY_PAUSE, TURN_BYTES_MAX};
use crate::measure::{Failure, Outcome};
use crate::plan::Reuse;

/// The connection, or what the server sends over it, is over.
const ENDED: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);
/// Bodies with more to come than this are not copied out of the kernel.
const COPIED_BYTES_MAX: u64 = 64 * 1024;

/// What a read gave.
pub(super) enum Read {
    /// The answer is complete.
    Complete,
    /// There is nothing more for now.
    Nothing,
    /// There may be more, but others have their turn first.
    Turn,
    /// The connection has ended.
    Ended,
    Bad(BadAnswer),
    Broken(Errno),
    /// What came is no TLS, or none that was agreed on.
    NoTls(rustls::Error),
}

impl Thread<'_> {
    /// Something happened to a connection.
    pub(super) fn handle_event(&mut self, slot: usize, flags: EventFlags) {
        let has_input = flags.intersects(EventFlags::IN | ENDED);
        match self.slots[slot].state {
            State::Connecting => {
                if flags.intersects(EventFlags::OUT | ENDED) {
                    self.connected(slot);
                }
            }
            State::Handshaking => self.shake(slot, has_input),
            State::Sending | State::Waiting => {
                if self.slots[slot].state == State::Sending && flags.contains(EventFlags::OUT) {
                    self.send(slot);
                }
                if has_input && self.slots[slot].is_busy() {
                    self.receive(slot, flags.intersects(ENDED));
                }
            }
            // Nothing was asked: whatever came, the connection is of no use any more.
            State::Idle | State::Paused => {
                if has_input {
                    self.slots[slot].close();
                }
            }
        }
    }

    /// Begins a connection for the request that the slot has.
    pub(super) fn connect(&mut self, slot: usize) {
        let opened = self.opener.open().and_then(|opened| {
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let key = EventData::new_u64(slot as u64);
            epoll::add(&self.epoll, &opened.socket, key, flags)?;
            Ok(opened)
        });
        match opened {
            Ok(opened) => {
                self.slots[slot].socket = Some(opened.socket);
                self.slots[slot].state = State::Connecting;
                if opened.is_complete {
                    self.connected(slot);
                }
            }
            Err(error) => self.not_connected(slot, &error),
        }
    }

    fn connected(&mut self, slot: usize) {
        let Some(socket) = &self.slots[slot].socket else {
            return;
        };
        if let Err(error) = socket::completed(socket) {
            return self.not_connected(slot, &error);
        }
        if self.tls.is_some() {
            self.begin_tls(slot);
        } else {
            self.opened(slot);
        }
    }

    /// The connection can carry requests.
    pub(super) fn opened(&mut self, slot: usize) {
        let now = self.prepared.now();
        let one = &mut self.slots[slot];
        if one.is_measured {
            self.tally.connect.record(now - one.begun_ns);
        }
        one.state = State::Sending;
        self.send(slot);
        self.to_start += 1;
    }

    pub(super) fn not_connected(&mut self, slot: usize, error: &io::Error) {
        let now = self.prepared.now();
        let address = self.prepared.address.clone();
        self.fail(slot, Failure::Connect, now, || {
            format!("{error} ({address})")
        });
        self.to_start += 1;
    }

    /// Sends what is left of the request.
    pub(super) fn send(&mut self, slot: usize) {
        let one = &mut self.slots[slot];
        if one.tls.is_some() {
            return self.send_secure(slot);
        }
        let Some(socket) = &one.socket else {
            return;
        };
        let bytes = &self.prepared.requests[one.class].bytes;
        while one.sent_bytes < bytes.len() {
            match send(socket, &bytes[one.sent_bytes..], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    one.sent_bytes += count;
                    if one.is_measured {
                        self.tally.sent_bytes += count as u64;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                // The server may have answered before it closed: whoever reads next finds out.
                Err(Errno::PIPE | Errno::CONNRESET) => return self.receive(slot, true),
                Err(error) => return self.broken(slot, error),
            }
        }
        one.state = State::Waiting;
    }

    /// Reads what there is of the answer.
    pub(super) fn receive(&mut self, slot: usize, has_ended: bool) {
        let read = match self.slots[slot].tls {
            None => self.read(slot, has_ended),
            Some(_) => self.read_secure(slot, has_ended),
        };
        let now = match read {
            Read::Nothing => return,
            Read::Turn => return self.again.push(slot),
            _ => self.prepared.now(),
        };
        match read {
            Read::Complete => self.complete(slot, has_ended, now),
            Read::Ended => match self.slots[slot].end() {
                Ok(()) => self.complete(slot, true, now),
                Err(bad) => self.bad(slot, bad, now),
            },
            Read::Bad(bad) => self.bad(slot, bad, now),
            Read::Broken(error) => self.broken(slot, error),
            Read::NoTls(error) => self.no_tls(slot, told(&error)),
            Read::Nothing | Read::Turn => {}
        }
    }

    fn read(&mut self, slot: usize, has_ended: bool) -> Read {
        let one = &mut self.slots[slot];
        let Some(socket) = &one.socket else {
            return Read::Nothing;
        };
        let mut turn_bytes = 0;
        loop {
            let skippable = one.reader.skippable_bytes();
            let is_skipped = skippable > COPIED_BYTES_MAX;
            let got = if is_skipped {
                let room = skippable.min(self.skipped.len() as u64) as usize;
                recv(socket, &mut self.skipped[..room], RecvFlags::TRUNC).map(|got| (got.1, room))
            } else {
                let room = self.buffer.len();
                recv(socket, &mut self.buffer[..], RecvFlags::empty()).map(|got| (got.1, room))
            };
            let (count, room) = match got {
                Ok((0, _)) => return Read::Ended,
                Ok(got) => got,
                Err(Errno::AGAIN) => return Read::Nothing,
                Err(Errno::INTR) => continue,
                Err(error) => return Read::Broken(error),
            };
            if one.is_measured {
                self.tally.received_bytes += count as u64;
            }
            let progress = if is_skipped {
                Ok(one.reader.skip(count as u64))
            } else {
                one.reader
                    .read(&self.buffer[..count], self.prepared.asked())
            };
            match progress {
                // More than was asked for: the answer is whole, the connection of no use.
                Ok(Progress::Complete(used)) if !is_skipped && used < count => {
                    one.reader.refuse_reuse();
                    return Read::Complete;
                }
                Ok(Progress::Complete(_)) => return Read::Complete,
                // The socket was emptied: what comes next is another event.
                Ok(Progress::More) if count < room && !has_ended => return Read::Nothing,
                Ok(Progress::More) => {}
                Err(bad) => return Read::Bad(bad),
            }
            turn_bytes += count;
            if turn_bytes >= TURN_BYTES_MAX && !has_ended {
                return Read::Turn;
            }
        }
    }

    /// The answer is there.
    fn complete(&mut self, slot: usize, has_ended: bool, now: u64) {
        let one = &mut self.slots[slot];
        let is_sent = one.state == State::Waiting;
        let answer = one.reader.answer();
        self.tally.answers_since_warm_up += 1;
        if one.is_measured {
            one.answered += 1;
            let outcome = Outcome {
                answer,
                class: one.class,
                step: self.prepared.step(one.intended_ns),
                response_ns: now - one.intended_ns,
                service_ns: now - one.begun_ns,
            };
            let expected = &self.prepared.expected;
            self.tally.last_ns = now;
            self.tally
                .answered(&outcome, expected, self.prepared.is_open);
        }
        let is_kept =
            answer.is_reusable && is_sent && !has_ended && self.prepared.reuse == Reuse::KeepAlive;
        if !is_kept {
            one.close();
        }
        self.rest(slot, self.prepared.think_ns, now);
    }

    /// The request has no good answer; the connection is of no use any more.
    pub(super) fn fail(
        &mut self,
        slot: usize,
        kind: Failure,
        now: u64,
        example: impl FnOnce() -> String,
    ) {
        let one = &mut self.slots[slot];
        if one.is_measured {
            let place = (one.class, self.prepared.step(one.intended_ns));
            self.tally.last_ns = now;
            self.tally
                .failed(kind, place, now - one.intended_ns, example);
        }
        let is_new = matches!(one.state, State::Connecting | State::Handshaking);
        let was_open = !is_new && one.socket.is_some();
        one.close();
        let pause = if was_open {
            self.prepared.think_ns
        } else {
            RETRY_PAUSE.as_nanos() as u64
        };
        self.rest(slot, pause, now);
    }

    /// The slot has no request any more and gets the next one, after a pause if there is one.
    fn rest(&mut self, slot: usize, pause_ns: u64, now: u64) {
        self.busy_count -= 1;
        self.slots[slot].state = State::Idle;
        if pause_ns > 0 {
            self.pause(slot, now + pause_ns);
        } else {
            self.next_request(slot, now);
        }
    }

    fn bad(&mut self, slot: usize, bad: BadAnswer, now: u64) {
        let kind = if bad.is_end() {
            Failure::Closed
        } else {
            Failure::Malformed
        };
        self.fail(slot, kind, now, || bad.to_string());
    }

    pub(super) fn broken(&mut self, slot: usize, error: Errno) {
        let now = self.prepared.now();
        let text = io::Error::from(error).to_string();
        self.fail(slot, Failure::Reset, now, || text);
    }
}
