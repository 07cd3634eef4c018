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
use crate::fields_coding::MalformedFieldBlock;
use crate::fields_coding::hpack::{Encoder, HpackDecoder, TOO_LARGE};
use crate::h2::budget::{Budgets, Flood};
use crate::h2::data::{ConnectionWindow, DataFramePayload};
use crate::h2::fields::PartialFieldBlock;
use crate::h2::frame::{
    self, HEADER_BYTES, Header, Http2ErrorCode, PAYLOAD_BYTES, PREFACE, WINDOW_BYTES,
};
use crate::h2::schedule::Schedule;
use crate::h2::stream::{Http2StreamState, Http2Streams, Receiving, Writing};
use crate::head::RequestHead;
use crate::limits::{H2_BLOCK_HEADS_MAX, H2_CONNECTION_WINDOW_BYTES, HttpLimits};
use crate::priority::Priority;
use crate::refusal::Refusal;

/// The state of one connection.
#[derive(Debug)]
pub struct Http2Connection {
    /// Of the config that was in force when it was accepted.
    pub(super) limits: Rc<HttpLimits>,
    /// Where in the preface, a frame or a field block the next byte belongs.
    pub(super) stage: Http2ReadState,
    /// Those that are open, and what is known of closed ones.
    pub(super) streams: Http2Streams,
    /// Which stream sends next: by urgency, then in turn.
    pub(super) schedule: Schedule,
    /// The client's table of fields.
    pub(super) decoder: HpackDecoder,
    /// Ours.
    pub(super) encoder: Encoder,
    /// What the client may do how often, for each kind of frame that costs us more than it.
    pub(super) budgets: Budgets,
    /// What we may still send on all streams together.
    pub(super) send_window: i64,
    /// What the client may still send.
    pub(super) receive_window: ConnectionWindow,
    /// The window of a stream the client opens.
    pub(super) peer_window_bytes: i64,
    /// The highest stream the client has opened.
    pub(super) last_stream: u32,
    /// A field block of which more is to come.
    pub(super) block: Option<Box<PartialFieldBlock>>,
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
pub(super) enum Http2ReadState {
    Preface,
    First,
    Frames,
    Data(DataFramePayload),
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
pub enum Http2Event {
    /// Nothing more without more input.
    NeedMore,
    /// A head is complete.
    Request(OpenedStream),
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
    Over(Http2ConnectionError),
}

/// A stream that was opened by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedStream {
    /// The stream.
    pub stream: u32,
    /// Announced size of the body; 0 is no body.
    pub length: Option<u64>,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2ConnectionError {
    /// What the client was told.
    pub code: Http2ErrorCode,
    /// The same in words.
    pub reason: &'static str,
    /// The limit that was reached.
    pub flood: Option<Flood>,
}

impl Http2ConnectionError {
    pub(super) const fn of(code: Http2ErrorCode, reason: &'static str) -> Http2ConnectionError {
        Http2ConnectionError {
            code,
            reason,
            flood: None,
        }
    }

    pub(super) const fn protocol(reason: &'static str) -> Http2ConnectionError {
        Http2ConnectionError::of(Http2ErrorCode::Protocol, reason)
    }

