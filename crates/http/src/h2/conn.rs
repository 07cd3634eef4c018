//! One HTTP/2 connection without its socket: frames in, and what they come to.
//!
//! ```text
//! reading:  Preface --> First (SETTINGS) --> Frames <--> Data: a payload as it comes
//!              `--> Over: GOAWAY was written, nothing more is read
//! a stream: HEADERS --> body? --> ended       the request
//!           nothing --> body? --> ended       the answer; both ended, or reset: it is gone
//! ```
//!
//! Frames but for DATA are read when all of them is there. What goes back at once
//! (acknowledgements, windows, resets) is written by the reading itself, between whole frames.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::deadline::Deadline;
use crate::fields_coding::Malformed;
use crate::fields_coding::hpack::{Decoder, Encoder, TOO_LARGE};
use crate::h2::budget::{Budgets, Flood};
use crate::h2::data::Payload;
use crate::h2::fields::Block;
use crate::h2::frame::{self, Code, HEADER_BYTES, Header, PAYLOAD_BYTES, PREFACE, WINDOW_BYTES};
use crate::h2::schedule::Schedule;
use crate::h2::stream::{Receiving, Stream, Streams, Writing};
use crate::head::RequestHead;
use crate::limits::{H2_BLOCK_HEADS_MAX, H2_CONNECTION_WINDOW_BYTES, Limits};
use crate::priority::Priority;
use crate::refusal::Refusal;

/// The state of one connection.
#[derive(Debug)]
pub struct Conn {
    pub(super) limits: Rc<Limits>,
    pub(super) stage: Stage,
    pub(super) streams: Streams,
    pub(super) schedule: Schedule,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) budgets: Budgets,
    /// What we may still send on all streams together.
    pub(super) send_window: i64,
    /// What the client may still send.
    pub(super) receive_window: i64,
    /// The window of a stream the client opens.
    pub(super) peer_window_bytes: i64,
    /// The highest stream the client has opened.
    pub(super) last_stream: u32,
    /// A field block of which more is to come.
    pub(super) block: Option<Box<Block>>,
    /// What the client said of streams before it opened them.
    pub(super) early_priorities: Vec<(u32, Priority)>,
    /// Where else the same is served (RFC 7838): every answer says so.
    pub(super) alt_svc: Option<Arc<[u8]>>,
    leaving: Leaving,
    /// Until when the rest of a frame or field block must come.
    head_by_ms: u64,
    /// Until when another request must come, the first frame on a new connection.
    idle_by_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Preface,
    First,
    Frames,
    Data(Payload),
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// The client was told to open no more streams; those it has opened by now are answered.
    Announced,
    /// Streams above this one are passed over.
    After(u32),
}

/// What reading gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing more without more input.
    NeedMore,
    /// A head is complete.
    Request(Opened),
    /// A request is refused: it is to be answered so.
    Refused(u32, Refusal),
    /// A head was no request; its stream was reset.
    Malformed(&'static str),
    /// As many streams are open as may be; the one that came was reset, and may come again.
    TooMany,
    /// The last so many bytes used are body of the stream.
    Data(u32, usize),
    /// The request's body has ended, with these trailers.
    BodyEnd(u32, Vec<(Bytes, Bytes)>),
    /// The client has taken its request back.
    Left(u32),
    /// The request turned out malformed; its stream was reset.
    Broken(u32, &'static str),
    /// The connection is over; it may be closed once what was written has left.
    Over(Failure),
}

/// A stream that was opened by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The stream.
    pub stream: u32,
    /// Announced size of the body; 0 is no body.
    pub length: Option<u64>,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the client was told.
    pub code: Code,
    /// The same in words.
    pub reason: &'static str,
    /// The limit that was reached.
    pub flood: Option<Flood>,
}

impl Failure {
    pub(super) const fn of(code: Code, reason: &'static str) -> Failure {
        Failure {
            code,
            reason,
            flood: None,
        }
    }

