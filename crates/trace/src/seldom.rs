//! Lines of hob's own log that tell of a lack (descriptors, memory, processes): each request may
//! meet it, and the log must not be what fills the disk then.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Between two lines of one kind, in milliseconds.
const QUIET_MS: u64 = 10_000;

/// When a line of one kind may be told again, and how many were not.
#[derive(Debug, Default)]
pub struct Seldom {
    /// 0 until there was one.
    quiet_until_ms: AtomicU64,
    untold: AtomicU64,
}

impl Seldom {
    /// None has been told.
    pub const fn new() -> Seldom {
        Seldom {
            quiet_until_ms: AtomicU64::new(0),
            untold: AtomicU64::new(0),
        }
    }

    /// Whether a line may be told now, and how many were not since the last one.
    pub fn allows(&self) -> Option<u64> {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        let since = BEGIN.get_or_init(Instant::now).elapsed();
        self.allows_at(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn allows_at(&self, now_ms: u64) -> Option<u64> {
        let until_ms = self.quiet_until_ms.load(Ordering::Relaxed);
        let next_ms = now_ms.saturating_add(QUIET_MS);
        // Of several threads one tells.
        let is_told = now_ms >= until_ms
            && self
                .quiet_until_ms
                .compare_exchange(until_ms, next_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if !is_told {
            self.untold.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.untold.swap(0, Ordering::Relaxed))
    }
}

/// A warning of hob's own log, at most one from this place in ten seconds.
#[macro_export]
macro_rules! warn_seldom {
    ($($what:tt)*) => {{
        static SELDOM: $crate::seldom::Seldom = $crate::seldom::Seldom::new();
        match SELDOM.allows() {
            Some(0) => ::tracing::warn!($($what)*),
            Some(untold) => ::tracing::warn!(untold, $($what)*),
            None => {}
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_ten_seconds_says_how_many_there_were_not() {
        let seldom = Seldom::new();
        assert_eq!(seldom.allows_at(5), Some(0));
        for now_ms in [5, 6, 10_004] {
            assert_eq!(seldom.allows_at(now_ms), None);
        }
        assert_eq!(seldom.allows_at(10_005), Some(3));
        assert_eq!(seldom.allows_at(10_006), None);
        assert_eq!(seldom.allows_at(90_000), Some(1));
    }
}
