//! What happens to each finished request on its thread: it goes into the history, and its times
//! into the histograms of its series.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::history::{HistoryWriter, PendingEntries, RequestHistory};
use crate::record::{Record, Texts};
use crate::series::{SeriesRegistry, SeriesWriter};

/// One thread's end of history and histograms.
#[derive(Debug)]
pub struct Recorder {
    history: RefCell<HistoryWriter>,
    /// None where nobody wants histograms.
    series: Option<SeriesWriter>,
    /// The loop's time, in milliseconds.
    now_ms: Cell<u64>,
}

impl Recorder {
    /// A recorder for one more thread.
    pub fn new(history: &Arc<RequestHistory>, series: Option<&Arc<SeriesRegistry>>) -> Recorder {
        Recorder {
            history: RefCell::new(HistoryWriter::new(history)),
            series: series.map(SeriesWriter::new),
            now_ms: Cell::new(0),
        }
    }

    /// What others can see of what is not handed over yet.
    pub fn waiting(&self) -> Arc<PendingEntries> {
        self.history.borrow().waiting()
    }

    /// A request is over. Takes no lock and allocates nothing, but for the first request of a
    /// series and once per 64 KiB of history.
    #[inline]
    pub fn finished(&self, record: &Record, texts: &Texts<'_>) {
        if let Some(series) = &self.series {
            series.record(record);
        }
        let mut history = self.history.borrow_mut();
        history.push(record, texts, self.now_ms.get());
    }

    /// A turn of the thread's loop begins.
    #[inline]
    pub fn turn(&self, now_ms: u64) {
        self.now_ms.set(now_ms);
        self.history.borrow_mut().turn(now_ms);
    }

    /// Lets readers see everything from now on.
    pub fn hand_over(&self) {
        self.history.borrow_mut().hand_over();
    }
}
