//! A place for a connection: what is known of the one that is open.
//!
//! ```text
//! Closed --> Connecting --> (Handshaking) --> Open --> Closed
//! ```

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::epoll::EventFlags;

use super::h1::{AnswerReader, BadAnswer};
use super::h2;
use super::h3::{self, Datagrams};
use super::kept::Kept;
use super::prepared::PreparedRun;
use super::tls::Tls;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    Closed,
    Connecting,
    /// TLS, or QUIC with the TLS that is in it.
    Handshaking,
    Open,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct BenchConnection {
    pub(crate) phase: ConnectionPhase,
    /// Whether it was begun for a request that counts.
    pub(crate) is_measured: bool,
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) tls: Option<Box<Tls>>,
    /// HTTP/1: the answer, and bytes of the request that are sent.
    pub(crate) reader: AnswerReader,
    pub(crate) sent_bytes: usize,
    /// HTTP/2 and HTTP/3.
    pub(crate) many: Option<Box<Many>>,
    /// When it was begun, in nanoseconds of the run.
    pub(crate) begun_ns: u64,
    /// Read slowly: when it is read again, and what has been heard of it meanwhile.
    pub(crate) read_at_ns: u64,
    pub(crate) unheard: EventFlags,
}

/// What a connection for several requests at once has besides.
#[derive(Debug)]
pub(crate) struct Many {
    /// What is spoken on the open connection.
    pub(crate) session: Option<MultiplexedSession>,
    /// Over QUIC, what the socket can do.
    pub(crate) datagrams: Option<Datagrams>,
    /// Lanes whose requests wait for the connection, or for room on it.
    pub(crate) waiting: VecDeque<u32>,
    /// There may be something to send.
    pub(crate) is_dirty: bool,
    /// When the server was heard of last.
    pub(crate) heard_ns: u64,
}

impl BenchConnection {
    /// A closed one; HTTP/1 carries one request at a time.
    pub(crate) fn new(has_many: bool) -> BenchConnection {
        BenchConnection {
            phase: ConnectionPhase::Closed,
            is_measured: false,
            socket: None,
            tls: None,
            reader: AnswerReader::default(),
            sent_bytes: 0,
            many: has_many.then(|| {
                Box::new(Many {
                    session: None,
                    datagrams: None,
                    waiting: VecDeque::new(),
                    is_dirty: false,
                    heard_ns: 0,
                })
            }),
            begun_ns: 0,
            read_at_ns: 0,
            unheard: EventFlags::empty(),
        }
    }

    /// The server has ended the connection: is that the end of an answer over HTTP/1?
    pub(crate) fn end(&mut self) -> Result<(), BadAnswer> {
        // Without TLS's own end, somebody else may have cut it off. //= rfc8446#6.1
        let is_cut = self.tls.as_ref().is_some_and(|tls| !tls.is_closed);
        self.reader.end()?;
        if is_cut {
            Err(BadAnswer::CutOff)
        } else {
            Ok(())
        }
    }

    /// What is spoken on it, where several requests share it.
    pub(crate) fn session(&mut self) -> Option<&mut MultiplexedSession> {
        self.many.as_mut().and_then(|many| many.session.as_mut())
    }

    /// Closes it; requests that wait for it go on waiting.
    pub(crate) fn close(&mut self) {
        self.phase = ConnectionPhase::Closed;
        if let Some(many) = &mut self.many {
            many.say_goodbye(self.socket.as_ref());
        }
        self.socket = None;
        self.tls = None;
        self.reader.reset();
        self.read_at_ns = 0;
        self.unheard = EventFlags::empty();
    }
}

impl Many {
    /// The end of what is spoken; over QUIC the server knows of it only when it is told.
    fn say_goodbye(&mut self, socket: Option<&OwnedFd>) {
        let session = self.session.take();
        let datagrams = self.datagrams.take();
        if let (Some(MultiplexedSession::H3(mut session)), Some(datagrams)) = (session, datagrams)
            && let Some(socket) = socket
        {
            let now = Instant::now();
            session.close(now);
            let mut buffer = Vec::new();
            while let Some(transmit) = session.transmit(now, 1, &mut buffer) {
                // What is lost is lost: the server's own timer ends the connection then.
                let _ = datagrams.send(socket, &transmit, &buffer);
                buffer.clear();
            }
        }
    }
}

