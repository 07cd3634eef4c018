//! A request on its connection.

use crate::h2::frame::WINDOW_BYTES;

/// One stream, from its HEADERS until both sides have ended it.
#[derive(Debug)]
pub(super) struct ClientStream {
    pub(super) id: u32,
    /// What we may still send; below zero after the other side has made its windows smaller.
    pub(super) send_window: i64,
    /// What the other side may still send.
    pub(super) receive_window: i64,
    /// What it may have sent that nobody has taken: at most, and more than at first where what
    /// comes is taken at once.
    pub(super) window_bytes: i64,
    /// Bytes that have come and were not taken.
    pub(super) held_bytes: i64,
    pub(super) receiving: AnswerStage,
    /// END_STREAM was sent.
    pub(super) is_sent: bool,
    /// HEAD: what is announced does not come.
    pub(super) is_head_method: bool,
    /// Interim answers so far.
    pub(super) interim_count: usize,
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerStage {
    Head,
    /// A body comes: so many bytes more, when announced.
    Body(Option<u64>),
    Ended,
}

impl ClientStream {
    pub(super) fn new(id: u32, send_window: i64) -> ClientStream {
        ClientStream {
            id,
            send_window,
            receive_window: WINDOW_BYTES,
            window_bytes: WINDOW_BYTES,
            held_bytes: 0,
            receiving: AnswerStage::Head,
            is_sent: false,
            is_head_method: false,
            interim_count: 0,
        }
    }
}
