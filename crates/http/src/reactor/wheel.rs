//! Deadlines of connections in coarse ticks.
//!
//! A connection stands in one tick at a time. Moving a deadline later costs nothing: when the tick
//! comes, the connection is looked at and put into a later one.

use std::collections::BTreeMap;

/// Milliseconds per tick: how late a deadline may be noticed.
pub(crate) const TICK_MS: u64 = 100;

/// Keys by tick.
#[derive(Default)]
pub(crate) struct Wheel {
    ticks: BTreeMap<u64, Vec<u64>>,
}

impl Wheel {
    /// The tick that follows a deadline.
    pub(crate) fn tick_of(deadline_ms: u64) -> u64 {
        deadline_ms / TICK_MS + 1
    }

    /// Puts a key into a tick.
    pub(crate) fn add(&mut self, key: u64, tick: u64) {
        self.ticks.entry(tick).or_default().push(key);
    }

    /// When the next tick is, in milliseconds.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.ticks.first_key_value().map(|(tick, _)| tick * TICK_MS)
    }

    /// Takes one tick that has come, with its keys.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<(u64, Vec<u64>)> {
        let entry = self.ticks.first_entry()?;
        if entry.key() * TICK_MS > now_ms {
            return None;
        }
        Some(entry.remove_entry())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_out_after_their_deadline_and_not_before() {
        let mut wheel = Wheel::default();
        assert_eq!(wheel.next_ms(), None);
        wheel.add(1, Wheel::tick_of(1000));
        wheel.add(2, Wheel::tick_of(1099));
        wheel.add(3, Wheel::tick_of(250));
        assert_eq!(wheel.next_ms(), Some(300));
        assert_eq!(wheel.take_due(299), None);
        assert_eq!(wheel.take_due(1100), Some((3, vec![3])));
        assert_eq!(wheel.take_due(1099), None);
        assert_eq!(wheel.take_due(1100), Some((11, vec![1, 2])));
        assert_eq!(wheel.take_due(u64::MAX / 200), None);
    }
}
