//! When a certificate is renewed and when a failed order is tried again. Numbers in, numbers out:
//! the clock and the dice are arguments.

use std::time::Duration;

use crate::acme::leaf::Leaf;

/// When the authority would like a certificate to be renewed (RFC 9773), in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its begin.
    pub start_unix_s: i64,
    /// Its end, behind the begin.
    pub end_unix_s: i64,
}

/// A number that differs between certificates and stays for one, so that looking again at the same
/// window gives the same moment.
pub fn seed_of(leaf: &Leaf) -> u64 {
    // FNV-1a: any spread will do.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    leaf.serial.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// When a certificate is renewed: somewhere in the authority's window, else when two thirds of its
/// life are over, a little earlier for some than for others. Never so late that there is no time
/// for a second try.
pub fn due_unix_s(leaf: &Leaf, window: Option<Window>, seed: u64) -> i64 {
    let life = leaf.lifetime_s().max(0);
    let latest = leaf.not_after_unix_s - life / 10;
    let sane = window.filter(|window| window.start_unix_s < window.end_unix_s);
    let due = match sane {
        Some(window) => {
            let span = window.end_unix_s.saturating_sub(window.start_unix_s);
            window.start_unix_s.saturating_add(part(span, seed))
        }
        None => leaf.not_before_unix_s + life * 2 / 3 - part(life / 30, seed),
    };
    due.min(latest)
}

/// A part of a span, the same for the same seed.
fn part(span: i64, seed: u64) -> i64 {
    let share = (i128::from(span.max(0)) * i128::from(seed >> 32)) >> 32;
    i64::try_from(share).unwrap_or(0)
}

/// How often an order is tried.
#[derive(Clone, Debug, Default)]
pub struct OrderPacing {
    failures: u32,
    /// When certificates were renewed because the authority's window had begun already.
    early_unix_s: Vec<i64>,
}

/// Pauses after the first failure, the second, and so on; the last one stays. Together they are
/// below the usual limit of five failed validations an hour.
const PAUSES_S: [u64; 6] = [60, 5 * 60, 20 * 60, 60 * 60, 3 * 60 * 60, 6 * 60 * 60];
/// After so many failures an impatient operator has to wait between tries as well.
const URGED_FAILURES_MAX: u32 = 3;
const URGED_PAUSE_S: i64 = 10 * 60;
/// Renewals within a day because the authority's window had begun already; an authority whose
/// windows are always over must not keep us busy.
const EARLY_RENEWALS_MAX: usize = 2;
const DAY_S: i64 = 24 * 60 * 60;

impl OrderPacing {
    /// An order failed: how long to wait. `retry_after` is what the authority asks for.
    pub fn failed(&mut self, retry_after: Option<Duration>, seed: u64) -> Duration {
        let step = (self.failures as usize).min(PAUSES_S.len() - 1);
        self.failures = self.failures.saturating_add(1);
        let pause_s = PAUSES_S[step];
        // Up to a fifth more: many who failed together do not come back together.
        let more_s = part((pause_s / 5) as i64, seed).unsigned_abs();
        let pause = Duration::from_secs(pause_s + more_s);
        retry_after.map_or(pause, |asked| {
            pause.max(asked.min(Duration::from_secs(24 * 3600)))
        })
    }

    /// An order worked.
    pub fn worked(&mut self) {
        self.failures = 0;
    }

    /// How many orders have failed since one worked.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether an operator who asks for a try gets one at once.
    pub fn may_urge(&self, last_try_unix_s: i64, now_unix_s: i64) -> bool {
        self.failures <= URGED_FAILURES_MAX
            || now_unix_s.saturating_sub(last_try_unix_s) >= URGED_PAUSE_S
    }

    /// Whether a certificate may be renewed long before its time because the authority says so.
    pub fn may_renew_early(&mut self, now_unix_s: i64) -> bool {
        self.early_unix_s.retain(|then| now_unix_s - then < DAY_S);
        if self.early_unix_s.len() >= EARLY_RENEWALS_MAX {
            return false;
        }
        self.early_unix_s.push(now_unix_s);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn leaf(days: i64) -> Leaf {
        Leaf {
            issuer: String::new(),
            names: vec!["example.org".to_owned()],
            not_before_unix_s: 0,
            not_after_unix_s: days * DAY,
            serial: vec![1, 2, 3],
            authority_key: None,
        }
    }

    const SEEDS: [u64; 4] = [0, 1 << 32, u64::MAX / 2, u64::MAX];

    #[test]
    fn without_a_window_two_thirds_of_the_life_are_used() {
        for seed in SEEDS {
            let due = due_unix_s(&leaf(90), None, seed);
            assert!((57 * DAY..=60 * DAY).contains(&due), "{due}");
        }
        assert_ne!(
            due_unix_s(&leaf(90), None, 0),
            due_unix_s(&leaf(90), None, u64::MAX)
        );
    }

    #[test]
    fn moment_in_the_window_is_the_same_at_each_look() {
        let window = Window {
            start_unix_s: 10 * DAY,
            end_unix_s: 20 * DAY,
        };
        for seed in SEEDS {
            let due = due_unix_s(&leaf(90), Some(window), seed);
            assert!((10 * DAY..=20 * DAY).contains(&due), "{due}");
            assert_eq!(due, due_unix_s(&leaf(90), Some(window), seed));
        }
    }

    #[test]
    fn window_that_is_none_or_too_late_is_not_followed() {
        let backwards = Window {
            start_unix_s: 20 * DAY,
            end_unix_s: 10 * DAY,
        };
        let usual = due_unix_s(&leaf(90), None, 7);
        assert_eq!(due_unix_s(&leaf(90), Some(backwards), 7), usual);
        let late = Window {
            start_unix_s: 100 * DAY,
            end_unix_s: i64::MAX,
        };
        assert_eq!(due_unix_s(&leaf(90), Some(late), 7), 81 * DAY);
    }

    #[test]
    fn pauses_grow_to_an_end_and_a_success_ends_them() {
        let mut pace = OrderPacing::default();
        let pauses: Vec<u64> = (0..8).map(|_| pace.failed(None, 0).as_secs()).collect();
        assert_eq!(
            pauses,
            [60, 300, 1200, 3600, 10_800, 21_600, 21_600, 21_600]
        );
        pace.worked();
        assert!((60..=72).contains(&pace.failed(None, u64::MAX).as_secs()));
    }

    #[test]
    fn authority_can_ask_for_longer_pauses_and_not_for_endless_ones() {
        let asked = |seconds| OrderPacing::default().failed(Some(Duration::from_secs(seconds)), 0);
        assert_eq!(asked(1).as_secs(), 60);
        assert_eq!(asked(4_000).as_secs(), 4_000);
        assert_eq!(asked(u64::MAX).as_secs(), 86_400);
    }

    #[test]
    fn operator_can_urge_a_few_times_then_every_ten_minutes() {
        let mut pace = OrderPacing::default();
        for _ in 0..3 {
            pace.failed(None, 0);
            assert!(pace.may_urge(1_000, 1_001));
        }
        pace.failed(None, 0);
        assert!(!pace.may_urge(1_000, 1_001));
        assert!(pace.may_urge(1_000, 1_600));
    }

    #[test]
    fn windows_that_are_always_over_keep_nobody_busy() {
        let mut pace = OrderPacing::default();
        assert!(pace.may_renew_early(0));
        assert!(pace.may_renew_early(10));
        assert!(!pace.may_renew_early(20));
        assert!(pace.may_renew_early(DAY_S + 5));
    }
}
