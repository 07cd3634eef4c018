//! What the machine is made of, as far as it says.

use crate::read;
use crate::text::{kib_line, line_of};

/// Memory of the machine, in bytes.
pub fn memory_bytes() -> Option<u64> {
    kib_line(&read("/proc/meminfo"), "MemTotal")
}

/// Of it, what can be had without swapping, in bytes.
pub fn memory_available_bytes() -> Option<u64> {
    kib_line(&read("/proc/meminfo"), "MemAvailable")
}

/// What a network interface says of itself in a file of `/sys`; virtual ones lack some.
pub fn interface(name: &str, file: &str) -> Option<u64> {
    if name.contains('/') || name.starts_with('.') {
        return None;
    }
    let text = read(format!("/sys/class/net/{name}/{file}"));
    text.trim().parse().ok()
}

/// The CPUs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// What the first one is called.
    pub model: Option<String>,
    /// How many there are, used by this process or not.
    pub count: usize,
    /// Whether they say that they are a guest's.
    pub is_guest: bool,
}

impl Cpus {
    /// Looks at those of this machine.
    pub fn look() -> Cpus {
        Cpus::of(&read("/proc/cpuinfo"))
    }

    fn of(text: &str) -> Cpus {
        // Arm names no model; its part number is better than nothing.
        let names = ["model name", "cpu model", "Hardware", "CPU part"];
        let model = names.iter().find_map(|name| line_of(text, name));
        let count = text.lines().filter(|line| line.starts_with("processor"));
        let flags = line_of(text, "flags").unwrap_or_default();
        Cpus {
            model: model.map(str::to_owned),
            count: count.count().max(1),
            is_guest: flags.split(' ').any(|flag| flag == "hypervisor"),
        }
    }

    /// What they are a guest of, none where they do not say that they are a guest's; `unnamed`
    /// where nothing else does.
    pub fn host(&self, unnamed: &str) -> Option<String> {
        let files = [
            "/sys/hypervisor/type",
            "/sys/class/dmi/id/sys_vendor",
            "/sys/class/dmi/id/product_name",
        ];
        let text = files.map(read).join(" ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let host = match words.is_empty() {
            true => unnamed.to_owned(),
            false => words.join(" "),
        };
        self.is_guest.then_some(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_says_how_long_its_packets_may_be() {
        assert!(interface("lo", "mtu") > Some(1000));
        assert_eq!(interface("lo", "nothing"), None);
        assert_eq!(interface("../lo", "mtu"), None);
    }

    #[test]
    fn cpus_are_counted_and_say_whether_they_are_a_guests() {
        let text = "processor\t: 0\nmodel name\t: One\nflags\t\t: fpu vme\nprocessor\t: 1\n";
        let cpus = Cpus::of(text);
        let wanted = (Some("One"), 2, false);
        assert_eq!((cpus.model.as_deref(), cpus.count, cpus.is_guest), wanted);
        assert_eq!(cpus.host("it does not say"), None);
        let guest = Cpus::of("flags : fpu hypervisor\nCPU part : 0xd0c\n");
        assert_eq!((guest.model.as_deref(), guest.count), (Some("0xd0c"), 1));
        assert!(!guest.host("it does not say").unwrap().is_empty());
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(memory_available_bytes().unwrap() <= memory_bytes().unwrap());
    }
}
