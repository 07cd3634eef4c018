//! One connection without its socket: frames in, and what they come to.

use crate::fields_coding::hpack::{Encoder, HpackDecoder};
use crate::h2::budget::{Budgets, Flood};
use crate::h2::client::answer::Http2AnswerHead;
use crate::h2::client::stream::{AnswerStage, ClientStream};
use crate::h2::conn::Http2ConnectionError;
use crate::h2::data::{ConnectionWindow, DataFramePayload, DataStep};
use crate::h2::fields::PartialFieldBlock;
use crate::h2::frame::{
    self, HEADER_BYTES, Header, Http2ErrorCode, PAYLOAD_BYTES, PREFACE, WINDOW_BYTES,
};
use crate::head::Fields;
use crate::limits::{H2_BLOCK_HEADS_MAX, H2_CONNECTION_WINDOW_BYTES, H2_STREAMS_MAX};

/// The state of one connection.
#[derive(Debug)]
pub struct Http2Client {
    pub(super) stage: ReadStage,
    /// Those that are open. There are few: they are looked for one by one.
    pub(super) streams: Vec<ClientStream>,
    /// The next one that is opened.
    pub(super) next_stream: u32,
    /// The other side's table of fields, and ours.
    pub(super) decoder: HpackDecoder,
    pub(super) encoder: Encoder,
    /// What the other side may do how often, for what costs us more than it.
    pub(super) budgets: Budgets,
    pub(super) send_window: i64,
    pub(super) receive_window: ConnectionWindow,
    /// The window of a stream that we open.
    pub(super) peer_window_bytes: i64,
    /// Streams that may be open at a time.
    pub(super) streams_max: usize,
    pub(super) allows_connect: bool,
    /// The other side's first SETTINGS have come.
    pub(super) is_greeted: bool,
    pub(super) is_leaving: bool,
    pub(super) block: Option<Box<PartialFieldBlock>>,
    /// Longest head of an answer, in bytes.
    pub(super) head_bytes_max: usize,
}

/// Where in a frame the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadStage {
    Frames,
    Data(DataFramePayload),
    Over,
}

/// What reading gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Http2ClientEvent {
    /// Nothing more without more input.
    NeedMore,
    /// The other side has told what it allows.
    Settings,
    /// More may be sent on this stream; on all of them where it is 0.
    Window(u32),
    /// An interim answer's status and fields.
    Interim(u32, u16, Fields),
    /// The head of an answer.
    Head(u32, Http2AnswerHead),
    /// The last so many bytes used are body of the stream.
    Data(u32, usize),
    /// The answer has ended, with these trailers.
    End(u32, Fields),
    /// There is no answer, or no more of it.
    Broken(u32, Http2StreamFault),
    /// The other side takes no new requests, and has not looked at those above this stream.
    Leaving(u32),
    /// The connection is over; it may be closed once what was written has left.
    Over(Http2ConnectionError),
}

/// Why a stream ended before its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2StreamFault {
    /// Nothing was done: it may be asked for again.
    //= rfc9113#8.7
    Refused,
    /// The other side broke it off, with this code.
    Reset(u32),
    /// What came is no answer; the stream was reset.
    Malformed(&'static str),
}

/// What a step gave: how many bytes were used, and an event.
type Step = Result<Option<(usize, Option<Http2ClientEvent>)>, Http2ConnectionError>;
/// What a whole frame gave.
pub(super) type Given = Result<Option<Http2ClientEvent>, Http2ConnectionError>;

impl Http2Client {
    /// A new connection; what is said first is appended to `out`. Heads of more than so many bytes
    /// are no answers.
    //= rfc9113#3.4
    pub fn new(head_bytes_max: usize, now_ms: u64, out: &mut Vec<u8>) -> Http2Client {
        out.extend_from_slice(PREFACE);
        settings_of_ours(head_bytes_max, out);
        let more = H2_CONNECTION_WINDOW_BYTES - WINDOW_BYTES;
        frame::push_window_update(0, more as u32, out);
        Http2Client {
            stage: ReadStage::Frames,
            streams: Vec::new(),
            next_stream: 1,
            decoder: HpackDecoder::with_limit(H2_BLOCK_HEADS_MAX * head_bytes_max),
            encoder: Encoder::default(),
            budgets: Budgets::new(now_ms),
            send_window: WINDOW_BYTES,
            receive_window: ConnectionWindow::new(),
            peer_window_bytes: WINDOW_BYTES,
            streams_max: H2_STREAMS_MAX,
            allows_connect: false,
            is_greeted: false,
            is_leaving: false,
            block: None,
            head_bytes_max,
        }
    }

    /// The other side has told what it allows.
    pub fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    /// A tunnel may be asked for (RFC 8441).
    pub fn allows_connect(&self) -> bool {
        self.allows_connect
    }

