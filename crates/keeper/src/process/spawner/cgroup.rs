//! Control groups: limits of all processes of a program together, and a group for each process
//! that is started, so that it ends whole whatever it did.
//!
//! ```text
//! <where hob runs>/hob-<spawner>/<policy>-<program>/<seat>
//!                                 limits                  one program's process and its children
//! ```
//!
//! With cgroup v2 the seats are v2 groups, a child is born in one, and `cgroup.kill` ends it. The
//! limits are v2's where the controllers are, else v1's where `memory` and `pids` are mounted, in
//! groups of the same names there. Without v2 the seats are groups of v1's `pids` or `memory`.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hob_machine::{OwnGroups, ProcessStat};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::system::uname;

use hob_config::Cgroup;

/// Seats that are looked at for one that is empty again before another is made.
const SEATS_TRIED_MAX: usize = 4;

/// Whether a kernel's release is this version or a later one.
fn is_since(release: &[u8], version: (u32, u32)) -> bool {
    let mut numbers = release
        .split(|byte| !byte.is_ascii_digit())
        .map_while(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(version.0), Some(version.1))
}

/// The group of one program.
#[derive(Debug)]
pub(super) struct ProgramCgroup {
    /// Below this stand the seats.
    seats: PathBuf,
    is_v2: bool,
    can_be_born: bool,
    /// `cgroup.procs` of v1 groups with limits.
    entered: Vec<OwnedFd>,
    /// Everything that was made, to be removed again.
    made: Vec<PathBuf>,
    free: RefCell<Vec<CgroupFolder>>,
    /// Counts seats, for their names.
    count: RefCell<u64>,
}

/// A seat that nobody has.
#[derive(Debug)]
struct CgroupFolder {
    path: PathBuf,
    folder: OwnedFd,
    /// The seat's `cgroup.procs` and the groups with limits, for a child that is not born here.
    files: Vec<OwnedFd>,
}

/// The group of one started process and everything it starts.
#[derive(Debug)]
pub(super) struct ProcessCgroup {
    group: Rc<ProgramCgroup>,
    place: Option<CgroupFolder>,
}

impl ProgramCgroup {
    /// Makes a group with its limits. `trouble` gets what could not be applied; without any group
    /// there is none.
    pub(super) fn make(
        places: &OwnGroups,
        name: &str,
        limits: &Cgroup,
        trouble: &mut dyn FnMut(String),
    ) -> Option<Rc<ProgramCgroup>> {
        let top = format!("hob-{}", std::process::id());
        let below = |path: &Path| path.join(&top).join(name);
        let mut made = Vec::new();
        let mut entered = Vec::new();
        let v2 = places.v2.as_deref().map(below).filter(|path| {
            let is_made = fs::create_dir_all(path);
            if let Err(error) = &is_made {
                trouble(format!("no control group {}: {error}", path.display()));
            }
            is_made.is_ok()
        });
        let mut v1_used: Vec<(String, PathBuf)> = Vec::new();
        for limit in limits_of(limits) {
            if let Some(path) = &v2
                && limit.apply_v2(places.v2.as_deref(), path).is_ok()
            {
                continue;
            }
            let applied = match places.v1(limit.controller) {
                None => Err(io::Error::other(format!(
                    "no `{}` controller that hob may use; a service needs `Delegate=yes`",
                    limit.controller
                ))),
                Some(place) => limit.apply_v1(&below(place)).map(|()| {
                    v1_used.push((limit.controller.to_owned(), below(place)));
                }),
            };
            if let Err(error) = applied {
                trouble(format!("`cgroup.{}` is not applied: {error}", limit.key));
            }
        }
        let seats = match &v2 {
            Some(path) => path.clone(),
            None => ["pids", "memory"].iter().find_map(|name| {
                let path = below(places.v1(name)?);
                fs::create_dir_all(&path).ok().map(|()| path)
            })?,
        };
        for (_, path) in &v1_used {
            if *path != seats {
                entered.extend(open_procs(path).ok());
                made.push(path.clone());
            }
        }
        made.push(seats.clone());
        Some(Rc::new(ProgramCgroup {
            seats,
            is_v2: v2.is_some(),
            can_be_born: v2.is_some() && is_since(uname().release().to_bytes(), (5, 7)),
            entered,
            made,
            free: RefCell::default(),
            count: RefCell::default(),
        }))
    }

