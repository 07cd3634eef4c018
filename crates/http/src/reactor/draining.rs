//! What a drain tells at once: answers that have no end of their own come to one, so that it waits
//! for none of them.

use std::task::{Context, Poll, Waker};

use crate::reactor::Reactor;
use crate::reactor::slab::Slab;
use crate::reactor::watched::keep;

/// Who wants to know when its thread begins to drain.
pub struct DrainWatch {
    reactor: Reactor,
    key: u64,
}

/// All of a thread's.
#[derive(Default)]
pub(super) struct DrainWatches {
    has_begun: bool,
    waiting: Slab<Option<Waker>>,
}

impl Reactor {
    /// A watch that is told when the thread drains.
    pub fn watch_drain(&self) -> DrainWatch {
        let key = self.0.drain_watches.borrow_mut().waiting.insert(None);
        DrainWatch {
            reactor: self.clone(),
            key,
        }
    }

    /// The thread drains from now on.
    pub(crate) fn begin_drain(&self) {
        let mut watches = self.0.drain_watches.borrow_mut();
        watches.has_begun = true;
        let waiting = watches.waiting.values_mut();
        let wakers: Vec<Waker> = waiting.filter_map(Option::take).collect();
        drop(watches);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl DrainWatch {
    /// Ready as soon as the thread drains, and from then on.
    pub fn poll_begun(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut watches = self.reactor.0.drain_watches.borrow_mut();
        if watches.has_begun {
            return Poll::Ready(());
        }
        let place = watches.waiting.get_mut(self.key);
        let replaced = place.and_then(|place| keep(place, cx));
        drop(watches);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for DrainWatch {
    fn drop(&mut self) {
        let mut watches = self.reactor.0.drain_watches.borrow_mut();
        let waker = watches.waiting.remove(self.key);
        drop(watches);
        drop(waker);
    }
}
