//! The life of a request that has a stream of its own: answered or refused, its body let in or
//! refused, its answer begun, over HTTP/2 and HTTP/3 alike.
//!
//! What the two write, and when an answer has left for good, is the matter of a
//! [`MultiplexedConnection`]. Both are known where they are called: nothing is looked up while a
//! request is answered.

use bytes::Bytes;
use hob_trace::{Fault, Outcome};

use crate::body::{Body, BodyError};
use crate::date::DateLine;
use crate::head::Fields;
use crate::refusal::{BODY_TOO_LARGE, Refusal};
use crate::request::{BodyPiece, Incoming, IncomingState, Request};
use crate::response::{Answered, Responder, Response, ResponseHead};
use crate::thread::ending::LONGER;
use crate::thread::run::Thread;
use crate::thread::work::Work;

/// A connection with streams, and what it does in a way of its own. What it makes goes to the
/// thread's output, which every method gets that may make something.
pub(super) trait MultiplexedConnection {
    /// What a stream is known by.
    type Stream: Copy;

    /// Keeps a request whose answer takes more than a turn.
    fn keep(&mut self, stream: Self::Stream, request: Request, work: Work);

    /// Raw bytes go both ways from here on; false when the client has said its last.
    fn open_tunnel(&mut self, stream: Self::Stream) -> bool;

    /// Appends an interim answer, unless the head of the final one was sent.
    fn push_interim(
        &mut self,
        stream: Self::Stream,
        status: u16,
        fields: &Fields,
        out: &mut Vec<u8>,
    );

    /// Appends the head of an answer; says whether a body follows.
    fn push_head(
        &mut self,
        stream: Self::Stream,
        request: &Request,
        head: &ResponseHead,
        follows: Follows,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) -> bool;

    /// The longest body that leaves with its head.
    fn bytes_at_once(&mut self, stream: Self::Stream) -> usize;

    /// Appends bytes of a body; false when they are more than was announced.
    fn push_data(&mut self, stream: Self::Stream, bytes: &[u8], out: &mut Vec<u8>) -> bool;

    /// Takes what was made for this stream, if each has its own.
    fn take_output(&mut self, stream: Self::Stream, out: &mut Vec<u8>);

    /// Has a body take its turns.
    fn begin_body(&mut self, stream: Self::Stream, request: Request, body: Body);

    /// What is known of a body that may still come; by the place of its stream.
    fn reading(&mut self, at: usize) -> Option<ReceivingRequest<'_>>;

    /// Nobody reads the rest of a body.
    fn stop_body(&mut self, at: usize);

    /// Lets the client send a body of which so many bytes wait to be read.
    fn ask_for_body(&mut self, at: usize, held_bytes: usize, out: &mut Vec<u8>);

    /// All of an answer is made.
    fn end_answer<A: Responder + 'static>(
        &mut self,
        thread: &mut Thread<A>,
        stream: Self::Stream,
        request: Request,
        end: ResponseEnd<'_>,
    );

    /// An answer breaks off so that the client sees that something is missing.
    fn break_answer<A: Responder + 'static>(
        &mut self,
        thread: &mut Thread<A>,
        stream: Self::Stream,
        request: Request,
        fault: Fault,
        reason: &'static str,
    );
}

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// A body, of so many bytes if that is known.
    Body(Option<u64>),
    /// A tunnel's bytes.
    Tunnel,
}

/// How an answer ends.
#[derive(Clone, Copy)]
pub(super) enum ResponseEnd<'t> {
    /// With its head: it has no body.
    Head,
    /// Behind its body.
    Body(Option<&'t Fields>),
}

/// A request whose body may still come.
pub(super) struct ReceivingRequest<'s> {
    pub(super) request: &'s Request,
    /// Bytes that have come.
    pub(super) body_bytes: &'s mut u64,
    /// Until when the next ones must come.
    pub(super) body_by_ms: &'s mut u64,
}

/// What a look at a request's body gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyInterest {
    /// Nobody asks for more.
    Unwanted,
    /// It is larger than its limit: nobody will read it.
    Refused,
    /// It is asked for, and so many bytes wait already.
    Wanted(usize),
}

