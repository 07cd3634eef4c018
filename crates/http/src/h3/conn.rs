//! A connection beside its requests (RFC 9114 section 6.2): control streams, settings, priorities,
//! and how it is left.

use std::rc::Rc;

use crate::h3::frame::{self, HeaderReader, Http3ErrorCode, take_integer};
use crate::limits::{self, HttpLimits};
use crate::priority::Priority;
use crate::rate::{Bucket, BucketRate};

/// Why a connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http3ConnectionError {
    /// What the other side is told.
    pub code: Http3ErrorCode,
    /// In words.
    pub reason: &'static str,
    /// The limit that was reached, if it is one.
    pub flood: Option<Flood>,
}

impl Http3ConnectionError {
    /// The other side has broken the protocol.
    pub fn new(code: Http3ErrorCode, reason: &'static str) -> Http3ConnectionError {
        Http3ConnectionError {
            code,
            reason,
            flood: None,
        }
    }
}

impl From<Flood> for Http3ConnectionError {
    fn from(flood: Flood) -> Http3ConnectionError {
        Http3ConnectionError {
            code: Http3ErrorCode::ExcessiveLoad,
            reason: flood.reason(),
            flood: Some(flood),
        }
    }
}

/// What a client did too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Requests taken back, or sent so that they had to be reset.
    Resets,
    /// DATA with little in it.
    TinyData,
    /// Frames that do nothing.
    Empty,
}

impl Flood {
    /// What the log and the client are told.
    pub fn reason(self) -> &'static str {
        match self {
            Flood::Resets => "h3_resets: too many requests were taken back or had to be reset",
            Flood::TinyData => "h3_tiny_data: too many DATA frames with little in them",
            Flood::Empty => "h3_empty: too many frames that do nothing",
        }
    }
}

/// What a connection has seen of its control streams, and how much it allows still.
#[derive(Debug)]
pub struct Http3Connection {
    limits: Rc<HttpLimits>,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
    has_settings: bool,
    max_push_id: Option<u64>,
    goaway_received: u64,
    /// Streams from here on are not answered any more.
    goaway_sent: u64,
    /// One more than the last request that came, in numbers of streams.
    next_request: u64,
    resets: Bucket,
    tiny_data: Bucket,
    empty: Bucket,
}

/// What a frame on the control stream asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlStreamEvent {
    /// The urgency of a request, by its stream.
    Priority(u64, Priority),
}

/// A stream that goes one way, from the client.
#[derive(Debug)]
pub struct Uni {
    kind: UniStreamKind,
    /// The stream's type as far as it has come.
    begun: Vec<u8>,
    header: HeaderReader,
    frame: Option<ControlFrame>,
    /// Within an instruction of the decoder: bytes of its number that came.
    number_bytes: usize,
}

/// A frame of the control stream under way. What is passed over has no room for its bytes.
#[derive(Debug)]
struct ControlFrame {
    kind: u64,
    left: u64,
    payload: Option<Vec<u8>>,
}

/// What a stream that goes one way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniStreamKind {
    /// That is not known yet.
    Unknown,
    /// Frames that concern the whole connection.
    Control,
    /// What the client's encoder says of its table, which is empty.
    Encoder,
    /// What the client's decoder says of ours.
    Decoder,
    /// Nothing we know: it is not read.
    Foreign,
}

impl Default for Uni {
    fn default() -> Uni {
        Uni {
            kind: UniStreamKind::Unknown,
            begun: Vec::new(),
            header: HeaderReader::default(),
            frame: None,
            number_bytes: 0,
        }
    }
}

impl Uni {
    /// What it is for.
    pub fn kind(&self) -> UniStreamKind {
        self.kind
    }

    /// The client has ended it, or reset it.
    //= rfc9114#6.2.1
    pub fn end(&self) -> Result<(), Http3ConnectionError> {
        match self.kind {
            UniStreamKind::Unknown | UniStreamKind::Foreign => Ok(()),
            _ => Err(Http3ConnectionError::new(
                Http3ErrorCode::ClosedCriticalStream,
                "a stream that the connection needs was closed",
            )),
        }
    }
}

