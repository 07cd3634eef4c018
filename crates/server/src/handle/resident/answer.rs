//! From a request to its answer: the block, a worker, the head, and a body that follows.

use std::borrow::Cow;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hob_http::reactor::Timer;
use hob_http::status::has_no_content;
use hob_http::{Answered, Body, BodyError, Fields, Reactor, Request, Response};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::RequestStage;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::config::CarrierChoice;
use crate::handle::resident::body::{AnswerBody, bytes_of};
use crate::handle::resident::chunk::ChunkBytes;
use crate::handle::resident::exchange::{AnswerHeadPoll, AnswerPiece, HeadSaid, WorkerExchange};
use crate::handle::resident::fail::{self, ResidentFailure};
use crate::handle::resident::file::KnownFile;
use crate::handle::resident::limits::LOOK_EVERY;
use crate::handle::resident::pool::PoolAdmission;
use crate::handle::resident::spooled::Spooled;
use crate::handle::resident::{DriverThread, Resident};
use crate::handle::script::body::ProgramRequestBody;
use crate::handle::script::control::{Control, is_event_stream};
use crate::handle::script::dechunk::{Dechunked, dechunk};
use crate::handle::script::fail::broken_body;
use crate::handle::script::head::{CgiHead, read_fields};
use crate::handle::script::reply::{Unsent, inside, note_cut, say_type};
use crate::handle::{AnswersRoute, plain};
use crate::route::target::{rest_as_sent, told};
use crate::serve::context::OnRoute;

/// One request for a resident program.
pub(crate) struct ResidentRequest<'a> {
    pub(crate) resident: Arc<Resident>,
    pub(crate) request: Request,
    pub(crate) home: Rc<DriverThread>,
    /// Who waits for files.
    pub(crate) files: &'a DiskThreads,
    /// What the program is told besides.
    pub(crate) variables: OwnVariables,
    /// The request's body, where it was collected already.
    pub(crate) body: Option<ProgramRequestBody>,
}