    pub(super) const fn size(reason: &'static str) -> Http2ConnectionError {
        Http2ConnectionError::of(Http2ErrorCode::FrameSize, reason)
    }
}

impl From<Flood> for Http2ConnectionError {
    fn from(flood: Flood) -> Http2ConnectionError {
        Http2ConnectionError {
            code: Http2ErrorCode::Calm,
            reason: flood.reason(),
            flood: Some(flood),
        }
    }
}

impl From<MalformedFieldBlock> for Http2ConnectionError {
    fn from(malformed: MalformedFieldBlock) -> Http2ConnectionError {
        match malformed {
            TOO_LARGE => Flood::Continuation.into(),
            MalformedFieldBlock(reason) => {
                Http2ConnectionError::of(Http2ErrorCode::Compression, reason)
            }
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
    Event(usize, Http2Event),
}

pub(super) type Step = Result<Took, Http2ConnectionError>;
/// What a whole frame gave.
pub(super) type Given = Result<Option<Http2Event>, Http2ConnectionError>;

/// What reading a frame needs besides the connection.
pub(super) struct FrameReadContext<'d> {
    pub(super) head: &'d mut RequestHead,
    pub(super) out: &'d mut Vec<u8>,
    pub(super) now_ms: u64,
}

impl Http2Connection {
    /// A new connection, on which our SETTINGS come first: they are appended to `out`. The clock
    /// for the client's first bytes runs.
    pub fn new(limits: Rc<HttpLimits>, now_ms: u64, out: &mut Vec<u8>) -> Http2Connection {
        let idle_by_ms = now_ms + limits.head_time.as_millis() as u64;
        let block_bytes_max = H2_BLOCK_HEADS_MAX * limits.head_bytes;
        let conn = Http2Connection {
            limits,
            stage: Http2ReadState::Preface,
            streams: Http2Streams::default(),
            schedule: Schedule::default(),
            decoder: HpackDecoder::with_limit(block_bytes_max),
            encoder: Encoder::default(),
            budgets: Budgets::new(now_ms),
            send_window: WINDOW_BYTES,
            receive_window: ConnectionWindow::new(),
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
    ) -> (usize, Http2Event) {
        let mut desk = FrameReadContext { head, out, now_ms };
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let step = match self.stage {
                Http2ReadState::Preface => self.read_preface(rest),
                Http2ReadState::First | Http2ReadState::Frames => self.read_frame(rest, &mut desk),
                Http2ReadState::Data(payload) => self.read_data(payload, rest),
                Http2ReadState::Over => return (input.len(), Http2Event::NeedMore),
            };
            match step {
                Ok(Took::NeedMore) => {
                    self.wait_for_input(!rest.is_empty(), now_ms);
                    return (used, Http2Event::NeedMore);
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
                    return (used, Http2Event::Over(failure));
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
            return Err(Http2ConnectionError::protocol(
                "the connection preface is not HTTP/2's",
            ));
        }
        if len < PREFACE.len() {
            return Ok(Took::NeedMore);
        }
        self.stage = Http2ReadState::First;
        Ok(Took::Bytes(len))
    }

    fn read_frame(&mut self, input: &[u8], desk: &mut FrameReadContext<'_>) -> Step {
        let Some(header) = Header::read(input) else {
            return Ok(Took::NeedMore);
        };
        if self.stage == Http2ReadState::First
            && (header.kind != frame::SETTINGS || header.has(frame::ACK))
        {
            return Err(Http2ConnectionError::protocol(
                "the first frame is not SETTINGS",
            ));
        }
        if header.len > PAYLOAD_BYTES {
            return Err(Http2ConnectionError::size(
                "a frame is longer than was allowed",
            ));
        }
        if self.block.is_some() && header.kind != frame::CONTINUATION {
            return Err(Http2ConnectionError::protocol(
                "a frame stands amid a field block",
            ));
        }
        if header.kind == frame::DATA {
            return self.begin_data(header, input, desk);
        }
        let Some(payload) = input.get(HEADER_BYTES..HEADER_BYTES + header.len) else {
            return Ok(Took::NeedMore);
        };
        if self.stage == Http2ReadState::First {
            self.stage = Http2ReadState::Frames;
            self.idle_by_ms = u64::MAX;
        }
        let used = HEADER_BYTES + header.len;
        Ok(match self.handle_frame(header, payload, desk)? {
            None => Took::Bytes(used),
            Some(event) => Took::Event(used, event),
        })
    }

    fn handle_frame(
        &mut self,
        header: Header,
        payload: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        match header.kind {
            frame::HEADERS => self.handle_headers(header, payload, desk),
            frame::CONTINUATION => self.handle_continuation(header, payload, desk),
            frame::RST_STREAM => self.handle_reset(header, payload, desk.now_ms),
            frame::WINDOW_UPDATE => self.handle_window_update(header, payload, desk),
            frame::SETTINGS => self.handle_settings(header, payload, desk),
            frame::PING => self.handle_ping(header, payload, desk),
            frame::PRIORITY => self.handle_priority(header, payload, desk),
            frame::PRIORITY_UPDATE => self.handle_priority_update(header, payload, desk.now_ms),
            frame::GOAWAY if header.stream != 0 => {
                Err(Http2ConnectionError::protocol("GOAWAY on a stream"))
            }
            frame::GOAWAY if payload.len() < 8 => {
                Err(Http2ConnectionError::size("GOAWAY is too short"))
            }
            // The client will close when it has its answers.
            frame::GOAWAY => Ok(None),
            //= rfc9113#8.4
            frame::PUSH_PROMISE => {
                Err(Http2ConnectionError::protocol("PUSH_PROMISE from a client"))
            }
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
        code: Http2ErrorCode,
        desk: &mut FrameReadContext<'_>,
    ) -> Result<(), Http2ConnectionError> {
        self.budgets.take(Flood::Resets, desk.now_ms)?;
        self.reset(id, code, desk.out);
        Ok(())
    }

    /// Ends a stream at once, both ways. Of one that is closed already the client hears no more.
    //= rfc9113#5.1
    pub fn break_off(&mut self, id: u32, code: Http2ErrorCode, out: &mut Vec<u8>) {
        if !self.streams.forget_closed_tunnel(id) {
            self.reset(id, code, out);
        }
    }

    /// Ends a stream at once, both ways.
    pub(super) fn reset(&mut self, id: u32, code: Http2ErrorCode, out: &mut Vec<u8>) {
        frame::push_reset(id, code, out);
        self.streams.remove(id);
        self.streams.note_reset(id);
    }

    /// The connection cannot go on.
    //= rfc9113#5.4.1
    fn fail(&mut self, failure: Http2ConnectionError, out: &mut Vec<u8>) {
        frame::push_goaway(self.last_stream, failure.code, failure.reason, out);
        self.stage = Http2ReadState::Over;
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
        self.fail(
            Http2ConnectionError::of(Http2ErrorCode::NoError, reason),
            out,
        );
    }

    /// Tells the client to open no more streams: it is time to leave. Those on their way are still
    /// answered.
    //= rfc9113#6.8
    pub fn announce_leaving(&mut self, out: &mut Vec<u8>) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Announced;
            frame::push_goaway(frame::STREAM_MAX, Http2ErrorCode::NoError, "", out);
        }
    }

    /// Says which stream is the last one that will be answered.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.leaving, Leaving::After(_)) {
            self.leaving = Leaving::After(self.last_stream);
            frame::push_goaway(self.last_stream, Http2ErrorCode::NoError, "", out);
        }
    }

