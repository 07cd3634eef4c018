//! A request as handlers see it: its head, its body as it arrives, and the line back to the client.
//!
//! A [`Request`] is a counted handle that stays on its thread. When the last handle goes, its
//! memory is used for the next request of the thread.

use std::cell::{Cell, OnceCell, Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hob_trace::ring::DETAIL_BYTES_MAX;
use hob_trace::watch::{BODY_BYTES_MAX, DUMP_BYTES_MAX, Stage, Trail};
use hob_trace::{Record, TlsVersion};

use crate::body::BodyError;
use crate::h1::parse::{Length, Refusal, Scan, Scanner, read_head};
use crate::head::{Fields, Known, RequestHead};
use crate::limits::Limits;
use crate::reactor::Reactor;
use crate::tls::ClientCertificate;

/// What is known of a connection: data, not a socket.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The client; `None` over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address the connection came to; `None` over a Unix socket.
    pub local: Option<SocketAddr>,
    /// User of the process at the other end of a Unix socket.
    pub peer_uid: Option<u32>,
    /// Index of the listener that took the connection.
    pub listener: u16,
    /// A number of the connection, unique in this process.
    pub number: u64,
    /// What the TLS handshake gave; `None` in clear text.
    pub tls: Option<Rc<TlsFacts>>,
}

/// What the TLS handshake gave.
#[derive(Clone, Debug)]
pub struct TlsFacts {
    /// Server name asked for (SNI).
    pub server_name: Option<String>,
    /// Protocol version.
    pub version: TlsVersion,
    /// Cipher suite by its IANA name.
    pub suite: &'static str,
    /// The client came back with a ticket.
    pub is_resumed: bool,
    /// The number of the rule for certificates of clients that it was made under
    /// ([`ClientRule::number`](crate::tls::ClientRule::number)).
    pub rule: u64,
    /// The client's certificate, if it has shown one. It was checked.
    pub client: Option<ClientCertificate>,
    /// From the connection's begin until the handshake was done, in microseconds.
    pub handshake_us: u64,
}

/// What FIN from the client means while its answer is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// The client still reads: go on.
    Serve,
    /// The client has left: stop.
    Cancel,
}

/// What becomes of conditions and ranges when a request is answered for another target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preconditions {
    /// They hold for what is at the new target.
    Kept,
    /// They were not meant for it.
    Dropped,
}

/// What a request is at, as its handler says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The server works on it itself.
    #[default]
    Server,
    /// It waits in a program's queue.
    Queued,
    /// A program works on it.
    Program,
}

/// Who knows what a request is at, better than the request: its exchange with a worker.
pub trait AtWork: Send + Sync {
    /// What it is at.
    fn phase(&self) -> Phase;
    /// The worker's process, once that is known.
    fn worker_pid(&self) -> Option<u32>;
}

/// A request. Cloning counts; everything stays on the thread that read it.
#[derive(Clone)]
pub struct Request {
    pub(crate) exchange: Rc<Exchange>,
}

/// The memory behind a [`Request`].
pub(crate) struct Exchange {
    pub(crate) head: RequestHead,
    /// The request as it goes on after a handler has sent it elsewhere.
    detour: OnceCell<Box<Detour>>,
    pub(crate) facts: Rc<Facts>,
    pub(crate) record: RefCell<Record>,
    detail: RefCell<Vec<u8>>,
    pub(crate) body: RefCell<Incoming>,
    pub(crate) line: RefCell<Line>,
    pub(crate) body_limit: Cell<u64>,
    pub(crate) half_close: Cell<HalfClose>,
    pub(crate) left: Cell<bool>,
    pub(crate) reactor: Reactor,
    pub(crate) key: Cell<u64>,
    /// Up to where its answer's head goes, of what its connection sends; 0 before there is one,
    /// and where a connection carries one answer at a time.
    pub(crate) head_until: Cell<u64>,
    /// Bits of those who watch it, see [`Trail`].
    marks: Cell<(u32, u32)>,
    /// The station's generation they are of.
    marked: Cell<u64>,
    phase: Cell<Phase>,
    at_work: RefCell<Option<Arc<dyn AtWork>>>,
}

/// One of the heads that take the place of a request's own, and the one that takes its place.
struct Detour {
    head: RequestHead,
    next: OnceCell<Box<Detour>>,
}

