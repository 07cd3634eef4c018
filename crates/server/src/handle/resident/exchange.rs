//! Where one request and its worker meet: the request on its connection's thread, the worker's
//! driver on the worker's. Only plain bytes lie here.
//!
//! ```text
//!  waits in the queue --> begun with a worker --> over
//!        |                    |  request's body: at most BODY_HELD_BYTES_MAX wait here
//!        v                    |  answer's body:  at most the worker's window
//!      left                   '- left: what still comes is thrown away
//! ```
//!
//! Locks: the pool's before an exchange's, that before a mailbox's. Wakers are called with none
//! held.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Waker};
use std::time::Duration;

use hob_http::{AtWork, Bytes, HandlerPhase, Request};
use hob_ipc::limits::FILE_WINDOW_BYTES;
use hob_trace::Mutex;
use hob_trace::watch::Trail;

use crate::handle::resident::block;
use crate::handle::resident::chunk::ChunkBytes;
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::file::PassedFile;
use crate::handle::resident::limits::{
    BODY_HELD_BYTES_MAX, BODY_PIECES_MAX, INTERIM_BYTES_MAX, PIECE_APART_BYTES_MIN,
    PIECES_APART_MAX,
};
use crate::handle::resident::mailbox::{ToDriver, WorkerMailbox};
use crate::handle::script::head::{BadHead, CgiHead, read_fields};
use crate::watch::trail_of;

/// One request on its way through a worker.
pub(crate) struct WorkerExchange {
    /// What the request is called in the log.
    pub(super) name: RequestName,
    /// It has a body, or may have one.
    pub(super) has_body: bool,
    /// The request block.
    pub(super) block: Vec<u8>,
    state: Mutex<WorkerExchangeState>,
}

/// A request's name: when it came, its connection and its number there.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestName {
    started_unix_ms: u64,
    connection: u64,
    request: u64,
    /// Who watches it.
    pub(super) trail: Trail,
}

#[derive(Default)]
struct WorkerExchangeState {
    /// The worker that has it.
    mailbox: Option<Arc<WorkerMailbox>>,
    /// Its number with that worker, once the driver has begun it; 0 before.
    number: u32,
    /// When a worker got it, in microseconds of loop time; 0 before.
    given_us: u64,
    /// When its driver began it, in the same; 0 before.
    begun_us: u64,
    /// It waits in the queue again, under this number.
    requeued: Option<u64>,
    /// Pieces of the request's body on their way to the worker.
    body: VecDeque<Bytes>,
    /// Bytes of those.
    body_bytes: usize,
    /// No more of them come.
    is_body_over: bool,
    /// The answer's head, until the request takes it.
    head: Option<HeadSaid>,
    /// Interim answers that the client has not got yet.
    interims: Vec<(u16, Vec<u8>)>,
    /// What they took of [`INTERIM_BYTES_MAX`], those that have left included.
    interim_bytes: usize,
    /// Pieces of the answer's body on their way to the client.
    data: VecDeque<AnswerPiece>,
    /// Small pieces that came behind many others, as one: it stands behind all of them.
    tail: Vec<u8>,
    /// How the answer ends, behind what is in `data`.
    ending: Option<Ending>,
    /// Bytes of the answer that were taken and not told to the worker.
    taken_bytes: usize,
    /// A new limit for the whole, from now on.
    total: Option<Duration>,
    /// The answer is a stream of events, which the driver has not heard yet.
    is_events: bool,
    /// Nobody waits for the answer any more.
    has_left: bool,
    /// The answer's body is not sent.
    is_unwanted: bool,
    /// The request waits for any of these, on its own thread.
    answer: Option<Waker>,
}

/// A head as the worker sent it.
pub(crate) enum HeadSaid {
    /// Lines of fields, and a status, or 0 where they say it.
    Lines(u16, Vec<u8>),
    /// The same; what follows is raw both ways.
    Tunnel(u16, Vec<u8>),
    /// What stood before a body, as CGI has it.
    Read(CgiHead),
}

impl HeadSaid {
    /// # Errors
    /// Why it is none.
    pub(super) fn read(self) -> Result<CgiHead, BadHead> {
        match self {
            HeadSaid::Lines(status, lines) => read_fields(status, &lines),
            // Its status says only that it is one.
            HeadSaid::Tunnel(_, lines) => read_fields(200, &lines),
            HeadSaid::Read(head) => Ok(head),
        }
    }
}

/// A piece of an answer's body.
pub(super) enum AnswerPiece {
    Bytes(Bytes),
    Chunk(ChunkBytes),
    File(PassedFile),
    /// No more bytes of a tunnel go to the client.
    HalfClose,
}

