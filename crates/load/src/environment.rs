//! Where something was measured: program, machine, kernel and limits. Figures without it say
//! nothing, so every report carries it.

use hob_machine::Quota;
use hob_machine::hardware::{Cpus, memory_bytes};
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::page::{PageTable, bytes, count};

/// Built with checks and without optimisation: slow, and no measure of anything.
const IS_DEBUG_BUILD: bool = cfg!(debug_assertions);

/// The machine of the load generator, and this program on it: `environment` of results in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// This program and its version.
    pub program: String,
    /// Kernel and architecture.
    pub kernel: String,
    /// Model of the CPU.
    pub cpu: String,
    /// CPUs there are.
    pub cpu_count: usize,
    /// CPUs the load generator may use.
    pub usable_cpu_count: usize,
    /// What the machine is a guest of.
    pub hypervisor: Option<String>,
    /// CPUs' worth of time that its control group allows.
    pub cpu_quota: Option<f64>,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Descriptors it may have; null for no limit.
    pub descriptor_count_max: Option<u64>,
}

impl Environment {
    /// Looks at this machine.
    pub fn look() -> Environment {
        let system = uname();
        let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let cpus = Cpus::look();
        Environment {
            program: program(),
            kernel: format!(
                "{} {} {}",
                word(system.sysname()),
                word(system.release()),
                word(system.machine())
            ),
            hypervisor: cpus.host("yes, it does not say which"),
            cpu: cpus.model.unwrap_or_else(|| "unknown".to_owned()),
            cpu_count: cpus.count,
            usable_cpu_count: std::thread::available_parallelism().map_or(1, usize::from),
            cpu_quota: Quota::find().cpus,
            memory_bytes: memory_bytes().unwrap_or(0),
            descriptor_count_max: getrlimit(Resource::Nofile).current,
        }
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
    pub fn table(&self) -> PageTable {
        let table = PageTable::new("Environment").text("what").text("here");
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
        let told = serde_json::to_value(&here).unwrap();
        assert_eq!(Environment::deserialize(&told).ok(), Some(here.clone()));
        assert!(!here.table().is_empty());
        assert!(Environment::deserialize(&serde_json::Value::Null).is_err());
    }
}
