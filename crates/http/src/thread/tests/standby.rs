//! Queues in memory beside the epoll set: nothing that comes into one is slept over.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::reactor::{Standby, StandbyGuard};

/// A queue of which only the length counts, as another process would fill it.
struct Shared {
    filled: AtomicU64,
    taken: AtomicU64,
    is_asleep: AtomicBool,
    bell: OwnedFd,
}

impl Shared {
    fn fill(&self) {
        self.filled.fetch_add(1, Ordering::SeqCst);
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            rustix::io::write(&self.bell, &1_u64.to_ne_bytes()).unwrap();
        }
    }
}

/// The thread's side of it.
struct Queue {
    shared: Arc<Shared>,
    probe: Arc<Probe>,
    last: u64,
    calls: RefCell<String>,
    is_awake: Cell<bool>,
    guard: RefCell<Option<StandbyGuard>>,
}

impl Standby for Queue {
    fn look(&self) {
        assert!(self.is_awake.get(), "it is told before it is asked");
        let filled = self.shared.filled.load(Ordering::SeqCst);
        if self.shared.taken.swap(filled, Ordering::SeqCst) != filled && filled == self.last {
            self.probe.note("all taken");
            // Gives up its own place while it is visited.
            self.guard.take();
        }
    }

    fn flush(&self) -> bool {
        self.calls.borrow_mut().push('f');
        // Whether the thread gives way before it sleeps makes no difference.
        self.shared.taken.load(Ordering::SeqCst).is_multiple_of(2)
    }

    fn fall_asleep(&self) -> bool {
        assert!(self.calls.take().ends_with('f'), "flushed before it sleeps");
        self.is_awake.set(false);
        self.shared.is_asleep.store(true, Ordering::SeqCst);
        let filled = self.shared.filled.load(Ordering::SeqCst);
        filled != self.shared.taken.load(Ordering::SeqCst)
    }

    fn wake_up(&self) {
        self.is_awake.set(true);
        self.shared.is_asleep.store(false, Ordering::SeqCst);
    }
}

#[test]
fn nothing_that_comes_into_a_queue_is_slept_over() {
    const COUNT: u64 = 20_000;
    let server = serve(HttpLimits::default());
    let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let heard = rustix::io::dup(&bell).unwrap();
    let shared = Arc::new(Shared {
        filled: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        is_asleep: AtomicBool::new(false),
        bell,
    });
    let (theirs, probe) = (Arc::clone(&shared), Arc::clone(&server.probe));
    server.ask(move |thread| {
        let queue = Rc::new(Queue {
            shared: theirs,
            probe,
            last: COUNT,
            calls: RefCell::default(),
            is_awake: Cell::new(true),
            guard: RefCell::default(),
        });
        let reactor = thread.reactor.clone();
        let guard = reactor.stand_by(Rc::clone(&queue) as Rc<dyn Standby>);
        *queue.guard.borrow_mut() = Some(guard);
        // An event of the bell begins a turn; it need not be read.
        let bell = reactor.watch(heard).unwrap();
        reactor.spawn_standing(async move {
            let _kept = bell;
            std::future::pending::<()>().await;
        });
    });
    for number in 0..COUNT {
        shared.fill();
        // Now and then the thread has the time to fall asleep.
        while number % 7 == 0 && shared.taken.load(Ordering::SeqCst) <= number {
            std::thread::yield_now();
        }
    }
    assert_eq!(server.note(), "all taken");
    assert_eq!(server.connect().ask("/ready").text(), "ready");
}
