//! Server-sent events: a bounded queue for each reader, and the body that empties it.
//!
//! ```text
//! producer --push--> Mailbox (bounded) --wake--> body on the reader's thread --> client
//! ```
//!
//! Who produces never waits. Of a page the newest takes the place of one that waits. Of what else a
//! slow reader has no room for, it is told how much was dropped (`event: dropped`).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hob_http::reactor::Timer;
use hob_http::{Body, BodyError, BodyStream, Chunk, Response};
use hob_trace::Mutex;
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::{Admin, reply};
use hob_server::handle::plain;
use hob_server::serve::fleet::now_ms;

/// Events that wait for one reader.
const FRAMES_MAX: usize = 256;
/// Bytes of events that wait for one reader.
const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Readers at a time (503).
pub(super) const READERS_MAX: usize = 64;
/// A comment is sent after so long without an event, so that nobody on the way gives up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events on their way to one reader.
#[derive(Default)]
pub struct EventMailbox {
    state: Mutex<EventQueue>,
}

#[derive(Default)]
struct EventQueue {
    frames: VecDeque<Bytes>,
    bytes: usize,
    dropped: u64,
    dropped_total: u64,
    is_closed: bool,
    is_ended: bool,
    waker: Option<Waker>,
}

impl EventMailbox {
    /// An empty one.
    pub fn new() -> Arc<EventMailbox> {
        Arc::default()
    }

    /// Puts an event in, or drops it where the reader is behind. False when the reader has left.
    pub fn push(&self, frame: Bytes) -> bool {
        let mut state = self.state.lock();
        if state.is_closed {
            return false;
        }
        let is_full =
            state.frames.len() >= FRAMES_MAX || state.bytes + frame.len() > FRAME_BYTES_MAX;
        if is_full {
            state.dropped += 1;
            state.dropped_total += 1;
            return true;
        }
        state.bytes += frame.len();
        state.frames.push_back(frame);
        wake(state);
        true
    }

    /// Puts the newest event of a page in. One of the same name that still waits is out of date and
    /// goes: a reader that is behind misses what was, and never what is.
    pub fn put(&self, name: &str, frame: Bytes) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        let head = format!("event: {name}\n");
        let is_old = |waiting: &Bytes| waiting.starts_with(head.as_bytes());
        if let Some(at) = state.frames.iter().position(is_old) {
            let old = state.frames.remove(at);
            state.bytes -= old.map_or(0, |old| old.len());
        }
        state.bytes += frame.len();
        state.frames.push_back(frame);
        wake(state);
    }

    /// Nothing more will come: the reader gets what there is, and its end.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.is_ended = true;
        wake(state);
    }

    /// True when the reader has left.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Events that there was no room for.
    fn dropped_so_far(&self) -> u64 {
        self.state.lock().dropped_total
    }

    fn take(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.state.lock();
        if state.dropped > 0 && state.frames.is_empty() {
            let count = std::mem::take(&mut state.dropped);
            return Poll::Ready(Some(frame("dropped", &json!({ "count": count }))));
        }
        if let Some(frame) = state.frames.pop_front() {
            state.bytes -= frame.len();
            return Poll::Ready(Some(frame));
        }
        if state.is_ended {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Events that wait for the reader.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.state.lock().frames.len()
    }

    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.frames.clear();
        state.waker = None;
    }
}

/// Has the reader look, without the lock.
fn wake(mut state: MutexGuard<'_, EventQueue>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// An event as it is sent. JSON has no line breaks, so it is one line.
pub fn frame(name: &str, data: &Value) -> Bytes {
    let mut bytes = format!("event: {name}\ndata: ").into_bytes();
    // Into bytes: `Display` of a value costs twice as much.
    serde_json::to_writer(&mut bytes, data).expect("memory takes what is written into it");
    bytes.extend_from_slice(b"\n\n");
    Bytes::from(bytes)
}

/// The answer whose body is what comes into a mailbox. It ends with its client, with the session it
/// was asked for in, and when the mailbox says so.
pub fn stream(ask: &AdminRequest, mailbox: Arc<EventMailbox>) -> Response {
    let Some(seat) = EventReaderSeat::take(&ask.admin, &mailbox) else {
        mailbox.close();
        let mut response = reply::text(503, "as many watch already as may at a time");
        response.fields_mut().add(b"Retry-After", b"5");
        return response;
    };
    let timer = ask.request.reactor().timer();
    timer.set(KEEP_ALIVE);
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"text/event-stream");
    fields.add(b"Cache-Control", b"no-store");
    fields.add(b"X-Accel-Buffering", b"no");
    let reader = EventStreamBody {
        mailbox,
        timer,
        session: ask.visitor.session,
        seat,
        rest: Bytes::from_static(b": this is a stream of events\n\n"),
    };
    Response::new(200, fields, Body::Stream(Box::new(reader)))
}

/// One of the readers there may be.
struct EventReaderSeat {
    admin: Arc<Admin>,
    mailbox: Weak<EventMailbox>,
}

/// Readers of events.
#[derive(Default)]
pub struct Readers {
    mailboxes: Mutex<Vec<Weak<EventMailbox>>>,
    limited: AtomicU64,
    /// Events that readers who have left had no room for.
    dropped: AtomicU64,
    is_over: AtomicBool,
}

