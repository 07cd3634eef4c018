//! Processes as `/proc` tells of them: who started whom, the CPU time and memory each had.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::fs;
use std::path::Path;

use crate::read;
use crate::text::kib_line;

/// The processes of the machine at one moment.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    all: HashMap<u32, ProcessStat>,
}

/// One process as `/proc/PID/stat` tells of it; CPU time is counted in ticks of the kernel, mostly
/// 10 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Who started it, or who took it over when that one ended.
    pub parent: u32,
    /// The session it is in.
    pub session: i32,
    /// Is it ended, and only waited for?
    pub is_over: bool,
    /// Times a page had to be fetched from a disk, its ended children included.
    pub major_faults: u64,
    /// Nanoseconds it had itself.
    pub own_ns: u64,
    /// Nanoseconds of its children that ended and that it has waited for.
    pub ended_ns: u64,
    /// Threads.
    pub threads: u64,
    /// When it began, in nanoseconds after the boot.
    pub started_ns: u64,
    /// Address space, in bytes.
    pub virtual_bytes: u64,
    /// Memory it holds, in bytes; [`Memory`] knows it better.
    pub resident_bytes: u64,
    /// The CPU it was on last.
    pub cpu: Option<usize>,
}

impl Processes {
    /// Looks at `/proc`.
    pub fn now() -> Processes {
        let all = pids().filter_map(|pid| Some((pid, ProcessStat::of(pid)?)));
        Processes { all: all.collect() }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &ProcessStat)> {
        self.all.iter().map(|(pid, process)| (*pid, process))
    }

    /// One of them.
    pub fn get(&self, pid: u32) -> Option<&ProcessStat> {
        self.all.get(&pid)
    }

    /// Those that a process is the parent of.
    pub fn children(&self, pid: u32) -> impl Iterator<Item = u32> + '_ {
        let own = move |(_, one): &(&u32, &ProcessStat)| one.parent == pid;
        self.all.iter().filter(own).map(|(child, _)| *child)
    }

    /// All below a process, over generations, without itself.
    pub fn below(&self, pid: u32) -> HashSet<u32> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (child, one) in &self.all {
            children.entry(one.parent).or_default().push(*child);
        }
        let mut found = HashSet::new();
        let mut open = vec![pid];
        while let Some(parent) = open.pop() {
            for child in children.get(&parent).into_iter().flatten() {
                // A tree has no loops, but /proc is read while it changes.
                if *child != pid && found.insert(*child) {
                    open.push(*child);
                }
            }
        }
        found
    }

    /// A process and all below it; nothing where it is not there.
    pub fn tree(&self, pid: u32) -> HashSet<u32> {
        if !self.all.contains_key(&pid) {
            return HashSet::new();
        }
        let mut tree = self.below(pid);
        tree.insert(pid);
        tree
    }
}

impl ProcessStat {
    /// Looks at one by its number, or at `self`; nothing where it is gone or hidden.
    pub fn of(pid: impl Display) -> Option<ProcessStat> {
        ProcessStat::of_stat(&read(format!("/proc/{pid}/stat")))
    }

    /// Reads what `/proc/PID/stat` holds: `PID (NAME) STATE PARENT ...`.
    pub fn of_stat(stat: &str) -> Option<ProcessStat> {
        // The name may hold anything, parentheses too; nothing after it does.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.trim_ascii().as_bytes().split(|byte| *byte == b' ');
        let is_over = matches!(fields.next()?, b"Z" | b"X");
        // How many fields to pass over: proc_pid_stat(5) has them all.
        let mut text = |passed: usize| str::from_utf8(fields.nth(passed)?).ok();
        let parent = text(0)?.parse().ok()?;
        let session = text(1)?.parse().ok()?;
        let mut number = |passed: usize| text(passed)?.parse::<u64>().ok();
        let major_faults = number(5)?.saturating_add(number(0)?);
        let tick_ns = tick_ns();
        let ns = |ticks: u64| ticks.saturating_mul(tick_ns);
        Some(ProcessStat {
            parent,
            session,
            is_over,
            major_faults,
            own_ns: ns(number(0)?.saturating_add(number(0)?)),
            ended_ns: ns(number(0)?.saturating_add(number(0)?)),
            threads: number(2)?,
            started_ns: ns(number(1)?),
            virtual_bytes: number(0)?,
            resident_bytes: number(0)?.saturating_mul(page_bytes()),
            cpu: number(14).map(|cpu| cpu as usize),
        })
    }

    /// Nanoseconds of it and of its children that ended.
    pub fn cpu_ns(&self) -> u64 {
        self.own_ns.saturating_add(self.ended_ns)
    }
}

/// What a process has of the memory, as `/proc/PID/statm` tells, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// In RAM.
    pub resident_bytes: u64,
    /// Of it, what is of files or shared.
    pub shared_bytes: u64,
}

impl Memory {
    /// Looks at one process by its number, or at `self`; nothing where it is gone or hidden.
    pub fn of(pid: impl Display) -> Option<Memory> {
        let text = read(format!("/proc/{pid}/statm"));
        let mut pages = text.split(' ').skip(1);
        let mut bytes = || {
            Some(
                pages
                    .next()?
                    .parse::<u64>()
                    .ok()?
                    .saturating_mul(page_bytes()),
            )
        };
        Some(Memory {
            resident_bytes: bytes()?,
            shared_bytes: bytes()?,
        })
    }
}

