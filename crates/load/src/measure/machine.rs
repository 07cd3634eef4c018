//! What the machine did during a run, from `/proc`: CPU time of a process with its children, time
//! in which the CPUs were busy, and time the host kept for itself (steal).

use hob_machine::process::{proportional_bytes, waited_ns};
use hob_machine::text::{CpuTime, cpu_time};
use hob_machine::{Cgroup, Processes, read};
use rustix::time::{ClockId, clock_gettime};

/// What was so at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct MachineSnapshot {
    /// Of all CPUs together.
    cpus: CpuTime,
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
pub(crate) fn moment(pid: Option<u32>, cgroup: Option<&Cgroup>) -> MachineSnapshot {
    let mut moment = of_machine(&read("/proc/stat"));
    if let Some(pid) = pid {
        let processes = Processes::now();
        let tree = processes.tree(pid);
        let used = tree.iter().filter_map(|pid| processes.get(*pid));
        moment.processes_cpu_ns = (!tree.is_empty()).then(|| used.map(|one| one.cpu_ns()).sum());
        let memory: Option<Vec<u64>> = tree.iter().map(|pid| proportional_bytes(*pid)).collect();
        moment.memory_bytes = memory
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().sum());
    }
    moment.cgroup_cpu_ns = cgroup.and_then(|group| group.cpu_ns().ok());
    moment.cgroup_memory_bytes = cgroup.and_then(Cgroup::memory_bytes);
    moment
}

/// What passed from one moment to another.
pub(crate) fn passed(before: &MachineSnapshot, after: &MachineSnapshot) -> Passed {
    let total = after.cpus.all.saturating_sub(before.cpus.all);
    let percent = |part: fn(&CpuTime) -> u64| match total {
        0 => 0.0,
        total => part(&after.cpus).saturating_sub(part(&before.cpus)) as f64 * 100.0 / total as f64,
    };
    let used = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
    Passed {
        cpu_ns: used(before.processes_cpu_ns, after.processes_cpu_ns),
        memory_bytes: after.memory_bytes,
        cgroup_cpu_ns: used(before.cgroup_cpu_ns, after.cgroup_cpu_ns),
        cgroup_memory_bytes: after.cgroup_memory_bytes,
        steal_percent: percent(|cpus| cpus.stolen),
        busy_percent: percent(CpuTime::busy),
    }
}

/// What the calling thread had of a CPU, and how long it waited for one, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadTime {
    pub(crate) cpu_ns: u64,
    /// 0 where the kernel does not count it.
    pub(crate) waited_ns: u64,
}

impl ThreadTime {
    /// Up to now.
    pub(crate) fn now() -> ThreadTime {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        ThreadTime {
            cpu_ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
            waited_ns: waited_ns("thread-self").unwrap_or(0),
        }
    }
}

fn of_machine(stat: &str) -> MachineSnapshot {
    MachineSnapshot {
        cpus: cpu_time(stat, "cpu").unwrap_or_default(),
        ..MachineSnapshot::default()
    }
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
