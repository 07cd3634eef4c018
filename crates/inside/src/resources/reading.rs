//! One look at the machine: everything that is read at a moment, as the kernel counts it.

use hob_machine::cgroup::membership;
use hob_machine::hardware;
use hob_machine::process::descriptors;
use hob_machine::text::{self, CpuTime, Pressure, Traffic};
use hob_machine::{ProcessStat, read};
use rustix::process::{Resource, getrlimit};

/// What was counted until a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MachineReading {
    /// The moment, on the monotonic clock, in milliseconds.
    pub(crate) now_ms: u64,
    /// Interfaces with their traffic and speed.
    pub(crate) interfaces: Vec<Interface>,
    /// All CPUs together, then each.
    pub(crate) cpus: Vec<CpuTime>,
    /// Soft interrupts for packets that came.
    pub(crate) net_rx: u64,
    /// Connections that found the queue of their listener full.
    pub(crate) listen_overflows: u64,
    /// Connections that were not taken, for this or another reason.
    pub(crate) listen_drops: u64,
    /// Time the busiest disk had something to do, in milliseconds.
    pub(crate) disk_busy_ms: u64,
    /// Waiting for a disk, where the kernel counts it.
    pub(crate) io: Pressure,
    /// Waiting for memory, where the kernel counts it.
    pub(crate) memory: Pressure,
    /// Memory of the machine, in bytes.
    pub(crate) memory_bytes: u64,
    /// Of it, what can be had without swapping.
    pub(crate) memory_available_bytes: u64,
    /// The server's own.
    pub(crate) server: MemoryReading,
    /// Descriptors the server has open.
    pub(crate) descriptors: u64,
    /// Pools of programs by name.
    pub(crate) pools: Vec<(String, MemoryReading)>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) traffic: Traffic,
    /// Bits a second that its link carries; none where it has no link, or does not say.
    pub(crate) speed_bits_s: Option<u64>,
}

/// The server, or the workers of one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryReading {
    /// Memory, in bytes.
    pub(crate) memory_bytes: u64,
    /// Pages that had to be fetched from a disk.
    pub(crate) major_faults: u64,
    /// Waiting for memory in its control group, where it has one.
    pub(crate) memory: Pressure,
}

impl MachineReading {
    /// Looks at the machine now. `pools` names pools with the process ids of their workers.
    pub(crate) fn take(now_ms: u64, pools: Vec<(String, Vec<u32>)>) -> MachineReading {
        let (stat, softirqs) = (read("/proc/stat"), read("/proc/softirqs"));
        let (netstat, memory) = (read("/proc/net/netstat"), read("/proc/meminfo"));
        let counted = |name| text::netstat(&netstat, "TcpExt", name).unwrap_or(0);
        let pressure = |kind: &str| {
            text::pressure(&read(format!("/proc/pressure/{kind}"))).unwrap_or_default()
        };
        let bytes = |name| text::kib_line(&memory, name).unwrap_or(0);
        MachineReading {
            now_ms,
            interfaces: interfaces(),
            cpus: text::cpu_times(&stat),
            net_rx: text::softirqs(&softirqs, "NET_RX"),
            listen_overflows: counted("ListenOverflows"),
            listen_drops: counted("ListenDrops"),
            disk_busy_ms: text::disk_busy_ms(&read("/proc/diskstats")),
            io: pressure("io"),
            memory: pressure("memory"),
            memory_bytes: bytes("MemTotal"),
            memory_available_bytes: bytes("MemAvailable"),
            server: part(&[std::process::id()]),
            descriptors: descriptors().unwrap_or(0),
            pools: pools
                .into_iter()
                .map(|(name, pids)| (name, part(&pids)))
                .collect(),
        }
    }
}

/// Interfaces as they are now.
pub(super) fn interfaces() -> Vec<Interface> {
    let dev = read("/proc/net/dev");
    let named = text::interfaces(&dev).map(|(name, traffic)| Interface {
        speed_bits_s: speed_bits_s(name),
        name: name.to_owned(),
        traffic,
    });
    named.collect()
}

/// The speed of a link; virtual ones say -1, or nothing.
fn speed_bits_s(name: &str) -> Option<u64> {
    let megabits = hardware::interface(name, "speed")?;
    megabits.checked_mul(1_000_000).filter(|speed| *speed > 0)
}

fn part(pids: &[u32]) -> MemoryReading {
    let mut sum = MemoryReading::default();
    for pid in pids {
        let Some(process) = ProcessStat::of(pid) else {
            continue;
        };
        sum.memory_bytes = sum.memory_bytes.saturating_add(process.resident_bytes);
        sum.major_faults = sum.major_faults.saturating_add(process.major_faults);
    }
    if let Some(pid) = pids.first() {
        sum.memory = group_pressure(*pid).unwrap_or_default();
    }
    sum
}

/// The memory pressure of a process's control group (v2), where it has one of its own.
fn group_pressure(pid: u32) -> Option<Pressure> {
    let groups = read(format!("/proc/{pid}/cgroup"));
    let path = membership(&groups, "")?.trim_matches('/');
    if path.is_empty() || path.contains("..") {
        return None;
    }
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let mut texts = mounts
        .iter()
        .map(|mount| read(format!("{mount}/{path}/memory.pressure")));
    texts.find_map(|text| text::pressure(&text))
}

/// Descriptors this process may have; none for no limit.
pub(crate) fn descriptors_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_read_whole() {
        let pools = vec![("pool".to_owned(), vec![std::process::id(), u32::MAX])];
        let reading = MachineReading::take(7, pools);
        assert!(reading.interfaces.iter().any(|one| one.name == "lo"));
        assert!(reading.cpus.len() >= 2 && reading.memory_bytes > 0);
        assert!(reading.server.memory_bytes > 0);
        // Read a moment later, while others of this process allocate; a process that is not there
        // adds nothing.
        assert!(reading.pools[0].1.memory_bytes > 0);
        assert!((3..1_000_000).contains(&reading.descriptors));
    }

    #[test]
    fn odd_names_are_not_looked_up() {
        for name in ["lo", "../../etc", ".", "no-such-link"] {
            assert_eq!(speed_bits_s(name), None);
        }
    }
}
