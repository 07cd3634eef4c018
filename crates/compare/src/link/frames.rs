//! How many frames a link has passed on, and how many it has lost because it was full.

use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::Serialize;

/// Frames of a link, both ways together, as they would be on Ethernet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FrameCount {
    /// Passed on.
    pub(crate) passed: u64,
    /// Lost, because too many waited.
    pub(crate) lost: u64,
}

/// What a relay counts while others read it.
#[derive(Debug, Default)]
pub(crate) struct FrameCounter {
    passed: AtomicU64,
    lost: AtomicU64,
}

impl FrameCounter {
    pub(super) fn pass(&self, frames: u64) {
        self.passed.fetch_add(frames, Ordering::Relaxed);
    }

    pub(super) fn lose(&self, frames: u64) {
        self.lost.fetch_add(frames, Ordering::Relaxed);
    }

    /// Up to now.
    pub(crate) fn count(&self) -> FrameCount {
        FrameCount {
            passed: self.passed.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

impl FrameCount {
    /// Those since another moment.
    pub(crate) fn since(self, before: FrameCount) -> FrameCount {
        FrameCount {
            passed: self.passed.saturating_sub(before.passed),
            lost: self.lost.saturating_sub(before.lost),
        }
    }

    /// All of these together; none of none.
    pub(crate) fn sum(counts: impl Iterator<Item = FrameCount>) -> Option<FrameCount> {
        counts.reduce(|all, one| FrameCount {
            passed: all.passed + one.passed,
            lost: all.lost + one.lost,
        })
    }
}