/// The request's body on its way to the handler.
pub(crate) struct Incoming {
    pub(crate) chunks: VecDeque<Bytes>,
    pub(crate) held_bytes: usize,
    pub(crate) state: IncomingState,
    pub(crate) announced: Option<u64>,
    pub(crate) is_wanted: bool,
    /// Since when the handler waits for bytes that the client has not sent, in microseconds of
    /// loop time; 0 while it does not.
    pub(crate) wait_since_us: u64,
    /// Bytes that whoever watches has been shown, or could have been.
    pub(crate) shown_bytes: u64,
    /// It is what comes in through a tunnel: silence is nobody's fault.
    pub(crate) is_tunnel: bool,
    pub(crate) trailers: Vec<(Bytes, Bytes)>,
    pub(crate) waker: Option<Waker>,
}

impl Default for Incoming {
    /// No body.
    fn default() -> Incoming {
        Incoming {
            chunks: VecDeque::new(),
            held_bytes: 0,
            state: IncomingState::Ended,
            announced: Some(0),
            is_wanted: false,
            wait_since_us: 0,
            shown_bytes: 0,
            is_tunnel: false,
            trailers: Vec::new(),
            waker: None,
        }
    }
}

/// Whether more of a request's body will come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IncomingState {
    #[default]
    Ended,
    Open,
    Broken(BodyError),
}

/// What the handler and the connection tell each other.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) interim: Vec<(u16, Fields)>,
    pub(crate) left_waker: Option<Waker>,
}

/// Connections of one thread whose handlers did something outside their turn.
pub(crate) struct ReadyList {
    keys: RefCell<Vec<u64>>,
    /// The connection being driven: it sees for itself.
    driven: Cell<u64>,
}

impl Default for ReadyList {
    fn default() -> ReadyList {
        ReadyList {
            keys: RefCell::default(),
            driven: Cell::new(u64::MAX),
        }
    }
}

impl ReadyList {
    pub(crate) fn begin(&self, key: u64) {
        self.driven.set(key);
    }

    pub(crate) fn end(&self) {
        self.driven.set(u64::MAX);
    }

    pub(crate) fn push(&self, key: u64) {
        if self.driven.get() != key {
            self.push_for_later(key);
        }
    }

    /// Also the connection being driven: it has looked already, and is to look again.
    pub(crate) fn push_for_later(&self, key: u64) {
        let mut keys = self.keys.borrow_mut();
        if keys.last() != Some(&key) {
            keys.push(key);
        }
    }

    pub(crate) fn take(&self, into: &mut Vec<u64>) {
        into.append(&mut self.keys.borrow_mut());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.borrow().is_empty()
    }
}

impl Request {
    /// A request that came over no connection, read from its head as one that did: to tell what it
    /// would be answered.
    ///
    /// # Errors
    /// Why the engine refuses such a head, and with which status.
    pub fn offline(head: &[u8], limits: &Limits) -> Result<Request, Refusal> {
        match Scanner::default().scan(head, limits) {
            Scan::Complete(len) if len == head.len() => {}
            Scan::Refused(refusal) => return Err(refusal),
            _ => return Err(Refusal::bad("the request head is malformed")),
        }
        let facts = Facts {
            peer: None,
            local: None,
            peer_uid: None,
            listener: 0,
            number: 0,
            tls: None,
        };
        let mut exchange = Exchange::new(Rc::new(facts), Reactor::offline());
        let framing = read_head(head, &mut exchange.head, limits)?;
        exchange.body.get_mut().announced = match framing.length {
            Length::Bytes(bytes) => Some(bytes),
            Length::Chunked => None,
        };
        Ok(Request {
            exchange: Rc::new(exchange),
        })
    }

    /// The head: the client's, or that of the last [`Request::detour`].
    #[inline]
    pub fn head(&self) -> &RequestHead {
        match self.exchange.detour.get() {
            None => &self.exchange.head,
            Some(detour) => &detour.last().head,
        }
    }

    /// The head as the client sent it, whatever became of the request since.
    #[inline]
    pub fn sent_head(&self) -> &RequestHead {
        &self.exchange.head
    }

    /// From here on the request is one for another target, without a body: a GET, or a HEAD when it
    /// is one. Record, connection and the other fields stay.
    pub fn detour(&self, target: &[u8], preconditions: Preconditions) {
        let before = self.head();
        let method: &[u8] = match before.method() {
            b"HEAD" => b"HEAD",
            _ => b"GET",
        };
        let is_dropped = |known| preconditions == Preconditions::Dropped && is_condition(known);
        let detour = Box::new(Detour {
            head: before.detour(method, target, is_dropped),
            next: OnceCell::new(),
        });
        let last = match self.exchange.detour.get() {
            None => &self.exchange.detour,
            Some(detour) => &detour.last().next,
        };
        let is_first = last.set(detour).is_ok();
        debug_assert!(is_first, "the last one has none after it");
    }

