//! Who a program started: read from `/proc`, because a process that left its group and lost its
//! parents is found no other way without a control group.
//!
//! Orphans come to the spawner (it is a subreaper), so everything its programs started is below it.
//! Which program an orphan belongs to is told by its mark, a limit every program gets a value of
//! its own for, and which nobody without privileges can raise again. One that lowers its own mark
//! and leaves its parents escapes; for programs that would there are control groups.

use std::collections::HashMap;
use std::os::fd::AsFd;

use hob_machine::process::pids;
use hob_machine::{ProcessStat, read};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

/// A process, as far as ending it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessNode {
    pid: i32,
    parent: i32,
    session: i32,
    is_zombie: bool,
}

/// Which processes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whom {
    /// The first process of the program; 0 once its number may be another's.
    pub(super) first: i32,
    /// What bears this mark ...
    mark: u64,
    /// ... and this one too, and not the first process then.
    part: Option<u64>,
}

impl Whom {
    /// A whole program.
    pub(super) fn all_of(first: i32, mark: u64) -> Whom {
        Whom {
            first,
            mark,
            part: None,
        }
    }

    /// A part of a program's processes.
    pub(super) fn part_of(mark: u64, part: u64) -> Whom {
        Whom {
            first: 0,
            mark,
            part: Some(part),
        }
    }

    /// Whether both mean the same processes.
    pub(super) fn is_same(self, other: Whom) -> bool {
        (self.mark, self.part) == (other.mark, other.part)
    }

    fn bears(self, marks: ProcessMarks) -> bool {
        self.mark == marks.program && self.part.is_none_or(|part| part == marks.part)
    }
}

/// What a process is marked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessMarks {
    program: u64,
    /// 0 when it has none.
    part: u64,
}

/// Sends a signal to everything below this process that belongs to one of the programs: to what
/// is below their first processes, and to what bears their marks. Returns how many it was sent to.
pub(super) fn signal_programs(programs: &[Whom], signal: Signal) -> usize {
    let all = processes();
    let found = members(&all, getpid().as_raw_pid(), programs, &marks_of);
    found.into_iter().filter(|seen| send(*seen, signal)).count()
}

/// Kills what is left of a session whose first process was a spawner. Returns how many it found.
pub(crate) fn end_session(session: i32) -> usize {
    let is_member = |seen: &ProcessNode| seen.session == session && !seen.is_zombie;
    let all = processes();
    let found = all.into_iter().filter(is_member);
    found.filter(|seen| send(*seen, Signal::KILL)).count()
}

/// The processes of the programs: each below `spawner`, alive, and a first process, below one, or
/// marked as one's, or below something so marked.
fn members(
    all: &[ProcessNode],
    spawner: i32,
    programs: &[Whom],
    marks_of: &dyn Fn(i32) -> Option<ProcessMarks>,
) -> Vec<ProcessNode> {
    let mut children: HashMap<i32, Vec<usize>> = HashMap::new();
    for (index, seen) in all.iter().enumerate() {
        children.entry(seen.parent).or_default().push(index);
    }
    let mut found = Vec::new();
    // Processes whose family is to be looked at, and whether it is known to belong.
    let mut to_visit: Vec<(i32, bool)> = vec![(spawner, false)];
    while let Some((parent, is_member)) = to_visit.pop() {
        // A process has one parent, so each is visited once; a torn reading of `/proc` could make a
        // ring, which taking the list out cuts.
        for index in children.remove(&parent).unwrap_or_default() {
            let seen = all[index];
            let is_member = is_member
                || programs.iter().any(|whom| whom.first == seen.pid)
                || marks_of(seen.pid)
                    .is_some_and(|marks| programs.iter().any(|whom| whom.bears(marks)));
            if is_member && !seen.is_zombie {
                found.push(seen);
            }
            to_visit.push((seen.pid, is_member));
        }
    }
    found
}

/// Sends to the process that was seen, and not to one that has taken its number since.
fn send(seen: ProcessNode, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(seen.pid) else {
        return false;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => {
            // Opened, the number stays with it; still in its session, it is the one.
            let is_same = look(seen.pid).is_some_and(|now| now.session == seen.session);
            is_same && pidfd_send_signal(process.as_fd(), signal).is_ok()
        }
        Err(rustix::io::Errno::NOSYS) => kill_process(pid, signal).is_ok(),
        Err(_) => false,
    }
}

fn processes() -> Vec<ProcessNode> {
    let seen = pids().filter_map(|pid| look(i32::try_from(pid).ok()?));
    seen.collect()
}

fn look(pid: i32) -> Option<ProcessNode> {
    let process = ProcessStat::of(pid)?;
    Some(ProcessNode {
        pid,
        parent: i32::try_from(process.parent).ok()?,
        session: process.session,
        is_zombie: process.is_over,
    })
}