impl<A: Responder + 'static> Thread<A> {
    /// Answers a request whose record is open, and whose body this is if it has one.
    pub(super) fn answer_on<W: MultiplexedConnection>(
        &mut self,
        wire: &mut W,
        stream: W::Stream,
        request: Request,
        body: Option<Incoming>,
    ) {
        let has_body = body.is_some();
        request.exchange.body_limit.set(self.limits.body_bytes);
        if let Some(body) = body {
            *request.exchange.body.borrow_mut() = body;
        }
        match self.answer.answer(&request) {
            Answered::Ready(response) => {
                if has_body && response.status() == 413 {
                    // Who reads a body that is too large is counted when that shows.
                    self.counters.limit_body.add(1);
                }
                self.push_interims_on(wire, stream, &request);
                self.respond_on(wire, stream, request, response);
            }
            Answered::Later(future) => wire.keep(stream, request, Work::Later(future)),
        }
    }

    /// Answers a request that the engine refused and whose record is open.
    pub(super) fn refuse_on<W: MultiplexedConnection>(
        &mut self,
        wire: &mut W,
        stream: W::Stream,
        request: Request,
        refusal: Refusal,
    ) {
        self.count_refusal(refusal);
        note_fault(&request, Fault::Client, refusal.reason);
        let response = self.answer.refuse(&request, refusal.status);
        self.respond_on(wire, stream, request, response);
    }

    /// Sends what the handler has said before its answer.
    pub(super) fn push_interims_on<W: MultiplexedConnection>(
        &mut self,
        wire: &mut W,
        stream: W::Stream,
        request: &Request,
    ) {
        if request.exchange.said.interim.borrow().is_empty() {
            return;
        }
        let interims = request.exchange.said.interim.take();
        for (status, fields) in interims {
            wire.push_interim(stream, status, &fields, &mut self.output);
            self.counters.responses_1xx.add(1);
        }
        wire.take_output(stream, &mut self.output);
    }

    /// Sends an answer's head, and its body at once when that is short; else it takes its turns.
    pub(super) fn respond_on<W: MultiplexedConnection>(
        &mut self,
        wire: &mut W,
        stream: W::Stream,
        request: Request,
        response: Response,
    ) {
        let is_tunnel = matches!(response.body, Body::Tunnel(_));
        if is_tunnel && !is_connect(&request) {
            let reason = "a tunnel was opened for a request that is not CONNECT";
            note_fault(&request, Fault::Server, reason);
            let mut response = self.answer.refuse(&request, 500);
            if matches!(response.body, Body::Tunnel(_)) {
                response.body = Body::Empty;
            }
            return self.respond_on(wire, stream, request, response);
        }
        let Response { mut head, body, .. } = response;
        let mut follows = Follows::Body(body.len());
        if is_tunnel {
            follows = Follows::Tunnel;
            // What HTTP/1 says by changing the protocol is success here.
            //= rfc8441#5
            //= rfc9220#3
            if let ResponseHead::Fields(status @ 101, _) = &mut head {
                *status = 200;
            }
        }
        let before = self.output.len();
        let has_body = wire.push_head(
            stream,
            &request,
            &head,
            follows,
            &self.turn.date,
            &mut self.output,
        );
        {
            let mut record = request.record_mut();
            record.status = head.status();
            record.head_bytes_out = (self.output.len() - before) as u64;
        }
        if head.status() >= 400 {
            self.answer.error_leaves(&request);
        }
        if is_tunnel && wire.open_tunnel(stream) {
            request.exchange.body.borrow_mut().begin_tunnel();
        }
        match body {
            _ if !has_body => {
                wire.take_output(stream, &mut self.output);
                wire.end_answer(self, stream, request, ResponseEnd::Head);
            }
            Body::Empty => {
                wire.take_output(stream, &mut self.output);
                wire.end_answer(self, stream, request, ResponseEnd::Body(None));
            }
            Body::Bytes(bytes)
                if !bytes.is_empty() && bytes.len() <= wire.bytes_at_once(stream) =>
            {
                let fits = wire.push_data(stream, &bytes, &mut self.output);
                wire.take_output(stream, &mut self.output);
                if !fits {
                    return wire.break_answer(self, stream, request, Fault::Server, LONGER);
                }
                request.record_mut().body_bytes_out += bytes.len() as u64;
                wire.end_answer(self, stream, request, ResponseEnd::Body(None));
            }
            body => {
                wire.take_output(stream, &mut self.output);
                wire.begin_body(stream, request, body);
            }
        }
    }

    /// The one copy of a request body: out of what came, to live as long as needed.
    pub(super) fn take_data<W: MultiplexedConnection>(
        &mut self,
        wire: &mut W,
        at: usize,
        bytes: &[u8],
    ) {
        let Some(reading) = wire.reading(at) else {
            return;
        };
        let exchange = &reading.request.exchange;
        *reading.body_bytes += bytes.len() as u64;
        reading.request.record_mut().bytes_in += bytes.len() as u64;
        if *reading.body_by_ms != u64::MAX {
            *reading.body_by_ms = self.turn.now_ms + self.limits.body_progress.as_millis() as u64;
        }
        let mut body = exchange.body.borrow_mut();
        if body.state != IncomingState::Open {
            return;
        }
        if *reading.body_bytes <= exchange.body_limit.get() {
            return body.push(BodyPiece::Bytes(Bytes::copy_from_slice(bytes)));
        }
        drop(body);
        self.refuse_body(wire, at);
    }

    /// More has come than anyone wants, or more is announced.
    fn refuse_body<W: MultiplexedConnection>(&mut self, wire: &mut W, at: usize) {
        let Some(reading) = wire.reading(at) else {
            return;
        };
        let request = reading.request;
        note_fault(request, Fault::Client, BODY_TOO_LARGE.reason);
        // One that was announced is counted already.
        if request.record().status != 413 {
            self.counters.limit_body.add(1);
        }
        *reading.body_by_ms = u64::MAX;
        let mut body = request.exchange.body.borrow_mut();
        body.break_off(BodyError::TooLarge);
        drop(body);
        wire.stop_body(at);
    }

    /// Lets the client send what the handler has room for.
    pub(super) fn look_at_body<W: MultiplexedConnection>(
        &mut self,
        wire: &mut W,
        at: usize,
    ) -> BodyInterest {
        let Some(reading) = wire.reading(at) else {
            return BodyInterest::Unwanted;
        };
        let exchange = &reading.request.exchange;
        let (held_bytes, announced) = {
            let body = exchange.body.borrow();
            if body.state != IncomingState::Open || !body.is_wanted {
                return BodyInterest::Unwanted;
            }
            (body.held_bytes, body.announced)
        };
        if announced.is_some_and(|announced| announced > exchange.body_limit.get()) {
            self.refuse_body(wire, at);
            return BodyInterest::Refused;
        }
        // Whoever has not read what is there does not wait for the client.
        *reading.body_by_ms = match held_bytes {
            0 if is_connect(reading.request) => u64::MAX,
            0 if *reading.body_by_ms == u64::MAX => {
                self.turn.now_ms + self.limits.body_progress.as_millis() as u64
            }
            0 => *reading.body_by_ms,
            _ => u64::MAX,
        };
        wire.ask_for_body(at, held_bytes, &mut self.output);
        BodyInterest::Wanted(held_bytes)
    }
}

/// Notes in a request's record whose fault it is, and why; the answer may be whole all the same.
pub(super) fn note_fault(request: &Request, fault: Fault, reason: &'static str) {
    let mut record = request.record_mut();
    record.fault = fault;
    record.reason = Some(reason);
}

/// Notes that a request's answer is not, or will not be, whole.
pub(super) fn note_end(request: &Request, outcome: Outcome, fault: Fault, reason: &'static str) {
    request.record_mut().outcome = outcome;
    note_fault(request, fault, reason);
}

/// What follows its head are a tunnel's bytes, if it is answered so.
fn is_connect(request: &Request) -> bool {
    request.sent_head().method() == b"CONNECT"
}
