//! One HTTP/1 connection without its socket: what is read next, how an answer is framed, when time
//! is up.
//!
//! ```text
//! reading:  Head --> Length or Chunked --> Done      (Raw: a tunnel, or a lingering close)
//!              `--> Refused: framing is lost, nothing more is read as HTTP
//! writing:  Nothing --> Length, Chunked, UntilClose or NoBody --> Done
//! both Done: the next request, or linger, or close
//! ```
//!
//! Time is milliseconds on any monotonic clock, given by the caller. Two clocks run apart: one for
//! what is awaited from the client, one for what the client is to take.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hob_trace::Protocol;

use crate::deadline::Deadline;
use crate::h1::chunked::{ChunkedDecoder, Decoded};
use crate::h1::encode::Writing;
use crate::h1::parse::{self, Framing, HeadScanner, Length, Scan};
use crate::h1::quick;
use crate::head::RequestHead;
use crate::limits::{DISCARD_BYTES_MAX, HttpLimits};
use crate::refusal::{BODY_TOO_LARGE, Refusal};

/// The state of one connection.
#[derive(Debug)]
pub struct Http1Connection {
    /// Of the config that was in force when it was accepted.
    limits: Rc<HttpLimits>,
    /// Where in a request the next byte from the client belongs.
    pub(super) reading: Http1ReadState,
    /// Where in an answer the next byte for the client belongs.
    pub(super) writing: Writing,
    /// Another request may follow this answer.
    pub(super) keep_alive: bool,
    /// The client said that this is its last request.
    client_closes: bool,
    /// The request in hand is HTTP/1.0: no chunks, and an end where it does not ask for more.
    pub(super) is_http10: bool,
    /// The answer in hand has no body, whatever its head announces.
    pub(super) is_head_method: bool,
    /// The client waits for 100 before it sends its body.
    pub(super) continue_is_due: bool,
    /// Where else the same is served (RFC 7838): every answer says so.
    pub(super) alt_svc: Option<Arc<[u8]>>,
    /// Longest body of the request in hand, in bytes.
    body_limit: u64,
    /// What has come of it.
    pub(super) body_bytes: u64,
    /// What is awaited from the client, and until when.
    pub(super) awaited: Deadline,
    /// The same moment, in milliseconds of loop time.
    awaited_by_ms: u64,
    /// Until when the client must take bytes; `u64::MAX` when it has all there are.
    write_by_ms: u64,
}

#[derive(Debug)]
pub(super) enum Http1ReadState {
    Head(HeadScanner),
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    Raw,
    Done,
    Refused,
}

/// What reading gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Http1Event {
    /// Nothing more without more input.
    NeedMore,
    /// A head is complete; its body, if any, follows.
    Request(Framing),
    /// The last so many bytes used are body.
    Data(usize),
    /// The body has ended, with these trailers.
    BodyEnd(Vec<(Bytes, Bytes)>),
    /// The request is refused; the connection ends after the answer.
    Refused(Refusal),
    /// Nothing is read now: an answer is under way.
    Busy,
}

/// What the client's FIN means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eof {
    /// Between requests: close.
    Close,
    /// Within a head.
    Refuse(Refusal),
    /// Within a body: the rest will never come.
    BodyBroken,
    /// After a complete request.
    HalfClosed,
}

/// What comes after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAnswer {
    /// The next request may be read.
    Request,
    /// The rest of the request body is read and dropped first.
    Discard,
    /// Our side is shut; input is read and dropped for a while.
    Linger,
    /// Close now.
    Close,
}

impl Http1Connection {
    /// A new connection. The clock for its first byte runs.
    pub fn new(limits: Rc<HttpLimits>, now_ms: u64) -> Http1Connection {
        let awaited_by_ms = now_ms + limits.head_time.as_millis() as u64;
        Http1Connection {
            limits,
            reading: Http1ReadState::Head(HeadScanner::default()),
            writing: Writing::Nothing,
            keep_alive: false,
            client_closes: false,
            is_http10: false,
            is_head_method: false,
            continue_is_due: false,
            alt_svc: None,
            body_limit: u64::MAX,
            body_bytes: 0,
            awaited: Deadline::Idle,
            awaited_by_ms,
            write_by_ms: u64::MAX,
        }
    }

