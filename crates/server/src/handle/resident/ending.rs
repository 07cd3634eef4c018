//! A worker's clock and its end: requests whose time is up, a worker that is to go, one that went.

use std::mem;
use std::sync::atomic::Ordering;

use crate::handle::config;
use crate::handle::resident::bound::BondEnd;
use crate::handle::resident::driver::{DrivenWorker, DriverStage};
use crate::handle::resident::exchange::Ending;
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::{CLOSED_WAIT, EXIT_WAIT, LAST_WORDS_WAIT};
use crate::handle::resident::mailbox::ToDriver;
use crate::handle::resident::pool::Gone;
use crate::handle::resident::requests::Underway;
use crate::handle::resident::termination::{SignalSent, Termination, after, limit};
use crate::handle::resident::wire::WorkerWire;
use crate::handle::script::stderr::cause;
use crate::handle::script::stderr::one_line;
use hob_ipc::message::{MessageHead, MessageKind};
use hob_keeper::process::{Child, Exit};

impl Underway {
    /// Nobody waits for it any more: the worker is told, and is to be done with it by then.
    pub(super) fn give_up(&mut self, wire: &mut WorkerWire, until_ms: u64) {
        if self.given_up_until_ms.is_none() {
            self.given_up_until_ms = Some(until_ms);
            wire.push(MessageHead::new(MessageKind::Cancel, self.number), b"");
        }
    }
}

impl DrivenWorker {
    /// When something is due, in loop time.
    pub(super) fn due_ms(&self) -> u64 {
        let is_idle = self.requests.is_empty();
        let own = match self.stage {
            DriverStage::Starting { until_ms } => until_ms,
            DriverStage::Ready if is_idle && self.termination == Termination::Serves => {
                self.idle_due_ms().min(self.age_due_ms)
            }
            DriverStage::Ready => u64::MAX,
            DriverStage::Closed {
                exit_until_ms,
                words_until_ms,
                ..
            } => exit_until_ms.min(words_until_ms),
        };
        own.min(self.requests.due_ms())
            .min(self.termination.due_ms(is_idle))
            .min(self.leave_by_ms)
    }

    fn idle_due_ms(&self) -> u64 {
        limit(self.idle_since_ms, self.idle)
    }

    /// Tells requests whose time is up; ends the worker when one stays that nobody waits for.
    pub(super) fn look_at_requests(&mut self, wire: &mut WorkerWire, child: &Child, now_ms: u64) {
        let grace = self.pool.settings.grace;
        let (mut is_stuck, mut is_late) = (false, false);
        for index in 0..self.requests.len() {
            let one = self.requests.at(index);
            if let Some(until_ms) = one.given_up_until_ms {
                is_stuck |= now_ms >= until_ms;
                continue;
            }
            let failure = match one.has_head {
                _ if now_ms >= one.total_due_ms => ResidentFailure::Total,
                false if now_ms >= one.step_due_ms => ResidentFailure::FirstByte,
                true if now_ms < one.step_due_ms => continue,
                true if one.is_tunnel => ResidentFailure::TunnelIdle,
                true if one.is_events => ResidentFailure::Silent,
                true => ResidentFailure::Progress,
                _ => continue,
            };
            let counters = &self.home.counters;
            match failure {
                ResidentFailure::Total => counters.limit_resident_total.add(1),
                ResidentFailure::FirstByte => counters.limit_resident_first_byte.add(1),
                ResidentFailure::TunnelIdle => counters.limit_resident_tunnel.add(1),
                ResidentFailure::Silent => counters.limit_resident_events.add(1),
                _ => counters.limit_resident_progress.add(1),
            }
            is_late = true;
            one.give_up(wire, after(now_ms, grace));
            self.wakers
                .extend(one.exchange.end(Ending::Failed(failure)));
        }
        if is_late && self.pool.is_bound() {
            self.pool.unbind(&BondEnd::Ended);
        }
        if is_stuck {
            // It gets nothing more, and goes once what others wait for has come to its end.
            self.drain();
            let is_all = self
                .requests
                .iter()
                .all(|one| one.given_up_until_ms.is_some());
            if is_all && self.termination.ask(child, now_ms, grace) == SignalSent::Term {
                self.home.counters.worker_terms.add(1);
                self.home.counters.limit_resident_grace.add(1);
                self.is_asked = true;
                self.blame.get_or_insert_with(|| {
                    "it did not come to an end with a request that nobody waited for".to_owned()
                });
            }
        }
    }