impl Http3Connection {
    /// The begin of a connection.
    pub fn new(limits: Rc<HttpLimits>, now_ms: u64) -> Http3Connection {
        let bucket = |rate: BucketRate| Bucket::new(rate, now_ms);
        Http3Connection {
            limits,
            has_control: false,
            has_encoder: false,
            has_decoder: false,
            has_settings: false,
            max_push_id: None,
            goaway_received: frame::INTEGER_MAX,
            goaway_sent: u64::MAX,
            next_request: 0,
            resets: bucket(limits::H3_RESETS),
            tiny_data: bucket(limits::H3_TINY_DATA),
            empty: bucket(limits::H3_EMPTY),
        }
    }

    /// What our control stream begins with.
    //= rfc9114#7.2.4
    pub fn push_opening(&self, out: &mut Vec<u8>) {
        frame::push_integer(frame::CONTROL_STREAM, out);
        let mut settings = Vec::new();
        frame::push_integer(frame::MAX_FIELD_SECTION_SIZE, &mut settings);
        frame::push_integer(self.limits.head_bytes as u64, &mut settings);
        if self.limits.h2_connect_protocol {
            frame::push_integer(frame::ENABLE_CONNECT_PROTOCOL, &mut settings);
            frame::push_integer(1, &mut settings);
        }
        frame::push_frame(frame::SETTINGS, &settings, out);
    }

    /// A request has come over this stream. False when the client was told before that it would
    /// not be answered.
    //= rfc9114#5.2
    pub fn open(&mut self, stream: u64) -> bool {
        if stream >= self.goaway_sent {
            return false;
        }
        self.next_request = self.next_request.max(stream + 4);
        true
    }

    /// True for a stream whose request has come, or one opened later has.
    pub fn is_past(&self, stream: u64) -> bool {
        stream < self.next_request
    }

    /// Tells the client to open no more requests; those on their way are still answered.
    //= rfc9114#5.2
    pub fn announce_leaving(&mut self, out: &mut Vec<u8>) {
        if self.goaway_sent == u64::MAX {
            self.push_goaway(frame::INTEGER_MAX - 3, out);
        }
    }

