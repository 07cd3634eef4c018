//! Every limit of a run of mischief, with its unit in its name.

use std::time::Duration;

/// Acts of mischief in one run.
pub(crate) const ACT_COUNT_MAX: u64 = 100_000;
/// Acts of mischief at once; the connections of the requests beside them come to these.
pub(crate) const ACTOR_COUNT: usize = 8;
/// Pause between the beginnings of two acts: 50 a second at most.
pub(crate) const ACT_PAUSE: Duration = Duration::from_millis(20);
/// Connections that one act opens.
pub(crate) const FLOOD_CONNECTION_COUNT_MAX: usize = 64;
/// Bytes that one act sends or reads one by one.
pub(crate) const SIP_COUNT_MAX: usize = 200;
/// Body of an answer to what is asked beside the mischief.
pub(crate) const EXERCISED_BODY_BYTES_MAX: u64 = 1 << 20;
/// Time of the acts of one run.
pub(crate) const EXERCISE_DURATION_MAX: Duration = Duration::from_secs(3600);
/// Longest wait for what comes of an act.
pub(crate) const ACT_TIMEOUT_MAX: Duration = Duration::from_secs(300);
