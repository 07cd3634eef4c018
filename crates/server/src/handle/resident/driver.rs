//! What a driver knows of its worker, and what it makes of the worker's messages.

use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use hob_http::Bytes;
use hob_ipc::file::FileRange;
use hob_ipc::message::{self, Carrier, Head, Kind};
use hob_ipc::shm::Payload;
use hob_trace::metric::Cell;

use crate::handle::resident::chunk::ChunkBytes;
use crate::handle::resident::exchange::{Ending, Exchange, HeadSaid, Piece};
use crate::handle::resident::fail::Failure;
use crate::handle::resident::ladder::{Rung, after, jitter, limit};
use crate::handle::resident::limits::{
    BODY_WINDOW_BYTES, CHUNKS_HELD_MAX, MEMORY_EVERY, OUT_BYTES_MAX, STREAM_WINDOW_BYTES,
};
use crate::handle::resident::pool::Pool;
use crate::handle::resident::post::{Greeting, Post};
use crate::handle::resident::requests::{Requests, Underway};
use crate::handle::resident::said::Said;
use crate::handle::resident::scale::resident_bytes;
use crate::handle::resident::service::Service;
use crate::handle::resident::wire::{Offer, Wire};
use crate::handle::resident::worker::Home;

/// What is known of a worker, apart from how it is reached.
pub(super) struct Core {
    pub(super) home: Rc<Home>,
    pub(super) pool: Arc<Pool>,
    pub(super) post: Arc<Post>,
    pub(super) requests: Requests,
    pub(super) said: Said,
    pub(super) stage: Stage,
    /// What it was offered, then what it has chosen.
    pub(super) offer: Offer,
    /// Chunks that are held for clients; when they are many, what comes is copied.
    pub(super) chunks_held: u32,
    pub(super) service: Service,
    pub(super) rung: Rung,
    /// Messages for it.
    pub(super) answers: Vec<(Head, Vec<u8>)>,
    /// Bytes of those, at most, that found no room on their way.
    pub(super) unread_bytes: usize,
    /// Exchanges with news for their requests.
    pub(super) wakers: Vec<Waker>,
    /// Exchanges to attend to, and requests to begin, when messages are no longer looked at.
    pub(super) attentions: Vec<Arc<Exchange>>,
    pub(super) begun: VecDeque<Arc<Exchange>>,
    /// Numbers of requests that are over.
    pub(super) over: Vec<u32>,
    /// Requests that came too late for it.
    pub(super) unbegun: Vec<Arc<Exchange>>,
    /// How long it may be idle; zero is for ever.
    pub(super) idle: Duration,
    /// Bodies wait for room on the way to it.
    pub(super) is_crowded: bool,
    /// When it is due to be replaced.
    pub(super) age_due_ms: u64,
    pub(super) requests_left: u64,
    pub(super) idle_since_ms: u64,
    /// The request that was sent last, if nothing was sent after it.
    pub(super) sent_last: u32,
    /// It may pass descriptors.
    pub(super) passes_files: bool,
    /// Files that were named, in order: their descriptors are to be taken.
    pub(super) files: Vec<(Head, FileRange)>,
    /// Its files that are on their way to clients.
    pub(super) files_held: Arc<()>,
    /// What it did wrong, or why it was ended.
    pub(super) blame: Option<String>,
    /// It was told to go: its end is no crash.
    pub(super) is_asked: bool,
    /// The pool knows of its end.
    pub(super) is_concluded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not greeted yet.
    Starting {
        until_ms: u64,
    },
    Ready,
    /// Its channel has ended; how its process did is waited for.
    Closed {
        is_unread: bool,
        exit_until_ms: u64,
        words_until_ms: u64,
    },
}

