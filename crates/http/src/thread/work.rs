//! What an answer is at that shares its connection with others, and what wakes it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::reactor::wake::KeyWaker;
use crate::response::Response;
use crate::thread::source::OutgoingBody;

/// How far an answer is.
pub(super) enum Work {
    /// It is on its way.
    Later(Pin<Box<dyn Future<Output = Response>>>),
    /// Its body is being sent.
    Body(OutgoingBody),
    /// A tunnel whose client gets no more bytes, and may still send.
    HalfClosed(OutgoingBody),
}

impl Work {
    /// The answer, if it was on its way and is there.
    pub(super) fn poll_answer(&mut self, waker: &Waker) -> Option<Response> {
        let Work::Later(future) = self else {
            return None;
        };
        match future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(response) => Some(response),
            Poll::Pending => None,
        }
    }
}

/// Wakes one stream of a connection, from anywhere.
pub(super) struct StreamWaker {
    conn: Arc<KeyWaker>,
    is_woken: AtomicBool,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        self.conn.wake_by_ref();
    }
}

impl StreamWaker {
    pub(super) fn new(conn: &Arc<KeyWaker>) -> Arc<StreamWaker> {
        Arc::new(StreamWaker {
            conn: Arc::clone(conn),
            is_woken: AtomicBool::new(false),
        })
    }

    /// True once after each wake.
    pub(super) fn take(&self) -> bool {
        self.is_woken.swap(false, Ordering::SeqCst)
    }
}