    /// A seat with nobody on it.
    pub(super) fn seat(self: &Rc<ProgramCgroup>) -> io::Result<ProcessCgroup> {
        let mut free = self.free.borrow_mut();
        // A daemon may still sit where a program ended; those seats go to the back.
        for _ in 0..free.len().min(SEATS_TRIED_MAX) {
            let Some(place) = free.pop() else {
                break;
            };
            if place.is_empty() {
                return Ok(self.taken(place));
            }
            free.insert(0, place);
        }
        let mut count = self.count.borrow_mut();
        *count += 1;
        let path = self.seats.join(count.to_string());
        fs::create_dir(&path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&path, flags, Mode::empty())?;
        let mut files = vec![open_procs(&path)?];
        for file in &self.entered {
            files.push(file.try_clone()?);
        }
        Ok(self.taken(CgroupFolder {
            path,
            folder,
            files,
        }))
    }

    fn taken(self: &Rc<ProgramCgroup>, place: CgroupFolder) -> ProcessCgroup {
        ProcessCgroup {
            group: Rc::clone(self),
            place: Some(place),
        }
    }
}

impl Drop for ProgramCgroup {
    fn drop(&mut self) {
        // What is still in use stays; a spawner that comes later removes it.
        for place in self.free.borrow_mut().drain(..) {
            let _ = fs::remove_dir(&place.path);
        }
        for path in &self.made {
            let _ = fs::remove_dir(path);
            if let Some(top) = path.parent() {
                let _ = fs::remove_dir(top);
            }
        }
    }
}

impl ProcessCgroup {
    /// The folder of the group that a child is born in; none where the kernel cannot do that.
    pub(super) fn born_in(&self) -> Option<BorrowedFd<'_>> {
        let place = self.place.as_ref().filter(|_| self.group.can_be_born)?;
        Some(place.folder.as_fd())
    }

    /// `cgroup.procs` of the groups that a child enters by itself.
    pub(super) fn to_enter(&self) -> &[OwnedFd] {
        match &self.place {
            Some(place) if self.group.can_be_born => &place.files[1..],
            Some(place) => &place.files,
            None => &[],
        }
    }

    /// Kills everybody on the seat at once, whoever forks meanwhile included. False where the
    /// kernel cannot do that.
    pub(super) fn kill(&self) -> bool {
        let Some(place) = self.place.as_ref().filter(|_| self.group.is_v2) else {
            return false;
        };
        write(&place.path.join("cgroup.kill"), "1").is_ok()
    }

    /// Sends a signal to everybody on the seat; returns how many there were.
    pub(super) fn signal(&self, signal: Signal) -> usize {
        let Some(place) = &self.place else {
            return 0;
        };
        let listed = fs::read_to_string(place.path.join("cgroup.procs")).unwrap_or_default();
        let pids = listed
            .lines()
            .filter_map(|line| Pid::from_raw(line.parse().ok()?));
        pids.filter(|pid| kill_process(*pid, signal).is_ok())
            .count()
    }
}

impl Drop for ProcessCgroup {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.group.free.borrow_mut().push(place);
        }
    }
}

impl CgroupFolder {
    fn is_empty(&self) -> bool {
        let read = |name: &str| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.folder, name, flags, Mode::empty());
            let mut text = String::new();
            File::from(file.ok()?).read_to_string(&mut text).ok()?;
            Some(text)
        };
        match read("cgroup.events") {
            Some(events) => events.contains("populated 0"),
            None => read("cgroup.procs").is_some_and(|listed| listed.is_empty()),
        }
    }
}