impl AnswerPiece {
    /// What it takes of the worker's window: its bytes, unless they are in a file.
    pub(super) fn len(&self) -> usize {
        match self {
            AnswerPiece::Bytes(bytes) => bytes.len(),
            AnswerPiece::Chunk(chunk) => chunk.len(),
            AnswerPiece::File(_) => FILE_WINDOW_BYTES,
            AnswerPiece::HalfClose => 0,
        }
    }
}

/// How an answer ended.
pub(super) enum Ending {
    /// All of it came; trailer fields, as lines.
    Whole(Vec<u8>),
    Failed(ResidentFailure),
}

/// What the request's side finds when it looks.
pub(super) enum AnswerHeadPoll {
    /// Interim answers, and perhaps a head.
    Head(HeadSaid),
    Failed(ResidentFailure),
    /// Nothing yet.
    Nothing,
}

/// What an answer's body finds when it looks.
pub(super) enum AnswerBodyPoll {
    Piece(AnswerPiece),
    /// The end, with trailer lines.
    End(Vec<u8>),
    Failed(ResidentFailure),
    Nothing,
}

/// What becomes of a request that no worker has any more.
pub(super) enum Requeued {
    Waits(Option<Waker>),
    /// Nobody waits for it.
    Left,
}

/// What the driver finds when it looks.
pub(super) struct News {
    pub(super) body: Option<Bytes>,
    /// With this piece, or without one, the body has ended.
    pub(super) is_body_over: bool,
    pub(super) taken_bytes: usize,
    pub(super) total: Option<Duration>,
    /// The answer is a stream of events; told once.
    pub(super) is_events: bool,
    pub(super) has_left: bool,
}

impl RequestName {
    pub(super) fn of(request: &Request) -> RequestName {
        let record = request.record();
        RequestName {
            started_unix_ms: record.started_unix_ms,
            connection: record.connection,
            request: record.request.into(),
            trail: trail_of(request),
        }
    }
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, connection) = (self.started_unix_ms, self.connection);
        write!(f, "{ms:x}-{connection:x}-{:x}", self.request)
    }
}

impl Drop for WorkerExchange {
    fn drop(&mut self) {
        block::keep(std::mem::take(&mut self.block));
    }
}

impl WorkerExchange {
    pub(super) fn new(request: &Request, block: Vec<u8>, has_body: bool) -> Arc<WorkerExchange> {
        Arc::new(WorkerExchange {
            name: RequestName::of(request),
            has_body,
            block,
            state: Mutex::new(WorkerExchangeState {
                is_body_over: !has_body,
                ..WorkerExchangeState::default()
            }),
        })
    }

    /// Method and target, for people.
    pub(super) fn label(&self) -> String {
        let mut label = String::new();
        if let Ok(block) = hob_ipc::request::RequestBlock::check(&self.block) {
            let text = |name| String::from_utf8_lossy(block.value(name).unwrap_or_default());
            let (method, target) = (text(b"REQUEST_METHOD"), text(b"REQUEST_URI"));
            // Writing to a String cannot fail.
            let _ = write!(label, "{method} {target}");
        }
        label
    }
}

/// The request's side.
impl WorkerExchange {
    /// How many bytes of the request's body may be put here.
    pub(super) fn body_room(&self) -> usize {
        let state = self.state.lock();
        match state.is_body_over {
            true => 0,
            false if state.body.len() >= BODY_PIECES_MAX => 0,
            false => BODY_HELD_BYTES_MAX.saturating_sub(state.body_bytes),
        }
    }

    /// A piece of the request's body, or its end.
    pub(super) fn put_body(self: &Arc<Self>, piece: Option<Bytes>) {
        let mut state = self.state.lock();
        match piece {
            Some(piece) => {
                state.body_bytes += piece.len();
                state.body.push_back(piece);
            }
            None => state.is_body_over = true,
        }
        self.tell(state);
    }

    /// Looks for a head. Interim answers go to `interim`.
    pub(super) fn see(
        &self,
        cx: &Context<'_>,
        mut interim: impl FnMut(u16, Vec<u8>),
    ) -> AnswerHeadPoll {
        let mut state = self.state.lock();
        for (status, lines) in state.interims.drain(..) {
            interim(status, lines);
        }
        if let Some(head) = state.head.take() {
            return AnswerHeadPoll::Head(head);
        }
        match state.ending.take() {
            Some(Ending::Failed(failure)) => AnswerHeadPoll::Failed(failure),
            Some(Ending::Whole(_)) => AnswerHeadPoll::Failed(ResidentFailure::NoHead),
            None => {
                let old = keep(&mut state.answer, cx);
                drop(state);
                drop(old);
                AnswerHeadPoll::Nothing
            }
        }
    }

    /// Its number in the queue, if it has come back there; told once.
    pub(super) fn requeued(&self) -> Option<u64> {
        self.state.lock().requeued.take()
    }

