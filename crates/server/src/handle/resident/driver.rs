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
use hob_ipc::limits::PAYLOAD_BYTES_MAX;
use hob_ipc::message::{self, Carrier, MessageHead, MessageKind};
use hob_ipc::shm::WorkerPayload;

use crate::handle::resident::bound::Bond;
use crate::handle::resident::chunk::ChunkBytes;
use crate::handle::resident::exchange::{AnswerPiece, Ending, HeadSaid, WorkerExchange};
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::{CHUNKS_HELD_SHARE, STREAM_WINDOW_BYTES};
use crate::handle::resident::mailbox::{Greeting, WorkerMailbox};
use crate::handle::resident::pool::Pool;
use crate::handle::resident::requests::UnderwayRequests;
use crate::handle::resident::said::WorkerOutput;
use crate::handle::resident::service::Service;
use crate::handle::resident::termination::{Termination, after, jitter, limit};
use crate::handle::resident::wire::Offer;
use crate::handle::resident::worker::DriverThread;

/// What is known of a worker, apart from how it is reached.
pub(super) struct DrivenWorker {
    /// The thread it belongs to, on which all of this happens.
    pub(super) home: Rc<DriverThread>,
    /// Where requests come from, and what hears of its end.
    pub(super) pool: Arc<Pool>,
    /// What other threads have for it.
    pub(super) mailbox: Arc<WorkerMailbox>,
    /// Those it has begun, by their numbers on the wire.
    pub(super) requests: UnderwayRequests,
    /// What it prints, which is logged and may explain its end.
    pub(super) said: WorkerOutput,
    /// Starting, ready, leaving: which messages it may send now.
    pub(super) stage: DriverStage,
    /// What it was offered, then what it has chosen.
    pub(super) offer: Offer,
    /// Chunks that are held for clients; when they are many, what comes is copied.
    pub(super) chunks_held: u32,
    /// How fast it answers, for what is handed over ahead.
    pub(super) service: Service,
    /// How far its end has got: asked, SIGTERM, SIGKILL.
    pub(super) termination: Termination,
    /// Messages for it.
    pub(super) answers: Vec<(MessageHead, Vec<u8>)>,
    /// Bytes of those, at most, that found no room on their way.
    pub(super) unread_bytes: usize,
    /// Exchanges with news for their requests.
    pub(super) wakers: Vec<Waker>,
    /// Exchanges to attend to, and requests to begin, when messages are no longer looked at.
    pub(super) attentions: Vec<Arc<WorkerExchange>>,
    /// Requests to begin, likewise.
    pub(super) begun: VecDeque<Arc<WorkerExchange>>,
    /// Numbers of requests that are over.
    pub(super) over: Vec<u32>,
    /// Requests that came too late for it.
    pub(super) unbegun: Vec<Arc<WorkerExchange>>,
    /// How long it may be idle; zero is for ever.
    pub(super) idle: Duration,
    /// Bodies wait for room on the way to it.
    pub(super) is_crowded: bool,
    /// When it is to be gone because the server ends, whatever it has under way.
    pub(super) leave_by_ms: u64,
    /// When it is due to be replaced.
    pub(super) age_due_ms: u64,
    /// So many more until it is replaced.
    pub(super) requests_left: u64,
    /// Since when it has had no request.
    pub(super) idle_since_ms: u64,
    /// The request that was sent last, if nothing was sent after it.
    pub(super) sent_last: u32,
    /// It may pass descriptors.
    pub(super) passes_files: bool,
    /// Files that were named, in order: their descriptors are to be taken.
    pub(super) files: Vec<(MessageHead, FileRange)>,
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
pub(super) enum DriverStage {
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

impl DrivenWorker {
    pub(super) fn new(
        home: Rc<DriverThread>,
        pool: Arc<Pool>,
        mailbox: Arc<WorkerMailbox>,
        said: WorkerOutput,
        offer: Offer,
    ) -> DrivenWorker {
        let now_ms = home.reactor.now_ms();
        let settings = &pool.settings;
        let jitter = match pool.is_bound() {
            true => 1.0,
            false => jitter(mailbox.number, now_ms),
        };
        DrivenWorker {
            requests: UnderwayRequests::new(&home.reactor),
            stage: DriverStage::Starting {
                until_ms: after(now_ms, settings.timeout.start),
            },
            offer,
            chunks_held: 0,
            service: Service::new(now_ms),
            termination: Termination::Serves,
            answers: Vec::new(),
            unread_bytes: 0,
            leave_by_ms: u64::MAX,
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
            mailbox,
        }
    }
}

/// What the worker says.
impl DrivenWorker {
    /// A message of the worker.
    pub(super) fn handle(&mut self, head: MessageHead, payload: WorkerPayload<'_>) {
        if head.kind == MessageKind::Data {
            return self.handle_data(head, payload);
        }
        // A checked head: nothing else comes in chunks.
        let WorkerPayload::Bytes(payload) = payload else {
            return;
        };
        if head.kind == MessageKind::WorkerHello {
            return self.greet(head, payload);
        }
        if !matches!(self.stage, DriverStage::Ready) {
            self.blame = Some("it spoke before it greeted".to_owned());
            return;
        }
        if head.kind == MessageKind::File {
            return self.note_file(head, payload);
        }
        let Some(index) = self.requests.find(head.request) else {
            // Of a request that is over, or of none.
            if head.kind == MessageKind::Callout {
                self.call_out(head, payload, None);
            }
            return;
        };
        self.requests.at(index).is_started = true;
        match head.kind {
            MessageKind::Head => self.take_head(index, head, payload),
            MessageKind::End => {
                let ending = match head.has(message::FAILED) {
                    true => Ending::Failed(ResidentFailure::Said(
                        String::from_utf8_lossy(payload).into_owned(),
                    )),
                    false => Ending::Whole(payload.to_vec()),
                };
                self.finish(index, ending);
            }
            MessageKind::Info => {
                let exchange = &self.requests.at(index).exchange;
                let (is_kept, waker) = exchange.put_interim(head.small, payload);
                self.wakers.extend(waker);
                if !is_kept {
                    self.home.counters.limit_resident_interims.add(1);
                }
            }
            MessageKind::WorkerWindow => {
                let one = self.requests.at(index);
                one.body_credit = one.body_credit.saturating_add(head.large as usize);
                self.attentions.push(Arc::clone(&one.exchange));
            }
            MessageKind::Callout => self.call_out(head, payload, Some(index)),
            _ => {}
        }
    }

