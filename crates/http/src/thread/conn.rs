//! A connection: socket, engine, what is on its way in and out, and the stage its answer is in.

use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use rustix::event::epoll::EventFlags;
use rustix::net::sockopt;

use crate::body::{BodyStream, FetchFuture, FileBody, Region};
use crate::deadline::Deadline;
use crate::h1;
use crate::reactor::wake::KeyWaker;
use crate::request::{ConnectionFacts, HalfClose, Request};
use crate::response::Response;
use crate::splice_pipe::SplicePipe;
use crate::thread::h2::Http2ServerSession;
use crate::thread::pipe::Splicing;
use crate::thread::proxy_header::BehindHeader;
use crate::thread::tls::Secure;
use crate::thread::visit::Visit;

/// How often a client that has ended its side is asked whether it is still there.
const HALF_CLOSED_PROBE: std::time::Duration = std::time::Duration::from_secs(15);

pub(crate) struct SocketConnection {
    /// The client.
    pub(crate) socket: OwnedFd,
    /// Its key among the seats; never given to another connection.
    pub(crate) key: u64,
    /// HTTP/1: where in a request or an answer the next byte belongs.
    pub(crate) core: h1::Http1Connection,
    /// What takes the place of `core` while the connection speaks HTTP/2.
    pub(crate) h2: Option<Box<Http2ServerSession>>,
    /// What all its requests have in common: addresses, TLS, when it came.
    pub(crate) facts: Rc<ConnectionFacts>,
    /// TLS; `None` in clear text.
    pub(crate) secure: Option<Box<Secure>>,
    /// Bytes read from the socket and not used yet.
    pub(crate) carry: Vec<u8>,
    /// What is to leave, and how: bytes, a file, a pipe.
    pub(crate) out: Outgoing,
    /// The request being answered.
    pub(crate) request: Option<Request>,
    /// What it waits for.
    pub(crate) stage: ConnectionStage,
    /// Wakes the thread to drive it, for answers that had to wait.
    pub(crate) waker: Option<Arc<KeyWaker>>,
    /// Requests so far.
    pub(crate) request_count: u32,
    /// When it was accepted, in milliseconds of loop time.
    pub(crate) opened_ms: u64,
    /// Since when the socket takes none of the bytes there are, in microseconds; 0 while it does.
    pub(crate) take_since_us: u64,
    /// The tick of the wheel this connection stands in; 0 is none.
    pub(crate) tick: u64,
    /// The socket may have bytes for us.
    pub(crate) is_readable: bool,
    /// The client has sent FIN.
    pub(crate) is_half_closed: bool,
    /// The connection is broken both ways.
    pub(crate) is_reset: bool,
    /// How far our direction of a tunnel is, which may end before the client's.
    pub(crate) output_end: OutputEnd,
    /// The socket is in the epoll set.
    pub(crate) is_watched: bool,
    /// Towards which limits it counts.
    pub(crate) counted: CountedLimits,
    /// It counts among those of its listener.
    pub(crate) visit: Option<Visit>,
    /// The client is to see a reset, not an end.
    pub(crate) must_reset: bool,
    /// It came in clear text to where TLS is spoken: requests are refused.
    pub(crate) must_be_secure: bool,
    /// Stands in the queue of bulk answers.
    pub(crate) is_in_bulk: bool,
}

/// How far our direction of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputEnd {
    /// Bytes go.
    Open,
    /// It ends once everything that was made has left.
    Due,
    /// The client was told; what it sends is still read.
    Told,
}

/// Towards which limits a connection counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedLimits {
    /// The server's.
    Server,
    /// The server's and its client's.
    ServerAndClient,
    /// None of those a user sets: its listener stands aside.
    Aside,
    /// None: there was no room for it, and it is told so.
    Refused,
}

/// What a connection is doing.
pub(crate) enum ConnectionStage {
    /// The header of the PROXY protocol is not all there.
    Header(Box<BehindHeader>),
    /// TLS is not established yet.
    Handshake,
    /// Reading a request head, or waiting for one.
    Reading,
    /// There is no room for it; what it speaks is not known yet.
    TurnedAway,
    /// The answer is on its way.
    Later(Pin<Box<dyn Future<Output = Response>>>),
    /// The body comes as a stream, or raw bytes flow both ways.
    Stream(Box<dyn BodyStream>),
    /// The body comes out of a pipe.
    Pipe(Box<Splicing>),
    /// All of the answer is queued; what the engine says comes next follows when it has left.
    Flushing(h1::AfterAnswer),
    /// The rest of the request body is read and dropped; then the next request.
    Discarding,
    /// Our side is shut; input is read and dropped until FIN or the deadline.
    Lingering,
}

