//! Connections counted by the listener they came to: two counts per listener, touched when a
//! connection comes and when it goes, never for a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What came to one listener, over TCP and QUIC.
#[derive(Debug, Default)]
pub struct Visits {
    accepted: AtomicU64,
    closed: AtomicU64,
}

impl Visits {
    /// Connections so far.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Connections open now.
    pub fn open(&self) -> u64 {
        // Read in this order, one that comes and goes meanwhile does not make it negative.
        let closed = self.closed.load(Relaxed);
        self.accepted().saturating_sub(closed)
    }
}

/// One connection among them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Visit(Arc<Visits>);

impl Visit {
    pub(crate) fn begin(visits: &Arc<Visits>) -> Visit {
        visits.accepted.fetch_add(1, Relaxed);
        Visit(Arc::clone(visits))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visit_counts_as_open_until_it_ends() {
        let visits = Arc::new(Visits::default());
        let (first, second) = (Visit::begin(&visits), Visit::begin(&visits));
        drop(first);
        assert_eq!((visits.accepted(), visits.open()), (2, 1));
        drop(second);
        assert_eq!((visits.accepted(), visits.open()), (2, 0));
    }
}
