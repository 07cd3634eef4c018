//! What clients do besides asking in good order, as one thread draws it: which request is broken
//! off, and where; how much of an answer is read at once, and when again.

use std::num::NonZeroU64;

use super::prepared::PreparedRun;
use crate::limits::TURN_BYTES_MAX;
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

/// Reads of a slow connection in a second; of one that is slower than so many bytes each takes one
/// byte.
const READS_PER_SECOND: u64 = 20;
/// The most that a read takes whose size is drawn, as much as a record of TLS.
const VARIED_BYTES_MAX: f64 = 16.0 * 1024.0;

/// How one thread reads from sockets of TCP: all there is, unless clients are to be slow.
#[derive(Debug)]
pub(super) struct ReadPace {
    rate: Option<NonZeroU64>,
    sizes: Option<Random>,
}

impl ReadPace {
    /// That of one thread, which draws other numbers than the others.
    pub(super) fn new(acts: &ClientActs, seed: u64, number: usize) -> ReadPace {
        let own = (number as u64 + 1).wrapping_mul(0x9d1c_35f0_6b2e_84a7);
        ReadPace {
            rate: acts.read_rate,
            sizes: acts.is_varied.then(|| Random::new(seed ^ own)),
        }
    }

    /// How many bytes the next read takes at most.
    pub(super) fn next_bytes(&mut self) -> usize {
        let drawn = self.sizes.as_mut().map_or(usize::MAX, |sizes| {
            1 + (sizes.share() * VARIED_BYTES_MAX) as usize
        });
        let of_rate = self.rate.map_or(usize::MAX, |rate| {
            (rate.get() / READS_PER_SECOND).max(1) as usize
        });
        drawn.min(of_rate)
    }

    /// When a connection is read again of which so many bytes were read now, in nanoseconds of the
    /// run; 0 for at once.
    pub(super) fn next_read_ns(&self, bytes: usize, prepared: &PreparedRun) -> u64 {
        self.rate
            .map_or(0, |rate| prepared.now() + rest_ns(bytes, rate))
    }

    /// How much is read of a connection before others have their turn.
    pub(super) fn turn_bytes(&self) -> usize {
        self.rate.map_or(TURN_BYTES_MAX, |_| 1)
    }
}

/// How long reading so many bytes takes.
fn rest_ns(bytes: usize, rate: NonZeroU64) -> u64 {
    bytes as u64 * 1_000_000_000 / rate
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
    fn reads_keep_to_the_rate_and_vary_in_size() {
        let pace = |rate: Option<u64>, is_varied: bool, number: usize| {
            let acts = ClientActs {
                read_rate: rate.and_then(NonZeroU64::new),
                is_varied,
                ..ClientActs::default()
            };
            ReadPace::new(&acts, 1, number)
        };
        assert_eq!(pace(None, false, 0).next_bytes(), usize::MAX);
        assert_eq!(pace(Some(1000), false, 0).next_bytes(), 50);
        assert_eq!(rest_ns(50, NonZeroU64::new(1000).unwrap()), 50_000_000);
        assert_eq!(pace(Some(3), false, 0).next_bytes(), 1);
        let sizes = |number: usize| -> Vec<usize> {
            let mut varied = pace(None, true, number);
            (0..1000).map(|_| varied.next_bytes()).collect()
        };
        assert_eq!(sizes(0), sizes(0));
        assert_ne!(sizes(0), sizes(1));
        assert!(sizes(0).iter().all(|size| (1..=16 * 1024).contains(size)));
        assert!(sizes(0).iter().any(|size| *size < 1024));
        assert!(sizes(0).iter().any(|size| *size > 15 * 1024));
        let mut both = pace(Some(200_000), true, 0);
        assert!((0..100).all(|_| both.next_bytes() <= 10_000));
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