/// Bytes waiting for the socket, in order.
#[derive(Default)]
pub(crate) struct Outgoing {
    pub(crate) pieces: VecDeque<OutputPiece>,
    /// Bytes of pieces in memory (files and pipes not counted).
    pub(crate) held_bytes: usize,
    pub(crate) fetch: Option<FetchFuture>,
}

pub(crate) enum OutputPiece {
    /// Our own bytes, from an offset on.
    Own(Vec<u8>, usize),
    /// Counted bytes.
    Shared(Bytes),
    /// Shared memory, from an offset on.
    Region(Box<dyn Region>, usize),
    /// A file range.
    File(FileBody),
    /// Bytes in a pipe, of a connection in clear text.
    Piped(SplicePipe),
    /// Everything before this belongs to this request's answer.
    End(Request),
}

impl SocketConnection {
    pub(crate) fn new(
        socket: OwnedFd,
        core: h1::Http1Connection,
        facts: Rc<ConnectionFacts>,
    ) -> SocketConnection {
        SocketConnection {
            socket,
            key: 0,
            core,
            h2: None,
            facts,
            secure: None,
            carry: Vec::new(),
            out: Outgoing::default(),
            request: None,
            stage: ConnectionStage::Reading,
            waker: None,
            request_count: 0,
            opened_ms: 0,
            take_since_us: 0,
            tick: 0,
            is_readable: true,
            is_half_closed: false,
            is_reset: false,
            output_end: OutputEnd::Open,
            is_watched: false,
            counted: CountedLimits::Server,
            visit: None,
            must_reset: false,
            must_be_secure: false,
            is_in_bulk: false,
        }
    }

    /// True when nothing is under way: the connection may be closed without loss.
    pub(crate) fn is_idle(&self) -> bool {
        if let Some(session) = &self.h2 {
            return session.is_idle() && self.carry.is_empty() && !self.has_unsent();
        }
        matches!(self.stage, ConnectionStage::Reading)
            && self.core.is_between_requests()
            && self.carry.is_empty()
            && !self.has_unsent()
    }

