//! The driver of one worker: a task on the thread that started it, from its start to its end.
//!
//! Each poll takes messages, writes, reads what the worker says, writes again, then looks at the
//! clock, at what it printed and whether it still lives. Requests are woken at the end, when
//! everything that came with one read is in their exchanges.

use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use hob_http::reactor::Timer;
use hob_http::{Hold, Reactor};
use hob_ipc::hello::Hello;
use hob_ipc::limits::HEAD_BYTES;
use hob_ipc::message::{self, Carrier, MessageHead, MessageKind};
use hob_ipc::shm::WorkerPayload;
use hob_trace::metric::ThreadCounters;

use crate::handle::config::{self, CarrierChoice};
use crate::handle::resident::driver::{DrivenWorker, DriverStage};
use crate::handle::resident::grow::WorkerStart;
use crate::handle::resident::limits::{
    AHEAD_WAIT, BODY_WINDOW_BYTES, CLOSED_TURNS_MAX, LAST_WORDS_WAIT, READ_BYTES_PER_TURN,
    STREAM_WINDOW_BYTES, UNREAD_BYTES_MAX,
};
use crate::handle::resident::lines::Heard;
use crate::handle::resident::mailbox::{ToDriver, WorkerMailbox};
use crate::handle::resident::pool::{Gone, Pool};
use crate::handle::resident::said::{Speaker, WorkerOutput};
use crate::handle::resident::start::Started;
use crate::handle::resident::termination::{Termination, after};
use crate::handle::resident::wire::{FILES_LOST, Offer, WorkerReadOutcome, WorkerWire};
use crate::serve::fleet::Fleet;
use hob_keeper::process::{Child, Exit, Launcher};

/// A thread as its workers see it.
pub(crate) struct DriverThread {
    /// Its number.
    pub(crate) thread: usize,
    pub(crate) reactor: Reactor,
    pub(crate) launcher: Launcher,
    pub(crate) counters: Arc<ThreadCounters>,
    pub(crate) fleet: Arc<Fleet>,
}

impl Drop for DriverThread {
    fn drop(&mut self) {
        self.fleet.lose_thread(self.thread);
    }
}

impl DriverThread {
    /// Starts a worker on this thread.
    pub(crate) fn start(self: &Rc<Self>, order: WorkerStart) {
        self.counters.worker_starts.add(1);
        let (pool, mailbox) = order.take();
        let recipe = pool.recipe.lock().clone();
        let offer = match pool.settings.carrier {
            CarrierChoice::Auto | CarrierChoice::Shm => Offer::SharedMemory,
            CarrierChoice::Stream => Offer::Stream,
            CarrierChoice::Lines => Offer::Lines,
        };
        match recipe.start(&self.reactor, &self.launcher, offer) {
            Ok(started) => {
                let mut worker = Worker::new(Rc::clone(self), pool, mailbox, started);
                self.reactor
                    .spawn_standing(async move { poll_fn(|cx| worker.poll(cx)).await });
            }
            Err(error) => {
                let gone = Gone {
                    unstarted: Vec::new(),
                    is_crash: true,
                    is_blameless: true,
                    text: format!("there are no descriptors for it: {error}"),
                };
                pool.gone(&mailbox, gone, self.reactor.now_ms());
                self.tend_later(&pool);
            }
        }
    }

    /// Has a pool look again when its pause is over.
    pub(super) fn tend_later(&self, pool: &Arc<Pool>) {
        let Some(pause) = pool.pause(self.reactor.now_ms()) else {
            return;
        };
        let (pool, timer, reactor) = (Arc::clone(pool), self.reactor.timer(), self.reactor.clone());
        timer.set(pause);
        self.reactor.spawn_standing(async move {
            timer.elapsed().await;
            pool.tend(reactor.now_ms());
        });
    }
}

/// One worker.
struct Worker {
    /// Its thread ends after it.
    _stay: Hold,
    wire: WorkerWire,
    child: Child,
    core: DrivenWorker,
    /// Elapses when `due_ms` is there.
    clock: Timer,
    due_ms: u64,
    messages: Vec<ToDriver>,
    /// Elapses when requests that were handed ahead have waited for a while, and how many had been
    /// answered when it was set.
    ahead: Timer,
    is_ahead_set: bool,
    ahead_served: u64,
}

impl Worker {
    fn new(
        home: Rc<DriverThread>,
        pool: Arc<Pool>,
        mailbox: Arc<WorkerMailbox>,
        started: Started,
    ) -> Worker {
        let mut wire = started.wire;
        greet(&mut wire, &pool);
        let said = WorkerOutput::new(&pool, started.stdout, started.stderr);
        let core = DrivenWorker::new(home, pool, mailbox, said, wire.offer());
        Worker {
            _stay: core.home.reactor.stay(),
            clock: core.home.reactor.timer(),
            ahead: core.home.reactor.timer(),
            is_ahead_set: false,
            ahead_served: 0,
            due_ms: u64::MAX,
            messages: Vec::new(),
            wire,
            child: started.child,
            core,
        }
    }

