//! HTTP/2 on a thread: what its engine makes of bytes goes to answers, and theirs back into frames.
//!
//! - `drive` what happens when a connection can go on: send, look at streams, read, fill
//! - `requests` what has come: requests, their bodies, their ends
//! - `respond` answers: heads at once, bodies in the order of their urgency
//! - `stream` a request being answered
//! - `ending` deadlines, and how streams and connections end
//!
//! All frames of a turn, of however many streams, are made in the thread's output and leave in one
//! write. The connection below takes and gives bytes and knows nothing of this: it carries HTTP/1
//! before, and the end of the connection after.

mod drive;
mod ending;
mod requests;
mod respond;
mod stream;

use crate::deadline::Deadline;
use crate::h2;
use crate::request::Request;

use crate::thread::source::Tiny;
use stream::Http2RequestStream;

/// What a connection has beside its socket while it speaks HTTP/2.
pub(crate) struct Http2ServerSession {
    pub(crate) core: h2::Http2Connection,
    /// Streams whose answers take more than a turn.
    pub(crate) streams: Vec<Http2RequestStream>,
    /// What becomes of tiny frames of answers.
    tiny: Tiny,
    /// Until when the client must take bytes; `u64::MAX` when it has all there are.
    write_by_ms: u64,
    /// Bytes it has made so far, without those that stand in the thread's output.
    made_bytes: u64,
    /// More frames stand in the carry than this turn had time for.
    is_cut: bool,
    /// Nothing more will be read: the last GOAWAY is on its way.
    is_over: bool,
}

impl Http2ServerSession {
    fn new(core: h2::Http2Connection, now_ms: u64) -> Http2ServerSession {
        Http2ServerSession {
            core,
            streams: Vec::new(),
            tiny: Tiny::new(now_ms),
            write_by_ms: u64::MAX,
            made_bytes: 0,
            // What was read to find out about the protocol stands there.
            is_cut: true,
            is_over: false,
        }
    }

    /// True when no stream is open and no frame half read.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.core.is_idle()
    }

    /// The requests that are being answered.
    pub(crate) fn requests(&self) -> impl Iterator<Item = Request> {
        self.streams.iter().map(|stream| stream.request.clone())
    }

    fn find(&self, id: u32) -> Option<usize> {
        self.streams.iter().position(|stream| stream.id == id)
    }

    /// When time will be up, and for what.
    pub(crate) fn deadline(&self) -> (u64, Deadline) {
        let mut first = self.core.deadline();
        let mut sooner = |by_ms: u64, deadline: Deadline| {
            if by_ms < first.0 {
                first = (by_ms, deadline);
            }
        };
        sooner(self.write_by_ms, Deadline::Write);
        for stream in &self.streams {
            sooner(stream.body_by_ms, Deadline::Body);
            sooner(stream.write_by_ms, Deadline::Write);
        }
        first
    }
}