impl Core {
    pub(super) fn new(
        home: Rc<Home>,
        pool: Arc<Pool>,
        post: Arc<Post>,
        said: Said,
        offer: Offer,
    ) -> Core {
        let now_ms = home.reactor.now_ms();
        let settings = &pool.settings;
        let jitter = jitter(post.number, now_ms);
        Core {
            requests: Requests::new(&home.reactor),
            stage: Stage::Starting {
                until_ms: after(now_ms, settings.timeout.start),
            },
            offer,
            chunks_held: 0,
            service: Service::new(now_ms),
            rung: Rung::Serves,
            answers: Vec::new(),
            unread_bytes: 0,
            is_crowded: false,
            wakers: Vec::new(),
            attentions: Vec::new(),
            begun: VecDeque::new(),
            over: Vec::new(),
            unbegun: Vec::new(),
            age_due_ms: limit(now_ms, settings.workers.max_age.mul_f64(jitter)),
            requests_left: match settings.workers.max_requests {
                0 => u64::MAX,
                count => ((count as f64 * jitter) as u64).max(1),
            },
            idle: settings.workers.idle_timeout,
            idle_since_ms: now_ms,
            sent_last: 0,
            passes_files: false,
            files: Vec::new(),
            files_held: Arc::default(),
            blame: None,
            is_asked: false,
            is_concluded: false,
            said,
            home,
            pool,
            post,
        }
    }
}

/// Requests: begun, attended to, finished.
impl Core {
    /// Begins the requests that it was given, in the order they came. One that nobody waits for
    /// any more makes room for others, which are begun, too.
    pub(super) fn begin_all(&mut self, wire: &mut Wire) {
        while let Some(exchange) = self.begun.pop_front() {
            self.begin(wire, exchange);
        }
    }

    fn begin(&mut self, wire: &mut Wire, exchange: Arc<Exchange>) {
        let now_ms = self.home.reactor.now_ms();
        if matches!(self.stage, Stage::Closed { .. }) {
            // Another worker gets it once the end of this one is told.
            self.unbegun.push(exchange);
            return;
        }
        let number = self.requests.next_number();
        if !exchange.begin(number) {
            return self.pass_over(&exchange);
        }
        let flags = match exchange.has_body {
            true => 0,
            false => message::LAST,
        };
        let head = Head::new(Kind::Request, number).flags(flags);
        if let Err(failure) = wire.hand(head, &exchange.block) {
            return self.refuse(&exchange, failure);
        }
        self.sent_last = number;
        if self.requests.is_empty() {
            self.service.resume(self.idle_since_ms, now_ms);
        }
        let for_body = exchange.has_body.then(|| Arc::clone(&exchange));
        let mut one = underway(number, exchange, &self.pool, now_ms);
        one.body_credit = wire.body_window_bytes();
        self.requests.push(one);
        if let Some(exchange) = for_body {
            self.attend(wire, &exchange);
        }
    }

    /// A request that cannot be handed over.
    fn refuse(&mut self, exchange: &Arc<Exchange>, failure: Failure) {
        self.wakers.extend(exchange.end(Ending::Failed(failure)));
        self.pass_over(exchange);
    }

    /// The worker does not get this one.
    fn pass_over(&mut self, exchange: &Arc<Exchange>) {
        let (ahead, now_ms) = (self.ahead(), self.home.reactor.now_ms());
        let more = &mut self.begun;
        self.pool
            .finished(&self.post, exchange, ahead, now_ms, more);
    }

