//! The body of a request on its way to the handler.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hob_trace::Fault;
use hob_trace::watch::RequestStage;

use crate::body::BodyError;
use crate::limits::BODY_WINDOW_BYTES;
use crate::request::{Exchange, Request};
use crate::splice_pipe::SplicePipe;

/// The request's body on its way to the handler.
pub(crate) struct Incoming {
    pub(crate) pieces: VecDeque<BodyPiece>,
    pub(crate) held_bytes: usize,
    pub(crate) state: IncomingState,
    pub(crate) announced: Option<u64>,
    pub(crate) is_wanted: bool,
    /// Pieces may be pipes.
    pub(crate) may_pipe: bool,
    /// What of that was counted.
    pub(crate) counted: CountedPipes,
    /// Since when the handler waits for bytes that the client has not sent, in microseconds of
    /// loop time; 0 while it does not.
    pub(crate) wait_since_us: u64,
    /// Bytes that whoever watches has been shown, or could have been.
    pub(crate) shown_bytes: u64,
    /// It is what comes in through a tunnel: silence is nobody's fault.
    pub(crate) is_tunnel: bool,
    pub(crate) trailers: Vec<(Bytes, Bytes)>,
    pub(crate) waker: Option<Waker>,
}

impl Default for Incoming {
    /// No body.
    fn default() -> Incoming {
        Incoming {
            pieces: VecDeque::new(),
            held_bytes: 0,
            state: IncomingState::Ended,
            announced: Some(0),
            is_wanted: false,
            may_pipe: false,
            counted: CountedPipes::default(),
            wait_since_us: 0,
            shown_bytes: 0,
            is_tunnel: false,
            trailers: Vec::new(),
            waker: None,
        }
    }
}

/// A piece of a request's body.
pub enum BodyPiece {
    /// Bytes in our memory.
    Bytes(Bytes),
    /// Bytes in a pipe.
    Piped(SplicePipe),
}

impl BodyPiece {
    /// Size in bytes.
    pub fn len(&self) -> usize {
        match self {
            BodyPiece::Bytes(bytes) => bytes.len(),
            BodyPiece::Piped(pipe) => pipe.len(),
        }
    }

    /// True for one without bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes in our memory.
    ///
    /// # Errors
    /// A pipe could not be read.
    pub fn into_bytes(self) -> Result<Bytes, BodyError> {
        const UNREADABLE: &str = "the pipe of a request body could not be read";
        match self {
            BodyPiece::Bytes(bytes) => Ok(bytes),
            BodyPiece::Piped(pipe) => {
                let unreadable = |_| BodyError::Source(Fault::Server, UNREADABLE);
                pipe.read().map_err(unreadable)
            }
        }
    }
}

/// What counters know of a body that may come in pipes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CountedPipes {
    /// That some of it did.
    pub(crate) has_come: bool,
    /// That there was none for some of it.
    pub(crate) has_lacked: bool,
}

/// Whether more of a request's body will come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IncomingState {
    #[default]
    Ended,
    Open,
    Broken(BodyError),
}

impl Incoming {
    /// What comes from here on came through a tunnel.
    pub(crate) fn begin_tunnel(&mut self) {
        self.is_tunnel = true;
        self.wait_since_us = 0;
        self.state = IncomingState::Open;
    }

    pub(crate) fn push(&mut self, piece: BodyPiece) {
        self.held_bytes += piece.len();
        self.pieces.push_back(piece);
        self.wake();
    }

    /// How many bytes more may come in. Pipes come one at a time.
    pub(crate) fn room(&self) -> usize {
        match self.is_wanted && !(self.may_pipe && self.held_bytes > 0) {
            true => BODY_WINDOW_BYTES.saturating_sub(self.held_bytes),
            false => 0,
        }
    }

    /// Nobody will take what has come: the pipes in it serve others.
    pub(crate) fn drop_pieces(&mut self) {
        self.pieces.clear();
        self.held_bytes = 0;
    }