/// Variables that a request has besides those of every one: names and values.
pub(crate) type OwnVariables = Vec<(&'static [u8], Box<[u8]>)>;

/// A request's place with a worker, or among those who wait for one. Dropped before its answer is
/// whole, it tells the worker that nobody waits any more.
pub(super) struct PlacedRequest {
    pub(super) exchange: Arc<WorkerExchange>,
    pub(super) request: Request,
    resident: Arc<Resident>,
    counters: Arc<ThreadCounters>,
    /// Its number in the queue, and when its waiting is over.
    queued: Option<Queued>,
    /// The request's body, when it was collected first.
    spooled: Option<Box<Spooled>>,
    /// The request's body has ended, or nobody reads it any more.
    pub(super) is_body_over: bool,
    pub(super) is_over: bool,
}

struct Queued {
    ticket: u64,
    /// When it came, in loop time.
    since_us: u64,
    timer: Timer,
}

impl AnswersRoute for Resident {
    const OPENS_TUNNELS: bool = true;

    fn answer(self: &Arc<Resident>, on: &OnRoute<'_>) -> Answered {
        let Some(home) = on.desk.home.get() else {
            return Answered::Ready(plain::busy());
        };
        let ask = ResidentRequest {
            resident: Arc::clone(self),
            request: on.request.clone(),
            home: Rc::clone(home),
            files: &on.desk.shared.pool,
            variables: OwnVariables::new(),
            body: None,
        };
        answer(ask, on.path, on.below, |response| response)
    }
}

/// Answers a request. `path` is normal; from `below` on it is the program's. `finish` has what a
/// worker answers, or who speaks for one.
pub(crate) fn answer(
    ask: ResidentRequest<'_>,
    path: &[u8],
    below: usize,
    finish: impl FnOnce(Response) -> Response + 'static,
) -> Answered {
    let ResidentRequest {
        resident,
        request,
        home,
        files,
        variables,
        body,
    } = ask;
    if let Some(refusal) = refuse_method(&request) {
        return Answered::Ready(refusal);
    }
    if request.head().connect_protocol().is_some() && !resident.may_tunnel() {
        return Answered::Ready(plain::error(501));
    }
    request.set_half_close(resident.half_close);
    let body_bytes = match &body {
        Some(body) => Some(body.len()),
        None => request.body_len(),
    };
    if body_bytes.is_none() && resident.settings.carrier == CarrierChoice::Lines {
        // The program has to be told where the body ends.
        let (files, path) = (files.clone(), Box::from(path));
        return Answered::Later(Box::pin(async move {
            let to = (&*path, below, &variables);
            finish(collect(resident, request, home, files, to).await)
        }));
    }
    let block = resident.block(&request, body_bytes, (path, below), &variables);
    let has_body = body_bytes != Some(0);
    match block.and_then(|block| enter(&resident, &request, &home, block, has_body)) {
        Ok(mut place) => {
            let spooled = body.and_then(|body| Spooled::new(body, files.clone()));
            place.spooled = spooled.map(Box::new);
            Answered::Later(Box::pin(async move { finish(wait(place).await) }))
        }
        Err(failure) => Answered::Ready(finish(refuse(&home, &request, &resident, &failure))),
    }
}

/// Collects a body whose length is not announced, and answers then.
async fn collect(
    resident: Arc<Resident>,
    request: Request,
    home: Rc<DriverThread>,
    files: DiskThreads,
    (path, below, variables): (&[u8], usize, &OwnVariables),
) -> Response {
    let body = match ProgramRequestBody::collect(&request, &files).await {
        Ok(body) => body,
        Err(trouble) => return broken_body(&request, trouble),
    };
    let body_bytes = body.len();
    let block = resident.block(&request, Some(body_bytes), (path, below), variables);
    match block.and_then(|block| enter(&resident, &request, &home, block, body_bytes > 0)) {
        Ok(mut place) => {
            place.spooled = Spooled::new(body, files).map(Box::new);
            wait(place).await
        }
        Err(failure) => refuse(&home, &request, &resident, &failure),
    }
}

/// The answer to a request that no worker is asked for.
fn refuse(
    home: &DriverThread,
    request: &Request,
    resident: &Resident,
    failure: &ResidentFailure,
) -> Response {
    let counters = &home.counters;
    match failure {
        ResidentFailure::TooLong => counters.limit_resident_variables.add(1),
        ResidentFailure::VisitorBusy => counters.limit_session_queue.add(1),
        ResidentFailure::VisitOver => counters.session_stale.add(1),
        _ => {}
    }
    fail::respond(request, resident, failure)
}

/// Asks for a worker.
fn enter(
    resident: &Arc<Resident>,
    request: &Request,
    home: &DriverThread,
    block: Vec<u8>,
    has_body: bool,
) -> Result<PlacedRequest, ResidentFailure> {
    let exchange = WorkerExchange::new(request, block, has_body);
    let now_us = home.reactor.now_us();
    let counters = Arc::clone(&home.counters);
    let queued = match resident.pool.0.enter(&exchange, home.thread, now_us) {
        PoolAdmission::Given => None,
        PoolAdmission::Queued(ticket) => {
            counters.worker_waits.add(1);
            request.tell(RequestStage::Queue, format_args!("waits for a worker"));
            Some(Queued::new(ticket, resident, &home.reactor, now_us))
        }
        PoolAdmission::Refused(failure) => {
            if let ResidentFailure::QueueFull(_) = &failure {
                counters.limit_resident_queue.add(1);
            }
            return Err(failure);
        }
    };
    request.set_at_work(Some(exchange.clone()));
    Ok(PlacedRequest {
        is_body_over: !exchange.has_body,
        exchange,
        request: request.clone(),
        resident: Arc::clone(resident),
        counters,
        queued,
        spooled: None,
        is_over: false,
    })
}

/// The answer to a method that no program sees.
pub(crate) fn refuse_method(request: &Request) -> Option<Response> {
    match request.head().method() {
        method @ b"TRACE" => Some(plain::wrong_method(method, plain::PROGRAMS)),
        _ => None,
    }
}

impl Resident {
    /// What a path means to the program: what names it, and what follows. An encoded slash in the
    /// latter is still one of a normal path.
    pub(crate) fn split<'p>(
        &self,
        request: &Request,
        path: &'p [u8],
        below: usize,
    ) -> (Cow<'p, [u8]>, Cow<'p, [u8]>) {
        let split = match self.splits_path {
            // The slash before the rest belongs to it.
            true => below.saturating_sub(1),
            false => path.len(),
        };
        let rest = rest_as_sent(request.head().path(), path, split);
        (told(path[..split].into()), rest)
    }
}

impl Queued {
    fn new(ticket: u64, resident: &Resident, reactor: &Reactor, since_us: u64) -> Queued {
        let timer = reactor.timer();
        timer.set(resident.settings.wait.min(LOOK_EVERY));
        Queued {
            ticket,
            since_us,
            timer,
        }
    }
}

