//! Letting others have the processor before the thread sleeps.
//!
//! Whoever was just handed work and shares this processor answers while the thread gives way, and
//! both are spared a sleep and a wake-up: the one has no bell to ring, the other none to hear.
//! Where nothing comes of it (the other side runs elsewhere, or takes its time), it is tried ever
//! more rarely.

use std::time::Duration;

/// What came of giving way decides how soon it is tried again.
#[derive(Debug, Default)]
pub(crate) struct GiveWay {
    /// Chances to be passed over.
    skipped_left: u32,
    /// Chances that are passed over after the next failure.
    skip: u32,
}

/// Chances passed over after the first failure, doubled with each further one.
const SKIP_MIN: u32 = 8;
/// The most of them.
const SKIP_MAX: u32 = 4096;
/// Answers that take longer are better slept for: other connections wait meanwhile.
const GAIN_MAX: Duration = Duration::from_micros(200);

impl GiveWay {
    /// A chance: whether to take it.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.skipped_left == 0;
        self.skipped_left = self.skipped_left.saturating_sub(1);
        is_due
    }

    /// It was taken: whether something had come, and how long it took.
    pub(crate) fn note(&mut self, has_come: bool, taken_us: u64) {
        if has_come && u128::from(taken_us) <= GAIN_MAX.as_micros() {
            self.skip = 0;
            return;
        }
        self.skip = (self.skip * 2).clamp(SKIP_MIN, SKIP_MAX);
        self.skipped_left = self.skip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many chances are taken when each ends alike.
    fn taken(give_way: &mut GiveWay, chances: u32, has_come: bool, taken_us: u64) -> u32 {
        let mut count = 0;
        for _ in 0..chances {
            if give_way.is_due() {
                count += 1;
                give_way.note(has_come, taken_us);
            }
        }
        count
    }

    #[test]
    fn every_chance_is_taken_while_it_helps() {
        assert_eq!(taken(&mut GiveWay::default(), 1000, true, 10), 1000);
    }

    #[test]
    fn chances_in_vain_become_rare() {
        assert!(taken(&mut GiveWay::default(), 100_000, false, 1) < 50);
    }

    #[test]
    fn long_absences_are_avoided_whatever_came() {
        assert!(taken(&mut GiveWay::default(), 100_000, true, 3000) < 50);
    }

    #[test]
    fn one_success_makes_up_for_failures() {
        let mut give_way = GiveWay::default();
        taken(&mut give_way, 100_000, false, 1);
        while !give_way.is_due() {}
        give_way.note(true, 10);
        assert_eq!(taken(&mut give_way, 100, true, 10), 100);
    }
}
