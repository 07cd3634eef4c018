//! How requests begin for the books, whichever protocol they came by: memory, records, refusals.

use std::rc::Rc;

use hob_trace::TlsHandshake;

use crate::limits::REQUEST_POOL_MAX;
use crate::refusal::{Refusal, TOO_MANY_HEADERS};
use crate::request::{ConnectionFacts, Exchange, Request};
use crate::response::Responder;
use crate::thread::conn::SocketConnection;
use crate::thread::run::Thread;

impl<A: Responder + 'static> Thread<A> {
    /// A request for the next head of this connection.
    pub(crate) fn fresh_request(&mut self, conn: &SocketConnection) -> Request {
        self.request_for(&conn.facts)
    }

    /// A request for the next head of a connection of which this is known.
    pub(super) fn request_for(&mut self, facts: &Rc<ConnectionFacts>) -> Request {
        while let Some(mut request) = self.pool.pop() {
            if let Some(exchange) = Rc::get_mut(&mut request.exchange) {
                exchange.renew(facts);
                return request;
            }
        }
        let exchange = Exchange::new(Rc::clone(facts), self.reactor.clone());
        Request {
            exchange: Rc::new(exchange),
        }
    }

    /// Keeps the memory of a request whose last owner this is.
    pub(crate) fn recycle(&mut self, request: Request) {
        if self.pool.len() < REQUEST_POOL_MAX && Rc::strong_count(&request.exchange) == 1 {
            request.exchange.body.borrow_mut().drop_pieces();
            self.pool.push(request);
        }
    }

    /// Opens a request's record.
    pub(crate) fn note_start(&self, conn: &mut SocketConnection, request: &Request) {
        self.note_start_of(&conn.facts, conn.request_count, request);
        conn.request_count = conn.request_count.wrapping_add(1);
    }

    /// Opens the record of the request that comes after so many on its connection.
    pub(super) fn note_start_of(
        &self,
        facts: &ConnectionFacts,
        request_count: u32,
        request: &Request,
    ) {
        let mut record = request.record_mut();
        record.started_us = self.turn.now_us;
        record.started_unix_ms = self.turn.now_ms.wrapping_add(self.turn.unix_offset_ms);
        record.protocol = request.head().protocol();
        record.bytes_in = request.head().byte_count() as u64;
        record.connection = facts.number;
        record.request = request_count;
        if let Some(peer) = facts.peer {
            record.client = peer.ip();
            record.client_port = peer.port();
        }
        if let Some(tls) = &facts.tls {
            record.tls_version = tls.version;
            record.tls_suite = tls.suite;
            record.tls_handshake = match tls.is_resumed {
                true => TlsHandshake::Resumed,
                false => TlsHandshake::Full,
            };
            if request_count == 0 {
                record.handshake_us = u32::try_from(tls.handshake_us).unwrap_or(u32::MAX);
            }
        }
        drop(record);
        self.answer.begun(request);
    }

    /// Counts a refusal under the limit or the fault that caused it.
    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        let counters = &self.counters;
        match refusal.status {
            408 => counters.limit_head_time.add(1),
            413 => counters.limit_body.add(1),
            414 => counters.limit_target.add(1),
            431 if refusal == TOO_MANY_HEADERS => counters.limit_headers.add(1),
            431 => counters.limit_head.add(1),
            400 => counters.bad_request.add(1),
            _ => counters.unsupported.add(1),
        }
    }
}
