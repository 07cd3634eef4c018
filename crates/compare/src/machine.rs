//! The environment block: what all this was measured on.

use std::fs;

use serde_json::{Value, json};

use rustix::process::{Resource, getrlimit};

/// Facts with their names, in the order in which they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine(pub(crate) Vec<(&'static str, String)>);

impl Machine {
    /// Looks around.
    pub(crate) fn look() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let name = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let processors = read("/proc/cpuinfo");
        let files = getrlimit(Resource::Nofile);
        let limit = |limit: Option<u64>| limit.map_or("none".to_owned(), |limit| limit.to_string());
        let product = ["sys_vendor", "product_name"]
            .map(|name| read(&format!("/sys/class/dmi/id/{name}")).trim().to_owned());
        Machine(vec![
            ("machine", product.join(" ").trim().to_owned()),
            (
                "hypervisor",
                hypervisor(&processors, &read("/sys/hypervisor/type")),
            ),
            (
                "processor",
                field(&processors, "model name").unwrap_or_else(|| text(name.machine())),
            ),
            (
                "CPUs online",
                read("/sys/devices/system/cpu/online").trim().to_owned(),
            ),
            (
                "CPU quota",
                quota(
                    &read("/sys/fs/cgroup/cpu.max"),
                    &read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
                ),
            ),
            (
                "frequency",
                read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                    .trim()
                    .to_owned(),
            ),
            ("memory", memory(&read("/proc/meminfo"))),
            ("system", system(&read("/etc/os-release"))),
            (
                "kernel",
                format!("{} {}", text(name.sysname()), text(name.release())),
            ),
            (
                "open files",
                format!("{}, at most {}", limit(files.current), limit(files.maximum)),
            ),
            (
                "load before",
                read("/proc/loadavg")
                    .split(' ')
                    .take(3)
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
        ])
        .known()
    }

    /// Adds a fact.
    pub(crate) fn add(&mut self, name: &'static str, text: String) {
        self.0.push((name, text));
    }

    /// Without what could not be found out.
    fn known(mut self) -> Machine {
        self.0.retain(|(_, text)| !text.is_empty());
        self
    }

    pub(crate) fn json(&self) -> Value {
        let facts = self.0.iter();
        Value::Array(
            facts
                .map(|(name, text)| json!({ "name": name, "value": text }))
                .collect(),
        )
    }
}

/// The first line `NAME : VALUE` or `NAME=VALUE`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once([':', '='])?;
        (found.trim() == name).then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn hypervisor(processors: &str, kind: &str) -> String {
    let flags = field(processors, "flags").unwrap_or_default();
    match kind.trim() {
        "" if flags.split(' ').any(|flag| flag == "hypervisor") => {
            "yes: others may share the CPUs".to_owned()
        }
        "" => "none seen".to_owned(),
        kind => kind.to_owned(),
    }
}

fn quota(two: &str, one: &str) -> String {
    let text = [two.trim(), one.trim()]
        .into_iter()
        .find(|text| !text.is_empty());
    match text {
        None => String::new(),
        Some(text) if text.starts_with("max") || text.starts_with('-') => "none".to_owned(),
        Some(text) => format!("{text} (microseconds)"),
    }
}

fn memory(text: &str) -> String {
    let kib = field(text, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    kib.map(|kib| format!("{:.1} GiB", kib / 1_048_576.0))
        .unwrap_or_default()
}

fn system(text: &str) -> String {
    field(text, "PRETTY_NAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_what_the_kernel_says() {
        let processors = "processor : 0\nmodel name\t: Fast 9000\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(
            field(processors, "model name").as_deref(),
            Some("Fast 9000")
        );
        assert!(hypervisor(processors, "").starts_with("yes"));
        assert_eq!(hypervisor("", ""), "none seen");
        assert_eq!(quota("max 100000\n", ""), "none");
        assert_eq!(quota("", "-1\n"), "none");
        assert_eq!(quota("200000 100000\n", ""), "200000 100000 (microseconds)");
        assert_eq!(memory("MemTotal:        4194304 kB\n"), "4.0 GiB");
        assert_eq!(system("PRETTY_NAME=\"Debian 12\"\n"), "Debian 12");
    }

    #[test]
    fn this_machine_has_a_kernel() {
        let machine = Machine::look();
        assert!(
            machine
                .0
                .iter()
                .any(|(name, text)| *name == "kernel" && text.contains("Linux"))
        );
    }
}
