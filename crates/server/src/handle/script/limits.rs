//! Limits of all handlers of programs that nobody needs to set.

/// Bytes of a request's body that are held in memory; a longer one goes through a file when its
/// length is not known, and straight to the program when it is.
pub(super) const BODY_HELD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of standard error, or of output nobody wants, read before others have their turn.
pub(crate) const ASIDE_BYTES_PER_TURN: usize = 64 * 1024;
/// Bytes of standard error read at a time: mostly there are none.
pub(super) const STDERR_READ_BYTES: usize = 2 * 1024;
/// Longest line of standard error in the log, in bytes; the rest is left out.
pub(super) const STDERR_LINE_BYTES_MAX: usize = 1024;
/// Lines of standard error that a route may log at once, and then in each second
/// (`program_stderr_dropped`).
pub(super) const STDERR_LINES_AT_ONCE: u64 = 200;
/// See [`STDERR_LINES_AT_ONCE`].
pub(super) const STDERR_LINES_PER_SECOND: u64 = 20;
/// Bytes of standard error kept to explain a failure, the last ones.
pub(super) const STDERR_KEPT_BYTES: usize = 4 * 1024;
