//! A worker that belongs to one visitor: its pool has no other, starts it once, and ends with it.
//! Who keeps the visitor is asked with each answer whether the worker stays.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::handle::resident::exchange::HeadSaid;
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::members::PoolState;
use crate::handle::resident::pool::Pool;

/// Who keeps the visitor.
pub(crate) trait BoundTo: Send + Sync {
    /// The head of an answer has come from the worker.
    fn hear(&self, head: &HeadSaid, now_ms: u64) -> Bond;
    /// The worker takes no more requests.
    fn let_go(&self, why: &BondEnd);
}

/// What becomes of a worker with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bond {
    /// It waits for the visitor's next request, so long.
    Kept(Duration),
    /// It stays what it was.
    Unchanged,
    /// It finishes what it has, and goes.
    Over,
}

/// Why a worker goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BondEnd {
    /// Its answer did not ask for another request.
    Answered,
    /// The visitor did not come back in time.
    Idle,
    /// It is as old as one may be.
    Age,
    /// Its place is another's, an operator ended it, or its config is gone.
    Ended,
    /// Its process has ended, and nobody asked it to: how.
    Died(String),
}

/// The bond of a pool.
pub(crate) struct PoolBond {
    /// Who keeps the visitor.
    pub(crate) to: Weak<dyn BoundTo>,
}

impl Pool {
    /// It has one worker, which belongs to a visitor.
    pub(super) fn is_bound(&self) -> bool {
        self.bond.is_some()
    }

    fn bound_to(&self) -> Option<Arc<dyn BoundTo>> {
        self.bond.as_ref()?.to.upgrade()
    }

    /// The head of an answer is here: what becomes of the worker; `None` for one of many.
    pub(super) fn hear(&self, head: &HeadSaid, now_ms: u64) -> Option<Bond> {
        self.bond.as_ref()?;
        // Nobody keeps the visitor any more.
        let bond = self
            .bound_to()
            .map_or(Bond::Over, |to| to.hear(head, now_ms));
        if bond == Bond::Over {
            self.unbind(&BondEnd::Answered);
        }
        Some(bond)
    }

    /// Its worker takes no more requests, and goes when it has finished what it has.
    pub(crate) fn unbind(&self, why: &BondEnd) {
        self.retire();
        self.tell_end(why);
    }

    pub(super) fn tell_end(&self, why: &BondEnd) {
        if let Some(to) = self.bound_to() {
            to.let_go(why);
        }
    }

    /// Why a request of the visitor does not wait.
    pub(super) fn refuse_bound(&self, state: &PoolState) -> Option<ResidentFailure> {
        self.bond.as_ref()?;
        let is_full = state.waiting.len() >= self.settings.queue && state.started > 0;
        is_full.then_some(ResidentFailure::VisitorBusy)
    }

    /// Why nothing is given to it any more.
    pub(super) fn retired(&self) -> ResidentFailure {
        match self.is_bound() {
            true => ResidentFailure::VisitOver,
            false => ResidentFailure::Stopping,
        }
    }

    /// Since when its worker has had nothing to do, in loop time; `None` while it has.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        let state = self.state.lock();
        let is_idle = state.waiting.is_empty();
        let member = state.members.first().filter(|_| is_idle)?;
        member.active.is_empty().then_some(member.idle_since_ms)
    }
}