    /// The file that the body begins with, if it is here.
    pub(super) fn take_first_file(&self) -> Option<PassedFile> {
        let mut state = self.state.lock();
        state.end_tail();
        match state.data.pop_front()? {
            AnswerPiece::File(file) => {
                state.taken_bytes += FILE_WINDOW_BYTES;
                Some(file)
            }
            other => {
                state.data.push_front(other);
                None
            }
        }
    }

    /// More of the answer's body has come, which nobody has taken.
    pub(super) fn has_data(&self) -> bool {
        let state = self.state.lock();
        !state.data.is_empty() || !state.tail.is_empty()
    }

    /// Takes the end of the body, if that and nothing else is next.
    pub(super) fn take_end(&self) -> bool {
        let mut state = self.state.lock();
        let is_next = state.data.is_empty()
            && state.tail.is_empty()
            && matches!(&state.ending, Some(Ending::Whole(trailers)) if trailers.is_empty());
        if is_next {
            state.ending = None;
        }
        is_next
    }

    /// The whole body, if all of it is here, in memory.
    pub(super) fn take_whole(&self) -> Option<Result<Vec<AnswerPiece>, ResidentFailure>> {
        let mut state = self.state.lock();
        state.end_tail();
        if state
            .data
            .iter()
            .any(|piece| matches!(piece, AnswerPiece::File(_)))
        {
            return None;
        }
        match state.ending.take()? {
            Ending::Whole(trailers) if trailers.is_empty() => {
                Some(Ok(state.data.drain(..).collect()))
            }
            // What came before is worth nothing: the client can be told.
            Ending::Failed(failure) => Some(Err(failure)),
            ending => {
                state.ending = Some(ending);
                None
            }
        }
    }

    /// The next piece of the answer's body.
    pub(super) fn take(self: &Arc<Self>, cx: &Context<'_>, window_bytes: usize) -> AnswerBodyPoll {
        let mut state = self.state.lock();
        if state.data.is_empty() {
            state.end_tail();
        }
        if let Some(piece) = state.data.pop_front() {
            state.taken_bytes += piece.len();
            if state.taken_bytes >= window_bytes / 2 && state.ending.is_none() {
                self.tell(state);
            }
            return AnswerBodyPoll::Piece(piece);
        }
        match state.ending.take() {
            Some(Ending::Whole(trailers)) => AnswerBodyPoll::End(trailers),
            Some(Ending::Failed(failure)) => AnswerBodyPoll::Failed(failure),
            None => {
                let old = keep(&mut state.answer, cx);
                drop(state);
                drop(old);
                AnswerBodyPoll::Nothing
            }
        }
    }

    /// The program wants another limit for the whole.
    pub(super) fn set_total(self: &Arc<Self>, total: Duration) {
        let mut state = self.state.lock();
        state.total = Some(total);
        self.tell(state);
    }

    /// The answer is a stream of events: it has no limit for the whole, unless the program wants
    /// one.
    pub(super) fn begin_events(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.is_events = true;
        state.total.get_or_insert(Duration::ZERO);
        self.tell(state);
    }

    /// Only the head is wanted: the body is thrown away, and the worker may finish it.
    pub(super) fn release(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.is_unwanted = true;
        state.end_tail();
        let (data, old) = (std::mem::take(&mut state.data), state.answer.take());
        let bytes: usize = data.iter().map(AnswerPiece::len).sum();
        state.taken_bytes += bytes;
        // The worker may be waiting for room.
        self.tell(state);
        drop((data, old));
    }

    /// Nobody waits any more.
    pub(super) fn leave(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.has_left || state.ending.is_some() {
            return;
        }
        state.has_left = true;
        state.tail = Vec::new();
        let (data, old) = (std::mem::take(&mut state.data), state.answer.take());
        self.tell(state);
        drop((data, old));
    }

    fn tell(self: &Arc<Self>, state: MutexGuard<'_, WorkerExchangeState>) {
        let mailbox = match state.number {
            // A driver that has not begun it looks when it begins.
            0 => None,
            _ => state.mailbox.clone(),
        };
        drop(state);
        if let Some(mailbox) = mailbox {
            mailbox.send(ToDriver::Attend(Arc::clone(self)));
        }
    }
}

/// The pool's and the driver's side.
impl WorkerExchange {
    /// A worker gets it.
    pub(super) fn give(&self, mailbox: &Arc<WorkerMailbox>, now_us: u64) {
        let mut state = self.state.lock();
        state.mailbox = Some(Arc::clone(mailbox));
        state.number = 0;
        state.given_us = now_us;
    }

    /// No worker has it any more, and it waits under this number, unless nobody waits for it. Its
    /// side is to be woken.
    pub(super) fn requeue(&self, ticket: u64) -> Requeued {
        let mut state = self.state.lock();
        state.mailbox = None;
        state.number = 0;
        (state.given_us, state.begun_us) = (0, 0);
        if state.has_left {
            return Requeued::Left;
        }
        state.requeued = Some(ticket);
        Requeued::Waits(state.answer.clone())
    }

