//! What a running server holds, as /proc tells it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::harness::{DEADLINE, Hob, is_root, status_line};
use crate::pool::until;
use crate::site::Programs;

static TURN: Mutex<()> = Mutex::new(());

/// One of these tests at a time: each loads the machine, and programs of the same user count
/// together.
pub(crate) fn take_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the longer parts go on; none in CI.
pub(crate) fn long() -> Option<Duration> {
    let text = std::env::var("HOB_SIEGE_SECONDS").ok()?;
    let seconds = text.parse().expect("HOB_SIEGE_SECONDS is a whole number");
    Some(Duration::from_secs(seconds))
}

/// How long a siege goes on in CI; what it claims may want it to go on for longer.
const SHORT: Duration = Duration::from_secs(2);

/// Whether a siege that begins now is to go on.
pub(crate) fn besieged() -> impl Fn() -> bool {
    let (began, lasts) = (Instant::now(), long().unwrap_or(SHORT));
    move || began.elapsed() < lasts
}

/// Says that it is over also when an assertion ends it.
pub(crate) struct OnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A process below the keeper.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) is_zombie: bool,
    pub(crate) name: String,
}

/// Everything below the keeper, itself not counted, those that ended and were not reaped included.
pub(crate) fn family(hob: &Hob) -> Vec<Process> {
    let mut children: HashMap<u32, Vec<Process>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(process) = look(pid) {
            children.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut to_visit = vec![hob.pid()];
    while let Some(parent) = to_visit.pop() {
        let born = children.remove(&parent).unwrap_or_default();
        to_visit.extend(born.iter().map(|process| process.pid));
        found.extend(born);
    }
    found
}

fn look(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may hold anything; state and parent follow its last parenthesis.
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    Some(Process {
        pid,
        parent: fields.next()?.parse().ok()?,
        is_zombie,
        name: name.to_owned(),
    })
}

/// What the server and the keeper hold while nothing runs.
pub(crate) struct Rest {
    server: u32,
    /// Of keeper and server; none where only root may look.
    descriptors: Option<[usize; 2]>,
}

impl Rest {
    pub(crate) fn of(programs: &Programs) -> Rest {
        let hob = programs.hob();
        let server = hob.server();
        if is_root() {
            // The first may answer before the last has begun.
            let threads = programs.place.status()["server"]["threads"].as_u64();
            let threads = threads.unwrap() as usize;
            until("each thread has opened what it waits with", || {
                let timers = descriptors(server)
                    .into_iter()
                    .filter(|link| link.contains("timerfd"));
                timers.count() == threads
            });
        }
        let descriptors = is_root().then(|| [hob.pid(), server].map(|pid| descriptors(pid).len()));
        if descriptors.is_none() {
            println!("skipped: open descriptors are not counted: only root sees those of hob");
        }
        Rest {
            server,
            descriptors,
        }
    }

    /// Waits until no program is left, dead or alive, and every descriptor was closed again. The
    /// server must be the same.
    pub(crate) fn wait_for(&self, hob: &Hob) {
        let mut left = Vec::new();
        let only = ["hob-server", "hob-spawner"];
        wait_or_show(
            || {
                left = family(hob);
                left.len() == 2 && left.iter().all(|one| !one.is_zombie && is_one(one, &only))
            },
            || {
                format!(
                    "besides server and spawner there is something: {:?}",
                    family(hob)
                )
            },
        );
        assert_eq!(hob.server(), self.server, "the server was replaced");
        if let Some(before) = self.descriptors {
            let pids = [hob.pid(), self.server];
            let now = || pids.map(|pid| descriptors(pid).len());
            wait_or_show(
                || now().iter().zip(before).all(|(now, before)| *now <= before),
                || format!("{before:?} descriptors, then {:?}", pids.map(descriptors)),
            );
        }
    }
}

fn is_one(process: &Process, names: &[&str]) -> bool {
    names.contains(&process.name.as_str())
}

fn wait_or_show(mut is_so: impl FnMut() -> bool, show: impl Fn() -> String) {
    let limit = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < limit, "{}", show());
        std::thread::yield_now();
    }
}

/// What each descriptor of a process is.
fn descriptors(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.map(|link| link.display().to_string()).collect()
}

/// Memory of a process that is no file's, in KiB.
pub(crate) fn memory_kib(pid: u32) -> u64 {
    let text = status_line(pid, "RssAnon");
    text.split(' ').next().unwrap().parse().unwrap()
}