/// Waits for a head and makes an answer of it.
async fn wait(mut place: PlacedRequest) -> Response {
    let waited = poll_fn(|cx| place.poll_head(cx)).await;
    match waited {
        Ok(HeadSaid::Tunnel(status, lines)) => place.open_tunnel(status, &lines),
        Ok(head) => {
            // A file that cannot be sent is told of by the status.
            let first = match place.first_file().await {
                Ok(first) => first,
                Err(failure) => return place.fail(&failure),
            };
            match place.reply(head, first) {
                Ok(response) => response,
                Err((place, failure)) => place.fail(&failure),
            }
        }
        Err(AnswerHeadError::Failed(failure)) => place.fail(&failure),
        Err(AnswerHeadError::Body(error)) => {
            {
                let mut record = place.request.record_mut();
                (record.fault, record.reason) = match error {
                    BodyError::Source(fault, reason) => (fault, Some(reason)),
                    _ => (Fault::Client, Some("the request body broke off")),
                };
            }
            place.request.set_detail(error.to_string().as_bytes());
            plain::error(error.status())
        }
    }
}

/// How far a request's body was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fed {
    /// All of it that is here.
    All,
    /// There was no room for more.
    Full,
}

/// Why there is no head.
enum AnswerHeadError {
    Failed(ResidentFailure),
    /// The client's fault.
    Body(BodyError),
}

impl PlacedRequest {
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<HeadSaid, AnswerHeadError>> {
        let seen = loop {
            let fed = match self.feed(cx) {
                Ok(fed) => fed,
                Err(error) => return Poll::Ready(Err(AnswerHeadError::Body(error))),
            };
            let request = &self.request;
            let seen = self.exchange.see(cx, |status, lines| {
                if let Ok(head) = read_fields(200, &lines) {
                    request.interim(status, head.fields);
                }
            });
            if !matches!(seen, AnswerHeadPoll::Nothing) || !self.may_feed_more(fed) {
                break seen;
            }
        };
        match seen {
            AnswerHeadPoll::Head(head) => {
                self.note_times();
                self.request
                    .tell(RequestStage::Program, format_args!("its head came"));
                Poll::Ready(Ok(head))
            }
            AnswerHeadPoll::Failed(failure) => {
                self.note_times();
                Poll::Ready(Err(AnswerHeadError::Failed(failure)))
            }
            AnswerHeadPoll::Nothing => match self.look_at_queue(cx) {
                Some(failure) => {
                    self.note_times();
                    Poll::Ready(Err(AnswerHeadError::Failed(failure)))
                }
                None => Poll::Pending,
            },
        }
    }

    /// While it waits in the queue: whether its time is up, and whether one more worker helps.
    fn look_at_queue(&mut self, cx: &mut Context<'_>) -> Option<ResidentFailure> {
        if let Some(ticket) = self.exchange.requeued() {
            let reactor = self.request.reactor();
            let since_us = self
                .queued
                .as_ref()
                .map_or(reactor.now_us(), |q| q.since_us);
            self.queued = Some(Queued::new(ticket, &self.resident, reactor, since_us));
        }
        let queued = self.queued.as_ref()?;
        let resident = &self.resident;
        while queued.timer.poll_elapsed(cx).is_ready() {
            let now_us = self.request.reactor().now_us();
            if self.exchange.given_ms() != 0 {
                return None;
            }
            let waited = Duration::from_micros(now_us.saturating_sub(queued.since_us));
            let left = resident.settings.wait.saturating_sub(waited);
            if left.is_zero() && resident.pool.0.withdraw(queued.ticket) {
                self.counters.limit_resident_wait.add(1);
                let why = resident.pool.0.why();
                return Some(ResidentFailure::QueueWait(why));
            }
            resident.pool.0.tend(now_us / 1000);
            queued
                .timer
                .set(left.clamp(Duration::from_millis(1), LOOK_EVERY));
        }
        None
    }

    fn note_times(&self) {
        let now_us = self.request.reactor().now_us();
        let (given_us, begun_us) = self.exchange.given_and_begun_us();
        let mut record = self.request.record_mut();
        if let Some(queued) = &self.queued {
            let until_us = if given_us == 0 { now_us } else { given_us };
            record.queue_us += until_us.saturating_sub(queued.since_us);
        }
        if given_us != 0 {
            record.program_us = now_us.saturating_sub(given_us);
            record.start_us = begun_us.saturating_sub(given_us);
        }
    }

