//! Live tracing: events of requests' lives, for whoever watches.
//!
//! ```text
//!  a request's thread                     shared                        the watcher's thread
//!  Station: who watches? --- matches --> Watcher: bounded queue ------> its stream
//!  (one load when nobody)                held until the end, where only the end decides
//! ```
//!
//! - `terms` what a watcher asks for: its filter, its trigger and what it wants to be shown
//! - `pattern` globs and regular expressions
//! - `hide` what is not shown: secrets in fields and queries
//! - `event` one event as a line of JSON
//! - `watcher` one watcher: what waits for it
//! - `hub` all watchers; `station` as one thread sees them
//!
//! Who is watched never waits for a watcher: what does not fit is dropped and counted. A request
//! knows who watches it by bits, see [`Trail`]; what it did before it was known that somebody
//! watches is told from its record.

mod event;
mod hide;
mod hub;
mod pattern;
mod station;
mod terms;
mod watcher;

pub use event::{Pen, RequestStage, TextPart};
pub use hide::Hidden;
pub use hub::{Hub, Refused};
pub use pattern::Pattern;
pub use station::{Station, Trail};
pub use terms::{FieldsOf, TermsError, WatchCandidate, WatchTerms};
pub use watcher::Watcher;

/// Most watchers at a time; one more is refused (503).
pub const WATCHERS_MAX: usize = 32;
/// Bytes of events that wait for a watcher; what does not fit is dropped and counted.
pub const QUEUE_BYTES_MAX: usize = 256 * 1024;
/// Bytes of events held for requests whose end decides whether they match, of one watcher.
pub const HELD_BYTES_MAX: usize = 256 * 1024;
/// Requests of which events are held; when there are more, all that is held is dropped.
pub const HELD_COUNT_MAX: usize = 4096;
/// Requests of programs whose end has decided that are remembered, the last ones: what their
/// program prints later is shown or not as they were. What comes later still is as good as new.
pub const DECIDED_COUNT_MAX: usize = 512;
/// A watcher is woken when so many bytes wait for it, and before that only every [`PACE_MS`].
pub const FLUSH_BYTES: usize = 32 * 1024;
/// How long events may wait for others to go with, in milliseconds.
pub const PACE_MS: u64 = 50;
/// Most events kept before a trigger.
pub const KEEP_MAX: usize = 1000;
/// Longest text of a filter, in bytes.
pub const TERMS_BYTES_MAX: usize = 4096;
/// Most values of a filter.
pub const VALUES_MAX: usize = 64;
/// Bytes of a body shown in one event.
pub const DUMP_BYTES_MAX: usize = 1024;
/// Bytes of each body of a request that are shown at all.
pub const BODY_BYTES_MAX: u64 = 16 * 1024;
