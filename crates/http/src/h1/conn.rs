//! One HTTP/1 connection without its socket: what is read next, how an answer is framed, when time is up.
//!
//! ```text
//! reading:  Head --> Body --> Done          (Discard: nobody wants the rest of a body)
//! writing:  Nothing --> Head sent --> Body --> Done
//! both Done: the next request, or linger, or close
//! ```
//!
//! Time is milliseconds on any monotonic clock, given by the caller.

use std::rc::Rc;

use bytes::Bytes;
use hob_trace::Protocol;

use crate::date::DateLine;
use crate::h1::chunked::{Decoded, Decoder};
use crate::h1::parse::{self, Framing, Length, Refusal, Scan, Scanner};
use crate::head::{Fields, RequestHead};
use crate::limits::{DISCARD_BYTES_MAX, Limits};
use crate::response::{self, ResponseHead};
use crate::status;

/// The state of one connection.
#[derive(Debug)]
pub struct Conn {
    limits: Rc<Limits>,
    reading: Reading,
    writing: Writing,
    keep_alive: bool,
    is_http10: bool,
    is_head_method: bool,
    continue_is_due: bool,
    body_limit: u64,
    body_bytes: u64,
    deadline_ms: u64,
    deadline_is: Deadline,
}

#[derive(Debug)]
enum Reading {
    Head(Scanner),
    Length(u64),
    Chunked(Box<Decoder>),
    Raw,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Nothing,
    Length(u64),
    Chunked,
    UntilClose,
    NoBody,
    Done,
}

/// Which clock is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// None.
    None,
    /// A new connection's first byte, or the time between requests.
    Idle,
    /// The rest of a head.
    Head,
    /// The next piece of a request body.
    Body,
    /// The client taking bytes.
    Write,
    /// Closing with unread input.
    Linger,
}

/// What reading gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
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

/// How the body of an answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// No body follows.
    Nothing,
    /// So many bytes follow.
    Length(u64),
    /// Chunks follow.
    Chunked,
    /// Bytes follow until the connection closes.
    UntilClose,
    /// Raw bytes both ways.
    Tunnel,
}

/// What comes after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next request may be read.
    Request,
    /// The rest of the request body is read and dropped first.
    Discard,
    /// Our side is shut; input is read and dropped for a while.
    Linger,
    /// Close now.
    Close,
}

impl Conn {
    /// A new connection. The clock for its first byte runs.
    pub fn new(limits: Rc<Limits>, now_ms: u64) -> Conn {
        let deadline_ms = now_ms + limits.head_time.as_millis() as u64;
        Conn {
            limits,
            reading: Reading::Head(Scanner::default()),
            writing: Writing::Nothing,
            keep_alive: false,
            is_http10: false,
            is_head_method: false,
            continue_is_due: false,
            body_limit: u64::MAX,
            body_bytes: 0,
            deadline_ms,
            deadline_is: Deadline::Idle,
        }
    }

    /// Reads one step of `input`, which begins with the first byte not used yet. Returns how many bytes
    /// were used and what they gave. A complete head is put into `head`, which must be empty.
    pub fn read(&mut self, input: &[u8], head: &mut RequestHead, now_ms: u64) -> (usize, Event) {
        match &mut self.reading {
            Reading::Head(_) => self.read_head(input, head, now_ms),
            Reading::Length(left) => {
                let here = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(input.len());
                if *left == 0 {
                    self.reading = Reading::Done;
                    return (0, Event::BodyEnd(Vec::new()));
                }
                if here == 0 {
                    return (0, Event::NeedMore);
                }
                *left -= here as u64;
                self.took_body(here, now_ms)
            }
            Reading::Chunked(decoder) => match decoder.read(input, &self.limits) {
                (used, Decoded::NeedMore) => (used, Event::NeedMore),
                (used, Decoded::Data(len)) => {
                    let (_, event) = self.took_body(len, now_ms);
                    (used, event)
                }
                (used, Decoded::End) => match decoder.trailers() {
                    Ok(trailers) => {
                        self.reading = Reading::Done;
                        (used, Event::BodyEnd(trailers))
                    }
                    Err(refusal) => self.refused(refusal),
                },
                (_, Decoded::Refused(refusal)) => self.refused(refusal),
            },
            Reading::Raw if input.is_empty() => (0, Event::NeedMore),
            Reading::Raw => (input.len(), Event::Data(input.len())),
            Reading::Done => (0, Event::Busy),
        }
    }

