//! What the machine did during a run, from `/proc`: CPU time of a process with its children, time
//! in which the CPUs were busy, and time the host kept for itself (steal).

use std::collections::HashMap;
use std::fs;

use rustix::time::{ClockId, clock_gettime};

use super::cgroup::Cgroup;

/// What was so at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moment {
    /// Ticks of all CPUs: all, idle, stolen.
    total: u64,
    idle: u64,
    stolen: u64,
    /// Ticks of the watched processes, those of children that ended included.
    processes: Option<u64>,
    /// Bytes of memory they have, shared pages by share.
    memory_bytes: Option<u64>,
    /// The same of the watched control group; CPU time in nanoseconds.
    cgroup_cpu_ns: Option<u64>,
    cgroup_memory_bytes: Option<u64>,
}

/// What passed between two moments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Passed {
    /// Nanoseconds of CPU time of the watched processes.
    pub(crate) cpu_ns: Option<u64>,
    /// Their memory at the end.
    pub(crate) memory_bytes: Option<u64>,
    /// The same of the watched control group.
    pub(crate) cgroup_cpu_ns: Option<u64>,
    pub(crate) cgroup_memory_bytes: Option<u64>,
    /// Percent of all CPU time that the host gave to others.
    pub(crate) steal_percent: f64,
    /// Percent of all CPU time that was used here.
    pub(crate) busy_percent: f64,
}

/// Looks at the machine, at a process and everything below it, and at a control group.
pub(crate) fn moment(pid: Option<u32>, cgroup: Option<&Cgroup>) -> Moment {
    let mut moment = fs::read_to_string("/proc/stat")
        .map(|text| of_machine(&text))
        .unwrap_or_default();
    if let Some(pid) = pid {
        let tree = tree_of(pid);
        moment.processes = (!tree.is_empty()).then(|| tree.iter().map(|(_, ticks)| ticks).sum());
        let memory: Option<Vec<u64>> = tree.iter().map(|(pid, _)| memory_of(*pid)).collect();
        moment.memory_bytes = memory
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().sum());
    }
    moment.cgroup_cpu_ns = cgroup.and_then(Cgroup::cpu_ns);
    moment.cgroup_memory_bytes = cgroup.and_then(Cgroup::memory_bytes);
    moment
}

/// What passed from one moment to another.
pub(crate) fn passed(before: &Moment, after: &Moment) -> Passed {
    let total = after.total.saturating_sub(before.total);
    let percent = |part: u64| match total {
        0 => 0.0,
        total => part as f64 * 100.0 / total as f64,
    };
    let idle = after.idle.saturating_sub(before.idle);
    let stolen = after.stolen.saturating_sub(before.stolen);
    let ticks = before
        .processes
        .zip(after.processes)
        .map(|(before, after)| after.saturating_sub(before));
    Passed {
        cpu_ns: ticks
            .map(|ticks| ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second())),
        memory_bytes: after.memory_bytes,
        cgroup_cpu_ns: before
            .cgroup_cpu_ns
            .zip(after.cgroup_cpu_ns)
            .map(|(before, after)| after.saturating_sub(before)),
        cgroup_memory_bytes: after.cgroup_memory_bytes,
        steal_percent: percent(stolen),
        busy_percent: percent(total.saturating_sub(idle + stolen)),
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal guest guest_nice.
fn of_machine(text: &str) -> Moment {
    let line = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("cpu "));
    let fields = line.unwrap_or_default().split_whitespace();
    let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    Moment {
        // Guest time is in user time already.
        total: ticks.iter().take(8).sum(),
        idle: at(3) + at(4),
        stolen: at(7),
        ..Moment::default()
    }
}

/// A process and everything below it, with the ticks of each and of its children that ended.
fn tree_of(pid: u32) -> Vec<(u32, u64)> {
    let mut all: HashMap<u32, (u32, u64)> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in entries {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let stat = number.and_then(|number: u32| {
            let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            Some((number, of_process(&text)?))
        });
        all.extend(stat);
    }
    let is_below = |mut number: u32| {
        // A tree has no loops, but /proc is read while it changes.
        for _ in 0..all.len() {
            if number == pid {
                return true;
            }
            match all.get(&number) {
                Some((parent, _)) => number = *parent,
                None => return false,
            }
        }
        false
    };
    let found = all.iter().filter(|(number, _)| is_below(**number));
    found
        .map(|(number, (_, ticks))| (*number, *ticks))
        .collect()
}

/// Parent and ticks of `/proc/PID/stat`.
fn of_process(text: &str) -> Option<(u32, u64)> {
    // The name before may hold anything; state and parent follow its last parenthesis.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    // utime, stime, cutime, cstime: fields 14 to 17, where the parent is 4.
    let ticks = fields
        .skip(9)
        .take(4)
        .map(|field| field.parse::<u64>().unwrap_or(0));
    Some((parent, ticks.sum()))
}

fn memory_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_and_processes_are_read_from_proc() {
        let before = of_machine("cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1 2 3\n");
        let after = of_machine("cpu  200 0 90 810 10 0 5 85 0 0\n");
        let passed = passed(&before, &after);
        assert_eq!((passed.steal_percent, passed.busy_percent), (25.0, 70.0));
        let stat = "7 (a) b) S 3 7 7 0 -1 4194304 100 0 0 0 10 20 30 40 20 0 1 0 5 6 7";
        assert_eq!(of_process(stat), Some((3, 100)));
        assert_eq!(of_process("7 (a"), None);
    }

    #[test]
    fn own_process_is_in_its_own_tree() {
        let own = std::process::id();
        assert!(tree_of(own).iter().any(|(pid, _)| *pid == own));
        assert!(moment(Some(own), None).processes.is_some());
        // No process has this number: it is above the most a kernel allows.
        assert_eq!(moment(Some(u32::MAX), None).processes, None);
    }
}