    /// Passes on what is new in an exchange.
    pub(super) fn attend(&mut self, wire: &mut Wire, exchange: &Exchange) {
        loop {
            let number = exchange.number();
            let Some(index) = self.requests.find(number).filter(|_| number != 0) else {
                return;
            };
            let now_ms = self.home.reactor.now_ms();
            let grace = self.pool.settings.grace;
            let one = self.requests.at(index);
            let has_room = wire.waiting_bytes() < OUT_BYTES_MAX;
            self.is_crowded |= !has_room;
            let credit = if has_room { one.body_credit } else { 0 };
            let news = exchange.news(credit.min(hob_ipc::limits::PAYLOAD_BYTES_MAX));
            if let Some(total) = news.total {
                one.total_due_ms = limit(now_ms, total);
            }
            if news.taken_bytes > 0 {
                one.data_credit += news.taken_bytes;
                one.step_due_ms = limit(now_ms, self.pool.settings.timeout.progress);
                wire.push(
                    Head::new(Kind::Window, number).large(news.taken_bytes as u32),
                    b"",
                );
                self.sent_last = 0;
            }
            if news.has_left {
                one.give_up(wire, after(now_ms, grace));
                self.sent_last = 0;
                return;
            }
            let is_last = news.is_body_over && !one.is_body_sent;
            if news.body.is_none() && !is_last {
                return;
            }
            let body = news.body.unwrap_or_default();
            one.body_credit -= body.len();
            one.is_body_sent |= is_last;
            let flags = if is_last { message::LAST } else { 0 };
            wire.push(Head::new(Kind::Body, number).flags(flags), &body);
            self.sent_last = 0;
            if is_last {
                return;
            }
        }
    }

    /// A message of the worker.
    pub(super) fn handle(&mut self, head: Head, payload: Payload<'_>) {
        if head.kind == Kind::Data {
            return self.handle_data(head, payload);
        }
        // A checked head: nothing else comes in chunks.
        let Payload::Bytes(payload) = payload else {
            return;
        };
        if head.kind == Kind::WorkerHello {
            return self.greet(head, payload);
        }
        if !matches!(self.stage, Stage::Ready) {
            self.blame = Some("it spoke before it greeted".to_owned());
            return;
        }
        if head.kind == Kind::File {
            return self.note_file(head, payload);
        }
        let Some(index) = self.requests.find(head.request) else {
            // Of a request that is over, or of none.
            if head.kind == Kind::Callout {
                self.call_out(head, payload, None);
            }
            return;
        };
        self.requests.at(index).is_started = true;
        match head.kind {
            Kind::Head => self.take_head(index, head, payload),
            Kind::End => {
                let ending = match head.has(message::FAILED) {
                    true => {
                        Ending::Failed(Failure::Said(String::from_utf8_lossy(payload).into_owned()))
                    }
                    false => Ending::Whole(payload.to_vec()),
                };
                self.finish(index, ending);
            }
            Kind::Info => {
                let exchange = &self.requests.at(index).exchange;
                let (is_kept, waker) = exchange.put_interim(head.small, payload);
                self.wakers.extend(waker);
                if !is_kept {
                    self.home.counters.limit_resident_interims.add(1);
                }
            }
            Kind::WorkerWindow => {
                let one = self.requests.at(index);
                one.body_credit = one.body_credit.saturating_add(head.large as usize);
                self.attentions.push(Arc::clone(&one.exchange));
            }
            Kind::Callout => self.call_out(head, payload, Some(index)),
            _ => {}
        }
    }

    fn handle_data(&mut self, head: Head, payload: Payload<'_>) {
        if !matches!(self.stage, Stage::Ready) {
            self.blame = Some("it spoke before it greeted".to_owned());
        } else if let Some(index) = self.requests.find(head.request) {
            self.requests.at(index).is_started = true;
            self.take_data(index, head, payload);
        }
    }

    fn greet(&mut self, head: Head, library: &[u8]) {
        let Stage::Starting { .. } = self.stage else {
            self.blame = Some("it greeted twice".to_owned());
            return;
        };
        let chosen = match Carrier::from_number(head.large) {
            Some(Carrier::Stream) => Some(Offer::Stream),
            Some(Carrier::Shm) if self.offer == Offer::SharedMemory => Some(Offer::SharedMemory),
            _ => None,
        };
        let Some(chosen) = chosen.filter(|_| head.small == message::VERSION) else {
            self.blame = Some(format!(
                "it speaks version {} over carrier {}, which was not offered",
                head.small, head.large
            ));
            return;
        };
        self.offer = chosen;
        self.passes_files = head.has(message::FILES);
        let _ = self.post.greeting.set(Greeting::new(head.large, library));
        self.be_ready();
    }

