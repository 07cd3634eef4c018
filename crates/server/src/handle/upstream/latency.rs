//! How long answers take to begin.

use std::sync::atomic::{AtomicU64, Ordering};

/// How long answers took to begin, lately: a slow one counts at once, and is forgotten with time.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    /// Microseconds, as bits.
    mean_us: AtomicU64,
    seen_ms: AtomicU64,
}

/// After so long a third of a latency is left, in milliseconds.
const FORGOTTEN_MS: f64 = 10_000.0;

/// After so long nothing is known of it any more, in milliseconds.
const KNOWN_MS: u64 = 60_000;

impl Latency {
    /// In microseconds; 0 where nothing is known.
    pub(crate) fn now(&self, now_ms: u64) -> f64 {
        let mean_us = f64::from_bits(self.mean_us.load(Ordering::Relaxed));
        let age_ms = now_ms.saturating_sub(self.seen_ms.load(Ordering::Relaxed));
        match age_ms {
            0 => mean_us,
            KNOWN_MS.. => 0.0,
            age_ms => mean_us * (-(age_ms as f64) / FORGOTTEN_MS).exp(),
        }
    }

    /// An answer began after so long.
    pub(crate) fn see(&self, latency_us: u64, now_ms: u64) {
        let (latency_us, mean_us) = (latency_us as f64, self.now(now_ms));
        // Of what is faster, each answer counts for a sixteenth.
        let next_us = match latency_us > mean_us {
            true => mean_us + (latency_us - mean_us) / 4.0,
            false => mean_us + (latency_us - mean_us) / 16.0,
        };
        self.mean_us.store(next_us.to_bits(), Ordering::Relaxed);
        self.seen_ms.store(now_ms, Ordering::Relaxed);
    }
}