    /// One more stream may be opened now.
    pub fn may_open(&self) -> bool {
        self.is_lasting() && self.streams.len() < self.streams_max
    }

    /// Streams may be opened, now or when others have ended.
    pub fn is_lasting(&self) -> bool {
        !self.is_leaving
            && self.stage != ReadStage::Over
            && self.next_stream <= frame::STREAM_MAX
            && self.streams_max > 0
    }

    /// How many streams are open.
    pub fn open_count(&self) -> usize {
        self.streams.len()
    }

    /// Reads `input`, which begins with the first byte not used yet, up to the next event. Returns
    /// how many bytes were used and what they gave; what goes back at once is appended to `out`.
    pub fn read(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> (usize, Http2ClientEvent) {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let step = match self.stage {
                ReadStage::Frames => self.read_frame(rest, out, now_ms),
                ReadStage::Data(payload) => Ok(self.read_data(payload, rest)),
                ReadStage::Over => return (input.len(), Http2ClientEvent::NeedMore),
            };
            match step {
                Ok(None) => return (used, Http2ClientEvent::NeedMore),
                Ok(Some((count, None))) => used += count,
                Ok(Some((count, Some(event)))) => return (used + count, event),
                Err(failure) => {
                    frame::push_goaway(0, failure.code, failure.reason, out);
                    self.stage = ReadStage::Over;
                    return (used, Http2ClientEvent::Over(failure));
                }
            }
        }
    }

    fn read_frame(&mut self, input: &[u8], out: &mut Vec<u8>, now_ms: u64) -> Step {
        // Who speaks something else is known by its first bytes.
        if !self.is_greeted && input.len() > 3 && input[3] != frame::SETTINGS {
            let reason = "what it sent first is no SETTINGS: it speaks no HTTP/2";
            return Err(Http2ConnectionError::protocol(reason));
        }
        let Some(header) = Header::read(input) else {
            return Ok(None);
        };
        if !self.is_greeted && header.has(frame::ACK) {
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
            return self.begin_data(header, input, out, now_ms);
        }
        let Some(payload) = input.get(HEADER_BYTES..HEADER_BYTES + header.len) else {
            return Ok(None);
        };
        let event = self.handle_frame(header, payload, out, now_ms)?;
        Ok(Some((HEADER_BYTES + header.len, event)))
    }

