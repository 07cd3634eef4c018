//! What the kernel knows of this process, as client libraries of Prometheus call it.

use hob_machine::process::descriptors;
use hob_machine::read;
use rustix::process::{Resource, getrlimit};

/// Numbers of a process; what cannot be read is absent.
#[derive(Debug, Default)]
pub(super) struct ProcessMetrics {
    /// CPU time, user and system, in seconds.
    pub(super) cpu_s: Option<f64>,
    /// Memory that is in RAM, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// Address space, in bytes.
    pub(super) virtual_bytes: Option<u64>,
    /// When it began, in seconds since 1970.
    pub(super) started_unix_s: Option<f64>,
    /// Open descriptors.
    pub(super) descriptors: Option<u64>,
    /// Most descriptors.
    pub(super) descriptors_max: Option<u64>,
    /// Threads.
    pub(super) threads: Option<u64>,
}

impl ProcessMetrics {
    /// This one.
    pub(super) fn own() -> ProcessMetrics {
        let own = hob_machine::ProcessStat::of("self");
        let boot = read("/proc/stat");
        let booted = boot.lines().find_map(|line| line.strip_prefix("btime "));
        let booted: Option<f64> = booted.and_then(|text| text.trim().parse().ok());
        ProcessMetrics {
            cpu_s: own.map(|own| own.own_ns as f64 / 1e9),
            resident_bytes: own.map(|own| own.resident_bytes),
            virtual_bytes: own.map(|own| own.virtual_bytes),
            started_unix_s: (own.zip(booted)).map(|(own, boot)| boot + own.started_ns as f64 / 1e9),
            descriptors: descriptors(),
            descriptors_max: getrlimit(Resource::Nofile).current,
            threads: own.map(|own| own.threads),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_there() {
        let process = ProcessMetrics::own();
        assert!(process.resident_bytes.unwrap() > 0);
        assert!(process.descriptors.unwrap() > 0);
        assert!(process.started_unix_s.unwrap() > 1.0e9);
    }
}