    /// Looks after the worker itself: its start, its idleness, its way out.
    pub(super) fn look_at_itself(&mut self, child: &Child, now_ms: u64) {
        let grace = self.pool.settings.grace;
        match self.stage {
            DriverStage::Starting { until_ms }
                if now_ms >= until_ms && self.termination == Termination::Serves =>
            {
                self.home.counters.limit_resident_start.add(1);
                self.blame = Some("it was not ready in time (resident.timeout.start)".to_owned());
                self.termination.ask(child, now_ms, grace);
            }
            DriverStage::Ready
                if self.termination == Termination::Serves
                    && self.requests.is_empty()
                    && self.pool.is_bound() =>
            {
                self.look_at_bond(now_ms);
            }
            DriverStage::Ready
                if self.termination == Termination::Serves && self.requests.is_empty() =>
            {
                if now_ms >= self.age_due_ms {
                    if self.pool.replace(&self.mailbox, now_ms) {
                        self.home.counters.limit_resident_age.add(1);
                    }
                    // Asked again in a while, should the new one not come.
                    self.age_due_ms = after(now_ms, grace.max(CLOSED_WAIT));
                }
                if now_ms >= self.idle_due_ms() {
                    match self.pool.may_go(&self.mailbox) {
                        true => {
                            self.home.counters.limit_resident_idle.add(1);
                            self.drain();
                        }
                        false => self.idle_since_ms = now_ms,
                    }
                }
            }
            _ => {}
        }
        let is_idle = self.requests.is_empty();
        let step = match now_ms >= self.leave_by_ms {
            true => self.end_late(child, now_ms),
            false => self
                .termination
                .take_due_step(child, now_ms, is_idle, grace),
        };
        match step {
            SignalSent::Term => self.home.counters.worker_terms.add(1),
            SignalSent::Kill => self.home.counters.worker_kills.add(1),
            SignalSent::None => {}
        }
    }

    /// A visitor's worker has nothing to do: whether the visitor's time is up.
    fn look_at_bond(&mut self, now_ms: u64) {
        let counters = &self.home.counters;
        let (why, counter) = match now_ms >= self.age_due_ms {
            true => (BondEnd::Age, &counters.limit_session_life),
            false if now_ms >= self.idle_due_ms() => (BondEnd::Idle, &counters.limit_session_wait),
            false => return,
        };
        if self.pool.may_go(&self.mailbox) {
            counter.add(1);
            self.pool.unbind(&why);
            self.drain();
        }
    }

    /// It is to finish what it has, and go.
    pub(super) fn drain(&mut self) {
        if self.termination != Termination::Serves {
            return;
        }
        let now_ms = self.home.reactor.now_ms();
        self.pool.close(&self.mailbox);
        self.answers
            .push((MessageHead::new(MessageKind::Drain, 0), Vec::new()));
        self.is_asked = true;
        self.termination = Termination::Drains {
            until_ms: after(now_ms, self.pool.settings.grace),
        };
    }

    /// The server ends: the same, within `grace`, whatever it has under way.
    pub(super) fn leave(&mut self) {
        self.drain();
        let now_ms = self.home.reactor.now_ms();
        let by_ms = after(now_ms, self.pool.settings.grace);
        self.leave_by_ms = self.leave_by_ms.min(by_ms);
    }

    /// It was to be gone by now: SIGTERM, and soon after that SIGKILL.
    fn end_late(&mut self, child: &Child, now_ms: u64) -> SignalSent {
        if self.termination == Termination::Killed {
            self.leave_by_ms = u64::MAX;
            return SignalSent::None;
        }
        self.is_asked = true;
        let step = self.termination.ask(child, now_ms, LAST_WORDS_WAIT);
        self.leave_by_ms = after(now_ms, LAST_WORDS_WAIT);
        match step {
            SignalSent::Term => {
                self.home.counters.limit_resident_grace.add(1);
                step
            }
            // It was asked before.
            _ => self.termination.kill(child),
        }
    }

