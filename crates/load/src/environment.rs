//! Where something was measured: program, machine, kernel and limits. Figures without it say
//! nothing, so every report carries it.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use serde_json::{Value, json};

use crate::page::{Table, bytes, count};

/// Built with checks and without optimisation: slow, and no measure of anything.
const IS_DEBUG_BUILD: bool = cfg!(debug_assertions);

/// What a machine and this program on it are like.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    /// Version of this program, and whether it was built to be quick.
    pub program: String,
    /// Kernel and architecture.
    pub kernel: String,
    /// Model of the CPU.
    pub cpu: String,
    /// CPUs of the machine.
    pub cpu_count: usize,
    /// CPUs this process may use.
    pub usable_cpu_count: usize,
    /// What the machine is made of where it is a guest of another.
    pub hypervisor: Option<String>,
    /// CPUs' worth of time that a control group allows.
    pub cpu_quota: Option<f64>,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Descriptors a process may have; none for no limit.
    pub descriptor_count_max: Option<u64>,
}

impl Environment {
    /// Looks at this machine.
    pub fn look() -> Environment {
        let system = uname();
        let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let cpus = read("/proc/cpuinfo");
        Environment {
            program: program(),
            kernel: format!(
                "{} {} {}",
                word(system.sysname()),
                word(system.release()),
                word(system.machine())
            ),
            cpu: value_of(&cpus, "model name").unwrap_or_else(|| "unknown".to_owned()),
            cpu_count: cpus
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count()
                .max(1),
            usable_cpu_count: std::thread::available_parallelism().map_or(1, usize::from),
            hypervisor: hypervisor(&cpus),
            cpu_quota: cpu_quota(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup")),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            descriptor_count_max: getrlimit(Resource::Nofile).current,
        }
    }

    /// For machines; `environment` of a result in JSON.
    pub fn json(&self) -> Value {
        json!({
            "program": self.program,
            "kernel": self.kernel,
            "cpu": self.cpu,
            "cpu_count": self.cpu_count,
            "usable_cpu_count": self.usable_cpu_count,
            "hypervisor": self.hypervisor,
            "cpu_quota": self.cpu_quota,
            "memory_bytes": self.memory_bytes,
            "descriptor_count_max": self.descriptor_count_max,
        })
    }

    /// What [`Environment::json`] wrote.
    pub fn read(value: &Value) -> Option<Environment> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let number = |name: &str| value[name].as_u64();
        Some(Environment {
            program: text("program")?,
            kernel: text("kernel")?,
            cpu: text("cpu")?,
            cpu_count: number("cpu_count")? as usize,
            usable_cpu_count: number("usable_cpu_count")? as usize,
            hypervisor: text("hypervisor"),
            cpu_quota: value["cpu_quota"].as_f64(),
            memory_bytes: number("memory_bytes")?,
            descriptor_count_max: number("descriptor_count_max"),
        })
    }

    /// For people, a line each: what it is, and what it is here.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let cpus = match self.usable_cpu_count {
            usable if usable == self.cpu_count => format!("{usable}"),
            usable => format!("{usable} of {}", self.cpu_count),
        };
        let quota = self.cpu_quota;
        let descriptors = self.descriptor_count_max;
        let hypervisor = self.hypervisor.as_deref().unwrap_or("none seen");
        vec![
            ("program", self.program.clone()),
            ("kernel", self.kernel.clone()),
            ("CPU", self.cpu.clone()),
            ("CPUs", cpus),
            (
                "CPU quota",
                quota.map_or("none".to_owned(), |cpus| format!("{cpus:.2} CPUs")),
            ),
            ("hypervisor", hypervisor.to_owned()),
            ("memory", bytes(self.memory_bytes as f64)),
            (
                "descriptors",
                descriptors.map_or("no limit".to_owned(), count),
            ),
        ]
    }

    /// The same as a table of a page.
    pub fn table(&self) -> Table {
        let table = Table::new("Environment").text("what").text("here");
        let facts = self.facts().into_iter();
        { facts }.fold(table, |table, (name, here)| table.row([name, &here]))
    }

    /// Why figures that this program was measured with, or has of itself, are worth nothing.
    pub fn doubt() -> Option<&'static str> {
        IS_DEBUG_BUILD.then_some(
            "this hob was built without optimization: it is many times slower than a release build",
        )
    }
}

fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match IS_DEBUG_BUILD {
        true => format!("hob {version}, a debug build"),
        false => format!("hob {version}"),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of the first line `name : value`.
fn value_of(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn hypervisor(cpus: &str) -> Option<String> {
    let flags = value_of(cpus, "flags").unwrap_or_default();
    let is_guest = flags.split_whitespace().any(|flag| flag == "hypervisor");
    let kind = read("/sys/hypervisor/type");
    let names =
        ["sys_vendor", "product_name"].map(|file| read(&format!("/sys/class/dmi/id/{file}")));
    let [vendor, product] = names.each_ref().map(|name| name.trim());
    let made_by = format!("{} {vendor} {product}", kind.trim());
    let made_by = made_by.split_whitespace().collect::<Vec<_>>().join(" ");
    match (is_guest, made_by.is_empty()) {
        (false, _) => None,
        (true, true) => Some("yes, it does not say which".to_owned()),
        (true, false) => Some(made_by),
    }
}

/// The smallest quota of the own control group and those above it, of either version.
fn cpu_quota(root: &Path, own: &str) -> Option<f64> {
    let mut smallest: Option<f64> = None;
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mount = match controllers {
            "" => root.to_owned(),
            list if list.split(',').any(|one| one == "cpu") => root.join(list),
            _ => continue,
        };
        let folder = mount.join(path.trim_start_matches('/'));
        for folder in folder.ancestors().take_while(|one| one.starts_with(&mount)) {
            let found = quota_of(folder);
            smallest = match (smallest, found) {
                (Some(least), Some(found)) => Some(least.min(found)),
                (least, found) => least.or(found),
            };
        }
    }
    smallest
}

fn quota_of(folder: &Path) -> Option<f64> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let number = |text: Option<String>| text?.trim().parse::<f64>().ok();
    if let Some(line) = text("cpu.max") {
        let (quota, period) = line.trim().split_once(' ')?;
        return Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?);
    }
    let quota = number(text("cpu.cfs_quota_us"))?;
    let period = number(text("cpu.cfs_period_us"))?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn memory_bytes(text: &str) -> u64 {
    let line = value_of(text, "MemTotal").unwrap_or_default();
    let kib = line.split_whitespace().next();
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_all_of_it_and_it_comes_back_from_json() {
        let here = Environment::look();
        assert!(here.kernel.starts_with("Linux "), "{here:?}");
        assert!(
            here.memory_bytes > 0 && here.usable_cpu_count > 0,
            "{here:?}"
        );
        assert_eq!(Environment::read(&here.json()), Some(here.clone()));
        assert!(!here.table().is_empty());
        assert_eq!(Environment::read(&Value::Null), None);
    }

    #[test]
    fn quota_is_the_smallest_on_the_way_up() {
        let root = std::env::temp_dir().join(format!("hob-quota-{}", std::process::id()));
        let inner = root.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.join("a/cpu.max"), "150000 100000\n").unwrap();
        fs::write(inner.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!(cpu_quota(&root, "0::/a/b\n"), Some(1.5));
        assert_eq!(cpu_quota(&root, "0::/\n"), None);
        let old = root.join("cpu,cpuacct/a");
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("cpu.cfs_quota_us"), "50000\n").unwrap();
        fs::write(old.join("cpu.cfs_period_us"), "100000\n").unwrap();
        assert_eq!(cpu_quota(&root, "3:cpu,cpuacct:/a\n0::/\n"), Some(0.5));
        fs::remove_dir_all(&root).unwrap();
    }
}
