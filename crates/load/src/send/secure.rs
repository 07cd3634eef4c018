//! The same as `exchange`, through TLS: the handshake, and for HTTP/1 sending and reading.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::conn::ConnectionPhase;
use super::exchange::AnswerRead;
use super::h1::{AnswerProgress, BadAnswer};
use super::lane::LaneState;
use super::thread::Thread;
use super::tls::{PIECE_BYTES, Tls};
use super::visits::request;
use crate::measure::FailureKind;

/// What became of the bytes that were to be sent.
pub(super) enum Flushed {
    /// All are sent.
    All,
    /// The socket takes no more for now.
    Full,
    Broken(Errno),
}

impl Thread<'_> {
    /// Begins the handshake on a connection that is open.
    pub(super) fn begin_tls(&mut self, conn: usize) {
        let (Some(config), Some((_, name))) = (&self.tls, &self.prepared.tls) else {
            return;
        };
        match Tls::new(config.clone(), name.clone()) {
            Ok(tls) => {
                self.conns[conn].tls = Some(Box::new(tls));
                self.conns[conn].phase = ConnectionPhase::Handshaking;
                self.shake(conn, false);
            }
            Err(error) => self.no_tls(conn, told(&error)),
        }
    }

    /// Takes the handshake as far as it goes.
    pub(super) fn shake(&mut self, conn: usize, has_input: bool) {
        if has_input {
            let read = match self.conns[conn].many {
                None => self.read_secure(conn, false),
                Some(_) => self.read_many(conn, false),
            };
            match read {
                AnswerRead::Turn => self.read_again(conn, false),
                AnswerRead::Nothing | AnswerRead::Complete => {}
                AnswerRead::Ended
                | AnswerRead::Bad(_)
                | AnswerRead::BrokenOff
                | AnswerRead::Wrong(_)
                | AnswerRead::Lost(..) => {
                    return self.no_tls(conn, "the server ended the handshake".to_owned());
                }
                AnswerRead::Broken(error) => return self.broken(conn, error),
                AnswerRead::NoTls(error) => return self.no_tls(conn, told(&error)),
            }
        }
        if let Flushed::Broken(error) = self.flush(conn) {
            return self.broken(conn, error);
        }
        let one = &mut self.conns[conn];
        let Some(tls) = one.tls.as_ref().filter(|tls| tls.is_ready) else {
            return;
        };
        if one.many.is_some() && tls.alpn() != Some(b"h2") {
            let text = "the server does not agree to speak HTTP/2 (ALPN)".to_owned();
            return self.no_tls(conn, text);
        }
        if one.is_measured {
            match tls.is_resumed() {
                true => self.tally.handshakes_resumed += 1,
                false => self.tally.handshakes_full += 1,
            }
        }
        self.tally.tls.get_or_insert_with(|| tls.terms());
        self.opened(conn);
    }

    /// Encrypts and sends what is left of the request.
    pub(super) fn send_secure(&mut self, conn: usize) {
        loop {
            match self.flush(conn) {
                Flushed::All => {}
                Flushed::Full => return,
                // The server may have answered before it closed: whoever reads next finds out.
                Flushed::Broken(Errno::PIPE | Errno::CONNRESET) => return self.receive(conn, true),
                Flushed::Broken(error) => return self.broken(conn, error),
            }
            let one = &mut self.conns[conn];
            let lane = &mut self.lanes[conn];
            let request = request(self.visits.as_deref(), self.prepared, conn, lane);
            let rest = lane.rest(request, &self.prepared.requests, one.sent_bytes);
            let Some(tls) = one.tls.as_mut().filter(|_| !rest.is_empty()) else {
                lane.state = LaneState::Waiting;
                return;
            };
            let piece = &rest[..rest.len().min(PIECE_BYTES)];
            if let Err(error) = tls.encrypt(piece) {
                return self.no_tls(conn, told(&error));
            }
            one.sent_bytes += piece.len();
        }
    }

    /// Sends records that are ready.
    pub(super) fn flush(&mut self, conn: usize) -> Flushed {
        let is_counted = self.counts_bytes(conn);
        let one = &mut self.conns[conn];
        let (Some(socket), Some(tls)) = (&one.socket, &mut one.tls) else {
            return Flushed::All;
        };
        while !tls.to_send().is_empty() {
            match send(socket, tls.to_send(), SendFlags::NOSIGNAL) {
                Ok(count) => {
                    tls.sent(count);
                    if is_counted {
                        self.tally.sent_bytes += count as u64;
                    }
                }
                Err(Errno::AGAIN) => return Flushed::Full,
                Err(Errno::INTR) => {}
                Err(error) => return Flushed::Broken(error),
            }
        }
        Flushed::All
    }

    /// Reads records, and the answer that is in them.
    pub(super) fn read_secure(&mut self, conn: usize, has_ended: bool) -> AnswerRead {
        let is_counted = self.counts_bytes(conn);
        let asked = self.prepared.asked(self.lanes[conn].kind);
        let break_at = self.lanes[conn].break_at;
        let one = &mut self.conns[conn];
        let (Some(socket), Some(tls)) = (&one.socket, &mut one.tls) else {
            return AnswerRead::Nothing;
        };
        let mut turn_bytes = 0;
        loop {
            let kept = tls.kept.len();
            self.buffer[..kept].copy_from_slice(&tls.kept);
            // Of a record that is not whole nothing can be read.
            let most = one.reader.piece_bytes(break_at).max(PIECE_BYTES);
            let most = most.min(self.pace.next_bytes());
            let room = (self.buffer.len() - kept).min(most);
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
            one.read_at_ns = self.pace.next_read_ns(count, self.prepared);
            let bytes = &mut self.buffer[..kept + count];
            let reader = &mut one.reader;
            let mut progress = AnswerProgress::More;
            let mut bad = None;
            let done = tls.process(bytes, |plain| {
                if progress != AnswerProgress::More {
                    // More than was asked for: the answer is whole, the connection of no use.
                    return reader.refuse_reuse();
                }
                match reader.read(plain, asked) {
                    Ok(AnswerProgress::More) => {}
                    Ok(AnswerProgress::Complete(used)) => {
                        progress = AnswerProgress::Complete(used);
                        if used < plain.len() {
                            reader.refuse_reuse();
                            let surplus = asked.is_head.then_some(BadAnswer::BodyToHead);
                            bad = bad.or(surplus);
                        }
                    }
                    Err(error) => bad = bad.or(Some(error)),
                }
            });
            let done = match done {
                Ok(done) => done,
                Err(error) => return AnswerRead::NoTls(error),
            };
            tls.keep(&bytes[done..]);
            if tls.is_closed {
                reader.refuse_reuse();
            }
            match bad {
                None if reader.is_broken_off(break_at, progress) => return AnswerRead::BrokenOff,
                None if progress != AnswerProgress::More => return AnswerRead::Complete,
                Some(bad) => return AnswerRead::Bad(bad),
                None if tls.is_closed => return AnswerRead::Ended,
                None if count < room && !has_ended => return AnswerRead::Nothing,
                None => {}
            }
            turn_bytes += count;
            if turn_bytes >= self.pace.turn_bytes() {
                return AnswerRead::Turn;
            }
        }
    }

    /// Reads what came where nothing was asked: is it TLS's own affair, such as a session for the
    /// next connection?
    pub(super) fn is_mere_tls(&mut self, conn: usize) -> bool {
        let read = match self.conns[conn].tls {
            Some(_) => self.read_secure(conn, false),
            None => return false,
        };
        if matches!(read, AnswerRead::Turn) {
            self.read_again(conn, false);
        }
        let is_mere = matches!(read, AnswerRead::Nothing | AnswerRead::Turn);
        is_mere && !self.conns[conn].reader.has_begun()
    }

    pub(super) fn no_tls(&mut self, conn: usize, text: String) {
        self.lost(conn, FailureKind::Tls, &text);
    }
}

/// What is wrong, and what can be done about it.
pub(super) fn told(error: &rustls::Error) -> String {
    let hint = match error {
        rustls::Error::InvalidCertificate(_) => "; --insecure takes any certificate",
        _ => "",
    };
    format!("{error}{hint}")
}
