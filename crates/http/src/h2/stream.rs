//! The streams of a connection: those that are open, and what is known of those that are not.

use crate::h2::frame::WINDOW_BYTES;
use crate::limits::H2_RESETS_REMEMBERED;
use crate::priority::Priority;

/// One stream, from its HEADERS until both sides have ended it.
#[derive(Debug)]
pub(super) struct Http2StreamState {
    pub(super) id: u32,
    /// What the client may still send.
    pub(super) receive_window: i64,
    /// What it may have sent that nobody has read: at most, and more than at first for one whose
    /// reader keeps up.
    pub(super) window_bytes: i64,
    /// What we may still send; below zero after the client has made its windows smaller.
    pub(super) send_window: i64,
    pub(super) receiving: Receiving,
    pub(super) sending: Writing,
    pub(super) is_head_method: bool,
    pub(super) continue_is_due: bool,
    pub(super) is_tunnel: bool,
    /// END_STREAM was sent, and what the client sends is still read.
    pub(super) is_half_closed: bool,
    pub(super) priority: Priority,
    /// When it last sent, among those that take turns.
    pub(super) turn: u64,
    /// It has bytes to send.
    pub(super) is_ready: bool,
    /// It may be that its end is all it has to send, which needs no window.
    pub(super) may_end: bool,
}

/// How far the request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// A body comes: so many bytes more, when announced.
    Body(Option<u64>),
    /// The answer is complete and nobody reads what still comes.
    Unread(Option<u64>),
    /// The request is complete.
    Ended,
}

/// How far the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// No head yet.
    Nothing,
    /// A body goes: so many bytes more, when announced.
    Body(Option<u64>),
    /// END_STREAM was sent.
    Ended,
}

impl Http2StreamState {
    pub(super) fn new(id: u32, send_window: i64) -> Http2StreamState {
        Http2StreamState {
            id,
            receive_window: WINDOW_BYTES,
            window_bytes: WINDOW_BYTES,
            send_window,
            receiving: Receiving::Ended,
            sending: Writing::Nothing,
            is_head_method: false,
            continue_is_due: false,
            is_tunnel: false,
            is_half_closed: false,
            priority: Priority::default(),
            turn: 0,
            is_ready: false,
            may_end: false,
        }
    }
}

/// The open streams of a connection. There are few: they are looked for one by one.
#[derive(Debug, Default)]
pub(super) struct Http2Streams {
    ids: Vec<u32>,
    open: Vec<Http2StreamState>,
    /// The last streams that we reset, in a ring: what the client had sent by then is passed over.
    reset: Vec<u32>,
    next_reset: usize,
    /// The last streams that the client reset, and those that both sides ended.
    left: Vec<u32>,
    next_left: usize,
    ended: Vec<u32>,
    next_ended: usize,
    /// Tunnels whose stream both sides have ended, and whose program has not come to its end. They
    /// are no more among those that the client may have open.
    closed_tunnels: Vec<u32>,
}

impl Http2Streams {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// True when no answer is under way: what is left is the rest of requests nobody reads.
    pub(super) fn are_answered(&self) -> bool {
        let is_answered =
            |stream: &Http2StreamState| stream.sending == Writing::Ended && !stream.is_half_closed;
        self.closed_tunnels.is_empty() && self.open.iter().all(is_answered)
    }

    pub(super) fn find(&mut self, id: u32) -> Option<&mut Http2StreamState> {
        let at = self.ids.iter().position(|&open| open == id)?;
        self.open.get_mut(at)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Http2StreamState> {
        self.open.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Http2StreamState> {
        self.open.iter_mut()
    }

    pub(super) fn add(&mut self, stream: Http2StreamState) {
        self.ids.push(stream.id);
        self.open.push(stream);
    }

    pub(super) fn remove(&mut self, id: u32) {
        let Some(at) = self.ids.iter().position(|&open| open == id) else {
            return;
        };
        self.ids.swap_remove(at);
        self.open.swap_remove(at);
    }

    /// Both sides have ended it: its place is free.
    pub(super) fn close(&mut self, id: u32) {
        if self.find(id).is_some_and(|stream| stream.is_half_closed) {
            self.closed_tunnels.push(id);
        }
        self.remove(id);
        self.note_ended(id);
    }

    /// The program of a tunnel has come to its end; true if both sides had ended its stream.
    pub(super) fn forget_closed_tunnel(&mut self, id: u32) -> bool {
        let at = self.closed_tunnels.iter().position(|&closed| closed == id);
        at.map(|at| self.closed_tunnels.swap_remove(at)).is_some()
    }

    /// Bytes by which windows have grown.
    pub(super) fn grown_bytes(&self) -> i64 {
        let grown = |stream: &Http2StreamState| stream.window_bytes - WINDOW_BYTES;
        self.open.iter().map(grown).sum()
    }

    /// An idle connection holds little: what one request after the other needs.
    pub(super) fn release(&mut self) {
        if self.open.is_empty() && self.open.capacity() > KEPT {
            self.ids = Vec::new();
            self.open = Vec::new();
        }
    }

    /// We have reset it.
    pub(super) fn note_reset(&mut self, id: u32) {
        remember(&mut self.reset, &mut self.next_reset, id);
    }

    /// The client has reset it.
    pub(super) fn note_left(&mut self, id: u32) {
        remember(&mut self.left, &mut self.next_left, id);
    }

    /// Both sides have ended it.
    pub(super) fn note_ended(&mut self, id: u32) {
        remember(&mut self.ended, &mut self.next_ended, id);
    }

    /// True when both sides ended it a moment ago.
    pub(super) fn was_ended(&self, id: u32) -> bool {
        self.ended.contains(&id)
    }

    /// True when frames for it are to be passed over: we have reset it a moment ago.
    pub(super) fn was_reset(&self, id: u32) -> bool {
        self.reset.contains(&id)
    }

    /// True when the client itself reset it a moment ago.
    pub(super) fn was_left(&self, id: u32) -> bool {
        self.left.contains(&id)
    }
}

/// Places for streams that an idle connection keeps.
const KEPT: usize = 4;

fn remember(ring: &mut Vec<u32>, next: &mut usize, id: u32) {
    if ring.len() < H2_RESETS_REMEMBERED {
        ring.push(id);
    } else if let Some(place) = ring.get_mut(*next) {
        *place = id;
        *next = (*next + 1) % H2_RESETS_REMEMBERED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_streams_that_were_reset_are_remembered() {
        let mut streams = Http2Streams::default();
        let most = H2_RESETS_REMEMBERED as u32;
        for id in 0..most + 10 {
            streams.note_reset(id);
        }
        assert!(!streams.was_reset(9));
        assert!((10..most + 10).all(|id| streams.was_reset(id)));
        assert!(!streams.was_left(20));
    }
}
