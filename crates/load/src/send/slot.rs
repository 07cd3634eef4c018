//! A place for a connection: what is known of the one that is open and of its request.
//!
//! ```text
//! Idle --> Connecting --> (Handshaking) --> Sending --> Waiting --> Idle | Paused
//!   \------------- (open already) --------------^
//! ```

use std::os::fd::OwnedFd;

use super::h1::{AnswerReader, BadAnswer};
use super::tls::Tls;

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing: no request, perhaps an open connection.
    Idle,
    /// A request waits for its connection.
    Connecting,
    /// A request waits for the TLS handshake of its connection.
    Handshaking,
    /// The request is on its way, in part.
    Sending,
    /// The request is sent, its answer is not complete.
    Waiting,
    /// Between two requests: the time to think, or the pause after a failed connection.
    Paused,
}

/// One slot.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) state: State,
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) tls: Option<Box<Tls>>,
    pub(crate) reader: AnswerReader,
    /// The URL that was asked for.
    pub(crate) class: usize,
    /// Whether the request counts: it was due after the warm-up.
    pub(crate) is_measured: bool,
    /// When the request was due, and when it was begun, in nanoseconds of the run.
    pub(crate) intended_ns: u64,
    pub(crate) begun_ns: u64,
    /// Bytes of the request that are sent.
    pub(crate) sent_bytes: usize,
    /// Measured answers.
    pub(crate) answered: u64,
}

impl Slot {
    pub(crate) fn new() -> Slot {
        Slot {
            state: State::Idle,
            socket: None,
            tls: None,
            reader: AnswerReader::default(),
            class: 0,
            is_measured: false,
            intended_ns: 0,
            begun_ns: 0,
            sent_bytes: 0,
            answered: 0,
        }
    }

    /// Is there a request?
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.state, State::Idle | State::Paused)
    }

    /// The server has ended the connection: is that the end of an answer?
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

    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.tls = None;
        self.reader.reset();
    }
}
