//! Limits of this handler that nobody needs to set. Those a route sets are in
//! [`crate::handle::config::RunLimits`].

use std::time::Duration;

/// Bytes of output read ahead: an answer that has ended within them leaves with its length.
pub(super) const OUTPUT_HELD_BYTES_MAX: usize = 64 * 1024;
/// How long the beginning of an answer waits for its end, so that a short one leaves at once and
/// with its length; so late is the first byte of a slow one. Events and what asks for it do not
/// wait.
pub(super) const OUTPUT_HELD_TIME: Duration = Duration::from_millis(10);
/// Bytes of output read at a time.
pub(super) const READ_BYTES: usize = 16 * 1024;
/// The same for the beginning: most answers are short, and room costs its clearing.
pub(super) const FIRST_READ_BYTES: usize = 4 * 1024;
/// Bytes of standard error in a record, the last whole lines.
pub(super) const STDERR_TOLD_BYTES: usize = 640;
/// How long a program runs before its standard error wakes anyone: of most that is read once, when
/// they have ended.
pub(super) const STDERR_UNSEEN: Duration = Duration::from_millis(100);
/// How long a failed program's standard error is waited for.
pub(super) const STDERR_WAIT: Duration = Duration::from_millis(300);
/// How long the end of a process that was killed is waited for before it is killed again.
pub(super) const KILLED_WAIT: Duration = Duration::from_secs(1);
/// Programs whose place is remembered, for each thread.
pub(super) const PLACES_MAX: usize = 1024;
/// Longest path that is remembered, in bytes.
pub(super) const PLACE_BYTES_MAX: usize = 256;
/// Longest value of a query that a command takes, in bytes.
pub(super) const PARAMETER_BYTES_MAX: usize = 1024;
