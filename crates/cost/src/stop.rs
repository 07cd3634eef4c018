//! Ctrl-C: a study looks between its steps whether it is to end, so that everything it started and
//! wrote is taken away by whoever owns it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::CostError;

/// Whether SIGINT or SIGTERM has come.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Stop, CostError> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, flag.clone())
                .map_err(CostError::system("cannot listen for signals"))?;
        }
        Ok(Stop(flag))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends what the caller does when a signal has come.
    pub(crate) fn check(&self) -> Result<(), CostError> {
        match self.is_set() {
            true => Err(CostError::Interrupted),
            false => Ok(()),
        }
    }
}
