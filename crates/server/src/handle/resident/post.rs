//! A worker as other threads see it: letters to its driver, and what is told of it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};

use hob_ipc::message::Carrier;

use crate::handle::resident::exchange::Exchange;

/// One worker.
pub(super) struct Post {
    /// Its number in its pool.
    pub(super) number: u64,
    /// The thread its driver runs on.
    pub(super) thread: usize,
    /// When it was started, in loop time.
    pub(super) started_ms: u64,
    /// Process id; 0 until it is known.
    pub(super) pid: AtomicU32,
    /// Requests answered.
    pub(super) served: AtomicU64,
    /// Tunnels open.
    pub(super) tunnels: AtomicU32,
    /// Resident size when it was last looked at, in bytes.
    pub(super) memory_bytes: AtomicU64,
    /// How it greeted.
    pub(super) greeting: OnceLock<Greeting>,
    mail: Mutex<Mail>,
}

/// So much is kept of the name of a worker's library.
const LIBRARY_BYTES_MAX: usize = 64;

/// What a worker has said of itself.
pub(super) struct Greeting {
    /// How messages travel.
    pub(super) carrier: Option<Carrier>,
    /// The name and version of its library.
    pub(super) library: String,
}

#[derive(Default)]
struct Mail {
    letters: Vec<Letter>,
    driver: Option<Waker>,
    /// Nobody reads any more.
    is_closed: bool,
}

/// To a driver.
pub(super) enum Letter {
    /// A request for this worker.
    Begin(Arc<Exchange>),
    /// Something is new in an exchange.
    Attend(Arc<Exchange>),
    /// Finish and go.
    Drain,
    /// Say what you are doing, and go: SIGTERM.
    Ask,
}

impl Greeting {
    /// Of the carrier's number and what was sent as name, fit to be printed.
    pub(super) fn new(carrier: u32, library: &[u8]) -> Greeting {
        let library = &library[..library.len().min(LIBRARY_BYTES_MAX)];
        let library = String::from_utf8_lossy(library);
        Greeting {
            carrier: Carrier::from_number(carrier),
            library: library.replace(char::is_control, " "),
        }
    }
}

impl Post {
    pub(super) fn new(number: u64, thread: usize, started_ms: u64) -> Arc<Post> {
        Arc::new(Post {
            number,
            thread,
            started_ms,
            pid: AtomicU32::new(0),
            served: AtomicU64::new(0),
            tunnels: AtomicU32::new(0),
            memory_bytes: AtomicU64::new(0),
            greeting: OnceLock::new(),
            mail: Mutex::default(),
        })
    }

    /// Sends a letter; false when nobody reads it any more.
    pub(super) fn post(&self, letter: Letter) -> bool {
        let mut mail = self.lock();
        if mail.is_closed {
            return false;
        }
        mail.letters.push(letter);
        let driver = mail.driver.clone();
        drop(mail);
        if let Some(driver) = driver {
            driver.wake();
        }
        true
    }

    /// Takes all letters, in exchange for an empty list; the driver is woken for the next.
    pub(super) fn collect(&self, cx: &Context<'_>, into: &mut Vec<Letter>) {
        let mut mail = self.lock();
        std::mem::swap(&mut mail.letters, into);
        let old = match &mail.driver {
            Some(driver) if driver.will_wake(cx.waker()) => None,
            _ => mail.driver.replace(cx.waker().clone()),
        };
        drop(mail);
        drop(old);
    }

    /// The driver is gone; what was not read is dropped.
    pub(super) fn close(&self) -> Vec<Letter> {
        let mut mail = self.lock();
        mail.is_closed = true;
        let old = mail.driver.take();
        let letters = std::mem::take(&mut mail.letters);
        drop(mail);
        drop(old);
        letters
    }

    /// Its process, once that is known.
    pub(super) fn pid(&self) -> Option<u32> {
        match self.pid.load(Ordering::Relaxed) {
            0 => None,
            pid => Some(pid),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