    /// Its number with its worker; 0 without one.
    pub(super) fn number(&self) -> u32 {
        self.state.lock().number
    }

    /// When a worker got it, in milliseconds of loop time; 0 while it waits.
    pub(super) fn given_ms(&self) -> u64 {
        self.state.lock().given_us.div_ceil(1000)
    }

    /// When a worker got it, and when the worker's driver began it, in microseconds of loop time.
    pub(super) fn given_and_begun_us(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.given_us, state.begun_us)
    }

    /// The driver begins it under this number; false when nobody waits any more.
    pub(super) fn begin(&self, number: u32, now_us: u64) -> bool {
        let mut state = self.state.lock();
        state.number = number;
        state.begun_us = now_us;
        !state.has_left
    }

    /// What is new since the driver last looked; a piece of body only as long as the worker's
    /// credit allows.
    pub(super) fn news(&self, body_credit: usize) -> News {
        let mut state = self.state.lock();
        let body = match state.body.front_mut() {
            Some(piece) if piece.len() > body_credit => match body_credit {
                0 => None,
                credit => Some(piece.split_to(credit)),
            },
            Some(_) => state.body.pop_front(),
            None => None,
        };
        let waker = match &body {
            Some(body) => {
                state.body_bytes -= body.len();
                state.answer.clone()
            }
            None => None,
        };
        let news = News {
            body,
            is_body_over: state.is_body_over && state.body.is_empty(),
            taken_bytes: std::mem::take(&mut state.taken_bytes),
            total: state.total.take(),
            is_events: std::mem::take(&mut state.is_events),
            has_left: state.has_left,
        };
        drop(state);
        if let Some(waker) = waker {
            // There is room for more of the body.
            waker.wake();
        }
        news
    }

    /// The answer's head. The waker is to be called once everything that has come is here.
    pub(super) fn put_head(&self, head: HeadSaid) -> Option<Waker> {
        let mut state = self.state.lock();
        if let HeadSaid::Tunnel(..) = head {
            // Where no body was announced, the client's bytes come now.
            state.is_body_over &= self.has_body;
        }
        state.head = Some(head);
        state.answer.take()
    }

    /// An interim answer; false when the request has had as many as it may.
    pub(super) fn put_interim(&self, status: u16, lines: &[u8]) -> (bool, Option<Waker>) {
        let mut state = self.state.lock();
        state.interim_bytes += lines.len() + 64;
        if state.interim_bytes > INTERIM_BYTES_MAX {
            state.interim_bytes = INTERIM_BYTES_MAX;
            return (false, None);
        }
        state.interims.push((status, lines.to_vec()));
        (true, state.answer.take())
    }

    /// A piece of the answer's body; false when nobody wants it.
    pub(super) fn put_data(&self, piece: impl FnOnce() -> AnswerPiece) -> (bool, Option<Waker>) {
        let mut state = self.state.lock();
        if state.is_unwanted || state.has_left {
            return (false, None);
        }
        match piece() {
            AnswerPiece::Bytes(bytes) if state.joins(bytes.len()) => {
                state.tail.extend_from_slice(&bytes)
            }
            piece => {
                state.end_tail();
                state.data.push_back(piece);
            }
        }
        (true, state.answer.take())
    }

    /// The answer ends.
    pub(super) fn end(&self, ending: Ending) -> Option<Waker> {
        let mut state = self.state.lock();
        state.mailbox = None;
        state.number = 0;
        state.ending.get_or_insert(ending);
        state.answer.take()
    }
}

impl AtWork for WorkerExchange {
    fn phase(&self) -> HandlerPhase {
        match self.given_ms() {
            0 => HandlerPhase::Queued,
            _ => HandlerPhase::Program,
        }
    }

    fn worker_pid(&self) -> Option<u32> {
        self.state
            .lock()
            .mailbox
            .as_ref()
            .and_then(|mailbox| mailbox.pid())
    }
}

impl WorkerExchangeState {
    /// A piece of so many bytes costs less as a part of the tail than alone.
    fn joins(&self, bytes: usize) -> bool {
        self.data.len() >= PIECES_APART_MAX && bytes < PIECE_APART_BYTES_MIN
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.data.push_back(AnswerPiece::Bytes(tail.into()));
        }
    }
}

/// Keeps the waker of whoever looks, and returns the one it replaces.
fn keep(place: &mut Option<Waker>, cx: &Context<'_>) -> Option<Waker> {
    match place {
        Some(waker) if waker.will_wake(cx.waker()) => None,
        _ => place.replace(cx.waker().clone()),
    }
}

#[cfg(test)]
mod tests;
