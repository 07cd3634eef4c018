//! How long to wait before a child that died is started again: not at all the first time, longer
//! and longer while it keeps dying young.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
/// For a server that does not get to work.
pub(super) const LONGEST_SERVER: Duration = Duration::from_secs(5);
/// For a spawner: starts wait for it, and a new one is promised within a second.
pub(super) const LONGEST_SPAWNER: Duration = Duration::from_millis(500);
/// Who lived this long died of something new.
const SETTLED: Duration = Duration::from_secs(10);

/// Deaths in a row.
#[derive(Debug)]
pub(super) struct Backoff {
    young_deaths: u32,
    longest: Duration,
}

impl Backoff {
    /// No deaths yet.
    pub(super) fn new(longest: Duration) -> Backoff {
        Backoff {
            young_deaths: 0,
            longest,
        }
    }

    /// The wait after a child died that had lived so long.
    pub(super) fn after_death(&mut self, lived: Duration) -> Duration {
        if lived >= SETTLED {
            self.young_deaths = 0;
        }
        let wait = match self.young_deaths {
            0 => Duration::ZERO,
            deaths => FIRST
                .saturating_mul(1 << (deaths - 1).min(16))
                .min(self.longest),
        };
        self.young_deaths = self.young_deaths.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_restart_is_at_once_and_a_crash_loop_slows_down_to_five_seconds() {
        let mut backoff = Backoff::new(LONGEST_SERVER);
        let waits: Vec<u128> = (0..9)
            .map(|_| backoff.after_death(Duration::from_millis(3)).as_millis())
            .collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn child_that_lived_long_is_started_at_once_again() {
        let mut backoff = Backoff::new(LONGEST_SPAWNER);
        for _ in 0..100 {
            backoff.after_death(Duration::ZERO);
        }
        assert_eq!(backoff.after_death(SETTLED), Duration::ZERO);
        assert_eq!(backoff.after_death(Duration::ZERO), FIRST);
    }
}
