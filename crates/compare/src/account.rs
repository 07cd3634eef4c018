//! Where a server's processes are counted: a control group of their own, of version 1 or 2, or
//! `/proc` where none can be made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hob_machine::{Cgroup, OwnGroups};
use serde::{Deserialize, Serialize};

/// How CPU time of a group of processes is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Account {
    /// A control group: of version 1 to the nanosecond, of version 2 to the microsecond.
    Group(Version, ServerCgroup, Cgroup),
    /// The tree of processes in `/proc`, in ticks of 10 ms.
    Processes,
}

/// A control group that was made for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerCgroup {
    /// The folder that was made.
    pub(crate) folder: PathBuf,
    /// The one it was made in, to which its supervisor goes back before it removes it.
    pub(crate) home: PathBuf,
}

impl Account {
    /// Makes a control group of this name below that of the calling process, or finds that `/proc`
    /// must do.
    pub(crate) fn make(name: &str) -> Account {
        let groups = OwnGroups::find();
        let found = [Version::One, Version::Two]
            .into_iter()
            .find_map(|version| Account::make_in(home(&groups, version)?, name, version));
        found.unwrap_or(Account::Processes)
    }

    /// Makes a control group in which CPU time is counted, and which a process can be put into.
    fn make_in(home: &Path, name: &str, version: Version) -> Option<Account> {
        let group = ServerCgroup {
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
    pub(crate) fn group(&self) -> Option<&ServerCgroup> {
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

    /// The threads that are in its control group, where there is one.
    pub(crate) fn threads(&self) -> Option<Vec<u32>> {
        let Account::Group(version, group, _) = self else {
            return None;
        };
        let name = match version {
            Version::One => "tasks",
            Version::Two => "cgroup.threads",
        };
        let told = hob_machine::read(group.folder.join(name));
        Some(told.lines().filter_map(|line| line.parse().ok()).collect())
    }

    pub(crate) fn kind(&self) -> AccountKind {
        match self {
            Account::Group(Version::One, ..) => AccountKind::GroupOne,
            Account::Group(Version::Two, ..) => AccountKind::GroupTwo,
            Account::Processes => AccountKind::Processes,
        }
    }
}

/// What counts CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AccountKind {
    /// A control group of version 1.
    GroupOne,
    /// One of version 2.
    GroupTwo,
    /// The tree of processes.
    Processes,
}

impl AccountKind {
    /// For people and for JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AccountKind::GroupOne => "control group (version 1)",
            AccountKind::GroupTwo => "control group (version 2)",
            AccountKind::Processes => "/proc, in ticks of 10 ms",
        }
    }
}

impl ServerCgroup {
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

/// The group of the calling process in which CPU time is counted.
fn home(groups: &OwnGroups, version: Version) -> Option<&Path> {
    match version {
        Version::One => groups.v1("cpuacct"),
        Version::Two => groups.v2.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Burns CPU time in a child of a child that has ended by the time it is asked for.
    #[test]
    fn what_ended_children_used_is_counted() {
        let name = format!("hob-compare-test-{}", std::process::id());
        let groups = OwnGroups::find();
        let mut made = 0;
        for version in [Version::One, Version::Two] {
            let home = home(&groups, version);
            let account = home.and_then(|home| Account::make_in(home, &name, version));
            let Some(account) = account else {
                continue;
            };
            made += 1;
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
            assert_eq!(account.threads(), Some(vec![]));
            fs::remove_dir(&group.folder).unwrap();
        }
        if made == 0 {
            println!("skipped: no control group can be made here");
        }
    }
}