    fn is_on_detour(&self) -> bool {
        self.exchange.detour.get().is_some()
    }

    /// The connection it came over.
    pub fn facts(&self) -> &Facts {
        &self.exchange.facts
    }

    /// The loop of the thread it is answered on: descriptors, timers and tasks to wait with.
    pub fn reactor(&self) -> &Reactor {
        &self.exchange.reactor
    }

    /// What is known about the request so far.
    pub fn record(&self) -> Ref<'_, Record> {
        self.exchange.record.borrow()
    }

    /// The record, to note who answers and why.
    pub fn record_mut(&self) -> RefMut<'_, Record> {
        self.exchange.record.borrow_mut()
    }

    /// How long it has been under way, in microseconds. Reads the clock.
    pub fn age_us(&self) -> u64 {
        clock_us().saturating_sub(self.record().started_us)
    }

    /// Somebody watches it, or may turn out to.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.exchange.marks.get() != (0, 0)
    }

    /// Who watches it.
    pub fn trail(&self) -> Trail {
        let (live, held) = self.exchange.marks.get();
        let record = self.record();
        Trail {
            connection: record.connection,
            request: record.request,
            live,
            held,
            generation: self.exchange.marked.get(),
            started_us: record.started_us,
        }
    }

    /// Has it watched by those of these bits: whom it matches, and for whom its end decides.
    pub fn set_marks(&self, live: u32, held: u32) {
        self.exchange.marks.set((live, held));
        self.exchange
            .marked
            .set(self.exchange.reactor.station().generation());
        self.record_mut().timed = live | held != 0;
    }

    /// Tells those who watch it what happens, in words. Costs a branch when nobody does.
    #[inline]
    pub fn tell(&self, stage: Stage, text: fmt::Arguments<'_>) {
        if self.is_watched() {
            self.tell_watchers(stage, text);
        }
    }

    #[cold]
    fn tell_watchers(&self, stage: Stage, text: fmt::Arguments<'_>) {
        let station = self.exchange.reactor.station();
        station.tell(&self.trail(), stage, clock_us(), |pen, _| {
            pen.format("text", text);
        });
    }

    /// Shows those who watch bodies a piece of one, of which `before` bytes were seen already.
    #[cold]
    pub fn tell_body(&self, stage: Stage, before: u64, bytes: &[u8]) {
        let station = self.exchange.reactor.station();
        let trail = self.trail();
        if before >= BODY_BYTES_MAX || !station.shows_body(&trail) {
            return;
        }
        station.tell(&trail, stage, clock_us(), |pen, _| {
            pen.number("offset", before);
            pen.dump(bytes, DUMP_BYTES_MAX);
        });
    }

    /// Says what it is at, for who looks at running requests.
    pub fn set_phase(&self, phase: Phase) {
        self.exchange.phase.set(phase);
    }

    /// Has somebody else say what it is at, until `None` is set.
    pub fn set_at_work(&self, at_work: Option<Arc<dyn AtWork>>) {
        *self.exchange.at_work.borrow_mut() = at_work;
    }

    /// What it is at.
    pub fn phase(&self) -> Phase {
        let at_work = self.exchange.at_work.borrow();
        at_work
            .as_ref()
            .map_or(self.exchange.phase.get(), |at_work| at_work.phase())
    }

    /// The process of the worker that has it, as far as that is known.
    pub fn worker_pid(&self) -> Option<u32> {
        let at_work = self.exchange.at_work.borrow();
        at_work.as_ref().and_then(|at_work| at_work.worker_pid())
    }

    /// True while its handler waits for bytes that the client has not sent.
    pub(crate) fn waits_for_body(&self) -> bool {
        self.exchange.body.borrow().wait_since_us != 0
    }

    /// True once raw bytes flow both ways.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.exchange.body.borrow().is_tunnel
    }

    /// What is to be said beside the record's reason; empty when nothing is.
    pub fn detail(&self) -> Ref<'_, [u8]> {
        Ref::map(self.exchange.detail.borrow(), Vec::as_slice)
    }

    /// Says more than the record's reason does, in one text for the log. What was said before is
    /// forgotten.
    pub fn set_detail(&self, text: &[u8]) {
        let mut detail = self.exchange.detail.borrow_mut();
        detail.clear();
        detail.extend_from_slice(&text[..text.len().min(DETAIL_BYTES_MAX)]);
    }

    /// Sets the largest body accepted, in bytes; it holds for what has not been read yet. Returns
    /// false when the announced size is already over it.
    pub fn limit_body(&self, bytes: u64) -> bool {
        debug_assert!(!self.is_on_detour(), "there is no body to limit");
        self.exchange.body_limit.set(bytes);
        self.exchange
            .body
            .borrow()
            .announced
            .is_none_or(|announced| announced <= bytes)
    }

    /// Says what FIN from the client means for this request; without it, [`HalfClose::Serve`].
    pub fn set_half_close(&self, meaning: HalfClose) {
        self.exchange.half_close.set(meaning);
    }

    /// What the client asks to speak through a tunnel, such as `websocket`: by `Upgrade`, where it
    /// sends no body, or by extended CONNECT. Who answers such a request with
    /// [`Body::Tunnel`](crate::Body::Tunnel) opens it; any other answer ignores the wish.
    pub fn tunnel(&self) -> Option<&[u8]> {
        if self.is_on_detour() {
            return None;
        }
        let head = self.sent_head();
        match head.connect_protocol() {
            None if self.body_len() == Some(0) => head.upgrade(),
            protocol => protocol,
        }
    }

    /// The announced size of the body in bytes; `None` when it comes in chunks.
    pub fn body_len(&self) -> Option<u64> {
        if self.is_on_detour() {
            return Some(0);
        }
        self.exchange.body.borrow().announced
    }

    /// The next piece of the body; `None` at its end. Asking is what sends `100 Continue` to a
    /// client that waits for it, and what lets more bytes in: at most 64 KiB are held unread.
    pub fn poll_body(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if self.is_on_detour() {
            return Poll::Ready(None);
        }
        let mut body = self.exchange.body.borrow_mut();
        if let Some(chunk) = body.chunks.pop_front() {
            body.held_bytes -= chunk.len();
            self.exchange.end_body_wait(&mut body);
            self.exchange.notify();
            if self.is_watched() {
                let before = body.shown_bytes;
                body.shown_bytes += chunk.len() as u64;
                self.tell_body(Stage::RequestBody, before, &chunk);
            }
            return Poll::Ready(Some(Ok(chunk)));
        }
        match body.state {
            IncomingState::Ended => {
                self.exchange.end_body_wait(&mut body);
                Poll::Ready(None)
            }
            IncomingState::Broken(error) => {
                self.exchange.end_body_wait(&mut body);
                Poll::Ready(Some(Err(error)))
            }
            IncomingState::Open => {
                if body.wait_since_us == 0 && !body.is_tunnel {
                    body.wait_since_us = self.exchange.reactor.now_us();
                }
                body.waker = Some(cx.waker().clone());
                if !body.is_wanted {
                    body.is_wanted = true;
                    self.exchange.notify();
                }
                Poll::Pending
            }
        }
    }

    /// The next piece of the body, awaited.
    pub async fn next_body(&self) -> Option<Result<Bytes, BodyError>> {
        std::future::poll_fn(|cx| self.poll_body(cx)).await
    }

    /// Fields after a chunked body; complete once the body has ended.
    pub fn trailers(&self) -> Vec<(Bytes, Bytes)> {
        self.exchange.body.borrow().trailers.clone()
    }

    /// Sends an interim answer (100 to 199, not 101) before the final one. Another status is not
    /// sent.
    pub fn interim(&self, status: u16, fields: Fields) {
        if !(100..200).contains(&status) || status == 101 {
            debug_assert!(false, "{status} is not an interim status");
            return;
        }
        self.exchange
            .line
            .borrow_mut()
            .interim
            .push((status, fields));
        self.exchange.notify();
    }

    /// True when the client is known to be gone.
    pub fn has_left(&self) -> bool {
        self.exchange.left.get()
    }

    /// Ready when the client is known to be gone.
    pub fn poll_left(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exchange.left.get() {
            return Poll::Ready(());
        }
        self.exchange.line.borrow_mut().left_waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head().fmt(f)
    }
}

