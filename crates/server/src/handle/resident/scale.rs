//! Whether one more worker would help: those there are are split into what computes and what
//! waits. While most wait for something else, more of them do more; once they fill the cores, more
//! of them only get into each other's way.

use std::collections::HashMap;
use std::fs;

/// What is known of the CPU time of a pool's workers.
#[derive(Default)]
pub(super) struct Gauge {
    /// CPU time wanted so far by process, in microseconds, and when it was read.
    before: HashMap<u32, u64>,
    as_of_ms: u64,
    /// Why the pool does not grow, for people.
    pub(super) why: String,
}

/// Shortest time between two looks that says anything, in milliseconds: the kernel counts CPU time
/// in steps of ten.
const SPAN_MS_MIN: u64 = 80;
/// Longest: what lies further back says nothing of now.
const SPAN_MS_MAX: u64 = 2_000;

impl Gauge {
    /// How many workers to add to those of `pids`, of at most `room`.
    pub(super) fn more(&mut self, pids: &[u32], now_ms: u64, cores: usize, room: usize) -> usize {
        let span_ms = now_ms.saturating_sub(self.as_of_ms);
        if span_ms < SPAN_MS_MIN {
            return 0;
        }
        let now: HashMap<u32, u64> = pids
            .iter()
            .filter_map(|pid| Some((*pid, wanted_us(*pid)?)))
            .collect();
        let grown: Vec<u64> = now
            .iter()
            .filter_map(|(pid, us)| Some(us.saturating_sub(*self.before.get(pid)?)))
            .collect();
        self.before = now;
        self.as_of_ms = now_ms;
        if span_ms > SPAN_MS_MAX || grown.is_empty() {
            // Nothing to compare with: look again in a moment.
            self.why = "it is not known yet whether more would help".to_owned();
            return usize::from(pids.is_empty());
        }
        let span_us = span_ms as f64 * 1000.0;
        let busy: f64 = grown.iter().map(|us| *us as f64 / span_us).sum();
        self.decide(busy, grown.len(), cores, room)
    }

    /// `busy` cores are wanted by `count` workers.
    fn decide(&mut self, busy: f64, count: usize, cores: usize, room: usize) -> usize {
        let share = (busy / count as f64).max(0.01);
        let free = cores as f64 - busy;
        // One more is worth its while if at least half of what it wants is free.
        if free < share / 2.0 {
            self.why = format!("they want {busy:.1} of {cores} cores: more would not help");
            return 0;
        }
        self.why = format!("they want {busy:.1} of {cores} cores");
        let fits = (free / share + 0.5) as usize;
        // Twice as many at most, so that what is measured stays true.
        fits.clamp(1, count).min(room)
    }
}

/// CPU time a process used or waited for a core to use, in microseconds.
fn wanted_us(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, parentheses too; it ends at the last one.
    let rest = stat.get(stat.rfind(')')? + 2..)?;
    let mut fields = rest.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let used_us = (user + system) * 1_000_000 / ticks_per_second();
    Some(used_us + waited_us(pid).unwrap_or(0))
}

/// Time a process was ready to run and had no core, in microseconds; of its first thread.
fn waited_us(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let nanoseconds: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(nanoseconds / 1000)
}

fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// Resident size of a process, in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_grows_while_its_workers_wait_and_stops_at_the_cores() {
        let mut gauge = Gauge::default();
        assert_eq!(gauge.decide(0.02, 1, 2, 7), 1, "one sleeper");
        assert_eq!(
            gauge.decide(0.08, 4, 2, 4),
            4,
            "four sleepers: twice as many"
        );
        assert_eq!(gauge.decide(0.08, 4, 2, 3), 3, "not above the most");
        assert_eq!(
            gauge.decide(1.0, 1, 2, 7),
            1,
            "one that computes on two cores"
        );
        assert_eq!(
            gauge.decide(1.9, 2, 2, 6),
            0,
            "two that compute on two cores"
        );
        assert!(gauge.why.contains("1.9 of 2 cores"), "{}", gauge.why);
        assert_eq!(
            gauge.decide(3.0, 3, 2, 6),
            0,
            "three that want more than there is"
        );
    }

    #[test]
    fn cpu_time_of_a_process_grows() {
        let pid = std::process::id();
        let before = wanted_us(pid).unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_millis(60) {
            std::hint::black_box(begun);
        }
        assert!(wanted_us(pid).unwrap() > before);
        assert!(resident_bytes(pid).unwrap() > 100_000);
    }
}