    pub(super) const fn protocol(reason: &'static str) -> Failure {
        Failure::of(Code::Protocol, reason)
    }

    pub(super) const fn size(reason: &'static str) -> Failure {
        Failure::of(Code::FrameSize, reason)
    }
}

impl From<Flood> for Failure {
    fn from(flood: Flood) -> Failure {
        Failure {
            code: Code::Calm,
            reason: flood.reason(),
            flood: Some(flood),
        }
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Failure {
        match malformed {
            TOO_LARGE => Flood::Continuation.into(),
            Malformed(reason) => Failure::of(Code::Compression, reason),
        }
    }
}

/// One step of reading.
pub(super) enum Took {
    /// Nothing: more has to come.
    NeedMore,
    /// So many bytes, none if only the stage has changed.
    Bytes(usize),
    /// So many bytes, and they gave something.
    Event(usize, Event),
}

pub(super) type Step = Result<Took, Failure>;
/// What a whole frame gave.
pub(super) type Given = Result<Option<Event>, Failure>;

/// What reading a frame needs besides the connection.
pub(super) struct Desk<'d> {
    pub(super) head: &'d mut RequestHead,
    pub(super) out: &'d mut Vec<u8>,
    pub(super) now_ms: u64,
}

impl Conn {
    /// A new connection, on which our SETTINGS come first: they are appended to `out`. The clock
    /// for the client's first bytes runs.
    pub fn new(limits: Rc<Limits>, now_ms: u64, out: &mut Vec<u8>) -> Conn {
        let idle_by_ms = now_ms + limits.head_time.as_millis() as u64;
        let block_bytes_max = H2_BLOCK_HEADS_MAX * limits.head_bytes;
        let conn = Conn {
            limits,
            stage: Stage::Preface,
            streams: Streams::default(),
            schedule: Schedule::default(),
            decoder: Decoder::with_limit(block_bytes_max),
            encoder: Encoder::default(),
            budgets: Budgets::new(now_ms),
            send_window: WINDOW_BYTES,
            receive_window: H2_CONNECTION_WINDOW_BYTES,
            peer_window_bytes: WINDOW_BYTES,
            last_stream: 0,
            block: None,
            early_priorities: Vec::new(),
            alt_svc: None,
            leaving: Leaving::No,
            head_by_ms: u64::MAX,
            idle_by_ms,
        };
        conn.push_settings(out);
        let more = H2_CONNECTION_WINDOW_BYTES - WINDOW_BYTES;
        frame::push_window_update(0, more as u32, out);
        conn
    }

    /// Has every answer say where else the same is served.
    pub fn set_alt_svc(&mut self, alt_svc: Option<Arc<[u8]>>) {
        self.alt_svc = alt_svc;
    }

    /// Reads `input`, which begins with the first byte not used yet, up to the next event. Returns
    /// how many bytes were used and what they gave. A complete head is put into `head`, which must
    /// be empty; what goes back at once is appended to `out`.
    pub fn read(
        &mut self,
        input: &[u8],
        head: &mut RequestHead,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> (usize, Event) {
        let mut desk = Desk { head, out, now_ms };
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let step = match self.stage {
                Stage::Preface => self.read_preface(rest),
                Stage::First | Stage::Frames => self.read_frame(rest, &mut desk),
                Stage::Data(payload) => self.read_data(payload, rest),
                Stage::Over => return (input.len(), Event::NeedMore),
            };
            match step {
                Ok(Took::NeedMore) => {
                    self.wait_for_input(!rest.is_empty(), now_ms);
                    return (used, Event::NeedMore);
                }
                Ok(Took::Bytes(count)) => {
                    used += count;
                    self.note_frame();
                }
                Ok(Took::Event(count, event)) => {
                    self.note_frame();
                    return (used + count, event);
                }
                Err(failure) => {
                    self.fail(failure, desk.out);
                    return (used, Event::Over(failure));
                }
            }
        }
    }

