//! What the kernel knows of this process, as client libraries of Prometheus call it.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// Numbers of a process; what cannot be read is absent.
#[derive(Debug, Default)]
pub(super) struct Process {
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

impl Process {
    /// This one.
    pub(super) fn own() -> Process {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks_s = clock_ticks_per_second().max(1) as f64;
        let mut process = Process::of_stat(&stat, &boot, ticks_s);
        let entries = fs::read_dir("/proc/self/fd");
        // One of them is the folder itself.
        process.descriptors = entries.ok().map(|all| all.count().saturating_sub(1) as u64);
        process.descriptors_max = getrlimit(Resource::Nofile).current;
        process
    }

    /// From `/proc/PID/stat`, and `/proc/stat` for the time of the boot.
    fn of_stat(stat: &str, boot: &str, ticks_s: f64) -> Process {
        // The name in parentheses may hold anything.
        let Some((_, fields)) = stat.rsplit_once(')') else {
            return Process::default();
        };
        let fields: Vec<u64> = fields
            .split_whitespace()
            .map(|field| field.parse().unwrap_or_default())
            .collect();
        // proc_pid_stat(5) counts from 1, and two fields stand before.
        let field = |number: usize| fields.get(number - 3).copied();
        let booted = boot.lines().find_map(|line| line.strip_prefix("btime "));
        let booted: Option<f64> = booted.and_then(|text| text.trim().parse().ok());
        Process {
            cpu_s: field(14)
                .zip(field(15))
                .map(|(user, system)| (user + system) as f64 / ticks_s),
            threads: field(20),
            started_unix_s: field(22)
                .zip(booted)
                .map(|(after, boot)| boot + after as f64 / ticks_s),
            virtual_bytes: field(23),
            resident_bytes: field(24).map(|pages| pages * page_size() as u64),
            ..Process::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 5 0 1234 8192 3 0 0";
        let process = Process::of_stat(stat, "cpu 1\nbtime 1000\n", 100.0);
        assert_eq!(process.cpu_s, Some(3.0));
        assert_eq!(process.threads, Some(5));
        assert_eq!(process.started_unix_s, Some(1012.34));
        assert_eq!(process.virtual_bytes, Some(8192));
        assert_eq!(process.resident_bytes, Some(3 * page_size() as u64));
    }

    #[test]
    fn what_cannot_be_read_is_absent() {
        for stat in ["", "7 (a", "7 (a) S 1"] {
            let process = Process::of_stat(stat, "", 100.0);
            assert!(
                process.cpu_s.is_none() && process.started_unix_s.is_none(),
                "{stat}"
            );
        }
    }

    #[test]
    fn this_process_is_there() {
        let process = Process::own();
        assert!(process.resident_bytes.unwrap() > 0);
        assert!(process.descriptors.unwrap() > 0);
        assert!(process.started_unix_s.unwrap() > 1.0e9);
    }
}
