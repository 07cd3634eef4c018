//! Queues in memory that other processes fill, beside what the kernel tells of.
//!
//! While a thread is awake it looks into them once in every turn, and whoever fills one has no need
//! to wake it. Before it waits they are told, so that they can ask to be woken:
//!
//! ```text
//! events -> look -> tasks -> connections -> flush -> fall_asleep -> wait -> wake_up -> events ...
//!                                                    `-- only when there is nothing to do
//! ```

use std::rc::Rc;

use crate::reactor::Reactor;

/// A queue that is looked into while the thread is awake. Nothing here may wait.
pub trait Standby {
    /// Once in every turn, after its events and before its tasks: wakes who waits for what came.
    fn look(&self);
    /// At the end of every turn: hands over what its connections left, in one go. True when
    /// whoever takes from it was woken since the last time.
    fn flush(&self) -> bool;
    /// The thread is about to wait: from now on it has to be woken. True when something has come
    /// since the last look; then the thread does not wait.
    fn fall_asleep(&self) -> bool;
    /// The thread waits no more.
    fn wake_up(&self);
}

/// The place of a queue among those of its thread; dropping it gives it up.
pub struct StandbyGuard {
    reactor: Reactor,
    index: usize,
}

/// The queues of a thread. Places are used again.
#[derive(Default)]
pub(super) struct Standbys {
    places: Vec<Option<Rc<dyn Standby>>>,
    free: Vec<usize>,
}

impl Reactor {
    /// Has a queue looked into from the next turn on.
    pub fn stand_by(&self, standby: Rc<dyn Standby>) -> StandbyGuard {
        let mut standbys = self.0.standbys.borrow_mut();
        let index = match standbys.free.pop() {
            Some(index) => {
                standbys.places[index] = Some(standby);
                index
            }
            None => {
                standbys.places.push(Some(standby));
                standbys.places.len() - 1
            }
        };
        StandbyGuard {
            reactor: self.clone(),
            index,
        }
    }

    pub(crate) fn look_at_standbys(&self) {
        self.each_standby(|standby| standby.look());
    }

    /// True when somebody was woken for what was handed over.
    pub(crate) fn flush_standbys(&self) -> bool {
        let mut has_woken = false;
        self.each_standby(|standby| has_woken |= standby.flush());
        has_woken
    }

    /// True when one of them has something: then nobody sleeps.
    pub(crate) fn standbys_fall_asleep(&self) -> bool {
        let mut has_work = false;
        self.each_standby(|standby| has_work |= standby.fall_asleep());
        if has_work {
            self.wake_standbys();
        }
        has_work
    }

    pub(crate) fn wake_standbys(&self) {
        self.each_standby(|standby| standby.wake_up());
    }

    /// Nothing is borrowed meanwhile: queues may come and go.
    fn each_standby(&self, mut visit: impl FnMut(&dyn Standby)) {
        let mut index = 0;
        loop {
            let standby = match self.0.standbys.borrow().places.get(index) {
                Some(place) => place.clone(),
                None => break,
            };
            if let Some(standby) = standby {
                visit(&*standby);
            }
            index += 1;
        }
    }
}

impl Drop for StandbyGuard {
    fn drop(&mut self) {
        let mut standbys = self.reactor.0.standbys.borrow_mut();
        let standby = standbys.places[self.index].take();
        standbys.free.push(self.index);
        drop(standbys);
        drop(standby);
    }
}
