//! Request bodies: from the socket through the engine to whoever reads them, never more than a window ahead.

use std::io;

use bytes::Bytes;
use hob_trace::Fault;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::body::BodyError;
use crate::h1::{Event, Refusal};
use crate::head::RequestHead;
use crate::limits::{BODY_WINDOW_BYTES, READ_BYTES_PER_TURN};
use crate::response::Answer;
use crate::thread::conn::Conn;
use crate::thread::run::Thread;

/// What reading a socket gave.
pub(crate) enum Read {
    /// So many bytes stand in `input`.
    Bytes(usize),
    /// None for now.
    Nothing,
    /// The client has sent FIN.
    Eof,
    /// The connection is broken.
    Broken,
}

impl<A: Answer + 'static> Thread<A> {
    /// Reads what there is into `input`.
    pub(crate) fn receive(&mut self, conn: &mut Conn) -> Read {
        match rustix::net::recv(&conn.socket, &mut self.input[..], RecvFlags::empty()) {
            Ok((0, _)) => {
                conn.is_half_closed = true;
                conn.is_readable = false;
                Read::Eof
            }
            Ok((count, _)) => {
                // Fewer bytes than there was room for: what comes later gives a new event. FIN is known by
                // its own flag, so it need not be looked for.
                if count < READ_BYTES_PER_TURN && !conn.is_half_closed {
                    conn.is_readable = false;
                }
                Read::Bytes(count)
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                conn.is_readable = false;
                Read::Nothing
            }
            Err(_) => Read::Broken,
        }
    }

    /// Moves request body from the socket to the handler. Returns true when the handler got something.
    pub(crate) fn pump(&mut self, conn: &mut Conn) -> Result<bool, io::Error> {
        let mut gave = false;
        let mut turn_bytes = 0;
        loop {
            let Some(request) = conn.request.clone() else {
                return Ok(gave);
            };
            if !conn.core.body_is_open() {
                return Ok(gave);
            }
            let (is_wanted, held) = {
                let body = request.exchange.body.borrow();
                (body.is_wanted, body.held_bytes)
            };
            if !is_wanted || held >= BODY_WINDOW_BYTES {
                conn.core.wait_for_nothing();
                return Ok(gave);
            }
            conn.core.continue_now(&mut self.output);
            if !conn.carry.is_empty() {
                let carry = std::mem::take(&mut conn.carry);
                let used = self.feed(conn, &carry, &mut gave);
                if used < carry.len() {
                    conn.carry = carry[used..].to_vec();
                }
                if used > 0 {
                    continue;
                }
            }
            if turn_bytes >= READ_BYTES_PER_TURN {
                self.queue_bulk(conn);
                return Ok(gave);
            }
            if !conn.is_readable {
                conn.core.wait_for_body(self.now_ms);
                return Ok(gave);
            }
            match self.receive(conn) {
                Read::Bytes(count) => {
                    turn_bytes += count;
                    let input = std::mem::take(&mut self.input);
                    let mut all = std::mem::take(&mut conn.carry);
                    if all.is_empty() {
                        let used = self.feed(conn, &input[..count], &mut gave);
                        conn.carry.extend_from_slice(&input[used..count]);
                    } else {
                        all.extend_from_slice(&input[..count]);
                        let used = self.feed(conn, &all, &mut gave);
                        conn.carry.extend_from_slice(&all[used..]);
                    }
                    self.input = input;
                }
                Read::Nothing => {}
                Read::Eof => {
                    request
                        .exchange
                        .body
                        .borrow_mut()
                        .break_off(BodyError::ClientLeft);
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Read::Broken => return Err(io::ErrorKind::ConnectionReset.into()),
            }
        }
    }

    /// Gives bytes to the engine and what it makes of them to the handler. Returns how many were used.
    fn feed(&mut self, conn: &mut Conn, input: &[u8], gave: &mut bool) -> usize {
        let Some(request) = conn.request.clone() else {
            return 0;
        };
        let mut body = request.exchange.body.borrow_mut();
        let mut unused_head = RequestHead::empty();
        let mut used = 0;
        while body.held_bytes < BODY_WINDOW_BYTES {
            let (count, event) = conn
                .core
                .read(&input[used..], &mut unused_head, self.now_ms);
            used += count;
            match event {
                Event::Data(len) => {
                    // The one copy of a request body: out of the thread's buffer, to live as long as needed.
                    body.push(Bytes::copy_from_slice(&input[used - len..used]));
                    request.record_mut().bytes_in += count as u64;
                    *gave = true;
                }
                Event::BodyEnd(trailers) => {
                    body.trailers = trailers;
                    body.end();
                    conn.core.wait_for_nothing();
                    *gave = true;
                    break;
                }
                Event::Refused(refusal) => {
                    let mut record = request.record_mut();
                    record.fault = Fault::Client;
                    record.reason = Some(refusal.reason);
                    self.count_refusal(refusal);
                    body.break_off(error_of(refusal));
                    *gave = true;
                    break;
                }
                Event::NeedMore | Event::Busy | Event::Request(_) => break,
            }
        }
        used
    }

    /// Reads and drops what is left of a request body, or of a connection. Returns true at its end.
    pub(crate) fn discard(&mut self, conn: &mut Conn) -> Result<bool, io::Error> {
        let mut unused_head = RequestHead::empty();
        let mut turn_bytes = 0;
        loop {
            if !conn.carry.is_empty() {
                let carry = std::mem::take(&mut conn.carry);
                let (used, event) = conn.core.read(&carry, &mut unused_head, self.now_ms);
                conn.carry.extend_from_slice(&carry[used..]);
                match event {
                    Event::BodyEnd(_) => return Ok(true),
                    Event::Refused(refusal) => {
                        self.count_refusal(refusal);
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    _ if used > 0 => continue,
                    _ => {}
                }
            } else if let (_, Event::BodyEnd(_)) =
                conn.core.read(&[], &mut unused_head, self.now_ms)
            {
                return Ok(true);
            }
            if turn_bytes >= READ_BYTES_PER_TURN {
                self.queue_bulk(conn);
                return Ok(false);
            }
            if !conn.is_readable {
                return Ok(false);
            }
            match self.receive(conn) {
                Read::Bytes(count) => {
                    turn_bytes += count;
                    conn.carry.extend_from_slice(&self.input[..count]);
                }
                Read::Nothing => {}
                Read::Eof | Read::Broken => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Counts a refusal under the limit that caused it.
    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        let counters = &self.counters;
        match refusal.status {
            408 => counters.limit_head_time.add(1),
            413 => counters.limit_body.add(1),
            414 => counters.limit_target.add(1),
            431 if refusal == crate::h1::parse::TOO_MANY_HEADERS => counters.limit_headers.add(1),
            431 => counters.limit_head.add(1),
            _ => counters.bad_request.add(1),
        }
    }
}

fn error_of(refusal: Refusal) -> BodyError {
    if refusal.status == 413 {
        BodyError::TooLarge
    } else {
        BodyError::Malformed(refusal.reason)
    }
}