    /// It takes requests.
    pub(super) fn be_ready(&mut self) {
        self.stage = Stage::Ready;
        let now_ms = self.home.reactor.now_ms();
        self.idle_since_ms = now_ms;
        self.pool.ready(&self.post, now_ms, &mut self.begun);
    }

    fn take_head(&mut self, index: usize, head: Head, payload: &[u8]) {
        if self.requests.at(index).has_head {
            self.blame = Some("it sent a second head for one request".to_owned());
            return;
        }
        if head.has(message::TUNNEL) {
            self.blame = Some("it opened a tunnel, which hob does not offer programs".to_owned());
            return;
        }
        self.put_head(index, HeadSaid::Lines(head.small, payload.to_vec()));
        if head.is_last() {
            self.finish(index, Ending::Whole(Vec::new()));
        }
    }

    /// The head of an answer is here.
    pub(super) fn put_head(&mut self, index: usize, said: HeadSaid) {
        let now_ms = self.home.reactor.now_ms();
        let one = self.requests.at(index);
        one.is_started = true;
        one.has_head = true;
        one.step_due_ms = limit(now_ms, self.pool.settings.timeout.progress);
        if one.given_up_until_ms.is_none() {
            self.wakers.extend(one.exchange.put_head(said));
        }
    }

    /// A piece of an answer's body.
    pub(super) fn take_data(&mut self, index: usize, head: Head, payload: Payload<'_>) {
        let now_ms = self.home.reactor.now_ms();
        let one = self.requests.at(index);
        let len = match &payload {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Chunk(chunk) => chunk.len(),
        };
        if len > one.data_credit {
            self.blame = Some("it sent more data than its window allows".to_owned());
            return;
        }
        one.data_credit -= len;
        one.step_due_ms = limit(now_ms, self.pool.settings.timeout.progress);
        if len > 0 {
            let mut is_wanted = false;
            if one.given_up_until_ms.is_none() {
                let may_hold = self.chunks_held <= CHUNKS_HELD_MAX;
                let counters = &self.home.counters;
                let piece = || match payload {
                    Payload::Bytes(bytes) => Piece::Bytes(Bytes::copy_from_slice(bytes)),
                    Payload::Chunk(chunk) if may_hold => Piece::Chunk(ChunkBytes::new(chunk)),
                    Payload::Chunk(chunk) => {
                        counters.worker_copies.add(1);
                        let mut bytes = Vec::with_capacity(len);
                        chunk.copy_to(&mut bytes);
                        Piece::Bytes(bytes.into())
                    }
                };
                let (wanted, waker) = one.exchange.put_data(piece);
                is_wanted = wanted;
                self.wakers.extend(waker);
            }
            if !is_wanted {
                self.drop_data(index, len);
            }
        }
        if head.is_last() {
            self.finish(index, Ending::Whole(Vec::new()));
        } else if self.requests.at(index).data_credit == 0 {
            // It waits for the client now.
            self.requests.at(index).step_due_ms = u64::MAX;
        }
    }

    /// Data that nobody wants: the worker is to come to its end.
    pub(super) fn drop_data(&mut self, index: usize, bytes: usize) {
        let one = self.requests.at(index);
        one.dropped_bytes += bytes;
        if one.dropped_bytes >= STREAM_WINDOW_BYTES as usize / 2 {
            let dropped = mem::take(&mut one.dropped_bytes);
            one.data_credit += dropped;
            let head = Head::new(Kind::Window, one.number).large(dropped as u32);
            self.answers.push((head, Vec::new()));
        }
    }

    /// A request is over, as far as the worker is concerned.
    pub(super) fn finish(&mut self, index: usize, ending: Ending) {
        let one = self.requests.remove(index);
        self.over.push(one.number);
        let now_ms = self.home.reactor.now_ms();
        self.wakers.extend(one.exchange.end(ending));
        let served = self.post.served.fetch_add(1, Ordering::Relaxed) + 1;
        if served > 1 {
            self.home.counters.worker_reuses.add(1);
        }
        self.idle_since_ms = now_ms;
        self.requests_left = self.requests_left.saturating_sub(1);
        if let Some(counter) = self.outgrown(served, now_ms)
            && self.pool.replace(&self.post, now_ms)
        {
            counter.add(1);
        }
        self.service.note(now_ms);
        let ahead = self.ahead();
        self.pool
            .finished(&self.post, &one.exchange, ahead, now_ms, &mut self.begun);
    }

