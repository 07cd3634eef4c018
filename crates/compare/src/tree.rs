//! A process and everything below it, from `/proc`: what it used, and how to end it.

use hob_machine::Processes;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// CPU time in nanoseconds of everything below this process, what has ended included as far as
/// somebody waited for it: that somebody is below it too, or is this process.
///
/// Orphans come to whoever is their subreaper, so below a subreaper nothing is missed. The kernel
/// counts in ticks of 10 ms.
pub(crate) fn below_cpu_ns(root: u32) -> u64 {
    let all = Processes::now();
    let below = all.below(root);
    let below = below.iter().filter_map(|pid| all.get(*pid));
    let ended = all.get(root).map_or(0, |process| process.ended_ns);
    below.map(|process| process.cpu_ns()).sum::<u64>() + ended
}

/// Kills everything below the calling process, which must be a subreaper, and waits until it is
/// gone. Looks again until nobody is found: a process may start others before it hears of its end.
pub(crate) fn end_all_below() {
    let own = std::process::id();
    loop {
        let all = Processes::now();
        let alive: Vec<u32> = { all.below(own) }
            .into_iter()
            .filter(|pid| all.get(*pid).is_some_and(|process| !process.is_over))
            .collect();
        for pid in &alive {
            if let Some(pid) = Pid::from_raw(*pid as i32) {
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let (ended, has_more) = reap();
        if alive.is_empty() && !has_more {
            return;
        }
        // Who was looked at while its parent went is a child now and was not found: then nobody
        // may be dying, and it is looked for again at once.
        if ended == 0 && !alive.is_empty() {
            // One at least is dying; a grandchild's end comes to its own parent, which dies too.
            let _ = wait(WaitOptions::empty());
        }
    }
}

/// Takes note of children that have ended: how many, and whether there are others.
pub(crate) fn reap() -> (usize, bool) {
    let mut ended = 0;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => ended += 1,
            Ok(None) => return (ended, true),
            // There are no children.
            Err(_) => return (ended, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
