//! Signals that must not find the terminal as a screen has it: those that stop this process, let it
//! go on, or end it. While there is no screen they do what they always do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::signal::SIGSTOP;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGQUIT, SIGTSTP};
use signal_hook::{flag, low_level};

/// What has come, until somebody looks.
#[derive(Debug)]
pub(super) struct TerminalSignals {
    /// There is no screen any more.
    is_over: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    go_on: Arc<AtomicBool>,
    ends: Vec<(i32, Arc<AtomicBool>)>,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalAction {
    Stop,
    /// The process was stopped, and has gone on since.
    GoOn,
    End(i32),
}

impl TerminalSignals {
    pub(super) fn listen() -> io::Result<TerminalSignals> {
        let is_over = Arc::new(AtomicBool::new(false));
        let watched = |signal| {
            let flag = Arc::new(AtomicBool::new(false));
            // What this does when there is no screen stands before what sets the flag.
            flag::register_conditional_default(signal, is_over.clone())?;
            flag::register(signal, flag.clone())?;
            io::Result::Ok(flag)
        };
        let mut ends = Vec::new();
        for signal in [SIGQUIT, SIGHUP] {
            ends.push((signal, watched(signal)?));
        }
        let go_on = Arc::new(AtomicBool::new(false));
        flag::register(SIGCONT, go_on.clone())?;
        Ok(TerminalSignals {
            stop: watched(SIGTSTP)?,
            go_on,
            ends,
            is_over,
        })
    }

    /// What is asked for, if something is.
    pub(super) fn next(&self) -> Option<SignalAction> {
        let has_come = |flag: &AtomicBool| flag.swap(false, Ordering::Relaxed);
        let mut ends = self.ends.iter();
        if let Some((signal, _)) = ends.find(|(_, flag)| has_come(flag)) {
            return Some(SignalAction::End(*signal));
        }
        if has_come(&self.stop) {
            return Some(SignalAction::Stop);
        }
        has_come(&self.go_on).then_some(SignalAction::GoOn)
    }

    /// Stops this process until it is let go on.
    pub(super) fn stop(&self) {
        // To this thread, which then does nothing more before the stop; a process may always stop.
        let _ = low_level::raise(SIGSTOP);
        self.go_on.store(false, Ordering::Relaxed);
    }

    /// Ends this process as the signal would have.
    pub(super) fn end(&self, signal: i32) {
        // Only signals that cannot be caught cannot be emulated.
        let _ = low_level::emulate_default_handler(signal);
    }
}

impl Drop for TerminalSignals {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
