//! The programs that run, found by process and by what the server calls them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use super::RUNNING_MAX;
use super::cgroup::ProcessCgroup;
use crate::process::child::StepReport;
use crate::process::kernel;

/// What a server thread calls a program: its link and the id it chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RunningProgramId {
    pub(super) link: u64,
    pub(super) id: u64,
}

/// A program that runs.
#[derive(Clone, Debug)]
pub(super) struct RunningProgram {
    pub(super) name: RunningProgramId,
    pub(super) pid: i32,
    /// What everything it started bears.
    pub(super) mark: u64,
    /// Its place in a control group of its program.
    pub(super) seat: Option<Rc<ProcessCgroup>>,
    /// What it started ends with it.
    pub(super) takes_along: bool,
    /// When its process was there, in microseconds on the monotonic clock.
    pub(super) since_us: u64,
    report: usize,
}

/// All of them.
pub(super) struct RunningPrograms {
    by_pid: HashMap<i32, RunningProgram>,
    by_name: HashMap<RunningProgramId, i32>,
    reports: &'static [AtomicU64],
    /// Reports nobody has, the ones used last on top.
    free: Vec<u16>,
    marks: u64,
    /// Process id of the spawner.
    spawner: i32,
}

/// Marks of this spawner begin here: above what any limit would sensibly be, and below "no limit".
const FIRST_MARK: u64 = 1 << 62;
/// Bits for the count of programs of one spawner.
const COUNT_BITS: u32 = 40;

const _: () = assert!(RUNNING_MAX <= u16::MAX as usize);

impl RunningPrograms {
    pub(super) fn new() -> std::io::Result<RunningPrograms> {
        // The process id tells spawners apart that live at the same time.
        let pid = rustix::process::getpid().as_raw_pid();
        let spawner = u64::from(pid.unsigned_abs()) & ((1 << 22) - 1);
        Ok(RunningPrograms {
            by_pid: HashMap::new(),
            by_name: HashMap::new(),
            reports: kernel::shared_words(RUNNING_MAX)?,
            free: Vec::new(),
            marks: FIRST_MARK | (spawner << COUNT_BITS),
            spawner: pid,
        })
    }

    /// Whose programs they are.
    pub(super) fn spawner(&self) -> i32 {
        self.spawner
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_pid.len() >= RUNNING_MAX
    }

    pub(super) fn has(&self, name: RunningProgramId) -> bool {
        self.by_name.contains_key(&name)
    }

    /// A report and a mark for a program that is about to start.
    pub(super) fn reserve(&mut self, takes_along: bool) -> Option<(StepReport<'static>, Reserved)> {
        if self.is_full() {
            return None;
        }
        // Without free ones, those below are all in use: each has a program.
        let report = match self.free.pop() {
            Some(report) => usize::from(report),
            None => self.by_pid.len(),
        };
        self.marks += 1;
        let reserved = Reserved {
            report,
            mark: self.marks,
            takes_along,
        };
        Some((StepReport(self.reports.get(report)?), reserved))
    }

    /// The program started.
    pub(super) fn add(
        &mut self,
        name: RunningProgramId,
        pid: i32,
        reserved: Reserved,
        seat: Option<Rc<ProcessCgroup>>,
    ) {
        let Reserved {
            report,
            mark,
            takes_along,
        } = reserved;
        let run = RunningProgram {
            name,
            pid,
            mark,
            seat,
            takes_along,
            since_us: kernel::now_us(),
            report,
        };
        self.by_pid.insert(pid, run);
        self.by_name.insert(name, pid);
    }

    /// It did not.
    pub(super) fn give_back(&mut self, reserved: Reserved) {
        self.free.push(reserved.report as u16);
    }

    pub(super) fn find(&self, name: RunningProgramId) -> Option<RunningProgram> {
        self.by_pid.get(self.by_name.get(&name)?).cloned()
    }

    /// The program with this process ended: takes it out, with what it reported before it ran.
    pub(super) fn remove(
        &mut self,
        pid: i32,
    ) -> Option<(RunningProgram, Option<(crate::process::message::Step, i32)>)> {
        let run = self.by_pid.remove(&pid)?;
        self.by_name.remove(&run.name);
        let report = StepReport(&self.reports[run.report]).take();
        self.free.push(run.report as u16);
        Some((run, report))
    }

    /// Programs of one link.
    pub(super) fn of_link(&self, link: u64) -> Vec<RunningProgram> {
        let is_its = |run: &&RunningProgram| run.name.link == link;
        self.by_pid.values().filter(is_its).cloned().collect()
    }

    pub(super) fn all(&self) -> Vec<RunningProgram> {
        self.by_pid.values().cloned().collect()
    }
}

/// A report and a mark that belong to a program from now on.
#[derive(Debug)]
pub(super) struct Reserved {
    report: usize,
    pub(super) mark: u64,
    takes_along: bool,
}
