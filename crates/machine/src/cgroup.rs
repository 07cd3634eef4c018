//! Control groups of version 1 or 2: those this process is in, what they allow, and what a group
//! used of CPU time and memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::read;

/// Control groups above one that are looked at.
const GROUP_DEPTH_MAX: usize = 32;

/// The groups that this process is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnGroups {
    /// Its group in the hierarchy of version 2.
    pub v2: Option<PathBuf>,
    /// Those in hierarchies of version 1, by controller.
    pub all_v1: Vec<(&'static str, PathBuf)>,
}

impl OwnGroups {
    /// Finds them.
    pub fn find() -> OwnGroups {
        OwnGroups::parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    }

    /// Its group of version 1 under a controller: `cpu`, `cpuacct`, `memory` or `pids`.
    pub fn v1(&self, controller: &str) -> Option<&Path> {
        let found = self.all_v1.iter().find(|(name, _)| *name == controller);
        found.map(|(_, path)| path.as_path())
    }

    fn parse(mounts: &str, memberships: &str) -> OwnGroups {
        let mut groups = OwnGroups::default();
        for mount in mounts.lines() {
            // ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS ... - TYPE SOURCE SUPEROPTIONS
            let Some((fields, kind)) = mount.split_once(" - ") else {
                continue;
            };
            let mut fields = fields.split(' ').skip(3);
            let (Some(root), Some(place)) = (fields.next(), fields.next()) else {
                continue;
            };
            let mut kind = kind.split(' ');
            let (name, options) = (kind.next(), kind.nth(1).unwrap_or_default());
            let own = |controller: &str| membership(memberships, controller);
            let path = |group: &str| {
                // A container may see only a part of the hierarchy, and its group as the whole.
                let below = group.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
                Path::new(place).join(below.trim_start_matches('/'))
            };
            match name {
                Some("cgroup2") if groups.v2.is_none() => groups.v2 = own("").map(path),
                Some("cgroup") => {
                    for controller in ["memory", "pids", "cpu", "cpuacct"] {
                        let is_its = options.split(',').any(|option| option == controller);
                        if let Some(group) = own(controller).filter(|_| is_its) {
                            groups.all_v1.push((controller, path(group)));
                        }
                    }
                }
                _ => {}
            }
        }
        groups
    }
}

/// The group under a controller of version 1, or in version 2 for an empty name, as
/// `/proc/PID/cgroup` tells.
pub fn membership<'a>(memberships: &'a str, controller: &str) -> Option<&'a str> {
    memberships.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let mut controllers = controllers.split(',');
        controllers.any(|name| name == controller).then_some(path)
    })
}

/// The smallest limits of the control groups above this process, none where there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quota {
    /// CPUs' worth of time.
    pub cpus: Option<f64>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

impl Quota {
    /// Finds them.
    pub fn find() -> Quota {
        let groups = OwnGroups::find();
        let mut quota = Quota::default();
        if let Some(group) = &groups.v2 {
            quota.narrow(group, |folder, quota| quota.take_v2(folder));
        }
        for (controller, group) in &groups.all_v1 {
            quota.narrow(group, |folder, quota| quota.take_v1(folder, controller));
        }
        quota
    }

    /// A group's limit holds for all groups below it.
    fn narrow(&mut self, group: &Path, mut take: impl FnMut(&Path, &mut Quota)) {
        for folder in group.ancestors().take(GROUP_DEPTH_MAX) {
            if !folder.join("cgroup.procs").exists() {
                break;
            }
            take(folder, self);
        }
    }

    fn take_v2(&mut self, folder: &Path) {
        let text = |name: &str| read(folder.join(name));
        least_of(&mut self.cpus, cpu_max(&text("cpu.max")));
        least_of(
            &mut self.memory_bytes,
            text("memory.max").trim().parse().ok(),
        );
        least_of(&mut self.pids, text("pids.max").trim().parse().ok());
    }

    fn take_v1(&mut self, folder: &Path, controller: &str) {
        let number = |name: &str| read(folder.join(name)).trim().parse::<u64>().ok();
        match controller {
            "cpu" => {
                let period = number("cpu.cfs_period_us").filter(|period| *period > 0);
                let quota = number("cpu.cfs_quota_us").zip(period);
                least_of(
                    &mut self.cpus,
                    quota.map(|(quota, period)| quota as f64 / period as f64),
                );
            }
            "memory" => {
                // No limit is a number near the largest one.
                let limit = number("memory.limit_in_bytes").filter(|limit| *limit < 1 << 60);
                least_of(&mut self.memory_bytes, limit);
            }
            "pids" => least_of(&mut self.pids, number("pids.max")),
            _ => {}
        }
    }
}