    /// Tells the client which request was the last.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        if self.goaway_sent > self.next_request {
            self.push_goaway(self.next_request, out);
        }
    }

    fn push_goaway(&mut self, stream: u64, out: &mut Vec<u8>) {
        self.goaway_sent = stream;
        let mut payload = Vec::new();
        frame::push_integer(stream, &mut payload);
        frame::push_frame(frame::GOAWAY, &payload, out);
    }

    /// A request was taken back, or reset by us for a fault in it.
    pub fn note_reset(&mut self, now_ms: u64) -> Result<(), Http3ConnectionError> {
        spend(&mut self.resets, Flood::Resets, now_ms)
    }

    /// A frame came that does nothing.
    pub fn note_idle(&mut self, now_ms: u64) -> Result<(), Http3ConnectionError> {
        spend(&mut self.empty, Flood::Empty, now_ms)
    }

    /// A DATA frame came with little in it.
    pub fn note_tiny_data(&mut self, now_ms: u64) -> Result<(), Http3ConnectionError> {
        spend(&mut self.tiny_data, Flood::TinyData, now_ms)
    }

    /// A request was answered: the client may take one back, and say how urgent the next is.
    pub fn note_answered(&mut self) {
        self.empty.give(limits::H2_EMPTY_PER_REQUEST);
        self.resets.give(1);
    }

    /// Reads all of `input`, which came over `uni`.
    ///
    /// # Errors
    /// Why the connection must end.
    pub fn read(
        &mut self,
        uni: &mut Uni,
        input: &[u8],
        now_ms: u64,
        mut take: impl FnMut(ControlStreamEvent),
    ) -> Result<(), Http3ConnectionError> {
        let mut rest = input;
        while !rest.is_empty() {
            match uni.kind {
                UniStreamKind::Unknown => self.read_kind(uni, &mut rest)?,
                UniStreamKind::Control => {
                    if let Some(event) = self.read_control(uni, &mut rest, now_ms)? {
                        take(event);
                    }
                }
                UniStreamKind::Encoder => read_encoder(&mut rest)?,
                UniStreamKind::Decoder => read_decoder(uni, &mut rest)?,
                UniStreamKind::Foreign => return Ok(()),
            }
        }
        Ok(())
    }

    //= rfc9114#6.2
    fn read_kind(&mut self, uni: &mut Uni, rest: &mut &[u8]) -> Result<(), Http3ConnectionError> {
        let Some((first, after)) = rest.split_first() else {
            return Ok(());
        };
        uni.begun.push(*first);
        *rest = after;
        let Some(kind) = take_integer(&mut &uni.begun[..]) else {
            return Ok(());
        };
        uni.begun = Vec::new();
        let (kind, is_there) = match kind {
            frame::CONTROL_STREAM => (UniStreamKind::Control, &mut self.has_control),
            frame::ENCODER_STREAM => (UniStreamKind::Encoder, &mut self.has_encoder),
            frame::DECODER_STREAM => (UniStreamKind::Decoder, &mut self.has_decoder),
            frame::PUSH_STREAM => {
                return Err(Http3ConnectionError::new(
                    Http3ErrorCode::StreamCreation,
                    "a client cannot push answers",
                ));
            }
            _ => {
                uni.kind = UniStreamKind::Foreign;
                return Ok(());
            }
        };
        if std::mem::replace(is_there, true) {
            return Err(Http3ConnectionError::new(
                Http3ErrorCode::StreamCreation,
                "a stream of a kind there is one of was opened twice",
            ));
        }
        uni.kind = kind;
        Ok(())
    }

    fn read_control(
        &mut self,
        uni: &mut Uni,
        rest: &mut &[u8],
        now_ms: u64,
    ) -> Result<Option<ControlStreamEvent>, Http3ConnectionError> {
        if uni.frame.is_none() {
            let Some((kind, len)) = uni.header.read(rest) else {
                return Ok(None);
            };
            uni.frame = Some(self.begin_frame(kind, len, now_ms)?);
        }
        let Some(frame) = &mut uni.frame else {
            return Ok(None);
        };
        let count = usize::try_from(frame.left)
            .unwrap_or(usize::MAX)
            .min(rest.len());
        let (taken, after) = rest.split_at(count);
        *rest = after;
        frame.left -= count as u64;
        if let Some(payload) = &mut frame.payload {
            payload.extend_from_slice(taken);
        }
        if frame.left > 0 {
            return Ok(None);
        }
        let Some(ControlFrame { kind, payload, .. }) = uni.frame.take() else {
            return Ok(None);
        };
        match payload {
            Some(payload) => self.handle_frame(kind, &payload),
            None => Ok(None),
        }
    }

    fn begin_frame(
        &mut self,
        kind: u64,
        len: u64,
        now_ms: u64,
    ) -> Result<ControlFrame, Http3ConnectionError> {
        if !self.has_settings && kind != frame::SETTINGS {
            return Err(Http3ConnectionError::new(
                Http3ErrorCode::MissingSettings,
                "the control stream does not begin with SETTINGS",
            ));
        }
        let is_read = match kind {
            frame::SETTINGS if self.has_settings => {
                return Err(Http3ConnectionError::new(
                    Http3ErrorCode::FrameUnexpected,
                    "SETTINGS came twice",
                ));
            }
            frame::SETTINGS
            | frame::GOAWAY
            | frame::MAX_PUSH_ID
            | frame::CANCEL_PUSH
            | frame::PRIORITY_UPDATE
            | frame::PRIORITY_UPDATE_PUSH => true,
            frame::DATA | frame::HEADERS | frame::PUSH_PROMISE => {
                return Err(Http3ConnectionError::new(
                    Http3ErrorCode::FrameUnexpected,
                    "a frame of a request on the control stream",
                ));
            }
            kind if frame::is_of_http2(kind) => {
                return Err(Http3ConnectionError::new(
                    Http3ErrorCode::FrameUnexpected,
                    "a frame of HTTP/2",
                ));
            }
            _ => false,
        };
        if is_read && len > limits::H3_CONTROL_BYTES_MAX {
            return Err(Http3ConnectionError::new(
                Http3ErrorCode::ExcessiveLoad,
                "a frame of the control stream is too long",
            ));
        }
        self.has_settings = true;
        if kind != frame::SETTINGS {
            self.note_idle(now_ms)?;
        }
        Ok(ControlFrame {
            kind,
            left: len,
            payload: is_read.then(Vec::new),
        })
    }

    fn handle_frame(
        &mut self,
        kind: u64,
        payload: &[u8],
    ) -> Result<Option<ControlStreamEvent>, Http3ConnectionError> {
        match kind {
            frame::SETTINGS => read_settings(payload)?,
            frame::GOAWAY => {
                let push = whole_integer(payload)?;
                if push > self.goaway_received {
                    return Err(Http3ConnectionError::new(
                        Http3ErrorCode::Id,
                        "GOAWAY names more than the one before",
                    ));
                }
                self.goaway_received = push;
            }
            frame::MAX_PUSH_ID => {
                let most = whole_integer(payload)?;
                if self.max_push_id.is_some_and(|before| most < before) {
                    return Err(Http3ConnectionError::new(
                        Http3ErrorCode::Id,
                        "MAX_PUSH_ID went down",
                    ));
                }
                self.max_push_id = Some(most);
            }
            frame::CANCEL_PUSH => {
                whole_integer(payload)?;
                return Err(Http3ConnectionError::new(
                    Http3ErrorCode::Id,
                    "CANCEL_PUSH of what was not promised",
                ));
            }
            frame::PRIORITY_UPDATE => return read_priority(payload).map(Some),
            frame::PRIORITY_UPDATE_PUSH => {
                return Err(Http3ConnectionError::new(
                    Http3ErrorCode::Id,
                    "a priority of what was not promised",
                ));
            }
            _ => {}
        }
        Ok(None)
    }
}

