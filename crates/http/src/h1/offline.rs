//! Requests without a connection.

use std::rc::Rc;

use crate::h1::parse::{HeadScanner, Length, Scan, read_head};
use crate::limits::HttpLimits;
use crate::reactor::Reactor;
use crate::refusal::Refusal;
use crate::request::{ConnectionFacts, Exchange, Request};

impl Request {
    /// A request that came over no connection, read from its head as one that did: to tell what it
    /// would be answered.
    ///
    /// # Errors
    /// Why the engine refuses such a head, and with which status.
    pub fn offline(head: &[u8], limits: &HttpLimits) -> Result<Request, Refusal> {
        let facts = ConnectionFacts {
            peer: None,
            local: None,
            peer_uid: None,
            listener: 0,
            number: 0,
            tls: None,
            told: None,
        };
        Request::read(
            head,
            limits,
            Exchange::new(Rc::new(facts), Reactor::offline()),
        )
    }

    /// A request beside this one, read from its head, on the same thread and as if from the same
    /// client: to learn what it is answered. Nobody counts it, and its answer is sent to nobody.
    ///
    /// # Errors
    /// Why the engine refuses such a head, and with which status.
    pub fn beside(&self, head: &[u8], limits: &HttpLimits) -> Result<Request, Refusal> {
        let facts = Rc::new(self.facts().clone());
        Request::read(head, limits, Exchange::new(facts, self.reactor().clone()))
    }

    fn read(head: &[u8], limits: &HttpLimits, mut exchange: Exchange) -> Result<Request, Refusal> {
        match HeadScanner::default().scan(head, limits) {
            Scan::Complete(len) if len == head.len() => {}
            Scan::Refused(refusal) => return Err(refusal),
            _ => return Err(Refusal::bad("the request head is malformed")),
        }
        let framing = read_head(head, &mut exchange.head, limits)?;
        exchange.body.get_mut().announced = match framing.length {
            Length::Bytes(bytes) => Some(bytes),
            Length::Chunked => None,
        };
        Ok(Request {
            exchange: Rc::new(exchange),
        })
    }
}
