//! From the control API to the process that steers: what is asked, and what came of it.

use std::collections::HashMap;
use std::future::Future;
use std::os::fd::OwnedFd;

use hob_trace::Mutex;
use rustix::event::EventfdFlags;
use tokio::sync::oneshot::{Sender, channel};

use hob_keeper::Wish;

/// Wishes on their way to the keeper, and its answers on their way back.
pub struct Helm {
    state: Mutex<PendingWishes>,
    bell: OwnedFd,
}

#[derive(Default)]
struct PendingWishes {
    new: Vec<(Wish, Sender<WishOutcome>)>,
    asked: HashMap<u64, Sender<WishOutcome>>,
}

/// What came of a wish.
#[derive(Clone, Debug)]
pub struct WishOutcome {
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
    pub fn ask(&self, wish: Wish) -> impl Future<Output = WishOutcome> + use<> {
        let (sender, outcome) = channel();
        self.state.lock().new.push((wish, sender));
        // A full counter is as good as a ring.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        async {
            outcome.await.unwrap_or_else(|_| WishOutcome {
                is_ok: false,
                text: "nobody is left to answer".to_owned(),
            })
        }
    }

    /// Readable when something was asked.
    pub fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    /// Passes every new wish to `send`, which gives the number its answer will have.
    pub fn pass_on(&self, mut send: impl FnMut(Wish) -> u64) {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        let mut state = self.state.lock();
        for (wish, sender) in std::mem::take(&mut state.new) {
            let number = send(wish);
            state.asked.insert(number, sender);
        }
    }

    /// Tells the one who asked.
    pub fn answer(&self, number: u64, outcome: WishOutcome) {
        let asked = self.state.lock().asked.remove(&number);
        // Who asked may have left.
        asked.map(|sender| sender.send(outcome));
    }
}
