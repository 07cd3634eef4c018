//! A place for a connection: what is known of the one that is open.
//!
//! ```text
//! Closed --> Connecting --> (Handshaking) --> Open --> Closed
//! ```

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use super::h1::{AnswerReader, BadAnswer};
use super::h2;
use super::tls::Tls;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Closed,
    Connecting,
    /// TLS, or QUIC with the TLS that is in it.
    Handshaking,
    Open,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) phase: Phase,
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
}

/// What a connection for several requests at once has besides.
#[derive(Debug)]
pub(crate) struct Many {
    /// HTTP/2 on the open connection.
    pub(crate) h2: Option<h2::Session>,
    /// Lanes whose requests wait for the connection, or for room on it.
    pub(crate) waiting: VecDeque<u32>,
    /// There may be something to send.
    pub(crate) is_dirty: bool,
    /// When the server was heard of last.
    pub(crate) heard_ns: u64,
}

impl Conn {
    /// A closed one; HTTP/1 carries one request at a time.
    pub(crate) fn new(has_many: bool) -> Conn {
        Conn {
            phase: Phase::Closed,
            is_measured: false,
            socket: None,
            tls: None,
            reader: AnswerReader::default(),
            sent_bytes: 0,
            many: has_many.then(|| {
                Box::new(Many {
                    h2: None,
                    waiting: VecDeque::new(),
                    is_dirty: false,
                    heard_ns: 0,
                })
            }),
            begun_ns: 0,
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

    /// HTTP/2, where it is open.
    pub(crate) fn h2(&mut self) -> Option<&mut h2::Session> {
        self.many.as_mut().and_then(|many| many.h2.as_mut())
    }

    /// Closes it; requests that wait for it go on waiting.
    pub(crate) fn close(&mut self) {
        self.phase = Phase::Closed;
        self.socket = None;
        self.tls = None;
        self.reader.reset();
        if let Some(many) = &mut self.many {
            many.h2 = None;
        }
    }
}
