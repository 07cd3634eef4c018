//! CPU time and memory of processes, as the kernel counts them.

use std::collections::HashMap;

use hob_machine::ProcessStat;
use hob_machine::process::resident_bytes;
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
            let Some(now) = Use::of(pid, self.whose) else {
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
    fn of(pid: u32, whose: Whose) -> Option<Use> {
        let process = ProcessStat::of(pid)?;
        let cpu_ns = match whose {
            Whose::Own => process.own_ns,
            Whose::Family => process.cpu_ns(),
        };
        Some(Use {
            cpu_us: cpu_ns / 1000,
            memory_bytes: resident_bytes(pid)?,
        })
    }
}

/// CPU time of a process so far, and of its children that have ended, in microseconds; `None` when
/// it is gone or hidden.
pub(crate) fn cpu_us_of(pid: u32) -> Option<u64> {
    Some(ProcessStat::of(pid)?.cpu_ns() / 1000)
}

/// CPU time of this process so far, in microseconds.
pub(crate) fn own_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}

/// Memory of this process, in bytes.
pub(crate) fn own_memory_bytes() -> u64 {
    resident_bytes("self").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
