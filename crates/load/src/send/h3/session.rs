//! One HTTP/3 connection as a client has it, over `quinn-proto`: datagrams and time in, events out,
//! datagrams to be sent. The socket is the caller's.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event as QuicEvent, ReadError, StreamEvent, StreamId, Transmit, VarInt,
    WriteError,
};

use super::frames::{self, Frames, H3Fault, Uni};
use super::qpack::{self, QpackContext};
use crate::measure::FailureKind;
use crate::request::{RequestFieldBlock, RequestProfile};
use crate::send::event::AnswerEvent;
use crate::send::fields::{Arriving, Wrong};
use crate::send::kept::Kept;

/// Codes of errors. //= rfc9114#8.1
const NO_ERROR: u32 = 0x100;
const GENERAL_PROTOCOL_ERROR: u32 = 0x101;
const REQUEST_REJECTED: u64 = 0x10b;
const REQUEST_CANCELLED: u32 = 0x10c;
const MESSAGE_ERROR: u32 = 0x10e;
/// Bytes of an answer that are looked at together.
const PIECE_BYTES: usize = 64 * 1024;

/// What all sessions of a run read.
#[derive(Debug)]
pub struct Common {
    /// What is sent before the body, for each kind of request.
    pub heads: Vec<Vec<u8>>,
    /// The fields of each, for those that get a path later.
    blocks: Vec<RequestFieldBlock>,
    /// What else is to be known of each.
    pub asks: Vec<RequestProfile>,
    pub(crate) known: QpackContext,
}

impl Common {
    /// Requests that are written out already.
    pub fn written(heads: Vec<Vec<u8>>) -> Common {
        Common {
            asks: heads.iter().map(|_| RequestProfile::plain()).collect(),
            heads,
            blocks: Vec::new(),
            known: QpackContext::default(),
        }
    }

    /// Writes the requests out.
    pub(crate) fn new(
        fields: &[crate::request::Fields],
        asks: Vec<RequestProfile>,
        known: QpackContext,
    ) -> Common {
        let blocks: Vec<RequestFieldBlock> = fields.iter().map(qpack::pack).collect();
        let head = |(block, ask): (&RequestFieldBlock, &RequestProfile)| {
            frames::request(&block.bytes, ask.body.len() as u64)
        };
        Common {
            heads: blocks.iter().zip(&asks).map(head).collect(),
            blocks,
            asks,
            known,
        }
    }
}

impl Common {
    /// What is sent before the body of a kind of request that has this path.
    fn head_with(&self, kind: usize, path: &[u8]) -> Vec<u8> {
        let (mut field, mut block) = (Vec::new(), Vec::new());
        qpack::write_path(path, &mut field);
        self.blocks[kind].write_to(&field, &mut block);
        frames::request(&block, self.asks[kind].body.len() as u64)
    }
}

/// A stream with a request.
#[derive(Debug)]
struct H3ClientStream {
    lane: u32,
    kind: usize,
    /// What is sent before the body, where the request has a path of its own.
    head: Option<Vec<u8>>,
    frames: Frames,
    arriving: Arriving,
    /// Bytes that are written, of head and body.
    written: usize,
    /// After which share of its answer it is broken off; none where it is not.
    break_at: Option<f32>,
}

/// What became of the connection itself.
#[derive(Debug)]
pub enum ConnectionChange {
    /// As it was.
    Same,
    /// The handshake is over.
    Connected,
    /// It is over; why.
    Lost(FailureKind, String),
}

/// One connection.
#[derive(Debug)]
pub struct H3ClientSession {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    quic: quinn_proto::Connection,
    streams: HashMap<StreamId, H3ClientStream>,
    unis: HashMap<StreamId, Uni>,
    wanted: usize,
    /// A stream that the server allows and no request has yet.
    spare: Option<StreamId>,
    is_connected: bool,
    /// What our control stream begins with, and the stream.
    pub control: Vec<u8>,
    control_id: Option<StreamId>,
    pub(crate) is_going_away: bool,
    /// When its timer is due, as the thread knows it.
    pub(crate) timer_ns: Option<u64>,
    /// Datagrams that the socket had no room for.
    pub(crate) unsent: Option<(Transmit, Vec<u8>)>,
    /// A certificate was looked at: the handshake is a full one.
    pub(crate) is_full: bool,
}

impl H3ClientSession {
    /// Begins a handshake, for a connection with so many requests at once.
    pub fn new(
        config: ClientConfig,
        (remote, name): (SocketAddr, &str),
        wanted: usize,
        now: Instant,
    ) -> Result<H3ClientSession, String> {
        let endpoint_config = Arc::new(EndpointConfig::default());
        let mut endpoint = Endpoint::new(endpoint_config, None, true, None);
        let connected = endpoint.connect(now, config, remote, name);
        let (handle, quic) = connected.map_err(|error| error.to_string())?;
        Ok(H3ClientSession {
            endpoint,
            handle,
            quic,
            streams: HashMap::new(),
            unis: HashMap::new(),
            wanted,
            spare: None,
            is_connected: false,
            control: frames::control(),
            control_id: None,
            is_going_away: false,
            timer_ns: None,
            unsent: None,
            is_full: false,
        })
    }

