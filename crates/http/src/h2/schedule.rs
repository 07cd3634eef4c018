//! Whose turn it is to send (RFC 9218 section 10).
//!
//! The most urgent first. Among those of one urgency, answers that are of use only as a whole go
//! one after the other in the order of their requests; those that are of use in pieces take turns,
//! and so do the two kinds with each other.

use crate::h2::conn::Http2Connection;
use crate::h2::frame::PAYLOAD_BYTES;
use crate::h2::stream::{Http2StreamState, Writing};

/// A stream that may send, and how much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSendTurn {
    /// The stream.
    pub stream: u32,
    /// So many bytes. None where the window is full, and it may be that only an end is to be sent.
    pub bytes_max: usize,
}

/// What is remembered from one turn to the next.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    turns: u64,
    /// The last turn was of a stream that goes as a whole.
    was_whole: bool,
}

impl Http2Connection {
    /// Who is to send next; `None` when nobody has anything to send, or the client's windows are
    /// full.
    pub fn next_turn(&mut self) -> Option<StreamSendTurn> {
        if self.streams.is_empty() {
            return None;
        }
        let (mut urgency, mut whole, mut piece) = (u8::MAX, None, None);
        for stream in self.streams.iter() {
            let room = stream.send_window.min(self.send_window);
            //= rfc9113#6.9.1
            if !stream.is_ready || (room <= 0 && !stream.may_end) {
                continue;
            }
            if stream.priority.urgency < urgency {
                urgency = stream.priority.urgency;
                (whole, piece) = (None, None);
            }
            if stream.priority.urgency > urgency {
                continue;
            }
            let (place, key) = match stream.priority.is_incremental {
                false => (&mut whole, u64::from(stream.id)),
                true => (&mut piece, stream.turn),
            };
            if place.is_none_or(|(best, _)| key < best) {
                *place = Some((key, stream.id));
            }
        }
        let is_whole = match (whole, piece) {
            (Some(_), Some(_)) => !self.schedule.was_whole,
            (whole, _) => whole.is_some(),
        };
        let (_, id) = if is_whole { whole? } else { piece? };
        self.schedule.was_whole = is_whole;
        self.schedule.turns += 1;
        let (turn, most) = (self.schedule.turns, self.send_window);
        let frame_max = self.frame_max();
        let stream = self.streams.find(id)?;
        stream.turn = turn;
        let room = stream.send_window.min(most).max(0);
        Some(StreamSendTurn {
            stream: id,
            bytes_max: usize::try_from(room).map_or(frame_max, |room| room.min(frame_max)),
        })
    }

    /// The largest payload that goes into one frame: no more than others should wait for.
    fn frame_max(&self) -> usize {
        PAYLOAD_BYTES
    }

    /// How many bytes of body the stream may send now, in frames of any number.
    pub fn room(&mut self, stream: u32) -> usize {
        let most = self.send_window;
        let room = self
            .streams
            .find(stream)
            .map_or(0, |stream| stream.send_window.min(most));
        usize::try_from(room).unwrap_or(0)
    }

    /// Says whether the stream has bytes to send.
    pub fn set_ready(&mut self, stream: u32, is_ready: bool) {
        if let Some(stream) = self.streams.find(stream) {
            stream.is_ready = is_ready && matches!(stream.sending, Writing::Body(_));
        }
    }

    /// Says whether it may be that all the stream has to send is its end.
    pub fn set_may_end(&mut self, stream: u32, may_end: bool) {
        if let Some(stream) = self.streams.find(stream) {
            stream.may_end = may_end;
        }
    }

    /// True when the stream has bytes to send, and its window has no room for them.
    pub fn is_held_up(&mut self, stream: u32) -> bool {
        self.streams
            .find(stream)
            .is_some_and(|stream| stream.is_ready && !stream.may_end && stream.send_window <= 0)
    }

    /// True when the stream has bytes to send, and its window or the connection's has no room: from
    /// a client that sends nothing more there will never be any.
    pub fn has_no_room(&mut self, stream: u32) -> bool {
        let most = self.send_window;
        self.streams.find(stream).is_some_and(|stream| {
            stream.is_ready && !stream.may_end && stream.send_window.min(most) <= 0
        })
    }

    /// True when a stream has bytes to send, whether or not there is room for them.
    pub fn has_bytes(&mut self, stream: u32) -> bool {
        self.streams
            .find(stream)
            .is_some_and(|stream| stream.is_ready && !stream.may_end)
    }

    /// True when a stream has bytes to send, and the connection's window has no room for them.
    pub fn is_full(&self) -> bool {
        let has_bytes = |stream: &Http2StreamState| stream.is_ready && !stream.may_end;
        self.send_window <= 0 && self.streams.iter().any(has_bytes)
    }
}