    /// Has every answer say where else the same is served.
    pub fn set_alt_svc(&mut self, alt_svc: Option<Arc<[u8]>>) {
        self.alt_svc = alt_svc;
    }

    /// What answers said; they say it no more.
    pub fn take_alt_svc(&mut self) -> Option<Arc<[u8]>> {
        self.alt_svc.take()
    }

    /// Reads one step of `input`, which begins with the first byte not used yet. Returns how many
    /// bytes were used and what they gave. A complete head is put into `head`, which must be empty.
    pub fn read(
        &mut self,
        input: &[u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> (usize, Http1Event) {
        match &mut self.reading {
            Http1ReadState::Head(_) => self.read_head(input, head, now_ms),
            Http1ReadState::Length(0) => {
                self.reading = Http1ReadState::Done;
                (0, Http1Event::BodyEnd(Vec::new()))
            }
            // What is announced too large is refused before a byte of it is taken.
            Http1ReadState::Length(left)
                if *left > self.body_limit.saturating_sub(self.body_bytes) =>
            {
                self.refused(BODY_TOO_LARGE)
            }
            Http1ReadState::Length(_) if input.is_empty() => (0, Http1Event::NeedMore),
            Http1ReadState::Length(left) => {
                let here = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= here as u64;
                self.took_body(here, now_ms)
            }
            Http1ReadState::Chunked(decoder) => match decoder.read(input, &self.limits) {
                (used, Decoded::NeedMore) => (used, Http1Event::NeedMore),
                (used, Decoded::Data(len)) => {
                    let (_, event) = self.took_body(len, now_ms);
                    (used, event)
                }
                (used, Decoded::End) => match decoder.trailers() {
                    Ok(trailers) => {
                        self.reading = Http1ReadState::Done;
                        (used, Http1Event::BodyEnd(trailers))
                    }
                    Err(refusal) => self.refused(refusal),
                },
                (_, Decoded::Refused(refusal)) => self.refused(refusal),
            },
            Http1ReadState::Raw if input.is_empty() => (0, Http1Event::NeedMore),
            Http1ReadState::Raw => (input.len(), Http1Event::Data(input.len())),
            Http1ReadState::Done | Http1ReadState::Refused => (0, Http1Event::Busy),
        }
    }

    fn read_head(
        &mut self,
        input: &[u8],
        head: &mut RequestHead,
        now_ms: u64,
    ) -> (usize, Http1Event) {
        let mut used = 0;
        loop {
            let Http1ReadState::Head(scanner) = &mut self.reading else {
                return (used, Http1Event::Busy);
            };
            let rest = &input[used..];
            if scanner.is_fresh()
                && let Some((len, framing)) = quick::read_quickly(rest, head, &self.limits)
            {
                self.begin_request(framing, head);
                return (used + len, Http1Event::Request(framing));
            }
            let Http1ReadState::Head(scanner) = &mut self.reading else {
                return (used, Http1Event::Busy);
            };
            match scanner.scan(rest, &self.limits) {
                Scan::Incomplete => {
                    if !rest.is_empty() && self.awaited != Deadline::Head {
                        self.wait_for(Deadline::Head, now_ms);
                    }
                    return (used, Http1Event::NeedMore);
                }
                //= rfc9112#2.2
                // Empty lines are no request yet: the clock between requests goes on.
                Scan::Blank(len) => used += len,
                Scan::Refused(refusal) => {
                    parse::keep_refused_line(rest, head);
                    return self.refused(refusal);
                }
                Scan::Complete(len) => {
                    return match parse::read_head(&rest[..len], head, &self.limits) {
                        Ok(framing) => {
                            self.begin_request(framing, head);
                            (used + len, Http1Event::Request(framing))
                        }
                        Err(refusal) => self.refused(refusal),
                    };
                }
            }
        }
    }

    fn begin_request(&mut self, framing: Framing, head: &RequestHead) {
        self.keep_alive = framing.keep_alive;
        self.client_closes = !framing.keep_alive;
        self.is_http10 = head.protocol() == Protocol::Http10;
        self.is_head_method = head.method() == b"HEAD";
        self.continue_is_due = framing.expects_continue;
        self.body_bytes = 0;
        self.body_limit = self.limits.body_bytes;
        self.reading = match framing.length {
            Length::Bytes(0) => Http1ReadState::Done,
            Length::Bytes(len) => Http1ReadState::Length(len),
            Length::Chunked => Http1ReadState::Chunked(Box::default()),
        };
        self.awaited = Deadline::None;
    }

    fn took_body(&mut self, len: usize, now_ms: u64) -> (usize, Http1Event) {
        self.body_bytes += len as u64;
        // Whoever sends it does not wait to be asked for it.
        self.continue_is_due = false;
        if self.body_bytes > self.body_limit {
            return self.refused(BODY_TOO_LARGE);
        }
        if self.awaited == Deadline::Body {
            self.wait_for(Deadline::Body, now_ms);
        }
        (len, Http1Event::Data(len))
    }

    fn refused(&mut self, refusal: Refusal) -> (usize, Http1Event) {
        self.give_up_input();
        (0, Http1Event::Refused(refusal))
    }

    /// What the client sends from now on is not read as HTTP; the connection ends after the answer.
    pub fn give_up_input(&mut self) {
        if matches!(self.reading, Http1ReadState::Head(_)) {
            // Nothing is known of this request.
            self.is_head_method = false;
            self.is_http10 = false;
        }
        self.reading = Http1ReadState::Refused;
        self.awaited = Deadline::None;
        self.keep_alive = false;
        self.client_closes = false;
        self.continue_is_due = false;
    }

    /// Sets the largest body of the request being read, in bytes.
    pub fn limit_body(&mut self, bytes: u64) {
        self.body_limit = bytes;
    }

    /// True while a request body has not been read to its end.
    pub fn body_is_open(&self) -> bool {
        matches!(
            self.reading,
            Http1ReadState::Length(_) | Http1ReadState::Chunked(_) | Http1ReadState::Raw
        )
    }

    /// True when the client said that this is its last request (HTTP/1.0, `Connection: close`):
    /// that it sends no more tells nothing new.
    pub fn client_closes(&self) -> bool {
        self.client_closes
    }

    /// True when what is left of a request body is too large to be read and dropped.
    pub fn rest_is_large(&self) -> bool {
        matches!(self.reading, Http1ReadState::Length(left) if left > DISCARD_BYTES_MAX)
    }

    /// Bytes of the body that are to come, where they need not be looked at; in a tunnel, any.
    pub(crate) fn left_unseen(&self) -> Option<u64> {
        match self.reading {
            Http1ReadState::Length(left) => Some(left),
            Http1ReadState::Raw => Some(u64::MAX),
            _ => None,
        }
    }

    /// So many of them went by. What may come was asked with [`Http1Connection::read`].
    pub(crate) fn took_unseen(&mut self, count: usize, now_ms: u64) {
        if let Http1ReadState::Length(left) = &mut self.reading {
            debug_assert!(*left >= count as u64, "no more was taken than is its own");
            *left = left.saturating_sub(count as u64);
            self.took_body(count, now_ms);
        }
    }

    /// True while raw bytes flow in.
    pub fn is_tunnel(&self) -> bool {
        matches!(self.reading, Http1ReadState::Raw)
    }

    /// True between requests, with nothing of the next one read.
    pub fn is_between_requests(&self) -> bool {
        self.awaited == Deadline::Idle
    }

    /// What the client's FIN means now; `unread` bytes are left that were not used.
    pub fn handle_eof(&self, unread: usize) -> Eof {
        match self.reading {
            Http1ReadState::Head(_) if unread == 0 => Eof::Close,
            Http1ReadState::Head(_) => {
                Eof::Refuse(Refusal::bad("the client closed within its request head"))
            }
            Http1ReadState::Length(_) | Http1ReadState::Chunked(_) => Eof::BodyBroken,
            Http1ReadState::Raw => Eof::BodyBroken,
            Http1ReadState::Done | Http1ReadState::Refused => Eof::HalfClosed,
        }
    }

    /// All of the answer has been made: what comes next, once it has left.
    pub fn finish(&mut self) -> AfterAnswer {
        match &self.reading {
            Http1ReadState::Head(_) | Http1ReadState::Done if self.keep_alive => {
                self.next_request();
                AfterAnswer::Request
            }
            //= rfc9112#9.6
            // A client that did not announce its end may be sending: it is heard out.
            Http1ReadState::Head(_) | Http1ReadState::Done if self.client_closes => {
                AfterAnswer::Close
            }
            Http1ReadState::Length(left) if self.keep_alive && *left <= DISCARD_BYTES_MAX => {
                self.body_limit = u64::MAX;
                AfterAnswer::Discard
            }
            Http1ReadState::Chunked(_) if self.keep_alive => {
                self.body_limit = self.body_bytes.saturating_add(DISCARD_BYTES_MAX);
                AfterAnswer::Discard
            }
            _ => {
                self.reading = Http1ReadState::Raw;
                self.awaited = Deadline::None;
                AfterAnswer::Linger
            }
        }
    }

    fn next_request(&mut self) {
        self.reading = Http1ReadState::Head(HeadScanner::default());
        self.writing = Writing::Nothing;
        self.awaited = Deadline::None;
    }

    /// Our side is shut; the rest is read for a while and dropped.
    //= rfc9112#9.6
    pub fn begin_linger(&mut self, now_ms: u64) {
        self.reading = Http1ReadState::Raw;
        self.keep_alive = false;
        self.write_by_ms = u64::MAX;
        self.wait_for(Deadline::Linger, now_ms);
    }

    /// True when only the end of the connection ends the answer.
    pub fn ends_by_close(&self) -> bool {
        self.writing == Writing::UntilClose
    }

    /// Bytes are left that the client did not take: the clock runs from the first time on.
    pub fn wait_for_write(&mut self, now_ms: u64) {
        if self.write_by_ms == u64::MAX {
            self.wrote_some(now_ms);
        }
    }

    /// The client took bytes, and more are left: the clock starts anew.
    pub fn wrote_some(&mut self, now_ms: u64) {
        self.write_by_ms = now_ms + self.limits.write_progress.as_millis() as u64;
    }

    /// The client has everything that was made so far.
    pub fn wrote_all(&mut self, now_ms: u64) {
        self.write_by_ms = u64::MAX;
        if self.awaited == Deadline::None && matches!(self.reading, Http1ReadState::Head(_)) {
            self.wait_for(Deadline::Idle, now_ms);
        }
    }

    /// Bytes are left, but it is not the client who keeps them.
    pub fn wait_for_source(&mut self) {
        self.write_by_ms = u64::MAX;
    }

    /// No more input will come.
    pub fn end_input(&mut self) {
        self.reading = Http1ReadState::Done;
        self.awaited = Deadline::None;
        self.keep_alive = false;
    }

    /// Nobody wants more of the request body now.
    pub fn pause_body(&mut self) {
        if self.awaited == Deadline::Body {
            self.awaited = Deadline::None;
        }
    }

    /// More of the request body is wanted. A tunnel may stay silent as long as it likes.
    pub fn wait_for_body(&mut self, now_ms: u64) {
        if self.awaited != Deadline::Body && !matches!(self.reading, Http1ReadState::Raw) {
            self.wait_for(Deadline::Body, now_ms);
        }
    }

    /// When time will be up, and for what.
    pub fn deadline(&self) -> (u64, Deadline) {
        match self.awaited {
            Deadline::None if self.write_by_ms == u64::MAX => (u64::MAX, Deadline::None),
            Deadline::None => (self.write_by_ms, Deadline::Write),
            _ if self.write_by_ms < self.awaited_by_ms => (self.write_by_ms, Deadline::Write),
            awaited => (self.awaited_by_ms, awaited),
        }
    }

    /// The first bytes must come until then, as if they were the begin of a head.
    pub(crate) fn wait_for_first_bytes(&mut self, by_ms: u64) {
        self.awaited = Deadline::Head;
        self.awaited_by_ms = by_ms;
    }

    fn wait_for(&mut self, awaited: Deadline, now_ms: u64) {
        let limits = &self.limits;
        let time = match awaited {
            Deadline::Idle => limits.idle,
            Deadline::Head => limits.head_time,
            Deadline::Body => limits.body_progress,
            Deadline::Linger => limits.linger,
            Deadline::None | Deadline::Write | Deadline::Handshake => return,
        };
        self.awaited = awaited;
        self.awaited_by_ms = now_ms + time.as_millis() as u64;
    }
}
