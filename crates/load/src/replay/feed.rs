//! What a thread gets of a log: its requests in their order, in batches, some ahead.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Instant;

use crate::limits::LOG_BATCH_COUNT_MAX;

/// A request of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logged {
    /// Which kind of request: its method.
    pub(crate) kind: u32,
    /// The status that the log has; 0 for none.
    pub(crate) status: u16,
    pub(crate) target: Box<[u8]>,
}

/// A request and when it is due, in nanoseconds of the run.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) at_ns: u64,
    /// What is asked for; what is drawn where there is no log.
    pub(crate) logged: Option<Box<Logged>>,
}

impl Due {
    /// Bytes that it holds on to.
    pub(crate) fn bytes(&self) -> usize {
        self.logged.as_ref().map_or(0, |logged| logged.target.len())
    }
}

/// What comes next.
pub(crate) enum Fed {
    Due(Due),
    /// The log is not read that far.
    NotYet,
    /// Nothing.
    End,
}

/// One thread's part of a log.
#[derive(Debug)]
pub(crate) struct Feed {
    batches: Receiver<Vec<Due>>,
    batch: std::vec::IntoIter<Due>,
}

impl Feed {
    /// A feed, and where its batches are put.
    pub(super) fn new() -> (SyncSender<Vec<Due>>, Feed) {
        let (sender, batches) = sync_channel(LOG_BATCH_COUNT_MAX);
        let feed = Feed {
            batches,
            batch: Vec::new().into_iter(),
        };
        (sender, feed)
    }

    /// Waits for the first request, or for the end of a log that has none; not for ever, because a
    /// log may be a pipe that nothing comes out of.
    pub(crate) fn begin(&mut self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        if let Ok(batch) = self.batches.recv_timeout(left) {
            self.batch = batch.into_iter();
        }
    }

    pub(crate) fn next(&mut self) -> Fed {
        loop {
            if let Some(due) = self.batch.next() {
                return Fed::Due(due);
            }
            match self.batches.try_recv() {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(TryRecvError::Empty) => return Fed::NotYet,
                Err(TryRecvError::Disconnected) => return Fed::End,
            }
        }
    }
}
