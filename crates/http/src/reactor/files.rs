//! Open files that answering takes besides the clients' sockets: they count towards the files that
//! connections may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many there are, of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilesBeside(Arc<AtomicUsize>);

/// One of them, as long as this lives.
#[derive(Debug)]
pub(crate) struct HeldFile(FilesBeside);

impl FilesBeside {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn hold(&self) -> HeldFile {
        self.0.fetch_add(1, Ordering::Relaxed);
        HeldFile(self.clone())
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
