//! Processes as `/proc` tells of them: who started whom, and the CPU time each had.

use std::collections::{HashMap, HashSet};
use std::fs;

/// The processes of the machine at one moment.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    all: HashMap<u32, Process>,
}

/// One process as `/proc/PID/stat` tells of it; CPU time in ticks of the kernel, mostly 10 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Who started it, or who took it over when that one ended.
    pub parent: u32,
    /// Is it ended, and only waited for?
    pub is_over: bool,
    /// Nanoseconds it had itself.
    pub own_ns: u64,
    /// Nanoseconds of its children that ended and that it has waited for.
    pub ended_ns: u64,
}

impl Processes {
    /// Looks at `/proc`.
    pub fn now() -> Processes {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let one = |entry: fs::DirEntry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            // Bytes: a process may give itself a name that is no text.
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, Process::read(&stat)?))
        };
        Processes {
            all: entries.filter_map(one).collect(),
        }
    }

    /// One of them.
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.all.get(&pid)
    }

    /// Those that a process is the parent of.
    pub fn children(&self, pid: u32) -> impl Iterator<Item = u32> + '_ {
        let own = move |(_, one): &(&u32, &Process)| one.parent == pid;
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

impl Process {
    /// Reads what `/proc/PID/stat` holds: `PID (NAME) STATE PARENT ...`.
    fn read(stat: &[u8]) -> Option<Process> {
        // The name may hold anything, parentheses too; nothing after it does.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = str::from_utf8(&stat[name_end + 1..]).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let is_over = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        // utime, stime, cutime and cstime are fields 14 to 17, where the parent is 4.
        let mut times = fields.skip(9);
        let mut ns = || Some(times.next()?.parse::<u64>().ok()? * tick_ns());
        Some(Process {
            parent,
            is_over,
            own_ns: ns()? + ns()?,
            ended_ns: ns()? + ns()?,
        })
    }

    /// Nanoseconds of it and of its children that ended.
    pub fn cpu_ns(&self) -> u64 {
        self.own_ns + self.ended_ns
    }
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

    const REST: &[u8] = b" S 3 7 7 0 -1 4194304 100 0 0 0 10 20 30 40 20 0 1 0 5 6 7\n";

    #[test]
    fn stat_is_read_whatever_the_name_of_the_process() {
        let wanted = Process {
            parent: 3,
            is_over: false,
            own_ns: 30 * tick_ns(),
            ended_ns: 70 * tick_ns(),
        };
        let names: [&[u8]; 6] = [
            b"sh",
            b"a b",
            b"a) b",
            b"((sd-pam))",
            b") Z 9 (",
            b"\xff) \xfe",
        ];
        for name in names {
            let stat = [b"7 (", name, b")", REST].concat();
            let name = name.escape_ascii();
            assert_eq!(Process::read(&stat), Some(wanted), "{name}");
        }
        assert_eq!(wanted.cpu_ns(), 100 * tick_ns());
    }

    #[test]
    fn stat_that_is_cut_off_is_no_process() {
        let whole = [b"7 (sh)", REST].concat();
        let enough = whole.len() - " 20 0 1 0 5 6 7\n".len();
        for len in 0..enough - 1 {
            assert_eq!(Process::read(&whole[..len]), None, "{len} bytes");
        }
        assert!(Process::read(&whole[..enough]).is_some());
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
        let of = |parent| Process {
            parent,
            is_over: false,
            own_ns: 0,
            ended_ns: 0,
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