    /// A frame has come whole: the clock for it stops, unless its field block goes on.
    fn note_frame(&mut self) {
        if self.block.is_none() {
            self.head_by_ms = u64::MAX;
        }
    }

    //= rfc9113#3.4
    fn read_preface(&mut self, input: &[u8]) -> Step {
        let len = input.len().min(PREFACE.len());
        if input[..len] != PREFACE[..len] {
            return Err(Failure::protocol("the connection preface is not HTTP/2's"));
        }
        if len < PREFACE.len() {
            return Ok(Took::NeedMore);
        }
        self.stage = Stage::First;
        Ok(Took::Bytes(len))
    }

    fn read_frame(&mut self, input: &[u8], desk: &mut Desk<'_>) -> Step {
        let Some(header) = Header::read(input) else {
            return Ok(Took::NeedMore);
        };
        if self.stage == Stage::First && (header.kind != frame::SETTINGS || header.has(frame::ACK))
        {
            return Err(Failure::protocol("the first frame is not SETTINGS"));
        }
        if header.len > PAYLOAD_BYTES {
            return Err(Failure::size("a frame is longer than was allowed"));
        }
        if self.block.is_some() && header.kind != frame::CONTINUATION {
            return Err(Failure::protocol("a frame stands amid a field block"));
        }
        if header.kind == frame::DATA {
            return self.begin_data(header, input, desk);
        }
        let Some(payload) = input.get(HEADER_BYTES..HEADER_BYTES + header.len) else {
            return Ok(Took::NeedMore);
        };
        if self.stage == Stage::First {
            self.stage = Stage::Frames;
            self.idle_by_ms = u64::MAX;
        }
        let used = HEADER_BYTES + header.len;
        Ok(match self.handle_frame(header, payload, desk)? {
            None => Took::Bytes(used),
            Some(event) => Took::Event(used, event),
        })
    }

    fn handle_frame(&mut self, header: Header, payload: &[u8], desk: &mut Desk<'_>) -> Given {
        match header.kind {
            frame::HEADERS => self.handle_headers(header, payload, desk),
            frame::CONTINUATION => self.handle_continuation(header, payload, desk),
            frame::RST_STREAM => self.handle_reset(header, payload, desk.now_ms),
            frame::WINDOW_UPDATE => self.handle_window_update(header, payload, desk),
            frame::SETTINGS => self.handle_settings(header, payload, desk),
            frame::PING => self.handle_ping(header, payload, desk),
            frame::PRIORITY => self.handle_priority(header, payload, desk),
            frame::PRIORITY_UPDATE => self.handle_priority_update(header, payload, desk.now_ms),
            frame::GOAWAY if header.stream != 0 => Err(Failure::protocol("GOAWAY on a stream")),
            frame::GOAWAY if payload.len() < 8 => Err(Failure::size("GOAWAY is too short")),
            // The client will close when it has its answers.
            frame::GOAWAY => Ok(None),
            //= rfc9113#8.4
            frame::PUSH_PROMISE => Err(Failure::protocol("PUSH_PROMISE from a client")),
            //= rfc9113#5.5
            _ => {
                self.budgets.take(Flood::Empty, desk.now_ms)?;
                Ok(None)
            }
        }
    }

