//! Who a program started: read from `/proc`, because a process that left its group and lost its
//! parents is found no other way without a control group.
//!
//! Orphans come to the spawner (it is a subreaper), so everything its programs started is below it.
//! Which program an orphan belongs to is told by its mark, a limit every program gets a value of
//! its own for, and which nobody without privileges can raise again. One that lowers its own mark
//! and leaves its parents escapes; for programs that would there are control groups.

use std::collections::HashMap;
use std::os::fd::AsFd;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

/// A process, as far as ending it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    pid: i32,
    parent: i32,
    session: i32,
    is_zombie: bool,
}

/// Sends a signal to everything below this process that belongs to one of the programs: to what
/// is below their first processes, and to what bears their marks. Returns how many it was sent to.
pub(super) fn signal_programs(programs: &[(i32, u64)], signal: Signal) -> usize {
    let all = processes();
    let found = members(&all, getpid().as_raw_pid(), programs, &mark_of);
    found.into_iter().filter(|seen| send(*seen, signal)).count()
}

/// Kills what is left of a session whose first process was a spawner. Returns how many it found.
pub(crate) fn end_session(session: i32) -> usize {
    let is_member = |seen: &Seen| seen.session == session && !seen.is_zombie;
    let all = processes();
    let found = all.into_iter().filter(is_member);
    found.filter(|seen| send(*seen, Signal::KILL)).count()
}

/// The processes of the programs: each below `spawner`, alive, and a first process, below one, or
/// marked as one's, or below something so marked.
fn members(
    all: &[Seen],
    spawner: i32,
    programs: &[(i32, u64)],
    mark_of: &dyn Fn(i32) -> Option<u64>,
) -> Vec<Seen> {
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
                || programs.iter().any(|(first, _)| *first == seen.pid)
                || mark_of(seen.pid).is_some_and(|mark| programs.iter().any(|(_, m)| *m == mark));
            if is_member && !seen.is_zombie {
                found.push(seen);
            }
            to_visit.push((seen.pid, is_member));
        }
    }
    found
}

/// Sends to the process that was seen, and not to one that has taken its number since.
fn send(seen: Seen, signal: Signal) -> bool {
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

fn processes() -> Vec<Seen> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(look).collect()
}

fn look(pid: i32) -> Option<Seen> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &stat)
}

/// The name may hold anything; what follows it does not.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Seen> {
    let after = memchr::memrchr(b')', stat)?;
    let rest = std::str::from_utf8(stat.get(after + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let _group = fields.next()?;
    Some(Seen {
        pid,
        parent,
        session: fields.next()?.parse().ok()?,
        is_zombie: matches!(state, "Z" | "X"),
    })
}

fn mark_of(pid: i32) -> Option<u64> {
    parse_mark(&std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

fn parse_mark(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    // Soft, hard, unit: the hard one cannot be raised.
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pid: i32, parent: i32) -> Seen {
        Seen {
            pid,
            parent,
            session: 1,
            is_zombie: false,
        }
    }

    fn pids(all: &[Seen], programs: &[(i32, u64)], marks: &[(i32, u64)]) -> Vec<i32> {
        let mark_of = |pid| {
            marks
                .iter()
                .find(|(known, _)| *known == pid)
                .map(|(_, mark)| *mark)
        };
        let found = members(all, 10, programs, &mark_of);
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
    fn zombies_are_gone_but_their_children_are_not() {
        let mut all = [seen(10, 1), seen(20, 10), seen(21, 20)];
        all[1].is_zombie = true;
        assert_eq!(pids(&all, &[(20, 7)], &[]), [21]);
    }

    #[test]
    fn stat_is_read_behind_any_name_and_the_mark_from_its_line() {
        let stat = b"12 (a) b (c) S 5 12 9 0 -1";
        let expected = Seen {
            pid: 12,
            parent: 5,
            session: 9,
            is_zombie: false,
        };
        assert_eq!(parse_stat(12, stat), Some(expected));
        assert_eq!(parse_stat(12, b"12 (a) Z 5 12"), None);
        assert_eq!(parse_stat(12, b""), None);
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max realtime timeout      4611686018427387905  4611686018427387905  us\n";
        assert_eq!(parse_mark(limits), Some(4_611_686_018_427_387_905));
        assert_eq!(
            parse_mark("Max realtime timeout      unlimited  unlimited  us\n"),
            None
        );
    }

    #[test]
    fn own_process_is_seen() {
        let own = look(getpid().as_raw_pid()).unwrap();
        assert_eq!(own.parent, rustix::process::getppid().unwrap().as_raw_pid());
        assert!(processes().contains(&own));
    }
}
