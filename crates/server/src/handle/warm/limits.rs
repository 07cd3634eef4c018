//! Limits of this handler that nobody needs to set.

use std::time::Duration;

/// How long a host may take to start and preload.
pub(super) const START_TIME: Duration = Duration::from_secs(60);
/// Requests of one thread that may stand before a host's full socket; more are refused.
pub(super) const RUNS_WAITING_MAX: usize = 1024;
/// Lines of a host that wait to be logged until it is ready, the first ones; of one that never is
/// the cause is logged.
pub(super) const HELD_LINES_MAX: usize = 100;
/// How often a run may have to be killed, a second apart, until its host is taken for dead.
pub(super) const KILLS_MAX: u32 = 10;
