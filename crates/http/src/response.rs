//! Answers: what a handler gives back, now or later.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::body::Body;
use crate::digits::push_decimal;
use crate::fields_coding::hpack::PreparedBlock;
use crate::fields_coding::qpack;
use crate::head::Fields;
use crate::reactor::Reactor;
use crate::request::{ConnectionFacts, Request};
use crate::status;

/// Answers the requests of one thread. Implemented by the server.
pub trait Responder {
    /// Answers a request whose head has been read; its body may still be on its way.
    fn answer(&self, request: &Request) -> Answered;

    /// Called once on the thread it answers for, before the first request: what is to live as long
    /// as the thread begins here.
    fn start(&self, reactor: &Reactor) {
        let _ = reactor;
    }

    /// While the thread drains: requests are to be expected, so that it does not end yet. Looked at
    /// now and then.
    fn has_more_to_come(&self) -> bool {
        false
    }

    /// The thread drains and so do all others, and none of them has a request any more, or the time
    /// to drain is over: what serves requests is told to end. Called once. Returns how long the
    /// thread waits for what stays ([`Reactor::stay`]).
    fn leave(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether who connects so may name the client it speaks for, in the header that the listener
    /// asks for (the PROXY protocol).
    fn may_name_clients(&self, facts: &ConnectionFacts) -> bool {
        let _ = facts;
        true
    }

    /// Dresses an answer that the protocol engine gives by itself (400, 408, 431, ...). The head
    /// may be incomplete. The status stays as it is.
    fn refuse(&self, request: &Request, status: u16) -> Response {
        let _ = request;
        Response::text(status, status::phrase(status))
    }

    /// Whether who connects to a listener is let in: not if it has been banned. Nothing has been
    /// read yet.
    fn lets_connect(&self, peer: Option<SocketAddr>, listener: u16) -> bool {
        let _ = (peer, listener);
        true
    }

    /// A TLS handshake has failed for something that the client did, in words.
    fn handshake_failed(&self, facts: &ConnectionFacts, why: &'static str) {
        let _ = (facts, why);
    }

    /// The head of an answer with the status of an error (400 and above) is about to leave; the
    /// client has seen none of it.
    fn error_leaves(&self, request: &Request) {
        let _ = request;
    }

    /// A request's record has been opened: it is finished exactly once after that.
    fn begun(&self, request: &Request) {
        let _ = request;
    }

    /// The exchange is over: its last byte was handed to the kernel, or it broke. The record is
    /// complete.
    fn finished(&self, request: &Request);

    /// Called once per loop turn before new events, with the time in milliseconds on the monotonic
    /// clock.
    fn begin_turn(&self, now_ms: u64) {
        let _ = now_ms;
    }
}

/// An answer, ready or on its way.
pub enum Answered {
    /// Ready now.
    Ready(Response),
    /// Ready when the future is. It is polled on its thread and dropped when the answer is there or
    /// the client has left.
    Later(Pin<Box<dyn Future<Output = Response>>>),
}

impl Answered {
    /// The answer, once it is there.
    pub async fn wait(self) -> Response {
        match self {
            Answered::Ready(response) => response,
            Answered::Later(future) => future.await,
        }
    }
}

/// An answer's head and body.
#[derive(Debug)]
pub struct Response {
    /// Status code and fields.
    pub head: ResponseHead,
    /// The body; ignored for HEAD requests and statuses without one, except for its size.
    pub body: Body,
    /// Close the connection after this answer. Over HTTP/2 nothing of one request can be taken for
    /// another, so it stays open there.
    pub close: bool,
    /// The body says no more than the status does: a page of the site's own may take its place.
    pub is_stand_in: bool,
}

/// Status code and fields, as a list or prepared.
#[derive(Debug)]
pub enum ResponseHead {
    /// A list; framing, date and connection fields are added when it is sent.
    Fields(u16, Fields),
    /// Prepared once for many answers.
    Prepared(Rc<PreparedHead>),
}

impl ResponseHead {
    /// Status code.
    pub fn status(&self) -> u16 {
        match self {
            ResponseHead::Fields(status, _) => *status,
            ResponseHead::Prepared(prepared) => prepared.status(),
        }
    }

    /// The fields.
    pub(crate) fn fields(&self) -> &Fields {
        match self {
            ResponseHead::Fields(_, fields) => fields,
            ResponseHead::Prepared(prepared) => prepared.fields(),
        }
    }
}

/// A head prepared once for many answers: only date and connection fields are added. Cloning
/// counts: the copies of several threads are one.
#[derive(Clone)]
pub struct PreparedHead(Arc<PreparedText>);

/// What a prepared head says in each protocol, as far as it was asked for.
struct PreparedText {
    status: u16,
    /// Within the lines of the whole head, as HTTP/1 sends it.
    fields: Fields,
    body_bytes: u64,
    block: OnceLock<Box<PreparedBlock>>,
    section: OnceLock<qpack::PreparedSection>,
}

impl PreparedHead {
    /// Prepares a head for a body of a known size.
    pub fn new(status: u16, fields: Fields, body_bytes: u64) -> PreparedHead {
        let mut lines = Vec::with_capacity(48 + fields.lines().len());
        push_status_line(status, &mut lines);
        let start = lines.len();
        lines.extend_from_slice(fields.lines());
        if !status::is_bodiless(status) {
            push_content_length(body_bytes, &mut lines);
        }
        PreparedHead(Arc::new(PreparedText {
            status,
            fields: fields.within(lines, start),
            body_bytes,
            block: OnceLock::new(),
            section: OnceLock::new(),
        }))
    }