    /// Passes the request's body on, as far as the worker takes it.
    pub(super) fn feed(&mut self, cx: &mut Context<'_>) -> Result<Fed, BodyError> {
        while !self.is_body_over {
            if self.exchange.body_room() == 0 {
                return Ok(Fed::Full);
            }
            let polled = match &mut self.spooled {
                Some(spooled) => spooled.poll_next(cx),
                None => self.request.poll_body(cx),
            };
            match polled {
                Poll::Ready(Some(Ok(piece))) => self.exchange.put_body(Some(piece)),
                Poll::Ready(Some(Err(error))) => {
                    self.is_body_over = true;
                    return Err(error);
                }
                Poll::Ready(None) => {
                    self.is_body_over = true;
                    self.exchange.put_body(None);
                }
                Poll::Pending => break,
            }
        }
        Ok(Fed::All)
    }

    /// Room came between the feeding and the keeping of the waker, so that nobody told of it.
    pub(super) fn may_feed_more(&self, fed: Fed) -> bool {
        fed == Fed::Full && self.exchange.body_room() > 0
    }

    /// No body of the answer is sent. The worker may come to its end with it; it does not wait for
    /// more of a request body that nobody passes on any more.
    fn take_no_body(&mut self) {
        match self.is_body_over {
            true => self.exchange.release(),
            false => self.exchange.leave(),
        }
        self.is_over = true;
    }

    pub(super) fn fail(mut self, failure: &ResidentFailure) -> Response {
        self.is_over = true;
        if let ResidentFailure::NoWorkers = failure {
            self.counters.limit_workers.add(1);
        }
        // What it has not been told, it is told by that.
        self.exchange.leave();
        fail::respond(&self.request, &self.resident, failure)
    }

    /// Tells the record why an answer broke off.
    pub(super) fn note(&self, failure: &ResidentFailure) {
        fail::note(&self.request, &self.resident, failure);
    }

    /// Who looks at files that the program passes.
    pub(super) fn disk(&self) -> &DiskThreads {
        &self.resident.pool.0.disk
    }

    /// The file that the answer's body begins with.
    async fn first_file(&self) -> Result<Option<KnownFile>, ResidentFailure> {
        match self.exchange.take_first_file() {
            Some(file) => Ok(Some(file.examine(self.disk()).await?)),
            None => Ok(None),
        }
    }

    /// From a head to an answer.
    fn reply(
        mut self,
        said: HeadSaid,
        first: Option<KnownFile>,
    ) -> Result<Response, (PlacedRequest, ResidentFailure)> {
        let head = match said.read() {
            Ok(head) => head,
            Err(bad) => return Err((self, ResidentFailure::Head(bad))),
        };
        let control = Control::read(&head.fields);
        if let Some(total) = control.timeout {
            self.exchange.set_total(total);
        }
        let CgiHead {
            status,
            mut fields,
            local,
            body_bytes,
            is_chunked,
        } = head;
        fields.set(b"Server", plain::SERVER);
        let is_elsewhere = local.is_some() || control.instead.is_some();
        if self.promises_tunnel(status, is_elsewhere) {
            return Err((self, ResidentFailure::NoTunnel));
        }
        if let Some(target) = &local {
            self.take_no_body();
            return Ok(inside(fields, target));
        }
        let is_head = self.request.head().method() == b"HEAD";
        if is_head || has_no_content(status) {
            self.take_no_body();
            let body = match has_no_content(status) {
                true => Body::Empty,
                false => Body::Stream(Box::new(Unsent(body_bytes))),
            };
            return Ok(Response::new(status, fields, body));
        }
        let said = BodySaid {
            announced: body_bytes,
            is_chunked,
            // What is sent in its place has a type of its own.
            is_typed: control.instead.is_none(),
        };
        match first {
            Some(file) => Ok(self.reply_file(status, fields, &said, file)),
            None => self.reply_body(status, fields, &said),
        }
    }