impl Detour {
    fn last(&self) -> &Detour {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        last
    }
}

/// The monotonic clock, in microseconds.
fn clock_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000 + now.tv_nsec.cast_unsigned() / 1000
}

fn is_condition(known: Known) -> bool {
    matches!(
        known,
        Known::IfMatch
            | Known::IfModifiedSince
            | Known::IfNoneMatch
            | Known::IfRange
            | Known::IfUnmodifiedSince
            | Known::Range
    )
}

impl Exchange {
    pub(crate) fn new(facts: Rc<Facts>, reactor: Reactor) -> Exchange {
        Exchange {
            head: RequestHead::empty(),
            detour: OnceCell::new(),
            facts,
            record: RefCell::new(Record::empty()),
            detail: RefCell::default(),
            body: RefCell::default(),
            line: RefCell::default(),
            body_limit: Cell::new(u64::MAX),
            half_close: Cell::new(HalfClose::Serve),
            left: Cell::new(false),
            reactor,
            key: Cell::new(0),
            head_until: Cell::new(0),
            marks: Cell::default(),
            marked: Cell::default(),
            phase: Cell::default(),
            at_work: RefCell::default(),
        }
    }

    /// Makes it fit for the next request; the memory stays.
    pub(crate) fn renew(&mut self, facts: &Rc<Facts>) {
        self.head.clear();
        self.detour.take();
        if !Rc::ptr_eq(&self.facts, facts) {
            self.facts = Rc::clone(facts);
        }
        *self.record.get_mut() = Record::empty();
        self.detail.get_mut().clear();
        let body = self.body.get_mut();
        if body.is_wanted || body.announced != Some(0) || !body.chunks.is_empty() {
            *body = Incoming::default();
        }
        body.state = IncomingState::Ended;
        body.waker = None;
        (body.wait_since_us, body.shown_bytes, body.is_tunnel) = (0, 0, false);
        let line = self.line.get_mut();
        line.interim.clear();
        line.left_waker = None;
        self.half_close.set(HalfClose::Serve);
        self.left.set(false);
        self.head_until.set(0);
        self.marks.set((0, 0));
        self.phase.set(Phase::Server);
        self.at_work.take();
    }

