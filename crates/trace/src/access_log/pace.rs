//! When the writer looks into the rings again.
//!
//! While there is traffic it looks every [`POLL`]: a push then costs its thread nothing, and lines
//! are written in large batches. When nothing came for that long, it arms the rings, so that the
//! next push wakes it; and when, one interval later, there is still nothing, it sleeps without a
//! timeout. An idle server uses no CPU time.

use std::time::{Duration, Instant};

/// The time between two looks while there is traffic: how long a line may wait to be written.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// How long to pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Until woken, or this long.
    For(Duration),
    /// Until woken.
    UntilWoken,
}

/// What one turn of the writer found.
#[derive(Clone, Copy, Debug)]
pub(super) enum WriterTurn {
    /// There were records, or there is something left to write: the rings are not armed.
    Busy,
    /// Nothing to do. The rings have been armed after they were drained.
    Idle {
        /// All of them had been armed before, and no push has woken the writer since.
        armed_before: bool,
    },
}

/// Decides the pauses.
#[derive(Debug, Default)]
pub(super) struct WriterPacer {
    /// Since when all rings are armed.
    armed_at: Option<Instant>,
}

impl WriterPacer {
    /// The pause after a turn that began to look at `looked_at` and ends now.
    pub(super) fn pause(&mut self, turn: WriterTurn, looked_at: Instant, now: Instant) -> Pause {
        match (turn, self.armed_at) {
            (WriterTurn::Busy, _) => {
                self.armed_at = None;
                Pause::For(POLL)
            }
            (WriterTurn::Idle { armed_before: true }, Some(armed_at)) => {
                // Only a look one interval after arming proves that no push slipped through unseen.
                match POLL.checked_sub(looked_at.duration_since(armed_at)) {
                    None | Some(Duration::ZERO) => Pause::UntilWoken,
                    Some(rest) => Pause::For(rest),
                }
            }
            (WriterTurn::Idle { .. }, _) => {
                self.armed_at = Some(now);
                Pause::For(POLL)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARMED: WriterTurn = WriterTurn::Idle { armed_before: true };
    const NEWLY_ARMED: WriterTurn = WriterTurn::Idle {
        armed_before: false,
    };

    #[test]
    fn idle_writer_sleeps_after_one_armed_interval() {
        let mut pace = WriterPacer::default();
        let start = Instant::now();
        let mut pause = |turn, polls: u32| {
            let now = start + POLL * polls;
            pace.pause(turn, now, now)
        };
        assert_eq!(pause(WriterTurn::Busy, 0), Pause::For(POLL));
        assert_eq!(pause(NEWLY_ARMED, 1), Pause::For(POLL));
        assert_eq!(pause(ARMED, 2), Pause::UntilWoken);
        assert_eq!(pause(ARMED, 50), Pause::UntilWoken);
    }

    #[test]
    fn writer_woken_early_does_not_sleep_before_the_interval_is_over() {
        let mut pace = WriterPacer::default();
        let start = Instant::now();
        let (early, late) = (start + POLL / 4, start + POLL);
        assert_eq!(pace.pause(NEWLY_ARMED, start, start), Pause::For(POLL));
        assert_eq!(pace.pause(ARMED, early, late), Pause::For(POLL - POLL / 4));
        assert_eq!(pace.pause(ARMED, late, late), Pause::UntilWoken);
    }

    #[test]
    fn push_that_disarmed_a_ring_starts_a_new_interval() {
        let mut pace = WriterPacer::default();
        let start = Instant::now();
        pace.pause(NEWLY_ARMED, start, start);
        let later = start + POLL * 3;
        assert_eq!(pace.pause(NEWLY_ARMED, later, later), Pause::For(POLL));
        assert_eq!(
            pace.pause(ARMED, later + POLL, later + POLL),
            Pause::UntilWoken
        );
    }
}
