//! What the machine did during a run, from `/proc`: CPU time of a process with its children, time
//! in which the CPUs were busy, and time the host kept for itself (steal).

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use super::cgroup::Cgroup;
use super::process::Processes;

/// What was so at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moment {
    /// Ticks of all CPUs: all, idle, stolen.
    total: u64,
    idle: u64,
    stolen: u64,
    /// CPU time of the watched processes, that of children that ended included.
    processes_cpu_ns: Option<u64>,
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
        let processes = Processes::now();
        let tree = processes.tree(pid);
        let used = tree.iter().filter_map(|pid| processes.get(*pid));
        moment.processes_cpu_ns = (!tree.is_empty()).then(|| used.map(|one| one.cpu_ns()).sum());
        let memory: Option<Vec<u64>> = tree.iter().map(|pid| memory_of(*pid)).collect();
        moment.memory_bytes = memory
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().sum());
    }
    moment.cgroup_cpu_ns = cgroup.and_then(|group| group.cpu_ns().ok());
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
    let used = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
    Passed {
        cpu_ns: used(before.processes_cpu_ns, after.processes_cpu_ns),
        memory_bytes: after.memory_bytes,
        cgroup_cpu_ns: used(before.cgroup_cpu_ns, after.cgroup_cpu_ns),
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
    fn machine_is_read_from_proc() {
        let before = of_machine("cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1 2 3\n");
        let after = of_machine("cpu  200 0 90 810 10 0 5 85 0 0\n");
        let passed = passed(&before, &after);
        assert_eq!((passed.steal_percent, passed.busy_percent), (25.0, 70.0));
    }

    #[test]
    fn only_a_process_that_is_there_has_cpu_time_and_memory() {
        let own = moment(Some(std::process::id()), None);
        assert!(own.processes_cpu_ns.is_some());
        assert!(own.memory_bytes.is_some_and(|bytes| bytes > 4096));
        // No process has this number: it is above the most a kernel allows.
        let none = moment(Some(u32::MAX), None);
        assert_eq!((none.processes_cpu_ns, none.memory_bytes), (None, None));
    }
}
