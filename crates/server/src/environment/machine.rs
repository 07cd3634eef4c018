//! The machine as this process has it: processors, memory, what it is a guest of, and the limits of
//! the control groups above it, of either version.

use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::{Value, json};

use crate::process::spawner::Places;
use crate::resources::{parse, read};

/// Control groups above this process that are looked at.
const GROUP_DEPTH_MAX: usize = 32;

/// The smallest limits of the control groups above this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Quota {
    /// CPUs' worth of time.
    pub(super) cpus: Option<f64>,
    /// Memory, in bytes.
    pub(super) memory_bytes: Option<u64>,
    /// Processes and threads.
    pub(super) pids: Option<u64>,
}

impl Quota {
    /// Of this process.
    pub(super) fn find() -> Quota {
        let places = Places::find();
        let mut quota = Quota::default();
        if let Some(group) = places.v2() {
            quota.narrow(group, |folder, quota| quota.take_v2(folder));
        }
        for (controller, group) in places.all_v1() {
            quota.narrow(group, |folder, quota| quota.take_v1(folder, controller));
        }
        quota
    }

    /// A group's limit holds for all groups below it.
    fn narrow(&mut self, group: &Path, mut take: impl FnMut(&Path, &mut Quota)) {
        for folder in group.ancestors().take(GROUP_DEPTH_MAX) {
            if !folder.join("cgroup.procs").exists() {
                break;
            }
            take(folder, self);
        }
    }

    fn take_v2(&mut self, folder: &Path) {
        let text = |name: &str| file(folder, name);
        least_of(&mut self.cpus, cpu_max(&text("cpu.max")));
        least_of(
            &mut self.memory_bytes,
            text("memory.max").trim().parse().ok(),
        );
        least_of(&mut self.pids, text("pids.max").trim().parse().ok());
    }

    fn take_v1(&mut self, folder: &Path, controller: &str) {
        let number = |name: &str| file(folder, name).trim().parse::<u64>().ok();
        match controller {
            "cpu" => {
                let period = number("cpu.cfs_period_us").filter(|period| *period > 0);
                let quota = number("cpu.cfs_quota_us").zip(period);
                least_of(
                    &mut self.cpus,
                    quota.map(|(quota, period)| quota as f64 / period as f64),
                );
            }
            "memory" => {
                // No limit is a number near the largest one.
                let limit = number("memory.limit_in_bytes").filter(|limit| *limit < 1 << 60);
                least_of(&mut self.memory_bytes, limit);
            }
            _ => least_of(&mut self.pids, number("pids.max")),
        }
    }
}

/// `cpu.max`: a quota and a period, or `max` and a period.
fn cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

fn least_of<T: PartialOrd + Copy>(least: &mut Option<T>, found: Option<T>) {
    if let Some(found) = found
        && least.is_none_or(|least| found < least)
    {
        *least = Some(found);
    }
}

fn file(folder: &Path, name: &str) -> String {
    let path: PathBuf = folder.join(name);
    path.to_str().map(read).unwrap_or_default()
}

/// The machine, for machines.
pub(super) fn told() -> Value {
    let cpus = read("/proc/cpuinfo");
    let quota = Quota::find();
    // Arm names no model; its part number is better than nothing.
    let model = ["model name", "cpu model", "Hardware", "CPU part"];
    let model = model.iter().find_map(|name| parse::line_of(&cpus, name));
    let count = cpus.lines().filter(|line| line.starts_with("processor"));
    json!({
        "cpu": model.unwrap_or("unknown"),
        "cpus": count.count().max(1),
        "cpus_usable": crate::serve::usable_cores(),
        "affinity": affinity(),
        "cpu_quota": quota.cpus,
        "memory_bytes": parse::kib_line(&read("/proc/meminfo"), "MemTotal"),
        "memory_limit_bytes": quota.memory_bytes,
        "pids_limit": quota.pids,
        "hypervisor": guest_of(&cpus),
    })
}

/// Processors this process may run on: `0-3,6`.
fn affinity() -> String {
    let Ok(set) = sched_getaffinity(None) else {
        return String::new();
    };
    ranges((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)))
}

fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let texts = runs.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

/// What the machine is a guest of; none when it says it is none.
fn guest_of(cpus: &str) -> Option<String> {
    let flags = parse::line_of(cpus, "flags").unwrap_or_default();
    if !flags.split(' ').any(|flag| flag == "hypervisor") {
        return None;
    }
    let files = [
        "/sys/hypervisor/type",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/product_name",
    ];
    let words = files.map(|path| read(path).trim().to_owned());
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    Some(match words.is_empty() {
        true => "one that does not say its name".to_owned(),
        false => words.join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_smallest_on_the_way_up() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        for folder in ["a", "a/b"] {
            write(&format!("{folder}/cgroup.procs"), "");
        }
        write("cpu.max", "1 100000");
        write("a/cpu.max", "150000 100000\n");
        write("a/b/cpu.max", "max 100000\n");
        write("a/memory.max", "max\n");
        write("a/b/memory.max", "1048576\n");
        write("a/pids.max", "64\n");
        let mut quota = Quota::default();
        quota.narrow(&inner, |folder, quota| quota.take_v2(folder));
        let found = Quota {
            cpus: Some(1.5),
            memory_bytes: Some(1_048_576),
            pids: Some(64),
        };
        assert_eq!(quota, found);

        write("a/cpu.cfs_quota_us", "50000");
        write("a/cpu.cfs_period_us", "100000");
        write("a/b/cpu.cfs_quota_us", "-1");
        write("a/b/cpu.cfs_period_us", "100000");
        write("a/memory.limit_in_bytes", "9223372036854771712");
        let mut quota = Quota::default();
        for controller in ["cpu", "memory"] {
            quota.narrow(&inner, |folder, quota| quota.take_v1(folder, controller));
        }
        assert_eq!((quota.cpus, quota.memory_bytes), (Some(0.5), None));
    }

    #[test]
    fn processors_are_told_in_ranges() {
        for (numbers, text) in [
            (&[][..], ""),
            (&[3], "3"),
            (&[0, 1, 2, 6], "0-2,6"),
            (&[1, 3, 4], "1,3-4"),
        ] {
            assert_eq!(ranges(numbers.iter().copied()), text);
        }
        assert_ne!(affinity(), "");
    }

    #[test]
    fn this_machine_is_told() {
        let told = told();
        assert!(told["cpus"].as_u64().unwrap() > 0 && told["memory_bytes"].as_u64().unwrap() > 0);
        assert_eq!(guest_of("flags : fpu vme"), None);
        assert!(guest_of("flags : fpu hypervisor").is_some());
        assert_eq!(cpu_max("0 0"), None);
    }
}