    /// The socket has not taken all that was queued or sealed for it.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.out.is_empty() || self.has_sealed()
    }

    /// Bytes in memory that the socket has not taken.
    pub(crate) fn unsent_bytes(&self) -> usize {
        let sealed_bytes = self.secure.as_ref().map_or(0, |s| s.outbound_bytes());
        self.out.held_bytes + sealed_bytes
    }

    /// When time will be up, and for what.
    pub(crate) fn deadline(&self) -> (u64, Deadline) {
        let handshake = self.secure.as_ref().and_then(|s| s.handshake_by_ms());
        match (handshake, &self.h2) {
            (Some(by_ms), _) => (by_ms, Deadline::Handshake),
            (None, Some(session)) => session.deadline(),
            (None, None) => self.core.deadline(),
        }
    }

    /// True when the client has ended its side and the answer under way takes that for its leaving.
    //= rfc9112#9.6
    pub(crate) fn has_left_by_fin(&self) -> bool {
        let Some(request) = self.request.as_ref().filter(|_| self.is_half_closed) else {
            return false;
        };
        // Who announced its last request may end its side behind it and wait for the answer.
        let may_wait = self.core.client_closes() && !request.exchange.body.borrow().is_broken();
        !may_wait && request.exchange.said.half_close.get() == HalfClose::Cancel
    }

    /// An answer is made for a client that has ended its side: one that has closed its socket as
    /// well says so to the kernel's probes, once its own kernel has forgotten the connection.
    pub(crate) fn probe_half_closed(&self) {
        if !self.is_half_closed || sockopt::socket_keepalive(&self.socket) != Ok(false) {
            return;
        }
        let probed = sockopt::set_tcp_keepidle(&self.socket, HALF_CLOSED_PROBE)
            .and_then(|()| sockopt::set_tcp_keepintvl(&self.socket, HALF_CLOSED_PROBE))
            .and_then(|()| sockopt::set_socket_keepalive(&self.socket, true));
        if let Err(error) = probed {
            // A Unix socket tells its other end's close by itself.
            tracing::debug!(%error, "a connection cannot be probed");
        }
    }

    /// True when the kernel says that both directions are closed, and one of them was not by us.
    pub(crate) fn is_hung_up(&self, flags: EventFlags) -> bool {
        // After a half-close of ours the client's end is the other half, and no more than that.
        let broken = match self.output_end {
            OutputEnd::Told => EventFlags::ERR,
            OutputEnd::Open | OutputEnd::Due => EventFlags::HUP | EventFlags::ERR,
        };
        flags.intersects(broken)
    }

    /// The close that follows resets the connection and drops what the kernel still holds.
    pub(crate) fn close_with_reset(&mut self) {
        self.must_reset = true;
        let at_once = Some(std::time::Duration::ZERO);
        if let Err(error) = sockopt::set_socket_linger(&self.socket, at_once) {
            tracing::debug!(%error, "a connection could not be set to reset");
        }
    }
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn push(&mut self, piece: OutputPiece) {
        self.held_bytes += piece.held_bytes();
        self.pieces.push_back(piece);
    }

    pub(crate) fn push_front(&mut self, piece: OutputPiece) {
        self.held_bytes += piece.held_bytes();
        self.pieces.push_front(piece);
    }

    pub(crate) fn pop(&mut self) -> Option<OutputPiece> {
        let piece = self.pieces.pop_front()?;
        self.held_bytes -= piece.held_bytes();
        if self.pieces.is_empty() {
            // An idle connection holds no buffer.
            self.pieces = VecDeque::new();
        }
        Some(piece)
    }

    /// Runs `push` with the buffer that comes after everything queued.
    pub(crate) fn with_tail<R>(&mut self, push: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        if let Some(OutputPiece::Own(bytes, _)) = self.pieces.back_mut() {
            let before = bytes.len();
            let result = push(bytes);
            self.held_bytes += bytes.len() - before;
            return result;
        }
        let mut bytes = Vec::new();
        let result = push(&mut bytes);
        if !bytes.is_empty() {
            self.push(OutputPiece::Own(bytes, 0));
        }
        result
    }

    /// Forgets the first `count` bytes of the pieces in memory at the front.
    pub(crate) fn consume(&mut self, mut count: usize) {
        self.held_bytes -= count;
        while count > 0 {
            let (len, left) = match self.pieces.front_mut() {
                Some(OutputPiece::Own(bytes, from)) => {
                    let len = (bytes.len() - *from).min(count);
                    *from += len;
                    (len, bytes.len() - *from)
                }
                Some(OutputPiece::Shared(bytes)) => {
                    let len = bytes.len().min(count);
                    bytes::Buf::advance(bytes, len);
                    (len, bytes.len())
                }
                Some(OutputPiece::Region(region, from)) => {
                    let len = (region.raw().1 - *from).min(count);
                    *from += len;
                    (len, region.raw().1 - *from)
                }
                _ => unreachable!("only bytes in memory are gathered"),
            };
            count -= len;
            if left == 0 {
                self.pieces.pop_front();
            }
        }
        // Empty pieces carry nothing and would stop the next gathering.
        while self.pieces.front().is_some_and(OutputPiece::is_spent) {
            self.pieces.pop_front();
        }
        if self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
    }
}

impl OutputPiece {
    fn held_bytes(&self) -> usize {
        match self {
            OutputPiece::Own(bytes, from) => bytes.len() - from,
            OutputPiece::Shared(bytes) => bytes.len(),
            OutputPiece::Region(region, from) => region.raw().1 - from,
            OutputPiece::File(_) | OutputPiece::Piped(_) | OutputPiece::End(_) => 0,
        }
    }

    /// Bytes of it that have not been handed to the kernel.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        match self {
            OutputPiece::Own(bytes, from) => (bytes.len() - from) as u64,
            OutputPiece::Shared(bytes) => bytes.len() as u64,
            OutputPiece::Region(region, from) => (region.raw().1 - from) as u64,
            OutputPiece::File(file) => file.len,
            OutputPiece::Piped(pipe) => pipe.len() as u64,
            OutputPiece::End(_) => 0,
        }
    }

    pub(crate) fn is_spent(&self) -> bool {
        match self {
            OutputPiece::Own(bytes, from) => *from == bytes.len(),
            OutputPiece::Shared(bytes) => bytes.is_empty(),
            OutputPiece::Region(region, from) => *from == region.raw().1,
            OutputPiece::Piped(pipe) => pipe.is_empty(),
            OutputPiece::File(_) | OutputPiece::End(_) => false,
        }
    }
}