    fn handle_data(&mut self, head: MessageHead, payload: WorkerPayload<'_>) {
        if !matches!(self.stage, DriverStage::Ready) {
            self.blame = Some("it spoke before it greeted".to_owned());
        } else if let Some(index) = self.requests.find(head.request) {
            self.requests.at(index).is_started = true;
            self.take_data(index, head, payload);
        }
    }

    fn greet(&mut self, head: MessageHead, library: &[u8]) {
        let DriverStage::Starting { .. } = self.stage else {
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
        let _ = self
            .mailbox
            .greeting
            .set(Greeting::new(head.large, library));
        self.be_ready();
    }

    /// It takes requests.
    pub(super) fn be_ready(&mut self) {
        self.stage = DriverStage::Ready;
        let now_us = self.home.reactor.now_us();
        self.idle_since_ms = now_us / 1000;
        self.pool.ready(&self.mailbox, now_us, &mut self.begun);
    }

    fn take_head(&mut self, index: usize, head: MessageHead, payload: &[u8]) {
        if self.requests.at(index).has_head {
            self.blame = Some("it sent a second head for one request".to_owned());
            return;
        }
        let lines = payload.to_vec();
        let said = match head.has(message::TUNNEL) {
            true => {
                self.begin_tunnel(index);
                HeadSaid::Tunnel(head.small, lines)
            }
            false => HeadSaid::Lines(head.small, lines),
        };
        self.put_head(index, said);
        if head.is_last() {
            self.finish(index, Ending::Whole(Vec::new()));
        }
    }

    /// From here on its time is that of a tunnel.
    fn begin_tunnel(&mut self, index: usize) {
        let one = self.requests.at(index);
        one.is_tunnel = true;
        one.pause_max = self.pool.settings.timeout.tunnel;
        one.total_due_ms = u64::MAX;
        // Bytes come for a request that had no body.
        one.is_body_sent &= one.exchange.has_body;
        self.mailbox.tunnels.fetch_add(1, Ordering::Relaxed);
        self.home.counters.tunnels.add(1);
    }

    /// The head of an answer is here.
    pub(super) fn put_head(&mut self, index: usize, said: HeadSaid) {
        let now_ms = self.home.reactor.now_ms();
        if let Some(Bond::Kept(wait)) = self.pool.hear(&said, now_ms) {
            self.idle = wait;
        }
        let one = self.requests.at(index);
        one.is_started = true;
        one.has_head = true;
        one.begin_pause(now_ms);
        if one.given_up_until_ms.is_none() {
            self.wakers.extend(one.exchange.put_head(said));
        }
    }

    /// A piece of an answer's body.
    pub(super) fn take_data(
        &mut self,
        index: usize,
        head: MessageHead,
        payload: WorkerPayload<'_>,
    ) {
        let now_ms = self.home.reactor.now_ms();
        let one = self.requests.at(index);
        let len = match &payload {
            WorkerPayload::Bytes(bytes) => bytes.len(),
            WorkerPayload::Chunk(chunk) => chunk.len(),
        };
        if len > one.data_credit {
            self.blame = Some("it sent more data than its window allows".to_owned());
            return;
        }
        let ends_half = head.has(message::TUNNEL);
        if one.has_ended_half || (ends_half && !one.is_tunnel) {
            let blame = match one.has_ended_half {
                true => "it sent data after its half-close of a tunnel",
                false => "it half-closed what is no tunnel",
            };
            self.blame = Some(blame.to_owned());
            return;
        }
        one.data_credit -= len;
        one.begin_pause(now_ms);
        if len > 0 {
            let mut is_wanted = false;
            if one.given_up_until_ms.is_none() {
                let held_max = self.pool.settings.shared.chunk_count / CHUNKS_HELD_SHARE;
                let may_hold = self.chunks_held as usize <= held_max;
                let counters = &self.home.counters;
                let piece = || match payload {
                    WorkerPayload::Bytes(bytes) => {
                        AnswerPiece::Bytes(Bytes::copy_from_slice(bytes))
                    }
                    WorkerPayload::Chunk(chunk) if may_hold => {
                        AnswerPiece::Chunk(ChunkBytes::new(chunk))
                    }
                    WorkerPayload::Chunk(chunk) => {
                        counters.worker_copies.add(1);
                        let mut bytes = Vec::with_capacity(len);
                        chunk.copy_to(&mut bytes);
                        AnswerPiece::Bytes(bytes.into())
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
        if ends_half {
            let one = self.requests.at(index);
            one.has_ended_half = true;
            let (_, waker) = one.exchange.put_data(|| AnswerPiece::HalfClose);
            self.wakers.extend(waker);
            return;
        }
        if head.is_last() {
            self.finish(index, Ending::Whole(Vec::new()));
            return;
        }
        let one = self.requests.at(index);
        if one.data_credit < PAYLOAD_BYTES_MAX && !one.is_tunnel {
            // It waits for the client now, or will with its next piece.
            one.step_due_ms = u64::MAX;
        }
    }

    /// Data that nobody wants: the worker is to come to its end.
    pub(super) fn drop_data(&mut self, index: usize, bytes: usize) {
        let one = self.requests.at(index);
        one.dropped_bytes += bytes;
        if one.dropped_bytes >= STREAM_WINDOW_BYTES as usize / 2 {
            let dropped = mem::take(&mut one.dropped_bytes);
            one.data_credit += dropped;
            let head = MessageHead::new(MessageKind::Window, one.number).large(dropped as u32);
            self.answers.push((head, Vec::new()));
        }
    }
}

impl Drop for DrivenWorker {
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
