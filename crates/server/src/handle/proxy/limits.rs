//! Limits of this handler that nobody needs to set.

use std::time::Duration;

/// Bytes read from a connection at a time, until the head is there and after it.
pub(super) const HEAD_READ_BYTES: usize = 16 * 1024;
pub(super) const BODY_READ_BYTES: usize = 64 * 1024;
/// Bytes that come at once through a tunnel from which on more is moved by pipes, and below which
/// it is read again.
pub(super) const TUNNEL_MUCH_BYTES: usize = 32 * 1024;
pub(super) const TUNNEL_LITTLE_BYTES: usize = 8 * 1024;
/// Bytes of an answer read ahead: one that has ended within them leaves with its length.
pub(super) const OUTPUT_HELD_BYTES_MAX: usize = 64 * 1024;
/// How long the beginning of an answer waits for its end. Events and what asks for it do not wait.
pub(super) const OUTPUT_HELD_TIME: Duration = Duration::from_millis(10);
