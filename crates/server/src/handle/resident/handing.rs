//! A worker's requests: handed over, attended to, taken back, finished.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_ipc::limits::PAYLOAD_BYTES_MAX;
use hob_ipc::message::{self, MessageHead, MessageKind};
use hob_machine::process::resident_bytes;
use hob_trace::metric::CounterCell;
use hob_trace::watch::{Hidden, Pen, RequestStage};

use crate::handle::resident::bound::BondEnd;
use crate::handle::resident::driver::{DrivenWorker, DriverStage};
use crate::handle::resident::exchange::{Ending, RequestName, WorkerExchange};
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::{
    BODY_WINDOW_BYTES, MEMORY_EVERY, OUT_BYTES_MAX, STREAM_WINDOW_BYTES,
};
use crate::handle::resident::pool::Pool;
use crate::handle::resident::requests::Underway;
use crate::handle::resident::termination::{Termination, after, limit};
use crate::handle::resident::wire::{Offer, WorkerWire};

impl DrivenWorker {
    /// Begins the requests that it was given, in the order they came. One that nobody waits for
    /// any more makes room for others, which are begun, too.
    pub(super) fn begin_all(&mut self, wire: &mut WorkerWire) {
        while let Some(exchange) = self.begun.pop_front() {
            self.begin(wire, exchange);
        }
    }

    fn begin(&mut self, wire: &mut WorkerWire, exchange: Arc<WorkerExchange>) {
        let now_us = self.home.reactor.now_us();
        let now_ms = now_us / 1000;
        if matches!(self.stage, DriverStage::Closed { .. }) {
            // Another worker gets it once the end of this one is told.
            self.unbegun.push(exchange);
            return;
        }
        let number = self.requests.next_number();
        if !exchange.begin(number, now_us) {
            return self.pass_over(&exchange);
        }
        let flags = match exchange.has_body {
            true => 0,
            false => message::LAST,
        };
        let head = MessageHead::new(MessageKind::Request, number).flags(flags);
        if let Err(failure) = wire.hand(head, &exchange.block) {
            return self.refuse(&exchange, failure);
        }
        self.sent_last = number;
        self.tell(&exchange.name, RequestStage::Worker, |text| {
            text.push_str("handed to worker ");
            match self.mailbox.pid() {
                Some(pid) => text.push_str(&pid.to_string()),
                None => text.push_str("just started"),
            }
        });
        if self.pool.settings.workers.concurrency > 1 {
            self.said.begin_one_of_many(exchange.name);
        }
        if self.requests.is_empty() {
            self.said.begin_request();
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

    /// Tells those who watch a request what happens to it.
    pub(super) fn tell(
        &self,
        name: &RequestName,
        stage: RequestStage,
        write: impl FnOnce(&mut String),
    ) {
        if !name.trail.is_traced() {
            return;
        }
        let mut text = String::new();
        write(&mut text);
        let reactor = &self.home.reactor;
        let tell = |pen: &mut Pen<'_>, _: Option<&Hidden>| pen.text("text", text.as_bytes());
        reactor
            .station()
            .tell(&name.trail, stage, reactor.now_us(), tell);
    }

    /// A request that cannot be handed over.
    fn refuse(&mut self, exchange: &Arc<WorkerExchange>, failure: ResidentFailure) {
        self.wakers.extend(exchange.end(Ending::Failed(failure)));
        self.pass_over(exchange);
    }

    /// The worker does not get this one.
    fn pass_over(&mut self, exchange: &Arc<WorkerExchange>) {
        let (ahead, now_us) = (self.ahead(), self.home.reactor.now_us());
        let more = &mut self.begun;
        self.pool
            .finished(&self.mailbox, exchange, ahead, now_us, more);
    }

    /// Passes on what is new in an exchange.
    pub(super) fn attend(&mut self, wire: &mut WorkerWire, exchange: &WorkerExchange) {
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
            let news = exchange.news(credit.min(PAYLOAD_BYTES_MAX));
            if let Some(total) = news.total {
                one.total_due_ms = limit(now_ms, total);
            }
            if news.is_events {
                one.begin_events(self.pool.settings.timeout.events, now_ms);
                self.mailbox.event_streams.fetch_add(1, Ordering::Relaxed);
            }
            if news.taken_bytes > 0 {
                one.data_credit += news.taken_bytes;
                one.begin_pause(now_ms);
                wire.push(
                    MessageHead::new(MessageKind::Window, number).large(news.taken_bytes as u32),
                    b"",
                );
                self.sent_last = 0;
            }
            if news.has_left {
                if let Some(unstarted) = self.take_out(wire, index) {
                    return self.pass_over(&unstarted);
                }
                self.sent_last = 0;
                let one = self.requests.at(index);
                match self.pool.is_bound() {
                    // The visitor comes back: the program finishes what it has begun.
                    true => one.given_up_until_ms = Some(one.total_due_ms),
                    false => one.give_up(wire, after(now_ms, grace)),
                }
                return;
            }
            let is_last = news.is_body_over && !one.is_body_sent;
            if news.body.is_none() && !is_last {
                return;
            }
            let body = news.body.unwrap_or_default();
            one.body_credit -= body.len();
            one.is_body_sent |= is_last;
            if one.is_tunnel {
                one.begin_pause(now_ms);
            }
            let flags = if is_last { message::LAST } else { 0 };
            wire.push(
                MessageHead::new(MessageKind::Body, number).flags(flags),
                &body,
            );
            self.sent_last = 0;
            if is_last {
                return;
            }
        }
    }

    /// A request is over, as far as the worker is concerned.
    pub(super) fn finish(&mut self, index: usize, ending: Ending) {
        let one = self.requests.remove(index);
        self.over.push(one.number);
        if one.is_tunnel {
            self.mailbox.tunnels.fetch_sub(1, Ordering::Relaxed);
        }
        if one.is_events {
            self.mailbox.event_streams.fetch_sub(1, Ordering::Relaxed);
        }
        let now_us = self.home.reactor.now_us();
        let now_ms = now_us / 1000;
        if self.pool.is_bound() && !one.has_head {
            // What is no answer does not ask for another request.
            self.pool.unbind(&BondEnd::Answered);
        }
        if let Termination::Drains { until_ms } = &mut self.termination
            && self.pool.is_bound()
        {
            // What comes after its last answer has the whole time.
            *until_ms = after(now_ms, self.pool.settings.grace);
        }
        self.wakers.extend(one.exchange.end(ending));
        let served = self.mailbox.served.fetch_add(1, Ordering::Relaxed) + 1;
        if served > 1 {
            self.home.counters.worker_reuses.add(1);
        }
        self.idle_since_ms = now_ms;
        self.requests_left = self.requests_left.saturating_sub(1);
        if let Some(counter) = self.outgrown(served, now_ms)
            && self.pool.replace(&self.mailbox, now_ms)
        {
            counter.add(1);
        }
        self.service.note(now_ms);
        let ahead = self.ahead();
        self.pool
            .finished(&self.mailbox, &one.exchange, ahead, now_us, &mut self.begun);
    }

    /// What follows from messages, once they are no longer looked at.
    pub(super) fn follow_up(&mut self, wire: &mut WorkerWire) {
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
            Offer::SharedMemory if self.termination == Termination::Serves => self.service.ahead(),
            _ => 0,
        }
    }