    /// An answer whose body is here, or comes.
    fn reply_body(
        mut self,
        status: u16,
        fields: Fields,
        said: &BodySaid,
    ) -> Result<Response, (PlacedRequest, ResidentFailure)> {
        match self.exchange.take_whole() {
            None => Ok(self.reply_stream(status, fields, said, None)),
            Some(Err(failure)) => Err((self, failure)),
            Some(Ok(pieces)) => {
                self.is_over = true;
                let pieces = match said.is_chunked {
                    true => match dechunk(&bytes_of(pieces)) {
                        Some(bytes) => vec![AnswerPiece::Bytes(bytes.into())],
                        None => return Err((self, ResidentFailure::Chunks)),
                    },
                    false => pieces,
                };
                let came: usize = pieces.iter().map(AnswerPiece::len).sum();
                if said.announced.is_some_and(|most| came as u64 > most) {
                    note_cut(&self.request);
                }
                match whole(status, fields, pieces, said.announced, said.is_typed) {
                    Ok(response) => Ok(response),
                    Err(failure) => Err((self, failure)),
                }
            }
        }
    }

    /// An answer that begins with a file, or is one.
    fn reply_file(
        mut self,
        status: u16,
        mut fields: Fields,
        said: &BodySaid,
        file: KnownFile,
    ) -> Response {
        let is_exact = said
            .announced
            .is_none_or(|announced| announced == file.len());
        if !is_exact || said.is_chunked || !self.exchange.take_end() {
            return self.reply_stream(status, fields, said, Some(file));
        }
        self.is_over = true;
        if said.is_typed {
            say_type(&mut fields);
        }
        let body = Body::File(file.into_body(self.disk(), &self.request));
        Response::new(status, fields, body)
    }

    fn reply_stream(
        self,
        status: u16,
        mut fields: Fields,
        said: &BodySaid,
        first: Option<KnownFile>,
    ) -> Response {
        if said.is_typed && said.announced != Some(0) {
            say_type(&mut fields);
        }
        let is_events = said.announced.is_none() && is_event_stream(&fields);
        if is_events {
            self.exchange.begin_events();
        }
        let watch =
            |place: &PlacedRequest| is_events.then(|| place.request.reactor().watch_drain());
        let (drain, drain_of_chunks) = (watch(&self), watch(&self).filter(|_| said.is_chunked));
        let body = AnswerBody::new(self, said.announced, first).until_drain(drain);
        let body = Body::Stream(Box::new(body));
        let body = match said.is_chunked {
            true => Body::Stream(Box::new(Dechunked::new(
                body.into_stream(),
                drain_of_chunks,
            ))),
            false => body,
        };
        Response::new(status, fields, body)
    }
}

/// What a head says of the body.
struct BodySaid {
    /// Its length, if it is announced.
    announced: Option<u64>,
    /// It comes in chunks.
    is_chunked: bool,
    /// It is this body that is sent.
    is_typed: bool,
}

/// An answer whose body is all here.
fn whole(
    status: u16,
    mut fields: Fields,
    pieces: Vec<AnswerPiece>,
    announced: Option<u64>,
    is_typed: bool,
) -> Result<Response, ResidentFailure> {
    let came: usize = pieces.iter().map(AnswerPiece::len).sum();
    if let Some(announced) = announced
        && (came as u64) < announced
    {
        let came = came as u64;
        return Err(ResidentFailure::Short { announced, came });
    }
    if is_typed && came > 0 && announced != Some(0) {
        say_type(&mut fields);
    }
    let is_exact = announced.is_none_or(|announced| announced == came as u64);
    let body = match as_region(pieces, is_exact) {
        Ok(region) => Body::Region(region),
        Err(pieces) => {
            let mut bytes = bytes_of(pieces);
            let most = announced.map_or(usize::MAX, |most| most as usize);
            bytes.truncate(most);
            match bytes.is_empty() {
                true => Body::Empty,
                false => Body::Bytes(bytes),
            }
        }
    };
    Ok(Response::new(status, fields, body))
}

/// A body that is one chunk leaves from where it is.
fn as_region(
    mut pieces: Vec<AnswerPiece>,
    is_exact: bool,
) -> Result<Box<ChunkBytes>, Vec<AnswerPiece>> {
    if !is_exact || pieces.len() != 1 {
        return Err(pieces);
    }
    match pieces.pop() {
        Some(AnswerPiece::Chunk(chunk)) => Ok(Box::new(chunk)),
        piece => Err(piece.into_iter().collect()),
    }
}

impl Drop for PlacedRequest {
    fn drop(&mut self) {
        self.request.set_at_work(None);
        if self.is_over {
            return;
        }
        let pool = &self.resident.pool.0;
        if let Some(queued) = &self.queued {
            pool.withdraw(queued.ticket);
        }
        self.exchange.leave();
        // From here on it does not come back to the queue; it may have just before.
        if let Some(ticket) = self.exchange.requeued() {
            pool.withdraw(ticket);
        }
    }
}
