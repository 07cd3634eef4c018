//! The same request of a visitor again, while the first is under way: a double click, a reload.
//!
//! ```text
//! request --like one under way?--> no:  it is answered, and what comes is held, up to a limit
//!                                  yes: it is refused; or it waits, and has what was held
//!                                                      (nothing was: it has a turn of its own)
//! ```
//!
//! Alike are requests of one visit with the same method, path behind the handle, query and body,
//! and the same `Cookie` and `Authorization`. One is under way from when it came until its answer
//! is here whole, also when its client has left: whoever clicks twice leaves the first. Bodies that
//! are longer than the limit, or of unknown length, are not compared; tunnels and HEAD neither.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hob_http::{
    Answered, Body, BodyError, BodyStream, Bytes, Chunk, Fields, Reactor, Request, Response,
};
use hob_trace::Mutex;
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::RequestStage;
use tokio::sync::oneshot;

use crate::handle::script::limits::BODY_HELD_BYTES_MAX;
use crate::handle::script::visits::refuse;

/// What becomes of the same request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicate {
    /// It waits its turn.
    Queue,
    /// It is refused.
    Refuse,
    /// It gets the answer of the first.
    Repeat,
}

/// What a section says of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateRules {
    /// What becomes of it.
    pub duplicate: Duplicate,
    /// Longest answer that is held, in bytes.
    pub bytes_max: usize,
}

impl DuplicateRules {
    /// Longest body that is compared.
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.bytes_max.min(BODY_HELD_BYTES_MAX)
    }

    /// Whether others like this request are known for that.
    pub(crate) fn compares(&self, request: &Request) -> bool {
        let is_short = |bytes| bytes <= self.body_bytes_max() as u64;
        self.duplicate != Duplicate::Queue
            && request.head().method() != b"HEAD"
            && request.tunnel().is_none()
            && request.body_len().is_some_and(is_short)
    }
}

/// What makes a request one like another.
#[derive(PartialEq, Eq)]
pub(crate) struct RequestLikeness(Box<[u8]>);

impl RequestLikeness {
    /// Of a request with this path behind the handle, and this body.
    pub(crate) fn of(request: &Request, below: &[u8], body: &[u8]) -> RequestLikeness {
        let mut all = Vec::new();
        let mut put = |part: &[u8]| {
            all.extend_from_slice(&part.len().to_le_bytes());
            all.extend_from_slice(part);
        };
        let head = request.head();
        for part in [head.method(), below, request.query().unwrap_or_default()] {
            put(part);
        }
        for name in [&b"Cookie"[..], b"Authorization"] {
            put(name);
            head.values(name).for_each(&mut put);
        }
        put(body);
        RequestLikeness(all.into())
    }
}

/// The requests of a visit that are under way, those that are compared.
#[derive(Default)]
pub(crate) struct RequestsUnderWay(Mutex<Vec<Arc<UnderWay>>>);

/// One of them.
struct UnderWay {
    likeness: RequestLikeness,
    state: Mutex<UnderWayState>,
}

#[derive(Default)]
struct UnderWayState {
    outcome: Option<Outcome>,
    waiting: Vec<oneshot::Sender<Outcome>>,
}

/// What came of it.
#[derive(Clone)]
enum Outcome {
    /// This answer, whole.
    Held(Arc<HeldAnswer>),
    /// One that was too long, or cannot be held.
    TooMuch,
    /// None, or one that broke off.
    Nothing,
}

/// An answer as it was when it came.
struct HeldAnswer {
    head: HeldHead,
    body: Bytes,
}

#[derive(Clone)]
struct HeldHead {
    status: u16,
    fields: Fields,
    is_stand_in: bool,
}

/// Whom a request is from, and what is to be done about others like it.
pub(crate) struct OnDuplicate<'a> {
    pub(crate) rules: DuplicateRules,
    /// Requests of one visitor that wait, those that wait for another's answer too.
    pub(crate) waiting_max: usize,
    pub(crate) request: &'a Request,
    pub(crate) counters: &'a Arc<ThreadCounters>,
}

