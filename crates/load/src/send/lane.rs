//! A place for one request: over HTTP/1 one for each connection, over HTTP/2 and HTTP/3 as many as
//! a connection is to carry at once.
//!
//! ```text
//! Idle --> (Opening) --> (Queued) --> Sending --> Waiting --> Idle | Paused
//! ```

use crate::replay::Logged;
use crate::request::Request;

/// What a lane is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing: no request.
    Idle,
    /// A request waits for its connection.
    Opening,
    /// A request waits because the server takes no more at once on this connection.
    Queued,
    /// The request is on its way, in part.
    Sending,
    /// The request is sent, its answer is not complete.
    Waiting,
    /// Between two requests: the time to think, or the pause after a failed connection.
    Paused,
}

/// One lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) state: State,
    /// Whether the request counts: it was due after the warm-up.
    pub(crate) is_measured: bool,
    /// Whether it was counted already that the request did not leave when it was due.
    pub(crate) is_delayed: bool,
    /// How often the request was sent again, because the server had not looked at it.
    pub(crate) again_count: u8,
    /// The kind of request.
    pub(crate) kind: u32,
    /// The connection that carries it.
    pub(crate) conn: u32,
    /// What a log says of the request, where there is one.
    pub(crate) logged: Option<Box<Logged>>,
    /// Over HTTP/1, the request with the target of the log.
    pub(crate) bytes: Vec<u8>,
    /// When the request was due, and when it was begun, in nanoseconds of the run.
    pub(crate) intended_ns: u64,
    pub(crate) begun_ns: u64,
    /// Measured answers.
    pub(crate) answered: u64,
}

impl Lane {
    pub(crate) fn new() -> Lane {
        Lane {
            state: State::Idle,
            is_measured: false,
            is_delayed: false,
            again_count: 0,
            kind: 0,
            conn: 0,
            logged: None,
            bytes: Vec::new(),
            intended_ns: 0,
            begun_ns: 0,
            answered: 0,
        }
    }

    /// The bytes of its request over HTTP/1, with those of all kinds of requests at hand.
    pub(crate) fn request<'a>(&'a self, all: &'a [Request]) -> &'a [u8] {
        match self.logged {
            None => &all[self.kind as usize].bytes,
            Some(_) => &self.bytes,
        }
    }

    /// Is there a request?
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.state, State::Idle | State::Paused)
    }
}
