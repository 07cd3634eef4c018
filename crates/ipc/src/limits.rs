//! Every limit of the crate, with its unit in its name.

/// A message's head.
pub const HEAD_BYTES: usize = 16;

/// The payload of a `request`: its block.
pub const REQUEST_BYTES_MAX: usize = 128 * 1024;

/// The payload of every other message.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// The payload of a `file`.
pub const FILE_BYTES: usize = 16;

/// What a `file` takes of its request's window of data, however long the file is: so many
/// descriptors may be on their way at a time.
pub const FILE_WINDOW_BYTES: usize = 16 * 1024;

/// The longest message of all, head included.
pub const MESSAGE_BYTES_MAX: usize = HEAD_BYTES + REQUEST_BYTES_MAX;

/// A line of the classic protocol's callouts, and all of one callout.
pub const CALLOUT_BYTES_MAX: usize = 4 * 1024;

/// Data that travels in the ring itself; what is longer goes in a chunk.
pub const RING_DATA_BYTES_MAX: usize = 4 * 1024;

/// Concurrent requests a worker may be asked to take.
pub const CONCURRENCY_MAX: u16 = 1024;

const _: () = assert!(PAYLOAD_BYTES_MAX <= REQUEST_BYTES_MAX);
const _: () = assert!(RING_DATA_BYTES_MAX <= PAYLOAD_BYTES_MAX);