/// Has a request answered by `run`, or as one like it is that is under way.
pub(crate) fn once(
    under_way: &Arc<RequestsUnderWay>,
    likeness: RequestLikeness,
    on: OnDuplicate<'_>,
    run: impl FnOnce() -> Answered + 'static,
) -> Answered {
    let first = match under_way.enter(likeness) {
        Ok(entered) => {
            let first = FirstRequest {
                entered,
                under_way: Arc::clone(under_way),
                bytes_max: on.rules.bytes_max,
                reactor: on.request.reactor().clone(),
            };
            return first.answered(run());
        }
        Err(first) => first,
    };
    if on.rules.duplicate == Duplicate::Refuse {
        return Answered::Ready(refuse::duplicate(on.request, on.counters));
    }
    let Some(outcome) = first.wait(on.waiting_max) else {
        return Answered::Ready(refuse::busy(on.request, on.counters));
    };
    let (request, counters) = (on.request.clone(), Arc::clone(on.counters));
    counters.session_repeats.add(1);
    request.tell(
        RequestStage::Queue,
        format_args!("waits for the answer to the same request"),
    );
    Answered::Later(Box::pin(async move {
        // As long as the first is under way, whose time is limited.
        match outcome.await.unwrap_or(Outcome::Nothing) {
            Outcome::Held(held) => {
                request.record_mut().note = Some("the answer of the same request, again");
                held.response()
            }
            Outcome::TooMuch => {
                counters.limit_session_repeat.add(1);
                run().wait().await
            }
            Outcome::Nothing => run().wait().await,
        }
    }))
}

impl RequestsUnderWay {
    /// The request is under way now.
    ///
    /// # Errors
    /// One like it is.
    fn enter(&self, likeness: RequestLikeness) -> Result<Arc<UnderWay>, Arc<UnderWay>> {
        let mut all = self.0.lock();
        if let Some(first) = all.iter().find(|one| one.likeness == likeness) {
            return Err(Arc::clone(first));
        }
        let entered = Arc::new(UnderWay {
            likeness,
            state: Mutex::default(),
        });
        all.push(Arc::clone(&entered));
        Ok(entered)
    }

    fn leave(&self, entered: &Arc<UnderWay>) {
        let mut all = self.0.lock();
        all.retain(|one| !Arc::ptr_eq(one, entered));
    }
}

impl UnderWay {
    /// Where its outcome will be; `None` where so many wait for it already.
    fn wait(&self, waiting_max: usize) -> Option<oneshot::Receiver<Outcome>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(outcome) = &state.outcome {
            // Nobody can have left: the receiver is here.
            let _ = sender.send(outcome.clone());
            return Some(receiver);
        }
        state.waiting.retain(|waiting| !waiting.is_closed());
        if state.waiting.len() >= waiting_max {
            return None;
        }
        state.waiting.push(sender);
        Some(receiver)
    }

    /// The first counts.
    fn end(&self, outcome: Outcome) {
        let mut state = self.state.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let outcome = state.outcome.get_or_insert(outcome).clone();
        drop(state);
        for one in waiting {
            // Whoever has left does not need it.
            let _ = one.send(outcome.clone());
        }
    }
}

impl HeldAnswer {
    fn response(&self) -> Response {
        let HeldHead {
            status,
            fields,
            is_stand_in,
        } = self.head.clone();
        let body = match self.body.is_empty() {
            true => Body::Empty,
            false => Body::Bytes(self.body.clone()),
        };
        let mut response = Response::new(status, fields, body);
        response.is_stand_in = is_stand_in;
        response
    }
}

/// A request that others may be like, until its answer is here.
struct FirstRequest {
    entered: Arc<UnderWay>,
    under_way: Arc<RequestsUnderWay>,
    bytes_max: usize,
    reactor: Reactor,
}

impl Drop for FirstRequest {
    fn drop(&mut self) {
        self.entered.end(Outcome::Nothing);
        self.under_way.leave(&self.entered);
    }
}

impl FirstRequest {
    fn answered(self, answered: Answered) -> Answered {
        match answered {
            Answered::Ready(response) => Answered::Ready(self.carry(response)),
            Answered::Later(later) => Answered::Later(Box::pin(FirstAnswer(Some((self, later))))),
        }
    }

    /// Holds the answer as it passes by.
    fn carry(self, mut response: Response) -> Response {
        let is_long = |len: u64| len > self.bytes_max as u64;
        let is_tunnel = matches!(response.body, Body::Tunnel(_));
        if is_tunnel || response.body.len().is_some_and(is_long) {
            self.entered.end(Outcome::TooMuch);
            // It is under way until all of it is out.
            return match response.body {
                Body::Stream(_) => self.carry_stream(response, None),
                _ => response,
            };
        }
        let head = HeldHead {
            status: response.status(),
            fields: response.fields().clone(),
            is_stand_in: response.is_stand_in,
        };
        match response.body {
            Body::Empty => self.hold(head, Bytes::new()),
            Body::Bytes(bytes) => {
                self.hold(head, bytes.clone());
                response.body = Body::Bytes(bytes);
                return response;
            }
            _ => return self.carry_stream(response, Some(head)),
        }
        response
    }

