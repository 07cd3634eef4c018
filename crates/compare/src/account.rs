//! Where a server's processes are counted: a control group of their own, of version 1 or 2, or
//! `/proc` where none can be made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hob_load::Cgroup;

/// How CPU time of a group of processes is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Account {
    /// A control group: of version 1 to the nanosecond, of version 2 to the microsecond.
    Group(Version, Group, Cgroup),
    /// The tree of processes in `/proc`, in ticks of 10 ms.
    Processes,
}

/// A control group that was made for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// The folder that was made.
    pub(crate) folder: PathBuf,
    /// The one it was made in, to which its keeper goes back before it removes it.
    pub(crate) home: PathBuf,
}

impl Account {
    /// Makes a control group of this name below that of the calling process, or finds that `/proc`
    /// must do.
    pub(crate) fn make(name: &str) -> Account {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let found = [Version::One, Version::Two]
            .into_iter()
            .find_map(|version| {
                let home = home(&mounts, &memberships, version)?;
                Account::make_in(&home, name, version)
            });
        found.unwrap_or(Account::Processes)
    }

    /// Makes a control group in which CPU time is counted, and which a process can be put into.
    fn make_in(home: &Path, name: &str, version: Version) -> Option<Account> {
        let group = Group {
            folder: home.join(name),
            home: home.to_owned(),
        };
        fs::create_dir(&group.folder).ok()?;
        let members = group.folder.join("cgroup.procs");
        let can_enter = fs::OpenOptions::new().write(true).open(members).is_ok();
        let found = Cgroup::of_folder(&group.folder).filter(|_| can_enter);
        if found.is_none() {
            let _ = fs::remove_dir(&group.folder);
        }
        Some(Account::Group(version, group, found?))
    }

    /// The control group, where there is one.
    pub(crate) fn group(&self) -> Option<&Group> {
        match self {
            Account::Group(_, group, _) => Some(group),
            Account::Processes => None,
        }
    }

    /// What the kernel counted up to now, in nanoseconds; nothing where `/proc` must be asked.
    pub(crate) fn usage_ns(&self) -> io::Result<Option<u64>> {
        match self {
            Account::Group(_, _, cgroup) => cgroup.cpu_ns().map(Some),
            Account::Processes => Ok(None),
        }
    }

    /// For people and for JSON.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Account::Group(Version::One, ..) => "control group (version 1)",
            Account::Group(Version::Two, ..) => "control group (version 2)",
            Account::Processes => "/proc, in ticks of 10 ms",
        }
    }
}

impl Group {
    /// Makes the calling process a member of it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        enter(&self.folder)
    }

    /// Goes back to where it was made, and removes it.
    pub(crate) fn remove(&self) {
        let _ = enter(&self.home);
        self.remove_empty();
    }

    /// Removes it, where nobody is in it and it is still there.
    pub(crate) fn remove_empty(&self) {
        // Somebody else may be in it: then it stays, and is empty once that has ended.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn enter(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), std::process::id().to_string())
}

/// The two layouts of control groups; a machine may have both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// The folder of the calling process's own control group.
fn home(mounts: &str, memberships: &str, version: Version) -> Option<PathBuf> {
    let is_ours = |line: &&str| {
        let controllers = line.split(':').nth(1).unwrap_or_default();
        match version {
            Version::One => controllers.split(',').any(|name| name == "cpuacct"),
            Version::Two => line.starts_with("0::"),
        }
    };
    let membership = memberships.lines().find(is_ours)?;
    let path = membership.splitn(3, ':').nth(2)?;
    // ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS ... - TYPE SOURCE SUPEROPTIONS
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let is_ours = match (version, kind.next()?) {
            (Version::One, "cgroup") => kind.nth(1)?.split(',').any(|name| name == "cpuacct"),
            (Version::Two, "cgroup2") => true,
            _ => false,
        };
        let mut place = place.split(' ').skip(3);
        is_ours.then_some((place.next()?, place.next()?))
    })?;
    let (root, point) = mount;
    // Within a container the mount may begin below the path that /proc tells.
    let below = match root {
        "/" => path,
        root => path.strip_prefix(root).unwrap_or(""),
    };
    Some(Path::new(point).join(below.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
35 30 0:31 /docker/a /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
";

    #[test]
    fn own_group_is_found_in_both_versions() {
        let memberships = "4:cpu,cpuacct:/docker/a/b\n1:name=systemd:/x\n0::/user.slice\n";
        let found = |version| home(MOUNTS, memberships, version).unwrap();
        assert_eq!(
            found(Version::One),
            Path::new("/sys/fs/cgroup/cpu,cpuacct/b")
        );
        assert_eq!(
            found(Version::Two),
            Path::new("/sys/fs/cgroup/unified/user.slice")
        );
        assert_eq!(home("", memberships, Version::Two), None);
        assert_eq!(home(MOUNTS, "", Version::One), None);
    }

    /// Burns CPU time in a child of a child that has ended by the time it is asked for.
    #[test]
    fn what_ended_children_used_is_counted() {
        let name = format!("hob-compare-test-{}", std::process::id());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let memberships = fs::read_to_string("/proc/self/cgroup").unwrap();
        for version in [Version::One, Version::Two] {
            let home = home(&mounts, &memberships, version);
            let account = home.and_then(|home| Account::make_in(&home, &name, version));
            let Some(account) = account else {
                println!("no control group of version {version:?} can be made here");
                continue;
            };
            let group = account.group().unwrap();
            let members = group.folder.join("cgroup.procs");
            assert_eq!(account.usage_ns().unwrap(), Some(0));
            let script = format!(
                "echo $$ > '{}' && sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; :",
                members.display()
            );
            let mut shell = std::process::Command::new("sh");
            assert!(shell.arg("-c").arg(script).status().unwrap().success());
            let used = account.usage_ns().unwrap().unwrap();
            assert!(used > 1_000_000, "{used} ns");
            fs::remove_dir(&group.folder).unwrap();
        }
    }
}
