//! Sockets and connections of a thread, and what is known of each.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::h3;
use crate::h3::quic::id::ConnectionHome;
use crate::h3::quic::{Datagram, Endpoint, QuicConnection, Readout};
use crate::h3::{ControlEvent, Http3ConnectionError, Http3ErrorCode, Uni, UniStreamKind};
use crate::limits::H2_EARLY_PRIORITIES_MAX;
use crate::network::NetworkProbe;
use crate::priority::Priority;
use crate::reactor::wake::KeyWaker;
use crate::request::{ConnectionFacts, Request};
use crate::thread::conn::CountedLimits;
use crate::thread::h3::stream::Http3RequestStream;
use crate::thread::h3::unread::Unread;
use crate::thread::visit::Visit;
use crate::thread::work::Work;
use crate::tls::failure::HandshakeFailure;

/// Keys of connections over QUIC have this generation, which no slot has.
pub(crate) const QUIC: u64 = 0x7fff_fffe << 32;

/// Bytes of a control stream read at a time.
const UNI_READ_BYTES: usize = 4096;

/// The sockets and connections of a thread.
pub(crate) struct Quic {
    pub(super) home: ConnectionHome,
    pub(super) places: Vec<Option<QuicListener>>,
    pub(super) sessions: Vec<Option<Box<Http3ServerSession>>>,
    pub(super) free: Vec<u32>,
    /// Those to be driven in this turn.
    pub(super) marked: VecDeque<u32>,
    /// When those are to be looked at that nothing comes for.
    pub(super) timers: BTreeSet<(u64, u32)>,
    /// Datagrams as they come; empty between reads.
    pub(super) datagrams: Vec<Datagram>,
    /// Datagrams on their way out; empty between connections.
    pub(super) buffer: Vec<u8>,
}

/// A socket with its connections.
pub(super) struct QuicListener {
    pub(super) listener: u16,
    pub(super) endpoint: Endpoint,
    /// Between this server and the one before or after it: the end of the one that drains, then
    /// the other's.
    pub(super) relay: [Arc<OwnedFd>; 2],
    /// Indexes of sessions by what the endpoint knows them by.
    pub(super) sessions: Vec<u32>,
    /// How many there are.
    pub(super) session_count: usize,
    /// It takes new connections.
    pub(super) is_offered: bool,
    /// It is watched for room to send, too.
    pub(super) wants_room: bool,
}

