//! Ending programs with everything they started.
//!
//! In a control group of its own a program ends at once and whole. Without one, what can be reached
//! at once is: the first process and its process group. Whoever left the group is looked for in
//! `/proc`, for all programs that end in one look, and again until a look finds nobody: who forks
//! while it is looked for is found the next time.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::cgroup::ProcessCgroup;
use super::running::RunningProgram;
use super::tree::{self, Whom};
use crate::process::message::EndSignal;

/// Between two looks, so that a crowd that does not end takes no CPU to speak of.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Looks for one program; what outlives so many is in a state that no signal ends.
const LOOKS_MAX: u32 = 500;

/// Programs that end.
#[derive(Default)]
pub(super) struct Endings {
    /// First processes that were asked to end.
    asked: HashSet<i32>,
    killed: Vec<Ending>,
    look_at: Option<Instant>,
}

struct Ending {
    whom: Whom,
    looks: u32,
    /// Given back when nobody is looked for any more.
    seat: Option<Rc<ProcessCgroup>>,
}

impl Endings {
    /// Ends a program.
    pub(super) fn begin(&mut self, run: RunningProgram, how: EndSignal, now: Instant) {
        match how {
            EndSignal::Term => {
                self.asked.insert(run.pid);
                ask(&run);
            }
            // It is for the first process to have the others finish.
            EndSignal::Quit => {
                self.asked.insert(run.pid);
                if let Some(pid) = Pid::from_raw(run.pid) {
                    let _ = kill_process(pid, Signal::QUIT);
                }
            }
            EndSignal::Kill => self.kill(run, now),
        }
    }

    /// Kills what a program left running that takes it along, or was asked to end: it may not have
    /// listened, or not have been there when all were asked. The first process is gone and its
    /// number may be another's, so it is not used.
    pub(super) fn kill_rest(&mut self, run: RunningProgram, now: Instant) {
        if run.seat.as_ref().is_some_and(|seat| seat.kill()) {
            return;
        }
        self.look_for(Whom::all_of(0, run.mark), run.seat, now);
    }

    fn kill(&mut self, run: RunningProgram, now: Instant) {
        if let Some(pid) = Pid::from_raw(run.pid) {
            // Not reaped yet, so the number is its own. Before it made its group only the process
            // can be reached, after that both mean it.
            let _ = kill_process(pid, Signal::KILL);
            let _ = kill_process_group(pid, Signal::KILL);
        }
        if run.seat.as_ref().is_some_and(|seat| seat.kill()) {
            return;
        }
        self.look_for(Whom::all_of(run.pid, run.mark), run.seat, now);
    }

    /// Ends the part of a program's processes that is marked so.
    pub(super) fn begin_part(
        &mut self,
        run: &RunningProgram,
        part: u64,
        how: EndSignal,
        now: Instant,
    ) {
        let whom = Whom::part_of(run.mark, part);
        match how {
            EndSignal::Term => drop(tree::signal_programs(&[whom], Signal::TERM)),
            EndSignal::Quit => drop(tree::signal_programs(&[whom], Signal::QUIT)),
            EndSignal::Kill => self.look_for(whom, None, now),
        }
    }

    fn look_for(&mut self, whom: Whom, seat: Option<Rc<ProcessCgroup>>, now: Instant) {
        if self.killed.iter().any(|ending| ending.whom.is_same(whom)) {
            return;
        }
        self.killed.push(Ending {
            whom,
            looks: 0,
            seat,
        });
        self.look_at = Some(now);
    }

    /// The first process ended and its number may be another's soon; what it started may live on.
    /// True if it had been asked to end.
    pub(super) fn forget_process(&mut self, pid: i32) -> bool {
        let killed = self.killed.iter_mut();
        for ending in killed.filter(|ending| ending.whom.first == pid) {
            ending.whom.first = 0;
        }
        self.asked.remove(&pid)
    }

    /// When to look again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.look_at
    }

    /// Looks for what is left and kills it.
    pub(super) fn look(&mut self, now: Instant) {
        if self.look_at.is_none_or(|at| at > now) {
            return;
        }
        let programs: Vec<Whom> = self.killed.iter().map(|ending| ending.whom).collect();
        let seats = self.killed.iter().filter_map(|ending| ending.seat.as_ref());
        let on_seats: usize = seats.map(|seat| seat.signal(Signal::KILL)).sum();
        if tree::signal_programs(&programs, Signal::KILL) + on_seats == 0 {
            self.killed.clear();
        }
        for ending in &mut self.killed {
            ending.looks += 1;
        }
        self.killed.retain(|ending| ending.looks < LOOKS_MAX);
        self.look_at = (!self.killed.is_empty()).then(|| now + LOOK_AGAIN);
    }

    /// Nobody is left to be ended.
    pub(super) fn is_done(&self) -> bool {
        self.killed.is_empty()
    }
}

/// Sends SIGTERM, to everybody once: a second one may come in the middle of what the first started.
fn ask(run: &RunningProgram) {
    let signal = Signal::TERM;
    let asked = match &run.seat {
        Some(seat) => seat.signal(signal),
        None => tree::signal_programs(&[Whom::all_of(run.pid, run.mark)], signal),
    };
    if asked == 0
        && let Some(pid) = Pid::from_raw(run.pid)
    {
        let _ = kill_process(pid, signal);
    }
}