/// Removes groups of spawners that are gone, where nobody is left in them.
pub(super) fn remove_stale(places: &OwnGroups) {
    let own = format!("hob-{}", std::process::id());
    let all_v1 = places.all_v1.iter().map(|(_, path)| path);
    for place in places.v2.iter().chain(all_v1) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.strip_prefix("hob-")) else {
                continue;
            };
            let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
            let is_alive = Path::new("/proc").join(pid).exists();
            if is_number && !is_alive && *own != *name {
                remove_below(&entry.path());
            }
        }
    }
}

fn remove_below(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

/// One limit.
struct Limit {
    key: &'static str,
    controller: &'static str,
    v2: (&'static str, u64),
    v1: (&'static str, u64),
}

fn limits_of(limits: &Cgroup) -> Vec<Limit> {
    let limit = |key, controller, v2, v1, value: Option<u64>| {
        value.map(|value| Limit {
            key,
            controller,
            v2: (v2, value),
            v1: (v1, value),
        })
    };
    let memory = limit(
        "memory",
        "memory",
        "memory.max",
        "memory.limit_in_bytes",
        limits.memory,
    );
    let pids = limit("pids", "pids", "pids.max", "pids.max", limits.pids);
    let mut weight = limit(
        "cpu_weight",
        "cpu",
        "cpu.weight",
        "cpu.shares",
        limits.cpu_weight,
    );
    if let Some(weight) = &mut weight {
        // 100 of the one is 1024 of the other, and 2 is its least.
        weight.v1.1 = (weight.v1.1.saturating_mul(1024) / 100).max(2);
    }
    [memory, pids, weight].into_iter().flatten().collect()
}

impl Limit {
    /// Sets it on the v2 group at `path`, after its controller is there from `base` down.
    fn apply_v2(&self, base: Option<&Path>, path: &Path) -> io::Result<()> {
        let (file, value) = self.v2;
        let mut down: Vec<&Path> = path.ancestors().skip(1).collect();
        down.retain(|group| base.is_some_and(|base| group.starts_with(base)));
        for group in down.into_iter().rev() {
            let switch = group.join("cgroup.subtree_control");
            let on = format!("+{}", self.controller);
            let switched = write(&switch, &on);
            let is_occupied = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
            if switched.as_ref().is_err_and(is_occupied) && base == Some(group) {
                make_room(group)?;
                write(&switch, &on)?;
            } else {
                switched?;
            }
        }
        write(&path.join(file), &value.to_string())
    }

    fn apply_v1(&self, path: &Path) -> io::Result<()> {
        let (file, value) = self.v1;
        fs::create_dir_all(path)?;
        write(&path.join(file), &value.to_string())
    }
}

/// A v2 group that hands controllers down has no processes of its own. Those of hob move into a
/// group below; those of others are not ours to move.
fn make_room(base: &Path) -> io::Result<()> {
    let keeper = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
    let listed = fs::read_to_string(base.join("cgroup.procs"))?;
    for pid in listed.lines() {
        let parent = ProcessStat::of(pid).map(|process| process.parent);
        if pid != keeper.to_string() && parent != u32::try_from(keeper).ok() {
            return Err(io::Error::other(format!(
                "process {pid} is in {} too; give hob a group of its own, as a service has",
                base.display()
            )));
        }
    }
    let own = base.join("hob-itself");
    fs::create_dir_all(&own)?;
    for pid in listed.lines() {
        write(&own.join("cgroup.procs"), pid)?;
    }
    Ok(())
}

fn open_procs(group: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(
        group.join("cgroup.procs"),
        flags,
        Mode::empty(),
    )?)
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(is_since(b"6.18.44-fc", (5, 7)));
        assert!(is_since(b"5.10.0-30-amd64", (5, 7)));
        assert!(is_since(b"5.7", (5, 7)));
        assert!(!is_since(b"5.6.19", (5, 7)));
        assert!(!is_since(b"", (5, 7)));
    }
}
