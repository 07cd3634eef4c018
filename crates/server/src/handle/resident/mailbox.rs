//! A worker as other threads see it: messages to its driver, and what is told of it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};

use hob_ipc::message::Carrier;
use hob_trace::Mutex;

use crate::handle::resident::exchange::WorkerExchange;

/// One worker.
pub(super) struct WorkerMailbox {
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
    /// Its answers that are streams of events.
    pub(super) event_streams: AtomicU32,
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
    messages: Vec<ToDriver>,
    driver: Option<Waker>,
    /// Nobody reads any more.
    is_closed: bool,
}

/// To a driver.
pub(super) enum ToDriver {
    /// A request for this worker.
    Begin(Arc<WorkerExchange>),
    /// Something is new in an exchange.
    Attend(Arc<WorkerExchange>),
    /// Finish and go.
    Drain,
    /// Say what you are doing, and go: SIGTERM.
    Ask,
    /// The server ends: finish and go, and be gone when `grace` is over.
    Leave,
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

impl WorkerMailbox {
    pub(super) fn new(number: u64, thread: usize, started_ms: u64) -> Arc<WorkerMailbox> {
        Arc::new(WorkerMailbox {
            number,
            thread,
            started_ms,
            pid: AtomicU32::new(0),
            served: AtomicU64::new(0),
            tunnels: AtomicU32::new(0),
            event_streams: AtomicU32::new(0),
            memory_bytes: AtomicU64::new(0),
            greeting: OnceLock::new(),
            mail: Mutex::default(),
        })
    }

    /// Sends a message; false when nobody reads it any more.
    pub(super) fn send(&self, message: ToDriver) -> bool {
        let mut mail = self.mail.lock();
        if mail.is_closed {
            return false;
        }
        mail.messages.push(message);
        let driver = mail.driver.clone();
        drop(mail);
        if let Some(driver) = driver {
            driver.wake();
        }
        true
    }

    /// Takes all messages, in exchange for an empty list; the driver is woken for the next.
    pub(super) fn collect(&self, cx: &Context<'_>, into: &mut Vec<ToDriver>) {
        let mut mail = self.mail.lock();
        std::mem::swap(&mut mail.messages, into);
        let old = match &mail.driver {
            Some(driver) if driver.will_wake(cx.waker()) => None,
            _ => mail.driver.replace(cx.waker().clone()),
        };
        drop(mail);
        drop(old);
    }

    /// The driver is gone; what was not read is dropped.
    pub(super) fn close(&self) -> Vec<ToDriver> {
        let mut mail = self.mail.lock();
        mail.is_closed = true;
        let old = mail.driver.take();
        let messages = std::mem::take(&mut mail.messages);
        drop(mail);
        drop(old);
        messages
    }

    /// Its process, once that is known.
    pub(super) fn pid(&self) -> Option<u32> {
        match self.pid.load(Ordering::Relaxed) {
            0 => None,
            pid => Some(pid),
        }
    }
}
