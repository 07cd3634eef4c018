//! How long requests wait, and which routes are refused while that is too long.
//!
//! Every second the waits of the second before are judged: more than one in a hundred above the
//! goal has one priority more refused, and some seconds below half of it one less. Waits at a limit
//! of their own (`concurrency`) are nobody's fault but their client's, and do not count.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use hob_config::{OverloadSettings, RoutePriority};
use hob_trace::Record;
use hob_trace::metric::ThreadCounters;

/// How long waits are gathered, in milliseconds.
const WINDOW_MS: u64 = 1000;
/// Fewer of them say nothing yet;
const WAITS_MIN: u32 = 20;
/// but where so few come in so long, in milliseconds, there is not too much to do.
const CALM_MS: u64 = 10_000;
/// So many calm windows in a row have one priority less refused.
const CALM_WINDOWS: u8 = 3;
/// The highest priority that is ever refused.
const LEVEL_MAX: u8 = RoutePriority::Normal as u8;

/// Waits of a window, and what came of those before.
#[derive(Debug, Default)]
pub struct Overload {
    /// Priorities up to this one are refused.
    level: AtomicU8,
    /// Calm windows since one that was not.
    calm: AtomicU8,
    waits: AtomicU32,
    /// Of them, those above the goal, and above half of it.
    above: AtomicU32,
    above_half: AtomicU32,
    /// When the window began, in milliseconds of loop time.
    since_ms: AtomicU64,
}

impl Overload {
    /// Routes of this priority are refused now.
    #[inline]
    pub fn refuses(&self, priority: RoutePriority) -> bool {
        priority as u8 <= self.level.load(Ordering::Relaxed)
    }