    pub(crate) fn end(&mut self) {
        self.state = IncomingState::Ended;
        self.wake();
    }

    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.state, IncomingState::Broken(_))
    }

    pub(crate) fn break_off(&mut self, error: BodyError) {
        self.state = IncomingState::Broken(error);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Request {
    /// True while its handler waits for bytes that the client has not sent.
    pub(crate) fn waits_for_body(&self) -> bool {
        self.exchange.body.borrow().wait_since_us != 0
    }

    /// True once raw bytes flow both ways.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.exchange.body.borrow().is_tunnel
    }

    /// Sets the largest body accepted, in bytes; it holds for what has not been read yet. Returns
    /// false when the announced size is already over it.
    pub fn limit_body(&self, bytes: u64) -> bool {
        debug_assert!(!self.is_on_detour(), "there is no body to limit");
        self.exchange.body_limit.set(bytes);
        self.exchange
            .body
            .borrow()
            .announced
            .is_none_or(|announced| announced <= bytes)
    }

    /// What the client asks to speak through a tunnel, such as `websocket`: by `Upgrade`, where it
    /// sends no body, or by extended CONNECT. Who answers such a request with
    /// [`Body::Tunnel`](crate::Body::Tunnel) opens it; any other answer ignores the wish.
    pub fn tunnel(&self) -> Option<&[u8]> {
        if self.is_on_detour() {
            return None;
        }
        let head = self.sent_head();
        match head.connect_protocol() {
            None if self.body_len() == Some(0) => head.upgrade(),
            protocol => protocol,
        }
    }

    /// The announced size of the body in bytes; `None` when it comes in chunks.
    pub fn body_len(&self) -> Option<u64> {
        if self.is_on_detour() {
            return Some(0);
        }
        self.exchange.body.borrow().announced
    }

    /// The next piece of the body; `None` at its end. Asking is what sends `100 Continue` to a
    /// client that waits for it, and what lets more bytes in: at most 64 KiB are held unread.
    pub fn poll_body(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let piece = self.poll_body_piece(cx);
        piece.map(|piece| piece.map(|piece| piece?.into_bytes()))
    }

    /// From now on pieces of the body may be pipes, or are none any more. That is for who passes it
    /// on to another socket, asks with [`Request::poll_body_piece`], and wants much of it. Only
    /// what comes in clear text over HTTP/1 does so, and what nobody watches.
    pub fn take_body_in_pipes(&self, may_pipe: bool) {
        self.exchange.body.borrow_mut().may_pipe = may_pipe;
    }

    /// The same as [`Request::poll_body`], for who takes pipes.
    pub fn poll_body_piece(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyPiece, BodyError>>> {
        if self.is_on_detour() {
            return Poll::Ready(None);
        }
        let mut body = self.exchange.body.borrow_mut();
        if let Some(piece) = body.pieces.pop_front() {
            body.held_bytes -= piece.len();
            self.exchange.end_body_wait(&mut body);
            self.exchange.notify();
            if let (BodyPiece::Bytes(bytes), true) = (&piece, self.is_traced()) {
                let before = body.shown_bytes;
                body.shown_bytes += bytes.len() as u64;
                self.tell_body(RequestStage::RequestBody, before, bytes);
            }
            return Poll::Ready(Some(Ok(piece)));
        }
        match body.state {
            IncomingState::Ended => {
                self.exchange.end_body_wait(&mut body);
                Poll::Ready(None)
            }
            IncomingState::Broken(error) => {
                self.exchange.end_body_wait(&mut body);
                Poll::Ready(Some(Err(error)))
            }
            IncomingState::Open => {
                if body.wait_since_us == 0 && !body.is_tunnel {
                    body.wait_since_us = self.exchange.reactor.now_us();
                }
                body.waker = Some(cx.waker().clone());
                if !body.is_wanted {
                    body.is_wanted = true;
                    self.exchange.notify();
                }
                Poll::Pending
            }
        }
    }

    /// How its body broke off, if it has.
    pub fn body_error(&self) -> Option<BodyError> {
        match self.exchange.body.borrow().state {
            IncomingState::Broken(error) => Some(error),
            IncomingState::Open | IncomingState::Ended => None,
        }
    }

    /// The next piece of the body, awaited.
    pub async fn next_body(&self) -> Option<Result<Bytes, BodyError>> {
        std::future::poll_fn(|cx| self.poll_body(cx)).await
    }

    /// The same for who takes pipes.
    pub async fn next_body_piece(&self) -> Option<Result<BodyPiece, BodyError>> {
        std::future::poll_fn(|cx| self.poll_body_piece(cx)).await
    }

    /// Fields after a chunked body; complete once the body has ended.
    pub fn trailers(&self) -> Vec<(Bytes, Bytes)> {
        self.exchange.body.borrow().trailers.clone()
    }
}

impl Exchange {
    /// The handler waits no more for bytes of the body.
    pub(crate) fn end_body_wait(&self, body: &mut Incoming) {
        if body.wait_since_us != 0 {
            let since_us = std::mem::take(&mut body.wait_since_us);
            let waited_us = self.reactor.now_us().saturating_sub(since_us);
            self.record.borrow_mut().client_body_us += waited_us;
        }
    }
}
