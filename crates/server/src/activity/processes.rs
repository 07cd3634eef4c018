//! CPU time and memory of processes, as the kernel counts them.

use std::collections::HashMap;
use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// Processes looked at in one round; with more, each is looked at less often.
const LOOKS_MAX: usize = 64;

/// Whose CPU time is that of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whose {
    /// Its own. Children of an interpreter that is forked are requests, which are counted as such.
    #[default]
    Own,
    /// That of its children too, once they have ended and it knows.
    Family,
}

/// What processes were seen to use.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    whose: Whose,
    known: HashMap<u32, Use>,
    /// Where the next round begins.
    next: usize,
    has_looked: bool,
}

/// What one process has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    cpu_us: u64,
    memory_bytes: u64,
}

impl Processes {
    /// What children used that have ended counts as their parent's.
    pub(crate) fn with_children() -> Processes {
        Processes {
            whose: Whose::Family,
            ..Processes::default()
        }
    }

    /// Looks begin with the processes: what those have used already counts too.
    pub(crate) fn since_begin(self) -> Processes {
        Processes {
            has_looked: true,
            ..self
        }
    }

    /// Looks at these processes. Gives the CPU time they used since the last look, in microseconds,
    /// and the memory they have, in bytes.
    pub(crate) fn look(&mut self, pids: &[u32]) -> (u64, u64) {
        self.known.retain(|pid, _| pids.contains(pid));
        let mut used_us = 0;
        let count = pids.len().min(LOOKS_MAX);
        for index in 0..count {
            let pid = pids[(self.next + index) % pids.len()];
            let Some(now) = Use::of(&pid.to_string(), self.whose) else {
                continue;
            };
            match self.known.insert(pid, now) {
                Some(before) => used_us += now.cpu_us.saturating_sub(before.cpu_us),
                // It is new, and so is all it has used.
                None if self.has_looked => used_us += now.cpu_us,
                None => {}
            }
        }
        self.next = self.next.wrapping_add(count) % pids.len().max(1);
        self.has_looked = true;
        let memory_bytes = self.known.values().map(|one| one.memory_bytes).sum();
        (used_us, memory_bytes)
    }
}

impl Use {
    /// What a process in `/proc` has used; `None` when it is gone or hidden.
    fn of(name: &str, whose: Whose) -> Option<Use> {
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
        Some(Use {
            cpu_us: cpu_us(&stat, whose)?,
            memory_bytes: memory_bytes(name)?,
        })
    }
}

/// CPU time of a process so far, and of its children that have ended, in microseconds; `None` when
/// it is gone or hidden.
pub(crate) fn cpu_us_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    cpu_us(&stat, Whose::Family)
}

/// Memory of a process in `/proc`, in bytes.
fn memory_bytes(name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{name}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// CPU time out of `/proc/PID/stat`, user and system.
fn cpu_us(stat: &str, whose: Whose) -> Option<u64> {
    // The name, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields = rest.split_ascii_whitespace().skip(11);
    let count = match whose {
        Whose::Own => 2,
        Whose::Family => 4,
    };
    let ticks: Vec<u64> = fields
        .map_while(|field| field.parse().ok())
        .take(count)
        .collect();
    let ticks = (ticks.len() == count).then(|| ticks.iter().sum::<u64>())?;
    Some(ticks * (1_000_000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// CPU time of this process so far, in microseconds.
pub(crate) fn own_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}

/// Memory of this process, in bytes.
pub(crate) fn own_memory_bytes() -> u64 {
    memory_bytes("self").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_whatever_the_process_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 9 9 20 0 1 0 5 1 1";
        assert_eq!(cpu_us(stat, Whose::Own), Some(2_000_000));
        assert_eq!(cpu_us(stat, Whose::Family), Some(2_180_000));
        for bad in [
            "",
            "7 (a",
            "7 (a) S 1 2 3",
            "7 (a) S 1 7 7 0 -1 4 1 0 0 0 x y",
        ] {
            assert_eq!(cpu_us(bad, Whose::Own), None, "{bad}");
            assert_eq!(cpu_us(bad, Whose::Family), None, "{bad}");
        }
    }

    #[test]
    fn own_process_has_used_something() {
        assert!(own_memory_bytes() > 100_000);
        let before = own_cpu_us();
        let mut processes = Processes::default();
        let own = std::process::id();
        assert!(processes.look(&[own]).1 > 100_000);
        while own_cpu_us() < before + 100_000 {}
        let (used_us, _) = processes.look(&[own, u32::MAX]);
        assert!(used_us >= 50_000, "{used_us}");
        assert_eq!(processes.look(&[]), (0, 0));
    }
}