    /// Takes the wait of a request that is over, if it has asked for what is waited for.
    pub fn note(&self, settings: &OverloadSettings, record: &Record) {
        let waited_us = record.queue_us.saturating_sub(record.concurrency_us);
        if waited_us == 0 && record.program_us == 0 {
            return;
        }
        let goal_us = settings.queue.as_micros() as u64;
        self.waits.fetch_add(1, Ordering::Relaxed);
        for (limit_us, count) in [(goal_us, &self.above), (goal_us / 2, &self.above_half)] {
            if waited_us > limit_us {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Judges the window where it is over; the thread that does so is one of those that serve.
    pub fn turn(&self, settings: &OverloadSettings, now_ms: u64, counters: &ThreadCounters) {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        let passed_ms = now_ms.saturating_sub(since_ms);
        let is_enough = self.waits.load(Ordering::Relaxed) >= WAITS_MIN;
        if passed_ms < WINDOW_MS || !is_enough && passed_ms < CALM_MS {
            return;
        }
        let begun = &self.since_ms;
        let (old, new) = (Ordering::AcqRel, Ordering::Relaxed);
        if begun.compare_exchange(since_ms, now_ms, old, new).is_err() {
            return;
        }
        let take = |count: &AtomicU32| u64::from(count.swap(0, Ordering::Relaxed));
        let (waits, above) = (take(&self.waits), take(&self.above));
        let above_half = take(&self.above_half);
        if !is_enough {
            // Of an idle time, too, one of which is as good as many.
            let levels = u8::try_from(passed_ms / CALM_MS).unwrap_or(u8::MAX);
            self.fall(levels, counters);
        } else if above * 100 > waits {
            self.calm.store(0, Ordering::Relaxed);
            self.rise(settings, (above, waits), counters);
        } else if above_half * 100 > waits {
            self.calm.store(0, Ordering::Relaxed);
        } else if self.calm.fetch_add(1, Ordering::Relaxed) + 1 >= CALM_WINDOWS {
            self.calm.store(0, Ordering::Relaxed);
            self.fall(1, counters);
        }
    }

    /// Nobody asks for it any more.
    pub fn end(&self, counters: &ThreadCounters) {
        if self.level.load(Ordering::Relaxed) > 0 {
            self.fall(u8::MAX, counters);
        }
    }

    fn rise(&self, settings: &OverloadSettings, counts: (u64, u64), counters: &ThreadCounters) {
        let level = self.level.load(Ordering::Relaxed);
        if level == LEVEL_MAX {
            return;
        }
        self.level.store(level + 1, Ordering::Relaxed);
        counters.overload_rises.add(1);
        let (above, waits) = counts;
        let refused = match level {
            0 => "low",
            _ => "low and normal",
        };
        let goal = settings.queue;
        tracing::warn!(
            "overload: {above} of {waits} requests waited longer than {goal:?}: routes of priority \
             {refused} are refused"
        );
    }

    fn fall(&self, levels: u8, counters: &ThreadCounters) {
        let level = self.level.load(Ordering::Relaxed);
        let levels = levels.min(level);
        if levels == 0 {
            return;
        }
        self.level.store(level - levels, Ordering::Relaxed);
        counters.overload_falls.add(levels.into());
        match level - levels {
            0 => tracing::info!("overload: it is over, all routes answer again"),
            _ => tracing::info!("overload: routes of priority normal answer again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn settings() -> OverloadSettings {
        OverloadSettings {
            queue: Duration::from_millis(100),
            retry_after: Duration::from_secs(5),
        }
    }

    /// A window of waits, in milliseconds; then the priorities that are refused.
    fn window(overload: &Overload, now_ms: &mut u64, waits: &[(u32, u64)]) -> Vec<RoutePriority> {
        let counters = ThreadCounters::default();
        for &(count, wait_ms) in waits {
            let mut record = Record::empty();
            record.program_us = 1;
            record.queue_us = wait_ms * 1000;
            (0..count).for_each(|_| overload.note(&settings(), &record));
        }
        *now_ms += WINDOW_MS;
        overload.turn(&settings(), *now_ms, &counters);
        let all = [
            RoutePriority::Low,
            RoutePriority::Normal,
            RoutePriority::High,
        ];
        all.into_iter()
            .filter(|one| overload.refuses(*one))
            .collect()
    }

    #[test]
    fn lowest_go_first_and_come_back_last() {
        use RoutePriority::{Low, Normal};
        let (overload, mut now_ms) = (Overload::default(), 5000);
        let mut window = |waits: &[(u32, u64)]| window(&overload, &mut now_ms, waits);
        // One in a hundred may wait.
        assert_eq!(window(&[(99, 0), (1, 500)]), []);
        assert_eq!(window(&[(98, 0), (2, 500)]), [Low]);
        assert_eq!(window(&[(10, 0), (10, 500)]), [Low, Normal]);
        // Never all.
        assert_eq!(window(&[(100, 500)]), [Low, Normal]);
        for _ in 0..2 {
            assert_eq!(window(&[(100, 10)]), [Low, Normal]);
        }
        // Neither long nor short: it begins anew.
        assert_eq!(window(&[(100, 70)]), [Low, Normal]);
        for _ in 0..2 {
            assert_eq!(window(&[(100, 10)]), [Low, Normal]);
        }
        assert_eq!(window(&[(100, 10)]), [Low]);
        for _ in 0..2 {
            assert_eq!(window(&[(100, 10)]), [Low]);
        }
        assert_eq!(window(&[(100, 10)]), []);
    }

    #[test]
    fn few_requests_are_no_overload_and_silence_ends_one() {
        use RoutePriority::{Low, Normal};
        let (overload, mut now_ms) = (Overload::default(), 5000);
        assert_eq!(window(&overload, &mut now_ms, &[(WAITS_MIN - 1, 500)]), []);
        // They are gathered with those that come.
        assert_eq!(window(&overload, &mut now_ms, &[(1, 0)]), [Low]);
        assert_eq!(window(&overload, &mut now_ms, &[(50, 500)]), [Low, Normal]);
        for _ in 0..8 {
            assert_eq!(window(&overload, &mut now_ms, &[(1, 500)]), [Low, Normal]);
        }
        now_ms += WINDOW_MS;
        assert_eq!(window(&overload, &mut now_ms, &[]), [Low]);
        now_ms += 60_000;
        assert_eq!(window(&overload, &mut now_ms, &[]), []);
    }

    #[test]
    fn waits_for_a_limit_of_their_own_and_answers_without_queues_say_nothing() {
        let overload = Overload::default();
        let mut record = Record::empty();
        (0..100).for_each(|_| overload.note(&settings(), &record));
        assert_eq!(overload.waits.load(Ordering::Relaxed), 0);
        (record.queue_us, record.concurrency_us) = (500_000, 500_000);
        overload.note(&settings(), &record);
        assert_eq!(overload.waits.load(Ordering::Relaxed), 0);
        record.program_us = 1;
        overload.note(&settings(), &record);
        let counts = [&overload.waits, &overload.above, &overload.above_half];
        assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [1, 0, 0]);
    }
}
