//! Limits of this handler that nobody needs to set.

use std::time::Duration;

/// How long a host may take to start and preload.
pub(super) const START_TIME: Duration = Duration::from_secs(60);
/// Requests of one thread that may stand before a host's full socket; more are refused.
pub(super) const RUNS_WAITING_MAX: usize = 1024;
/// How long a host that could not start or died is let alone, doubled for each time in a row.
pub(super) const BACK_OFF: Duration = Duration::from_millis(100);
/// The longest of these.
pub(super) const BACK_OFF_MAX: Duration = Duration::from_secs(30);
/// A host that has lived so long is not one that cannot.
pub(super) const PROVEN_AFTER: Duration = Duration::from_secs(10);
/// Lines of a host's output that are kept to explain its death.
pub(super) const LAST_LINES: usize = 20;
/// Lines of a host that wait to be logged until it is ready, the first ones; of one that never is
/// the cause is logged.
pub(super) const HELD_LINES_MAX: usize = 100;
/// How long the rest of a dead host's output is waited for.
pub(super) const LAST_WORDS_WAIT: Duration = Duration::from_millis(300);
/// How often a run may have to be killed, a second apart, until its host is taken for dead.
pub(super) const KILLS_MAX: u32 = 10;
