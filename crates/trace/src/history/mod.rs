//! The history: finished requests kept in memory by bytes and time, for whoever asks later.
//!
//! ```text
//! thread 0  push -> [open segment]  --full, a second old, or asked for--.
//! thread 1  push -> [open segment]  ------------------------------------+--> deque of sealed ones
//!                                                                       |      oldest .. newest
//! readers   take the sealed ones as they are, and stop nobody  <--------'          |
//! file      a background thread appends new ones to a ring file  <-----------------'
//! ```
//!
//! A push writes some 80 to 200 bytes into memory that only its thread sees; the lock of the deque
//! is taken once per segment. `entry` is one request as bytes, `segment` a stretch of them,
//! `writer` a thread's end, `kept` the deque, `filter` what somebody looks for, `search` looks,
//! `mark` is where a page ends, `file` keeps it over restarts.

mod entry;
mod file;
mod filter;
mod kept;
mod mark;
mod search;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

pub use entry::{Finished, kept};
pub use file::{FILE_BYTES_MIN, HistoryFile, Loaded, is_frame};
pub use filter::{Filter, Statuses};
pub use kept::{Holdings, RequestHistory, Retention};
pub use mark::{HistoryPosition, Mark, Rank, Reached};
pub use search::{FOUND_MAX, FoundRequest, HistoryPage, HistorySearch, RequestId};
pub use segment::{SEGMENT_BYTES, SegmentOrigin, is_sound};
pub use writer::{HistoryWriter, PendingEntries};
