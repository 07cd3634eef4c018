//! Whether one more worker would help: those there are are split into what computes and what
//! waits. While most wait for something else, more of them do more; once they fill the cores, more
//! of them only get into each other's way.

use std::collections::HashMap;
use std::fs;

use hob_machine::process::resident_bytes;
use hob_machine::{ProcessStat, read};

/// What is known of the CPU time of a pool's workers.
#[derive(Default)]
pub(super) struct Gauge {
    /// CPU time wanted so far by process, and when it was read.
    before: HashMap<u32, CpuUseAndWait>,
    as_of_ms: u64,
    /// Why the pool does not grow, for people.
    pub(super) why: String,
}

/// What processes have used so far.
pub(super) struct PoolUsage {
    now: HashMap<u32, CpuUseAndWait>,
    /// There were no processes.
    is_of_none: bool,
    /// Memory they have together, and how many have it.
    pub(super) memory: (u64, usize),
}

/// CPU time a process used, and waited for a core to use.
#[derive(Default)]
struct CpuUseAndWait {
    used_us: u64,
    /// Time its threads were ready to run and had no core, in microseconds, by thread.
    waited_us: HashMap<u32, u64>,
}

/// Threads of a worker that are looked at; what more of them wait is not seen.
const THREADS_MAX: usize = 128;

/// Shortest time between two looks that says anything, in milliseconds: the kernel counts CPU time
/// in steps of ten.
const SPAN_MS_MIN: u64 = 80;
/// Longest: what lies further back says nothing of now.
const SPAN_MS_MAX: u64 = 2_000;

impl Gauge {
    /// How many workers to add to those that were measured, of at most `room`.
    pub(super) fn more(
        &mut self,
        measured: PoolUsage,
        now_ms: u64,
        cores: usize,
        room: usize,
    ) -> usize {
        let span_ms = now_ms.saturating_sub(self.as_of_ms);
        if span_ms < SPAN_MS_MIN {
            return 0;
        }
        let PoolUsage {
            now, is_of_none, ..
        } = measured;
        let grown: Vec<u64> = now
            .iter()
            .filter_map(|(pid, wanted)| Some(wanted.us_since(self.before.get(pid)?)))
            .collect();
        self.before = now;
        self.as_of_ms = now_ms;
        if span_ms > SPAN_MS_MAX || grown.is_empty() {
            // Nothing to compare with: look again in a moment.
            self.why = "it is not known yet whether more would help".to_owned();
            return usize::from(is_of_none).min(room);
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

impl PoolUsage {
    /// Looks at processes. Reads a few files for each of their threads.
    pub(super) fn of(pids: &[u32]) -> PoolUsage {
        let pairs = pids
            .iter()
            .filter_map(|pid| Some((*pid, CpuUseAndWait::of(*pid)?)));
        let memory: Vec<u64> = pids.iter().filter_map(|pid| resident_bytes(*pid)).collect();
        PoolUsage {
            now: pairs.collect(),
            is_of_none: pids.is_empty(),
            memory: (memory.iter().sum(), memory.len()),
        }
    }
}

impl CpuUseAndWait {
    fn of(pid: u32) -> Option<CpuUseAndWait> {
        let used_us = ProcessStat::of(pid)?.own_ns / 1000;
        let mut waited_us = HashMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))
            .ok()?
            .flatten()
            .take(THREADS_MAX)
        {
            let name = entry.file_name();
            let thread = name.to_str().and_then(|name| name.parse().ok());
            // It may have ended since.
            if let Some(thread) = thread
                && let Some(us) = waited_us_of(pid, thread)
            {
                waited_us.insert(thread, us);
            }
        }
        Some(CpuUseAndWait { used_us, waited_us })
    }

    /// What was wanted since then. What threads waited that have ended meanwhile is not known.
    fn us_since(&self, before: &CpuUseAndWait) -> u64 {
        let waited = self.waited_us.iter().map(|(thread, us)| {
            let before_us = before.waited_us.get(thread).copied().unwrap_or(0);
            us.saturating_sub(before_us)
        });
        self.used_us.saturating_sub(before.used_us) + waited.sum::<u64>()
    }
}

/// Time a thread was ready to run and had no core, in microseconds.
fn waited_us_of(pid: u32, thread: u32) -> Option<u64> {
    let text = read(format!("/proc/{pid}/task/{thread}/schedstat"));
    let nanoseconds: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(nanoseconds / 1000)
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
        let before = CpuUseAndWait::of(pid).unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_millis(60) {
            std::hint::black_box(begun);
        }
        assert!(CpuUseAndWait::of(pid).unwrap().us_since(&before) > 0);
        assert!(resident_bytes(pid).unwrap() > 100_000);
    }

    /// More threads than cores burn, none of them the first: together they want all of the time
    /// that they are there, whoever has the cores.
    #[test]
    fn what_other_threads_than_the_first_wait_for_is_wanted_too() {
        let cores = std::thread::available_parallelism().unwrap().get();
        let (pid, count) = (std::process::id(), cores * 2);
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let (begun, over) = (std::sync::Barrier::new(count + 1), &is_over);
        std::thread::scope(|scope| {
            for _ in 0..count {
                scope.spawn(|| {
                    begun.wait();
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {}
                });
            }
            begun.wait();
            let (before, since) = (CpuUseAndWait::of(pid).unwrap(), std::time::Instant::now());
            let mut share = 0.0;
            // What the kernel books late evens out with time.
            while share < 0.75 * count as f64 && since.elapsed().as_secs() < 30 {
                std::thread::yield_now();
                if since.elapsed().as_millis() < 200 {
                    continue;
                }
                let wanted_us = CpuUseAndWait::of(pid).unwrap().us_since(&before);
                share = wanted_us as f64 / since.elapsed().as_micros() as f64;
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(
                share >= 0.75 * count as f64,
                "{share:.1} of {count} threads"
            );
        });
    }
}
