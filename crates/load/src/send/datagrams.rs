//! The same as `exchange`, over QUIC: a socket of its own for each connection, datagrams in and
//! out, and the timers that QUIC wants. What requests come to is in `multiplex`.

use std::cmp::Reverse;
use std::io;
use std::time::{Duration, Instant};

use super::conn::{ConnectionPhase, Many, MultiplexedSession};
use super::exchange::AnswerRead;
use super::h3::{self, ConnectionChange, Datagrams};
use super::socket::ServerAddress;
use super::thread::Thread;
use super::trust;
use crate::limits::TURN_BYTES_MAX;
use crate::measure::FailureKind;
use crate::plan::Protocol;

/// What one read may give: datagrams that the kernel has put together.
const READ_BYTES: usize = 64 * 1024;

impl Thread<'_> {
    fn instant(&self, ns: u64) -> Instant {
        self.prepared.begun + Duration::from_nanos(ns)
    }

    /// Begins QUIC's handshake on a socket that is open.
    pub(super) fn begin_quic(&mut self, conn: usize) {
        let now = self.instant(self.prepared.now());
        let (Some(config), Some((_, name)), ServerAddress::Inet(remote)) =
            (&self.quic, &self.prepared.tls, &self.prepared.address)
        else {
            return;
        };
        let name = name.to_str();
        let session =
            h3::H3ClientSession::new(config.clone(), (*remote, &name), self.prepared.streams, now);
        let one = &mut self.conns[conn];
        let (Some(socket), Some(many)) = (&one.socket, &mut one.many) else {
            return;
        };
        let begun = session.and_then(|session| {
            let datagrams = Datagrams::new(socket).map_err(|error| error.to_string())?;
            Ok((session, datagrams))
        });
        match begun {
            Ok((session, datagrams)) => {
                many.session = Some(MultiplexedSession::H3(Box::new(session)));
                many.datagrams = Some(datagrams);
                one.phase = ConnectionPhase::Handshaking;
                self.flush_quic(conn);
            }
            Err(why) => self.lost(conn, FailureKind::Tls, &why),
        }
    }

    /// Something happened to a connection that is shaking hands, or its time has come.
    pub(super) fn shake_quic(&mut self, conn: usize, has_input: bool) {
        let read = match has_input {
            true => self.read_quic(conn),
            false => self.advance_quic(conn),
        };
        match read {
            AnswerRead::Broken(error) => self.not_connected(conn, &io::Error::from(error)),
            AnswerRead::Lost(kind, why) => self.lost(conn, kind, &why),
            _ => self.flush_quic(conn),
        }
        self.flush_dirty();
    }

    /// Reads what there is of answers into `events`.
    pub(super) fn read_quic(&mut self, conn: usize) -> AnswerRead {
        let is_counted = self.counts_bytes(conn);
        let now_ns = self.prepared.now();
        let now = self.instant(now_ns);
        let one = &mut self.conns[conn];
        let (Some(socket), Some(many)) = (&one.socket, &mut one.many) else {
            return AnswerRead::Nothing;
        };
        let Many {
            session: Some(MultiplexedSession::H3(session)),
            datagrams: Some(datagrams),
            heard_ns,
            ..
        } = &mut **many
        else {
            return AnswerRead::Nothing;
        };
        let checked = trust::checked();
        let mut turn_bytes = 0;
        let turn = loop {
            let buffer = &mut self.buffer[..READ_BYTES];
            let received = datagrams.receive(socket, buffer, |remote, ecn, bytes| {
                session.receive(now, remote, ecn, bytes);
            });
            match received {
                Ok(None) => break AnswerRead::Nothing,
                Ok(Some(count)) => {
                    *heard_ns = now_ns;
                    turn_bytes += count;
                    if is_counted {
                        self.tally.received_bytes += count as u64;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let code = error.raw_os_error().unwrap_or_default();
                    return AnswerRead::Broken(rustix::io::Errno::from_raw_os_error(code));
                }
            }
            if turn_bytes >= TURN_BYTES_MAX {
                break AnswerRead::Turn;
            }
        };
        session.is_full |= trust::checked() != checked;
        match self.advance_quic(conn) {
            AnswerRead::Nothing => turn,
            lost => lost,
        }
    }

    /// Looks at what datagrams and time have brought.
    fn advance_quic(&mut self, conn: usize) -> AnswerRead {
        let now = self.instant(self.prepared.now());
        let Some(common) = &self.prepared.h3 else {
            return AnswerRead::Nothing;
        };
        let Some(MultiplexedSession::H3(session)) = self.conns[conn].session() else {
            return AnswerRead::Nothing;
        };
        let mut events = Vec::new();
        let step = session.advance(now, common, &mut events);
        let is_full = session.is_full;
        self.events.append(&mut events);
        match step {
            ConnectionChange::Same => AnswerRead::Nothing,
            ConnectionChange::Lost(kind, why) => AnswerRead::Lost(kind, why),
            ConnectionChange::Connected => {
                if self.conns[conn].is_measured {
                    match is_full {
                        true => self.tally.handshakes_full += 1,
                        false => self.tally.handshakes_resumed += 1,
                    }
                }
                let terms = || "TLSv1_3 within QUIC".to_owned();
                self.tally.tls.get_or_insert_with(terms);
                self.opened(conn);
                AnswerRead::Nothing
            }
        }
    }

    /// Sends what there is to send, and sees to the timer.
    pub(super) fn flush_quic(&mut self, conn: usize) {
        let is_counted = self.counts_bytes(conn);
        let now = self.instant(self.prepared.now());
        let begun = self.prepared.begun;
        let one = &mut self.conns[conn];
        let (Some(socket), Some(many)) = (&one.socket, &mut one.many) else {
            return;
        };
        let Many {
            session: Some(MultiplexedSession::H3(session)),
            datagrams: Some(datagrams),
            ..
        } = &mut **many
        else {
            return;
        };
        let mut buffer = Vec::new();
        loop {
            let (transmit, bytes) = match session.unsent.take() {
                Some(unsent) => unsent,
                None => match session.transmit(now, datagrams.per_send(), &mut buffer) {
                    Some(transmit) => (transmit, std::mem::take(&mut buffer)),
                    None => break,
                },
            };
            match datagrams.send(socket, &transmit, &bytes) {
                Ok(true) => {
                    if is_counted {
                        self.tally.sent_bytes += transmit.size as u64;
                    }
                    buffer = bytes;
                    buffer.clear();
                }
                Ok(false) => {
                    session.unsent = Some((transmit, bytes));
                    break;
                }
                // As good as lost on its way: who needs it sends it again, or finds out by reading.
                Err(_) => break,
            }
        }
        let until = session.timeout();
        let until = until.map(|until| until.saturating_duration_since(begun).as_nanos() as u64);
        if let Some(until) = until
            && session.timer_ns.is_none_or(|timer| until < timer)
        {
            session.timer_ns = Some(until);
            self.timers.push(Reverse((until, conn)));
        }
    }

    /// Looks at connections whose time has come.
    pub(super) fn wake_quic(&mut self, now: u64) {
        while let Some(Reverse((until, conn))) = self.timers.peek().copied() {
            if until > now {
                break;
            }
            self.timers.pop();
            let instant = self.instant(now);
            let Some(MultiplexedSession::H3(session)) = self.conns[conn].session() else {
                continue;
            };
            if session.timer_ns != Some(until) {
                continue;
            }
            session.timer_ns = None;
            if session.timeout().is_some_and(|due| due <= instant) {
                session.handle_timeout(instant);
            }
            match self.conns[conn].phase {
                ConnectionPhase::Handshaking => self.shake_quic(conn, false),
                ConnectionPhase::Open => self.handle_many(conn, true, false),
                ConnectionPhase::Closed | ConnectionPhase::Connecting => {}
            }
        }
    }

    /// Tells servers that connections are over: over QUIC nothing else does.
    pub(super) fn close_quic(&mut self) {
        if self.prepared.protocol != Protocol::H3 {
            return;
        }
        for conn in 0..self.conns.len() {
            self.conns[conn].close();
        }
    }
}
