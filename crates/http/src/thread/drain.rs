//! How a thread ends: it accepts no more, answers what is under way, closes what is idle, and waits
//! for its tasks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::response::Answer;
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
}

/// How often a draining thread looks whether it is done, at least.
const DRAIN_LOOK_MS: u64 = 250;

impl<A: Answer + 'static> Thread<A> {
    /// Stops accepting, lets running answers finish, and then ends [`Self::run`].
    pub fn drain(&mut self, drain: Drain) {
        if let Err(error) = self.set_listeners(Vec::new()) {
            tracing::warn!(%error, "a listening socket could not be left");
        }
        if self.draining.is_none() {
            self.turn_relays();
        }
        let by = |time: Duration| self.now_ms + time.as_millis() as u64;
        self.draining = Some(Draining {
            deadline_ms: by(drain.deadline),
            grace_ms: by(drain.grace),
            has_told_last: false,
        });
        self.tell_to_leave();
        self.end_when_drained();
    }

    /// Clients that may ask again over their connection hear that they are not to.
    fn tell_to_leave(&mut self) {
        self.tell_to_leave_h3();
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if let Some(conn) = slot.conn.take_if(|conn| conn.h2.is_some()) {
                self.drive_and_keep(conn);
            }
        }
    }

    pub(crate) fn end_when_drained(&mut self) {
        let Some(draining) = self.draining else {
            return;
        };
        if self.now_ms >= draining.grace_ms {
            self.close_idle();
        }
        if self.now_ms >= draining.deadline_ms {
            self.close_all();
        }
        let waits_for_tasks =
            self.now_ms < draining.deadline_ms && self.reactor.has_awaited_tasks();
        // Those on their way to this thread count too.
        let conn_count = self.mailbox.conn_count.load(Ordering::Relaxed);
        if !waits_for_tasks && conn_count == 0 && self.mailbox.close() {
            self.must_stop = true;
            return;
        }
        let next = if self.now_ms < draining.grace_ms {
            draining.grace_ms
        } else {
            draining.deadline_ms
        };
        self.arm_timer(next.min(self.now_ms + DRAIN_LOOK_MS));
    }

    /// Closes connections without a request, after a last look for one.
    fn close_idle(&mut self) {
        // Once: each goes by itself when it has its answers, and having all look again is work for
        // the next turn, which would look again.
        if let Some(draining) = &mut self.draining
            && !std::mem::replace(&mut draining.has_told_last, true)
        {
            self.tell_to_leave_h3();
        }
        for index in 0..self.slots.len() {
            let idle = self.slots[index].conn.take_if(|conn| conn.is_idle());
            if let Some(mut conn) = idle {
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
        self.close_all_h3();
        for index in 0..self.slots.len() {
            if let Some(conn) = self.slots[index].conn.take() {
                self.close_because(conn, Why::ServerStops);
            }
        }
    }
}
