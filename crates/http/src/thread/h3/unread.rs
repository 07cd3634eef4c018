//! Bytes of bodies that nobody reads: each connection's windows let its client send many of them
//! (`H3_CONNECTION_WINDOW_BYTES`), and all connections together hold no more than
//! `limits.h3_unread`.
//!
//! The library does not say how much it holds of a stream, nor whether bytes wait behind others
//! that have not come. It is no more than the window of each stream whose input has not ended, and
//! no more than what has come beside what was read; the lesser of the two counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_trace::Outcome;

use crate::body::BodyError;
use crate::limits::H3_STREAM_WINDOW_BYTES;
use crate::response::Responder;
use crate::thread::h3::stream::{Http3RequestStream, Receiving};
use crate::thread::h3::{Http3ServerSession, Http3SessionStage};
use crate::thread::run::Thread;
use crate::thread::shared::Crew;

/// What of a datagram is no stream's: its header and seal, the heads of its frames, and a share of
/// datagrams that bring nothing new. A client may hide as much in each, and needs more to send it.
const DATAGRAM_OVERHEAD_BYTES: u64 = 64;
const REASON: &str = "limits.h3_unread: too many bytes of bodies wait that nobody reads";

/// A connection's part of what waits; it is given back when the connection goes.
pub(super) struct Unread {
    crew: Arc<Crew>,
    bytes: usize,
    /// So much of what has come unread is held nowhere.
    base_bytes: u64,
    /// In how many datagrams it came.
    datagrams: u64,
}

impl Unread {
    pub(super) fn of(crew: &Arc<Crew>) -> Unread {
        Unread {
            crew: Arc::clone(crew),
            bytes: 0,
            base_bytes: 0,
            datagrams: 0,
        }
    }

    /// It is so much now. Returns what all connections have.
    pub(super) fn set(&mut self, bytes: usize) -> usize {
        let total = &self.crew.h3_unread_bytes;
        let before = std::mem::replace(&mut self.bytes, bytes);
        match bytes >= before {
            true => total.fetch_add(bytes - before, Ordering::Relaxed) + (bytes - before),
            false => total.fetch_sub(before - bytes, Ordering::Relaxed) - (before - bytes),
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl<A: Responder + 'static> Thread<A> {
    /// Counts what of a connection waits. One with more than is left for all others gets its
    /// requests with unread bodies refused, or all whose input has not ended when nothing can be
    /// read of any: their bytes wait for others that the client holds back.
    pub(super) fn weigh_unread(&mut self, session: &mut Http3ServerSession) {
        let may_hold = |one: &&Http3RequestStream| one.receiving != Receiving::Ended;
        let count = session.streams.iter().filter(may_hold).count();
        let (came, datagrams) = session.conn.unread_bytes();
        let unread = &mut session.unread;
        let overhead = (datagrams - unread.datagrams) * DATAGRAM_OVERHEAD_BYTES;
        unread.datagrams = datagrams;
        // More may be read meanwhile than has come.
        unread.base_bytes = match count {
            0 => came,
            _ => came.min(unread.base_bytes + overhead),
        };
        let since = usize::try_from(came - unread.base_bytes).unwrap_or(usize::MAX);
        let bytes = since.min(count * H3_STREAM_WINDOW_BYTES as usize);
        if bytes == 0 && unread.bytes == 0 {
            return;
        }
        let left = self
            .limits
            .h3_unread_bytes
            .saturating_sub(unread.set(bytes));
        if bytes <= left {
            return;
        }
        let is_refused = match session.streams.iter().any(is_unread) {
            true => is_unread,
            false => |one: &Http3RequestStream| one.receiving != Receiving::Ended,
        };
        let mut at = 0;
        while at < session.streams.len() && session.stage == Http3SessionStage::Open {
            if is_refused(&session.streams[at]) {
                self.refuse_unread(session, at);
            }
            at += 1;
        }
        session.unread.set(0);
        // Answers are handed over in the next turn, whether or not the client says more.
        session.is_marked = true;
    }

    /// 503 unless an answer is under way.
    fn refuse_unread(&mut self, session: &mut Http3ServerSession, at: usize) {
        self.counters.limit_h3_unread.add(1);
        let (outcome, error) = (Outcome::Broken, BodyError::TooSlow);
        session.stop_reading(at, crate::h3::Http3ErrorCode::NoError);
        self.give_up_request(session, at, REASON, outcome, error, 503);
    }
}

/// Its client has sent something that nobody reads for now.
fn is_unread(stream: &Http3RequestStream) -> bool {
    stream.is_readable && stream.request.is_some() && matches!(stream.receiving, Receiving::Body(_))
}
