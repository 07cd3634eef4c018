//! A process and everything below it, from `/proc`: what it used, and how to end it.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// One process as `/proc/PID/stat` tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// Is it ended, and only waited for?
    is_over: bool,
    /// Ticks of its own and of its children that it has waited for.
    own_ticks: u64,
    ended_ticks: u64,
}

/// CPU time in nanoseconds of everything below this process, what has ended included as far as
/// somebody waited for it: that somebody is below it too, or is this process.
///
/// Orphans come to whoever is their subreaper, so below a subreaper nothing is missed. The kernel
/// counts in ticks of 10 ms.
pub(crate) fn below_cpu_ns(root: u32) -> u64 {
    let all = processes();
    let below = below(&all, root);
    let ended = all.get(&root).map_or(0, |process| process.ended_ticks);
    let ticks = below.iter().filter_map(|pid| all.get(pid));
    let ticks: u64 = ticks
        .map(|process| process.own_ticks + process.ended_ticks)
        .sum();
    (ticks + ended) * (1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// Kills everything below the calling process, which must be a subreaper, and waits until it is
/// gone. Looks again until nobody is found: a process may start others before it hears of its end.
pub(crate) fn end_all_below() {
    let own = std::process::id();
    loop {
        let all = processes();
        let alive: Vec<u32> = below(&all, own)
            .into_iter()
            .filter(|pid| all.get(pid).is_some_and(|process| !process.is_over))
            .collect();
        for pid in &alive {
            if let Some(pid) = Pid::from_raw(*pid as i32) {
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        reap();
        if alive.is_empty() {
            return;
        }
        // One at least is dying; a grandchild's end comes to its own parent, which dies as well.
        let _ = wait(WaitOptions::empty());
    }
}

/// Takes note of children that have ended.
pub(crate) fn reap() {
    while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
}

fn processes() -> HashMap<u32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter_map(|pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, process(&text)?))
        })
        .collect()
}

/// What is below a process, without itself.
fn below(all: &HashMap<u32, Process>, root: u32) -> HashSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, process) in all {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut found = HashSet::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            // A tree has no loops, but /proc is read while it changes.
            if found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found
}

fn process(text: &str) -> Option<Process> {
    // The name before may hold anything; state and parent follow its last parenthesis.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    // utime, stime, cutime, cstime are fields 14 to 17, where the state is 3.
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse().ok())
            .unwrap_or(0)
    };
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        is_over: matches!(*fields.first()?, "Z" | "X"),
        own_ticks: ticks(11) + ticks(12),
        ended_ticks: ticks(13) + ticks(14),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_of_a_process_is_read_whatever_its_name() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194304 100 0 0 0 10 20 30 40 20 0 1 0 5 6 7";
        let wanted = Process {
            parent: 3,
            is_over: false,
            own_ticks: 30,
            ended_ticks: 70,
        };
        assert_eq!(process(text), Some(wanted));
        assert!(process("7 (a) Z 3 7").is_some_and(|process| process.is_over));
        assert_eq!(process("7 (a"), None);
    }

    /// A child of a child burns CPU time and has ended when it is asked for.
    #[test]
    fn what_ended_children_used_is_counted() {
        let own = std::process::id();
        let before = below_cpu_ns(own);
        let script = "sh -c 'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done'; :";
        let mut shell = std::process::Command::new("sh");
        assert!(shell.arg("-c").arg(script).status().unwrap().success());
        let used = below_cpu_ns(own) - before;
        assert!(used >= 10_000_000, "{used} ns");
    }

    #[test]
    fn what_is_below_is_found_over_generations() {
        let of = |parent| Process {
            parent,
            is_over: false,
            own_ticks: 0,
            ended_ticks: 0,
        };
        let all = HashMap::from([(2, of(1)), (3, of(2)), (4, of(1)), (5, of(9)), (9, of(5))]);
        assert_eq!(below(&all, 1), HashSet::from([2, 3, 4]));
        assert_eq!(below(&all, 2), HashSet::from([3]));
        assert_eq!(below(&all, 5), HashSet::from([9, 5]));
    }
}