    /// Status code.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Fields without those of framing, date and connection.
    pub fn fields(&self) -> &Fields {
        &self.0.fields
    }

    /// Size of the body in bytes.
    pub fn body_bytes(&self) -> u64 {
        self.0.body_bytes
    }

    /// The same for HTTP/2.
    pub(crate) fn block(&self) -> &PreparedBlock {
        let PreparedText { status, fields, .. } = &*self.0;
        self.0
            .block
            .get_or_init(|| Box::new(PreparedBlock::new(*status, fields, self.0.body_bytes)))
    }

    /// The same for HTTP/3.
    pub(crate) fn section(&self) -> &qpack::PreparedSection {
        let PreparedText { status, fields, .. } = &*self.0;
        self.0
            .section
            .get_or_init(|| qpack::PreparedSection::new(*status, fields, self.0.body_bytes))
    }

    /// Status line and fields with their framing, each ended by CRLF.
    pub(crate) fn lines(&self) -> &[u8] {
        self.0.fields.text()
    }
}

impl fmt::Debug for PreparedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().escape_ascii().to_string())
    }
}

impl Response {
    /// An answer with these fields and body.
    pub fn new(status: u16, fields: Fields, body: Body) -> Response {
        Response {
            head: ResponseHead::Fields(status, fields),
            body,
            close: false,
            is_stand_in: false,
        }
    }

    /// An answer with a prepared head.
    pub fn prepared(head: Rc<PreparedHead>, body: Body) -> Response {
        Response {
            head: ResponseHead::Prepared(head),
            body,
            close: false,
            is_stand_in: false,
        }
    }

    /// A short plain text.
    pub fn text(status: u16, text: &str) -> Response {
        let mut fields = Fields::new();
        fields.add(b"Content-Type", b"text/plain; charset=utf-8");
        let body = if status::has_no_content(status) {
            Body::Empty
        } else {
            Body::Bytes(bytes::Bytes::from(format!("{text}\n")))
        };
        Response::new(status, fields, body)
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    /// The fields, to be changed; a prepared head is copied first.
    pub fn fields_mut(&mut self) -> &mut Fields {
        if let ResponseHead::Prepared(prepared) = &self.head {
            self.head = ResponseHead::Fields(prepared.status(), prepared.fields().alone());
        }
        match &mut self.head {
            ResponseHead::Fields(_, fields) => fields,
            ResponseHead::Prepared(_) => unreachable!("made a list above"),
        }
    }

    /// The fields.
    pub fn fields(&self) -> &Fields {
        self.head.fields()
    }
}

/// Appends `HTTP/1.1 200 OK CRLF`.
//= rfc9112#4
pub(crate) fn push_status_line(status: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(u64::from(status), out);
    out.push(b' ');
    out.extend_from_slice(status::phrase(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends `Content-Length: n CRLF`.
pub(crate) fn push_content_length(body_bytes: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    push_decimal(body_bytes, out);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_head_has_its_framing() {
        let mut fields = Fields::new();
        fields.add(b"ETag", b"\"a\"");
        let prepared = PreparedHead::new(200, fields.clone(), 1024);
        assert_eq!(
            prepared.lines(),
            b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 1024\r\n"
        );
        let bodiless = PreparedHead::new(304, fields, 1024);
        assert_eq!(
            bodiless.lines(),
            b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n"
        );
    }

    #[test]
    fn fields_of_a_prepared_head_are_those_it_was_made_of() {
        let mut fields = Fields::new();
        fields.add(b"ETag", b"\"a\"");
        fields.add(b"Vary", b"");
        let mut response = Response::prepared(
            Rc::new(PreparedHead::new(200, fields.clone(), 7)),
            Body::Empty,
        );
        let listed: Vec<_> = response.fields().iter().collect();
        assert_eq!(listed, fields.iter().collect::<Vec<_>>());
        assert_eq!(response.fields().lines(), fields.lines());
        assert_eq!(*response.fields_mut(), fields);
        response.fields_mut().add(b"Age", b"1");
        let lines = b"ETag: \"a\"\r\nVary: \r\nAge: 1\r\n";
        assert_eq!(response.fields().lines(), lines);
        let mut none = Response::prepared(
            Rc::new(PreparedHead::new(200, Fields::new(), 7)),
            Body::Empty,
        );
        assert_eq!(none.fields().lines(), b"");
        assert_eq!(*none.fields_mut(), Fields::new());
    }
}
