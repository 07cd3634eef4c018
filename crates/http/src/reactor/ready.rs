//! Connections that are to be driven before the thread sleeps.

use std::cell::{Cell, RefCell};

/// Connections of one thread whose handlers did something outside their turn.
pub(crate) struct ReadyList {
    keys: RefCell<Vec<u64>>,
    /// The connection being driven: it sees for itself.
    driven: Cell<u64>,
}

impl Default for ReadyList {
    fn default() -> ReadyList {
        ReadyList {
            keys: RefCell::default(),
            driven: Cell::new(u64::MAX),
        }
    }
}

impl ReadyList {
    pub(crate) fn begin(&self, key: u64) {
        self.driven.set(key);
    }

    pub(crate) fn end(&self) {
        self.driven.set(u64::MAX);
    }

    pub(crate) fn push(&self, key: u64) {
        if self.driven.get() != key {
            self.push_for_later(key);
        }
    }

    /// Also the connection being driven: it has looked already, and is to look again.
    pub(crate) fn push_for_later(&self, key: u64) {
        let mut keys = self.keys.borrow_mut();
        if keys.last() != Some(&key) {
            keys.push(key);
        }
    }

    pub(crate) fn take(&self, into: &mut Vec<u64>) {
        into.append(&mut self.keys.borrow_mut());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.borrow().is_empty()
    }
}
