//! A request that is being answered over a stream of its own.

use std::sync::Arc;
use std::task::Waker;

use crate::reactor::wake::KeyWaker;
use crate::request::Request;
use crate::thread::waits::set_wait;
use crate::thread::work::{StreamWaker, Work};

/// A request that is being answered.
pub(crate) struct Http2RequestStream {
    pub(super) id: u32,
    pub(crate) request: Request,
    pub(super) work: Work,
    waker: Option<Arc<StreamWaker>>,
    /// It has not been looked at yet.
    pub(super) is_new: bool,
    /// Bytes of the request's body that have come.
    pub(super) body_bytes: u64,
    /// Until when the next bytes of the request's body must come.
    pub(super) body_by_ms: u64,
    /// Until when the client must make room in its window.
    pub(super) write_by_ms: u64,
    /// Since when bytes wait for room, in microseconds; 0 while none do.
    pub(super) take_since_us: u64,
}

impl Http2RequestStream {
    pub(super) fn new(id: u32, request: Request, work: Work) -> Http2RequestStream {
        Http2RequestStream {
            id,
            request,
            work,
            waker: None,
            is_new: true,
            body_bytes: 0,
            body_by_ms: u64::MAX,
            write_by_ms: u64::MAX,
            take_since_us: 0,
        }
    }

    /// What it is at, and whether bytes of it wait for the client.
    pub(in crate::thread) fn at(&self) -> (&Work, bool) {
        (&self.work, self.take_since_us != 0)
    }

    /// Its bytes wait no more for the client, or never will again.
    pub(in crate::thread) fn end_wait(&mut self, now_us: u64) {
        set_wait(&mut self.take_since_us, false, now_us, &self.request);
    }

    /// The same with nothing more for the client; it is looked at once more at once.
    pub(super) fn half_closed(self) -> Http2RequestStream {
        let work = match self.work {
            Work::Body(source) => Work::HalfClosed(source),
            work => work,
        };
        Http2RequestStream {
            work,
            is_new: true,
            write_by_ms: u64::MAX,
            ..self
        }
    }

    /// True once after each wake, and at first.
    pub(super) fn take_woken(&mut self) -> bool {
        let waker = self.waker.as_ref();
        let is_woken = waker.is_some_and(|waker| waker.take());
        std::mem::take(&mut self.is_new) || is_woken
    }

    pub(super) fn waker(&mut self, conn: &Arc<KeyWaker>) -> Waker {
        let waker = self.waker.get_or_insert_with(|| StreamWaker::new(conn));
        Waker::from(Arc::clone(waker))
    }
}