    /// What follows from messages, once they are no longer looked at.
    pub(super) fn follow_up(&mut self, wire: &mut Wire) {
        if !self.files.is_empty() {
            self.take_files(wire);
        }
        for number in self.over.drain(..) {
            if let Some(shared) = wire.shared() {
                shared.release(number);
            }
        }
        while let Some(exchange) = self.attentions.pop() {
            self.attend(wire, &exchange);
        }
        self.begin_all(wire);
    }

    /// How many requests it is handed ahead of those it works on.
    fn ahead(&self) -> usize {
        match self.offer {
            Offer::SharedMemory if self.rung == Rung::Serves => self.service.ahead(),
            _ => 0,
        }
    }

    /// It has said nothing for a while: requests that it was handed ahead go back.
    pub(super) fn take_back(&mut self, wire: &mut Wire) {
        let now_ms = self.home.reactor.now_ms();
        self.service.forget(now_ms);
        let back = self.reclaim(wire);
        if !back.is_empty() {
            self.home.counters.worker_takebacks.add(back.len() as u64);
            self.pool.give_back(&self.post, back, now_ms);
        }
    }

    /// Takes the requests out of shared memory that it has not started and never will, in the order
    /// they came. One with a body stays: some of that may be with the worker already.
    pub(super) fn reclaim(&mut self, wire: &mut Wire) -> Vec<Arc<Exchange>> {
        let mut back = Vec::new();
        let Some(shared) = wire.shared() else {
            return back;
        };
        for index in (0..self.requests.len()).rev() {
            let one = self.requests.at(index);
            let may_go = !one.is_started && !one.exchange.has_body;
            if may_go && one.given_up_until_ms.is_none() && shared.take_back(one.number) {
                back.push(self.requests.remove(index).exchange);
            }
        }
        back.reverse();
        back
    }

    /// The counter of the limit that it has reached.
    fn outgrown(&self, served: u64, now_ms: u64) -> Option<&Cell> {
        let counters = &self.home.counters;
        match () {
            () if self.requests_left == 0 => Some(&counters.limit_resident_requests),
            () if now_ms >= self.age_due_ms => Some(&counters.limit_resident_age),
            () if self.is_too_large(served) => Some(&counters.limit_resident_memory),
            () => None,
        }
    }

    fn is_too_large(&self, served: u64) -> bool {
        let most = self.pool.settings.workers.max_memory;
        if most == 0 || !served.is_multiple_of(MEMORY_EVERY) && served > 8 {
            return false;
        }
        let Some(bytes) = self.post.pid().and_then(resident_bytes) else {
            return false;
        };
        self.post.memory_bytes.store(bytes, Ordering::Relaxed);
        bytes > most
    }
}

impl Drop for Core {
    /// The thread ends before the worker does.
    fn drop(&mut self) {
        if !self.is_concluded {
            self.is_asked = true;
            self.blame = Some("its server thread has ended".to_owned());
            self.conclude(None, false);
            self.wakers.drain(..).for_each(Waker::wake);
        }
    }
}

fn underway(number: u32, exchange: Arc<Exchange>, pool: &Pool, now_ms: u64) -> Underway {
    let timeout = &pool.settings.timeout;
    Underway {
        number,
        is_body_sent: !exchange.has_body,
        exchange,
        has_head: false,
        is_started: false,
        body_credit: BODY_WINDOW_BYTES as usize,
        data_credit: STREAM_WINDOW_BYTES as usize,
        dropped_bytes: 0,
        step_due_ms: limit(now_ms, timeout.first_byte),
        total_due_ms: limit(now_ms, timeout.total),
        given_up_until_ms: None,
    }
}