    /// True for streams that were opened after the last one we said we would answer.
    pub(super) fn is_beyond(&self, id: u32) -> bool {
        matches!(self.leaving, Leaving::After(last) if id > last)
    }

    /// True when every request has its answer and no field block is half read.
    pub fn is_idle(&self) -> bool {
        let is_reading = matches!(self.stage, Http2ReadState::Frames | Http2ReadState::Data(_));
        is_reading && self.streams.are_answered() && self.block.is_none()
    }

    /// All input was used but for a part of a frame, if there is one: clocks run for what is to
    /// come. Who waits for a body looks after its time.
    fn wait_for_input(&mut self, has_part: bool, now_ms: u64) {
        let is_cut = self.stage == Http2ReadState::Frames && (has_part || self.block.is_some());
        if is_cut && self.head_by_ms == u64::MAX {
            self.head_by_ms = now_ms + self.limits.head_time.as_millis() as u64;
        }
        self.settle(now_ms);
    }

    /// Answers may have ended: then the clock between requests runs, and buffers go.
    pub fn settle(&mut self, now_ms: u64) {
        let is_reading = matches!(self.stage, Http2ReadState::Frames | Http2ReadState::Data(_));
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

    pub(super) fn open_stream(&mut self, stream: Http2StreamState) {
        self.idle_by_ms = u64::MAX;
        self.streams.add(stream);
    }
}