/// What is spoken on a connection that several requests share.
#[derive(Debug)]
pub(crate) enum MultiplexedSession {
    H2(Box<h2::H2ClientSession>),
    H3(Box<h3::H3ClientSession>),
}

impl MultiplexedSession {
    /// Can another request begin?
    pub(crate) fn has_room(&mut self) -> bool {
        match self {
            MultiplexedSession::H2(session) => session.has_room(),
            MultiplexedSession::H3(session) => session.has_room(),
        }
    }

    /// Begins a request of a kind; a path is of one that had none yet.
    pub(crate) fn start(
        &mut self,
        lane: u32,
        kind: usize,
        path: Option<&[u8]>,
        prepared: &PreparedRun,
    ) {
        match self {
            MultiplexedSession::H2(session) => {
                if let Some(common) = &prepared.h2 {
                    session.start(lane, kind, path, common);
                }
            }
            MultiplexedSession::H3(session) => {
                if let Some(common) = &prepared.h3 {
                    session.start(lane, kind, path, common);
                }
            }
        }
    }

    /// Begins a request of its own.
    pub(crate) fn start_alone(
        &mut self,
        lane: u32,
        head: &[u8],
        kept: Kept,
        prepared: &PreparedRun,
    ) {
        match self {
            MultiplexedSession::H2(session) => session.start_alone(lane, head, kept),
            MultiplexedSession::H3(session) => {
                if let Some(common) = &prepared.h3 {
                    session.start_alone(lane, head, kept, common);
                }
            }
        }
    }

    /// The request that a lane has just begun is to be broken off after a share of its answer.
    pub(crate) fn break_off_at(&mut self, lane: u32, share: f32) {
        match self {
            MultiplexedSession::H2(session) => session.break_off_at(lane, share),
            MultiplexedSession::H3(session) => session.break_off_at(lane, share),
        }
    }

    /// Has the head of a lane's answer come?
    pub(crate) fn has_head(&self, lane: u32) -> bool {
        match self {
            MultiplexedSession::H2(session) => session.has_head(lane),
            MultiplexedSession::H3(session) => session.has_head(lane),
        }
    }

    /// Status and what is kept so far of a lane's answer.
    pub(crate) fn coming(&self, lane: u32) -> Option<(u16, &Kept)> {
        match self {
            MultiplexedSession::H2(session) => session.coming(lane),
            MultiplexedSession::H3(session) => session.coming(lane),
        }
    }

    /// Requests that have no answer yet.
    pub(crate) fn active(&self) -> usize {
        match self {
            MultiplexedSession::H2(session) => session.active(),
            MultiplexedSession::H3(session) => session.active(),
        }
    }

    /// The lanes of those requests.
    pub(crate) fn lanes(&self) -> Vec<u32> {
        match self {
            MultiplexedSession::H2(session) => session.lanes().collect(),
            MultiplexedSession::H3(session) => session.lanes(),
        }
    }

    /// No request begins any more.
    pub(crate) fn stop_beginning(&mut self) {
        match self {
            MultiplexedSession::H2(session) => session.is_going_away = true,
            MultiplexedSession::H3(session) => session.is_going_away = true,
        }
    }

    /// The server takes no new requests.
    pub(crate) fn is_going_away(&self) -> bool {
        match self {
            MultiplexedSession::H2(session) => session.is_going_away(),
            MultiplexedSession::H3(session) => session.is_going_away(),
        }
    }

    /// Gives a lane's request up.
    pub(crate) fn cancel(&mut self, lane: u32) {
        match self {
            MultiplexedSession::H2(session) => session.cancel(lane),
            MultiplexedSession::H3(session) => session.cancel(lane),
        }
    }
}