    fn handle_frame(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Given {
        match header.kind {
            frame::HEADERS => self.handle_headers(header, payload, out),
            frame::CONTINUATION => self.handle_continuation(header, payload, out),
            frame::RST_STREAM => self.handle_reset(header, payload),
            frame::WINDOW_UPDATE => self.handle_window_update(header, payload, out),
            frame::SETTINGS => self.handle_settings(header, payload, out, now_ms),
            frame::PING => {
                self.budgets.take(Flood::Ping, now_ms)?;
                frame::answer_ping(header, payload, out)?;
                Ok(None)
            }
            frame::GOAWAY => self.handle_goaway(header, payload),
            //= rfc9113#8.4
            frame::PUSH_PROMISE => Err(Http2ConnectionError::protocol(
                "PUSH_PROMISE, which was not allowed",
            )),
            //= rfc9113#5.5
            _ => {
                self.budgets.take(Flood::Empty, now_ms)?;
                Ok(None)
            }
        }
    }

    //= rfc9113#6.8
    fn handle_goaway(&mut self, header: Header, payload: &[u8]) -> Given {
        if header.stream != 0 {
            return Err(Http2ConnectionError::protocol("GOAWAY on a stream"));
        }
        if payload.len() < 8 {
            return Err(Http2ConnectionError::size("GOAWAY is too short"));
        }
        self.is_leaving = true;
        let last = frame::number(payload) & frame::STREAM_MAX;
        self.streams.retain(|stream| stream.id <= last);
        Ok(Some(Http2ClientEvent::Leaving(last)))
    }

    //= rfc9113#6.4
    fn handle_reset(&mut self, header: Header, payload: &[u8]) -> Given {
        self.check_opened(header)?;
        if payload.len() != 4 {
            return Err(Http2ConnectionError::size("RST_STREAM has not four bytes"));
        }
        let Some(stream) = self.remove(header.stream) else {
            return Ok(None);
        };
        let code = frame::number(payload);
        let fault = match code {
            _ if code == Http2ErrorCode::Refused as u32 => Http2StreamFault::Refused,
            code => Http2StreamFault::Reset(code),
        };
        // After a whole answer it says that the rest of the request is not wanted.
        let is_due = stream.receiving != AnswerStage::Ended;
        Ok(is_due.then_some(Http2ClientEvent::Broken(stream.id, fault)))
    }

    /// Frames but for those of the connection come on streams that we have opened.
    //= rfc9113#5.1
    pub(super) fn check_opened(&self, header: Header) -> Result<(), Http2ConnectionError> {
        let is_ours = header.stream % 2 == 1 && header.stream < self.next_stream;
        match is_ours {
            true => Ok(()),
            false => Err(Http2ConnectionError::protocol(
                "a frame on a stream that was not opened",
            )),
        }
    }

    /// The header of a DATA frame; the payload is taken as it comes.
    fn begin_data(&mut self, header: Header, input: &[u8], out: &mut Vec<u8>, now_ms: u64) -> Step {
        self.check_opened(header)?;
        let Some((used, payload)) = DataFramePayload::begin(header, input)? else {
            return Ok(None);
        };
        let (data_len, ends) = (payload.left, payload.ends);
        if !ends && data_len == 0 {
            self.budgets.take(Flood::Empty, now_ms)?;
        }
        self.receive_window.receive(header.len, out)?;
        self.stage = ReadStage::Data(payload);
        let fault = self.open_to_data(header, data_len, ends);
        let event = fault.map(|(code, reason)| {
            self.reset(header.stream, code, out);
            Http2ClientEvent::Broken(header.stream, Http2StreamFault::Malformed(reason))
        });
        Ok(Some((used, event)))
    }

    /// Whether a stream takes a DATA frame; if not, why. What comes on one that is over is passed
    /// over.
    fn open_to_data(
        &mut self,
        header: Header,
        data_len: usize,
        ends: bool,
    ) -> Option<(Http2ErrorCode, &'static str)> {
        let stream = self.find(header.stream)?;
        stream.receive_window -= header.len as i64;
        if stream.receive_window < 0 {
            let reason = "DATA beyond the window of its stream";
            return Some((Http2ErrorCode::FlowControl, reason));
        }
        // Padding is nothing anyone will take.
        stream.receive_window += (header.len - data_len) as i64;
        let left = match &mut stream.receiving {
            AnswerStage::Body(left) => left,
            AnswerStage::Head => return Some((Http2ErrorCode::Protocol, "DATA before a head")),
            AnswerStage::Ended => {
                let reason = "DATA after the end of the answer";
                return Some((Http2ErrorCode::StreamClosed, reason));
            }
        };
        //= rfc9113#8.1.1
        if let Some(left) = left {
            let rest = left.checked_sub(data_len as u64);
            if rest.is_none_or(|rest| ends && rest > 0) {
                let reason = "the body has not the size that was announced";
                return Some((Http2ErrorCode::Protocol, reason));
            }
            *left = rest.unwrap_or_default();
        }
        stream.held_bytes += data_len as i64;
        None
    }

    fn read_data(
        &mut self,
        mut payload: DataFramePayload,
        input: &[u8],
    ) -> Option<(usize, Option<Http2ClientEvent>)> {
        let (id, ends) = (payload.stream, payload.ends);
        let is_read = self.find(id).is_some();
        let step = payload.go_on(input.len(), is_read);
        self.stage = ReadStage::Data(payload);
        match step {
            DataStep::NeedMore => None,
            DataStep::Over => {
                self.stage = ReadStage::Frames;
                if !(ends && is_read) {
                    return Some((0, None));
                }
                self.end_answer(id);
                Some((0, Some(Http2ClientEvent::End(id, Fields::new()))))
            }
            DataStep::Bytes(data @ 1.., _) if is_read => {
                Some((data, Some(Http2ClientEvent::Data(id, data))))
            }
            DataStep::Bytes(data, skipped) => Some((data + skipped, None)),
        }
    }

    pub(super) fn find(&mut self, id: u32) -> Option<&mut ClientStream> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<ClientStream> {
        let at = self.streams.iter().position(|stream| stream.id == id)?;
        Some(self.streams.swap_remove(at))
    }

    /// The answer on this stream is complete.
    pub(super) fn end_answer(&mut self, id: u32) {
        if let Some(stream) = self.find(id) {
            stream.receiving = AnswerStage::Ended;
            if stream.is_sent {
                self.remove(id);
            }
        }
    }

    /// Ends a stream at once, both ways.
    pub(super) fn reset(&mut self, id: u32, code: Http2ErrorCode, out: &mut Vec<u8>) {
        if self.remove(id).is_some() {
            frame::push_reset(id, code, out);
        }
    }
}

/// Our settings; what they do not name has the protocol's default.
//= rfc9113#6.5.2
fn settings_of_ours(head_bytes_max: usize, out: &mut Vec<u8>) {
    use crate::h2::settings::{ENABLE_PUSH, MAX_HEADER_LIST_SIZE};
    frame::push_header(12, frame::SETTINGS, 0, 0, out);
    frame::push_setting(ENABLE_PUSH, 0, out);
    let head_bytes = u32::try_from(head_bytes_max).unwrap_or(u32::MAX);
    frame::push_setting(MAX_HEADER_LIST_SIZE, head_bytes, out);
}