    /// The handler waits no more for bytes of the body.
    pub(crate) fn end_body_wait(&self, body: &mut Incoming) {
        if body.wait_since_us != 0 {
            let since_us = std::mem::take(&mut body.wait_since_us);
            let waited_us = self.reactor.now_us().saturating_sub(since_us);
            self.record.borrow_mut().client_body_us += waited_us;
        }
    }

    pub(crate) fn notify(&self) {
        self.reactor.ready().push(self.key.get());
    }

    /// The client is gone: everyone who waits is told.
    pub(crate) fn leave(&self) {
        self.left.set(true);
        if let Some(waker) = self.line.borrow_mut().left_waker.take() {
            waker.wake();
        }
        let mut body = self.body.borrow_mut();
        if body.state == IncomingState::Open {
            body.break_off(BodyError::ClientLeft);
        }
    }
}

impl Incoming {
    /// What comes from here on came through a tunnel.
    pub(crate) fn begin_tunnel(&mut self) {
        self.is_tunnel = true;
        self.wait_since_us = 0;
        self.state = IncomingState::Open;
    }

    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.held_bytes += bytes.len();
        self.chunks.push_back(bytes);
        self.wake();
    }

    pub(crate) fn end(&mut self) {
        self.state = IncomingState::Ended;
        self.wake();
    }

    pub(crate) fn break_off(&mut self, error: BodyError) {
        self.state = IncomingState::Broken(error);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detour_is_a_get_for_another_target_without_a_body() {
        let head = b"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nRange: bytes=0-1\r\n\
                     Content-Type: x/y\r\nCookie: c=1\r\ncookie: d=2\r\n\r\n";
        let request = Request::offline(head, &Limits::default()).unwrap();
        request.detour(b"/one", Preconditions::Kept);
        assert_eq!(request.head().value(Known::Range), Some(&b"bytes=0-1"[..]));
        request.detour(b"/two?q=%20", Preconditions::Dropped);
        let now = request.head();
        assert_eq!(now.method(), b"GET");
        assert_eq!(
            (now.target(), now.path()),
            (&b"/two?q=%20"[..], &b"/two"[..])
        );
        assert_eq!(now.query(), Some(&b"q=%20"[..]));
        assert_eq!(now.host(), b"h");
        let fields: Vec<_> = now.fields().map(|(name, _)| name).collect();
        assert_eq!(fields, [&b"Host"[..], b"Cookie", b"cookie"]);
        assert_eq!(now.joined(Known::Cookie).as_deref(), Some(&b"c=1, d=2"[..]));
        assert_eq!(now.value(Known::ContentLength), None);
        assert_eq!(request.body_len(), Some(0));
        assert_eq!(request.sent_head().target(), b"/a?b");
        assert_eq!(
            request.sent_head().value(Known::ContentLength),
            Some(&b"3"[..])
        );
    }

    #[test]
    fn head_request_stays_one_on_a_detour() {
        let request =
            Request::offline(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", &Limits::default()).unwrap();
        request.detour(b"/one", Preconditions::Kept);
        assert_eq!(
            (request.head().method(), request.head().query()),
            (&b"HEAD"[..], None)
        );
    }
}
