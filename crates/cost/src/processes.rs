//! CPU time of the processes of a private hob, told apart: keeper, server, spawner, and the
//! programs below the spawner. Of processes that run the kernel's own clock is read, in
//! nanoseconds; of those that were reaped `/proc` knows clock ticks.

use std::fs;

use hob_machine::text::kib_line;
use hob_machine::{Processes, read, tick_ns};

use crate::error::CostError;
use crate::kernel::clock::cpu_ns;

/// Nanoseconds of CPU time so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ProcessCpuTimes {
    pub(crate) server: u64,
    /// The keeper's is in it, which does nothing while requests run.
    pub(crate) spawner: u64,
    pub(crate) programs: u64,
}

/// CPU time of one request, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CpuUs {
    pub(crate) server: f64,
    pub(crate) spawner: f64,
    pub(crate) program: f64,
}

impl CpuUs {
    pub(crate) fn total(&self) -> f64 {
        self.server + self.spawner + self.program
    }
}

impl ProcessCpuTimes {
    /// Per request, from what was used before.
    pub(crate) fn since(&self, before: &ProcessCpuTimes, count: u64) -> CpuUs {
        let each = |after: u64, before: u64| {
            after.saturating_sub(before) as f64 / 1e3 / count.max(1) as f64
        };
        CpuUs {
            server: each(self.server, before.server),
            spawner: each(self.spawner, before.spawner),
            program: each(self.programs, before.programs),
        }
    }
}

/// The processes of a hob, found once.
#[derive(Debug, Clone)]
pub(crate) struct Family {
    pub(crate) keeper: u32,
    pub(crate) server: u32,
    pub(crate) spawner: Option<u32>,
}

impl Family {
    /// Finds them by what their command lines say.
    pub(crate) fn find(keeper: u32) -> Option<Family> {
        let all = Processes::now();
        let named = |word: &str| {
            all.children(keeper).find(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.split(|byte| *byte == 0).nth(1) == Some(word.as_bytes())
            })
        };
        Some(Family {
            keeper,
            server: named("server")?,
            spawner: named("spawner"),
        })
    }

    /// What they have used until now.
    pub(crate) fn used(&self) -> Result<ProcessCpuTimes, CostError> {
        let all = Processes::now();
        let of = |name: &str, pid: u32| {
            let tried = format!("cannot read the CPU time of the {name} (process {pid})");
            cpu_ns(pid).map_err(CostError::system(tried))
        };
        let mut used = ProcessCpuTimes {
            server: of("server", self.server)?,
            spawner: of("keeper", self.keeper)?,
            programs: 0,
        };
        let Some(spawner) = self.spawner else {
            return Ok(used);
        };
        used.spawner += of("spawner", spawner)?;
        used.programs += all.get(spawner).map_or(0, |one| one.ended_ns);
        for pid in all.below(spawner) {
            // One that has ended since is among the reaped ones the next time.
            let reaped = all.get(pid).map_or(0, |one| one.ended_ns);
            used.programs += cpu_ns(pid).unwrap_or(0) + reaped;
        }
        Ok(used)
    }

    /// How many processes of programs there are.
    pub(crate) fn program_count(&self) -> usize {
        self.spawner
            .map_or(0, |spawner| Processes::now().below(spawner).len())
    }

    /// Bytes of memory the server has to itself.
    pub(crate) fn server_bytes(&self) -> u64 {
        resident_bytes(self.server)
    }
}

/// A process and those below it; of a hob only the one that answers.
pub(crate) fn servers(pid: u32) -> Vec<u32> {
    if let Some(family) = Family::find(pid) {
        return vec![family.server];
    }
    Processes::now().tree(pid).into_iter().collect()
}

/// The error that ticks leave in a mean over so many requests, in microseconds: two times are cut
/// off to ticks, at both ends.
pub(crate) fn resolution_us(count: u64) -> f64 {
    2.0 * tick_ns() as f64 / 1e3 / count.max(1) as f64
}

/// Bytes of memory a process has in RAM that is not a file's.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let text = read(format!("/proc/{pid}/status"));
    let parts = ["RssAnon", "RssShmem"];
    { parts }
        .iter()
        .filter_map(|name| kib_line(&text, name))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_seen() {
        assert!(resident_bytes(std::process::id()) > 4096);
    }
}