    /// The request on this stream is complete.
    pub(super) fn end_request(&mut self, id: u32) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        stream.receiving = Receiving::Ended;
        stream.continue_is_due = false;
        if stream.sending == Writing::Ended {
            self.streams.close(id);
        }
    }

    /// The client broke the rules of one stream.
    pub(super) fn reset_by_fault(
        &mut self,
        id: u32,
        code: Code,
        desk: &mut Desk<'_>,
    ) -> Result<(), Failure> {
        self.budgets.take(Flood::Resets, desk.now_ms)?;
        self.reset(id, code, desk.out);
        Ok(())
    }

    /// Ends a stream at once, both ways. Of one that is closed already the client hears no more.
    //= rfc9113#5.1
    pub fn break_off(&mut self, id: u32, code: Code, out: &mut Vec<u8>) {
        if !self.streams.forget_closed_tunnel(id) {
            self.reset(id, code, out);
        }
    }

    /// Ends a stream at once, both ways.
    pub(super) fn reset(&mut self, id: u32, code: Code, out: &mut Vec<u8>) {
        frame::push_reset(id, code, out);
        self.streams.remove(id);
        self.streams.note_reset(id);
    }

    /// The connection cannot go on.
    //= rfc9113#5.4.1
    fn fail(&mut self, failure: Failure, out: &mut Vec<u8>) {
        frame::push_goaway(self.last_stream, failure.code, failure.reason, out);
        self.stage = Stage::Over;
        self.block = None;
    }

    /// Nobody reads the rest of this request: what still comes is dropped, and the client told to
    /// keep it once it has its answer.
    pub fn ignore_body(&mut self, id: u32) {
        if let Some(stream) = self.streams.find(id)
            && let Receiving::Body(left) = stream.receiving
        {
            stream.receiving = Receiving::Unread(left);
        }
    }

    /// Time is up: the connection ends with these words.
    pub fn give_up(&mut self, reason: &'static str, out: &mut Vec<u8>) {
        self.fail(Failure::of(Code::NoError, reason), out);
    }

    /// Tells the client to open no more streams: it is time to leave. Those on their way are still
    /// answered.
    //= rfc9113#6.8
    pub fn announce_leaving(&mut self, out: &mut Vec<u8>) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Announced;
            frame::push_goaway(frame::STREAM_MAX, Code::NoError, "", out);
        }
    }

    /// Says which stream is the last one that will be answered.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.leaving, Leaving::After(_)) {
            self.leaving = Leaving::After(self.last_stream);
            frame::push_goaway(self.last_stream, Code::NoError, "", out);
        }
    }

    /// True for streams that were opened after the last one we said we would answer.
    pub(super) fn is_beyond(&self, id: u32) -> bool {
        matches!(self.leaving, Leaving::After(last) if id > last)
    }

    /// True when every request has its answer and no field block is half read.
    pub fn is_idle(&self) -> bool {
        let is_reading = matches!(self.stage, Stage::Frames | Stage::Data(_));
        is_reading && self.streams.are_answered() && self.block.is_none()
    }

    /// All input was used but for a part of a frame, if there is one: clocks run for what is to
    /// come. Who waits for a body looks after its time.
    fn wait_for_input(&mut self, has_part: bool, now_ms: u64) {
        let is_cut = self.stage == Stage::Frames && (has_part || self.block.is_some());
        if is_cut && self.head_by_ms == u64::MAX {
            self.head_by_ms = now_ms + self.limits.head_time.as_millis() as u64;
        }
        self.settle(now_ms);
    }

    /// Answers may have ended: then the clock between requests runs, and buffers go.
    pub fn settle(&mut self, now_ms: u64) {
        let is_reading = matches!(self.stage, Stage::Frames | Stage::Data(_));
        if is_reading && self.streams.are_answered() {
            self.streams.release();
            if self.idle_by_ms == u64::MAX {
                self.idle_by_ms = now_ms + self.limits.idle.as_millis() as u64;
            }
        }
    }

    /// When time will be up, and for what: the rest of a frame, or another request.
    pub fn deadline(&self) -> (u64, Deadline) {
        match self.head_by_ms.min(self.idle_by_ms) {
            u64::MAX => (u64::MAX, Deadline::None),
            by_ms if by_ms == self.head_by_ms => (by_ms, Deadline::Head),
            by_ms => (by_ms, Deadline::Idle),
        }
    }

    pub(super) fn open_stream(&mut self, stream: Stream) {
        self.idle_by_ms = u64::MAX;
        self.streams.add(stream);
    }
}
