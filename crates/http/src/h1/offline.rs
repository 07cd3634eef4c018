//! Requests without a connection.

use std::rc::Rc;

use crate::h1::parse::{Length, Scan, Scanner, read_head};
use crate::limits::Limits;
use crate::reactor::Reactor;
use crate::refusal::Refusal;
use crate::request::{Exchange, Facts, Request};

impl Request {
    /// A request that came over no connection, read from its head as one that did: to tell what it
    /// would be answered.
    ///
    /// # Errors
    /// Why the engine refuses such a head, and with which status.
    pub fn offline(head: &[u8], limits: &Limits) -> Result<Request, Refusal> {
        match Scanner::default().scan(head, limits) {
            Scan::Complete(len) if len == head.len() => {}
            Scan::Refused(refusal) => return Err(refusal),
            _ => return Err(Refusal::bad("the request head is malformed")),
        }
        let facts = Facts {
            peer: None,
            local: None,
            peer_uid: None,
            listener: 0,
            number: 0,
            tls: None,
        };
        let mut exchange = Exchange::new(Rc::new(facts), Reactor::offline());
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