    fn carry_stream(self, mut response: Response, head: Option<HeldHead>) -> Response {
        let body = std::mem::replace(&mut response.body, Body::Empty);
        let rest = CarriedRest {
            // What is held is bytes; where nothing is, it stays what it is.
            from: match (&head, body) {
                (None, Body::Stream(stream)) => stream,
                (_, body) => body.into_stream(),
            },
            held: head.map(|head| (head, Vec::new())),
            first: self,
            trailers: None,
        };
        response.body = Body::Stream(Box::new(CarriedBody {
            len: rest.from.len(),
            rest: Some(rest),
            trailers: None,
        }));
        response
    }

    fn hold(&self, head: HeldHead, body: Bytes) {
        self.entered
            .end(Outcome::Held(Arc::new(HeldAnswer { head, body })));
    }
}

/// The answer of a first request, on its way. When its client leaves, it is waited for all the
/// same: the client may have asked again.
struct FirstAnswer(Option<(FirstRequest, LaterAnswer)>);

type LaterAnswer = Pin<Box<dyn Future<Output = Response>>>;

impl Future for FirstAnswer {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let Some((_, later)) = &mut self.0 else {
            return Poll::Pending;
        };
        let response = ready!(later.as_mut().poll(cx));
        match self.0.take() {
            Some((first, _)) => Poll::Ready(first.carry(response)),
            None => Poll::Ready(response),
        }
    }
}

impl Drop for FirstAnswer {
    fn drop(&mut self) {
        let Some((first, later)) = self.0.take() else {
            return;
        };
        let reactor = first.reactor.clone();
        reactor.spawn(async move {
            // Dropping its body has it read to the end.
            drop(first.carry(later.await));
        });
    }
}

/// What is to come of an answer's body, and what is held of it.
struct CarriedRest {
    first: FirstRequest,
    from: Box<dyn BodyStream>,
    /// `None` once it is too much.
    held: Option<(HeldHead, Vec<u8>)>,
    trailers: Option<Fields>,
}

/// A body that is held as it passes by.
struct CarriedBody {
    len: Option<u64>,
    /// `None` at the end.
    rest: Option<CarriedRest>,
    trailers: Option<Fields>,
}

impl CarriedRest {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let polled = ready!(self.from.poll_chunk(cx, max));
        match &polled {
            Some(Ok(Chunk::Bytes(bytes))) => self.keep(bytes),
            Some(Ok(_) | Err(_)) => {}
            None => self.end(),
        }
        Poll::Ready(polled)
    }

    fn keep(&mut self, bytes: &Bytes) {
        let Some((_, held)) = &mut self.held else {
            return;
        };
        if held.len() + bytes.len() > self.first.bytes_max {
            self.held = None;
            self.first.entered.end(Outcome::TooMuch);
            return;
        }
        held.extend_from_slice(bytes);
    }

    fn end(&mut self) {
        self.trailers = self.from.trailers();
        match self.held.take() {
            Some(_) if self.trailers.is_some() => self.first.entered.end(Outcome::TooMuch),
            Some((head, body)) => self.first.hold(head, body.into()),
            None => {}
        }
    }
}

impl BodyStream for CarriedBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(None);
        };
        let polled = ready!(rest.poll_chunk(cx, max));
        if !matches!(polled, Some(Ok(_))) {
            let ended = self.rest.take();
            self.trailers = ended.and_then(|mut rest| rest.trailers.take());
        }
        Poll::Ready(polled)
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.trailers.take()
    }
}

impl Drop for CarriedBody {
    /// Its client has left: the rest is read all the same, as long as it may be held.
    fn drop(&mut self) {
        let Some(mut rest) = self.rest.take().filter(|rest| rest.held.is_some()) else {
            return;
        };
        let reactor = rest.first.reactor.clone();
        reactor.spawn(std::future::poll_fn(move |cx| {
            while rest.held.is_some() {
                let piece = rest.first.bytes_max.max(1);
                match ready!(rest.poll_chunk(cx, piece)) {
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break,
                }
            }
            Poll::Ready(())
        }));
    }
}
