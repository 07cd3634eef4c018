//! From the control API to the process that steers: what is asked, and what came of it.

use std::collections::HashMap;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::event::EventfdFlags;

use crate::life::Wish;

/// Wishes on their way to the keeper, and its answers on their way back.
pub struct Helm {
    state: Mutex<State>,
    bell: OwnedFd,
}

#[derive(Default)]
struct State {
    new: Vec<(Wish, Arc<Wait>)>,
    asked: HashMap<u64, Arc<Wait>>,
}

#[derive(Default)]
struct Wait {
    state: Mutex<(Option<Outcome>, Option<Waker>)>,
}

/// What came of a wish.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// It was done.
    pub is_ok: bool,
    /// What happened, or why not.
    pub text: String,
}

impl Helm {
    /// Nothing asked yet.
    pub fn new() -> std::io::Result<Helm> {
        let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Helm {
            state: Mutex::default(),
            bell,
        })
    }

    /// Asks; the future is ready when it is known what came of it.
    pub fn ask(&self, wish: Wish) -> Asked {
        let wait = Arc::new(Wait::default());
        lock(&self.state).new.push((wish, Arc::clone(&wait)));
        // A full counter is as good as a ring.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        Asked { wait }
    }

    /// Readable when something was asked.
    pub fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    /// Passes every new wish to `send`, which gives the number its answer will have.
    pub fn pass_on(&self, mut send: impl FnMut(Wish) -> u64) {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        let mut state = lock(&self.state);
        for (wish, wait) in std::mem::take(&mut state.new) {
            let number = send(wish);
            state.asked.insert(number, wait);
        }
    }

    /// Tells the one who asked.
    pub fn answer(&self, number: u64, outcome: Outcome) {
        let Some(wait) = lock(&self.state).asked.remove(&number) else {
            return;
        };
        let mut state = lock(&wait.state);
        state.0 = Some(outcome);
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// An answer to come.
pub struct Asked {
    wait: Arc<Wait>,
}

impl Future for Asked {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = lock(&self.wait.state);
        match state.0.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
