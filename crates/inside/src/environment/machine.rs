//! The machine as this process has it: processors, memory, what it is a guest of, and the limits of
//! the control groups above it.

use hob_machine::Quota;
use hob_machine::hardware::{Cpus, memory_bytes};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::api::MachineFacts;

/// The machine, for machines.
pub(super) fn told() -> MachineFacts {
    let (cpus, quota) = (Cpus::look(), Quota::find());
    let hypervisor = cpus.host("one that does not say its name");
    MachineFacts {
        cpu: cpus.model.unwrap_or_else(|| "unknown".to_owned()),
        cpus: cpus.count,
        cpus_usable: hob_keeper::usable_cores(),
        affinity: affinity(),
        cpu_quota: quota.cpus,
        memory_bytes: memory_bytes(),
        memory_limit_bytes: quota.memory_bytes,
        pids_limit: quota.pids,
        hypervisor,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(told.cpus > 0 && told.memory_bytes > Some(0));
    }
}
