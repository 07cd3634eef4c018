//! What holds for processes that stay, whoever keeps them: what they are started with, how long one
//! that died is let alone, and how its end is told.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hob_http::Reactor;
use hob_trace::metric::ThreadCounters;

use hob_keeper::process::{Exit, Launcher};

/// What a thread starts processes with.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) launcher: Launcher,
    pub(crate) reactor: Reactor,
    pub(crate) counters: Arc<ThreadCounters>,
}

/// How long one that could not start or died is let alone, doubled for each time in a row.
pub(crate) const BACK_OFF: Duration = Duration::from_millis(100);
/// The longest of these.
const BACK_OFF_MAX: Duration = Duration::from_secs(30);
/// One that has lived so long is not one that cannot.
pub(crate) const PROVEN_AFTER: Duration = Duration::from_secs(10);
/// Lines of its output that are kept to explain its death.
pub(crate) const LAST_LINES: usize = 20;
/// How long the rest of a dead one's output is waited for.
pub(crate) const LAST_WORDS_WAIT: Duration = Duration::from_millis(300);

/// How long it is let alone after so many deaths in a row.
pub(crate) fn back_off(deaths: u32) -> Duration {
    match deaths {
        0 => Duration::ZERO,
        deaths => BACK_OFF_MAX.min(BACK_OFF * 2u32.saturating_pow(deaths - 1)),
    }
}

/// How it went, for whoever waits for an answer of `who`.
pub(crate) fn ending(who: &str, exit: Exit) -> String {
    match exit {
        Exit::Ended {
            signal: Some(signal),
            ..
        } => format!("{who} was ended by signal {signal}"),
        Exit::Ended { code, .. } => {
            format!("{who} ended with exit code {}", code.unwrap_or_default())
        }
        Exit::NotStarted { step, errno } => format!(
            "{who} could not be started: cannot {step}: {}",
            io::Error::from_raw_os_error(errno)
        ),
        Exit::SpawnerGone | Exit::HostGone => {
            format!("the process that starts programs died, and {who} with it")
        }
        Exit::Busy => "too many programs wait to be started".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(back_off(0), Duration::ZERO);
        assert_eq!(back_off(1), BACK_OFF);
        assert_eq!(back_off(3), BACK_OFF * 4);
        assert_eq!(back_off(u32::MAX), BACK_OFF_MAX);
    }
}