/// A connection over QUIC.
pub(super) struct Http3ServerSession {
    /// Its number on this thread, by which datagrams, timers and wakers find it.
    pub(super) index: u32,
    /// Its place among the sockets.
    pub(super) place: usize,
    /// QUIC: packets, loss, keys, windows.
    pub(super) conn: QuicConnection,
    /// HTTP/3: which frames may come where, tables of fields, limits.
    pub(super) core: h3::Http3Connection,
    /// What all its requests have in common: addresses, TLS, when it came.
    pub(super) facts: Rc<ConnectionFacts>,
    /// Towards which limits it counts.
    pub(super) counted: CountedLimits,
    /// It counts among those of its listener.
    pub(super) _visit: Option<Visit>,
    /// The address it counts for; it may have another by now.
    pub(super) counted_peer: Option<SocketAddr>,
    /// Requests so far.
    pub(super) request_count: u32,
    /// Wakes the thread to drive it, for answers that had to wait.
    pub(super) waker: Option<Arc<KeyWaker>>,
    /// From the first packet to the last: handshake, open, closing, gone.
    pub(super) stage: Http3SessionStage,
    /// Why there will be no handshake, once that is known.
    pub(super) failure: Option<HandshakeFailure>,
    /// When its first packet came, in microseconds of loop time.
    pub(super) started_us: u64,
    /// Our control stream, and what waits for room on it.
    pub(super) control: Option<u64>,
    /// The rest of what the control stream is to say.
    pub(super) unsent: Bytes,
    /// Streams of the client in one direction, and what they are.
    pub(super) unis: Vec<(u64, Uni)>,
    /// One of those has bytes.
    pub(super) unis_are_readable: bool,
    /// Requests from their first byte until all of their answer has arrived.
    pub(super) streams: Vec<Http3RequestStream>,
    /// What the client said of requests before they came.
    pub(super) early: Vec<(u64, Priority)>,
    /// Until when a request must come, while there is none.
    pub(super) idle_by_ms: u64,
    /// When the client is asked for a sign of life.
    pub(super) ping_by_ms: u64,
    /// When something came from the client.
    pub(super) heard_ms: u64,
    /// When it is taken for gone, if nothing comes from it.
    pub(super) silent_by_ms: u64,
    /// When it stands among the timers.
    pub(super) timer_ms: u64,
    /// It stands among those to be driven in this turn.
    pub(super) is_marked: bool,
    /// Bytes of bodies that came and that nobody has read: their sum has a limit.
    pub(super) unread: Unread,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Http3SessionStage {
    /// Until when the handshake must be done.
    Handshake { by_ms: u64 },
    /// Requests come.
    Open,
    /// It is over and counts no more; what is still on its way is answered.
    Over,
}

impl Quic {
    pub(crate) fn new(home: ConnectionHome) -> Quic {
        Quic {
            home,
            places: Vec::new(),
            sessions: Vec::new(),
            free: Vec::new(),
            marked: VecDeque::new(),
            timers: BTreeSet::new(),
            datagrams: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// True when connections are to be driven.
    pub(crate) fn has_work(&self) -> bool {
        !self.marked.is_empty()
    }

    /// When the next connection is to be looked at, in milliseconds.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.timers.first().map(|(at_ms, _)| *at_ms)
    }

    /// Has a connection driven in this turn, or the next one.
    pub(crate) fn mark(&mut self, index: u32) {
        let session = self.sessions.get_mut(index as usize);
        if let Some(session) = session.and_then(Option::as_mut)
            && !session.is_marked
        {
            session.is_marked = true;
            self.marked.push_back(index);
        }
    }

    pub(super) fn place(&mut self, index: usize) -> Option<&mut QuicListener> {
        self.places.get_mut(index)?.as_mut()
    }

    /// Every request under way, what it is at, and whether bytes of it wait for the client.
    pub(in crate::thread) fn each_request(
        &self,
        mut each: impl FnMut(&Request, Option<&Work>, bool),
    ) {
        for session in self.sessions.iter().flatten() {
            for stream in &session.streams {
                if let Some(request) = &stream.request {
                    each(request, stream.work.as_ref(), stream.take_since_us != 0);
                }
            }
        }
    }

    /// Every connection: facts, when it began in microseconds, its requests, what it is at, and
    /// what knows its network.
    pub(in crate::thread) fn each_session(
        &self,
        mut each: impl FnMut(&ConnectionFacts, u64, u32, &'static str, &dyn NetworkProbe),
    ) {
        for session in self.sessions.iter().flatten() {
            let state = match session.stage {
                Http3SessionStage::Handshake { .. } => "handshake",
                Http3SessionStage::Open if session.is_idle() => "idle",
                Http3SessionStage::Open => "active",
                Http3SessionStage::Over => "closing",
            };
            let (started_us, requests) = (session.started_us, session.request_count);
            each(&session.facts, started_us, requests, state, &session.conn);
        }
    }

    pub(super) fn mark_all(&mut self) {
        for index in 0..self.sessions.len() {
            self.mark(index as u32);
        }
    }
}

impl Http3ServerSession {
    /// No request is open, and nothing waits to be sent.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.unsent.is_empty()
    }

    /// Since when all answers are handed over and nothing has come from the client; they may not
    /// all have left.
    pub(super) fn delivered_ms(&self) -> Option<u64> {
        let streams = self.streams.iter().map(Http3RequestStream::delivered_ms);
        let last_ms = streams.reduce(|one, other| Some(one?.max(other?)))??;
        Some(last_ms.max(self.heard_ms))
    }

    /// The client may have moved: requests from now on come from where it is.
    //= rfc9000#9
    pub(super) fn note_move(&mut self) {
        let remote = self.conn.remote();
        let peer = SocketAddr::from((remote.ip().to_canonical(), remote.port()));
        if self.facts.peer != Some(peer) {
            self.facts = Rc::new(ConnectionFacts {
                peer: Some(peer),
                ..ConnectionFacts::clone(&self.facts)
            });
        }
    }

    /// Reads what came on a stream that goes one way. False when it is not to be read any more.
    pub(super) fn read_uni(
        &mut self,
        at: usize,
        now_ms: u64,
        mut take: impl FnMut(ControlEvent),
    ) -> Result<bool, Http3ConnectionError> {
        let (id, uni) = &mut self.unis[at];
        loop {
            match self.conn.read(*id, UNI_READ_BYTES) {
                Readout::Bytes(bytes) => self.core.read(uni, &bytes, now_ms, &mut take)?,
                Readout::Nothing => return Ok(true),
                Readout::End | Readout::Gone => return uni.end().map(|()| false),
            }
            if uni.kind() == UniStreamKind::Foreign {
                self.conn.stop(*id, Http3ErrorCode::StreamCreation as u64);
                return Ok(false);
            }
        }
    }

    /// Says how urgent a request is, which may not have come yet.
    pub(super) fn set_priority(&mut self, id: u64, priority: Priority) {
        match self.find(id) {
            Some(at) => {
                let stream = &mut self.streams[at];
                stream.set_priority(priority);
                let (urgency, age) = stream.order();
                self.conn.set_order(id, urgency, age);
            }
            None => {
                self.early.retain(|(early, _)| *early != id);
                if self.early.len() < H2_EARLY_PRIORITIES_MAX && !self.core.is_past(id) {
                    self.early.push((id, priority));
                }
            }
        }
    }

    /// Sends bytes over our control stream.
    pub(super) fn push_control(&mut self, bytes: Vec<u8>) {
        let Some(control) = self.control else {
            return;
        };
        self.unsent = match self.unsent.is_empty() {
            true => bytes.into(),
            false => [&self.unsent[..], &bytes].concat().into(),
        };
        // A client that lets little be sent gets the rest when it lets more.
        self.conn.write(control, &mut self.unsent);
    }

    /// When its own clocks have to be looked at.
    pub(super) fn next_ms(&self) -> u64 {
        match self.stage {
            Http3SessionStage::Handshake { by_ms } => by_ms,
            Http3SessionStage::Open if self.streams.is_empty() => self.idle_by_ms,
            Http3SessionStage::Open => {
                let streams = self.streams.iter().map(Http3RequestStream::next_ms).min();
                let own_ms = self.ping_by_ms.min(self.silent_by_ms);
                streams.unwrap_or(u64::MAX).min(own_ms)
            }
            Http3SessionStage::Over => u64::MAX,
        }
    }

    pub(super) fn find(&self, id: u64) -> Option<usize> {
        self.streams.iter().position(|stream| stream.id == id)
    }

    pub(super) fn key(&self) -> u64 {
        QUIC | u64::from(self.index)
    }
}