    /// It is asked what it is doing, which ends it.
    pub(super) fn ask(&mut self, child: &Child) {
        let now_ms = self.home.reactor.now_ms();
        self.pool.close(&self.mailbox);
        let grace = self.pool.settings.grace;
        if self.termination.ask(child, now_ms, grace) == SignalSent::Term {
            self.home.counters.worker_terms.add(1);
            self.is_asked = true;
            self.blame
                .get_or_insert_with(|| "an operator asked for its stack".to_owned());
        }
    }

    /// Its channel has ended, or it broke the protocol: nothing more comes from it.
    pub(super) fn close(&mut self, child: &Child, is_unread: bool) {
        if matches!(self.stage, DriverStage::Closed { .. }) {
            return;
        }
        let now_ms = self.home.reactor.now_ms();
        self.pool.close(&self.mailbox);
        let was_starting = matches!(self.stage, DriverStage::Starting { .. });
        self.stage = DriverStage::Closed {
            is_unread,
            exit_until_ms: after(now_ms, EXIT_WAIT),
            words_until_ms: u64::MAX,
        };
        // One that was told to go has the time it was given: code after its loop may run.
        let may_take_its_time = self.is_asked && self.blame.is_none();
        if child.exit().is_none() && self.termination != Termination::Killed && !may_take_its_time {
            // It ends by itself, or is made to.
            let grace = match self.blame.is_some() && !was_starting {
                true => LAST_WORDS_WAIT,
                false => CLOSED_WAIT,
            };
            self.termination.hasten(after(now_ms, grace));
        }
    }

    /// Nothing more comes from it: what it has not started in shared memory is for another worker.
    pub(super) fn unstarted(&mut self, wire: &mut WorkerWire) {
        let mut unstarted = self.reclaim(wire);
        unstarted.append(&mut self.unbegun);
        self.unbegun = unstarted;
    }

    /// Requests that it will not begin are for others at once, however long it takes to end.
    pub(super) fn hand_back(&mut self) {
        if self.unbegun.is_empty() {
            return;
        }
        let back = mem::take(&mut self.unbegun);
        self.home.counters.worker_handbacks.add(back.len() as u64);
        let now_ms = self.home.reactor.now_ms();
        self.pool.give_back(&self.mailbox, back, now_ms);
    }

    /// Tells everybody who waits that nothing more comes. Requests that it had not started are for
    /// another worker.
    pub(super) fn fail_all(&mut self, exit: Option<Exit>, is_unread: bool) {
        let text = self.obituary(exit);
        let sent_last = mem::take(&mut self.sent_last);
        for one in self.requests.take() {
            let is_unstarted = is_unread && one.number == sent_last && !one.is_started;
            if is_unstarted && one.given_up_until_ms.is_none() {
                self.unbegun.push(one.exchange);
                continue;
            }
            let failure = match &self.blame {
                Some(_) => ResidentFailure::Malformed(text.clone()),
                None => ResidentFailure::Died(text.clone()),
            };
            self.wakers
                .extend(one.exchange.end(Ending::Failed(failure)));
        }
    }

