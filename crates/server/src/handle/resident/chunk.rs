//! A chunk of a worker's shared memory as bytes of an answer: it goes to the socket as it is.
#![allow(unsafe_code)]

use hob_http::Region;
use hob_ipc::shm::ChunkHold;

/// A chunk.
pub(super) struct ChunkBytes(ChunkHold);

impl ChunkBytes {
    pub(super) fn new(hold: ChunkHold) -> ChunkBytes {
        ChunkBytes(hold)
    }

    /// Appends a copy.
    pub(super) fn copy_to(&self, out: &mut Vec<u8>) {
        self.0.copy_to(out);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

// SAFETY: both are what they were when the worker's reference was checked, and the memory is there
// until the hold is dropped, whatever the worker does.
unsafe impl Region for ChunkBytes {
    fn raw(&self) -> (*const u8, usize) {
        (self.0.pointer(), self.0.len())
    }
}