/// `cpu.max`: a quota and a period, or `max` and a period.
fn cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

fn least_of<T: PartialOrd + Copy>(least: &mut Option<T>, found: Option<T>) {
    if let Some(found) = found
        && least.is_none_or(|least| found < least)
    {
        *least = Some(found);
    }
}

/// Where version 1 and 2 are mounted by custom.
const MOUNT: &str = "/sys/fs/cgroup";
/// The hierarchies of version 1 that account for CPU time.
const CPU_MOUNTS: &[&str] = &["cpuacct", "cpu,cpuacct", "cpuacct,cpu"];

/// A control group whose files were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    cpu: CpuFile,
    memory: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CpuFile {
    /// `cpu.stat` with a line `usage_usec`.
    Stat(PathBuf),
    /// `cpuacct.usage`, nanoseconds.
    Usage(PathBuf),
}

impl Cgroup {
    /// Finds a group by its path below the mount or by that of its folder.
    pub fn find(path: &Path) -> Result<Cgroup, String> {
        Cgroup::below(Path::new(MOUNT), path).ok_or_else(|| {
            format!(
                "{}: no control group with CPU accounting is there; give the path of its folder, or \
                 what /proc/PID/cgroup says of a process, such as system.slice/nginx.service",
                path.display()
            )
        })
    }

    fn below(mount: &Path, path: &Path) -> Option<Cgroup> {
        let name = path.strip_prefix("/").unwrap_or(path);
        let unified = [
            path.to_owned(),
            mount.join(name),
            mount.join("unified").join(name),
        ];
        if let Some(mut found) = unified.iter().find_map(|folder| Cgroup::of_folder(folder)) {
            // A folder below the hierarchy of one controller has a sister below that of memory.
            let below = found
                .folder()
                .and_then(|folder| folder.strip_prefix(mount).ok());
            let sister = below.and_then(|below| {
                let rest: PathBuf = below.components().skip(1).collect();
                memory_file(&mount.join("memory").join(rest))
            });
            found.memory = found.memory.or(sister);
            return Some(found);
        }
        for hierarchy in CPU_MOUNTS {
            let usage = mount.join(hierarchy).join(name).join("cpuacct.usage");
            if usage.is_file() {
                let memory = memory_file(&mount.join("memory").join(name));
                let cpu = CpuFile::Usage(usage);
                return Some(Cgroup { cpu, memory });
            }
        }
        None
    }

    /// The group whose files are in this folder, and nowhere else.
    pub fn of_folder(folder: &Path) -> Option<Cgroup> {
        let (stat, usage) = (folder.join("cpu.stat"), folder.join("cpuacct.usage"));
        // Version 1 has a `cpu.stat` too, without the time.
        let cpu = match () {
            _ if usage_us(&stat).is_ok() => CpuFile::Stat(stat),
            _ if usage.is_file() => CpuFile::Usage(usage),
            _ => return None,
        };
        let memory = memory_file(folder);
        Some(Cgroup { cpu, memory })
    }

    /// Nanoseconds of CPU time that its processes had so far, those that ended included. Version 1
    /// counts them, version 2 microseconds.
    pub fn cpu_ns(&self) -> io::Result<u64> {
        match &self.cpu {
            CpuFile::Stat(path) => usage_us(path).map(|us| us * 1000),
            CpuFile::Usage(path) => number(&fs::read_to_string(path)?, path),
        }
    }

    /// Bytes of memory they have, page cache included; nothing where it is not accounted for.
    pub fn memory_bytes(&self) -> Option<u64> {
        let path = self.memory.as_deref()?;
        number(&fs::read_to_string(path).ok()?, path).ok()
    }

    fn folder(&self) -> Option<&Path> {
        match &self.cpu {
            CpuFile::Stat(path) | CpuFile::Usage(path) => path.parent(),
        }
    }
}

fn memory_file(folder: &Path) -> Option<PathBuf> {
    let names = ["memory.current", "memory.usage_in_bytes"];
    let mut files = names.iter().map(|name| folder.join(name));
    files.find(|file| file.is_file())
}

fn usage_us(stat: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(stat)?;
    let mut lines = text.lines();
    let usage = lines.find_map(|line| line.strip_prefix("usage_usec "));
    number(usage.unwrap_or_default(), stat)
}

