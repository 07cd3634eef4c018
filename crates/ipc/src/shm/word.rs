//! A word of shared memory, and the bytes of a ring, as the protocols see them.
//!
//! Slots, rings and sleeping are written over these two traits, so that a model checker can run
//! the very same code over words of its own.

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// An atomic word of 32 bits.
pub trait Word {
    /// Reads it.
    fn load(&self, order: Ordering) -> u32;
    /// Writes it.
    fn store(&self, value: u32, order: Ordering);
    /// Writes `new` if `current` is there; says if it was.
    fn replace(&self, current: u32, new: u32) -> bool;
    /// A barrier between stores before it and loads after it.
    fn fence();
}

impl Word for AtomicU32 {
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        AtomicU32::load(self, order)
    }

    #[inline]
    fn store(&self, value: u32, order: Ordering) {
        AtomicU32::store(self, value, order);
    }

    #[inline]
    fn replace(&self, current: u32, new: u32) -> bool {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    #[inline]
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// The bytes of a ring. The ring never asks for more than lies between `at` and the end.
pub trait Bytes {
    /// Copies bytes in, to `at`.
    fn copy_in(&self, at: u32, bytes: &[u8]);
    /// Appends a copy of `count` bytes from `at`.
    fn copy_out(&self, at: u32, count: u32, out: &mut Vec<u8>);
    /// Copies the 8 bytes at `at`, a multiple of 8.
    fn eight(&self, at: u32) -> [u8; 8];
}
