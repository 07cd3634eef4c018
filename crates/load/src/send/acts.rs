//! What clients do besides asking in good order, as one thread draws it: which request is broken
//! off, and where.

use crate::plan::ClientActs;
use crate::random::Random;

/// The length that an answer is taken to have which does not say how long it is.
const LENGTH_UNTOLD: u64 = 64 * 1024;

/// Draws what clients of one thread do.
pub(super) struct ThreadActs {
    /// How many of all requests are broken off, from 0 to 1.
    break_share: f64,
    breaks: Random,
}

impl ThreadActs {
    /// Those of one thread, which draws other numbers than the others; none where clients do
    /// nothing besides.
    pub(super) fn new(acts: &ClientActs, seed: u64, number: usize) -> Option<Box<ThreadActs>> {
        if acts.break_percent == 0.0 {
            return None;
        }
        let own = (number as u64 + 1).wrapping_mul(0xe703_7ed1_a0b4_28db);
        Some(Box::new(ThreadActs {
            break_share: acts.break_percent / 100.0,
            breaks: Random::new(seed ^ own),
        }))
    }

    /// After which share of its answer the next request is broken off; none for most.
    pub(super) fn break_at(&mut self) -> Option<f32> {
        // Both are drawn for every request: where one is broken off changes nothing for the rest.
        let (is_broken, at) = (
            self.breaks.share() < self.break_share,
            self.breaks.share() as f32,
        );
        is_broken.then_some(at)
    }
}

/// Bytes of a body that are still to come until a share of it is there, where so many have come and
/// the head tells of so many.
pub(super) fn bytes_to_come(share: f32, told: Option<u64>, come: u64) -> u64 {
    let length = told.unwrap_or(LENGTH_UNTOLD);
    let at = (length as f64 * f64::from(share)) as u64;
    at.saturating_sub(come)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_breaks_the_same_requests_at_the_same_points() {
        let drawn = |percent: f64, seed: u64, number: usize| -> Vec<Option<f32>> {
            let acts = ClientActs {
                break_percent: percent,
                ..ClientActs::default()
            };
            let mut acts = ThreadActs::new(&acts, seed, number).unwrap();
            (0..1000).map(|_| acts.break_at()).collect()
        };
        assert_eq!(drawn(30.0, 1, 0), drawn(30.0, 1, 0));
        assert_ne!(drawn(30.0, 1, 0), drawn(30.0, 2, 0));
        assert_ne!(drawn(30.0, 1, 0), drawn(30.0, 1, 1));
        let count = drawn(30.0, 1, 0).iter().flatten().count();
        assert!((250..350).contains(&count), "{count}");
        assert_eq!(drawn(100.0, 1, 0).iter().flatten().count(), 1000);
        assert!(ThreadActs::new(&ClientActs::default(), 1, 0).is_none());
    }

    #[test]
    fn point_is_a_share_of_the_length_that_is_told() {
        assert_eq!(bytes_to_come(0.5, Some(100), 0), 50);
        assert_eq!(bytes_to_come(0.5, Some(100), 70), 0);
        assert_eq!(bytes_to_come(0.999, Some(6), 0), 5);
        assert_eq!(bytes_to_come(0.0, Some(100), 0), 0);
        assert_eq!(bytes_to_come(0.5, None, 0), LENGTH_UNTOLD / 2);
    }
}
