//! Signals as something to poll: handlers only set a flag and write a byte to a socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR2};

use super::exec;

/// Signals the keeper acts on.
pub(crate) const OF_KEEPER: &[i32] = &[SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR2];
/// Signals the server acts on, or swallows because they are the keeper's: a terminal sends Ctrl-C
/// to both.
pub(crate) const OF_SERVER: &[i32] = &[SIGHUP, SIGINT, SIGTERM, SIGUSR2];

/// Registered signals.
pub(crate) struct RegisteredSignals {
    wake: UnixStream,
    flags: Vec<(i32, Arc<AtomicBool>)>,
}

impl RegisteredSignals {
    /// Handles these signals from now on, and lets through what waited across an exec.
    pub(crate) fn register(numbers: &[i32]) -> io::Result<RegisteredSignals> {
        let (wake, write_end) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        write_end.set_nonblocking(true)?;
        let mut flags = Vec::with_capacity(numbers.len());
        for &number in numbers {
            let flag = Arc::new(AtomicBool::new(false));
            // The flag first: who is woken must find it set.
            signal_hook::flag::register(number, flag.clone())?;
            signal_hook::low_level::pipe::register(number, write_end.try_clone()?)?;
            flags.push((number, flag));
        }
        exec::unblock_signals()?;
        Ok(RegisteredSignals { wake, flags })
    }

    /// Readable when a signal came.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The signals that came since the last call, each once, in the order of registration.
    pub(crate) fn take(&self) -> Vec<i32> {
        let mut bytes = [0; 64];
        // Emptied before the flags are read: a signal in between wakes once for nothing.
        while matches!(io::Read::read(&mut (&self.wake), &mut bytes), Ok(1..)) {}
        let came = |flag: &AtomicBool| flag.swap(false, Ordering::SeqCst);
        self.flags
            .iter()
            .filter(|(_, flag)| came(flag))
            .map(|(number, _)| *number)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_signal_wakes_and_is_taken_once() {
        let signals = RegisteredSignals::register(&[SIGUSR2]).unwrap();
        assert!(signals.take().is_empty());
        signal_hook::low_level::raise(SIGUSR2).unwrap();
        let mut polled = [rustix::event::PollFd::from_borrowed_fd(
            signals.as_fd(),
            rustix::event::PollFlags::IN,
        )];
        assert_eq!(rustix::event::poll(&mut polled, None).unwrap(), 1);
        assert_eq!(signals.take(), [SIGUSR2]);
        assert!(signals.take().is_empty());
    }
}
