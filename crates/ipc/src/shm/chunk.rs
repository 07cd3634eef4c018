//! Chunks: long data that the server sends straight from the region.
//!
//! ```text
//! worker: word 0 -> 1, fills the chunk, sends {index, bytes} in its ring
//! server: notes that it holds the chunk; when the bytes are out: forgets it, word := 0
//! ```
//!
//! The words are the worker's list of what is free. The server believes none of them: what it
//! holds is a bit in memory of its own, so a chunk sent twice is a lie.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::lie::Lie;
use super::region::{Region, WordOffset};
use super::wake::{self, AWAKE, ON_BELL, WANTS_ROOM};

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// What the server's end and the chunks it gave out share. It lives until the last of them is gone.
#[derive(Debug)]
pub(super) struct ServerRegion {
    pub(super) region: Region,
    pub(super) bell_to_worker: OwnedFd,
    /// A bit for each chunk that a [`ChunkHold`] holds.
    held: AtomicU32,
    /// How often the worker was woken.
    pub(super) wakes_sent: AtomicU64,
}

impl ServerRegion {
    pub(super) fn new(region: Region, bell_to_worker: OwnedFd) -> ServerRegion {
        ServerRegion {
            region,
            bell_to_worker,
            held: AtomicU32::new(0),
            wakes_sent: AtomicU64::new(0),
        }
    }

    /// Wakes the worker if it sleeps in one of these ways.
    pub(super) fn wake_worker(&self, only: u32) {
        let word = self.region.word(WordOffset::WorkerSleep);
        let how = wake::must_wake(word, only);
        if how == AWAKE {
            return;
        }
        self.wakes_sent.fetch_add(1, Ordering::Relaxed);
        if how & ON_BELL != 0 {
            // Full means that it is readable already.
            let _ = rustix::io::write(&self.bell_to_worker, &[1]);
        } else {
            let flags = rustix::thread::futex::Flags::empty();
            let _ = rustix::thread::futex::wake(word, flags, 1);
        }
    }

    pub(super) fn held_count(&self) -> u32 {
        self.held.load(Ordering::Relaxed).count_ones()
    }

    /// The worker says that a chunk holds so many bytes.
    pub(super) fn take(self: &Arc<ServerRegion>, index: u32, bytes: u32) -> Result<ChunkHold, Lie> {
        let sizes = self.region.sizes();
        if index as usize >= sizes.chunk_count || bytes as usize > sizes.chunk_bytes || bytes == 0 {
            return Err(Lie::Chunk(index, bytes));
        }
        let bit = 1 << index;
        if self.held.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return Err(Lie::ChunkTwice(index));
        }
        Ok(ChunkHold {
            shared: self.clone(),
            index,
            bytes,
        })
    }
}

/// Bytes in a chunk that the server holds. Dropped, the chunk is the worker's again.
///
/// The worker may go on writing there: never make a reference to the bytes. Copy them, or hand the
/// pointer to the kernel.
#[derive(Debug)]
pub struct ChunkHold {
    shared: Arc<ServerRegion>,
    index: u32,
    bytes: u32,
}

impl ChunkHold {
    /// Where the bytes are. Valid until this is dropped.
    pub fn pointer(&self) -> *const u8 {
        self.shared.region.chunk(self.index as usize)
    }

    /// How many bytes, at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.bytes as usize
    }

    /// Appends a copy.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        let region = &self.shared.region;
        region.copy_from_chunk(self.index as usize, self.len(), out);
    }
}

impl Drop for ChunkHold {
    fn drop(&mut self) {
        // First our own note: as soon as the word says free, the chunk may come again.
        self.shared
            .held
            .fetch_and(!(1 << self.index), Ordering::AcqRel);
        let word = self.shared.region.chunk_word(self.index as usize);
        word.store(FREE, Ordering::Release);
        self.shared.wake_worker(WANTS_ROOM);
    }
}

/// The number of a free chunk that is now the worker's, if there is one.
pub(super) fn take_free(region: &Region) -> Option<u32> {
    let index = free(region)?;
    region.chunk_word(index).store(TAKEN, Ordering::Relaxed);
    Some(index as u32)
}

/// The first chunk that the worker could take.
pub(super) fn free(region: &Region) -> Option<usize> {
    (0..region.sizes().chunk_count)
        .find(|&index| region.chunk_word(index).load(Ordering::Acquire) == FREE)
}

/// The worker does not send what it took.
pub(super) fn put_back(region: &Region, index: u32) {
    region
        .chunk_word(index as usize)
        .store(FREE, Ordering::Release);
}
