//! Limits of programs behind upstreams that nobody needs to set.

use std::time::Duration;

/// Bytes read from a connection at a time.
pub(super) const READ_BYTES: usize = 16 * 1024;
/// Bytes of an answer read ahead: one that has ended within them leaves with its length.
pub(super) const OUTPUT_HELD_BYTES_MAX: usize = 64 * 1024;
/// How long the beginning of an answer waits for its end. Events and what asks for it do not wait.
pub(super) const OUTPUT_HELD_TIME: Duration = Duration::from_millis(10);
/// Bytes of standard error kept to explain a failure, the last ones.
pub(super) const STDERR_KEPT_BYTES: usize = 4 * 1024;