fn number(text: &str, path: &Path) -> io::Result<u64> {
    text.trim().parse().map_err(|_| {
        let wrong = format!("{}: no number is where one belongs", path.display());
        io::Error::new(io::ErrorKind::InvalidData, wrong)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn own_groups_are_where_this_process_is_in_each_hierarchy() {
        let memberships = "8:pids:/\n4:memory:/box/one\n1:cpu,cpuacct:/\n0::/user.slice\n";
        let groups = OwnGroups::parse(HYBRID, memberships);
        let at = |path: &str| PathBuf::from(format!("/sys/fs/cgroup/{path}"));
        assert_eq!(groups.v2, Some(at("unified/user.slice")));
        assert_eq!(groups.v1("memory"), Some(&*at("memory/box/one")));
        assert_eq!(groups.v1("pids"), Some(&*at("pids/")));
        assert_eq!(groups.v1("cpu"), Some(&*at("cpu,cpuacct/")));
        assert_eq!(groups.v1("cpuacct"), groups.v1("cpu"));
        assert_eq!(groups.v1("io"), None);
        assert_eq!(OwnGroups::parse("", ""), OwnGroups::default());
    }

    #[test]
    fn container_that_sees_its_own_group_as_the_top_finds_itself_there() {
        let mounts = "40 31 0:38 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        let groups = OwnGroups::parse(mounts, "0::/docker/abc/hob.service\n");
        assert_eq!(groups.v2, Some("/sys/fs/cgroup/hob.service".into()));
        let groups = OwnGroups::parse(mounts, "0::/\n");
        assert_eq!(groups.v2, Some("/sys/fs/cgroup".into()));
    }

    #[test]
    fn limits_are_the_smallest_on_the_way_up() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        for folder in ["a", "a/b"] {
            write(&format!("{folder}/cgroup.procs"), "");
        }
        write("cpu.max", "1 100000");
        write("a/cpu.max", "150000 100000\n");
        write("a/b/cpu.max", "max 100000\n");
        write("a/memory.max", "max\n");
        write("a/b/memory.max", "1048576\n");
        write("a/pids.max", "64\n");
        let mut quota = Quota::default();
        quota.narrow(&inner, |folder, quota| quota.take_v2(folder));
        let found = Quota {
            cpus: Some(1.5),
            memory_bytes: Some(1_048_576),
            pids: Some(64),
        };
        assert_eq!(quota, found);

        write("a/cpu.cfs_quota_us", "50000");
        write("a/cpu.cfs_period_us", "100000");
        write("a/b/cpu.cfs_quota_us", "-1");
        write("a/b/cpu.cfs_period_us", "100000");
        write("a/memory.limit_in_bytes", "9223372036854771712");
        let mut quota = Quota::default();
        for controller in ["cpu", "cpuacct", "memory"] {
            quota.narrow(&inner, |folder, quota| quota.take_v1(folder, controller));
        }
        assert_eq!((quota.cpus, quota.memory_bytes), (Some(0.5), None));
        assert_eq!(cpu_max("0 0"), None);
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn group_of_version_2_has_cpu_and_memory() {
        let mount = tempfile::tempdir().unwrap();
        let mount = mount.path();
        let group = mount.join("a.slice/b.service");
        write(group.join("cpu.stat"), "usage_usec 1500\nuser_usec 1000\n");
        write(group.join("memory.current"), "4096\n");
        for path in [
            Path::new("a.slice/b.service"),
            Path::new("/a.slice/b.service"),
            &group,
        ] {
            let found = Cgroup::below(mount, path).unwrap();
            assert_eq!(found.cpu_ns().unwrap(), 1_500_000, "{}", path.display());
            assert_eq!(found.memory_bytes(), Some(4096));
        }
        assert_eq!(Cgroup::below(mount, Path::new("c")), None);
        assert_eq!(Cgroup::of_folder(mount), None);
    }

    #[test]
    fn group_of_version_1_is_found_in_both_hierarchies() {
        let mount = tempfile::tempdir().unwrap();
        let mount = mount.path();
        write(mount.join("cpu,cpuacct/web/cpuacct.usage"), "123456\n");
        // Version 1 has a file of this name too, without the time.
        write(mount.join("cpu,cpuacct/web/cpu.stat"), "nr_periods 0\n");
        write(mount.join("memory/web/memory.usage_in_bytes"), "8192\n");
        let whole = mount.join("cpu,cpuacct/web");
        for path in [Path::new("/web"), &whole] {
            let found = Cgroup::below(mount, path).unwrap();
            assert_eq!(found.cpu_ns().unwrap(), 123_456, "{}", path.display());
            assert_eq!(found.memory_bytes(), Some(8192));
        }
    }
}