    /// Its process has ended: the pool is told.
    pub(super) fn conclude(&mut self, exit: Option<Exit>, is_unread: bool) {
        let text = self.obituary(exit);
        let now_ms = self.home.reactor.now_ms();
        self.fail_all(exit, is_unread);
        for message in self.mailbox.close() {
            if let ToDriver::Begin(exchange) = message {
                self.unbegun.push(exchange);
            }
        }
        let program = self.pool.settings.runs.name();
        let (pid, served) = (
            self.mailbox.pid(),
            self.mailbox.served.load(Ordering::Relaxed),
        );
        // What it printed has its own lines in the log, or is told by its cause.
        let how = one_line(&self.end_in_words(exit));
        match self.is_asked {
            true => tracing::debug!(program, pid, served, "a worker is gone: {how}"),
            false => {
                self.home.counters.worker_crashes.add(1);
                if self.pool.is_bound() {
                    self.home.counters.session_deaths.add(1);
                }
                match self.said.was_ready() {
                    true => self.log_end(now_ms, &how),
                    false => self.log_failed_start(&how),
                }
            }
        }
        let gone = Gone {
            unstarted: mem::take(&mut self.unbegun),
            is_crash: !self.is_asked,
            is_blameless: (self.termination != Termination::Killed && is_kill(exit))
                || exit.is_some_and(|exit| exit.is_lack()),
            text,
        };
        let handbacks = gone.unstarted.len() as u64;
        if handbacks > 0 {
            self.home.counters.worker_handbacks.add(handbacks);
        }
        self.is_concluded = true;
        self.pool.gone(&self.mailbox, gone, now_ms);
        self.home.tend_later(&self.pool);
    }

    /// Nobody asked it to end. A client may have each request end one, and the log has a rate.
    fn log_end(&self, now_ms: u64, how: &str) {
        let program = self.pool.settings.runs.name();
        let (pid, served) = (
            self.mailbox.pid(),
            self.mailbox.served.load(Ordering::Relaxed),
        );
        let Some(left_out) = self.pool.ends.allows(now_ms) else {
            return;
        };
        if left_out > 0 {
            tracing::warn!(program, ends = left_out, "more workers ended, not logged");
        }
        tracing::warn!(program, pid, served, "a worker ended: {how}");
    }

    /// It was never ready. The same cause again is told once: starts are tried again and again.
    fn log_failed_start(&self, how: &str) {
        let config::Resident { runs, place, .. } = &*self.pool.settings;
        let (program, pid) = (runs.name(), self.mailbox.pid());
        let printed = self.said.last_words();
        let why = match cause(&printed) {
            "" => how.to_owned(),
            cause => format!("{} ({how})", one_line(cause)),
        };
        match self.pool.is_new_failure(&why) {
            true => tracing::warn!(
                program,
                pid,
                "{place}: {}; all that it printed is told by `hob status --programs`, and for a \
                 request that failed by `hob history`",
                unstarted(&why)
            ),
            false => tracing::debug!(program, pid, "a worker did not start again: {why}"),
        }
    }

    /// How it ended, what it did wrong, and what it printed last.
    fn obituary(&self, exit: Option<Exit>) -> String {
        let mut text = self.end_in_words(exit);
        let printed = self.said.last_words();
        if !printed.is_empty() {
            text.push_str("; it printed: ");
            text.push_str(&printed);
        }
        text
    }

    /// How it ended, and what it did wrong.
    fn end_in_words(&self, exit: Option<Exit>) -> String {
        let mut text = self.blame.clone().unwrap_or_default();
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&ended_in_words(exit));
        text
    }
}

/// That a worker did not start, as the log and `hob check` have it.
pub(crate) fn unstarted(why: &str) -> String {
    format!("a worker did not start: {}", one_line(why))
}

/// How a worker's process ended.
pub(crate) fn ended_in_words(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Ended {
            signal: Some(signal),
            ..
        }) => format!("signal {signal}"),
        Some(Exit::Ended { code, .. }) => format!("exit code {}", code.unwrap_or_default()),
        Some(Exit::NotStarted { step, errno }) => {
            let error = std::io::Error::from_raw_os_error(errno);
            format!("cannot {step}: {error}")
        }
        Some(Exit::SpawnerGone | Exit::HostGone) => {
            "the process that starts programs died".to_owned()
        }
        Some(Exit::Busy) => "too many programs wait to be started".to_owned(),
        None => "its channel has ended".to_owned(),
    }
}

/// A process ended by SIGKILL, which no program sends itself.
fn is_kill(exit: Option<Exit>) -> bool {
    let kill = rustix::process::Signal::KILL.as_raw();
    matches!(exit, Some(Exit::Ended { signal: Some(signal), .. }) if signal == kill)
}
