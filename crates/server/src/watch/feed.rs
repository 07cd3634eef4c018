//! What a watcher is sent: its events as they come, those of a moment together.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hob_http::{BodyError, BodyStream, Bytes, Chunk, Reactor, Timer};
use hob_trace::watch::{FLUSH_BYTES, Hub, PACE_MS, Watcher};

/// A comment goes out when there was nothing else for so long: who has left without a word shows.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// The events of one watcher, as the body of an answer. Dropped, it watches no more.
pub struct Feed {
    hub: Arc<Hub>,
    watcher: Arc<Watcher>,
    /// Until the next events may go.
    pace: Timer,
    is_pacing: bool,
    silence: Timer,
    /// Whether who asked for it may still watch. Looked at before anything is sent.
    may_go_on: Box<dyn Fn() -> bool>,
    is_over: bool,
    /// What was taken and not sent yet.
    taken: Bytes,
}

impl Feed {
    pub(super) fn new(
        hub: &Arc<Hub>,
        watcher: Arc<Watcher>,
        reactor: &Reactor,
        may_go_on: Box<dyn Fn() -> bool>,
    ) -> Feed {
        let silence = reactor.timer();
        silence.set(SILENCE_MAX);
        Feed {
            hub: Arc::clone(hub),
            watcher,
            pace: reactor.timer(),
            is_pacing: false,
            silence,
            may_go_on,
            is_over: false,
            // So that whoever watches knows that it has begun.
            taken: Bytes::from_static(b": watching\n\n"),
        }
    }

    /// Takes events when it is time to; none at the end.
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let waiting_bytes = self.watcher.waiting_bytes(cx.waker());
        if self.watcher.is_over() {
            self.taken = self.watcher.take().into();
            return Poll::Ready(());
        }
        if self.is_pacing && self.pace.poll_elapsed(cx).is_ready() {
            self.is_pacing = false;
        }
        if waiting_bytes >= FLUSH_BYTES || (waiting_bytes > 0 && !self.is_pacing) {
            self.taken = self.watcher.take().into();
            self.pace.set_precise(Duration::from_millis(PACE_MS));
            self.is_pacing = true;
            self.silence.set(SILENCE_MAX);
            return Poll::Ready(());
        }
        if self.silence.poll_elapsed(cx).is_ready() {
            self.taken = Bytes::from_static(b": still here\n\n");
            self.silence.set(SILENCE_MAX);
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl BodyStream for Feed {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        while self.taken.is_empty() {
            if self.is_over {
                return Poll::Ready(None);
            }
            if self.poll_events(cx).is_pending() {
                return Poll::Pending;
            }
            self.is_over = self.taken.is_empty();
        }
        // Looked at for each piece: what was taken may wait long for a slow reader.
        if !(self.may_go_on)() {
            self.is_over = true;
            return Poll::Ready(None);
        }
        let chunk = self.taken.split_to(self.taken.len().min(max.max(1)));
        Poll::Ready(Some(Ok(Chunk::Bytes(chunk))))
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.hub.remove(&self.watcher);
    }
}