    /// It has said nothing for a while: requests that it was handed ahead go back.
    pub(super) fn take_back(&mut self, wire: &mut WorkerWire) {
        let now_ms = self.home.reactor.now_ms();
        self.service.forget(now_ms);
        let back = self.reclaim(wire);
        if !back.is_empty() {
            self.home.counters.worker_takebacks.add(back.len() as u64);
            self.pool.give_back(&self.mailbox, back, now_ms);
        }
    }

    /// Takes the requests out of shared memory that it has not started and never will, in the order
    /// they came. One with a body stays: some of that may be with the worker already.
    pub(super) fn reclaim(&mut self, wire: &mut WorkerWire) -> Vec<Arc<WorkerExchange>> {
        let mut back = Vec::new();
        for index in (0..self.requests.len()).rev() {
            let is_wanted = self.requests.at(index).given_up_until_ms.is_none();
            match self.take_out(wire, index) {
                Some(exchange) if is_wanted => back.push(exchange),
                Some(exchange) => self.pass_over(&exchange),
                None => {}
            }
        }
        back.reverse();
        back
    }

    /// Takes one of them out, unless the worker has started it.
    fn take_out(&mut self, wire: &mut WorkerWire, index: usize) -> Option<Arc<WorkerExchange>> {
        let one = self.requests.at(index);
        let may_go = !one.is_started && !one.exchange.has_body;
        let is_out = may_go && wire.shared()?.take_back(one.number);
        is_out.then(|| self.requests.remove(index).exchange)
    }

    /// The counter of the limit that it has reached.
    fn outgrown(&self, served: u64, now_ms: u64) -> Option<&CounterCell> {
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
        let Some(bytes) = self.mailbox.pid().and_then(resident_bytes) else {
            return false;
        };
        self.mailbox.memory_bytes.store(bytes, Ordering::Relaxed);
        bytes > most
    }
}

fn underway(number: u32, exchange: Arc<WorkerExchange>, pool: &Pool, now_ms: u64) -> Underway {
    let timeout = &pool.settings.timeout;
    Underway {
        number,
        is_body_sent: !exchange.has_body,
        exchange,
        has_head: false,
        is_tunnel: false,
        is_events: false,
        has_ended_half: false,
        is_started: false,
        body_credit: BODY_WINDOW_BYTES as usize,
        data_credit: STREAM_WINDOW_BYTES as usize,
        dropped_bytes: 0,
        pause_max: timeout.progress,
        step_due_ms: limit(now_ms, timeout.first_byte),
        total_due_ms: limit(now_ms, timeout.total),
        given_up_until_ms: None,
    }
}