    /// Ready when the worker is gone.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.core.offer == Offer::Lines {
            self.begin_turn_in_lines(cx);
        }
        self.read_letters(cx);
        self.send_answers();
        self.flush(cx);
        self.read(cx);
        self.send_answers();
        self.flush(cx);
        self.look_at_clock(cx);
        self.go_on_with_bodies();
        self.send_answers();
        self.flush(cx);
        self.look_at_unread();
        if self.core.is_crowded && self.wire.waiting_bytes() == 0 {
            // All of it left at once: others first, then the rest.
            cx.waker().wake_by_ref();
        }
        let is_quiet = self.listen(cx);
        let is_gone = self.look_at_exit(cx, is_quiet);
        if !is_gone {
            self.rest(cx);
        }
        for waker in self.core.wakers.drain(..) {
            waker.wake();
        }
        if is_gone {
            return Poll::Ready(());
        }
        self.set_clock(cx);
        Poll::Pending
    }

    /// Sends what there is. Before a request goes to an idle worker, what that has printed is read:
    /// it is not of this one.
    fn flush(&mut self, cx: &mut Context<'_>) {
        if self.core.said.must_forget() {
            let _ = self.listen(cx);
        }
        self.wire.flush(cx);
    }

    /// Lines have no numbers: what a worker wrote before it had a request has to be seen before it
    /// gets one.
    fn begin_turn_in_lines(&mut self, cx: &mut Context<'_>) {
        if matches!(self.core.stage, DriverStage::Starting { .. }) {
            // It will not say that it is ready: requests wait for it in its pipe.
            self.core.be_ready();
            self.core.begin_all(&mut self.wire);
        } else if self.core.requests.is_empty() {
            self.read(cx);
        }
    }

    fn read_letters(&mut self, cx: &Context<'_>) {
        let mut messages = mem::take(&mut self.messages);
        self.core.mailbox.collect(cx, &mut messages);
        for message in messages.drain(..) {
            match message {
                ToDriver::Begin(exchange) => {
                    self.core.begun.push_back(exchange);
                    self.core.begin_all(&mut self.wire);
                }
                ToDriver::Attend(exchange) => self.core.attend(&mut self.wire, &exchange),
                ToDriver::Drain => self.core.drain(),
                ToDriver::Ask => self.core.ask(&self.child),
                ToDriver::Leave => self.core.leave(),
            }
        }
        self.messages = messages;
        if matches!(self.core.stage, DriverStage::Closed { .. }) {
            self.core.hand_back();
        }
    }

    /// What had no room on the way to the worker has it now.
    fn go_on_with_bodies(&mut self) {
        if !self.core.is_crowded || self.wire.waiting_bytes() > 0 {
            return;
        }
        self.core.is_crowded = false;
        let unsent = self.core.requests.iter().filter(|one| !one.is_body_sent);
        let exchanges: Vec<_> = unsent.map(|one| Arc::clone(&one.exchange)).collect();
        for exchange in exchanges {
            self.core.attend(&mut self.wire, &exchange);
        }
    }

    fn send_answers(&mut self) {
        if matches!(self.core.stage, DriverStage::Starting { .. }) {
            // Which way it will listen is not known yet.
            return;
        }
        for (head, payload) in self.core.answers.drain(..) {
            self.core.sent_last = 0;
            self.core.unread_bytes += HEAD_BYTES + payload.len();
            self.wire.push(head, &payload);
        }
    }

    /// Ends a worker that asks and asks, and reads none of the replies.
    fn look_at_unread(&mut self) {
        let unread_bytes = self.core.unread_bytes.min(self.wire.waiting_bytes());
        self.core.unread_bytes = unread_bytes;
        if unread_bytes > UNREAD_BYTES_MAX && self.core.blame.is_none() {
            self.core.home.counters.limit_resident_unread.add(1);
            self.core.blame = Some("it does not read the replies to what it asks".to_owned());
            self.close(false);
        }
    }

    /// Takes what the worker says.
    fn read(&mut self, cx: &mut Context<'_>) {
        if matches!(self.core.stage, DriverStage::Closed { .. }) {
            return;
        }
        let was_blamed = self.core.blame.is_some();
        match &mut self.wire {
            WorkerWire::Messages(_) => self.read_messages(cx),
            WorkerWire::Lines(lines) => match lines.hear(cx, &mut self.core) {
                Heard::All => {}
                Heard::Part => cx.waker().wake_by_ref(),
                Heard::Closed { is_unread } => self.close(is_unread),
            },
        }
        if self.core.blame.is_some() {
            if !was_blamed {
                self.core.home.counters.worker_liars.add(1);
            }
            self.close(false);
        }
        self.core.follow_up(&mut self.wire);
    }

    fn read_messages(&mut self, cx: &mut Context<'_>) {
        let mut read_bytes = 0;
        loop {
            if self.read_shared(&mut read_bytes) {
                return cx.waker().wake_by_ref();
            }
            let WorkerWire::Messages(messages) = &mut self.wire else {
                return;
            };
            match messages.fill(cx) {
                WorkerReadOutcome::Bytes(count) => read_bytes += count,
                WorkerReadOutcome::Nothing => break,
                WorkerReadOutcome::Lost => {
                    self.core.blame = Some(FILES_LOST.to_owned());
                    break;
                }
                WorkerReadOutcome::Closed { is_unread } => {
                    // What it wrote before its end is there now. One that writes on without its
                    // socket is not followed for long.
                    let mut turns = 0..CLOSED_TURNS_MAX;
                    while turns.next().is_some() && self.read_shared(&mut 0) {}
                    return self.close(is_unread);
                }
            }
            let is_shared = self.wire.shared().is_some();
            loop {
                let WorkerWire::Messages(messages) = &mut self.wire else {
                    return;
                };
                match messages.decoder().next_message() {
                    // With shared memory its place is in the ring; this only brings the descriptor.
                    Ok(Some(message)) if is_shared && message.head.kind == MessageKind::File => {}
                    Ok(Some(message)) => {
                        let payload = WorkerPayload::Bytes(message.payload);
                        self.core.handle(message.head, payload);
                    }
                    Ok(None) => break,
                    Err(malformed) => {
                        self.core.blame = Some(malformed.to_string());
                        break;
                    }
                }
                if self.core.stage == DriverStage::Ready && messages.offer() == Offer::SharedMemory
                {
                    messages.choose(self.core.offer);
                }
                if self.core.passes_files {
                    messages.expect_files();
                }
                self.core.follow_up(&mut self.wire);
                if self.core.blame.is_some() {
                    // Nothing that follows is believed.
                    break;
                }
            }
            if self.core.blame.is_some() {
                break;
            }
            if read_bytes >= READ_BYTES_PER_TURN {
                return cx.waker().wake_by_ref();
            }
        }
    }

    /// Nothing more comes from the worker, or nothing it says is believed. What it has not started
    /// is for another one.
    fn close(&mut self, is_unread: bool) {
        self.core.unstarted(&mut self.wire);
        self.core.close(&self.child, is_unread);
        self.core.hand_back();
        self.wire.hang_up();
    }

    /// Takes messages from shared memory; true when there may be more than one turn takes.
    fn read_shared(&mut self, read_bytes: &mut usize) -> bool {
        while self.core.blame.is_none() {
            let Some(shared) = self.wire.shared() else {
                return false;
            };
            let mut end = shared.end().borrow_mut();
            self.core.chunks_held = end.chunks_held();
            match end.pop() {
                Ok(Some(incoming)) => {
                    *read_bytes += HEAD_BYTES;
                    *read_bytes += match &incoming.payload {
                        WorkerPayload::Bytes(bytes) => bytes.len(),
                        WorkerPayload::Chunk(chunk) => chunk.len(),
                    };
                    self.core.handle(incoming.head, incoming.payload);
                }
                Ok(None) => return false,
                Err(lie) => self.core.blame = Some(lie.to_string()),
            }
            drop(end);
            self.core.follow_up(&mut self.wire);
            if *read_bytes >= READ_BYTES_PER_TURN {
                return true;
            }
        }
        false
    }

    /// Sees to it that the worker's next message is noticed, and that requests handed to it ahead
    /// do not wait behind a long one.
    fn rest(&mut self, cx: &mut Context<'_>) {
        let count = self.core.requests.len();
        let Some(shared) = self.wire.shared() else {
            return;
        };
        shared.listen(cx);
        shared.count(&self.core.home.counters);
        if shared.set_busy(count > 0) {
            cx.waker().wake_by_ref();
        }
        let served = self.core.mailbox.served.load(Ordering::Relaxed);
        if self.ahead.poll_elapsed(cx).is_ready() {
            self.ahead.clear();
            self.is_ahead_set = false;
            if served == self.ahead_served {
                self.core.take_back(&mut self.wire);
            }
        }
        let concurrency = usize::from(self.core.pool.settings.workers.concurrency);
        if self.core.requests.len() > concurrency && !self.is_ahead_set {
            self.is_ahead_set = true;
            self.ahead_served = served;
            self.ahead.set_precise(AHEAD_WAIT);
            // Its waker is to be known.
            if self.ahead.poll_elapsed(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
    }

    /// True when nothing more is heard of it.
    fn listen(&mut self, cx: &mut Context<'_>) -> bool {
        let core = &mut self.core;
        if core.mailbox.pid().is_none()
            && let Some(pid) = self.child.pid()
        {
            core.mailbox.pid.store(pid, Ordering::Relaxed);
        }
        let request = match core.requests.len() {
            1 => core.requests.iter().next().map(|one| one.exchange.name),
            _ => None,
        };
        let speaker = Speaker {
            pid: core.mailbox.pid(),
            request,
            now_ms: core.home.reactor.now_ms(),
            counters: &core.home.counters,
            reactor: &core.home.reactor,
        };
        // Lines do not say that they are ready: answers do.
        let is_of_use = matches!(core.stage, DriverStage::Ready)
            && (core.offer != Offer::Lines
                || !core.requests.is_empty()
                || core.mailbox.served.load(Ordering::Relaxed) > 0);
        if is_of_use && !core.said.was_ready() {
            core.said.be_ready(&speaker);
        }
        core.said.poll(cx, &speaker).is_ready()
    }

    /// True when its process has ended, and all is told.
    fn look_at_exit(&mut self, cx: &mut Context<'_>, is_quiet: bool) -> bool {
        let now_ms = self.core.home.reactor.now_ms();
        let is_open = !matches!(self.core.stage, DriverStage::Closed { .. });
        let exit = match self.child.poll_exit(cx) {
            // The process goes on; only nobody tells any more how it ends.
            Poll::Ready(Exit::SpawnerGone)
                if is_open && self.core.termination != Termination::Killed =>
            {
                return false;
            }
            Poll::Ready(exit) => Some(exit),
            Poll::Pending => None,
        };
        if exit.is_some() && is_open {
            // What it wrote before its end is there; this is the last look.
            self.wire.look_again();
            self.read(cx);
            let is_unread = self.wire.is_unread();
            self.close(is_unread);
        }
        let core = &mut self.core;
        let DriverStage::Closed {
            is_unread,
            exit_until_ms,
            words_until_ms,
        } = &mut core.stage
        else {
            return false;
        };
        let is_unread = *is_unread;
        if exit.is_some() {
            if is_quiet || now_ms >= *words_until_ms {
                core.conclude(exit, is_unread);
                return true;
            }
            *exit_until_ms = u64::MAX;
            *words_until_ms = after(now_ms, LAST_WORDS_WAIT).min(*words_until_ms);
        } else if now_ms >= *exit_until_ms {
            *exit_until_ms = u64::MAX;
            core.fail_all(None, is_unread);
        }
        false
    }

    fn look_at_clock(&mut self, cx: &mut Context<'_>) {
        if self.clock.poll_elapsed(cx).is_pending() {
            return;
        }
        self.clock.clear();
        self.due_ms = u64::MAX;
        let now_ms = self.core.home.reactor.now_ms();
        self.core
            .look_at_requests(&mut self.wire, &self.child, now_ms);
        self.core.look_at_itself(&self.child, now_ms);
    }

    /// Sets the clock if something is due before what it is set to.
    fn set_clock(&mut self, cx: &mut Context<'_>) {
        let due_ms = self.core.due_ms();
        if due_ms >= self.due_ms {
            return;
        }
        self.due_ms = due_ms;
        let reactor = &self.core.home.reactor;
        let left_ms = due_ms.saturating_sub(reactor.now_ms());
        self.clock.set(Duration::from_millis(left_ms.max(1)));
        // Its waker is to be known.
        if self.clock.poll_elapsed(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}

/// Says what the worker is offered.
fn greet(wire: &mut WorkerWire, pool: &Pool) {
    let carrier = match wire.offer() {
        Offer::SharedMemory => Carrier::Shm,
        Offer::Stream => Carrier::Stream,
        Offer::Lines => return,
    };
    let head = MessageHead::new(MessageKind::Hello, 0).small(message::VERSION);
    wire.push(head, &hello(&pool.settings, carrier).encode());
}

/// What a worker is offered.
pub(crate) fn hello(settings: &config::Resident, carrier: Carrier) -> Hello {
    Hello {
        concurrency: settings.workers.concurrency,
        data_window_bytes: STREAM_WINDOW_BYTES,
        body_window_bytes: BODY_WINDOW_BYTES,
        carrier,
        takes_files: true,
        takes_half_close: true,
    }
}