    /// Can another request begin?
    pub fn has_room(&mut self) -> bool {
        if self.is_going_away || !self.is_connected || self.streams.len() >= self.wanted {
            return false;
        }
        self.spare = self.spare.or_else(|| self.quic.streams().open(Dir::Bi));
        self.spare.is_some()
    }

    /// Requests that have no answer yet.
    pub fn active(&self) -> usize {
        self.streams.len()
    }

    /// The server takes no new requests.
    pub(crate) fn is_going_away(&self) -> bool {
        self.is_going_away
    }

    /// The lanes whose requests have no answer yet.
    pub(crate) fn lanes(&self) -> Vec<u32> {
        self.streams.values().map(|stream| stream.lane).collect()
    }

    /// Begins a request of its own, without a body.
    pub(crate) fn start_alone(&mut self, lane: u32, head: &[u8], kept: Kept, common: &Common) {
        let request = (0, Some(head.to_vec()));
        self.open(lane, request, Arriving::keeping(kept), common);
    }

    /// Begins a request of a kind; a path is of one that had none yet.
    pub fn start(&mut self, lane: u32, kind: usize, path: Option<&[u8]>, common: &Common) {
        let head = path.map(|path| common.head_with(kind, path));
        let arriving = Arriving::new(common.asks[kind].is_hashed);
        self.open(lane, (kind, head), arriving, common);
    }

    fn open(
        &mut self,
        lane: u32,
        (kind, head): (usize, Option<Vec<u8>>),
        arriving: Arriving,
        common: &Common,
    ) {
        let Some(id) = self.spare.take() else {
            return;
        };
        let stream = H3ClientStream {
            lane,
            kind,
            head,
            frames: Frames::new(),
            arriving,
            written: 0,
            break_at: None,
        };
        self.streams.insert(id, stream);
        self.write(id, common);
    }

