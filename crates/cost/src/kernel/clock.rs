//! CPU time of any process: its threads together, those that have ended among them, to the
//! nanosecond.
#![allow(unsafe_code)]

use std::io;

/// Nanoseconds so far. A process that is gone has no clock.
pub(crate) fn cpu_ns(pid: u32) -> io::Result<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: writes one number into `clock`.
    match unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) } {
        0 => {}
        code => return Err(io::Error::from_raw_os_error(code)),
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes two numbers into `time`.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    const BURNT_NS: i64 = 5_000_000;

    #[test]
    fn threads_that_ended_are_counted() {
        let own = std::process::id();
        let before = cpu_ns(own).unwrap();
        let burn = || {
            let spent = || clock_gettime(ClockId::ThreadCPUTime);
            while spent().tv_sec == 0 && spent().tv_nsec < BURNT_NS {}
        };
        std::thread::spawn(burn).join().unwrap();
        assert!(cpu_ns(own).unwrap() - before >= BURNT_NS as u64);
    }

    #[test]
    fn process_that_is_gone_has_no_clock() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(cpu_ns(pid).is_err());
    }
}