    fn read_head(&mut self, input: &[u8], head: &mut RequestHead, now_ms: u64) -> (usize, Event) {
        let Reading::Head(scanner) = &mut self.reading else {
            return (0, Event::Busy);
        };
        match scanner.scan(input, &self.limits) {
            Scan::Incomplete => {
                if !input.is_empty() && self.deadline_is != Deadline::Head {
                    self.set_deadline(Deadline::Head, now_ms);
                }
                (0, Event::NeedMore)
            }
            Scan::Blank(len) => {
                if self.deadline_is != Deadline::Head {
                    self.set_deadline(Deadline::Head, now_ms);
                }
                let (used, event) = self.read_head(&input[len..], head, now_ms);
                (len + used, event)
            }
            Scan::Refused(refusal) => {
                parse::keep_refused_line(input, head);
                self.refused(refusal)
            }
            Scan::Complete(len) => match parse::read_head(&input[..len], head, &self.limits) {
                Ok(framing) => {
                    self.begin_request(framing, head, now_ms);
                    (len, Event::Request(framing))
                }
                Err(refusal) => self.refused(refusal),
            },
        }
    }

    fn begin_request(&mut self, framing: Framing, head: &RequestHead, now_ms: u64) {
        self.keep_alive = framing.keep_alive;
        self.is_http10 = head.protocol() == Protocol::Http10;
        self.is_head_method = head.method() == b"HEAD";
        self.continue_is_due = framing.expects_continue;
        self.body_bytes = 0;
        self.body_limit = self.limits.body_bytes;
        self.reading = match framing.length {
            Length::Bytes(0) => Reading::Done,
            Length::Bytes(len) => Reading::Length(len),
            Length::Chunked => Reading::Chunked(Box::default()),
        };
        if matches!(self.reading, Reading::Done) {
            self.deadline_is = Deadline::None;
        } else {
            self.set_deadline(Deadline::Body, now_ms);
        }
    }

    fn took_body(&mut self, len: usize, now_ms: u64) -> (usize, Event) {
        self.body_bytes += len as u64;
        if self.body_bytes > self.body_limit {
            let reason = "limits.body: the request body is too large";
            return self.refused(Refusal {
                status: 413,
                reason,
            });
        }
        if self.deadline_is == Deadline::Body {
            self.set_deadline(Deadline::Body, now_ms);
        }
        (len, Event::Data(len))
    }

    fn refused(&mut self, refusal: Refusal) -> (usize, Event) {
        self.reading = Reading::Done;
        self.keep_alive = false;
        (0, Event::Refused(refusal))
    }

    /// Sets the largest body of the request being read, in bytes.
    pub fn limit_body(&mut self, bytes: u64) {
        self.body_limit = bytes;
    }

    /// True while a request body has not been read to its end.
    pub fn body_is_open(&self) -> bool {
        matches!(
            self.reading,
            Reading::Length(_) | Reading::Chunked(_) | Reading::Raw
        )
    }

    /// True between requests, with nothing of the next one read.
    pub fn is_between_requests(&self) -> bool {
        self.deadline_is == Deadline::Idle
    }

    /// What the client's FIN means now; `unread` bytes are left that were not used.
    pub fn handle_eof(&self, unread: usize) -> Eof {
        match self.reading {
            Reading::Head(_) if unread == 0 => Eof::Close,
            Reading::Head(_) => {
                Eof::Refuse(Refusal::bad("the client closed within its request head"))
            }
            Reading::Length(_) | Reading::Chunked(_) => Eof::BodyBroken,
            Reading::Raw => Eof::BodyBroken,
            Reading::Done => Eof::HalfClosed,
        }
    }