fn spend(bucket: &mut Bucket, flood: Flood, now_ms: u64) -> Result<(), Http3ConnectionError> {
    match bucket.take(now_ms) {
        true => Ok(()),
        false => Err(flood.into()),
    }
}

fn whole_integer(payload: &[u8]) -> Result<u64, Http3ConnectionError> {
    let mut rest = payload;
    match take_integer(&mut rest) {
        Some(value) if rest.is_empty() => Ok(value),
        _ => Err(Http3ConnectionError::new(
            Http3ErrorCode::Frame,
            "a frame is not as long as it must be",
        )),
    }
}

//= rfc9114#7.2.4
fn read_settings(payload: &[u8]) -> Result<(), Http3ConnectionError> {
    let mut rest = payload;
    let mut seen = Vec::new();
    while !rest.is_empty() {
        let (Some(id), Some(value)) = (take_integer(&mut rest), take_integer(&mut rest)) else {
            return Err(Http3ConnectionError::new(
                Http3ErrorCode::Frame,
                "SETTINGS ends within a setting",
            ));
        };
        if frame::is_setting_of_http2(id) || seen.contains(&id) {
            return Err(Http3ConnectionError::new(
                Http3ErrorCode::Settings,
                "a setting came twice, or is one of HTTP/2",
            ));
        }
        if id == frame::ENABLE_CONNECT_PROTOCOL && value > 1 {
            return Err(Http3ConnectionError::new(
                Http3ErrorCode::Settings,
                "a setting has no such value",
            ));
        }
        seen.push(id);
    }
    Ok(())
}

//= rfc9218#7.2
fn read_priority(payload: &[u8]) -> Result<ControlStreamEvent, Http3ConnectionError> {
    let mut rest = payload;
    match take_integer(&mut rest) {
        Some(stream) if stream % 4 == 0 => {
            Ok(ControlStreamEvent::Priority(stream, Priority::read(rest)))
        }
        Some(_) => Err(Http3ConnectionError::new(
            Http3ErrorCode::Id,
            "a priority of what is no request",
        )),
        None => Err(Http3ConnectionError::new(
            Http3ErrorCode::Frame,
            "PRIORITY_UPDATE is too short",
        )),
    }
}

/// Our decoder has no table, so an encoder has nothing to say but that its own is empty.
//= rfc9204#4.3
fn read_encoder(rest: &mut &[u8]) -> Result<(), Http3ConnectionError> {
    match rest.split_first() {
        Some((0x20, after)) => *rest = after,
        _ => {
            return Err(Http3ConnectionError::new(
                Http3ErrorCode::EncoderStream,
                "an entry for a table that was not offered",
            ));
        }
    }
    Ok(())
}

/// Our encoder uses no table, so a decoder has nothing to say but that it reads a stream no more.
//= rfc9204#4.4
fn read_decoder(uni: &mut Uni, rest: &mut &[u8]) -> Result<(), Http3ConnectionError> {
    let Some((first, after)) = rest.split_first() else {
        return Ok(());
    };
    *rest = after;
    let unasked = || {
        Http3ConnectionError::new(
            Http3ErrorCode::DecoderStream,
            "an entry that was never made",
        )
    };
    if uni.number_bytes > 0 {
        uni.number_bytes = match first & 0x80 {
            0 => 0,
            _ if uni.number_bytes > 9 => return Err(unasked()),
            _ => uni.number_bytes + 1,
        };
        return Ok(());
    }
    match first >> 6 {
        1 => uni.number_bytes = usize::from(first & 0x3f == 0x3f),
        _ => return Err(unasked()),
    }
    Ok(())
}
