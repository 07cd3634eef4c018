//! A request from its first byte until all of its answer has arrived.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;

use crate::h3::Receiver;
use crate::priority::Priority;
use crate::reactor::wake::KeyWaker;
use crate::request::Request;
use crate::thread::waits::set_wait;
use crate::thread::work::{StreamWaker, Work};

/// A request and its stream.
pub(super) struct Http3RequestStream {
    pub(super) id: u64,
    pub(super) receiver: Receiver,
    pub(super) receiving: Receiving,
    pub(super) sending: ResponseProgress,
    /// `None` before the head has come, and after all is told.
    pub(super) request: Option<Request>,
    /// `None` before the head has come, and when all of the answer is made.
    pub(super) work: Option<Work>,
    /// What waits for room.
    pub(super) unsent: Bytes,
    /// All of the answer is made: it ends behind what waits.
    pub(super) must_end: bool,
    pub(super) priority: Priority,
    /// The client said so before the request came, and again what stands in it does not count.
    pub(super) has_early_priority: bool,
    pub(super) is_head_method: bool,
    pub(super) continue_is_due: bool,
    pub(super) is_tunnel: bool,
    /// The client gets no more bytes of the tunnel, and may still send.
    pub(super) is_half_closed: bool,
    waker: Option<Arc<StreamWaker>>,
    /// It has not been looked at yet.
    pub(super) is_new: bool,
    /// The source of its answer may have something.
    pub(super) may_have_more: bool,
    /// It may have something to read.
    pub(super) is_readable: bool,
    /// Bytes of the request that have come, and of its body.
    pub(super) bytes_in: u64,
    pub(super) body_bytes: u64,
    /// When the last byte was handed over.
    pub(super) ended_us: u64,
    /// Until when the head must be there.
    pub(super) head_by_ms: u64,
    /// Until when the next bytes of the request's body must come.
    pub(super) body_by_ms: u64,
    /// Until when the client must make room.
    pub(super) write_by_ms: u64,
    /// Since when bytes wait for room, in microseconds; 0 while none do.
    pub(super) take_since_us: u64,
}

/// How far the request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    Head,
    /// So many bytes of the body are to come, if that was announced.
    Body(Option<u64>),
    Ended,
}

/// How far the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseProgress {
    Nothing,
    /// So many bytes of the body are to follow, if that is known.
    Body(Option<u64>),
    /// All of it is handed over; it has not all arrived.
    Ended,
    /// All of it has arrived, or was broken off.
    Over,
}

impl Http3RequestStream {
    pub(super) fn new(id: u64, section_bytes_max: usize, head_by_ms: u64) -> Http3RequestStream {
        Http3RequestStream {
            id,
            receiver: Receiver::new(section_bytes_max),
            receiving: Receiving::Head,
            sending: ResponseProgress::Nothing,
            request: None,
            work: None,
            unsent: Bytes::new(),
            must_end: false,
            priority: Priority::default(),
            has_early_priority: false,
            is_head_method: false,
            continue_is_due: false,
            is_tunnel: false,
            is_half_closed: false,
            waker: None,
            is_new: true,
            may_have_more: false,
            is_readable: true,
            bytes_in: 0,
            body_bytes: 0,
            ended_us: 0,
            head_by_ms,
            body_by_ms: u64::MAX,
            write_by_ms: u64::MAX,
            take_since_us: 0,
        }
    }

    /// Takes what the client says of its urgency.
    pub(super) fn set_priority(&mut self, priority: Priority) {
        self.priority = priority;
        self.has_early_priority = true;
    }

    /// True once after each wake, and at first.
    pub(super) fn take_woken(&mut self) -> bool {
        let is_woken = self.waker.as_ref().is_some_and(|waker| waker.take());
        std::mem::take(&mut self.is_new) || is_woken
    }

    pub(super) fn waker(&mut self, conn: &Arc<KeyWaker>) -> Waker {
        let waker = self.waker.get_or_insert_with(|| StreamWaker::new(conn));
        Waker::from(Arc::clone(waker))
    }

    /// Its bytes begin or cease to wait for the client.
    pub(super) fn set_wait(&mut self, is_waiting: bool, now_us: u64) {
        if let Some(request) = &self.request {
            set_wait(&mut self.take_since_us, is_waiting, now_us, request);
        }
    }

    /// Nothing more happens with it.
    pub(super) fn is_over(&self) -> bool {
        let has_ended =
            self.sending == ResponseProgress::Over && self.receiving == Receiving::Ended;
        has_ended && !self.is_half_closed
    }

    /// When the last byte was handed over to be sent, if all that is missing is that it arrives.
    pub(super) fn delivered_ms(&self) -> Option<u64> {
        let is_sent = self.ended_us > 0 && self.sending == ResponseProgress::Ended;
        let has_ended = is_sent && self.receiving == Receiving::Ended && !self.is_half_closed;
        has_ended.then_some(self.ended_us / 1000)
    }

    /// When time will be up.
    pub(super) fn next_ms(&self) -> u64 {
        self.head_by_ms.min(self.body_by_ms).min(self.write_by_ms)
    }

    /// Its place in the order of answers, the least first: by urgency, then those of use only as a
    /// whole by their age; those of use in pieces share.
    //= rfc9218#10
    pub(super) fn order(&self) -> (u8, u64) {
        let age = match self.priority.is_incremental {
            true => u64::MAX,
            false => self.id,
        };
        (self.priority.urgency, age)
    }
}