    /// Appends `100 Continue` when the client waits for it and nothing was sent yet.
    //= rfc9110#10.1.1
    pub fn continue_now(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.continue_is_due) && self.body_bytes == 0 {
            out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// Appends an interim answer; HTTP/1.0 clients do not know them.
    pub fn push_interim(&mut self, status: u16, fields: &Fields, out: &mut Vec<u8>) {
        if self.is_http10 || self.writing != Writing::Nothing {
            return;
        }
        if status == 100 {
            self.continue_is_due = false;
        }
        response::push_status_line(status, out);
        out.extend_from_slice(fields.lines());
        out.extend_from_slice(b"\r\n");
    }

    /// Appends the head of the answer and decides how its body leaves. `body_len` is the body's size
    /// when known; `close` ends the connection after it.
    //= rfc9112#6
    pub fn push_head(
        &mut self,
        head: &ResponseHead,
        body_len: Option<u64>,
        close: bool,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) -> Sending {
        let status = match head {
            ResponseHead::Prepared(prepared) => {
                out.extend_from_slice(prepared.lines());
                prepared.status()
            }
            ResponseHead::Fields(status, fields) => {
                response::push_status_line(*status, out);
                out.extend_from_slice(fields.lines());
                if let (Some(len), false) = (body_len, status::is_bodiless(*status)) {
                    response::push_content_length(len, out);
                }
                *status
            }
        };
        // The client may send its body or not after this: the connection cannot be read on.
        if close || self.continue_is_due {
            self.keep_alive = false;
        }
        self.writing = match body_len {
            _ if self.is_head_method || status::is_bodiless(status) => Writing::NoBody,
            Some(0) => Writing::NoBody,
            Some(len) => Writing::Length(len),
            None if self.is_http10 => Writing::UntilClose,
            None => Writing::Chunked,
        };
        match self.writing {
            Writing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Writing::UntilClose => self.keep_alive = false,
            _ => {}
        }
        if !self.keep_alive {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if self.is_http10 {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        out.extend_from_slice(date.ending_head());
        match self.writing {
            Writing::Length(len) => Sending::Length(len),
            Writing::Chunked => Sending::Chunked,
            Writing::UntilClose => Sending::UntilClose,
            Writing::NoBody | Writing::Nothing | Writing::Done => Sending::Nothing,
        }
    }

    /// Appends the head of an answer after which the connection carries raw bytes both ways.
    //= rfc9110#7.8
    pub fn push_tunnel_head(
        &mut self,
        status: u16,
        fields: &Fields,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) -> Sending {
        response::push_status_line(status, out);
        out.extend_from_slice(fields.lines());
        if status == 101 {
            out.extend_from_slice(b"Connection: upgrade\r\n");
        }
        out.extend_from_slice(date.ending_head());
        self.keep_alive = false;
        self.continue_is_due = false;
        self.reading = Reading::Raw;
        self.writing = Writing::UntilClose;
        self.deadline_is = Deadline::None;
        Sending::Tunnel
    }

    /// Counts `len` body bytes about to be sent and appends what goes before them. `None` when that is
    /// more than was announced.
    pub fn push_data_prefix(&mut self, len: u64, out: &mut Vec<u8>) -> Option<()> {
        match &mut self.writing {
            Writing::Length(left) => *left = left.checked_sub(len)?,
            Writing::Chunked => {
                out.extend_from_slice(format!("{len:x}\r\n").as_bytes());
            }
            Writing::UntilClose => {}
            Writing::NoBody | Writing::Nothing | Writing::Done => return None,
        }
        Some(())
    }

    /// Appends what goes after a piece of body.
    pub fn push_data_suffix(&self, out: &mut Vec<u8>) {
        if self.writing == Writing::Chunked {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Ends the answer's body. Returns false when bytes are missing: the connection must break.
    //= rfc9112#7.1.2
    pub fn push_end(&mut self, trailers: Option<&Fields>, out: &mut Vec<u8>) -> bool {
        let is_whole = match self.writing {
            Writing::Length(left) => left == 0,
            Writing::Chunked => {
                out.extend_from_slice(b"0\r\n");
                out.extend_from_slice(trailers.map_or(&[][..], Fields::lines));
                out.extend_from_slice(b"\r\n");
                true
            }
            _ => true,
        };
        self.writing = Writing::Done;
        is_whole
    }

    /// The answer has left entirely: what comes next.
    pub fn finish(&mut self, now_ms: u64) -> Next {
        let rest = match &self.reading {
            Reading::Head(_) | Reading::Done => Some(0),
            Reading::Length(left) => Some(*left),
            Reading::Chunked(_) => None,
            Reading::Raw => return Next::Close,
        };
        if rest == Some(0) && self.keep_alive {
            self.next_request(now_ms);
            return Next::Request;
        }
        if rest == Some(0) {
            return Next::Close;
        }
        let is_small = rest.is_none_or(|rest| rest <= DISCARD_BYTES_MAX);
        if self.keep_alive && is_small {
            self.body_limit = self.body_bytes + DISCARD_BYTES_MAX;
            return Next::Discard;
        }
        self.begin_linger(now_ms);
        Next::Linger
    }

    /// Our side is shut; the rest is read for a while and dropped.
    //= rfc9112#9.6
    pub fn begin_linger(&mut self, now_ms: u64) {
        self.reading = Reading::Raw;
        self.keep_alive = false;
        self.set_deadline(Deadline::Linger, now_ms);
    }

    fn next_request(&mut self, now_ms: u64) {
        self.reading = Reading::Head(Scanner::default());
        self.writing = Writing::Nothing;
        self.set_deadline(Deadline::Idle, now_ms);
    }

    /// True when the connection ends after this answer.
    pub fn is_last(&self) -> bool {
        !self.keep_alive
    }

    /// True once the head of the final answer has been made.
    pub fn has_answered(&self) -> bool {
        self.writing != Writing::Nothing
    }

    /// The client took bytes (or is asked to): the clock for taking the next ones runs.
    pub fn wait_for_write(&mut self, now_ms: u64) {
        self.set_deadline(Deadline::Write, now_ms);
    }

    /// The client has everything that was made so far.
    pub fn wrote_all(&mut self, now_ms: u64) {
        if self.deadline_is == Deadline::Write {
            match self.reading {
                Reading::Head(_) => self.set_deadline(Deadline::Idle, now_ms),
                _ => self.deadline_is = Deadline::None,
            }
        }
    }

    /// No more input will come.
    pub fn end_input(&mut self) {
        self.reading = Reading::Done;
    }

    /// Nothing is expected of the client now.
    pub fn wait_for_nothing(&mut self) {
        self.deadline_is = Deadline::None;
    }

    /// More of the request body is expected from the client.
    pub fn wait_for_body(&mut self, now_ms: u64) {
        if self.deadline_is != Deadline::Body {
            self.set_deadline(Deadline::Body, now_ms);
        }
    }

    /// When time will be up, and for what.
    pub fn deadline(&self) -> (u64, Deadline) {
        match self.deadline_is {
            Deadline::None => (u64::MAX, Deadline::None),
            is => (self.deadline_ms, is),
        }
    }

    fn set_deadline(&mut self, is: Deadline, now_ms: u64) {
        let limits = &self.limits;
        let time = match is {
            Deadline::None => return,
            Deadline::Idle => limits.idle,
            Deadline::Head => limits.head_time,
            Deadline::Body => limits.body_progress,
            Deadline::Write => limits.write_progress,
            Deadline::Linger => limits.linger,
        };
        self.deadline_is = is;
        self.deadline_ms = now_ms + time.as_millis() as u64;
    }
}
