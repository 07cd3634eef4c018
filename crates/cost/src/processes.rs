//! CPU time of the processes of a private hob, told apart: keeper, server, spawner, and the
//! programs below the spawner. Of processes that run the kernel's own clock is read, in
//! nanoseconds; of those that were reaped `/proc` knows clock ticks.

use std::collections::HashMap;
use std::fs;

use crate::error::CostError;
use crate::kernel::clock::cpu_ns;

/// Nanoseconds of CPU time so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
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

impl Used {
    /// Per request, from what was used before.
    pub(crate) fn since(&self, before: &Used, count: u64) -> CpuUs {
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
        let all = processes();
        let named = |word: &str| {
            let is_it = |(number, one): (&u32, &Process)| {
                let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
                let role = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
                (one.parent == keeper && role == word.as_bytes()).then_some(*number)
            };
            all.iter().find_map(is_it)
        };
        Some(Family {
            keeper,
            server: named("server")?,
            spawner: named("spawner"),
        })
    }

    /// What they have used until now.
    pub(crate) fn used(&self) -> Result<Used, CostError> {
        let all = processes();
        let of = |name: &str, pid: u32| {
            let tried = format!("cannot read the CPU time of the {name} (process {pid})");
            cpu_ns(pid).map_err(CostError::system(tried))
        };
        let mut used = Used {
            server: of("server", self.server)?,
            spawner: of("keeper", self.keeper)?,
            programs: 0,
        };
        let Some(spawner) = self.spawner else {
            return Ok(used);
        };
        used.spawner += of("spawner", spawner)?;
        used.programs += all.get(&spawner).map_or(0, |one| one.reaped_ns);
        for (number, one) in &all {
            if is_below(&all, *number, spawner) {
                // One that has ended since is among the reaped ones the next time.
                used.programs += cpu_ns(*number).unwrap_or(0) + one.reaped_ns;
            }
        }
        Ok(used)
    }

    /// How many processes of programs there are.
    pub(crate) fn program_count(&self) -> usize {
        let all = processes();
        self.spawner.map_or(0, |spawner| {
            let below = all
                .keys()
                .filter(|number| is_below(&all, **number, spawner));
            below.count()
        })
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
    let all = processes();
    let below = all
        .keys()
        .copied()
        .filter(|number| is_below(&all, *number, pid));
    all.get(&pid)
        .map(|_| pid)
        .into_iter()
        .chain(below)
        .collect()
}

/// The error that ticks leave in a mean over so many requests, in microseconds: two times are cut
/// off to ticks, at both ends.
pub(crate) fn resolution_us(count: u64) -> f64 {
    2.0 * tick_ns() as f64 / 1e3 / count.max(1) as f64
}

/// Bytes of memory a process has in RAM that is not a file's.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.map(|line| line.trim().trim_end_matches("kB").trim());
        value
            .and_then(|value| value.parse::<u64>().ok())
            .unwrap_or(0)
    };
    (kib("RssAnon:") + kib("RssShmem:")) * 1024
}

struct Process {
    parent: u32,
    /// Of children that ended and were waited for.
    reaped_ns: u64,
}

fn processes() -> HashMap<u32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let one = |entry: fs::DirEntry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        Some((number, of_process(&text)?))
    };
    entries.filter_map(one).collect()
}

fn is_below(all: &HashMap<u32, Process>, number: u32, top: u32) -> bool {
    let mut at = number;
    // A tree has no loops, but /proc is read while it changes.
    for _ in 0..all.len() {
        match all.get(&at) {
            Some(one) if one.parent == top => return true,
            Some(one) => at = one.parent,
            None => return false,
        }
    }
    false
}

fn of_process(text: &str) -> Option<Process> {
    // The name before may hold anything; state and parent follow its last parenthesis.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    // cutime and cstime: fields 16 and 17, where the parent is 4.
    let ticks = fields
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap_or(0));
    Some(Process {
        parent,
        reaped_ns: ticks.sum::<u64>() * tick_ns(),
    })
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_that_ended_are_counted_apart() {
        let stat = "7 (a) b) S 3 7 7 0 -1 4194304 100 0 0 0 10 20 30 40 20 0 1 0 5 6 7";
        let one = of_process(stat).unwrap();
        assert_eq!((one.parent, one.reaped_ns), (3, 70 * tick_ns()));
        assert!(of_process("7 (a").is_none());
    }

    #[test]
    fn own_memory_and_parent_are_seen() {
        let own = std::process::id();
        assert!(resident_bytes(own) > 4096);
        let all = processes();
        assert!(is_below(&all, own, all[&own].parent));
    }
}