impl Readers {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        let mailboxes = self.mailboxes.lock();
        mailboxes
            .iter()
            .filter(|one| one.strong_count() > 0)
            .count()
    }

    /// How many there was no room for.
    pub(super) fn limited(&self) -> u64 {
        self.limited.load(Ordering::Relaxed)
    }

    /// Events that there was no room for, of all readers there were.
    pub(super) fn dropped(&self) -> u64 {
        let mailboxes = self.mailboxes.lock();
        let open = mailboxes.iter().filter_map(Weak::upgrade);
        let now: u64 = open.map(|mailbox| mailbox.dropped_so_far()).sum();
        now + self.dropped.load(Ordering::Relaxed)
    }

    /// The server stops: readers get their end, and no more come. A stop would wait for them.
    pub fn end_all(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        let all: Vec<_> = self
            .mailboxes
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        all.iter().for_each(|mailbox| mailbox.end());
    }
}

impl EventReaderSeat {
    fn take(admin: &Arc<Admin>, mailbox: &Arc<EventMailbox>) -> Option<EventReaderSeat> {
        let readers = &admin.readers;
        let mut mailboxes = readers.mailboxes.lock();
        if readers.is_over.load(Ordering::Relaxed) {
            return None;
        }
        if mailboxes.len() >= READERS_MAX {
            readers.limited.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let mailbox = Arc::downgrade(mailbox);
        mailboxes.push(Weak::clone(&mailbox));
        Some(EventReaderSeat {
            admin: Arc::clone(admin),
            mailbox,
        })
    }
}

impl Drop for EventReaderSeat {
    fn drop(&mut self) {
        let readers = &self.admin.readers;
        let mut mailboxes = readers.mailboxes.lock();
        let dropped = self
            .mailbox
            .upgrade()
            .map_or(0, |mailbox| mailbox.dropped_so_far());
        readers.dropped.fetch_add(dropped, Ordering::Relaxed);
        mailboxes.retain(|one| !one.ptr_eq(&self.mailbox));
    }
}

struct EventStreamBody {
    /// Goes before the mailbox does, which it looks into.
    seat: EventReaderSeat,
    mailbox: Arc<EventMailbox>,
    timer: Timer,
    session: Option<u64>,
    /// What is left of an event that was cut.
    rest: Bytes,
}

impl EventStreamBody {
    /// The session it was asked for in has not ended.
    fn may_go_on(&self) -> bool {
        let goes_on = |number| self.seat.admin.door.goes_on(number, now_ms());
        self.session.is_none_or(goes_on)
    }
}

impl BodyStream for EventStreamBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        if self.timer.poll_elapsed(cx).is_ready() {
            if !self.may_go_on() {
                return Poll::Ready(None);
            }
            self.timer.set(KEEP_ALIVE);
            // Polled again so that it wakes this task.
            let _ = self.timer.poll_elapsed(cx);
            if self.rest.is_empty() {
                self.rest = Bytes::from_static(b":\n\n");
            }
        }
        if self.rest.is_empty() {
            match self.mailbox.take(cx) {
                Poll::Ready(Some(frame)) if self.may_go_on() => self.rest = frame,
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        let len = self.rest.len().min(max.max(1));
        Poll::Ready(Some(Ok(Chunk::Bytes(self.rest.split_to(len)))))
    }
}

impl Drop for EventStreamBody {
    fn drop(&mut self) {
        self.mailbox.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(mailbox: &EventMailbox) -> Option<Option<Bytes>> {
        match mailbox.take(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(frame) => Some(frame),
            Poll::Pending => None,
        }
    }

    #[test]
    fn newest_of_a_page_takes_the_place_of_one_that_waits_however_large_it_is() {
        let mailbox = EventMailbox::new();
        mailbox.put(
            "running",
            frame("running", &json!("x".repeat(FRAME_BYTES_MAX))),
        );
        mailbox.put("overview", frame("overview", &json!(1)));
        let newest = frame("running", &json!("y".repeat(FRAME_BYTES_MAX)));
        mailbox.put("running", newest.clone());
        assert_eq!((mailbox.waiting(), mailbox.dropped_so_far()), (2, 0));
        assert_eq!(take(&mailbox), Some(Some(frame("overview", &json!(1)))));
        assert_eq!(take(&mailbox), Some(Some(newest)));
        assert_eq!(take(&mailbox), None);
    }

    #[test]
    fn a_reader_that_is_behind_hears_how_much_it_missed() {
        let mailbox = EventMailbox::new();
        for number in 0..FRAMES_MAX + 3 {
            assert!(mailbox.push(frame("n", &json!(number))));
        }
        for number in 0..FRAMES_MAX {
            assert_eq!(take(&mailbox), Some(Some(frame("n", &json!(number)))));
        }
        let told = Bytes::from_static(b"event: dropped\ndata: {\"count\":3}\n\n");
        assert_eq!(take(&mailbox), Some(Some(told)));
        assert_eq!((take(&mailbox), mailbox.dropped_so_far()), (None, 3));
        mailbox.end();
        assert_eq!(take(&mailbox), Some(None));
    }

    #[test]
    fn bytes_are_bounded_too_and_who_has_left_gets_nothing() {
        let mailbox = EventMailbox::new();
        let large = Bytes::from(vec![b'x'; FRAME_BYTES_MAX]);
        assert!(mailbox.push(large.clone()) && mailbox.push(Bytes::from_static(b"y")));
        assert_eq!(take(&mailbox), Some(Some(large)));
        assert!(
            take(&mailbox)
                .unwrap()
                .unwrap()
                .starts_with(b"event: dropped")
        );
        mailbox.close();
        assert!(mailbox.is_closed() && !mailbox.push(Bytes::new()));
    }

    #[test]
    fn an_event_is_one_line_whatever_its_text() {
        let event = frame("line", &json!("a\nb\u{1b}"));
        assert_eq!(event, "event: line\ndata: \"a\\nb\\u001b\"\n\n");
    }
}
