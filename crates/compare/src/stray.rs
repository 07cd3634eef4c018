//! CPU time of programs that nobody waits for, as those that Apache's `mod_cgid` starts: their
//! parent has the kernel forget them, with what they used, when they end. Without a control group
//! nothing counts them, but what their CPU was busy with and what is known of it leaves them over.
//!
//! Other work that is short and on that CPU is taken for theirs. So this is looked at only where a
//! process of the server ignores SIGCHLD, and what comes of it is doubtful and said to be.

use std::collections::HashMap;

use hob_machine::text::{cpu_time, line_of};
use hob_machine::{Processes, read, tick_ns};
use rustix::process::Signal;

/// Adds up what is left over of one CPU, from look to look.
pub(crate) struct Strays {
    cpu: usize,
    before: CpuSnapshot,
    /// Nanoseconds; below nothing where more was seen than the CPU did.
    left_over_ns: i64,
}

/// What was known at one moment, in nanoseconds.
struct CpuSnapshot {
    busy_ns: u64,
    tree_ns: u64,
    /// CPU time and last CPU of each process that is not of the tree.
    others: HashMap<u32, (u64, Option<usize>)>,
}

impl Strays {
    /// Begins to look at a CPU and at what is below a process.
    pub(crate) fn new(cpu: usize, root: u32) -> Strays {
        Strays {
            cpu,
            before: CpuSnapshot::now(cpu, root, 0),
            left_over_ns: 0,
        }
    }

    /// What was left over up to now, where the tree has used so much.
    pub(crate) fn look(&mut self, root: u32, tree_ns: u64) -> i64 {
        let now = CpuSnapshot::now(self.cpu, root, tree_ns);
        if has_forgetful(root) {
            self.left_over_ns += now.left_over_ns(&self.before, self.cpu);
        }
        self.before = now;
        self.left_over_ns
    }
}

impl CpuSnapshot {
    fn now(cpu: usize, root: u32, tree_ns: u64) -> CpuSnapshot {
        let all = Processes::now();
        let tree = all.below(root);
        let others = all.iter().filter(|(pid, _)| !tree.contains(pid));
        let busy = cpu_time(&read("/proc/stat"), &format!("cpu{cpu}")).unwrap_or_default();
        CpuSnapshot {
            busy_ns: busy.busy() * tick_ns(),
            tree_ns,
            others: others
                .map(|(pid, process)| (pid, (process.cpu_ns(), process.cpu)))
                .collect(),
        }
    }

    /// What the CPU did since another look, without what the tree and others did on it.
    fn left_over_ns(&self, before: &CpuSnapshot, cpu: usize) -> i64 {
        let others = self.others.iter().filter_map(|(pid, (ns, on))| {
            let earlier = before.others.get(pid);
            let was_here = earlier.is_some_and(|(_, on)| *on == Some(cpu));
            let earlier_ns = earlier.map_or(0, |(ns, _)| *ns);
            (was_here || *on == Some(cpu)).then(|| ns.saturating_sub(earlier_ns))
        });
        let known = self.tree_ns.saturating_sub(before.tree_ns) + others.sum::<u64>();
        self.busy_ns.saturating_sub(before.busy_ns) as i64 - known as i64
    }
}

/// Is there a process below this one whose children the kernel forgets when they end?
fn has_forgetful(root: u32) -> bool {
    let below = Processes::now().below(root);
    let mut below = below.into_iter();
    below.any(|pid| ignores_sigchld(&read(format!("/proc/{pid}/status"))))
}

/// Does `/proc/PID/status` say that SIGCHLD is ignored?
fn ignores_sigchld(status: &str) -> bool {
    let ignored = line_of(status, "SigIgn");
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask, 16).ok());
    ignored.is_some_and(|mask| mask >> (Signal::CHILD.as_raw() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn look(busy: u64, tree: u64, others: &[(u32, u64, usize)]) -> CpuSnapshot {
        let others = others.iter();
        CpuSnapshot {
            busy_ns: busy * SECOND,
            tree_ns: tree * SECOND,
            others: others
                .map(|(pid, seconds, cpu)| (*pid, (seconds * SECOND, Some(*cpu))))
                .collect(),
        }
    }

    #[test]
    fn what_neither_the_tree_nor_others_on_the_cpu_did_is_left_over() {
        let before = look(100, 10, &[(1, 50, 0), (2, 7, 1), (3, 7, 1), (9, 4, 1)]);
        // 1 stays elsewhere, 2 comes from there, 3 stays, 4 is new; 9 has ended.
        let others = [(1, 60, 0), (2, 8, 0), (3, 9, 1), (4, 1, 1)];
        let now = look(120, 13, &others);
        assert_eq!(
            now.left_over_ns(&before, 1),
            (20 - 3 - 1 - 2 - 1) * SECOND as i64
        );
        let idle = look(100, 12, &[]);
        assert_eq!(idle.left_over_ns(&before, 1), -2 * SECOND as i64);
    }

    #[test]
    fn process_that_ignores_sigchld_forgets_its_children() {
        let asked = |script: &str| {
            // Shells keep SIGCHLD to themselves.
            let mut perl = Command::new("perl");
            perl.args(["-e", script]);
            let mut child = perl
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            output.read_line(&mut line).unwrap();
            let status = read(format!("/proc/{}/status", child.id()));
            drop(child.stdin.take());
            child.wait().unwrap();
            ignores_sigchld(&status)
        };
        assert!(asked(
            "$SIG{CHLD} = 'IGNORE'; $| = 1; print qq(ready\\n); <STDIN>"
        ));
        assert!(!asked("$| = 1; print qq(ready\\n); <STDIN>"));
    }
}
