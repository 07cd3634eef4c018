//! How a thread ends: it accepts no more, answers what is under way, closes what is idle, and waits
//! for its tasks. Then it waits for the other threads, whose requests may need what it has started,
//! and in the end for that to end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::response::Responder;
use crate::thread::conn::SocketConnection;
use crate::thread::drive::Fate;
use crate::thread::ending::Why;
use crate::thread::run::Thread;
use crate::thread::shared::Drain;

/// When draining goes a step further.
#[derive(Clone, Copy)]
pub(crate) struct Draining {
    pub(crate) deadline_ms: u64,
    pub(crate) grace_ms: u64,
    /// Connections over QUIC were told which request is the last one.
    has_told_last: bool,
    /// Nobody has a request any more: until then it waits for what stays.
    leave_until_ms: Option<u64>,
}

/// So long a connection may take until its first request is there: who has just connected has sent
/// it, and would not send it again.
const FIRST_REQUEST_MS: u64 = 1000;
/// How often a draining thread looks whether it is done, at least.
const DRAIN_LOOK_MS: u64 = 250;

impl<A: Responder + 'static> Thread<A> {
    /// Stops accepting, lets running answers finish, and then ends [`Self::run`].
    pub fn drain(&mut self, drain: Drain) {
        let mut staying = self.accepting.listeners.clone();
        staying.retain(|listening| listening.outlasts_drain);
        if let Err(error) = self.set_listeners(staying) {
            tracing::warn!(%error, "a listening socket could not be left");
        }
        if self.draining.is_none() {
            self.turn_relays();
        }
        let by = |time: Duration| self.turn.now_ms + time.as_millis() as u64;
        self.draining = Some(Draining {
            deadline_ms: by(drain.deadline),
            grace_ms: by(drain.grace),
            has_told_last: false,
            leave_until_ms: self.draining.and_then(|before| before.leave_until_ms),
        });
        self.tell_to_leave();
        self.reactor.begin_drain();
        self.end_when_drained();
    }

    /// Clients that may ask again over their connection hear that they are not to.
    fn tell_to_leave(&mut self) {
        self.mark_sessions();
        for index in 0..self.seats.len() {
            if let Some(conn) = self.seats.take_if(index, |conn| conn.h2.is_some()) {
                self.drive_and_keep(conn);
            }
        }
    }

    pub(crate) fn end_when_drained(&mut self) {
        let Some(draining) = self.draining else {
            return;
        };
        if self.turn.now_ms >= draining.grace_ms {
            self.close_idle();
        }
        if self.turn.now_ms >= draining.deadline_ms {
            self.close_all();
        }
        let is_late = self.turn.now_ms >= draining.deadline_ms;
        let is_awaited = || self.reactor.has_awaited_tasks() || self.answer.has_more_to_come();
        let waits_for_tasks = !is_late && is_awaited();
        // Those on their way to this thread count too.
        let conn_count = self.mailbox.conn_count.load(Ordering::Relaxed);
        let is_quiet = !waits_for_tasks && conn_count == 0;
        self.crew.set_quiet(self.index, is_quiet);
        let mut next = if self.turn.now_ms < draining.grace_ms {
            draining.grace_ms
        } else {
            draining.deadline_ms
        };
        if is_late || self.crew.is_quiet() {
            next = self.leave();
            let waits_for_stays = self.turn.now_ms < next && self.reactor.has_stays();
            if is_quiet && !waits_for_stays && self.mailbox.close() {
                self.must_stop = true;
                return;
            }
        }
        self.timer.arm(next.min(self.turn.now_ms + DRAIN_LOOK_MS));
    }

    /// What serves requests is to end, as nobody has one any more; until when that may take.
    fn leave(&mut self) -> u64 {
        let Some(draining) = &mut self.draining else {
            return self.turn.now_ms;
        };
        *draining.leave_until_ms.get_or_insert_with(|| {
            let time = self.answer.leave();
            self.turn.now_ms.saturating_add(time.as_millis() as u64)
        })
    }

    /// Closes connections without a request, after a last look for one.
    fn close_idle(&mut self) {
        // Once: each goes by itself when it has its answers, and having all look again is work for
        // the next turn, which would look again.
        if let Some(draining) = &mut self.draining
            && !std::mem::replace(&mut draining.has_told_last, true)
        {
            self.mark_sessions();
        }
        // Who is still let in has come with a request, which may be on its way.
        let listeners = &self.accepting.listeners;
        let staying: Vec<u16> = listeners.iter().map(|one| one.number).collect();
        let now_ms = self.turn.now_ms;
        for index in 0..self.seats.len() {
            let goes = |conn: &mut Box<SocketConnection>| {
                let is_new = conn.request_count == 0 && conn.h2.is_none();
                let is_awaited = is_new && now_ms < conn.opened_ms + FIRST_REQUEST_MS;
                conn.is_idle() && !is_awaited && !staying.contains(&conn.facts.listener)
            };
            if let Some(mut conn) = self.seats.take_if(index, goes) {
                if self.drive_if_busy(&mut conn) == Fate::Keep && !conn.is_idle() {
                    self.keep(conn);
                } else {
                    self.close(conn);
                }
            }
        }
    }

    /// The time to drain is over.
    fn close_all(&mut self) {
        self.close_sessions();
        for index in 0..self.seats.len() {
            if let Some(conn) = self.seats.take_if(index, |_| true) {
                self.close_because(conn, Why::ServerStops);
            }
        }
    }
}
