//! Wakers that reach a connection or a task of one thread, from anywhere.
//!
//! On the thread itself a wake is a push onto a list. From elsewhere it is a letter, with the
//! mailbox's lock and perhaps its bell.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use crate::reactor::{REACTOR, Reactor};

/// What a thread that runs the loop of a reactor is woken with from others: its mailbox.
pub(crate) trait Bell: Send + Sync {
    /// Has a connection or a task go on. A thread that has ended has nothing to wake.
    fn wake(&self, key: u64);
}

thread_local! {
    /// The reactor whose loop runs on this thread.
    static HERE: RefCell<Option<Reactor>> = const { RefCell::new(None) };
}

/// As long as it lives, this thread runs the loop of a reactor.
pub(crate) struct Here(Option<Reactor>);

impl Here {
    pub(crate) fn enter(reactor: &Reactor) -> Here {
        Here(HERE.replace(Some(reactor.clone())))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let before = self.0.take();
        let left = HERE.try_with(|here| here.replace(before));
        drop(left);
    }
}

impl Reactor {
    /// The reactor whose loop runs on this thread.
    pub(crate) fn here() -> Option<Reactor> {
        HERE.try_with(|here| here.borrow().clone()).ok().flatten()
    }

    /// Lets a connection or a task of this thread go on, if the bell is this thread's.
    fn wake_here(bell: &Arc<dyn Bell>, key: u64) -> bool {
        let woken = HERE.try_with(|here| {
            let here = here.borrow();
            let Some(reactor) = here.as_ref() else {
                return false;
            };
            let home = reactor.0.home.as_ref();
            let is_home = home.is_some_and(|home| Arc::ptr_eq(&home.bell, bell));
            if is_home {
                reactor.wake(key);
            }
            is_home
        });
        woken.unwrap_or(false)
    }

    fn wake(&self, key: u64) {
        if key & REACTOR == 0 {
            self.0.ready.push_for_later(key);
        } else {
            self.wake_task(key);
        }
    }
}

/// Wakes one connection or task of one thread, from anywhere.
pub(crate) struct KeyWaker {
    bell: Arc<dyn Bell>,
    key: u64,
    /// A wake is on its way; another would say the same.
    is_sent: AtomicBool,
}

impl KeyWaker {
    pub(crate) fn new(bell: Arc<dyn Bell>, key: u64) -> Arc<KeyWaker> {
        Arc::new(KeyWaker {
            bell,
            key,
            is_sent: AtomicBool::new(false),
        })
    }

    /// The connection or task is about to look: wakes from now on count anew.
    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        self.is_sent.store(false, Ordering::SeqCst);
        Waker::from(Arc::clone(self))
    }
}

impl Wake for KeyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_sent.swap(true, Ordering::SeqCst) && !Reactor::wake_here(&self.bell, self.key) {
            self.bell.wake(self.key);
        }
    }
}