    /// Writes as much of a request as there is room for.
    fn write(&mut self, id: StreamId, common: &Common) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let head = stream.head.as_ref().unwrap_or(&common.heads[stream.kind]);
        let body = &common.asks[stream.kind].body;
        let mut sending = self.quic.send_stream(id);
        loop {
            let rest = match stream.written.checked_sub(head.len()) {
                None => &head[stream.written..],
                Some(of_body) => &body[of_body..],
            };
            if rest.is_empty() {
                // The server may have said that it wants no more of it: then this is no error.
                let _ = sending.finish();
                return;
            }
            match sending.write(rest) {
                Ok(count) => stream.written += count,
                // The stream is told when there is room; what was stopped may still be answered.
                Err(WriteError::Blocked | WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    return;
                }
            }
        }
    }

    /// Has the head of a lane's answer come?
    pub(crate) fn has_head(&self, lane: u32) -> bool {
        let mut open = self.streams.values();
        open.any(|stream| stream.lane == lane && stream.arriving.has_head())
    }

    /// Status and what is kept so far of a lane's answer.
    pub(crate) fn coming(&self, lane: u32) -> Option<(u16, &Kept)> {
        let mut open = self.streams.values();
        open.find(|stream| stream.lane == lane)?.arriving.coming()
    }

    /// The request of a lane is to be broken off after a share of its answer.
    pub(crate) fn break_off_at(&mut self, lane: u32, share: f32) {
        let mut open = self.streams.values_mut();
        if let Some(stream) = open.find(|stream| stream.lane == lane) {
            stream.break_at = Some(share);
        }
    }

    /// Gives a request up, of whatever stream its lane has.
    pub fn cancel(&mut self, lane: u32) {
        let is_it = |(_, stream): &(&StreamId, &H3ClientStream)| stream.lane == lane;
        if let Some(id) = self.streams.iter().find(is_it).map(|(id, _)| *id) {
            self.give_up(id, REQUEST_CANCELLED);
        }
    }

    fn give_up(&mut self, id: StreamId, code: u32) -> Option<H3ClientStream> {
        // Either side of it may be over: that is what is wanted.
        let _ = self.quic.send_stream(id).reset(VarInt::from_u32(code));
        let _ = self.quic.recv_stream(id).stop(VarInt::from_u32(code));
        self.streams.remove(&id)
    }

    /// Takes a datagram.
    pub fn receive(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        ecn: Option<EcnCodepoint>,
        bytes: BytesMut,
    ) {
        let mut answer = Vec::new();
        let taken = self
            .endpoint
            .handle(now, remote, None, ecn, bytes, &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = taken {
            self.quic.handle_event(event);
        }
    }

    /// The time has come that was asked for.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.quic.handle_timeout(now);
    }

    /// When the connection wants to be looked at.
    pub fn timeout(&mut self) -> Option<Instant> {
        self.quic.poll_timeout()
    }

    /// Looks at what has happened, and reads what has come.
    pub fn advance(
        &mut self,
        now: Instant,
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> ConnectionChange {
        let mut step = ConnectionChange::Same;
        loop {
            while let Some(event) = self.quic.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                    self.quic.handle_event(event);
                }
            }
            let Some(event) = self.quic.poll() else {
                return step;
            };
            let read = match event {
                QuicEvent::Connected => {
                    self.begin();
                    step = ConnectionChange::Connected;
                    Ok(())
                }
                QuicEvent::ConnectionLost { reason } => return self.lost(&reason),
                QuicEvent::Stream(StreamEvent::Opened { dir: Dir::Uni }) => self.accept(events),
                QuicEvent::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Uni => {
                    self.read_uni(id, events)
                }
                QuicEvent::Stream(StreamEvent::Readable { id }) => self.read(id, common, events),
                QuicEvent::Stream(StreamEvent::Writable { id }) => {
                    self.write(id, common);
                    Ok(())
                }
                _ => Ok(()),
            };
            if let Err(why) = read {
                let code = VarInt::from_u32(GENERAL_PROTOCOL_ERROR);
                self.quic
                    .close(now, code, Bytes::from_static(why.as_bytes()));
                return ConnectionChange::Lost(FailureKind::Malformed, why.to_owned());
            }
        }
    }

    /// Our own control stream.
    fn begin(&mut self) {
        self.is_connected = true;
        if let Some(id) = self.quic.streams().open(Dir::Uni) {
            // The windows that servers begin with hold these few bytes.
            let _ = self.quic.send_stream(id).write(&self.control);
            self.control_id = Some(id);
        }
    }

    /// Opens a stream on which we alone speak, as far as the server allows one.
    pub fn open_uni(&mut self, bytes: &[u8], is_ended: bool) {
        if let Some(id) = self.quic.streams().open(Dir::Uni) {
            let mut stream = self.quic.send_stream(id);
            // What the window does not hold, or the server has stopped, is not sent.
            let _ = stream.write(bytes);
            if is_ended {
                let _ = stream.finish();
            }
        }
    }

    /// Ends our control stream, which no client may.
    pub fn end_control(&mut self) {
        if let Some(id) = self.control_id {
            // A server that has stopped it is told all the same by its other streams.
            let _ = self.quic.send_stream(id).finish();
        }
    }

    fn lost(&self, reason: &ConnectionError) -> ConnectionChange {
        let kind = match reason {
            _ if !self.is_connected => match reason {
                ConnectionError::TimedOut | ConnectionError::VersionMismatch => {
                    FailureKind::Connect
                }
                _ => FailureKind::Tls,
            },
            ConnectionError::TransportError(_) => FailureKind::Malformed,
            ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
                FailureKind::Closed
            }
            _ => FailureKind::Reset,
        };
        ConnectionChange::Lost(kind, reason.to_string())
    }

    /// Streams on which the server alone speaks.
    fn accept(&mut self, events: &mut Vec<AnswerEvent>) -> Result<(), Wrong> {
        while let Some(id) = self.quic.streams().accept(Dir::Uni) {
            self.unis.insert(id, Uni::new());
            self.read_uni(id, events)?;
        }
        Ok(())
    }

    fn read_uni(&mut self, id: StreamId, events: &mut Vec<AnswerEvent>) -> Result<(), Wrong> {
        let Some(uni) = self.unis.get_mut(&id) else {
            return Ok(());
        };
        let mut stream = self.quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return Ok(());
        };
        let mut last = None;
        let mut read = Ok(());
        while let Ok(Some(chunk)) = chunks.next(PIECE_BYTES) {
            match uni.read(&chunk.bytes) {
                Ok(told) => last = told.or(last),
                Err(why) => {
                    read = Err(why);
                    break;
                }
            }
        }
        // What is to be sent is asked for anyway.
        let _ = chunks.finalize();
        read?;
        if let Some(last) = last {
            self.going_away(last, events);
        }
        Ok(())
    }

    //= rfc9114#5.2: requests on streams from this one on were not looked at.
    fn going_away(&mut self, last: u64, events: &mut Vec<AnswerEvent>) {
        self.is_going_away = true;
        let late = self.streams.keys().copied();
        let late: Vec<StreamId> = late.filter(|id| u64::from(*id) >= last).collect();
        for id in late {
            if let Some(stream) = self.give_up(id, REQUEST_CANCELLED) {
                events.push(AnswerEvent::Again { lane: stream.lane });
            }
        }
    }

    fn read(
        &mut self,
        id: StreamId,
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), Wrong> {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(());
        };
        let (lane, kind) = (stream.lane, stream.kind);
        let mut receiving = self.quic.recv_stream(id);
        let Ok(mut chunks) = receiving.read(true) else {
            return Ok(());
        };
        let ended = loop {
            match chunks.next(PIECE_BYTES) {
                Ok(Some(chunk)) => {
                    let (frames, arriving) = (&mut stream.frames, &mut stream.arriving);
                    match frames::answer(frames, arriving, &chunk.bytes, &common.known) {
                        Ok(()) if stream.break_at.is_some_and(|at| arriving.has_come(at)) => {
                            break Some(AnswerEvent::BrokenOff { lane });
                        }
                        Ok(()) => {}
                        Err(H3Fault::Answer(why)) => {
                            break Some(AnswerEvent::Malformed { lane, why });
                        }
                        Err(H3Fault::Connection(why)) => {
                            let _ = chunks.finalize();
                            return Err(why);
                        }
                    }
                }
                Ok(None) if !stream.frames.is_between() => {
                    let why = "the answer ended within a frame";
                    break Some(AnswerEvent::Malformed { lane, why });
                }
                // It is whole before its point: a body that is shorter than it could be.
                Ok(None) if stream.break_at.is_some() => {
                    break Some(AnswerEvent::BrokenOff { lane });
                }
                Ok(None) => {
                    break Some(match stream.arriving.end(common.asks[kind].is_head) {
                        Ok(answer) => AnswerEvent::Answered {
                            lane,
                            answer: *answer,
                            kept: None,
                        },
                        Err(why) => AnswerEvent::Malformed { lane, why },
                    });
                }
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(code)) if code.into_inner() == REQUEST_REJECTED => {
                    break Some(AnswerEvent::Again { lane });
                }
                Err(ReadError::Reset(code)) => {
                    let why = code_name(code.into_inner());
                    break Some(AnswerEvent::Reset { lane, why });
                }
            }
        };
        let _ = chunks.finalize();
        let Some(mut event) = ended else {
            return Ok(());
        };
        if let AnswerEvent::Answered { kept, .. } = &mut event {
            *kept = stream.arriving.take_kept();
        }
        let head = stream.head.as_ref().unwrap_or(&common.heads[kind]);
        let whole_bytes = head.len() + common.asks[kind].body.len();
        let is_whole = stream.written >= whole_bytes;
        match code_behind(&event, is_whole) {
            Some(code) => drop(self.give_up(id, code)),
            None => drop(self.streams.remove(&id)),
        }
        events.push(event);
        Ok(())
    }

    /// The next datagrams to send, at most so many in one call.
    pub fn transmit(
        &mut self,
        now: Instant,
        datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.quic.poll_transmit(now, datagrams, buffer)
    }

    /// Ends the connection in order; one more datagram says so.
    pub fn close(&mut self, now: Instant) {
        self.quic
            .close(now, VarInt::from_u32(NO_ERROR), Bytes::new());
    }
}

