//! Ctrl-C: a study looks between its steps whether it is to end, so that everything it started and
//! wrote is taken away by whoever owns it.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::CostError;

/// Whether SIGINT or SIGTERM has come.
#[derive(Clone, Debug)]
pub(crate) struct InterruptFlag(Arc<AtomicBool>);

impl InterruptFlag {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<InterruptFlag, CostError> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, flag.clone())
                .map_err(CostError::system("cannot listen for signals"))?;
        }
        Ok(InterruptFlag(flag))
    }

    /// Never comes.
    #[cfg(test)]
    pub(crate) fn never() -> InterruptFlag {
        InterruptFlag(Arc::default())
    }

    /// The same for the load generator.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Says on a terminal what is done now, in place of what was said before; nothing to take it
    /// away.
    pub(crate) fn tell(&self, what: &str) {
        if io::stderr().is_terminal() {
            // A terminal that is gone is no reason to end the study.
            let _ = write!(io::stderr(), "\r\x1b[K{what}");
        }
    }

    /// Ends what the caller does when a signal has come.
    pub(crate) fn check(&self) -> Result<(), CostError> {
        match self.is_set() {
            true => Err(CostError::Interrupted),
            false => Ok(()),
        }
    }
}