/// Memory a process has in RAM, in bytes; of one by its number, or of `self`.
pub fn resident_bytes(pid: impl Display) -> Option<u64> {
    Some(Memory::of(pid)?.resident_bytes)
}

/// Memory a process has in RAM, pages it shares by its share, in bytes.
pub fn proportional_bytes(pid: u32) -> Option<u64> {
    kib_line(&read(format!("/proc/{pid}/smaps_rollup")), "Pss")
}

/// Nanoseconds in which a thread was ready to run and waited for a CPU, by its number or
/// `thread-self`; nothing where it is gone or the kernel does not count that
/// (`CONFIG_SCHED_INFO`). A process' own number means its first thread.
pub fn waited_ns(thread: impl Display) -> Option<u64> {
    let told = read(format!("/proc/{thread}/schedstat"));
    told.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The numbers of a process' threads; none where it is gone.
pub fn threads(pid: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let entries = entries.into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The numbers of all processes.
pub fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Descriptors that this process has open; nothing where `/proc` is not there.
pub fn descriptors() -> Option<u64> {
    let folder = Path::new("/proc/self/fd");
    // Since Linux 6.2 the folder's size is their number.
    match fs::metadata(folder).ok()?.len() {
        // One of them is the folder itself.
        0 => Some((fs::read_dir(folder).ok()?.count() as u64).saturating_sub(1)),
        count => Some(count),
    }
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Nanoseconds of one tick, in which `/proc` counts CPU time.
pub fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;
    use std::process::{Command, Stdio};

    use super::*;

    const REST: &str = " S 3 7 8 0 -1 4194304 100 0 9 1 10 20 30 40 20 0 2 0 5 6 7\n";

    #[test]
    fn stat_is_read_whatever_the_name_of_the_process() {
        let wanted = ProcessStat {
            parent: 3,
            session: 8,
            is_over: false,
            major_faults: 10,
            own_ns: 30 * tick_ns(),
            ended_ns: 70 * tick_ns(),
            threads: 2,
            started_ns: 5 * tick_ns(),
            virtual_bytes: 6,
            resident_bytes: 7 * page_bytes(),
            cpu: None,
        };
        for name in ["sh", "a b", "a) b", "((sd-pam))", ") Z 9 (", "\u{fffd}) \n"] {
            let stat = format!("7 ({name}){REST}");
            assert_eq!(ProcessStat::of_stat(&stat), Some(wanted), "{name}");
        }
        assert_eq!(wanted.cpu_ns(), 100 * tick_ns());
    }

    #[test]
    fn stat_tells_the_cpu_it_was_on_last() {
        let more = "8 9 10 11 12 13 14 15 16 17 18 19 20 21 1 0 0";
        let stat = format!("7 (sh){} {more}\n", REST.trim_end());
        assert_eq!(ProcessStat::of_stat(&stat).unwrap().cpu, Some(1));
    }

    #[test]
    fn stat_that_is_cut_off_is_no_process() {
        let whole = format!("7 (sh){REST}");
        let enough = whole.len() - "7\n".len();
        for len in 0..enough {
            assert_eq!(ProcessStat::of_stat(&whole[..len]), None, "{len} bytes");
        }
        assert!(ProcessStat::of_stat(&whole).is_some());
        let huge = whole.replace(" 10 20 30 40 ", &format!(" {0} {0} {0} {0} ", u64::MAX));
        assert_eq!(ProcessStat::of_stat(&huge).unwrap().cpu_ns(), u64::MAX);
    }

    #[test]
    fn own_memory_and_descriptors_are_seen() {
        let own = Memory::of("self").unwrap();
        assert!(own.resident_bytes > own.shared_bytes);
        assert!(ProcessStat::of("self").unwrap().resident_bytes > 0);
        assert!(proportional_bytes(std::process::id()).is_some_and(|bytes| bytes > 4096));
        assert!((3..1_000_000).contains(&descriptors().unwrap()));
        // No process has this number: it is above the most a kernel allows.
        assert_eq!(Memory::of(u32::MAX), None);
        assert_eq!(proportional_bytes(u32::MAX), None);
    }

    #[test]
    fn running_process_with_parentheses_in_its_name_is_found() {
        let folder = std::env::temp_dir().join(format!("hob-process-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // What is started bears the name it is started under, up to 15 bytes.
        let program = folder.join(OsStr::from_bytes(b"a) Z 1 (\xff"));
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let mut shell = Command::new(&program);
        let mut child = shell
            .args(["-c", "read line"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let (own, pid) = (std::process::id(), child.id());
        let processes = Processes::now();
        let is_child = processes.children(own).any(|child| child == pid);
        let one = *processes.get(pid).unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(folder).unwrap();
        assert_eq!((one.parent, one.is_over, is_child), (own, false, true));
        assert!(processes.tree(own).is_superset(&HashSet::from([own, pid])));
        assert_eq!(Processes::now().get(pid), None);
    }

    #[test]
    fn what_is_below_is_found_over_generations() {
        let of = |parent| ProcessStat {
            parent,
            ..ProcessStat::default()
        };
        let all = HashMap::from([(2, of(1)), (3, of(2)), (4, of(1)), (5, of(9)), (9, of(5))]);
        let processes = Processes { all };
        assert_eq!(processes.below(1), HashSet::from([2, 3, 4]));
        assert_eq!(processes.below(2), HashSet::from([3]));
        assert_eq!(processes.below(5), HashSet::from([9]));
        assert_eq!(processes.tree(2), HashSet::from([2, 3]));
        assert_eq!(processes.tree(1), HashSet::new());
    }
}