/// The name of a code, as the standard has it.
/// With what a stream is given up when this has come of it, and the request was sent whole or not;
/// none where it is over.
fn code_behind(event: &AnswerEvent, is_whole: bool) -> Option<u32> {
    match event {
        AnswerEvent::Answered { .. } if is_whole => None,
        // Nobody reads the rest of the request. //= rfc9114#4.1
        AnswerEvent::Answered { .. } => Some(NO_ERROR),
        AnswerEvent::BrokenOff { .. } => Some(REQUEST_CANCELLED),
        _ => Some(MESSAGE_ERROR),
    }
}

fn code_name(code: u64) -> &'static str {
    const NAMES: [&str; 17] = [
        "H3_NO_ERROR",
        "H3_GENERAL_PROTOCOL_ERROR",
        "H3_INTERNAL_ERROR",
        "H3_STREAM_CREATION_ERROR",
        "H3_CLOSED_CRITICAL_STREAM",
        "H3_FRAME_UNEXPECTED",
        "H3_FRAME_ERROR",
        "H3_EXCESSIVE_LOAD",
        "H3_ID_ERROR",
        "H3_SETTINGS_ERROR",
        "H3_MISSING_SETTINGS",
        "H3_REQUEST_REJECTED",
        "H3_REQUEST_CANCELLED",
        "H3_REQUEST_INCOMPLETE",
        "H3_MESSAGE_ERROR",
        "H3_CONNECT_ERROR",
        "H3_VERSION_FALLBACK",
    ];
    let at = code
        .checked_sub(0x100)
        .and_then(|at| usize::try_from(at).ok());
    at.and_then(|at| NAMES.get(at))
        .copied()
        .unwrap_or("an unknown error")
}
