//! The end of one process, waited for by one task: told once, by whoever hears of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::launcher::Exit;

/// A process whose end is waited for. A cheap handle.
#[derive(Clone, Default)]
pub struct Awaited(Rc<RefCell<AwaitedState>>);

#[derive(Default)]
struct AwaitedState {
    exit: Option<Exit>,
    pid: Option<u32>,
    waker: Option<Waker>,
}

impl Awaited {
    /// It has ended.
    pub fn finish(&self, exit: Exit) {
        let waker = {
            let mut state = self.0.borrow_mut();
            state.exit = Some(exit);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// How it ended, once it has. One task may wait.
    pub fn poll_exit(&self, cx: &mut Context<'_>) -> Poll<Exit> {
        let mut state = self.0.borrow_mut();
        match state.exit {
            Some(exit) => Poll::Ready(exit),
            None => {
                let old = state.waker.replace(cx.waker().clone());
                drop(state);
                drop(old);
                Poll::Pending
            }
        }
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.0.borrow().exit
    }

    /// Its number is known now: whoever waits for its end is woken to hear of it.
    pub(crate) fn set_pid(&self, pid: u32) {
        let waker = {
            let mut state = self.0.borrow_mut();
            state.pid = Some(pid);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Its number, once that is known.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.0.borrow().pid
    }
}
