//! CPU time and memory of a control group, of version 1 or 2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("hob-cgroup-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn group_of_version_2_has_cpu_and_memory() {
        let mount = folder("v2");
        let group = mount.join("a.slice/b.service");
        write(group.join("cpu.stat"), "usage_usec 1500\nuser_usec 1000\n");
        write(group.join("memory.current"), "4096\n");
        for path in [
            Path::new("a.slice/b.service"),
            Path::new("/a.slice/b.service"),
            &group,
        ] {
            let found = Cgroup::below(&mount, path).unwrap();
            assert_eq!(found.cpu_ns().unwrap(), 1_500_000, "{}", path.display());
            assert_eq!(found.memory_bytes(), Some(4096));
        }
        assert_eq!(Cgroup::below(&mount, Path::new("c")), None);
        assert_eq!(Cgroup::of_folder(&mount), None);
        fs::remove_dir_all(mount).unwrap();
    }

    #[test]
    fn group_of_version_1_is_found_in_both_hierarchies() {
        let mount = folder("v1");
        write(mount.join("cpu,cpuacct/web/cpuacct.usage"), "123456\n");
        // Version 1 has a file of this name too, without the time.
        write(mount.join("cpu,cpuacct/web/cpu.stat"), "nr_periods 0\n");
        write(mount.join("memory/web/memory.usage_in_bytes"), "8192\n");
        let whole = mount.join("cpu,cpuacct/web");
        for path in [Path::new("/web"), &whole] {
            let found = Cgroup::below(&mount, path).unwrap();
            assert_eq!(found.cpu_ns().unwrap(), 123_456, "{}", path.display());
            assert_eq!(found.memory_bytes(), Some(8192));
        }
        fs::remove_dir_all(mount).unwrap();
    }
}