fn marks_of(pid: i32) -> Option<ProcessMarks> {
    parse_marks(&read(format!("/proc/{pid}/limits")))
}

fn parse_marks(limits: &str) -> Option<ProcessMarks> {
    // Soft, hard, unit. The hard one cannot be raised; the soft one is set again for each part.
    let limit = |name: &str, nth: usize| -> Option<u64> {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().nth(nth)?.parse().ok()
    };
    Some(ProcessMarks {
        program: limit("Max realtime timeout", 1)?,
        part: limit("Max file locks", 0).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pid: i32, parent: i32) -> ProcessNode {
        ProcessNode {
            pid,
            parent,
            session: 1,
            is_zombie: false,
        }
    }

    fn pids(all: &[ProcessNode], programs: &[(i32, u64)], marks: &[(i32, u64)]) -> Vec<i32> {
        let programs = programs
            .iter()
            .map(|(first, mark)| Whom::all_of(*first, *mark));
        let marks = marks.iter().map(|(pid, mark)| (*pid, *mark, 0));
        found(
            all,
            &programs.collect::<Vec<_>>(),
            &marks.collect::<Vec<_>>(),
        )
    }

    fn found(all: &[ProcessNode], programs: &[Whom], marks: &[(i32, u64, u64)]) -> Vec<i32> {
        let marks_of = |pid| {
            let known = marks.iter().find(|(known, ..)| *known == pid)?;
            Some(ProcessMarks {
                program: known.1,
                part: known.2,
            })
        };
        let found = members(all, 10, programs, &marks_of);
        let mut pids: Vec<i32> = found.into_iter().map(|seen| seen.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn members_are_what_is_below_a_program_and_what_bears_its_mark() {
        let all = [
            seen(1, 0),
            seen(10, 1),
            seen(20, 10),
            seen(21, 20),
            seen(22, 21), // the program
            seen(30, 10),
            seen(31, 30), // an orphan of it, and its child that changed its mark
            seen(40, 10),
            seen(41, 40), // another program
            seen(50, 1),  // somebody else's who bears the mark by chance
        ];
        let marks = [(30, 7), (31, 0), (40, 8), (41, 8), (50, 7)];
        assert_eq!(pids(&all, &[(20, 7)], &marks), [20, 21, 22, 30, 31]);
        assert_eq!(pids(&all, &[(40, 8)], &marks), [40, 41]);
        assert_eq!(
            pids(&all, &[(20, 7), (40, 8)], &marks),
            [20, 21, 22, 30, 31, 40, 41]
        );
        assert!(pids(&all, &[(99, 9)], &marks).is_empty());
    }

    #[test]
    fn part_of_a_program_is_what_bears_both_marks_and_what_is_below() {
        let all = [
            seen(10, 1),
            seen(20, 10), // the program, and two parts
            seen(21, 20),
            seen(22, 21),
            seen(23, 20),
            seen(30, 10), // an orphan of the first part
            seen(40, 10), // of another program, by chance with the same part
        ];
        let marks = [
            (20, 7, 0),
            (21, 7, 1),
            (22, 7, 9),
            (23, 7, 2),
            (30, 7, 1),
            (40, 8, 1),
        ];
        assert_eq!(found(&all, &[Whom::part_of(7, 1)], &marks), [21, 22, 30]);
        assert_eq!(found(&all, &[Whom::part_of(7, 2)], &marks), [23]);
    }

    #[test]
    fn zombies_are_gone_but_their_children_are_not() {
        let mut all = [seen(10, 1), seen(20, 10), seen(21, 20)];
        all[1].is_zombie = true;
        assert_eq!(pids(&all, &[(20, 7)], &[]), [21]);
    }

    #[test]
    fn marks_are_read_from_their_lines() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max realtime timeout      4611686018427387905  4611686018427387905  us\n";
        let (program, part) = (4_611_686_018_427_387_905, 0);
        assert_eq!(parse_marks(limits), Some(ProcessMarks { program, part }));
        let parted = format!("Max file locks            5    unlimited  locks\n{limits}");
        let part = 5;
        assert_eq!(parse_marks(&parted), Some(ProcessMarks { program, part }));
        let unmarked = "Max realtime timeout      unlimited  unlimited  us\n";
        assert_eq!(parse_marks(unmarked), None);
    }

    #[test]
    fn own_process_is_seen() {
        let own = look(getpid().as_raw_pid()).unwrap();
        assert_eq!(own.parent, rustix::process::getppid().unwrap().as_raw_pid());
        assert!(processes().contains(&own));
    }
}
